"""The simulator: records PTODSL module texts, runs them on the CPU, and says what it found."""

from __future__ import annotations

from tilelang_pto.sim.options import SimOptions
from tilelang_pto.sim.program import Program
from tilelang_pto.sim.record import record_module
from tilelang_pto.sim.report import SessionReport
from tilelang_pto.sim.run import run
from tilelang_pto.sim.session import Session, session

__all__ = ["Program", "Session", "SessionReport", "SimOptions", "record_module", "run", "session"]
