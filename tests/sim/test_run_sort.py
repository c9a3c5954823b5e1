"""Sorting helpers: records of a score and an index."""

from __future__ import annotations

import numpy as np
import pytest
from engine_harness import NUMPY, in_ub, same

from tilelang_pto.errors import SimulationError

RNG = np.random.default_rng(5)
SCALAR = "if True:"


def key(scores: np.ndarray) -> np.ndarray:
    """Total order of the bit patterns, as signed integers."""
    raw = scores.view(f"i{scores.itemsize}").astype(np.int64)
    return np.where(raw < 0, -(raw & (2 ** (8 * scores.itemsize - 1) - 1)) - 1, raw)


def records(scores: np.ndarray, indices: np.ndarray) -> np.ndarray:
    out = np.zeros((len(scores), 2), np.uint32)
    out[:, 0] = scores.view(f"u{scores.itemsize}")
    out[:, 1] = indices
    return out


def special(dtype: str, count: int) -> np.ndarray:
    values = RNG.standard_normal(count).astype(NUMPY[dtype])
    values[:8] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.0, 1.0]
    values[8] = -values[0]
    return values


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_sorted_groups(dtype: str) -> None:
    scores, indices = special(dtype, 96), RNG.permutation(96).astype(np.uint32)
    found = in_ub("pto.vbitsort(d, s, i, 3)", {"s": (dtype, scores), "i": ("ui32", indices)}, {"d": ("ui32", 192)}, SCALAR)["d"]
    expected = []
    for g in range(3):
        part = slice(32 * g, 32 * g + 32)
        order = np.argsort(-key(scores[part]), kind="stable")
        expected.append(records(scores[part][order], indices[part][order]))
    same(found.reshape(96, 2), np.concatenate(expected))


def merged(lists: list[np.ndarray], dtype: str, stop: bool) -> np.ndarray:
    heads, out = [0] * len(lists), []
    while True:
        live = [i for i, rows in enumerate(lists) if heads[i] < len(rows)]
        if not live or (stop and len(live) < len(lists)):
            return np.array(out, np.uint32).reshape(-1, 2)
        width = np.dtype(NUMPY[dtype]).itemsize
        value = {i: key(lists[i][heads[i], :1].astype(f"u{width}").view(NUMPY[dtype]))[0] for i in live}
        best = max(live, key=lambda i: (value[i], -i))
        out.append(lists[best][heads[best]])
        heads[best] += 1


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize(("lengths", "stop"), [((16, 8, 24, 12), False), ((16, 8, 24, 12), True), ((5, 7), False), ((4, 0, 9), False)])
def test_merge(dtype: str, lengths: tuple[int, ...], stop: bool) -> None:
    rows, data = [], np.zeros((4, 32, 2), np.uint32)
    for k, n in enumerate(lengths):
        scores = special(dtype, max(n, 9))[:n]
        scores = scores[np.argsort(-key(scores), kind="stable")] if n else scores
        rows.append(records(scores, np.arange(n) + 100 * k))
        data[k, :n] = rows[k]
    count = sum(n << (16 * k) for k, n in enumerate(lengths))
    config = 1 | {2: 0x3, 3: 0x7, 4: 0xF}[len(lengths)] << 8 | stop << 12
    body = f"""\
    p = [pto.addptr(pto.castptr(s, pto.ptr(pto.{dtype}, "ub")), {256 * (2 if dtype == "f16" else 1) // 4} * k) for k in range(4)]
    pto.vmrgsort4(d, *p, {count}, {config})
    """
    found = in_ub(body, {"s": ("ui32", data.ravel())}, {"d": ("ui32", 256)}, SCALAR)["d"].reshape(-1, 2)
    expected = merged(rows, dtype, stop)
    same(found[: len(expected)], expected)
    assert not found[len(expected) :].any()


def test_repeated_merge() -> None:
    scores = -np.sort(-RNG.standard_normal((2, 4, 8)).astype(np.float32), axis=2)
    data = records(scores.ravel(), np.arange(64))
    body = f"""\
    p = pto.castptr(s, pto.ptr(pto.f32, "ub"))
    pto.vmrgsort4(d, *(pto.addptr(p, 16 * k) for k in range(4)), {8 * 0x0001000100010001}, {2 | 0xF << 8})
    """
    found = in_ub(body, {"s": ("ui32", data.ravel())}, {"d": ("ui32", 128)}, SCALAR)["d"].reshape(2, 32, 2)
    for r in range(2):
        same(found[r], merged(list(data.reshape(2, 4, 8, 2)[r]), "f32", False))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pto.vbitsort(d, s, i, 256)", "repeat is 256"),
        ("pto.vbitsort(pto.addptr(d, 1), s, i, 1)", "not a multiple of 32"),
        ("pto.vbitsort(d, pto.addptr(s, 65536 - 24), i, 1)", "out of bounds"),
        ("pto.vmrgsort4(d, s, s, s, s, 1, 0x501)", "the mask of valid lists is 5"),
        ("pto.vmrgsort4(d, s, s, s, s, 1, 0x302)", "several repeats need four lists"),
    ],
)
def test_checks(body: str, message: str) -> None:
    with pytest.raises(SimulationError) as info:
        in_ub(body, {"s": ("f32", np.zeros(64)), "i": ("ui32", np.zeros(64)), "d": ("ui32", np.zeros(128))}, {}, SCALAR)
    assert message in info.value.what
    assert any("pipe V" in place for place in info.value.where)
