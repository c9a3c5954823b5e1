"""The tables of a report, as cells of text; every output shows the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table

from tilelang_pto.compare.counts import QUANTITIES
from tilelang_pto.compare.modelled import ModelledTime
from tilelang_pto.compare.report.comparison import GROUPINGS, CaseRow, Comparison
from tilelang_pto.compare.statistics import GroupStatistics, TimeStatistics

__all__ = ["TextTable", "markdown", "rich_tables", "tables_of"]

_MISSING = "-"
_OF_A_CALL = ("cycles", "GM bandwidth", "pipes, share of the time busy", "bound by")
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table with its heading; columns are numbers but for the first ``numbers`` and the last ``words``."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int = 1
    words: int = 0

    def is_number(self, column: int) -> bool:
        """Whether a column is set to the right."""
        return self.numbers <= column < len(self.headings) - self.words


def tables_of(comparison: Comparison) -> list[TextTable]:
    """Those there are data for."""
    return [table for table in (*_times(comparison), *_modelled(comparison), *_counts(comparison)) if table.rows]


def markdown(table: TextTable) -> str:
    """The table in Markdown."""
    rules = ["---:" if table.is_number(column) else "---" for column in range(len(table.headings))]
    lines = [f"### {table.title}", "", f"| {' | '.join(table.headings)} |", f"|{'|'.join(rules)}|"]
    lines += [f"| {' | '.join(row)} |" for row in table.rows]
    return "\n".join(lines) + "\n"


def _times(comparison: Comparison) -> Iterator[TextTable]:
    if not comparison.timed:
        return
    for grouping in GROUPINGS:
        rows = [_group_row(found) for found in comparison.time_groups(grouping)]
        total = comparison.all_times()
        if total is not None and grouping == "kernel":
            rows.append(_group_row(total))
        headings = (grouping, "cases", "mean", "median", "geometric mean", "wins of pto", "worst")
        yield TextTable(f"Time pto / ascend by {grouping}", headings, tuple(rows))
    cases = tuple((row.case, *_time(row.ascend.time), *_time(row.pto.time), _number(row.time_ratio)) for row in comparison.rows)
    yield TextTable("Time by case", ("case", "ascend mean us", "median us", "CV", "pto mean us", "median us", "CV", "pto / ascend"), cases)


def _modelled(comparison: Comparison) -> Iterator[TextTable]:
    found: dict[str, list[tuple[CaseRow, ModelledTime]]] = {}
    for row, time in comparison.modelled_rows():
        found.setdefault(row.kernel, []).append((row, time))
    kernels = []
    for kernel, times in found.items():
        shortest, longest = (choose((time for _, time in times), key=lambda time: time.cycles) for choose in (min, max))
        kernels.append((kernel, str(len(times)), _number(shortest.microseconds), *_modelled_cells(longest)))
    headings = ("kernel", "cases", "shortest call us", "longest call us", *_OF_A_CALL)
    yield TextTable("Modelled time of pto by kernel, and what its longest call goes on", headings, tuple(kernels), words=2)
    cases = tuple((row.case, str(row.tokens), *_modelled_cells(time)) for row, time in comparison.modelled_rows())
    yield TextTable("Modelled time of pto by case", ("case", "tokens", "us", *_OF_A_CALL), cases, words=2)


def _modelled_cells(time: ModelledTime) -> tuple[str, ...]:
    by_share = sorted(time.busy.items(), key=lambda pair: -pair[1])
    busy = ", ".join(f"{pipe} {share:.0%}" for pipe, share in by_share if share >= _LEAST_SHARE)
    return _number(time.microseconds), f"{time.cycles:.0f}", f"{time.gm_share:.0%}", busy, time.bound_by


def _counts(comparison: Comparison) -> Iterator[TextTable]:
    quantities = [quantity for quantity in comparison.quantities() if comparison.all_counts(quantity) is not None]
    headings = ("kernel", "texts", *(QUANTITIES[quantity] for quantity in quantities))
    groups = {quantity: {found.name: found for found in comparison.count_groups(quantity)} for quantity in quantities}
    texts = comparison.texts()
    rows = []
    for kernel in dict.fromkeys(row.kernel for row in texts):
        means = [groups[quantity].get(kernel) for quantity in quantities]
        rows.append((kernel, str(sum(row.kernel == kernel for row in texts)), *map(_mean, means)))
    if rows:
        rows.append(("geometric mean of all texts", str(len(texts)), *(_mean(comparison.all_counts(quantity)) for quantity in quantities)))
        rows.append(("largest ratio", "", *(_worst(comparison.all_counts(quantity)) for quantity in quantities)))
    yield TextTable("Static counts pto / ascend by kernel", headings, tuple(rows))
    quantities = comparison.quantities()
    details = tuple((row.case, *(_counts_cell(row, quantity) for quantity in quantities)) for row in texts)
    yield TextTable("Static counts by text: pto / ascend", ("first case", *(QUANTITIES[quantity] for quantity in quantities)), details)


def _counts_cell(row: CaseRow, quantity: str) -> str:
    ours, theirs = row.pto.count(quantity), row.ascend.count(quantity)
    quotient = row.count_ratio(quantity)
    return f"{ours} / {theirs}" + (f" = {quotient:.2f}" if quotient is not None else "")


def _group_row(found: GroupStatistics) -> tuple[str, ...]:
    numbers = (found.mean, found.median, found.geometric_mean)
    return (found.name, str(found.cases), *map(_number, numbers), f"{found.wins} of {found.cases}", _number(found.worst))


def _time(time: TimeStatistics | None) -> Sequence[str]:
    if time is None:
        return (_MISSING,) * 3
    return f"{time.mean:.2f}", f"{time.median:.2f}", _MISSING if time.cv is None else f"{time.cv:.1%}"


def _number(value: float | None) -> str:
    return _MISSING if value is None else f"{value:.3f}"


def _mean(found: GroupStatistics | None) -> str:
    return _number(found.geometric_mean if found is not None else None)


def _worst(found: GroupStatistics | None) -> str:
    return _number(found.worst if found is not None else None)


def rich_tables(comparison: Comparison) -> Iterator[Table]:
    """The tables of groups, for a terminal; those with a row for each case are in the files."""
    for table in tables_of(comparison):
        if " by case" in table.title or " by text" in table.title:
            continue
        shown = Table(title=table.title, title_justify="left")
        for column, heading in enumerate(table.headings):
            shown.add_column(heading, justify="right" if table.is_number(column) else "left")
        for row in table.rows:
            shown.add_row(*row)
        yield shown
