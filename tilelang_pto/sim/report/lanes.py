"""The rows of a timeline: one per pipe of a core, more where commands of a pipe overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tilelang_pto.sim.report.model import Event, core_label

__all__ = ["PIPE_ORDER", "Lane", "lanes", "pipe_rank"]

#: The pipes in the order in which data passes them.
PIPE_ORDER = ("S", "MTE2", "MTE1", "M", "FIX", "V", "MTE3")


@dataclass(frozen=True, slots=True)
class Lane:
    """Events that do not overlap, by start. ``number`` is 0 for the first row of a pipe."""

    block: int
    core: str
    pipe: str
    number: int
    events: list[Event]

    @property
    def core_label(self) -> str:
        """``block 3 AIV0``."""
        return core_label(self.block, self.core)

    @property
    def label(self) -> str:
        """``MTE2``, ``MTE2 (2)``."""
        return f"{self.pipe} ({self.number + 1})" if self.number else self.pipe


def pipe_rank(name: str) -> tuple[int, str]:
    """A sort key: known pipes in their order, then others by name."""
    return (PIPE_ORDER.index(name) if name in PIPE_ORDER else len(PIPE_ORDER), name)


def lanes(events: Iterable[Event]) -> list[Lane]:
    """Rows by block, core and pipe."""
    pipes: dict[tuple[int, str, str], list[Event]] = defaultdict(list)
    for event in events:
        pipes[event.block, event.core, event.pipe].append(event)
    found = []
    for block, core, pipe in sorted(pipes, key=lambda key: (key[0], key[1], pipe_rank(key[2]))):
        rows: list[list[Event]] = []
        for event in sorted(pipes[block, core, pipe], key=lambda event: (event.start, event.end)):
            row = next((row for row in rows if row[-1].end <= event.start), None)
            if row is None:
                rows.append([event])
            else:
                row.append(event)
        found += [Lane(block, core, pipe, number, row) for number, row in enumerate(rows)]
    return found
