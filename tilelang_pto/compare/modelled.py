"""Modelled time of a case, where the simulator has a timing model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilelang_pto.compare.case import Case
from tilelang_pto.errors import ConfigurationError

__all__ = ["ModelledTime", "modelled_time"]


@dataclass(frozen=True, slots=True)
class ModelledTime:
    """Time of one call: all its launches together."""

    cycles: float
    microseconds: float


def modelled_time(case: Case, kernel: Callable[..., Any], seed: int = 0) -> ModelledTime | None:
    """Run ``kernel`` on the simulator with its timing model; None if this simulator has none.

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
    return ModelledTime(sum(timing.cycles for timing in found), sum(timing.microseconds for timing in found))
