"""The failure table: for each kernel and backend how many cases got through each stage, and the first error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from tilelang_pto.compare.records import BACKENDS, FAILED, NOT_TRIED, OK, STAGES, Record

__all__ = ["COLUMNS", "HEADINGS", "Row", "markdown_table", "rich_table", "rows_of"]

#: Columns, and the stages a case has to get through for each.
COLUMNS = {"text": ("load", "trace", "text"), "compile": ("compile",), "run": ("run",), "numbers": ("numbers",)}
HEADINGS = ("kernel", "backend", *COLUMNS, "first error, or why something was not tried")


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a row.

    Attributes:
        passed: cases that got through.
        failed: cases in which one of the column's stages failed.
        total: all cases.
    """

    passed: int
    failed: int
    total: int

    def __str__(self) -> str:
        if not self.passed and not self.failed:
            return "not tried"
        return f"{self.passed}/{self.total}"

    @property
    def style(self) -> str:
        return "red" if self.failed else "green" if self.passed == self.total else "yellow"


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel with a backend."""

    kernel: str
    backend: str
    cells: tuple[Cell, ...]
    remarks: tuple[str, ...]

    @property
    def failed(self) -> bool:
        return any(cell.failed for cell in self.cells)


def rows_of(records: Iterable[Record]) -> list[Row]:
    """The rows, kernels in the order of the records."""
    groups: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        groups.setdefault(record.kernel, {}).setdefault(record.backend, []).append(record)
    return [_row(kernel, backend, group[backend]) for kernel, group in groups.items() for backend in BACKENDS if backend in group]


def _row(kernel: str, backend: str, records: Sequence[Record]) -> Row:
    cells = []
    for stages in COLUMNS.values():
        statuses = [[record.step(stage).status for stage in stages] for record in records]
        passed = sum(all(status == OK for status in each) for each in statuses)
        cells.append(Cell(passed, sum(FAILED in each for each in statuses), len(records)))
    return Row(kernel, backend, tuple(cells), tuple(_remarks(records)))


def _remarks(records: Sequence[Record]) -> list[str]:
    """The first error of the earliest stage that failed, errors of other stages, and reasons why stages were not tried."""
    remarks = []
    shown = {"count", *(stage for stages in COLUMNS.values() for stage in stages)}
    for stage in STAGES:
        errors = [record for record in records if record.error is not None and record.error.stage == stage]
        if errors and errors[0].error is not None:
            where = errors[0].case if len(errors) == 1 else f"{len(errors)} cases, first {errors[0].case}"
            remarks.append(f"{stage}: {errors[0].error.detail} ({where})")
    reasons: dict[str, list[str]] = {}
    for stage in STAGES:
        for record in records:
            step = record.step(stage)
            if stage in shown and step.status == NOT_TRIED and step.detail and record.error is None:
                stages = reasons.setdefault(step.detail, [])
                if stage not in stages:
                    stages.append(stage)
    return remarks + [f"{', '.join(stages)} not tried: {reason}" for reason, stages in reasons.items()]


def rich_table(rows: Iterable[Row]) -> Table:
    """For a terminal."""
    table = Table(*HEADINGS[:-1], show_lines=False)
    table.add_column(HEADINGS[-1], overflow="fold", ratio=1)
    last = ""
    for row in rows:
        cells = [Text(str(cell), style=cell.style) for cell in row.cells]
        name = "" if row.kernel == last else row.kernel
        table.add_row(name, row.backend, *cells, Text("\n".join(row.remarks), style="red" if row.failed else ""))
        last = row.kernel
    return table


def markdown_table(rows: Iterable[Row]) -> str:
    """For an issue tracker."""
    lines = [f"| {' | '.join(HEADINGS)} |", f"|{'---|' * len(HEADINGS)}"]
    for row in rows:
        remarks = "<br>".join(remark.replace("|", "\\|").replace("<", "&lt;") for remark in row.remarks)
        lines.append(f"| `{row.kernel}` | {row.backend} | {' | '.join(map(str, row.cells))} | {remarks} |")
    return "\n".join(lines) + "\n"
