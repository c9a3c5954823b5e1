"""A stand-in for the package ``ptodsl`` that records what a module text does.

One file per family of calls; every call is registered in :mod:`registry`.
"""

from __future__ import annotations

from tilelang_pto.sim.standin import (
    atomic,
    control,
    cube_copy,
    debug,
    fixpipe,
    kinds,
    mad,
    memory,
    mte,
    scalar,
    simd_arith,
    simd_convert,
    simd_mask,
    simd_memory,
    simt,
    sync,
)
from tilelang_pto.sim.standin.registry import AUGUST, SEPTEMBER, SURFACES, entries, names
from tilelang_pto.sim.standin.registry import opcodes as recorded_opcodes

__all__ = ["AUGUST", "SEPTEMBER", "SURFACES", "entries", "names", "recorded_opcodes"]

_FAMILIES = (
    atomic, control, cube_copy, debug, fixpipe, kinds, mad, memory, mte, scalar, simd_arith, simd_convert, simd_mask, simd_memory, simt,
    sync,
)  # fmt: skip
