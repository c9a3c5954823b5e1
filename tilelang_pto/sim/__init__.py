"""The simulator: records PTODSL module texts and runs them on the CPU."""

from __future__ import annotations

from tilelang_pto.sim.program import Program
from tilelang_pto.sim.record import record_module
from tilelang_pto.sim.run import run

__all__ = ["Program", "record_module", "run"]
