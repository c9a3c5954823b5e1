"""Vector arithmetic, comparison, selection and shifts against NumPy, for any bits in the lanes and any predicate."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from engine_harness import NUMPY, bits, in_ub, lanes
from exact_rounding import rounded_float
from hypothesis import given
from hypothesis import strategies as st
from property_inputs import FLOATS, INTEGERS, agree, arrays, examples, masks

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

MASK = "m = pto.vcmps(pto.vlds(k, 0), 0, pto.pset_b{b}('ALL'), 'ne')\n"
FULL = "w = pto.pset_b{b}('ALL')\n"


def selector(mask: np.ndarray, dtype: str) -> tuple[str, np.ndarray]:
    kind = f"ui{bits(dtype)}"
    return kind, mask.astype(NUMPY[kind])


def rounded_through_f32(dtype: str, function, *operands: np.ndarray) -> np.ndarray:
    """What a lane holds: computed in f32 and rounded to its type."""
    return np.asarray(function(*(x.astype(np.float32) for x in operands)), np.float32).astype(NUMPY[dtype])


def extremum(a: np.ndarray, b: np.ndarray, largest: bool) -> np.ndarray:
    """NaN wins; +0 is greater than -0."""
    x, y = a.astype(np.float32), b.astype(np.float32)
    picked = np.where((x > y) == largest, x, y)
    equal = x == y
    sign = np.signbit(x) & np.signbit(y) if largest else np.signbit(x) | np.signbit(y)
    zeros = np.where(sign, np.float32(-0.0), np.float32(0.0))
    picked = np.where(equal & (x == 0), zeros, np.where(equal, x, picked))
    return np.where(np.isnan(x) | np.isnan(y), np.float32(np.nan), picked).astype(a.dtype)


def binary_models(dtype: str) -> dict:
    if dtype in FLOATS:
        return {
            "vadd": lambda a, b: rounded_through_f32(dtype, np.add, a, b),
            "vsub": lambda a, b: rounded_through_f32(dtype, np.subtract, a, b),
            "vmul": lambda a, b: rounded_through_f32(dtype, np.multiply, a, b),
            "vmax": lambda a, b: extremum(a, b, True),
            "vmin": lambda a, b: extremum(a, b, False),
        }
    models = {"vadd": np.add, "vsub": np.subtract, "vmax": np.maximum, "vmin": np.minimum}
    models |= {"vand": np.bitwise_and, "vor": np.bitwise_or, "vxor": np.bitwise_xor}
    return models if bits(dtype) == 8 else {**models, "vmul": np.multiply}


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_binary_operations(dtype):
    n, models = lanes(dtype), binary_models(dtype)
    body = (MASK + FULL).format(b=bits(dtype)) + "x, y = pto.vlds(a, 0), pto.vlds(b, 0)\n"
    body += "".join(f"pto.vsts(pto.{name}(x, y, m), c, {i * n}, w)\n" for i, name in enumerate(models))

    @examples(20)
    @given(arrays(dtype, n), arrays(dtype, n), masks(n))
    def check(a, b, mask):
        found = in_ub(body, {"a": (dtype, a), "b": (dtype, b), "k": selector(mask, dtype)}, {"c": (dtype, n * len(models))})["c"]
        for i, (name, model) in enumerate(models.items()):
            agree(found[i * n :][:n], np.where(mask, model(a, b), np.zeros(1, NUMPY[dtype])), name)

    check()


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_operations_with_a_scalar(dtype):
    n = lanes(dtype)
    models = {name + "s": model for name, model in binary_models(dtype).items() if name in ("vadd", "vmul", "vmax", "vmin")}
    body = (MASK + FULL).format(b=bits(dtype)) + "x, y = pto.vlds(a, 0), pto.load(b, 0)\n"
    body += "".join(f"pto.vsts(pto.{name}(x, y, m), c, {i * n}, w)\n" for i, name in enumerate(models))

    @examples(15)
    @given(arrays(dtype, n), arrays(dtype, 1), masks(n))
    def check(a, b, mask):
        found = in_ub(body, {"a": (dtype, a), "b": (dtype, b), "k": selector(mask, dtype)}, {"c": (dtype, n * len(models))})["c"]
        for i, (name, model) in enumerate(models.items()):
            agree(found[i * n :][:n], np.where(mask, model(a, np.repeat(b, n)), np.zeros(1, NUMPY[dtype])), name)

    check()


def unary_models(dtype: str) -> dict:
    kind = np.dtype(NUMPY[dtype])
    models = {}
    if dtype in ("f32", "f16"):
        sign = np.array(1 << (bits(dtype) - 1), f"u{kind.itemsize}")
        models["vabs"] = lambda a: (a.view(sign.dtype) & ~sign).view(kind)
        models["vneg"] = lambda a: (a.view(sign.dtype) ^ sign).view(kind)
        models["vrelu"] = lambda a: np.where(np.isnan(a), a, np.where(a > 0, a, kind.type(0)))
    elif kind.kind == "i":
        models |= {"vabs": np.abs, "vneg": np.negative}
        if dtype == "i32":
            models["vrelu"] = lambda a: np.maximum(a, 0)
    if dtype not in FLOATS:
        models["vnot"] = np.invert
    return models


@pytest.mark.parametrize("dtype", ["f32", "f16", *INTEGERS])
def test_unary_operations(dtype):
    n, models = lanes(dtype), unary_models(dtype)
    body = (MASK + FULL).format(b=bits(dtype)) + "x = pto.vlds(a, 0)\n"
    body += "".join(f"pto.vsts(pto.{name}(x, m), c, {i * n}, w)\n" for i, name in enumerate(models))

    @examples(15)
    @given(arrays(dtype, n), masks(n))
    def check(a, mask):
        found = in_ub(body, {"a": (dtype, a), "k": selector(mask, dtype)}, {"c": (dtype, n * len(models))})["c"]
        for i, (name, model) in enumerate(models.items()):
            agree(found[i * n :][:n], np.where(mask, model(a), np.zeros(1, NUMPY[dtype])), name)

    check()


COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_comparison_and_selection(dtype):
    """Under a seed predicate; the selection takes its own."""
    n = lanes(dtype)
    body = (MASK + FULL).format(b=bits(dtype)) + "x, y, s = pto.vlds(a, 0), pto.vlds(b, 0), pto.load(b, 0)\n"
    for i, how in enumerate(COMPARE):
        body += f"pto.vsts(pto.vsel(x, y, pto.vcmp(x, y, m, '{how}')), c, {2 * i * n}, w)\n"
        body += f"pto.vsts(pto.vsel(x, y, pto.vcmps(x, s, m, '{how}')), c, {(2 * i + 1) * n}, w)\n"

    @examples(15)
    @given(arrays(dtype, n), arrays(dtype, n), masks(n), st.booleans())
    def check(a, b, mask, alike):
        b = np.where(np.arange(n) % 3 == 0, a, b) if alike else b
        found = in_ub(body, {"a": (dtype, a), "b": (dtype, b), "k": selector(mask, dtype)}, {"c": (dtype, n * 12)})["c"].reshape(6, 2, n)
        for i, (how, compare) in enumerate(COMPARE.items()):
            agree(found[i, 0], np.where(mask & compare(a, b), a, b), f"vcmp {how}")
            agree(found[i, 1], np.where(mask & compare(a, b[:1]), a, b), f"vcmps {how}")

    check()


def shifted_left(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """An amount of at least the width gives 0; a signed value keeps its sign bit otherwise."""
    width = 8 * a.itemsize
    out = []
    for x, n in zip(a.tolist(), amount.tolist(), strict=True):
        y = (x << n) % 2**width if n < width else 0
        if a.dtype.kind == "i":
            y = 0 if n >= width else y % 2 ** (width - 1) + (2 ** (width - 1) if x < 0 else 0)
        out.append(y)
    return np.array(out, np.uint64).astype(f"u{a.itemsize}").view(a.dtype)


def shifted_right(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
    return np.array([x >> n for x, n in zip(a.tolist(), amount.tolist(), strict=True)], np.int64).astype(a.dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype):
    n, width = lanes(dtype), bits(dtype)
    body = (MASK + FULL).format(b=width) + "x, y, s = pto.vlds(a, 0), pto.vlds(b, 0), pto.cast(pto.load(s, 0), pto.i16)\n"
    for i, call in enumerate(("vshl(x, y, m)", "vshr(x, y, m)", "vshls(x, s, m)", "vshrs(x, s, m)")):
        body += f"pto.vsts(pto.{call}, c, {i * n}, w)\n"

    @examples(15)
    @given(arrays(dtype, n), st.integers(0, 2**32 - 1), st.integers(0, width + 3), masks(n))
    def check(a, seed, amount, mask):
        amounts = np.random.default_rng(seed).integers(0, width + 4, n).astype(NUMPY[dtype])
        inputs = {"a": (dtype, a), "b": (dtype, amounts), "s": ("i32", [amount]), "k": selector(mask, dtype)}
        found = in_ub(body, inputs, {"c": (dtype, 4 * n)})["c"].reshape(4, n)
        same = np.full(n, amount)
        expected = [shifted_left(a, amounts), shifted_right(a, amounts), shifted_left(a, same), shifted_right(a, same)]
        for i, name in enumerate(("vshl", "vshr", "vshls", "vshrs")):
            agree(found[i], np.where(mask, expected[i], 0), name)

    check()


def fused_exactly(dtype: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c, rounded once."""
    x, y, z = (v.astype(np.float64) for v in (a, b, c))
    plain = x * y + z
    out = plain.astype(NUMPY[dtype])
    for i in np.flatnonzero(np.isfinite(plain) & (plain != 0)):
        out[i] = rounded_float(Fraction(x[i]) * Fraction(y[i]) + Fraction(z[i]), dtype)
    return out


@pytest.mark.parametrize("dtype", FLOATS)
def test_fused_multiply_add(dtype):
    n = lanes(dtype)
    names = ("vmula", "vmadd") if dtype == "bf16" else ("vmula", "vmadd", "vaxpy")
    body = (MASK + FULL).format(b=bits(dtype)) + "x, y, z, s = pto.vlds(a, 0), pto.vlds(b, 0), pto.vlds(d, 0), pto.load(d, 0)\n"
    calls = {"vmula": "pto.vmula(x, y, z, m)", "vmadd": "pto.vmadd(x, y, z, m)", "vaxpy": "pto.vaxpy(s, x, y, m)"}
    body += "".join(f"pto.vsts({calls[name]}, c, {i * n}, w)\n" for i, name in enumerate(names))

    @examples(12)
    @given(arrays(dtype, n), arrays(dtype, n), arrays(dtype, n), masks(n))
    def check(a, b, d, mask):
        inputs = {"a": (dtype, a), "b": (dtype, b), "d": (dtype, d), "k": selector(mask, dtype)}
        found = in_ub(body, inputs, {"c": (dtype, len(names) * n)})["c"].reshape(-1, n)
        expected = {"vmula": (b, d, a), "vmadd": (a, b, d), "vaxpy": (np.repeat(d[:1], n), a, b)}
        for i, name in enumerate(names):
            agree(found[i], np.where(mask, fused_exactly(dtype, *expected[name]), np.zeros(1, NUMPY[dtype])), name)

    check()


@pytest.mark.parametrize("dtype", ["i16", "i32", "ui16", "ui32"])
def test_integer_multiply_add(dtype):
    n = lanes(dtype)
    body = (MASK + FULL).format(b=bits(dtype)) + "pto.vsts(pto.vmula(pto.vlds(a, 0), pto.vlds(b, 0), pto.vlds(d, 0), m), c, 0, w)\n"

    @examples(12)
    @given(arrays(dtype, n), arrays(dtype, n), arrays(dtype, n), masks(n))
    def check(a, b, d, mask):
        inputs = {"a": (dtype, a), "b": (dtype, b), "d": (dtype, d), "k": selector(mask, dtype)}
        agree(in_ub(body, inputs, {"c": (dtype, n)})["c"], np.where(mask, a + b * d, 0), "vmula")

    check()


@pytest.mark.parametrize("dtype", ["i32", "ui32"])
def test_carries_and_wide_products(dtype):
    body = (
        MASK.format(b=32)
        + FULL.format(b=32)
        + f"""
x, y, some = pto.vlds(a, 0), pto.vlds(b, 0), pto.vcmps(pto.vlds(h, 0), 0, w, 'ne')
one, zero = pto.vbr(pto.const(1, dtype=pto.{dtype})), pto.vbr(pto.const(0, dtype=pto.{dtype}))
for i, (v, p) in enumerate((pto.vaddc(x, y, m), pto.vsubc(x, y, m), pto.vaddcs(x, y, some, m), pto.vsubcs(x, y, some, m))):
    pto.vsts(v, c, i * 64, w)
    pto.vsts(pto.vsel(one, zero, p), d, i * 64, w)
low, high = pto.vmull(x, y, m)
pto.vsts(low, c, 256, w)
pto.vsts(high, d, 256, w)
"""
    )

    @examples(20)
    @given(arrays(dtype, 64), arrays(dtype, 64), masks(64), masks(64))
    def check(a, b, mask, carry):
        inputs = {"a": (dtype, a), "b": (dtype, b), "k": selector(mask, dtype), "h": selector(carry, dtype)}
        found = in_ub(body, inputs, {"c": (dtype, 320), "d": (dtype, 320)})
        u, v, some = a.view(np.uint32).astype(object), b.view(np.uint32).astype(object), carry.astype(int).astype(object)
        product = a.astype(object) * b.astype(object) % 2**64
        for i, exact in enumerate((u + v, u - v + 2**32, u + v + some, u - v - (1 - some) + 2**32, product)):
            kept = np.where(mask, exact, 0)
            agree(found["c"][64 * i :][:64].view(np.uint32), (kept % 2**32).astype(np.uint32), f"low words {i}")
            agree(found["d"][64 * i :][:64].view(np.uint32), (kept // 2**32).astype(np.uint32), f"carries or high words {i}")

    check()


def tree(values: np.ndarray, dtype: str) -> np.ndarray:
    """Sums of neighbours, again and again, each rounded to the lane's type."""
    while values.shape[-1] > 1:
        even, odd = values[..., 0::2], values[..., 1::2]
        values = rounded_through_f32(dtype, np.add, even, odd) if dtype in FLOATS else (even + odd).astype(values.dtype)
    return values[..., 0]


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "ui32", "i16", "ui16"])
def test_reductions(dtype):
    """Of a register and of its 32-byte groups; inactive lanes count as nothing."""
    n, kind = lanes(dtype), np.dtype(NUMPY[dtype])
    group = 32 // kind.itemsize
    sums = bits(dtype) == 32 or dtype in FLOATS  # 16-bit integers add into wider ones
    names = [name for name in ("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin") if sums or "add" not in name]
    body = (MASK + FULL).format(b=bits(dtype)) + "x = pto.vlds(a, 0)\n"
    body += "".join(f"pto.vsts(pto.{name}(x, m), c, {i * n}, w)\n" for i, name in enumerate(names))
    low, high = (-np.inf, np.inf) if dtype in FLOATS else (np.iinfo(kind).min, np.iinfo(kind).max)

    def extreme(values, mask, largest):
        filled = np.where(mask, values, np.array(low if largest else high, kind))
        if dtype in FLOATS and np.isnan(filled).any():
            return kind.type(np.nan), int(np.flatnonzero(np.isnan(filled))[0])
        at = int(filled.argmax() if largest else filled.argmin())
        return filled[at], at

    @examples(20)
    @given(arrays(dtype, n), masks(n))
    def check(a, mask):
        if dtype in FLOATS:
            a = a + kind.type(0)  # which of the zeros comes first is tested with the extrema
        found = in_ub(body, {"a": (dtype, a), "k": selector(mask, dtype)}, {"c": (dtype, n * len(names))})["c"].reshape(-1, n)
        active = np.where(mask, a, np.zeros(1, kind))
        for name, got in zip(names, found, strict=True):
            expected = np.zeros(n, kind)
            if name == "vcadd":
                expected[0] = tree(active, dtype)
            elif name == "vcgadd":
                expected[:8] = tree(active.reshape(8, group), dtype)
            elif name in ("vcmax", "vcmin"):
                expected[0], at = extreme(a, mask, name == "vcmax")
                expected.view(f"u{kind.itemsize}")[1] = at if mask.any() else 0
            else:
                rows = zip(a.reshape(8, group), mask.reshape(8, group), strict=True)
                expected[:8] = [extreme(row, some, name == "vcgmax")[0] for row, some in rows]
            agree(got, expected, name)

    check()
