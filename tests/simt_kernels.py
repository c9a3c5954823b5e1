"""Runs small SIMT kernels on the simulator, for tests of single rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tir_builder import elementwise

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")
THREADS = 256


def emitted(mod: Any, surface: str) -> str:
    """Checked text of a module."""
    text = emit_module(mod, surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    return text


def mapped(surface: str, inputs: Mapping[str, np.ndarray], output: Any, function: Callable[..., Any]) -> np.ndarray:
    """``out[i] = function(in_0[i], ...)``, one thread per element, for any number of elements.

    Args:
        surface: API to emit for.
        inputs: name to values; the dtypes are those of NumPy and ``ml_dtypes``, whose names are TIR's.
        output: dtype of the result.
        function: makes the TIR expression.
    """
    dtype = np.dtype(output)
    mod = elementwise({name: str(array.dtype) for name, array in inputs.items()}, str(dtype), THREADS, function)
    text = emitted(mod, surface)
    count = len(next(iter(inputs.values())))
    padded = -(-count // THREADS) * THREADS
    columns = [np.concatenate([array, array[:1].repeat(padded - count)]) for array in inputs.values()]
    result = np.zeros(padded, dtype)
    for start in range(0, padded, THREADS):
        piece = np.zeros(THREADS, dtype)
        run(text, "map", *(column[start : start + THREADS].copy() for column in columns), piece)
        result[start : start + THREADS] = piece
    return result[:count]


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance of floats from float64 values, in units in the last place of ``got``'s type.

    Equal infinities and NaN against NaN count as 0, as do results that differ only below the smallest normal number; a result that
    overflowed to infinity counts by its distance from the largest number's successor.
    """
    import ml_dtypes

    info = ml_dtypes.finfo(got.dtype)
    smallest, digits, top = float(info.smallest_normal), int(info.nmant), float(info.max)
    exact = np.asarray(exact, np.float64)
    wide = got.astype(np.float64)
    size = np.clip(np.abs(exact), smallest, top)
    unit = np.exp2(np.floor(np.log2(size)) - digits)
    limit = top + np.exp2(np.floor(np.log2(top)) - digits)
    with np.errstate(invalid="ignore"):
        capped, reference = np.clip(wide, -limit, limit), np.clip(exact, -limit, limit)
        distance = np.abs(capped - reference) / unit
    tiny = (np.abs(wide) <= smallest) & (np.abs(exact) <= smallest)
    distance[tiny] = 0
    both, either = np.isnan(wide) & np.isnan(exact), np.isnan(wide) ^ np.isnan(exact)
    distance[both], distance[either] = 0, np.inf
    return distance
