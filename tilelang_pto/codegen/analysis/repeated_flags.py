"""Flags that a loop sets anew in every round although nobody knows that the wait for the last set is over.

A pipelined loop begins with sets that say that its buffers are free and ends with the waits that take the last ones. Inside another
loop the sets of the next round follow those waits, on different pipes: the source may run ahead and set a flag that is still set, which
is undefined on hardware. Where nothing tells the source pipe that the waits are over, the round has to end with a barrier.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tvm import tirx

__all__ = ["sets_run_ahead"]

_SETS = {"tl.ascend_set_flag": True, "tl.ascend_wait_flag": False}
_BARRIER = "tl.ascend_pipe_barrier"


Branch = tuple[int, int]  # a condition and which of its cases


@dataclass(frozen=True, slots=True)
class _Step:
    """One synchronisation in the order of the program.

    Attributes:
        source, destination: pipes of a flag; a barrier of all pipes has none.
        number: text of the event id.
        sets: whether it is a set (or else a wait).
        inner: which loop inside the body runs it, if any.
        branches: in which branches inside the body it stands, the outermost first.
    """

    source: str
    destination: str
    number: str
    sets: bool
    inner: int | None
    branches: tuple[Branch, ...]

    def comes_with(self, other: _Step) -> bool:
        """Whether a round that runs ``other`` runs this one for certain."""
        return self.inner is None and self.branches == other.branches[: len(self.branches)]


def sets_run_ahead(body: Any, *, mixed: bool) -> bool:
    """Whether a round of the loop with this body may set a flag again before the last wait of the round before it.

    Args:
        body: of the loop; in a mixed kernel without the blocks of its cores, which are streams of their own.
        mixed: whether the kernel runs on cores of both kinds.
    """
    steps = list(_steps(body, mixed, itertools.count()))
    channels = {(step.source, step.destination) for step in steps if step.source}
    return any(_runs_ahead(steps, *channel) for channel in channels)


def _runs_ahead(steps: list[_Step], source: str, destination: str) -> bool:
    own = [position for position, step in enumerate(steps) if (step.source, step.destination) == (source, destination)]
    inner: dict[int, _Step] = {}
    for position in own:
        step = steps[position]
        if step.inner is not None:
            inner.setdefault(step.inner, step)
    if all(step.sets for step in inner.values()):
        return False  # each set here hands over data, whose buffer another flag guards
    begins, ends = _outermost(steps, own), _outermost(steps, own[::-1])
    return any(
        steps[begin].sets and not steps[end].sets and not _in_order(steps, begin, end, source, destination)
        for begin, end in itertools.product(begins, ends)
    )


def _outermost(steps: list[_Step], positions: list[int]) -> list[int]:
    """Which of the positions may be the first one that a round comes to. Those of loops inside count, too."""
    found: list[int] = []
    for position in positions:
        if not any(steps[earlier].branches == steps[position].branches[: len(steps[earlier].branches)] for earlier in found):
            found.append(position)
    return [position for position in found if steps[position].inner is None]


def _in_order(steps: list[_Step], begin: int, end: int, source: str, destination: str) -> bool:
    """Whether the source of the flag knows that the wait at ``end`` is over when it comes to the set at ``begin`` of the next round."""
    informed = {destination}
    signalled: set[tuple[str, str, str]] = set()
    between = [step for step in steps[end + 1 :] if step.comes_with(steps[end])]
    for step in (*between, *(step for step in steps[:begin] if step.comes_with(steps[begin]))):
        if not step.source:
            return True
        flag = (step.source, step.destination, step.number)
        if step.sets and step.source in informed:
            signalled.add(flag)
        elif not step.sets and flag in signalled:
            informed.add(step.destination)
        if source in informed or "S" in informed:  # the scalar unit issues whatever comes behind
            return True
    return False


def _steps(stmt: Any, mixed: bool, numbers: Iterator[int], inner: int | None = None, branches: tuple[Branch, ...] = ()) -> Iterator[_Step]:
    """Flags and barriers of one core."""
    if isinstance(stmt, tirx.SeqStmt):
        for part in stmt.seq:
            yield from _steps(part, mixed, numbers, inner, branches)
    elif mixed and isinstance(stmt, tirx.SBlock) and str(stmt.name_hint) in ("CUBE", "VECTOR"):
        return
    elif isinstance(stmt, (tirx.AttrStmt, tirx.SBlock)):
        yield from _steps(stmt.body, mixed, numbers, inner, branches)
    elif isinstance(stmt, (tirx.For, tirx.While)):
        yield from _steps(stmt.body, mixed, numbers, next(numbers) if inner is None else inner, branches)
    elif isinstance(stmt, tirx.IfThenElse):
        condition = next(numbers)
        for number, case in enumerate((stmt.then_case, stmt.else_case)):
            if case is not None:
                yield from _steps(case, mixed, numbers, inner, (*branches, (condition, number)))
    elif isinstance(stmt, tirx.Evaluate) and isinstance(stmt.value, tirx.Call):
        name = str(getattr(stmt.value.op, "name", ""))
        if name in _SETS:
            event, number = stmt.value.args
            source, _, destination = str(event.value).partition("_")
            yield _Step(source, destination, str(number), _SETS[name], inner, branches)
        elif name == _BARRIER and str(stmt.value.args[0].value).removeprefix("PIPE_") in ("ALL", "S"):
            yield _Step("", "", "", False, inner, branches)
