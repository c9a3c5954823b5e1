"""Buffers of the memories of a core, as comments of a PTODSL text name them.

A line ``# UB view row: 512 float32, bytes 4096 to 6143`` anywhere in a kernel says where buffer ``row`` lies; what stands between colon
and ``bytes`` is free. ``# UB view row`` at the end of a line with ``pto.castptr`` says that the pointer made there points into it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["MEMORIES", "View", "ViewTable"]

#: Spaces of pointers by what the documentation calls the memory.
MEMORIES = {"UB": "ub", "L1": "mat", "L0A": "left", "L0B": "right", "L0C": "acc", "BT": "bias", "FB": "scaling"}

_MEMORY = "|".join(MEMORIES)
_PLACE = re.compile(rf"^\s*#\s*({_MEMORY}) view (.+?):(?:.*[\s,])?bytes (\d+) to (\d+)\s*$")
_POINTER = re.compile(rf"#\s*({_MEMORY}) view ([^:#]+?)\s*$")
_KERNEL = re.compile(r"^\s*@(?:\w+\.)*jit\b")


@dataclass(frozen=True, slots=True)
class View:
    """A buffer.

    Args:
        name: as the comment says it.
        memory: ``"UB"``, ``"L1"``, ...
        begin: first byte.
        end: byte after the last one.
        line: of the comment, from 1.
    """

    name: str
    memory: str
    begin: int
    end: int
    line: int


class ViewTable:
    """The buffers of all kernels of a text.

    Args:
        text: the module text.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._kernels = [number for number, line in enumerate(self._lines, 1) if _KERNEL.match(line)]
        self._views: dict[int, dict[tuple[str, str], View]] = {}
        for number, line in enumerate(self._lines, 1):
            match = _PLACE.match(line)
            if match and int(match[3]) <= int(match[4]):
                view = View(match[2], match[1], int(match[3]), int(match[4]) + 1, number)
                self._views.setdefault(self._kernel(number), {}).setdefault((view.memory, view.name), view)

    def _kernel(self, line: int) -> int:
        """Line of the decorator of the kernel a line belongs to; 0 in front of the first."""
        return max((start for start in self._kernels if start <= line), default=0)

    def of_kernel(self, line: int) -> tuple[View, ...]:
        """The buffers of the kernel around a line."""
        return tuple(self._views.get(self._kernel(line), {}).values())

    def of_name(self, kernel: str) -> tuple[View, ...]:
        """The buffers of the kernel called ``kernel``."""
        names = re.compile(rf"^\s*def {re.escape(kernel)}\(|\bname=[\"']{re.escape(kernel)}[\"']")
        lines = (number for number, line in enumerate(self._lines, 1) if names.search(line) and self._kernel(number))
        return self.of_kernel(next(lines, 0))

    def of_pointer(self, line: int, space: str) -> View | None:
        """The buffer that the pointer made in a line points into, as far as the line and the kernel say so."""
        match = _POINTER.search(self._lines[line - 1]) if 0 < line <= len(self._lines) else None
        if match is None or MEMORIES[match[1]] != space:
            return None
        return self._views.get(self._kernel(line), {}).get((match[1], match[2]))
