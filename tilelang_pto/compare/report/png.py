"""Charts as PNG files, drawn by matplotlib where it is installed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from tilelang_pto.compare.report.charts import Chart
from tilelang_pto.compare.report.svg import COLOURS, ticks_of
from tilelang_pto.errors import ConfigurationError

__all__ = ["write_charts"]


def write_charts(charts: Iterable[Chart], directory: Path) -> list[Path]:
    """Write ``<name>.png`` for each chart.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigurationError(
            "charts as PNG need matplotlib, which is not installed", advice='pip install "tilelang-pto[compare]"'
        ) from error
    written = []
    for chart in charts:
        inches = min(16.0, max(6.0, 0.25 * len(chart.categories) * (len(chart.series) + 1) + 1.5))
        figure = Figure(figsize=(inches, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        width = 0.8 / len(chart.series)
        for number, (name, values) in enumerate(chart.series):
            places = [place + (number - (len(chart.series) - 1) / 2) * width for place in range(len(chart.categories))]
            heights = [float("nan") if value is None else value for value in values]
            axes.bar(places, heights, width, label=name, color=COLOURS[number % len(COLOURS)])
        if chart.reference is not None:
            axes.axhline(chart.reference, color="black", linestyle="--", linewidth=0.8)
        if chart.logarithmic:
            axes.set_yscale("log")
        ticks = ticks_of(chart)
        axes.set_ylim(ticks[0], ticks[-1])
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.grid(axis="y", linewidth=0.4)
        axes.set_axisbelow(True)
        axes.set_xticks(range(len(chart.categories)), chart.categories, rotation=40, ha="right", fontsize=8)
        axes.set_ylabel(chart.unit)
        axes.set_title(textwrap.fill(chart.title, int(11 * inches)), fontsize=9)
        if len(chart.series) > 1:
            figure.legend(fontsize=7, loc="outside upper center", ncols=len(chart.series))
        path = directory / f"{chart.name}.png"
        figure.savefig(path, dpi=150)
        written.append(path)
    return written
