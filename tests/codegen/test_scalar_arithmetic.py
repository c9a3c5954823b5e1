"""Scalar arithmetic keeps TIR's meaning: emitted, run on the simulator, compared with integer arithmetic of Python and NumPy.

Operations: bitwise_and, bitwise_or, bitwise_xor.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tir_builder import elementwise, op
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")
EDGES = {
    "int32": [0, 1, -1, 2, -2, 3, -3, 7, -7, 31, -32, 63, -64, 100, -101, 2**31 - 1, -(2**31), 2**30, -(2**30) - 1],
    "int64": [0, 1, -1, 5, -5, 2**31, -(2**31), 2**62, -(2**62) - 3, 2**63 - 1, -(2**63)],
    "uint32": [0, 1, 2, 3, 7, 31, 32, 63, 2**31 - 1, 2**31, 2**31 + 5, 2**32 - 1],
}


def evaluate(surface: str, inputs: dict[str, np.ndarray], output: str, function: Callable) -> np.ndarray:
    """Result of a map kernel over the inputs on the simulator."""
    count = len(next(iter(inputs.values())))
    mod = elementwise({name: str(array.dtype) for name, array in inputs.items()}, output, count, function)
    emitted = emit_module(mod, surface=surface_of(surface))
    require_clean(emitted.text, surface_of(surface))
    out = np.zeros(count, dtype=bool if output == "bool" else output)
    run(emitted.text, "map", *inputs.values(), out)
    return out


def pairs(dtype: str, nonzero: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of edge values."""
    values = EDGES[dtype]
    couples = [(a, b) for a in values for b in values if b or not nonzero]
    couples = [(a, b) for a, b in couples if not (nonzero and b == -1 and a == min(values))]
    return np.array([a for a, _ in couples], dtype), np.array([b for _, b in couples], dtype)


def truncating(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


DIVISIONS = {
    "floordiv": (tirx.FloorDiv, lambda a, b: a // b),
    "floormod": (tirx.FloorMod, lambda a, b: a % b),
    "truncdiv": (tirx.Div, truncating),
    "truncmod": (tirx.Mod, lambda a, b: a - truncating(a, b) * b),
}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_of_runtime_values(surface, dtype, name):
    node, model = DIVISIONS[name]
    a, b = pairs(dtype, nonzero=True)
    got = evaluate(surface, {"a": a, "b": b}, dtype, node)
    np.testing.assert_array_equal(got, np.array([model(int(x), int(y)) for x, y in zip(a, b, strict=True)], dtype))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 64, 2**30, -1, -3, -64])
@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_by_constants(surface, divisor, name):
    node, model = DIVISIONS[name]
    a = np.array([v for v in EDGES["int32"] if not (divisor == -1 and v == -(2**31))], "int32")
    got = evaluate(surface, {"a": a}, "int32", lambda x: node(x, tirx.IntImm("int32", divisor)))
    np.testing.assert_array_equal(got, np.array([model(int(x), divisor) for x in a], "int32"))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
@pytest.mark.parametrize("amount", [0, 1, 3, 5, 30, 31])
def test_shift_right_by_constant(surface, dtype, amount):
    a = np.array(EDGES[dtype], dtype)
    got = evaluate(surface, {"a": a}, dtype, lambda x: op("tirx.shift_right", dtype, x, tirx.IntImm(dtype, amount)))
    np.testing.assert_array_equal(got, a >> np.array(amount, dtype))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("name", ["shift_left", "shift_right"])
def test_shift_by_runtime_amount(surface, dtype, name):
    a = np.array([v for v in EDGES[dtype] for _ in range(4)], dtype)
    amounts = np.array([0, 1, 7, 31] * len(EDGES[dtype]), dtype)
    got = evaluate(surface, {"a": a, "b": amounts}, dtype, lambda x, n: op(f"tirx.{name}", dtype, x, n))
    model = operator.lshift if name == "shift_left" else operator.rshift
    np.testing.assert_array_equal(got, model(a, amounts))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("amount", [0, 1, 4, 30, 31])
def test_shift_left_by_constant_wraps(surface, amount):
    a = np.array(EDGES["int32"], "int32")
    got = evaluate(surface, {"a": a}, "int32", lambda x: op("tirx.shift_left", "int32", x, tirx.IntImm("int32", amount)))
    np.testing.assert_array_equal(got, a << amount)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_respect_signedness(surface, dtype, name):
    node = {"lt": tirx.LT, "le": tirx.LE, "gt": tirx.GT, "ge": tirx.GE, "eq": tirx.EQ, "ne": tirx.NE}[name]
    a, b = pairs(dtype)
    got = evaluate(surface, {"a": a, "b": b}, "int32", lambda x, y: tirx.Cast("int32", node(x, y)))
    np.testing.assert_array_equal(got.astype(bool), getattr(operator, name)(a, b))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32"])
def test_min_max_select(surface, dtype):
    values = EDGES.get(dtype, [0.0, -0.5, 1.5, -3e38, 3e38, 1e-40, math.inf, -math.inf])
    a = np.array([x for x in values for _ in values], dtype)
    b = np.array([y for _ in values for y in values], dtype)
    np.testing.assert_array_equal(evaluate(surface, {"a": a, "b": b}, dtype, tirx.Min), np.minimum(a, b))
    np.testing.assert_array_equal(evaluate(surface, {"a": a, "b": b}, dtype, tirx.Max), np.maximum(a, b))
    got = evaluate(surface, {"a": a, "b": b}, dtype, lambda x, y: tirx.Select(x < y, x, y))
    np.testing.assert_array_equal(got, np.where(a < b, a, b))


CASTS = [("int32", "int64"), ("int64", "int32"), ("uint32", "int64"), ("int32", "uint32"), ("uint32", "int32"), ("int32", "float32")]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("source", "target"), CASTS)
def test_casts(surface, source, target):
    a = np.array(EDGES[source], source)
    np.testing.assert_array_equal(evaluate(surface, {"a": a}, target, lambda x: tirx.Cast(target, x)), a.astype(target))


@pytest.mark.parametrize("surface", SURFACES)
def test_bitwise(surface):
    a, b = pairs("int32")
    for name in ("and", "or", "xor"):
        got = evaluate(surface, {"a": a, "b": b}, "int32", lambda x, y, name=name: op(f"tirx.bitwise_{name}", "int32", x, y))
        np.testing.assert_array_equal(got, getattr(np, f"bitwise_{name}")(a, b))
    np.testing.assert_array_equal(evaluate(surface, {"a": a}, "int32", lambda x: op("tirx.bitwise_not", "int32", x)), ~a)


@pytest.mark.parametrize("surface", SURFACES)
def test_guarded_arm_is_not_evaluated(surface):
    """A division by zero in the arm not taken must not happen."""
    a, b = pairs("int32")
    b = np.where(np.arange(len(b)) % 3 == 0, 0, np.where(b == 0, 5, b)).astype("int32")
    a = np.where(a == -(2**31), 1, a).astype("int32")

    def guarded(x, y):
        return tirx.if_then_else(y != 0, tirx.FloorDiv(x, y), tirx.IntImm("int32", -77))

    expected = [-77 if y == 0 else int(x) // int(y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(evaluate(surface, {"a": a, "b": b}, "int32", guarded), np.array(expected, "int32"))


@pytest.mark.parametrize("surface", SURFACES)
def test_short_circuit_guards_a_division(surface):
    a, b = pairs("int32")

    def both(x, y):
        return tirx.Cast("int32", tirx.And(y != 0, tirx.FloorMod(x, y) == 0))

    expected = [int(y != 0 and int(x) % int(y) == 0) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(evaluate(surface, {"a": a, "b": b}, "int32", both), np.array(expected, "int32"))


# -- random expressions --------------------------------------------------------------------------------------------------


def _wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


_LEAVES = st.one_of(
    st.just((lambda a, b: a, lambda a, b: a)),
    st.just((lambda a, b: b, lambda a, b: b)),
    st.integers(-100, 100).map(lambda n: (lambda a, b, n=n: tirx.IntImm("int32", n), lambda a, b, n=n: n)),
)


def _node(make, model):
    def combine(pair):
        (left, left_model), (right, right_model) = pair
        return (lambda a, b: make(left(a, b), right(a, b)), lambda a, b: model(left_model(a, b), right_model(a, b)))

    return combine


def _grow(children):
    both = st.tuples(children, children)
    small = st.sampled_from([1, 2, 3, 7, 16])

    def by_constant(make, model):
        def combine(pair):
            (inner, inner_model), n = pair
            return (lambda a, b: make(inner(a, b), tirx.IntImm("int32", n)), lambda a, b: model(inner_model(a, b), n))

        return st.tuples(children, small).map(combine)

    return st.one_of(
        both.map(_node(tirx.Add, lambda x, y: x + y)),
        both.map(_node(tirx.Sub, lambda x, y: x - y)),
        both.map(_node(tirx.Min, min)),
        both.map(_node(tirx.Max, max)),
        both.map(_node(lambda x, y: tirx.Select(tirx.LT(x, y), x, y), min)),
        by_constant(tirx.Mul, lambda x, y: x * y),
        *(by_constant(make, model) for make, model in DIVISIONS.values()),
    )


@settings(max_examples=60, deadline=None)
@given(st.recursive(_LEAVES, _grow, max_leaves=12), st.sampled_from(SURFACES))
def test_random_integer_expressions(expression, surface):
    """Whole expressions of small numbers (no overflow, which TIR leaves open for signed types)."""
    make, model = expression
    a = np.array([-9, -4, -1, 0, 1, 2, 5, 13], "int32")
    b = np.array([3, -3, 7, -1, 0, -20, 6, 11], "int32")
    expected = [model(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    if any(_wrap(value) != value for value in expected):
        return
    got = evaluate(surface, {"a": a, "b": b}, "int32", lambda x, y: tirx.Add(make(x, y), tirx.IntImm("int32", 0)))
    np.testing.assert_array_equal(got, np.array(expected, "int32"))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("name", "model"), [("fmaxf", np.fmax), ("fminf", np.fmin), ("fmax", np.fmax), ("fmin", np.fmin)])
def test_extrema_by_their_names_in_c(surface, name, model):
    """A number wins over NaN."""
    values = [0.0, -0.5, 1.5, -3e38, math.inf, -math.inf, math.nan]
    a = np.array([x for x in values for _ in values], "float32")
    b = np.array([y for _ in values for y in values], "float32")
    got = evaluate(surface, {"a": a, "b": b}, "float32", lambda x, y: tirx.call_pure_extern("float32", name, x, y))
    np.testing.assert_array_equal(got, model(a, b))
