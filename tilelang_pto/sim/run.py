"""Run a kernel of a module text on the native engine."""

from __future__ import annotations

from typing import Any

from tilelang_pto.sim.program import Program
from tilelang_pto.sim.record import record_module

__all__ = ["run"]


def run(text_or_program: str | Program, kernel: str, *args: Any, grid: int = 1, host_threads: int = 0) -> Any:
    """Run one kernel over ``grid`` blocks."""
    program = record_module(text_or_program) if isinstance(text_or_program, str) else text_or_program
    raise NotImplementedError(program.function(kernel).name)
