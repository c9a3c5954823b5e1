"""Unaligned load and store streams, and masks in memory."""

from __future__ import annotations

import numpy as np
import pytest
from engine_harness import NUMPY, bits, in_ub, lanes, same

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import session

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("dtype", ["i8", "f16", "i32"])
@pytest.mark.parametrize("start", [0, 1, 5, 31])
def test_a_load_stream_reads_at_any_element(dtype: str, start: int) -> None:
    n = lanes(dtype)
    data = RNG.integers(-100, 100, 4 * n).astype(NUMPY[dtype])
    found = in_ub(
        f"""\
        m = pto.pset_b{bits(dtype)}("ALL")
        p = pto.addptr(a, {start})
        s = pto.vldas(p)
        for k in range(3):
            v, s = pto.vldus(pto.addptr(p, k * {n}), s)
            pto.vsts(v, c, k * {n}, m, dist="NORM_B{bits(dtype)}")
        """,
        {"a": (dtype, data)},
        {"c": (dtype, 3 * n)},
    )["c"]
    same(found, data[start : start + 3 * n])


@pytest.mark.parametrize("dtype", ["ui8", "bf16", "i32"])
@pytest.mark.parametrize("start", [0, 1, 7, 40])
def test_a_store_stream_leaves_its_neighbours_alone(dtype: str, start: int) -> None:
    n, counts = lanes(dtype), (3, 0, 10, 1, 60)
    data = RNG.integers(1, 100, 5 * n).astype(NUMPY[dtype])
    lines = [f"p, s = pto.addptr(c, {start}), pto.init_align()"]
    for k, count in enumerate(counts):
        lines += [f"s = pto.vstus(s, {count}, pto.vlds(a, {k * n}), p)", f"p = pto.addptr(p, {count})"]
    lines.append("pto.vstas(s, p, 0)")
    found = in_ub("\n".join(lines), {"a": (dtype, data)}, {"c": (dtype, 200)})["c"]
    expected = np.zeros(200, NUMPY[dtype])
    rows = [data[k * n : k * n + count] for k, count in enumerate(counts)]
    expected[start : start + sum(counts)] = np.concatenate(rows)
    same(found, expected)


def test_bytes_are_not_visible_before_the_flush() -> None:
    found = in_ub(
        """\
        m = pto.pset_b32("ALL")
        s = pto.vstus(pto.init_align(), 11, pto.vlds(a, 0), c)
        pto.mem_bar("VST_VLD")
        pto.vsts(pto.vlds(c, 0), d, 0, m)
        pto.mem_bar("VLD_VST")
        pto.vstas(s, c, 11)
        """,
        {"a": ("i32", np.arange(1, 65))},
        {"c": ("i32", 64), "d": ("i32", 64)},
    )
    i = np.arange(64)
    same(found["c"], np.where(i < 11, i + 1, 0))
    same(found["d"], np.where(i < 8, i + 1, 0))


@pytest.mark.parametrize("dtype", ["f32", "i16", "ui8"])
def test_squeezed_lanes_make_a_stream(dtype: str) -> None:
    n = lanes(dtype)
    data = RNG.integers(0, 100, 3 * n).astype(NUMPY[dtype])
    found = in_ub(
        f"""\
        m = pto.pset_b{bits(dtype)}("ALL")
        s = pto.init_align()
        for k in range(3):
            v = pto.vlds(a, k * {n})
            s = pto.vstur(s, pto.vsqz(v, pto.vcmps(v, 50, m, "lt")), c, "POST_UPDATE")
        pto.vstar(s, c)
        """,
        {"a": (dtype, data)},
        {"c": (dtype, 3 * n)},
    )["c"]
    kept = data[data < 50]
    same(found, np.concatenate((kept, np.zeros(3 * n - len(kept), NUMPY[dtype]))))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("v, s = pto.vldus(pto.addptr(a, 9), pto.vldas(a))", "holds the block at address 0 and the load begins at address 36"),
        ("s = pto.vldas(a)\npto.vsts(pto.vbr(pto.const(5, dtype=pto.i32)), a, 0, m)\nv, s = pto.vldus(a, s)", "the state is stale"),
        ("v, s = pto.vldus(a, pto.init_align())", "belongs to a store stream"),
        ("s = pto.vstus(pto.vldas(a), 4, pto.vlds(a, 0), a)", "belongs to a load stream"),
        ("s = pto.vstus(pto.init_align(), 3, pto.vlds(a, 0), a)\ns = pto.vstus(s, 3, pto.vlds(a, 0), a)", "goes on at address 12"),
        ("s = pto.vstus(pto.init_align(), 3, pto.vlds(a, 0), a)\npto.vstas(s, a, 4)", "ends at address 12 and is flushed at address 16"),
        ("s = pto.vstus(pto.init_align(), 3, pto.vlds(a, 0), a)", "never flushed"),
        ("s = pto.vstus(pto.init_align(), 65, pto.vlds(a, 0), a)", "the count is 65, a register has 64 elements"),
        ("s = pto.vldas(pto.addptr(a, 65536))", "out of bounds"),
        ("s = pto.vstus(pto.init_align(), 9, pto.vlds(a, 0), pto.addptr(a, 65536 - 8))", "out of bounds: 36 bytes"),
    ],
)
def test_checks(body: str, message: str) -> None:
    with pytest.raises(SimulationError) as info:
        in_ub(f'm = pto.pset_b32("ALL")\n{body}', {"a": ("i32", np.arange(128))}, {})
    assert message in info.value.what
    assert any(place.startswith("k.py:") for place in info.value.where)


def test_a_load_stream_may_end_with_the_memory() -> None:
    body = "p = pto.addptr(a, 65536 - 64)\nv, s = pto.vldus(p, pto.vldas(p))\npto.vsts(v, c, 0, pto.pset_b32('ALL'))"
    with session(check="off"):  # nothing has written there
        assert (in_ub(body, {"a": ("i32", np.arange(64))}, {"c": ("i32", 64)})["c"] == -1).all()


# -- masks in memory: images as rows of bits ---------------------------------------------------------------------------


def image(active: np.ndarray) -> np.ndarray:
    return np.packbits(active.astype(np.uint8), bitorder="little")


def test_masks_are_loaded() -> None:
    raw = RNG.integers(0, 256, 96, dtype=np.uint8)
    bit = np.unpackbits(raw, bitorder="little")
    body = """\
    m, one, zero = pto.pset_b8("ALL"), pto.vbr(pto.const(1, dtype=pto.ui8)), pto.vbr(pto.const(0, dtype=pto.ui8))
    for k, p in enumerate((pto.plds(a, 32), pto.plds(a, 16, dist="US"), pto.plds(a, 32, dist="DS"))):
        pto.vsts(pto.vsel(one, zero, p), c, k * 256, m, dist="NORM_B8")
    """
    found = in_ub(body, {"a": ("ui8", raw)}, {"c": ("ui8", 768)})["c"].reshape(3, 256)
    same(found[0], bit[256:512])
    same(found[1], np.repeat(bit[128:256], 2))
    same(found[2], bit[256:768:2])


def test_masks_are_stored() -> None:
    a = RNG.integers(-5, 5, 64)
    body = """\
    p = pto.vcmps(pto.vlds(a, 0), 0, pto.pset_b32("ALL"), "lt")
    pto.psts(p, c, 0)
    pto.psts(p, c, 32, dist="PK")
    """
    found = in_ub(body, {"a": ("i32", a)}, {"c": ("ui32", 16)})["c"].view(np.uint8)
    active = np.zeros((64, 4), np.uint8)
    active[:, 0] = a < 0
    same(found[:32], image(active.ravel()))
    same(found[32:48], image(active.ravel()[::2]))
    assert not found[48:].any()


def test_a_stream_of_masks() -> None:
    a = RNG.integers(-5, 5, 5 * 64)
    body = """\
    m = pto.pset_b32("ALL")
    s, p = pto.init_align(), c
    for k in range(5):
        s, p = pto.pstu(s, pto.vcmps(pto.vlds(a, k * 64), 0, m, "lt"), p)
    pto.vstas(s, p, 0)
    s, p = pto.pstu(pto.init_align(), pto.pset_b16("M3"), d)
    pto.vstas(s, p, 0)
    """
    found = in_ub(body, {"a": ("i32", a)}, {"c": ("ui32", 16), "d": ("ui16", 16)})
    same(found["c"].view(np.uint8)[:40], image(a < 0))
    assert not found["c"].view(np.uint8)[40:].any()
    same(found["d"].view(np.uint8)[:16], image(np.arange(128) % 3 == 0))
