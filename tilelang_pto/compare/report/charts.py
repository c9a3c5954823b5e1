"""The charts of a report, as data; :mod:`.svg` and :mod:`.png` draw them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilelang_pto.compare.counts import QUANTITIES
from tilelang_pto.compare.report.comparison import Comparison
from tilelang_pto.compare.statistics import geometric_mean

__all__ = ["Chart", "charts_of"]

#: Counts a chart shows; the others are in the tables.
_SHOWN = ("scalar", "vector", "syncs", "bytes", "code")


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars for each category, one of each series.

    Attributes:
        name: for files.
        title: says what is shown.
        unit: of the values.
        categories: along the axis.
        series: names and values, None where there is none.
        reference: where a line is drawn: 1 for ratios.
        logarithmic: whether the values span decades.
    """

    name: str
    title: str
    unit: str
    categories: tuple[str, ...]
    series: tuple[tuple[str, tuple[float | None, ...]], ...]
    reference: float | None = None
    logarithmic: bool = False

    @property
    def values(self) -> list[float]:
        return [value for _, values in self.series for value in values if value is not None]


def charts_of(comparison: Comparison) -> list[Chart]:
    """The charts there are data for, with the series there are data for."""
    charts = (*_times(comparison), *_modelled(comparison), *_counts(comparison))
    shown = (
        replace(chart, series=tuple(found for found in chart.series if any(value is not None for value in found[1]))) for chart in charts
    )
    return [chart for chart in shown if chart.series]


def _times(comparison: Comparison) -> Iterator[Chart]:
    for grouping in ("tokens", "kernel"):
        names = tuple(found.name for found in comparison.time_groups(grouping))
        directions = [row.direction for row in comparison.rows]
        series = []
        for direction in dict.fromkeys(directions) if grouping == "tokens" else ("",):
            pairs = [
                (str(row.tokens) if grouping == "tokens" else row.kernel, row.time_ratio)
                for row in comparison.rows
                if grouping == "kernel" or row.direction == direction
            ]
            series.append((direction or "all", _means(names, pairs)))
        yield Chart(
            f"time-by-{grouping}",
            f"Time pto / ascend by {grouping} (geometric mean of medians; below 1 pto is faster)",
            "ratio",
            names,
            tuple(series),
            reference=1.0,
        )


def _modelled(comparison: Comparison) -> Iterator[Chart]:
    pairs = [(row.kernel, time.microseconds) for row, time in comparison.modelled_rows() if time.microseconds > 0]
    names = tuple(dict.fromkeys(name for name, _ in pairs))
    yield Chart(
        "modelled-time",
        "Modelled time of a call of pto in microseconds (geometric mean over the cases of a kernel)",
        "microseconds",
        names,
        (("pto", _means(names, pairs)),),
        logarithmic=True,
    )


def _counts(comparison: Comparison) -> Iterator[Chart]:
    texts = comparison.texts()
    names = tuple(dict.fromkeys(row.kernel for row in texts))
    series = tuple((QUANTITIES[quantity], _means(names, [(row.kernel, row.count_ratio(quantity)) for row in texts])) for quantity in _SHOWN)
    yield Chart(
        "counts-by-kernel",
        "Static counts pto / ascend by kernel (geometric mean over its texts)",
        "ratio",
        names,
        series,
        reference=1.0,
    )


def _means(names: Sequence[str], pairs: Sequence[tuple[str, float | None]]) -> tuple[float | None, ...]:
    means = []
    for wanted in names:
        values = [value for name, value in pairs if name == wanted and value is not None]
        means.append(geometric_mean(values) if values else None)
    return tuple(means)
