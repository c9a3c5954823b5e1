"""Carries, wide products, packing, squeezing, counting, pairs, rounding in place, leaky rectifiers, interleaved masks."""

from __future__ import annotations

import numpy as np
import pytest
from engine_harness import NUMPY, bits, in_ub, lanes, same

from tilelang_pto.errors import SimulationError

RNG = np.random.default_rng(11)
EDGES = [0, 1, -1, 2**31 - 1, -(2**31), 5, -5, 2**16]


def words(count: int) -> np.ndarray:
    edges = np.array([a for a in EDGES for _ in EDGES][:count], np.int64)
    return np.concatenate((edges, RNG.integers(-(2**31), 2**31, max(0, count - len(edges)))))[:count].astype(np.int32)


def other_words() -> np.ndarray:
    return np.array(EDGES * len(EDGES), np.int64).astype(np.int32)


@pytest.mark.parametrize("dtype", ["i32", "ui32"])
def test_sums_with_carries(dtype: str) -> None:
    a, b = words(64).view(NUMPY[dtype]), other_words().view(NUMPY[dtype])
    low = "some = pto.pset_b32('M3')"
    found = in_ub(
        f"""\
        m = pto.pset_b32("ALL")
        {low}
        x, y = pto.vlds(a, 0), pto.vlds(b, 0)
        one, zero = pto.vbr(pto.const(1, dtype=pto.{dtype})), pto.vbr(pto.const(0, dtype=pto.{dtype}))
        for k, (v, p) in enumerate((pto.vaddc(x, y, m), pto.vsubc(x, y, m), pto.vaddcs(x, y, some, m), pto.vsubcs(x, y, some, m),
                                    pto.vsubc(x, y, some))):
            pto.vsts(v, c, k * 64, m)
            pto.vsts(pto.vsel(one, zero, p), d, k * 64, m)
        """,
        {"a": (dtype, a), "b": (dtype, b)},
        {"c": (dtype, 320), "d": (dtype, 320)},
    )
    u, v = a.view(np.uint32).astype(object), b.view(np.uint32).astype(object)
    some = (np.arange(64) % 3 == 0).astype(int).astype(object)
    exact = [u + v, u - v + 2**32, u + v + some, u - v - (1 - some) + 2**32]  # bit 32 is the carry, or "nothing borrowed"
    for k, total in enumerate(exact):
        same(found["c"][64 * k :][:64].view(np.uint32), (total % 2**32).astype(np.uint32))
        same(found["d"][64 * k :][:64].view(np.uint32), (total // 2**32).astype(np.uint32))
    same(found["c"][256:].view(np.uint32), np.where(some == 1, exact[1] % 2**32, 0).astype(np.uint32))
    same(found["d"][256:].view(np.uint32), np.where(some == 1, exact[1] // 2**32, 0).astype(np.uint32))


@pytest.mark.parametrize("dtype", ["i32", "ui32"])
def test_wide_product(dtype: str) -> None:
    a, b = words(64).view(NUMPY[dtype]), other_words().view(NUMPY[dtype])
    found = in_ub(
        """\
        m = pto.pset_b32("ALL")
        low, high = pto.vmull(pto.vlds(a, 0), pto.vlds(b, 0), pto.pset_b32("VL32"))
        pto.vsts(low, c, 0, m)
        pto.vsts(high, c, 64, m)
        """,
        {"a": (dtype, a), "b": (dtype, b)},
        {"c": (dtype, 128)},
    )["c"].view(np.uint32)
    product = np.where(np.arange(64) < 32, a.astype(object) * b.astype(object) % 2**64, 0)
    same(found[:64], (product % 2**32).astype(np.uint32))
    same(found[64:], (product // 2**32).astype(np.uint32))


@pytest.mark.parametrize("dtype", ["i32", "ui32", "i16", "ui16"])
def test_pack(dtype: str) -> None:
    n, narrow = lanes(dtype), f"ui{bits(dtype) // 2}"
    a = RNG.integers(0, 256, 256, dtype=np.uint8).view(NUMPY[dtype])
    found = in_ub(
        f"""\
        m = pto.pset_b{bits(narrow)}("ALL")
        for k, part in enumerate(("LOWER", "HIGHER")):
            pto.vsts(pto.vpack(pto.vlds(a, 0), part), c, k * {2 * n}, m, dist="NORM_B{bits(narrow)}")
        """,
        {"a": (dtype, a)},
        {"c": (narrow, 4 * n)},
    )["c"]
    low, empty = a.astype(NUMPY[narrow]), np.zeros(n, NUMPY[narrow])
    same(found, np.concatenate((low, empty, empty, low)))


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i16", "ui16"])
def test_unpack(dtype: str) -> None:
    n, wide = lanes(dtype) // 2, 2 * bits(dtype)
    a = np.arange(2 * n).astype(NUMPY[dtype]) if bits(dtype) == 8 else RNG.integers(0, 256, 256, dtype=np.uint8).view(NUMPY[dtype])
    found = in_ub(
        f"""\
        m, v = pto.pset_b{wide}("ALL"), pto.vlds(a, 0)
        for k, part in enumerate(("LOWER", "HIGHER")):
            pto.vsts(pto.vsunpack(v, part), c, k * {n}, m, dist="NORM_B{wide}")
            pto.vsts(pto.vzunpack(v, part), d, k * {n}, m, dist="NORM_B{wide}")
        """,
        {"a": (dtype, a)},
        {"c": (f"i{wide}", 2 * n), "d": (f"ui{wide}", 2 * n)},
    )
    same(found["c"], a.view(f"i{a.itemsize}").astype(NUMPY[f"i{wide}"]))
    same(found["d"], a.view(f"u{a.itemsize}").astype(NUMPY[f"ui{wide}"]))


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "f16", "f32", "ui8"])
def test_squeeze(dtype: str) -> None:
    n = lanes(dtype)
    a = np.arange(1, n + 1).astype(NUMPY[dtype])
    integer = dtype in ("i8", "i16", "i32")
    count = f'pto.vsts(pto.vusqz(v, p), c, {n}, m, dist="NORM_B{bits(dtype)}")' if integer else ""
    found = in_ub(
        f"""\
        m, p, v = pto.pset_b{bits(dtype)}("ALL"), pto.pset_b{bits(dtype)}("M3"), pto.vlds(a, 0)
        pto.vsts(pto.vsqz(v, p), c, 0, m, dist="NORM_B{bits(dtype)}")
        {count}
        """,
        {"a": (dtype, a)},
        {"c": (dtype, 2 * n)},
    )["c"]
    kept = a[::3]
    same(found[:n], np.concatenate((kept, np.zeros(n - len(kept), NUMPY[dtype]))))
    if integer:
        active = np.arange(n) % 3 == 0
        same(found[n:], (np.cumsum(active) - active).astype(NUMPY[dtype]))


@pytest.mark.parametrize("bin_", [0, 1])
@pytest.mark.parametrize("pattern", ["ALL", "M3"])
def test_histograms(bin_: int, pattern: str) -> None:
    a = np.concatenate((np.full(100, 7), [0, 127, 128, 255], RNG.integers(0, 256, 152))).astype(np.uint8)
    acc = RNG.integers(0, 65536, 128).astype(np.uint16)
    acc[7] = 65535
    found = in_ub(
        f"""\
        m, p = pto.pset_b16("ALL"), pto.pset_b8("{pattern}")
        pto.vsts(pto.dhistv2(pto.vlds(h, 0), pto.vlds(a, 0), p, {bin_}), c, 0, m, dist="NORM_B16")
        pto.vsts(pto.chistv2(pto.vlds(h, 0), pto.vlds(a, 0), p, {bin_}), c, 128, m, dist="NORM_B16")
        """,
        {"a": ("ui8", a), "h": ("ui16", acc)},
        {"c": ("ui16", 256)},
    )["c"]
    active = a[::3] if pattern == "M3" else a
    values = np.arange(128) + 128 * bin_
    same(found[:128], (acc + (active[:, None] == values).sum(0)).astype(np.uint16))
    same(found[128:], (acc + (active[:, None] <= values).sum(0)).astype(np.uint16))


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_sums_of_pairs(dtype: str) -> None:
    n = lanes(dtype)
    a = (RNG.standard_normal(n) * 100).astype(NUMPY[dtype])
    found = in_ub(
        f"""\
        m = pto.pset_b{bits(dtype)}("ALL")
        pto.vsts(pto.vcpadd(pto.vlds(a, 0), m), c, 0, m, dist="NORM_B{bits(dtype)}")
        pto.vsts(pto.vcpadd(pto.vlds(a, 0), pto.pset_b{bits(dtype)}("VL3")), c, {n}, m, dist="NORM_B{bits(dtype)}")
        """,
        {"a": (dtype, a)},
        {"c": (dtype, 2 * n)},
    )["c"]
    for row, source in ((found[:n], a), (found[n:], np.where(np.arange(n) < 3, a, 0))):
        wide = source.astype(np.float64)
        same(row, np.concatenate((wide[::2] + wide[1::2], np.zeros(n // 2))).astype(NUMPY[dtype]))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("letter", "RAFCZ")
def test_rounding_in_place(dtype: str, letter: str) -> None:
    n = lanes(dtype)
    a = np.concatenate((np.arange(-9, 9) / 2, [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-7, -1e-7, 3e4], RNG.standard_normal(n) * 9))[:n]
    a = a.astype(NUMPY[dtype])
    found = in_ub(
        f'm = pto.pset_b{bits(dtype)}("ALL")\npto.vsts(pto.vtrc(pto.vlds(a, 0), m, rnd="{letter}"), c, 0, m, dist="NORM_B{bits(dtype)}")',
        {"a": (dtype, a)},
        {"c": (dtype, n)},
    )["c"]
    w = a.astype(np.float64)
    rules = {"R": np.rint, "F": np.floor, "C": np.ceil, "Z": np.trunc, "A": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)}
    expected = rules[letter](w).astype(NUMPY[dtype])
    nan = np.isnan(w)
    assert (np.isnan(found.astype(np.float64)) == nan).all()
    same(found[~nan], expected[~nan])


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_leaky_rectifiers(dtype: str) -> None:
    n = lanes(dtype)
    a = np.concatenate(([0.0, -0.0, np.inf, -np.inf, 1.5, -1.5], RNG.standard_normal(n)))[:n].astype(NUMPY[dtype])
    slope = RNG.standard_normal(n).astype(NUMPY[dtype])
    found = in_ub(
        f"""\
        m, s = pto.pset_b{bits(dtype)}("ALL"), pto.pset_b{bits(dtype)}("H")
        v = pto.vlds(a, 0)
        pto.vsts(pto.vlrelu(v, pto.const(0.25, dtype=pto.{dtype}), m), c, 0, m, dist="NORM_B{bits(dtype)}")
        pto.vsts(pto.vprelu(v, pto.vlds(b, 0), s), c, {n}, m, dist="NORM_B{bits(dtype)}")
        """,
        {"a": (dtype, a), "b": (dtype, slope)},
        {"c": (dtype, 2 * n)},
    )["c"]
    w = a.astype(np.float64)
    same(found[:n], np.where(np.signbit(w), w * 0.25, w).astype(NUMPY[dtype]))
    half = np.where(np.arange(n) < n // 2, np.where(np.signbit(w), w * slope.astype(np.float64), w), 0)
    same(found[n:], half.astype(NUMPY[dtype]))


def test_a_leaky_rectifier_looks_at_the_sign_bit() -> None:
    body = """\
    m = pto.pset_b32("ALL")
    pto.vsts(pto.vprelu(pto.vlds(a, 0), pto.vlds(b, 0), m), c, 0, m)
    """
    a = np.resize([0.0, -0.0, -np.inf, np.nan], 64)
    b = np.resize([np.nan, np.nan, 0.0, 1.0], 64)
    found = in_ub(body, {"a": ("f32", a), "b": ("f32", b)}, {"c": ("f32", 64)})["c"]
    assert found[0] == 0 and np.isnan(found[1:4]).all()


@pytest.mark.parametrize("part", ["EVEN", "ODD"])
def test_product_to_half_rounds_twice(part: str) -> None:
    a = np.concatenate(([2049.0, 2051.0, -2049.0, 65519.0, 65520.0, 1e-8, -1e-8], RNG.standard_normal(57) * 1000)).astype(np.float32)
    body = f"""\
    v = pto.vmulscvt(pto.vlds(a, 0), 1.0009765625, pto.pset_b32("VL64"), rnd="A", part="{part}")
    pto.vsts(v, c, 0, pto.pset_b16("ALL"), dist="NORM_B16")
    """
    found = in_ub(body, {"a": ("f32", a)}, {"c": ("f16", 128)})["c"].reshape(64, 2)
    product = (a * np.float32(1.0009765625)).astype(np.float64)
    step = np.ldexp(1.0, np.maximum(np.frexp(product)[1] - 1, -14) - 10)
    rounded = np.copysign(np.floor(np.abs(product) / step + 0.5) * step, product)
    with np.errstate(over="ignore"):
        same(np.ascontiguousarray(found[:, int(part == "ODD")]), rounded.astype(np.float16))
    assert not np.ascontiguousarray(found[:, int(part == "EVEN")]).view(np.uint16).any()


@pytest.mark.parametrize("dtype", ["i16", "i32"])
def test_integer_division(dtype: str) -> None:
    n, least = lanes(dtype), np.iinfo(NUMPY[dtype]).min
    a = np.concatenate(([7, -7, 7, -7, least, least, 0], RNG.integers(least, -least, n)))[:n].astype(NUMPY[dtype])
    b = np.concatenate(([2, 2, -2, -2, -1, 1, 5], RNG.integers(1, 100, n)))[:n].astype(NUMPY[dtype])
    b[-1] = 0  # not active
    body = f"""\
    m = pto.pset_b{bits(dtype)}("ALL")
    pto.vsts(pto.vdiv(pto.vlds(a, 0), pto.vlds(b, 0), pto.plt_b{bits(dtype)}({n - 1})[0]), c, 0, m, dist="NORM_B{bits(dtype)}")
    """
    found = in_ub(body, {"a": (dtype, a), "b": (dtype, b)}, {"c": (dtype, n)})["c"]
    exact = [int(abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)) if y else 0 for x, y in zip(a, b, strict=True)]
    same(found, np.array(exact, np.int64).astype(NUMPY[dtype]))
    with pytest.raises(SimulationError, match=f"division by zero in lane {n - 1}"):
        in_ub(body.replace(f"({n - 1})", f"({n})"), {"a": (dtype, a), "b": (dtype, b)}, {"c": (dtype, n)})


@pytest.mark.parametrize("width", [8, 16, 32])
def test_interleaved_masks(width: int) -> None:
    n = 2048 // width
    kind = f"ui{width}"
    a, b = RNG.integers(0, 2, n), RNG.integers(0, 2, n)
    body = f"""\
    m = pto.pset_b{width}("ALL")
    p, q = (pto.vcmps(pto.vlds(x, 0), pto.const(0, dtype=pto.{kind}), m, "ne") for x in (a, b))
    one, zero = (pto.vbr(pto.const(x, dtype=pto.{kind})) for x in (1, 0))
    for k, r in enumerate((*pto.pintlv_b{width}(p, q), *pto.pdintlv_b{width}(p, q))):
        pto.vsts(pto.vsel(one, zero, r), c, k * {n}, m, dist="NORM_B{width}")
    """
    found = in_ub(body, {"a": (kind, a), "b": (kind, b)}, {"c": (kind, 4 * n)})["c"]
    mixed, joined = np.stack((a, b), 1).ravel(), np.concatenate((a, b))
    same(found, np.concatenate((mixed, joined[::2], joined[1::2])))
