"""Reading the tables ``msprof`` writes: ``op_summary_*.csv`` (a row for each launch) and ``op_statistic_*.csv`` (a row for each kernel).

Their columns differ between versions: units stand in the heading (``Task Duration(us)``), or not at all; a table has as many columns
as there were metrics; numbers may end in a tab. Only what is needed is looked at.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilelang_pto.errors import PtoError

__all__ = ["Launch", "MsprofError", "Total", "read_op_statistic", "read_op_summary"]

_HEADING = re.compile(r"\s*([^()]*?)\s*(?:\((ns|us|ms|s|%)\))?\s*$")
_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_NAMES = ("op name", "name", "kernel name")
_TYPES = ("op type", "type")


class MsprofError(PtoError):
    """``msprof`` failed, or its output is not what is expected."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel launch.

    Attributes:
        name: of the device function.
        task_type: of the cores: ``AI_VECTOR_CORE``, ``AI_CORE``, ``MIX_AIC``, ...; empty if the table does not say.
        start: in the table's own unit and from its own zero, for the order only.
        microseconds: how long it took.
    """

    name: str
    task_type: str
    start: float
    microseconds: float


@dataclass(frozen=True, slots=True)
class Total:
    """All launches of a kernel: how many, and microseconds together."""

    name: str
    count: int
    microseconds: float


def read_op_summary(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> list[Launch]:
    """The launches of a file.

    Args:
        path: the file.
        wanted: which names; rows of others need not have numbers in them (those of communication have none).

    Raises:
        MsprofError: the file is no such table, or is damaged.
    """
    launches = []
    for row in _rows(path, ("task duration",)):
        name = row.text(*_NAMES)
        if wanted(name):
            start = row.number("task start time", default=0.0)
            launches.append(Launch(name, row.optional("task type"), start, row.microseconds("task duration")))
    return launches


def read_op_statistic(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> list[Total]:
    """The kernels of a file.

    Args:
        path: the file.
        wanted: which names.

    Raises:
        MsprofError: the file is no such table, or is damaged.
    """
    totals = []
    for row in _rows(path, ("count", "total time")):
        name = row.text(*_TYPES, *_NAMES)
        if wanted(name):
            totals.append(Total(name, int(row.number("count")), row.microseconds("total time")))
    return totals


class _Row:
    def __init__(self, place: str, columns: dict[str, tuple[int, str]], cells: Sequence[str]) -> None:
        self.place, self._columns, self._cells = place, columns, cells

    def text(self, *names: str) -> str:
        for name in names:
            if name in self._columns:
                return self._cells[self._columns[name][0]].strip()
        raise MsprofError(f"{self.place}: there is no column {' or '.join(names)}", advice="is this a table of msprof?")

    def optional(self, name: str) -> str:
        return self.text(name) if name in self._columns else ""

    def number(self, name: str, default: float | None = None) -> float:
        if name not in self._columns and default is not None:
            return default
        text = self.text(name)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0:
            raise MsprofError(f"{self.place}: {name} is {text!r}, no number", advice="profile again")
        return value

    def microseconds(self, name: str) -> float:
        unit = self._columns[name][1] if name in self._columns else ""
        return self.number(name) * _MICROSECONDS.get(unit, 1.0)


def _rows(path: Path, needed: Sequence[str]) -> Iterator[_Row]:
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise MsprofError(f"{path} cannot be read: {error.strerror}", advice="profile again") from error
    lines = csv.reader(text.splitlines())
    headings = next(lines, [])
    columns: dict[str, tuple[int, str]] = {}
    for number, heading in enumerate(headings):
        match = _HEADING.match(heading)
        if match is not None:
            columns.setdefault(match.group(1).lower(), (number, match.group(2) or ""))
    for name in needed:
        if name not in columns:
            raise MsprofError(f"{path} has no column {name}", advice="is this a table of msprof, and is it whole?")
    last = max(index for index, _ in columns.values())
    for cells in lines:
        if not any(cell.strip() for cell in cells):
            continue
        place = f"{path}:{lines.line_num}"
        if len(cells) <= last and len(cells) < len(headings):
            raise MsprofError(f"{place} has {len(cells)} of {len(headings)} cells: the file is cut off", advice="profile again")
        yield _Row(place, columns, cells)
