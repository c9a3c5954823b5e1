"""Modelled time of a case, where the simulator has a timing model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tilelang_pto.compare.case import Case
from tilelang_pto.errors import ConfigurationError
from tilelang_pto.sim.report.model import Timing

__all__ = ["ModelledTime", "modelled_time"]

_VECTOR_CORES = ("AIV0", "AIV1")


@dataclass(frozen=True, slots=True)
class ModelledTime:
    """Time of one call: all its launches together.

    Attributes:
        cycles: of the chip's clock.
        microseconds: the same time.
        gm_share: bytes of GM moved, as a share of what its bandwidth allows in this time.
        busy: by pipe the share of the time for which it is busy on the core where it is busy longest; ``MTE2``, or ``AIC MTE2`` and
            ``AIV MTE2`` where a block has several cores.
        bound_by: what the longest launch is bound by, in a sentence.
    """

    cycles: float
    microseconds: float
    gm_share: float
    busy: dict[str, float]
    bound_by: str


def modelled_time(case: Case, kernel: Callable[..., Any], seed: int = 0) -> ModelledTime | None:
    """Run ``kernel`` on the simulator with its timing model and nothing else; None if this simulator has none.

    Args:
        case: makes the arguments.
        kernel: the case's kernel, compiled for the simulator.
        seed: of the arguments.
    """
    from tilelang_pto.sim import session

    arguments = case.inputs(seed)
    try:
        with session(check="off", race="report", timing=True) as timed:
            kernel(*arguments)
    except ConfigurationError:  # the native library has no sessions, or no timing
        return None
    timings = [launch.timing for launch in timed.report.kernels]
    found = [timing for timing in timings if timing is not None]
    if not found or len(found) < len(timings):
        return None
    return _together(found)


def _together(timings: list[Timing]) -> ModelledTime:
    cycles = sum(timing.cycles for timing in timings)
    microseconds = sum(timing.microseconds for timing in timings)
    busy: dict[str, float] = {}
    for timing in timings:
        for pipe, longest in _longest(timing):
            busy[pipe] = busy.get(pipe, 0.0) + longest
    possible = sum(timing.peak.gm_bytes_per_second * timing.microseconds for timing in timings) / 1e6
    moved = sum(timing.bytes.gm_read + timing.bytes.gm_written for timing in timings)
    return ModelledTime(
        cycles=cycles,
        microseconds=microseconds,
        gm_share=moved / possible if possible else 0.0,
        busy={pipe: longest / cycles if cycles else 0.0 for pipe, longest in busy.items()},
        bound_by=max(timings, key=lambda timing: timing.cycles).bound_by,
    )


def _longest(timing: Timing) -> Iterable[tuple[str, float]]:
    """Pipes, and the cycles of the core of each kind that kept them busy longest."""
    longest: dict[str, float] = {}
    for core in timing.cores:
        kind = "AIV" if core.core in _VECTOR_CORES else core.core
        for pipe, found in core.pipes.items():
            name = f"{kind} {pipe}".strip()
            longest[name] = max(longest.get(name, 0.0), found.busy)
    return longest.items()
