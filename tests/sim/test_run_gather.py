"""Gather, scatter and block-strided accesses: every width, masks, bounds, alignment."""

from __future__ import annotations

import numpy as np
import pytest
from engine_harness import NUMPY, bits, in_ub, lanes, same

from tilelang_pto.errors import SimulationError

RNG = np.random.default_rng(7)


def table(dtype: str, count: int) -> np.ndarray:
    return RNG.integers(0, 256, count * np.dtype(NUMPY[dtype]).itemsize, dtype=np.uint8).view(NUMPY[dtype])


@pytest.mark.parametrize(("dtype", "index"), [("ui16", "ui16"), ("f16", "i16"), ("i32", "ui32"), ("f32", "i32")])
def test_gather(dtype: str, index: str) -> None:
    data, n = table(dtype, 500), lanes(dtype)
    place = RNG.integers(0, 500, n)
    found = in_ub(
        f"""\
        m, some = pto.pset_b{bits(dtype)}("ALL"), pto.pset_b{bits(dtype)}("VL8")
        pto.vsts(pto.vgather2(t, pto.vlds(i, 0), m), c, 0, m, dist="NORM_B{bits(dtype)}")
        pto.vsts(pto.vgather2(t, pto.vlds(i, 0), some), c, {n}, m, dist="NORM_B{bits(dtype)}")
        """,
        {"t": (dtype, data), "i": (index, place)},
        {"c": (dtype, 2 * n)},
    )["c"]
    same(found[:n], data[place])
    same(found[n:], np.where(np.arange(n) < 8, data[place].view(f"u{data.itemsize}"), 0).astype(f"u{data.itemsize}").view(data.dtype))


@pytest.mark.parametrize(("dtype", "result"), [("ui8", "ui16"), ("i8", "i16")])
def test_gather_of_bytes_extends_with_zeros(dtype: str, result: str) -> None:
    data, place = table(dtype, 1000), RNG.integers(0, 1000, 128)
    found = in_ub(
        'm = pto.pset_b16("ALL")\npto.vsts(pto.vgather2(t, pto.vlds(i, 0), m), c, 0, m, dist="NORM_B16")',
        {"t": (dtype, data), "i": ("ui16", place)},
        {"c": (result, 128)},
    )["c"]
    same(found.view(np.uint16), data.view(np.uint8)[place].astype(np.uint16))


@pytest.mark.parametrize(("dtype", "index"), [("ui8", "ui16"), ("f16", "ui16"), ("f32", "ui32")])
def test_base_between_blocks(dtype: str, index: str) -> None:
    """The base is aligned to an element, not to a block."""
    n, width = lanes(index), bits(index)
    data, values, place = table(dtype, 500), table(index, n), RNG.permutation(400)[:n]
    found = in_ub(
        f"""\
        m = pto.pset_b{width}("ALL")
        pto.vsts(pto.vgather2(pto.addptr(t, 5), pto.vlds(i, 0), m), c, 0, m, dist="NORM_B{width}")
        pto.vscatter({"pto.vbitcast(pto.vlds(v, 0), pto.ui8)" if dtype == "ui8" else "pto.vlds(v, 0)"}, pto.addptr(s, 3), pto.vlds(i, 0), m)
        """,
        {
            "t": (dtype, data),
            "i": (index, place),
            "v": (index if dtype == "ui8" else dtype, values if dtype == "ui8" else values.view(NUMPY[dtype])),
        },
        {"c": (index if dtype == "ui8" else dtype, n), "s": (dtype, 500)},
    )
    unsigned = np.dtype(f"u{width // 8}")
    element = np.dtype(f"u{data.itemsize}")
    same(found["c"].view(unsigned), data.view(element)[place + 5].astype(unsigned))
    scattered = np.zeros(500, element)
    scattered[place + 3] = values.view(unsigned).astype(element)
    same(found["s"].view(element), scattered)


def test_gather_with_wide_indices() -> None:
    data, place = table("f16", 600), RNG.integers(0, 600, 64)
    found = in_ub(
        """\
        m = pto.pset_b16("ALL")
        pto.vsts(pto.vgather2_bc(t, pto.vlds(i, 0), pto.pset_b32("VL32")), c, 0, m, dist="NORM_B16")
        """,
        {"t": ("f16", data), "i": ("ui32", place)},
        {"c": ("f16", 128)},
    )["c"].view(np.uint16)
    expected = np.zeros(128, np.uint16)
    expected[:64:2] = data.view(np.uint16)[place[:32]]
    same(found, expected)


def test_gather_of_blocks() -> None:
    data = table("ui8", 1024)
    offsets = np.zeros(64, np.uint32)
    offsets[:8] = RNG.permutation(32)[:8] * 32
    found = in_ub(
        'm = pto.pset_b8("ALL")\npto.vsts(pto.vgatherb(t, pto.vlds(o, 0), pto.pset_b32("VL3")), c, 0, m, dist="NORM_B8")',
        {"t": ("ui8", data), "o": ("ui32", offsets)},
        {"c": ("ui8", 256)},
    )["c"].reshape(8, 32)
    for k in range(8):
        same(found[k], data[offsets[k] : offsets[k] + 32] if k < 3 else np.zeros(32))


@pytest.mark.parametrize(("dtype", "index"), [("ui16", "ui16"), ("bf16", "i16"), ("i32", "ui32"), ("f32", "i32")])
def test_scatter(dtype: str, index: str) -> None:
    n = lanes(dtype)
    values, place = table(dtype, n), RNG.permutation(300)[:n]
    found = in_ub(
        f'pto.vscatter(pto.vlds(v, 0), c, pto.vlds(i, 0), pto.pset_b{bits(dtype)}("M3"))',
        {"v": (dtype, values), "i": (index, place)},
        {"c": (dtype, 300)},
    )["c"]
    expected = np.zeros(300, NUMPY[dtype])
    expected[place[::3]] = values[::3]
    same(found, expected)


def test_scatter_of_bytes_takes_even_bytes() -> None:
    values, place = table("i8", 256), RNG.permutation(500)[:128]
    found = in_ub(
        'pto.vscatter(pto.vlds(v, 0), c, pto.vlds(i, 0), pto.pset_b16("ALL"))',
        {"v": ("i8", values), "i": ("ui16", place)},
        {"c": ("i8", 500)},
    )["c"]
    expected = np.zeros(500, np.int8)
    expected[place] = values[::2]
    same(found, expected)


def test_equal_targets_of_a_scatter() -> None:
    place = np.arange(64)
    place[40] = 3
    body = 'pto.vscatter(pto.vlds(v, 0), c, pto.vlds(i, 0), pto.pset_b32("ALL"))'
    same(in_ub(body, {"v": ("i32", np.full(64, 9)), "i": ("i32", place)}, {"c": ("i32", 64)})["c"], np.where(np.arange(64) == 40, 0, 9))
    with pytest.raises(SimulationError, match="different values to element 3") as info:
        in_ub(body, {"v": ("i32", np.arange(64)), "i": ("i32", place)}, {"c": ("i32", 64)})
    assert any(place.startswith("k.py:") for place in info.value.where)


@pytest.mark.parametrize("dtype", ["ui8", "i16", "f32"])
def test_strided_loads_and_stores(dtype: str) -> None:
    data, n, size = table(dtype, 4096), lanes(dtype), np.dtype(NUMPY[dtype]).itemsize
    per = 32 // size
    some = 3 * per + 1  # a block is loaded as a whole
    found = in_ub(
        f"""\
        m, some = pto.pset_b{bits(dtype)}("ALL"), pto.plt_b{bits(dtype)}({some})[0]
        v = pto.vsldb(t, 3, 2, m)
        pto.vsts(v, c, 0, m, dist="NORM_B{bits(dtype)}")
        pto.vsts(pto.vsldb(t, 0, 1, some), c, {n}, m, dist="NORM_B{bits(dtype)}")
        pto.vsstb(v, d, 2, 1, some)
        p = pto.vsstb(v, e, 1, 9, m, post_update="ON")
        pto.vsts(v, p, 0, m, dist="NORM_B{bits(dtype)}")
        """,
        {"t": (dtype, data)},
        {"c": (dtype, 2 * n), "d": (dtype, 20 * per), "e": (dtype, 17 * per)},
    )
    blocks = data.reshape(-1, per)
    same(found["c"][:n], blocks[2 + 3 * np.arange(8)].ravel())
    same(
        found["c"][n:].reshape(8, per),
        np.where(np.arange(8)[:, None] < 4, blocks[1].view(f"u{size}"), 0).astype(f"u{size}").view(data.dtype),
    )
    stored = np.zeros((20, per), NUMPY[dtype])
    stored[1:8:2] = blocks[2 + 3 * np.arange(4)]
    stored[7, 1:] = 0
    same(found["d"].reshape(20, per), stored)
    picked = blocks[2 + 3 * np.arange(8)]
    same(found["e"].reshape(17, per), np.concatenate((picked, np.zeros((1, per), NUMPY[dtype]), picked)))


def test_inactive_blocks_access_nothing() -> None:
    same(in_ub('pto.vsts(pto.vsldb(t, 30000, 0, pto.pset_b32("VL8")), c, 0, pto.pset_b32("ALL"))', {"t": ("i32", np.arange(64))},
               {"c": ("i32", 64)})["c"], np.where(np.arange(64) < 8, np.arange(64), 0))  # fmt: skip


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('pto.vgather2(t, pto.vadds(pto.vlds(i, 0), 65536, m), m)', "UB access out of bounds: 4 bytes at address 262144"),
        ('pto.vgather2(pto.castptr(pto.const(2, dtype=pto.i64), pto.ptr(pto.i32, "ub")), pto.vlds(i, 0), m)',
         "address 2 is not a multiple of 4"),
        ('pto.vscatter(pto.vlds(t, 0), pto.castptr(pto.const(1, dtype=pto.i64), pto.ptr(pto.i32, "ub")), pto.vlds(i, 0), m)',
         "address 1 is not a multiple of 4"),
        ('pto.vgatherb(pto.addptr(t, 4), pto.vlds(i, 0), m)', "address 16 is not a multiple of 32"),
        ('pto.vscatter(pto.vlds(t, 0), t, pto.vneg(pto.vadds(pto.vlds(i, 0), 1, m), m), m)', "out of bounds"),
        ('pto.vgatherb(t, pto.vadds(pto.vlds(i, 0), 4, m), m)', "offset 4 of block 0 is not a multiple of 32"),
        ('pto.vsldb(pto.addptr(t, 1), 1, 0, m)', "address 4 is not a multiple of 32"),
        ('pto.vsldb(t, 2000, 0, m)', "out of bounds: 32 bytes at address 320000"),
        ('pto.vsstb(pto.vlds(t, 0), t, 1, 9000, m)', "out of bounds"),
    ],
)  # fmt: skip
def test_checks(body: str, message: str) -> None:
    with pytest.raises(SimulationError) as info:
        in_ub(f'm = pto.pset_b32("ALL")\n{body}', {"t": ("i32", np.arange(64)), "i": ("i32", np.zeros(64))}, {})
    assert message in info.value.what
    assert info.value.where[0] == "kernel k" and any("block 0, pipe V" in place for place in info.value.where)
