"""A session as one HTML file that needs nothing else: timeline, hot lines beside the source, memory map, findings."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tilelang_pto.errors import ConfigurationError
from tilelang_pto.runtime.templates import write
from tilelang_pto.sim.report.finding_text import advice, statement
from tilelang_pto.sim.report.lanes import lanes, pipe_rank
from tilelang_pto.sim.report.model import Finding, KernelReport, SessionReport, Timeline
from tilelang_pto.sim.views import ViewTable
from tilelang_pto.version import __version__

__all__ = ["MAX_PAGE_EVENTS", "write_page"]

#: Timeline events and memory extents of all launches together that a page takes: about 40 MB, which browsers still open.
MAX_PAGE_EVENTS = 1_000_000
#: Memories in the order in which they are offered: those whose buffers a program lays out come first.
_MEMORIES = ("UB", "L1", "L0A", "L0B", "L0C", "BT", "FB")
_SCRIPTS = ("dom", "view", "timeline", "memory", "source", "findings", "overview", "main")


def write_page(report: SessionReport, path: str | Path, *, title: str = "Simulator report", max_events: int = MAX_PAGE_EVENTS) -> None:
    """Write the page.

    Args:
        report: the session.
        path: the file.
        title: heading of the page.
        max_events: launches after those that have as many timeline events together are shown without their timeline, and say so.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    scripts = [f"report_{name}.js" for name in _SCRIPTS]
    try:
        with open(path, "w", encoding="utf-8") as stream:
            write(stream, "report.html.j2", title=title, version=__version__, scripts=scripts, data=_pieces(report, max_events))
    except OSError as error:
        raise ConfigurationError(f"the report cannot be written: {error.strerror}", where=(str(path),)) from error


def _pieces(report: SessionReport, max_events: int) -> Iterator[Markup]:
    """The data as JSON, a launch at a time."""
    sources: dict[tuple[str, str], int] = {}
    yield Markup('{"launches": [')
    left = max_events
    for number, kernel in enumerate(report.kernels):
        source = sources.setdefault((kernel.file, kernel.text), len(sources))
        size = (len(kernel.timeline.events) if kernel.timeline else 0) + len(kernel.memory or ())
        left -= size
        yield Markup("," if number else "") + _json(_launch(kernel, source, drawn=left >= 0))
        left += size if left < 0 else 0
    yield Markup('], "sources": ')
    yield _json([{"file": file, "lines": text.splitlines()} for file, text in sources])
    yield Markup("}")


def _json(value: Any) -> Markup:
    """JSON that can stand inside a script element."""
    return Markup(json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"))


def _launch(kernel: KernelReport, source: int, *, drawn: bool) -> dict[str, Any]:
    plain = json.loads(SessionReport((dataclasses.replace(kernel, timeline=None, memory=None),)).to_json())[0]
    del plain["text"]
    notes = list(kernel.notes)
    if not drawn:
        notes.append("the timeline is left out, the page would be too large; a trace file has it")
    for core in plain["timing"]["cores"] if kernel.timing else ():
        core["pipes"] = dict(sorted(core["pipes"].items(), key=lambda pipe: pipe_rank(pipe[0])))
    for finding, row in zip(kernel.findings, plain["findings"], strict=True):
        row.update(_finding(finding))
    return {
        **plain,
        "source": source,
        "notes": notes,
        "timeline": _timeline(kernel.timeline) if kernel.timeline and drawn else None,
        "memory": _memory(kernel) if kernel.memory and drawn else None,
    }


def _finding(finding: Finding) -> dict[str, str]:
    return {"title": finding.title, "statement": statement(finding), "range": finding.range_label, "advice": advice(finding)}


def _timeline(timeline: Timeline) -> dict[str, Any]:
    ops: dict[str, int] = {}
    rows = []
    for lane in lanes(timeline.events):
        events: list[float] = []
        for event in lane.events:
            events += (_short(event.start), _short(event.end), event.line, ops.setdefault(event.op, len(ops)), int(event.kind == "wait"))
        rows.append({"block": lane.block, "core": lane.core, "pipe": lane.pipe, "label": lane.label, "events": events})
    return {"sampled": timeline.sampled, "ops": list(ops), "lanes": rows}


def _memory(kernel: KernelReport) -> list[dict[str, Any]]:
    maps: dict[tuple[int, str, str], list[float]] = {}
    for item in kernel.memory or ():
        extents = maps.setdefault((item.block, item.core, item.memory), [])
        cycles = (_short(item.first_cycle), _short(item.last_cycle))
        extents += (item.begin, item.end, *cycles, item.line, int(item.access == "write"))
    views = ViewTable(kernel.text).of_name(kernel.kernel)
    rows = [
        {
            "block": block,
            "core": core,
            "memory": memory,
            "extents": extents,
            "views": [{"name": view.name, "begin": view.begin, "end": view.end} for view in views if view.memory == memory],
        }
        for (block, core, memory), extents in maps.items()
    ]
    return sorted(rows, key=lambda row: (row["block"], _memory_rank(row["memory"]), row["core"]))


def _memory_rank(name: str) -> int:
    return _MEMORIES.index(name) if name in _MEMORIES else len(_MEMORIES)


def _short(cycles: float) -> float:
    """Tenths of a cycle are below what can be seen."""
    rounded = round(cycles, 1)
    return int(rounded) if rounded == int(rounded) else rounded
