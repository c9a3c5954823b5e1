"""The rules, one file per family. Importing this package fills the tables of :mod:`tilelang_pto.codegen.registry`."""

from __future__ import annotations

from . import (
    control,
    math,
    memory,
    mte,
    scalar,
    simd_arith,
    simd_carry,
    simd_convert,
    simd_fused,
    simd_gather,
    simd_mask,
    simd_memory,
    simd_pairs,
    simd_permute,
    simd_precise,
    simt,
    sync,
)

__all__ = [
    "control",
    "math",
    "memory",
    "mte",
    "scalar",
    "simd_arith",
    "simd_carry",
    "simd_convert",
    "simd_fused",
    "simd_gather",
    "simd_mask",
    "simd_memory",
    "simd_pairs",
    "simd_permute",
    "simd_precise",
    "simt",
    "sync",
]
