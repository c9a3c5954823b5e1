"""A timeline as Chrome Trace Event JSON, for Perfetto (ui.perfetto.dev) and chrome://tracing.

A core of a launch is a process, a pipe a thread. Launches follow one another. A wait has an arrow from the one command of another
pipe of its block that ends when it ends, if there is one. Events go to the file one by one: a timeline may be larger than a text should be.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from tilelang_pto.errors import ConfigurationError
from tilelang_pto.sim.report.lanes import Lane, lanes
from tilelang_pto.sim.report.model import Event, KernelReport, SessionReport
from tilelang_pto.version import __version__

__all__ = ["trace_events", "write_trace"]

#: Cycles between two launches, so that they can be told apart.
_GAP_CYCLES = 1000.0


def write_trace(report: SessionReport, path: str | Path) -> None:
    """Write the timelines of all launches into one file.

    Raises:
        ConfigurationError: no launch has a timeline, or the file cannot be written.
    """
    if not any(kernel.timeline for kernel in report.kernels):
        raise ConfigurationError("no launch has a timeline to write", where=(str(path),), advice="timing=True and timeline=True")
    try:
        with open(path, "w", encoding="utf-8") as stream:
            _write(report, stream)
    except OSError as error:
        raise ConfigurationError(f"the trace cannot be written: {error.strerror}", where=(str(path),)) from error


def _write(report: SessionReport, stream: IO[str]) -> None:
    notes = [f"{kernel.kernel}: {note}" for kernel in report.kernels for note in kernel.notes]
    other = {"producer": f"tilelang-pto {__version__}", "time": "modelled", "notes": notes}
    stream.write(f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(other)},\n"traceEvents": [')
    separator = "\n"
    for event in trace_events(report):
        stream.write(separator + json.dumps(event, separators=(",", ":")))
        separator = ",\n"
    stream.write("\n]}\n")


def trace_events(report: SessionReport) -> Iterator[dict[str, Any]]:
    """The events of the file; times are microseconds."""
    writer = _Writer()
    for kernel in report.kernels:
        if kernel.timeline is not None and kernel.timing is not None:
            yield from writer.launch(kernel)


class _Writer:
    def __init__(self) -> None:
        self._process = 0
        self._arrow = 0
        self._threads: dict[tuple[int, str, str], tuple[int, int]] = {}  # of the launch at hand
        self._start = 0.0  # of the launch, in microseconds

    def launch(self, kernel: KernelReport) -> Iterator[dict[str, Any]]:
        assert kernel.timeline is not None and kernel.timing is not None
        scale = 1e-3 / kernel.timing.clock_ghz
        for _, group in groupby(lanes(kernel.timeline.events), key=lambda lane: lane.block):
            rows = list(group)
            for _, core_group in groupby(rows, key=lambda lane: lane.core):
                yield from self._core(kernel, list(core_group), scale)
            yield from self._arrows(rows, scale)
        self._start += (kernel.timing.cycles + _GAP_CYCLES) * scale

    def _core(self, kernel: KernelReport, rows: list[Lane], scale: float) -> Iterator[dict[str, Any]]:
        self._process += 1
        process = self._process
        yield _named("process_name", process, 0, name=f"{kernel.kernel} {rows[0].core_label}")
        yield _named("process_sort_index", process, 0, sort_index=process)
        for thread, lane in enumerate(rows):
            self._threads[lane.block, lane.core, lane.label] = process, thread
            yield _named("thread_name", process, thread, name=lane.label)
            yield _named("thread_sort_index", process, thread, sort_index=thread)
            for event in lane.events:
                yield self._complete(kernel, event, process, thread, scale)
        yield from self._busy(process, rows, scale)

    def _time(self, cycles: float, scale: float) -> float:
        return round(self._start + cycles * scale, 6)

    def _complete(self, kernel: KernelReport, event: Event, process: int, thread: int, scale: float) -> dict[str, Any]:
        start = self._time(event.start, scale)
        return {
            "name": event.op,
            "cat": event.kind,
            "ph": "X",
            "ts": start,
            "dur": round(self._time(event.end, scale) - start, 6),
            "pid": process,
            "tid": thread,
            "args": {
                "line": f"{kernel.file}:{event.line}",
                "source": kernel.source_line(event.line),
                "cycles": round(event.end - event.start, 3),
                "start cycle": round(event.start, 3),
            },
        }

    def _busy(self, process: int, rows: list[Lane], scale: float) -> Iterator[dict[str, Any]]:
        """A counter of the pipes of a core that run at the same time."""
        changes: dict[float, int] = defaultdict(int)
        for event in (event for lane in rows for event in lane.events):
            if event.kind == "run" and event.end > event.start:
                changes[event.start] += 1
                changes[event.end] -= 1
        running = 0
        for cycle in sorted(changes):
            running += changes[cycle]
            if changes[cycle]:
                time = self._time(cycle, scale)
                yield {"name": "busy pipes", "ph": "C", "ts": time, "pid": process, "tid": 0, "args": {"pipes": running}}

    def _arrows(self, rows: list[Lane], scale: float) -> Iterator[dict[str, Any]]:
        """From commands to the waits that end with them."""
        ends_at: dict[float, list[tuple[Lane, Event]]] = defaultdict(list)
        for lane in rows:
            for event in lane.events:
                if event.kind == "run":
                    ends_at[event.end].append((lane, event))
        for lane in rows:
            for wait in lane.events:
                ends = [found for found in ends_at.get(wait.end, ()) if (found[0].core, found[0].pipe) != (lane.core, lane.pipe)]
                if wait.kind != "wait" or len(ends) != 1:  # of several, any could be the one
                    continue
                self._arrow += 1
                source, event = ends[0]
                yield self._end(
                    self._threads[source.block, source.core, source.label], "s", self._time((event.start + event.end) / 2, scale)
                )
                yield self._end(self._threads[lane.block, lane.core, lane.label], "f", self._time(wait.end, scale))

    def _end(self, place: tuple[int, int], phase: str, time: float) -> dict[str, Any]:
        """One end of an arrow; a viewer binds it to the slice that encloses its time."""
        process, thread = place
        event = {"name": "end of the wait", "cat": "wait", "ph": phase, "id": self._arrow, "pid": process, "tid": thread, "ts": time}
        return {**event, "bp": "e"} if phase == "f" else event


def _named(kind: str, process: int, thread: int, **arguments: Any) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": arguments}
