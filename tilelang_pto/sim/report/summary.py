"""A session in plain text, for terminals and logs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tilelang_pto.sim.report import numbers
from tilelang_pto.sim.report.finding_text import finding_text
from tilelang_pto.sim.report.groups import KernelGroup, group
from tilelang_pto.sim.report.lanes import pipe_rank
from tilelang_pto.sim.report.model import KernelReport, SessionReport, Timing

__all__ = ["summary"]

_BAR = 24
_ROWS = 8
_LABEL = 11


def summary(report: SessionReport, *, width: int = 110, ascii_only: bool = False) -> str:
    """Findings, time, and where the time goes, kernel by kernel.

    Args:
        report: the session.
        width: columns; source lines are cut to fit.
        ascii_only: bars of ``#`` instead of block characters.
    """
    if not report.kernels:
        return "no kernel was launched\n"
    full, empty = ("#", ".") if ascii_only else ("█", "░")
    writer = _Writer(width, full, empty)
    parts = ["\n".join(writer.kernel(found)) for found in group(report.kernels)]
    launches, findings = len(report.kernels), sum(len(found.findings) for found in group(report.kernels))
    failed = sum(kernel.error is not None for kernel in report.kernels)
    total = f"{numbers.plural(launches, 'launch', 'launches')}, {numbers.plural(findings, 'finding')}"
    if failed:
        total += f", {failed} stopped by an error"
    return "\n\n".join(parts) + f"\n\n{total}\n"


class _Writer:
    def __init__(self, width: int, full: str, empty: str) -> None:
        self._width = max(width, 60)
        self._full, self._empty = full, empty

    def kernel(self, found: KernelGroup) -> Iterator[str]:
        first = found.first
        grids = sorted({launch.grid for launch in found.launches})
        blocks = numbers.plural(grids[0], "block") if len(grids) == 1 else f"{grids[0]} to {grids[-1]} blocks"
        launches = f"{len(found.launches)} launches, " if len(found.launches) > 1 else ""
        options = first.options
        checks = f"check {options.check}, policy {options.policy}"
        yield f"{first.kernel}  ({launches}{blocks}; {checks})"
        for error in dict.fromkeys(launch.error for launch in found.launches if launch.error):
            yield from self._row("stopped", error)
        if options.check != "off" or found.findings:
            yield from self._findings(found)
        slowest = found.slowest
        if slowest is not None and slowest.timing is not None:
            yield from self._timing(found, slowest, slowest.timing)
        for note in dict.fromkeys(note for launch in found.launches for note in launch.notes):
            yield from self._row("note", note)

    def _row(self, label: str, text: str) -> Iterator[str]:
        lines = [piece for line in text.splitlines() for piece in textwrap.wrap(line, self._width - _LABEL - 2)] or [""]
        yield f"  {label:<{_LABEL}}{lines[0]}"
        for line in lines[1:]:
            yield f"  {'':<{_LABEL}}{line}"

    def _findings(self, found: KernelGroup) -> Iterator[str]:
        findings = found.findings
        yield f"  {'findings':<{_LABEL}}{len(findings) or 'none'}"
        for finding in findings:
            yield textwrap.indent(finding_text(found.first, finding), "    ")

    def _timing(self, found: KernelGroup, kernel: KernelReport, timing: Timing) -> Iterator[str]:
        time = f"{numbers.count(timing.cycles)} cycles, {numbers.time(timing.microseconds)} at {timing.clock_ghz:g} GHz"
        if len(found.launches) > 1:
            total = sum(launch.timing.microseconds for launch in found.launches if launch.timing is not None)
            time += f" (the slowest launch; all of them: {numbers.time(total)})"
        yield from self._row("time", time)
        yield from self._row("bound by", timing.bound_by)
        moved, done, peak = timing.bytes, timing.achieved, timing.peak
        bandwidth = f"{numbers.rate(done.gm_bytes_per_second, 'B')}, peak {numbers.rate(peak.gm_bytes_per_second, 'B')}"
        yield from self._share("GM", done.gm_bytes_per_second, peak.gm_bytes_per_second, bandwidth)
        yield f"  {'':<{_LABEL}}{numbers.size(moved.gm_read)} read, {numbers.size(moved.gm_written)} written"
        if done.flops:
            flops = f"{numbers.rate(done.flops, 'FLOP')}, peak {numbers.rate(peak.flops, 'FLOP')}"
            yield from self._share("FLOP", done.flops, peak.flops, flops)
        yield from self._pipes(timing)
        path = [(step.cycles, step.line, step.pipe, step.op) for step in timing.critical_path]
        yield from self._lines("critical path: lines that the end of the kernel waited for", kernel, _merged(path), timing.cycles)
        busy = [(line.cycles, line.line, line.pipe, line.op) for line in timing.lines]
        yield from self._lines("busiest lines: cycles of all cores", kernel, _merged(busy), sum(cycles for cycles, *_ in busy))

    def _share(self, label: str, part: float, whole: float, text: str) -> Iterator[str]:
        yield f"  {label:<{_LABEL}}{self._bar(part, whole)} {numbers.percent(part, whole):>7}  {text}"

    def _bar(self, part: float, whole: float) -> str:
        filled = round(_BAR * min(max(part / whole, 0.0), 1.0)) if whole else 0
        return self._full * filled + self._empty * (_BAR - filled)

    def _pipes(self, timing: Timing) -> Iterator[str]:
        core = timing.slowest
        if core is None:
            return
        same = sum(other.cycles == core.cycles for other in timing.cores)
        others = f", as slow as {same - 1} more" if same > 1 else ""
        yield f"  pipes of the slowest of {numbers.plural(len(timing.cores), 'core')} ({core.core_label}{others}), share of its time busy"
        for name in sorted(core.pipes, key=pipe_rank):
            pipe = core.pipes[name]
            commands = numbers.plural(pipe.commands, "command")
            yield f"    {name:<{_LABEL - 2}}{self._bar(pipe.busy, core.cycles)} {numbers.percent(pipe.busy, core.cycles):>7}  {commands}"

    def _lines(self, title: str, kernel: KernelReport, rows: Sequence[tuple[float, int, str, str]], whole: float) -> Iterator[str]:
        if not rows:
            return
        yield f"  {title}"
        for cycles, line, pipe, op in rows[:_ROWS]:
            source = kernel.source_line(line) or op
            start = f"    {numbers.percent(cycles, whole):>7}  {numbers.count(cycles):>10}  {pipe:<5} line {line:<5}"
            yield f"{start} {_cut(source, self._width - len(start) - 1)}"
        if len(rows) > _ROWS:
            rest = sum(cycles for cycles, *_ in rows[_ROWS:])
            yield f"    {numbers.percent(rest, whole):>7}  {numbers.count(rest):>10}  {numbers.plural(len(rows) - _ROWS, 'more line')}"


def _merged(rows: Sequence[tuple[float, int, str, str]]) -> list[tuple[float, int, str, str]]:
    """One row per line and pipe, those with most cycles first."""
    found: dict[tuple[int, str], tuple[float, str]] = {}
    for cycles, line, pipe, op in rows:
        before, name = found.get((line, pipe), (0.0, op))
        found[line, pipe] = before + cycles, name
    rows = [(cycles, line, pipe, op) for (line, pipe), (cycles, op) in found.items() if cycles > 0]
    return sorted(rows, key=lambda row: (-row[0], row[1]))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."
