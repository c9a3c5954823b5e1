"""What a simulation session reports: objects, text, traces and pages."""

from __future__ import annotations

from tilelang_pto.sim.report.model import (
    Access,
    CoreTiming,
    Event,
    Finding,
    KernelReport,
    LineTiming,
    MemoryExtent,
    PipeTiming,
    Rates,
    SessionReport,
    Step,
    Timeline,
    Timing,
    Traffic,
)

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
