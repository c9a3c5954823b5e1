"""Integers that overflow where the source says what comes of it: left shifts, remainders of the smallest numbers, arms not taken.

Elsewhere signed arithmetic is taken not to overflow. What is concluded from that must not reach a number that may.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tir_builder import elementwise, elementwise_body, immediate, op, sequence
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")
EDGES = np.array([-(2**31), 1 - 2**31, 5 - 2**31, -(2**30), -9, -1, 0, 1, 6, 2**28, 2**28 + 5, 2**29 - 1, 2**30, 2**31 - 1], "int32")


def int64(value):
    return tirx.Cast("int64", value) if not isinstance(value, int) else tirx.IntImm("int64", value)


def results(kernel, values: np.ndarray, dtype: str, surface: str) -> np.ndarray:
    """``out`` of a kernel made by ``elementwise`` or ``elementwise_body``."""
    out = np.zeros(len(values), dtype)
    run(emit_module(kernel, surface=surface_of(surface)).text, "map", values, out)
    return out


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_product_of_an_arm_not_taken_tells_nothing_of_a_shift(surface):
    """``x * 8`` may not overflow and is not negative; ``x << 3`` may be, although both are the same instruction."""

    def body(thread, loads, out):
        x, y = tirx.Var("x", "int32"), tirx.Var("y", "int32")
        quotient = tirx.Div(op("tirx.shift_left", "int32", x, 3), immediate(7))
        return sequence(
            tirx.Bind(x, op("tirx.bitwise_and", "int32", loads[0], 2**30 - 1)),
            tirx.Bind(y, tirx.Select(x < 100, x * 8, immediate(0))),
            tirx.BufferStore(out, quotient + tirx.Max(y, 1), [thread]),
        )

    def model(x: int) -> int:
        return truncated(wrapped(x << 3), 7) + max(1, x * 8 if x < 100 else 0)

    found = results(elementwise_body({"a": "int32"}, "int32", len(EDGES), body), EDGES, "int32", surface)
    assert found.tolist() == [model(int(a) & (2**30 - 1)) for a in EDGES]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("divisor", [7, -7, 100, 2**31 - 1])
@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_modulo_of_the_smallest_numbers(surface, divisor, dtype):
    """``x // 7 * 7`` is below the smallest number, ``x % 7`` is not; in 64 bits the product is what it is."""
    info = np.iinfo(dtype)
    divisor = min(divisor, info.max)
    values = np.array([info.min, info.min + 1, info.min + 6, -8, -1, 0, 5, info.max], dtype)

    def body(thread, loads, out):
        x, r = tirx.Var("x", dtype), tirx.Var("r", dtype)
        by = tirx.const(divisor, dtype)
        total = int64(r)
        if dtype != "int64":
            total += tirx.FloorDiv(int64(x), int64(divisor)) * int64(divisor) * int64(1000)
        return sequence(tirx.Bind(x, loads[0]), tirx.Bind(r, tirx.FloorMod(x, by)), tirx.BufferStore(out, total, [thread]))

    found = results(elementwise_body({"a": dtype}, "int64", len(values), body), values, "int64", surface)
    factor = 0 if dtype == "int64" else 1000
    assert found.tolist() == [int(x) % divisor + int(x) // divisor * divisor * factor for x in values]


@pytest.mark.parametrize("surface", SURFACES)
def test_offsets_that_wrap_are_not_computed_in_more_bits(surface):
    def body(thread, loads, out):
        w = tirx.Var("w", "int32")
        nothing = op("tirx.shift_left", "int32", op("tirx.shift_left", "int32", w, 30), 2)
        return tirx.For(w, immediate(0), immediate(4), tirx.ForKind.SERIAL, tirx.BufferStore(out, loads[0], [nothing + thread]))

    found = results(elementwise_body({"a": "int32"}, "int32", len(EDGES), body), EDGES, "int32", surface)
    np.testing.assert_array_equal(found, EDGES)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_remainder_by_zero_that_is_not_reached(surface):
    def guarded(x):
        small = op("tirx.bitwise_and", "int32", x, 15)
        return tirx.if_then_else(x == 12345, tirx.Mod(small, small - small) + x + 3, x)

    found = results(elementwise({"a": "int32"}, "int32", len(EDGES), guarded), EDGES, "int32", surface)
    np.testing.assert_array_equal(found, EDGES)


_DIVISORS = st.sampled_from([2, 3, 7, 64, 1000, -5])
_NUMBERS = st.recursive(
    st.just("x"),
    lambda inner: st.one_of(
        st.tuples(st.just("<<"), inner, st.integers(1, 31)),
        st.tuples(st.just(">>"), inner, st.integers(1, 31)),
        st.tuples(st.just("&"), inner, st.sampled_from([15, 255, 2**20 - 1, 2**30 - 1, 2**31 - 1])),
        st.tuples(st.sampled_from(["floor", "modulo", "quotient", "remainder"]), inner, _DIVISORS),
    ),
    max_leaves=4,
)
_MODELS = {
    "<<": lambda a, b: wrapped(a << b),
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "floor": lambda a, b: a // b,
    "modulo": lambda a, b: a % b,
    "quotient": truncated,
    "remainder": lambda a, b: a - truncated(a, b) * b,
}
_NODES = {"floor": tirx.FloorDiv, "modulo": tirx.FloorMod, "quotient": tirx.Div, "remainder": tirx.Mod}
_NAMES = {"<<": "shift_left", ">>": "shift_right", "&": "bitwise_and"}


def _tir(tree, x):
    if tree == "x":
        return x
    kind, inner, number = tree
    a = _tir(inner, x)
    return _NODES[kind](a, immediate(number)) if kind in _NODES else op(f"tirx.{_NAMES[kind]}", "int32", a, number)


def _model(tree, x: int) -> int:
    return x if tree == "x" else _MODELS[tree[0]](_model(tree[1], x), tree[2])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(_NUMBERS, st.sampled_from([1, -1, 3, 7, 64])), min_size=2, max_size=4), st.sampled_from([2, 8, 64]))
def test_random_numbers_of_32_bits_in_sums_of_64(terms, factor):
    """Products of arms not taken stand in front: they are the instructions of some of the shifts."""

    def body(thread, loads, out):
        x, arms = tirx.Var("x", "int32"), []
        for number, (tree, _) in enumerate(terms):
            value = _tir(tree, x)
            arm = tirx.Select(tirx.And(value > 0, value < 1000), value * factor, immediate(0))
            arms.append((tirx.Var(f"arm{number}", "int32"), arm))
        total = int64(0)
        for tree, multiple in terms:
            total = total + int64(_tir(tree, x)) * int64(multiple)
        for name, _ in arms:
            total = total + int64(name)
        return sequence(tirx.Bind(x, loads[0]), *(tirx.Bind(name, arm) for name, arm in arms), tirx.BufferStore(out, total, [thread]))

    def model(x: int) -> int:
        numbers = [(_model(tree, x), multiple) for tree, multiple in terms]
        return sum(value * multiple + (value * factor if 0 < value < 1000 else 0) for value, multiple in numbers)

    found = results(elementwise_body({"a": "int32"}, "int64", len(EDGES), body), EDGES, "int64", "2026-09")
    assert found.tolist() == [model(int(x)) for x in EDGES]
