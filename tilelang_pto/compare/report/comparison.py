"""What a report shows: cases with what both backends gave, and groups of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tilelang_pto.compare.counts import QUANTITIES
from tilelang_pto.compare.modelled import ModelledTime
from tilelang_pto.compare.records import Record
from tilelang_pto.compare.statistics import GroupStatistics, TimeStatistics, group, grouped, ratio, time_statistics

__all__ = ["GROUPINGS", "CaseRow", "Comparison", "Side"]

_DIRECTIONS = {"forward": ("_forward", "_fwd"), "backward": ("_backward", "_bwd")}


@dataclass(frozen=True)
class Side:
    """One backend's part of a case; ``record`` is None if the backend was not run."""

    record: Record | None
    time: TimeStatistics | None

    @property
    def modelled(self) -> ModelledTime | None:
        """Modelled time of a call."""
        return self.record.modelled if self.record is not None else None

    def count(self, quantity: str) -> int | None:
        """One of :data:`QUANTITIES`, None if nothing was counted."""
        return self.record.counts.get(quantity) if self.record is not None else None


@dataclass(frozen=True)
class CaseRow:
    """A case with both backends."""

    case: str
    kernel: str
    parameters: dict[str, int | str]
    tokens: int
    ascend: Side
    pto: Side

    @property
    def direction(self) -> str:
        """``forward`` or ``backward`` by the kernel's name, else empty."""
        return next((name for name, endings in _DIRECTIONS.items() if self.kernel.endswith(endings)), "")

    @property
    def time_ratio(self) -> float | None:
        """Median of the calls, pto / ascend: one slow call among hundreds does not decide."""
        medians = [side.time.median if side.time is not None else None for side in (self.pto, self.ascend)]
        return ratio(*medians)

    def count_ratio(self, quantity: str) -> float | None:
        """pto / ascend; None where one of them has none."""
        return ratio(self.pto.count(quantity), self.ascend.count(quantity))

    def text_key(self) -> tuple[object, ...]:
        """Cases with the same key share their texts, as far as can be counted."""
        return self.kernel, *(side.count(quantity) for side in (self.ascend, self.pto) for quantity in QUANTITIES)


#: What cases are grouped by in tables of time: a heading and the name of the group.
GROUPINGS: dict[str, Callable[[CaseRow], str]] = {
    "tokens": lambda row: str(row.tokens),
    "direction": lambda row: row.direction,
    "kernel": lambda row: row.kernel,
}


class Comparison:
    """The cases of a run."""

    def __init__(self, name: str, setting: str, records: Iterable[Record]) -> None:
        self.name, self.setting = name, setting
        found: dict[str, dict[str, Record]] = {}
        for record in records:
            found.setdefault(record.case, {})[record.backend] = record
        self.rows = [_row(by_backend) for by_backend in found.values()]

    @property
    def timed(self) -> bool:
        """Whether any call was measured."""
        return any(side.time is not None for row in self.rows for side in (row.ascend, row.pto))

    @property
    def counted(self) -> bool:
        """Whether any text was counted for both backends."""
        return any(row.count_ratio("code") is not None for row in self.rows)

    def modelled_rows(self) -> list[tuple[CaseRow, ModelledTime]]:
        """Cases with a modelled time."""
        return [(row, row.pto.modelled) for row in self.rows if row.pto.modelled is not None]

    def time_groups(self, grouping: str) -> list[GroupStatistics]:
        """Ratios of time of the groups of :data:`GROUPINGS`."""
        pairs = [(GROUPINGS[grouping](row), row.time_ratio) for row in self.rows]
        named = [(name, value) for name, value in pairs if name and value is not None]
        return grouped(named, order=int if grouping == "tokens" else None)

    def all_times(self) -> GroupStatistics | None:
        """Ratios of time of all cases."""
        return group("all", [value for row in self.rows if (value := row.time_ratio) is not None])

    def texts(self) -> list[CaseRow]:
        """One row for each pair of texts: cases that differ in run-time values only share theirs."""
        first: dict[tuple[object, ...], CaseRow] = {}
        for row in self.rows:
            if row.count_ratio("code") is not None:
                first.setdefault(row.text_key(), row)
        return list(first.values())

    def count_groups(self, quantity: str) -> list[GroupStatistics]:
        """Ratios of a count by kernel, over its different texts."""
        pairs = [(row.kernel, row.count_ratio(quantity)) for row in self.texts()]
        return grouped((name, value) for name, value in pairs if value is not None)

    def all_counts(self, quantity: str) -> GroupStatistics | None:
        """Ratios of a count over all texts."""
        return group("all", [value for row in self.texts() if (value := row.count_ratio(quantity)) is not None])

    def quantities(self) -> list[str]:
        """Counts that any pair of texts has."""
        texts = self.texts()
        return [quantity for quantity in QUANTITIES if any(row.pto.count(quantity) or row.ascend.count(quantity) for row in texts)]


def _row(by_backend: dict[str, Record]) -> CaseRow:
    sides = {}
    for backend in ("ascend", "pto"):
        record = by_backend.get(backend)
        sides[backend] = Side(record, time_statistics(record.samples) if record is not None else None)
    any_record = next(iter(by_backend.values()))
    return CaseRow(any_record.case, any_record.kernel, any_record.parameters, any_record.tokens, sides["ascend"], sides["pto"])
