"""Which PTODSL calls the simulator can execute."""

from __future__ import annotations

from tilelang_pto import _native
from tilelang_pto.sim.standin import entries

__all__ = ["executed_calls"]


def executed_calls() -> frozenset[str]:
    """Names of the calls that the stand-in ``ptodsl`` records as operations the engine has all of, in either API state."""
    engine = set(_native.sim_ops())
    return frozenset(entry.name for entry in entries() if engine.issuperset(entry.opcodes))
