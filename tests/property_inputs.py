"""Arrays for property tests: random bits, edge values, small numbers; and one profile for all of them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from engine_harness import NUMPY
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

FLOATS = ("f32", "f16", "bf16")
INTEGERS = ("i8", "ui8", "i16", "ui16", "i32", "ui32")
FLAVOURS = ("bits", "edges", "small")


def examples(count: int) -> settings:
    """The same examples in every run, without a limit on their time."""
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def edges(dtype: str) -> np.ndarray:
    """Values at which arithmetic of the type has corners."""
    kind = np.dtype(NUMPY[dtype])
    if dtype not in FLOATS:
        info = np.iinfo(kind)
        return np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 2, info.max // 2 + 1], kind)
    info = ml_dtypes.finfo(kind)
    tiny, top = float(info.smallest_subnormal), float(info.max)
    low = float(info.smallest_normal)
    values = [0.0, 1.0, 1.5, 2.0, 3.0, 1 + float(info.eps), tiny, 3 * tiny, low, low - tiny, top, top / 2, np.inf]
    return np.array([*values, *(-v for v in values), np.nan], np.float64).astype(kind)


def made(dtype: str, count: int, seed: int, flavour: str) -> np.ndarray:
    """``count`` numbers of a flavour: any bits, edge values, or small numbers of both signs (many of them equal)."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(NUMPY[dtype])
    if flavour == "bits":
        return rng.integers(0, 256, count * kind.itemsize, dtype=np.uint8).view(kind)
    if flavour == "edges":
        return rng.choice(edges(dtype), count)
    if dtype in FLOATS:
        return (rng.integers(-20, 21, count) / 4).astype(kind)
    return rng.integers(0 if kind.kind == "u" else -9, 10, count).astype(kind)


def arrays(dtype: str, count: int) -> st.SearchStrategy[np.ndarray]:
    """Arrays of all flavours."""
    return st.builds(made, st.just(dtype), st.just(count), st.integers(0, 2**32 - 1), st.sampled_from(FLAVOURS))


def masks(count: int) -> st.SearchStrategy[np.ndarray]:
    """Booleans: all, none, or some lanes."""
    return st.builds(
        lambda seed, density: np.random.default_rng(seed).random(count) < density,
        st.integers(0, 2**32 - 1),
        st.sampled_from([0, 0.1, 0.5, 1]),
    )


def agree(found: np.ndarray, expected: np.ndarray, what: str = "") -> None:
    """Equal bit for bit, or both NaN."""
    unsigned = np.dtype(f"u{found.dtype.itemsize}")
    expected = np.ascontiguousarray(expected, found.dtype)
    equal = found.view(unsigned) == expected.view(unsigned)
    if found.dtype.kind not in "iu":
        equal |= (found != found) & (expected != expected)
    at = np.flatnonzero(~equal)
    assert at.size == 0, f"{what}: lanes {at[:4].tolist()} are {found[at[:4]].tolist()}, not {expected[at[:4]].tolist()}"
