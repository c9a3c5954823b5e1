"""Charts as SVG, complete in themselves, for a page without other resources."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from tilelang_pto.compare.report.charts import Chart

__all__ = ["COLOURS", "svg_of", "ticks_of"]

COLOURS = ("#2f6f9f", "#d9822b", "#4f9d5d", "#8a63a8", "#b0413e")
_LEFT, _TOP, _GAP, _PLOT, _LEGEND = 56, 48, 14, 220, 150
_WIDEST, _NARROWEST, _PAGE = 12, 4, 1080  # bars, and what the bars of a page may take
_ACROSS, _DOWN = 5.2, 4.4  # of a character of a label that is turned by 40 degrees
_FEW_DECADES = 3


def svg_of(chart: Chart) -> str:
    """An ``<svg>`` element with bars; each has its value as a title."""
    return "\n".join(_lines(chart)) + "\n"


def ticks_of(chart: Chart) -> list[float]:
    """Values the axis has lines at: 1, 2 and 5 of each decade, or multiples of these; the first and the last are its ends."""
    values = chart.values + ([chart.reference] if chart.reference is not None else [])
    if chart.logarithmic:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        steps = (1, 2, 5) if high - low <= _FEW_DECADES else (1,)
        ticks = [step * 10.0**exponent for exponent in range(low - 1, high + 2) for step in steps]  # the logarithms are rounded
        first = max(number for number, tick in enumerate(ticks) if tick <= min(values))
        last = min(number for number, tick in enumerate(ticks) if tick >= max(values))
        return ticks[first : max(last, first + 1) + 1]
    step = 10 ** math.floor(math.log10(max(values)))
    step = next(step / divisor for divisor in (5, 2, 1, 0.5, 0.2) if max(values) / (step / divisor) <= 8)
    return [step * number for number in range(math.ceil(max(values) / step) + 1)]


def _lines(chart: Chart) -> Iterator[str]:
    ticks = ticks_of(chart)
    bars = len(chart.series) * len(chart.categories)
    bar = max(_NARROWEST, min(_WIDEST, (_PAGE - _GAP * len(chart.categories)) // bars))
    group = bar * len(chart.series)
    middles = [_GAP + place * (group + _GAP) + group / 2 for place in range(len(chart.categories))]
    left = math.ceil(max(_LEFT, *(_ACROSS * len(name) - middle for name, middle in zip(chart.categories, middles, strict=True))))
    width = max(left + (group + _GAP) * len(chart.categories) + _GAP, left + _LEGEND * len(chart.series))
    height = math.ceil(_TOP + _PLOT + 24 + _DOWN * max(map(len, chart.categories)))
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    yield f"<title>{escape(chart.title)}</title>"
    yield '<g font-family="sans-serif" font-size="11">'
    for number, (name, _) in enumerate(chart.series):
        x = left + number * _LEGEND
        yield f'<rect x="{x}" y="8" width="11" height="11" fill="{COLOURS[number % len(COLOURS)]}"/>'
        yield f'<text x="{x + 16}" y="18" fill="currentColor">{escape(name)}</text>'
    for tick in ticks:
        y = _height(chart, ticks, tick)
        yield f'<line x1="{left}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8886"/>'
        yield f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" fill="currentColor">{tick:g}</text>'
    for place, category in enumerate(chart.categories):
        x = left + _GAP + place * (group + _GAP)
        for number, (name, values) in enumerate(chart.series):
            value = values[place]
            if value is None:
                continue
            y = _height(chart, ticks, value)
            yield (
                f'<rect x="{x + number * bar}" y="{y:.1f}" width="{bar - 1}" height="{max(_TOP + _PLOT - y, 1):.1f}" '
                f'fill="{COLOURS[number % len(COLOURS)]}"><title>{escape(f"{category}, {name}: {value:.3g}")}</title></rect>'
            )
        middle, foot = left + middles[place], _TOP + _PLOT + 12
        yield (
            f'<text x="{middle:.1f}" y="{foot}" text-anchor="end" fill="currentColor" transform="rotate(-40 {middle:.1f} {foot})">'
            f"{escape(category)}</text>"
        )
    if chart.reference is not None:
        y = _height(chart, ticks, chart.reference)
        yield f'<line x1="{left}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" stroke-dasharray="5 3"/>'
    yield "</g></svg>"


def _height(chart: Chart, ticks: list[float], value: float) -> float:
    """Where a value is, in pixels from the top."""
    if chart.logarithmic:
        low, high = math.log10(ticks[0]), math.log10(ticks[-1])
        share = (math.log10(value) - low) / (high - low)
    else:
        share = value / ticks[-1]
    return _TOP + _PLOT * (1 - share)
