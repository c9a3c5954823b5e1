"""What a session reports, as objects. The names are those of the JSON text."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tilelang_pto.sim.options import SimOptions

__all__ = [
    "Access",
    "CoreTiming",
    "Event",
    "Finding",
    "KernelReport",
    "LineTiming",
    "MemoryExtent",
    "PipeTiming",
    "Rates",
    "SessionReport",
    "Step",
    "Timeline",
    "Timing",
    "Traffic",
]


@dataclass(frozen=True, slots=True)
class Access:
    """One of the places a finding is about.

    Args:
        line: line of the PTODSL text, from 1.
        op: the PTODSL call.
        pipe: the pipe it ran on.
        block: index of the block.
        core: ``"AIC"``, ``"AIV0"`` or ``"AIV1"``; empty where a block is one core.
        access: ``"read"`` or ``"write"``.
        execution: how often this core had executed the instruction, this time included.
        thread: the thread of a SIMT function.
    """

    line: int
    op: str
    pipe: str
    block: int
    core: str
    access: str
    execution: int
    thread: int | None = None

    @property
    def core_label(self) -> str:
        """``block 3 AIV0``."""
        return core_label(self.block, self.core)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the check found.

    Args:
        kind: ``"race"``, ``"uninitialised"``, ``"flag"``, ``"deadlock"``, ...
        hazard: ``"RAW"``, ``"WAR"`` or ``"WAW"`` of a race.
        message: one sentence.
        missing: the ordering that is missing; empty when none is.
        memory: ``"UB"``, ``"L1"``, ``"L0A"``, ``"L0B"``, ``"L0C"``, ``"BT"``, ``"FB"`` or ``"GM"``; empty when it is about no memory.
        views: names of the buffers the bytes lie in, as far as the text tells.
        tensor: the argument, when the memory is GM.
        begin: first byte.
        end: byte after the last one.
        count: how often the same two lines were found.
        first: the earlier access in program order.
        second: the later one.
    """

    kind: str
    hazard: str | None
    message: str
    missing: str
    memory: str
    views: str
    tensor: str | None
    begin: int
    end: int
    count: int
    first: Access | None
    second: Access | None

    @property
    def title(self) -> str:
        """``race, read after write``."""
        hazards = {"RAW": "read after write", "WAR": "write after read", "WAW": "write after write"}
        return f"{self.kind}, {hazards.get(self.hazard, self.hazard)}" if self.hazard else self.kind

    @property
    def range_label(self) -> str:
        """``UB (view row) bytes 0 to 4095``; empty when the finding is about no memory."""
        if not self.memory:
            return ""
        views = f" (view{'s' if ', ' in self.views else ''} {self.views})" if self.views else ""
        tensor = f" (argument {self.tensor})" if self.tensor else views
        return f"{self.memory}{tensor} bytes {self.begin} to {self.end - 1}" if self.end > self.begin else f"{self.memory}{tensor}"


@dataclass(frozen=True, slots=True)
class PipeTiming:
    """What one pipe of a core did: cycles it was busy, commands it ran."""

    busy: float
    commands: int


@dataclass(frozen=True, slots=True)
class CoreTiming:
    """One core: its cycles and its pipes by name."""

    block: int
    core: str
    cycles: float
    pipes: dict[str, PipeTiming]

    @property
    def core_label(self) -> str:
        """``block 3 AIV0``."""
        return core_label(self.block, self.core)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes a launch moved."""

    gm_read: int
    gm_written: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes of GM and floating-point operations, each per second."""

    gm_bytes_per_second: float
    flops: float


@dataclass(frozen=True, slots=True)
class LineTiming:
    """Cycles a line of the text kept its pipe busy, summed over cores, and how often it ran."""

    line: int
    op: str
    pipe: str
    cycles: float
    executions: int


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the critical path."""

    line: int
    op: str
    pipe: str
    block: int
    core: str
    cycles: float

    @property
    def core_label(self) -> str:
        """``block 3 AIV0``."""
        return core_label(self.block, self.core)


@dataclass(frozen=True, slots=True)
class Timing:
    """Modelled time of a launch."""

    cycles: float
    microseconds: float
    clock_ghz: float
    bound_by: str
    cores: tuple[CoreTiming, ...]
    bytes: Traffic
    achieved: Rates
    peak: Rates
    lines: tuple[LineTiming, ...]
    critical_path: tuple[Step, ...]

    @property
    def slowest(self) -> CoreTiming | None:
        """The core that needs most cycles, the first of several."""
        return max(self.cores, key=lambda core: core.cycles, default=None)


class Event(NamedTuple):
    """A command on a pipe from one cycle to another; ``kind`` is ``"run"`` or ``"wait"``."""

    block: int
    core: str
    pipe: str
    line: int
    op: str
    start: float
    end: float
    kind: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each command ran. ``sampled``: only some cores are here."""

    sampled: bool
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class MemoryExtent:
    """Bytes of a memory that a line touched between two cycles."""

    memory: str
    block: int
    core: str
    begin: int
    end: int
    first_cycle: float
    last_cycle: float
    line: int
    access: str


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One launch.

    Args:
        kernel: name of the kernel.
        grid: number of blocks.
        file: name of the PTODSL text in messages.
        text: the text.
        options: those of the session.
        error: what stopped the launch.
        notes: what else there is to know, such as that a timeline is sampled.
        stats: counts of what was executed.
        findings: what the check found.
        timing: with ``timing=True``.
        timeline: with ``timeline=True``.
        memory: with ``timeline=True``.
    """

    kernel: str
    grid: int
    file: str
    text: str
    options: SimOptions
    error: str | None = None
    notes: tuple[str, ...] = ()
    stats: dict[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    timing: Timing | None = None
    timeline: Timeline | None = None
    memory: tuple[MemoryExtent, ...] | None = None

    def source_line(self, line: int) -> str:
        """Line ``line`` of the text, from 1, without the space around it; empty when there is none."""
        lines = self.text.splitlines()
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class SessionReport:
    """All launches of a session, in their order."""

    kernels: tuple[KernelReport, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of all launches."""
        return tuple(finding for kernel in self.kernels for finding in kernel.findings)

    def raise_if_findings(self) -> None:
        """Raise what the check found, if anything.

        Raises:
            RaceError: the first finding is a race.
            FindingError: it is something else.
        """
        from tilelang_pto.sim.report.finding_text import finding_error

        for kernel in self.kernels:
            if kernel.findings:
                raise finding_error(kernel, more=len(self.findings) - len(kernel.findings))

    def summary(self, *, width: int = 110, ascii_only: bool = False) -> str:
        """Findings, time and where it goes, as plain text of ``width`` columns."""
        from tilelang_pto.sim.report.summary import summary

        return summary(self, width=width, ascii_only=ascii_only)

    def write_page(self, path: str | Path, *, title: str = "Simulator report") -> None:
        """Write a self-contained HTML page.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        from tilelang_pto.sim.report.page import write_page

        write_page(self, path, title=title)

    def write_trace(self, path: str | Path) -> None:
        """Write the timelines as Chrome trace JSON.

        Raises:
            ConfigurationError: no launch has a timeline, or the file cannot be written.
        """
        from tilelang_pto.sim.report.trace import write_trace

        write_trace(self, path)

    def to_json(self) -> str:
        """The report as :meth:`from_json` reads it."""
        return json.dumps([_plain(kernel) for kernel in self.kernels])

    @classmethod
    def from_json(cls, text: str) -> SessionReport:
        """A report from its JSON text.

        Raises:
            ReportError: the text is no report.
        """
        from tilelang_pto.sim.report.reading import read_session

        return read_session(text)


def core_label(block: int, core: str) -> str:
    """``block 3 AIV0``."""
    return f"block {block} {core}" if core else f"block {block}"


def _plain(value: Any) -> Any:
    """Data classes as dictionaries. ``dataclasses.asdict`` copies each event of a timeline."""
    if dataclasses.is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and not isinstance(value, Event):
        return [_plain(item) for item in value]
    return value
