"""The rules, one file per family. Importing this package fills the tables of :mod:`tilelang_pto.codegen.registry`."""

from __future__ import annotations

from . import control, math, memory, mte, scalar, simd_arith, simd_convert, simd_mask, simd_memory, simt, sync

__all__ = ["control", "math", "memory", "mte", "scalar", "simd_arith", "simd_convert", "simd_mask", "simd_memory", "simt", "sync"]
