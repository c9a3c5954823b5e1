"""Operations end to end: recorded, executed by the native engine, compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tilelang_pto._native")
from engine_harness import HEADS, NUMPY, Arrays, bits, flushed, in_ub, lanes, same

from tilelang_pto.errors import PtoError

FLOATS = ("f32", "f16", "bf16")


def vector(body: str, inputs: Arrays, outputs: dict[str, tuple[str, int]], surface: str = "2026-08") -> dict[str, np.ndarray]:
    """Run ``body`` inside one vector function. Names in it are UB pointers."""
    return in_ub(body, inputs, outputs, surface=surface)


def numbers(dtype: str, count: int, seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    kind = NUMPY[dtype]
    if dtype in FLOATS:
        return (generator.standard_normal(count) * 4).astype(kind)
    info = np.iinfo(kind)
    return generator.integers(info.min, info.max, count, dtype=kind, endpoint=True)


def wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64) if values.dtype.kind not in "iu" else values.astype(np.int64)


BINARY = {
    "vadd": (lambda a, b: a + b, (*FLOATS, "i8", "ui8", "i16", "ui16", "i32", "ui32")),
    "vsub": (lambda a, b: a - b, (*FLOATS, "i8", "ui8", "i16", "i32", "ui32")),
    "vmul": (lambda a, b: a * b, (*FLOATS, "i16", "ui16")),
    "vmax": (np.maximum, (*FLOATS, "i8", "ui8", "i32", "ui32")),
    "vmin": (np.minimum, (*FLOATS, "i16", "ui16", "i32")),
    "vdiv": (lambda a, b: a / b, ("f32", "f16")),
    "vand": (lambda a, b: a & b, ("i8", "ui16", "i32")),
    "vor": (lambda a, b: a | b, ("i8", "ui16", "i32")),
    "vxor": (lambda a, b: a ^ b, ("i8", "ui16", "i32")),
}


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, (_, dtypes) in BINARY.items() for dtype in dtypes])
def test_binary(name: str, dtype: str):
    """Whole registers, then a mask of the first lanes: inactive lanes are zero."""
    n = lanes(dtype)
    a, b = numbers(dtype, n), numbers(dtype, n, 2)
    with np.errstate(all="ignore"):
        expected = BINARY[name][0](wide(a), wide(b)).astype(NUMPY[dtype])
    found = vector(
        f"""\
        whole = pto.pset_b{bits(dtype)}("PAT_ALL")
        some, rest = pto.plt_b{bits(dtype)}(11)
        x, y = pto.vlds(a, 0), pto.vlds(b, 0)
        pto.vsts(pto.{name}(x, y, whole), c, 0, whole)
        pto.vsts(pto.{name}(x, y, some), d, 0, whole)
        """,
        {"a": (dtype, a), "b": (dtype, b)},
        {"c": (dtype, n), "d": (dtype, n)},
    )
    same(found["c"], expected)
    same(found["d"], np.where(np.arange(n) < 11, expected, NUMPY[dtype](0)))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i16", "ui32"])
def test_with_scalar(dtype: str):
    n = lanes(dtype)
    a = numbers(dtype, n)
    value = 3 if bits(dtype) and dtype not in FLOATS else 1.5
    found = vector(
        f"""\
        m = pto.pset_b{bits(dtype)}("ALL")
        x = pto.vlds(a, 0)
        s = pto.const({value}, dtype=pto.{dtype})
        for k, v in enumerate((pto.vadds(x, s, m), pto.vmuls(x, {value}, m), pto.vmaxs(x, s, m), pto.vmins(x, s, m))):
            pto.vsts(v, c, k * {n}, m)
        """,
        {"a": (dtype, a)},
        {"c": (dtype, 4 * n)},
    )["c"].reshape(4, n)
    w, kind = wide(a), NUMPY[dtype]
    for row, expected in zip(found, (w + value, w * value, np.maximum(w, value), np.minimum(w, value)), strict=True):
        same(row, expected.astype(kind))


@pytest.mark.parametrize(
    ("name", "dtype", "reference"),
    [
        ("vabs", "f32", np.abs),
        ("vabs", "i16", np.abs),
        ("vneg", "f16", np.negative),
        ("vneg", "i32", np.negative),
        ("vrelu", "f32", lambda a: np.maximum(a, 0)),
        ("vnot", "ui8", np.invert),
        ("vsqrt", "f32", lambda a: np.sqrt(np.abs(a))),
        ("vexp", "f32", np.exp),
        ("vexp", "f16", np.exp),
        ("vln", "f32", lambda a: np.log(np.abs(a))),
    ],
)
def test_unary(name: str, dtype: str, reference):
    n = lanes(dtype)
    a = numbers(dtype, n)
    if name in ("vsqrt", "vln"):
        a = np.abs(a)
    found = vector(
        f'm = pto.pset_b{bits(dtype)}("ALL")\npto.vsts(pto.{name}(pto.vlds(a, 0), m), c, 0, m)', {"a": (dtype, a)}, {"c": (dtype, n)}
    )["c"]
    if dtype in FLOATS:
        approximate = name in ("vsqrt", "vexp", "vln")  # with subnormal operands and results as zero
        exact = reference((flushed(a) if approximate else a).astype(np.float64)).astype(NUMPY[dtype])
        wanted = (flushed(exact) if approximate else exact).astype(np.float64)
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2.0 ** (-9 if dtype == "f16" else -21), atol=0)
    else:
        same(found, reference(a))


@pytest.mark.parametrize(("dtype", "count"), [("i32", 3), ("ui32", 5), ("i16", 2), ("ui8", 1)])
def test_shift_right(dtype: str, count: int):
    n = lanes(dtype)
    a = numbers(dtype, n)
    counts = np.full(n, count, NUMPY[dtype])
    found = vector(
        f"""\
        m = pto.pset_b{bits(dtype)}("ALL")
        pto.vsts(pto.vshrs(pto.vlds(a, 0), {count}, m), c, 0, m)
        pto.vsts(pto.vshr(pto.vlds(a, 0), pto.vlds(b, 0), m), d, 0, m)
        """,
        {"a": (dtype, a), "b": (dtype, counts)},
        {"c": (dtype, n), "d": (dtype, n)},
    )
    same(found["c"], a >> NUMPY[dtype](count))
    same(found["d"], a >> NUMPY[dtype](count))


def test_fused():
    a, b, c = (numbers("f32", 64, seed).astype(np.float64) for seed in (1, 2, 3))
    found = vector(
        """\
        m = pto.pset_b32("ALL")
        x, y, z = pto.vlds(a, 0), pto.vlds(b, 0), pto.vlds(c, 0)
        pto.vsts(pto.vmula(x, y, z, m), d, 0, m)
        pto.vsts(pto.vmadd(x, y, z, m), d, 64, m)
        pto.vsts(pto.vaxpy(2.5, x, y, m), d, 128, m)
        pto.vsts(pto.vexpdif(x, y, m), d, 192, m)
        """,
        {"a": ("f32", a), "b": ("f32", b), "c": ("f32", c)},
        {"d": ("f32", 256)},
    )["d"].reshape(4, 64)
    same(found[0], (a + b * c).astype(np.float32))
    same(found[1], (a * b + c).astype(np.float32))
    same(found[2], (2.5 * a + b).astype(np.float32))
    np.testing.assert_allclose(found[3], np.exp((a - b).astype(np.float32).astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i16", "ui16"])
def test_reductions(dtype: str):
    n = lanes(dtype)
    a = (np.random.default_rng(4).permutation(n) - n // 3).astype(NUMPY[dtype])
    total = "i32" if dtype == "i16" else "ui32" if dtype == "ui16" else dtype
    found = vector(
        f"""\
        m = pto.pset_b{bits(dtype)}("ALL")
        w = pto.pset_b{bits(total)}("ALL")
        v = pto.vlds(a, 0)
        pto.vsts(pto.vcadd(v, m), s, 0, w)
        pto.vsts(pto.vcgadd(v, m), s, {lanes(total)}, w)
        for k, r in enumerate((pto.vcmax(v, m), pto.vcmin(v, m), pto.vcgmax(v, m), pto.vcgmin(v, m))):
            pto.vsts(r, e, k * {n}, m)
        """,
        {"a": (dtype, a)},
        {"s": (total, 2 * lanes(total)), "e": (dtype, 4 * n)},
    )
    sums, groups = found["s"].reshape(2, -1), a.reshape(8, -1)
    whole = wide(a)
    assert sums[0][0] == NUMPY[total](whole.sum()) and not sums[0][1:].any()
    same(sums[1][:8], wide(groups).sum(axis=1).astype(NUMPY[total]))
    assert not sums[1][8:].any()
    top, low, group_top, group_low = found["e"].reshape(4, n)
    index = np.dtype(f"u{a.dtype.itemsize}")
    assert top[0] == a.max() and top.view(index)[1] == a.argmax() and not top[2:].any()
    assert low[0] == a.min() and low.view(index)[1] == a.argmin() and not low[2:].any()
    same(group_top[:8], groups.max(axis=1))
    same(group_low[:8], groups.min(axis=1))


@pytest.mark.parametrize("mode", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_compare_and_select(mode: str):
    a, b = (np.random.default_rng(seed).integers(-3, 4, 64).astype(np.float32) for seed in (1, 2))
    a[5], b[9] = np.nan, np.nan
    test = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}[mode]
    found = vector(
        f"""\
        m = pto.pset_b32("ALL")
        x, y = pto.vlds(a, 0), pto.vlds(b, 0)
        pto.vsts(pto.vsel(x, y, pto.vcmp(x, y, m, "{mode}")), c, 0, m)
        pto.vsts(pto.vsel(x, y, pto.vcmps(x, 1.0, pto.pset_b32("VL32"), "{mode}")), c, 64, m)
        """,
        {"a": ("f32", a), "b": ("f32", b)},
        {"c": ("f32", 128)},
    )["c"]
    same(found[:64], np.where(test(a, b), a, b))
    same(found[64:], np.where(test(a, np.float32(1)) & (np.arange(64) < 32), a, b))


def test_rearrangement():
    a, b = np.arange(64, dtype=np.float32), np.arange(100, 164, dtype=np.float32)
    index = np.random.default_rng(1).integers(0, 64, 64).astype(np.int32)
    found = vector(
        """\
        m = pto.pset_b32("ALL")
        x, y = pto.vlds(a, 0), pto.vlds(b, 0)
        low, high = pto.vintlv(x, y)
        even, odd = pto.vdintlv(x, y)
        first = pto.vdup(y, m, "LOWEST")
        some = pto.vdup(pto.const(7.0, dtype=pto.f32), pto.pset_b32("PAT_M3"))
        for k, v in enumerate((low, high, even, odd, first, some, pto.vbr(pto.f32(-2.0)), pto.vselr(x, pto.vlds(i, 0)))):
            pto.vsts(v, c, k * 64, m)
        pto.vsts(pto.vci(5), d, 0, m)
        pto.vsts(pto.vci(5, "DESC"), d, 64, m)
        pto.vsts(pto.vbitcast(x, pto.i32), d, 128, m)
        """,
        {"a": ("f32", a), "b": ("f32", b), "i": ("i32", index)},
        {"c": ("f32", 512), "d": ("i32", 192)},
    )
    low, high, even, odd, first, some, constant, picked = found["c"].reshape(8, 64)
    mixed, joined = np.stack((a, b), 1).ravel(), np.concatenate((a, b))
    same(low, mixed[:64])
    same(high, mixed[64:])
    same(even, joined[::2])
    same(odd, joined[1::2])
    same(first, np.full(64, b[0]))
    same(some, np.where(np.arange(64) % 3 == 0, np.float32(7), np.float32(0)))
    same(constant, np.full(64, np.float32(-2)))
    same(picked, a[index])
    same(found["d"], np.concatenate((np.arange(5, 69), 5 - np.arange(64), a.view(np.int32))).astype(np.int32))


def test_masks():
    patterns = {
        "ALL": lambda i: i >= 0, "ALLF": lambda i: i < 0, "H": lambda i: i < 32, "Q": lambda i: i < 16, "M3": lambda i: i % 3 == 0,
        "M4": lambda i: i % 4 == 0, "VL3": lambda i: i < 3, "VL128": lambda i: i >= 0,
    }  # fmt: skip
    body = [
        "one, zero = pto.vbr(pto.f32(1.0)), pto.vbr(pto.f32(0.0))",
        'm = pto.pset_b32("ALL")',
        'q, h = pto.pset_b32("Q"), pto.pset_b32("M4")',
    ]
    masks = [f'pto.pset_b32("{name}")' for name in patterns]
    masks += ["pto.pand(q, h, m)", "pto.por(q, h, m)", "pto.pxor(q, h, m)", "pto.pnot(q, h)", "pto.psel(q, h, h)"]
    masks += ["pto.plt_b32(40)[0]", "pto.make_mask(pto.f32, 70)[0]", 'pto.punpack(pto.pset_b16("VL70"), "HIGHER")']
    body += [f"pto.vsts(pto.vsel(one, zero, {mask}), c, {k * 64}, m)" for k, mask in enumerate(masks)]
    found = vector("\n".join(body), {}, {"c": ("f32", 64 * len(masks))})["c"].reshape(-1, 64)
    i = np.arange(64)
    q, h = i < 16, i % 4 == 0
    expected = [test(i) for test in patterns.values()] + [q & h, q | h, q ^ h, ~q & h, np.where(h, q, h), i < 40, i < 64, i < 6]
    for row, active in zip(found, expected, strict=True):
        np.testing.assert_array_equal(row, active.astype(np.float32))


def test_count_loop():
    """The remaining count of plt drives a loop over a ragged row."""
    a = numbers("f32", 256)
    found = vector(
        """\
        loop = pto.for_(0, 4, step=1).carry(rest=pto.const(150, dtype=pto.i32))
        with loop:
            m, rest = pto.plt_b32(loop.rest)
            pto.vsts(pto.vadds(pto.vlds(a, loop.iv * 64), 1.0, m), c, loop.iv * 64, m)
            loop.update(rest=rest)
        """,
        {"a": ("f32", a)},
        {"c": ("f32", 256)},
    )["c"]
    same(found, np.where(np.arange(256) < 150, a + np.float32(1), np.float32(0)))


def test_post_update():
    a = numbers("f32", 192)
    found = vector(
        """\
        m = pto.pset_b32("ALL")
        loop = pto.for_(0, 3, step=1).carry(p=a, q=c)
        with loop:
            v, p = pto.vlds(loop.p, 64, post_update="ON")
            loop.update(p=p, q=pto.vsts(v, loop.q, 64, m, post_update="ON"))
        """,
        {"a": ("f32", a)},
        {"c": ("f32", 192)},
    )["c"]
    same(found, a)


def test_load_distributions():
    h, w, q = np.arange(300, dtype=np.uint16), np.arange(300, dtype=np.uint32), np.arange(512, dtype=np.uint8)
    found = vector(
        """\
        m8, m16, m32 = pto.pset_b8("ALL"), pto.pset_b16("ALL"), pto.pset_b32("ALL")
        for k, (p, d) in enumerate(((5, "BRC_B16"), (16, "US_B16"), (32, "DS_B16"), (16, "BRC_BLK"), (8, "E2B_B16"))):
            pto.vsts(pto.vlds(h, p, dist=d), a, k * 128, m16)
        for k, (p, d) in enumerate(((7, "BRC_B32"), (8, "BRC_BLK"), (8, "E2B_B32"))):
            pto.vsts(pto.vlds(w, p, dist=d), b, k * 64, m32)
        pto.vsts(pto.vlds(h, 16, pto.vreg_type(64, pto.ui32), dist="UNPK_B16"), b, 192, m32)
        pto.vsts(pto.vlds(q, 32, pto.vreg_type(64, pto.ui32), dist="UNPK4"), b, 256, m32)
        low, high = pto.vldsx2(w, 8, "DINTLV_B32")
        pto.vsts(low, b, 320, m32)
        pto.vsts(high, b, 384, m32)
        pto.vsts(pto.vlds(q, 32, dist="US_B8"), c, 0, m8)
        """,
        {"h": ("ui16", h), "w": ("ui32", w), "q": ("ui8", q)},
        {"a": ("ui16", 640), "b": ("ui32", 448), "c": ("ui8", 256)},
    )
    i, j = np.arange(128), np.arange(64)
    same(found["a"], np.concatenate((np.full(128, 5), 16 + i // 2, 32 + 2 * i, 16 + i % 16, 8 + i // 16)).astype(np.uint16))
    same(found["b"], np.concatenate((np.full(64, 7), 8 + j % 8, 8 + j // 8, 16 + j, 32 + j, 8 + 2 * j, 9 + 2 * j)).astype(np.uint32))
    same(found["c"], (32 + np.arange(256) // 2).astype(np.uint8))


def test_store_distributions():
    w = np.arange(1000, 1064, dtype=np.uint32) * 65537
    found = vector(
        """\
        m16, m32, some = pto.pset_b16("ALL"), pto.pset_b32("ALL"), pto.pset_b32("VL4")
        x = pto.vlds(w, 0)
        h = pto.vbitcast(x, pto.ui16)
        pto.vsts(x, a, 0, some, dist="NORM_B32")
        pto.vsts(x, a, 67, m32, dist="1PT_B32")
        pto.vsts(h, b, 0, m32, dist="PK_B32")
        pto.vsts(pto.vbitcast(x, pto.ui8), c, 0, m32, dist="PK4_B32")
        pto.vsts(pto.vbitcast(x, pto.ui8), c, 64, m16, dist="PK_B16")
        pto.vstsx2(x, x, d, 0, "INTLV_B32", m32)
        """,
        {"w": ("ui32", w)},
        {"a": ("ui32", 72), "b": ("ui16", 64), "c": ("ui8", 192), "d": ("ui32", 128)},
    )
    expected = np.zeros(72, np.uint32)
    expected[:4], expected[67] = w[:4], w[0]
    same(found["a"], expected)
    same(found["b"], w.astype(np.uint16))
    same(found["c"][:64], w.astype(np.uint8))
    same(found["c"][64:], w.view(np.uint16).astype(np.uint8))
    same(found["d"], np.repeat(w, 2))


def widen(source: str, target: str, part: int) -> tuple[np.ndarray, np.ndarray]:
    a = numbers(source, lanes(source))
    return a, a[part :: lanes(source) // lanes(target)].astype(NUMPY[target])


@pytest.mark.parametrize(
    ("source", "target"),
    [("f16", "f32"), ("bf16", "f32"), ("i8", "f16"), ("ui8", "f16"), ("ui8", "ui16"), ("i16", "i32"), ("i16", "f32"), ("ui8", "ui32")],
)
def test_widening(source: str, target: str):
    parts = ("EVEN", "ODD") if bits(target) == 2 * bits(source) else ("P0", "P1", "P2", "P3")
    for number, part in enumerate(parts):
        a, expected = widen(source, target, number)
        body = f"""\
        v = pto.vcvt(pto.vlds(a, 0), pto.{target}, pto.pset_b{bits(source)}("ALL"), part="{part}")
        pto.vsts(v, c, 0, pto.pset_b{bits(target)}("ALL"))
        """
        same(vector(body, {"a": (source, a)}, {"c": (target, lanes(target))})["c"], expected)


@pytest.mark.parametrize(("target", "count"), [("f16", 2), ("bf16", 2)])
def test_narrowing_of_floats(target: str, count: int):
    parts = ("EVEN", "ODD") if count == 2 else ("P0", "P1", "P2", "P3")
    rows = numbers("f32", 64 * count).reshape(count, 64)
    raw = f"ui{bits(target)}"
    conversions = ", ".join(
        f'pto.vbitcast(pto.vcvt(pto.vlds(a, {64 * k}), pto.{target}, m, rnd="R", sat="SAT", part="{part}"), pto.{raw})'
        for k, part in enumerate(parts)
    )
    body = f"""\
    m, w = pto.pset_b32("ALL"), pto.pset_b{bits(target)}("ALL")
    pieces = ({conversions},)
    total = pieces[0]
    for piece in pieces[1:]:
        total = pto.vor(total, piece, w)
    pto.vsts(total, c, 0, w)
    """
    found = vector(body, {"a": ("f32", rows)}, {"c": (raw, lanes(target))})["c"]
    same(found.view(NUMPY[target]), rows.T.ravel().astype(NUMPY[target]))


@pytest.mark.parametrize(("letter", "reference"), [("R", np.rint), ("F", np.floor), ("C", np.ceil), ("Z", np.trunc)])
def test_float_to_integer(letter: str, reference):
    a = np.concatenate((np.arange(-8, 8) / 2, np.random.default_rng(1).standard_normal(46) * 1e4, [3e9, -3e9])).astype(np.float32)
    body = f"""\
    m = pto.pset_b32("ALL")
    pto.vsts(pto.vcvt(pto.vlds(a, 0), pto.i32, m, rnd="{letter}", sat="SAT"), c, 0, m)
    """
    found = vector(body, {"a": ("f32", a)}, {"c": ("i32", 64)})["c"]
    same(found, np.clip(reference(a.astype(np.float64)), -(2**31), 2**31 - 1).astype(np.int64).astype(np.int32))


@pytest.mark.parametrize("saturate", [True, False])
def test_integer_narrowing(saturate: bool):
    a = np.concatenate((np.arange(-16, 16), np.random.default_rng(1).integers(-(2**31), 2**31, 32))).astype(np.int32)
    body = f"""\
    m, w = pto.pset_b32("ALL"), pto.pset_b16("ALL")
    pto.vsts(pto.vcvt(pto.vlds(a, 0), pto.i16, m, sat="{"SAT" if saturate else "NOSAT"}", part="ODD"), c, 0, w)
    """
    found = vector(body, {"a": ("i32", a)}, {"c": ("i16", 128)})["c"].reshape(64, 2)
    expected = np.clip(a, -32768, 32767) if saturate else a
    same(np.ascontiguousarray(found[:, 1]), expected.astype(np.int16))
    assert not found[:, 0].any()


def test_integer_to_float():
    a = numbers("i32", 64)
    body = 'm = pto.pset_b32("ALL")\npto.vsts(pto.vcvt(pto.vlds(a, 0), pto.f32, m, rnd="R"), c, 0, m)'
    same(vector(body, {"a": ("i32", a)}, {"c": ("f32", 64)})["c"], a.astype(np.float32))


def test_composed():
    a = np.abs(numbers("f32", 64)) + np.float32(0.5)
    found = vector(
        """\
        m = pto.pset_b32("ALL")
        x = pto.vlds(a, 0)
        for k, v in enumerate((pto.vrec(x, m), pto.vrsqrt(x, m), pto.vsubs(x, 2.0, m), pto.vsubrelu(x, pto.vbr(pto.f32(3.0)), m))):
            pto.vsts(v, c, k * 64, m)
        """,
        {"a": ("f32", a)},
        {"c": ("f32", 256)},
    )["c"].reshape(4, 64)
    np.testing.assert_allclose(found[0], 1 / a, rtol=3e-7)
    np.testing.assert_allclose(found[1], 1 / np.sqrt(a), rtol=3e-7)
    same(found[2], a - np.float32(2))
    same(found[3], np.maximum(a - np.float32(3), np.float32(0)))


@pytest.mark.parametrize("surface", HEADS)
def test_scalar_in_vector_function(surface: str):
    a = numbers("f32", 64)
    load = "scalar.load" if surface == "2026-08" else "pto.load"
    body = f'm = pto.pset_b32("ALL")\npto.vsts(pto.vmuls(pto.vlds(a, 0), {load}(a, 3), m), c, 0, m)'
    same(vector(body, {"a": ("f32", a)}, {"c": ("f32", 64)}, surface)["c"], a * a[3])


def test_misaligned_load_names_its_line():
    with pytest.raises(PtoError) as info:
        vector("pto.vlds(a, 3)", {"a": ("f32", np.zeros(128))}, {})
    assert "vlds" in str(info.value)
