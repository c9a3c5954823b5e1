"""Float functions in SIMT code: error against float64 over edge and random values, special values, C names."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
import tvm
from engine_harness import flushed
from simt_kernels import SURFACES, mapped, ulps
from tir_builder import op
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.registry import OP_RULES
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import UnsupportedError

RNG = np.random.default_rng(1)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 10.0, 0.1], np.float32)
SMALL = np.array([1.2e-38, -1.2e-38, 1e-30, -1e-30, 1e-10, -1e-10, 1e-4, -1e-4], np.float32)


def spread(low: float, high: float, count: int = 4000) -> np.ndarray:
    return RNG.uniform(low, high, count).astype(np.float32)


def logarithmic(low: float, high: float, count: int = 4000) -> np.ndarray:
    return np.exp(RNG.uniform(math.log(low), math.log(high), count)).astype(np.float32)


def both_signs(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, -values])


POSITIVE = np.concatenate([SPECIAL, SMALL, logarithmic(1.2e-38, 3.4e38), spread(0.5, 2.0)])
ANY = np.concatenate([SPECIAL, SMALL, spread(-12, 12), both_signs(logarithmic(1e-30, 100, 1000))])
EXPONENTS = np.concatenate(
    [
        SPECIAL,
        SMALL,
        spread(-87, 88),
        spread(-1, 1),
        np.array([127.99, 128.0, -125.9, 88.8, 38.5, -37.8, 200, -200, 1e30, -1e30], np.float32),
    ]
)

UNARY = {  # operation: (reference, values, bound in ulp)
    "exp": (np.exp, EXPONENTS, 1.0),
    "exp2": (np.exp2, np.concatenate([EXPONENTS, spread(-126, 128)]), 3.0),
    "exp10": (lambda x: 10.0**x, np.concatenate([EXPONENTS, spread(-37, 38.5)]), 3.0),
    "log": (np.log, POSITIVE, 1.0),
    "log2": (np.log2, POSITIVE, 3.0),
    "log10": (np.log10, POSITIVE, 3.0),
    "log1p": (np.log1p, np.concatenate([POSITIVE, spread(-1, 1), both_signs(logarithmic(1e-30, 0.5))]), 4.0),
    "sqrt": (np.sqrt, POSITIVE, 0.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE, 1.5),
    "sin": (np.sin, np.concatenate([SPECIAL, SMALL, spread(-100, 100)]), 1.0),
    "cos": (np.cos, np.concatenate([SPECIAL, SMALL, spread(-100, 100)]), 1.0),
    "tan": (np.tan, np.concatenate([SPECIAL, SMALL, spread(-100, 100)]), 4.0),
    "tanh": (np.tanh, np.concatenate([ANY, spread(-0.6, 0.6)]), 3.0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), ANY, 3.0),
    "erf": (np.vectorize(math.erf), np.concatenate([ANY, spread(-1, 1), spread(-4, 4)]), 3.0),
}
EXACT = {
    "fabs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "nearbyint": np.rint,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
}
ROUNDED = np.concatenate(
    [SPECIAL, SMALL, np.arange(-8, 8.25, 0.25, dtype=np.float32), spread(-100, 100), np.array([2**24, -(2.0**24), 3e38], np.float32)]
)
C_NAMES = {
    "exp": "expf", "exp2": "exp2f", "exp10": "exp10f", "log": "logf", "log2": "log2f", "log10": "log10f", "log1p": "log1pf",
    "sqrt": "sqrtf", "rsqrt": "rsqrtf", "sin": "sinf", "cos": "cosf", "tan": "tanf", "tanh": "tanhf", "erf": "erff",
    "fabs": "fabsf", "floor": "floorf", "ceil": "ceilf", "trunc": "truncf", "nearbyint": "nearbyintf", "round": "roundf",
}  # fmt: skip


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", UNARY)
def test_error_in_float32(surface, name):
    reference, values, bound = UNARY[name]
    got = mapped(surface, {"a": values}, "float32", lambda x: op(f"tirx.{name}", "float32", x))
    with np.errstate(all="ignore"):
        exact = reference(values.astype(np.float64))
    error = ulps(got, exact)
    worst = int(np.argmax(error))
    assert error[worst] <= bound, f"{name}({values[worst]!r}) = {got[worst]!r}, not {exact[worst]!r}: {error[worst]:.2f} ulp"


ERRING = {"sqrt": 1.0, "rsqrt": 3.0}
"""Bounds that are tighter where the functions an expansion is made of are correctly rounded."""


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", UNARY)
def test_error_when_the_functions_of_the_hardware_err(name, seed, monkeypatch):
    """Each by up to what is documented."""
    monkeypatch.setenv("TILELANG_PTO_ULP", f"perturb:{seed}")
    reference, values, bound = UNARY[name]
    got = mapped("2026-09", {"a": values}, "float32", lambda x: op(f"tirx.{name}", "float32", x))
    with np.errstate(all="ignore"):
        error = ulps(got, reference(values.astype(np.float64)))
    worst = int(np.argmax(error))
    assert error[worst] <= ERRING.get(name, bound), f"{name}({values[worst]!r}): {error[worst]:.2f} ulp"


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", UNARY)
def test_error_in_halves(surface, dtype, name):
    """Every expansion goes through float32, so one rounding is what is lost; functions of the hardware take subnormal halves as zero."""
    reference, values, _ = UNARY[name]
    kind = np.dtype(dtype)
    with np.errstate(all="ignore"):
        values = values.astype(kind)
        exact = reference((flushed(values) if dtype == "float16" and name in ("exp", "log", "sqrt") else values).astype(np.float64))
    got = mapped(surface, {"a": values}, kind, lambda x: op(f"tirx.{name}", dtype, x))
    error = ulps(got, exact)
    worst = int(np.argmax(error))
    assert error[worst] <= 0.52, f"{name}({values[worst]!r}) = {got[worst]!r}, not {exact[worst]!r}: {error[worst]:.2f} ulp"


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", EXACT)
def test_exact_functions(surface, dtype, name):
    kind = np.dtype(dtype)
    with np.errstate(over="ignore"):
        values = ROUNDED.astype(kind)
    got = mapped(surface, {"a": values}, kind, lambda x: op(f"tirx.{name}", dtype, x)).astype(np.float64)
    exact = EXACT[name](values.astype(np.float64))
    np.testing.assert_array_equal(got, exact)
    numbers = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(exact[numbers]))


@pytest.mark.parametrize("name", C_NAMES)
@pytest.mark.parametrize("surface", SURFACES)
def test_c_names_give_the_same_text(surface, name):
    from tir_builder import elementwise

    def text(make):
        return emit_module(elementwise({"a": "float32"}, "float32", 32, make), surface=surface_of(surface)).text

    direct = text(lambda x: op(f"tirx.{name}", "float32", x))
    assert direct == text(lambda x: op("tirx.call_pure_extern", "float32", C_NAMES[name], x))
    assert f"extern:h{name}" in OP_RULES or name == "nearbyint"


@pytest.mark.parametrize("surface", SURFACES)
def test_signed_zeros(surface):
    values = np.array([0.0, -0.0], np.float32)
    for name in ("tanh", "erf", "log1p", "sin", "tan", "sqrt", "trunc"):
        got = mapped(surface, {"a": values}, "float32", lambda x, name=name: op(f"tirx.{name}", "float32", x))
        assert np.signbit(got).tolist() == [False, True], name


@pytest.mark.parametrize("surface", SURFACES)
def test_power(surface):
    bases = np.array([2.0, 0.5, 10.0, 1.0, -2.0, -8.0, 0.0, np.inf, 1.5, 3.0], np.float32)
    a = np.concatenate([bases.repeat(10), logarithmic(0.01, 100)])
    b = np.concatenate([np.tile(np.array([0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, 10.0, 31.0, np.inf], np.float32), 10), spread(-10, 10)])
    got = mapped(surface, {"a": a, "b": b}, "float32", lambda x, y: op("tirx.pow", "float32", x, y))
    with np.errstate(all="ignore"):
        exact = a.astype(np.float64) ** b.astype(np.float64)
    assert ulps(got, exact).max() <= 2.0


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_fused_multiply_add_rounds_once(surface, dtype):
    kind = np.dtype(dtype)
    a, b = (RNG.uniform(-2, 2, 2000).astype(kind) for _ in range(2))
    with np.errstate(all="ignore"):
        c = (-(a.astype(np.float64) * b.astype(np.float64))).astype(kind)  # what is left is the rounding error of the product
    got = mapped(surface, {"a": a, "b": b, "c": c}, kind, lambda x, y, z: op("tirx.fma", dtype, x, y, z))
    exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(got.astype(np.float64), exact.astype(kind).astype(np.float64))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_classification(surface, dtype, name):
    kind = np.dtype(dtype)
    values = np.array([0.0, -0.0, 1.5, -3.0, np.inf, -np.inf, np.nan, 6e4, 1e-7], np.float32).astype(kind)
    got = mapped(surface, {"a": values}, "int32", lambda x: op("tirx.call_pure_extern", "int32", name, x))
    np.testing.assert_array_equal(got.astype(bool), getattr(np, name)(values.astype(np.float64)))


@pytest.mark.parametrize("surface", SURFACES)
def test_clamp_keeps_not_a_number(surface):
    a = np.array([0.0, -5.0, 5.0, np.nan, np.inf, -np.inf, 1.0, 1.0], np.float32)
    low = np.array([-1.0, -1.0, -1.0, -1.0, -1.0, -1.0, np.nan, -1.0], np.float32)
    high = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, np.nan], np.float32)
    got = mapped(surface, {"a": a, "low": low, "high": high}, "float32", lambda x, y, z: op("tl.clamp", "float32", x, y, z))
    np.testing.assert_array_equal(got, np.array([0.0, -1.0, 1.0, np.nan, 2.0, -1.0, np.nan, np.nan], np.float32))
    i = np.array([-7, 0, 3, 9, -(2**31), 2**31 - 1], np.int32)
    got = mapped(surface, {"a": i}, "int32", lambda x: op("tl.clamp", "int32", x, tirx.IntImm("int32", -2), tirx.IntImm("int32", 5)))
    np.testing.assert_array_equal(got, np.clip(i, -2, 5))


CASTS = [
    (source, target)
    for source in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
    for target in ("float32", "float16", "bfloat16")
] + [("float32", "float16"), ("float16", "float32"), ("float32", "bfloat16"), ("bfloat16", "float32"), ("float16", "bfloat16")]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("source", "target"), CASTS)
def test_casts_to_floats_round_to_nearest(surface, source, target):
    kind = np.dtype(source)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        values = np.concatenate(
            [np.array([0, 1, info.max, info.min, info.max // 2], kind), RNG.integers(info.min, info.max, 500, kind, True)]
        )
    elif source == "bool":
        values = np.array([False, True, True])
    else:
        values = np.concatenate([SPECIAL, SMALL, spread(-70000, 70000), both_signs(logarithmic(1e-8, 3e38))])
        with np.errstate(all="ignore"):
            values = values.astype(kind)
    got = mapped(surface, {"a": values}, target, lambda x: tirx.Cast(target, x))
    with np.errstate(all="ignore"):
        wide = values.astype(np.float32) if kind.itemsize == 8 and target != "float32" else values  # those go through float32
        expected = wide.astype(np.dtype(target))
    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("target", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"])
def test_casts_to_integers_truncate(surface, source, target):
    low, high = max(np.iinfo(target).min, -(2**31)), min(np.iinfo(target).max, 2**32)
    top = min(high, 60000) if source == "float16" else high
    values = np.concatenate([[0.0, -0.0, 0.9, 1.5, 99.99], RNG.uniform(max(low, -60000) if source == "float16" else low, top * 0.99, 500)])
    if np.iinfo(target).min < 0:
        values = np.concatenate([values, [-0.9, -1.5, -99.5]])
    values = values.astype(np.dtype(source))
    got = mapped(surface, {"a": values}, target, lambda x: tirx.Cast(target, x))
    np.testing.assert_array_equal(got, np.trunc(values.astype(np.float64)).astype(target))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "floor", "tanh", "erf", "sin"])
def test_scalar_unit_refuses_with_advice(name):
    """In front of a vector function 2026-08 has no float functions, 2026-09 has only some."""
    from tir_builder import pointer, vector_kernel, view

    a, out = pointer("a", "float32"), pointer("out", "float32")
    zero = tirx.IntImm("int32", 0)
    value = op(f"tirx.{name}", "float32", tirx.BufferLoad(view(a, "float32"), [zero]))
    mod = vector_kernel("map", [a, out], lambda _: tirx.BufferStore(view(out, "float32"), value, [zero]))
    with pytest.raises(UnsupportedError) as caught:
        emit_module(mod, surface=surface_of("2026-08"))
    assert "SIMT vector function" in str(caught.value) and "T.SimtVF" in str(caught.value)


def test_bfloat16_is_known():
    assert np.dtype("bfloat16") == ml_dtypes.bfloat16


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("surface", SURFACES)
def test_infinity_is_greater_than_every_finite_number(surface, dtype):
    """``-infinity`` is what a running maximum starts from, so both signs go through a minimum and a maximum."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    values = np.array([0.0, -0.0, -3.5, float(ml_dtypes.finfo(kind).max), float(ml_dtypes.finfo(kind).min)], kind)
    limit = tirx.Call(dtype, tvm.ir.Op.get("tl.infinity"), [tirx.StringImm(dtype)])
    for sign, function in ((1, tirx.Max), (-1, tirx.Min)):
        got = mapped(surface, {"a": values}, kind, lambda x, sign=sign, f=function: f(x, limit if sign > 0 else -limit))
        np.testing.assert_array_equal(got.astype(np.float32), np.full(len(values), sign * np.inf, np.float32))
    kept = mapped(surface, {"a": values}, kind, lambda x: tirx.Max(x, -limit))
    np.testing.assert_array_equal(kept.astype(np.float32), values.astype(np.float32))
