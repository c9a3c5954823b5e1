"""The files of a report."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

from tilelang_pto.compare.counts import QUANTITIES
from tilelang_pto.compare.records import Record
from tilelang_pto.compare.report.charts import charts_of
from tilelang_pto.compare.report.comparison import GROUPINGS, CaseRow, Comparison, Side
from tilelang_pto.compare.report.png import write_charts
from tilelang_pto.compare.report.svg import svg_of
from tilelang_pto.compare.report.tables import markdown, tables_of
from tilelang_pto.compare.statistics import GroupStatistics
from tilelang_pto.compare.table import HEADINGS, markdown_table, rows_of
from tilelang_pto.errors import ConfigurationError
from tilelang_pto.runtime.templates import render

__all__ = ["as_csv", "as_html", "as_json", "as_markdown", "write_report"]

_WHERE = {
    "npu": "Run on a board; times are of msprof.",
    "static": "Texts only: nothing was built or called.",
    "sim": "Run without a board: pto on the simulator, AscendC as text only.",
}


def write_report(comparison: Comparison, records: list[Record], directory: Path) -> tuple[list[Path], list[str]]:
    """Write all files into a directory.

    Returns:
        The files, and what could not be written and why.
    """
    texts = {
        "report.md": as_markdown(comparison, records),
        "report.json": as_json(comparison),
        "report.csv": as_csv(comparison),
        "report.html": as_html(comparison, records),
    }
    written = []
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
        written.append(directory / name)
    remarks = []
    try:
        written += write_charts(charts_of(comparison), directory)
    except ConfigurationError as error:
        remarks.append(f"{error.what}: {error.advice}; the charts are in report.html")
    return written, remarks


def as_markdown(comparison: Comparison, records: list[Record]) -> str:
    """Every table."""
    parts = [f"# {comparison.name}: pto and ascend", _WHERE[comparison.setting], "### How far each kernel gets"]
    parts += [markdown_table(rows_of(records)), *map(markdown, tables_of(comparison))]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def as_html(comparison: Comparison, records: list[Record]) -> str:
    """One page without other resources: its charts are SVG."""
    charts = [{"title": chart.title, "svg": svg_of(chart)} for chart in charts_of(comparison)]
    return render(
        "compare_report.html.j2",
        name=comparison.name,
        where=_WHERE[comparison.setting],
        cases=len(comparison.rows),
        kernels=len({row.kernel for row in comparison.rows}),
        headings=HEADINGS,
        rows=rows_of(records),
        charts=charts,
        tables=tables_of(comparison),
    )


def as_json(comparison: Comparison) -> str:
    """Everything, for programs."""
    value = {
        "suite": comparison.name,
        "setting": comparison.setting,
        "time": {
            "all": _plain(comparison.all_times()),
            **{grouping: [_plain(found) for found in comparison.time_groups(grouping)] for grouping in GROUPINGS},
        },
        "counts": {
            quantity: {
                "all": _plain(comparison.all_counts(quantity)),
                "kernel": [_plain(found) for found in comparison.count_groups(quantity)],
            }
            for quantity in comparison.quantities()
        },
        "cases": [_case(row) for row in comparison.rows],
    }
    return json.dumps(value, indent=1) + "\n"


def as_csv(comparison: Comparison) -> str:
    """A line for each case."""
    file = io.StringIO()
    per_side = (
        "mean_us",
        "median_us",
        "cv",
        "round_cv",
        "calls",
        "modelled_us",
        "modelled_cycles",
        "modelled_gm_share",
        "modelled_bound_by",
        "failed_stage",
        *QUANTITIES,
    )
    heads = ["case", "kernel", "tokens", "time_ratio", *(f"{side}_{what}" for side in ("ascend", "pto") for what in per_side)]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(heads)
    for row in comparison.rows:
        cells: list[Any] = [row.case, row.kernel, row.tokens, row.time_ratio]
        for side in (row.ascend, row.pto):
            time, error = side.time, side.record.error if side.record is not None else None
            cells += [time.mean, time.median, time.cv, time.round_cv, time.calls] if time is not None else [None] * 5
            cells += _modelled_cells(side)
            cells += [error.stage if error is not None else None, *map(side.count, QUANTITIES)]
        writer.writerow("" if cell is None else cell for cell in cells)
    return file.getvalue()


def _modelled_cells(side: Side) -> list[Any]:
    found = side.modelled
    return [found.microseconds, found.cycles, found.gm_share, found.bound_by] if found is not None else [None] * 4


def _case(row: CaseRow) -> dict[str, Any]:
    return {
        "case": row.case,
        "kernel": row.kernel,
        "direction": row.direction,
        "parameters": row.parameters,
        "tokens": row.tokens,
        "time_ratio": row.time_ratio,
        "ascend": _side(row.ascend),
        "pto": _side(row.pto),
    }


def _side(side: Side) -> dict[str, Any] | None:
    if side.record is None:
        return None
    return {
        "time": dataclasses.asdict(side.time) if side.time is not None else None,
        "rounds": side.record.samples,
        "source": side.record.source,
        "modelled": dataclasses.asdict(side.modelled) if side.modelled is not None else None,
        "counts": side.record.counts,
        "functions": side.record.functions,
        "steps": [dataclasses.asdict(step) for step in side.record.steps],
    }


def _plain(found: GroupStatistics | None) -> dict[str, Any] | None:
    return dataclasses.asdict(found) if found is not None else None
