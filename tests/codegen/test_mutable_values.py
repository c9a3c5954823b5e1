"""Mutable scalars and registers as SSA values: initial values, carries of shared statements, views, ranges."""

from __future__ import annotations

import numpy as np
import pytest
from tir_builder import immediate, op, pointer, sequence, vector_kernel, view
from tvm import tirx

import tilelang_pto
from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")


def var(name: str, dtype: str = "int32") -> tirx.Buffer:
    return tirx.decl_buffer((1,), dtype, name=name, scope="local.var")


def get(buffer):
    return tirx.BufferLoad(buffer, [immediate(0)])


def put(buffer, value):
    return tirx.BufferStore(buffer, immediate(value), [immediate(0)])


def alloc(buffer, initial=None):
    return tirx.AllocBuffer(buffer, {"tl.local_var_init": immediate(initial)} if initial is not None else {})


def loop(extent, make, dtype="int32", low=0):
    index = tirx.Var("i", dtype)
    return tirx.For(index, tirx.IntImm(dtype, low), tirx.IntImm(dtype, extent), tirx.ForKind.SERIAL, make(index))


def result(surface, *statements, value, dtype="int32"):
    """What ``value`` is after the statements."""
    out = pointer("out", dtype)
    body = sequence(*statements, tirx.BufferStore(view(out, dtype), value, [immediate(0)]))
    mod = vector_kernel("kernel", [out], lambda _: body)
    array = np.zeros(1, dtype)
    run(emit_module(mod, surface=surface_of(surface)).text, "kernel", array)
    return array[0]


@pytest.mark.parametrize("surface", SURFACES)
def test_initial_value_reads_another_variable(surface):
    x, y = var("x"), var("y")
    assert result(surface, alloc(x), loop(5, lambda i: put(x, i + 1)), alloc(y, get(x)), value=get(y)) == 5


@pytest.mark.parametrize("surface", SURFACES)
def test_the_same_loop_object_twice(surface):
    """TVM shares statements; what the second place needs must not be lost to the first."""
    x = var("x")
    shared = loop(5, lambda i: put(x, i + 1))
    assert result(surface, alloc(x), shared, put(x, 0), shared, value=get(x)) == 5


@pytest.mark.parametrize("surface", SURFACES)
def test_allocation_inside_a_loop_starts_anew_each_round(surface):
    x, total = var("x"), var("total")
    body = lambda i: sequence(alloc(x, 10), put(x, get(x) + i), put(total, get(total) + get(x)))  # noqa: E731
    assert result(surface, alloc(total), loop(3, body), value=get(total)) == 33


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("source", "target", "stored", "expected"), [("uint32", "int32", 0xFFFFFFF0, -1), ("int32", "int8", 200, -1)])
def test_casts_that_change_the_sign_are_seen(surface, source, target, stored, expected):
    """A value known not to be negative may become negative by a cast."""
    wide, narrow = var("wide", source), var("narrow", target)
    change = sequence(
        tirx.BufferStore(narrow, tirx.Cast(target, get(wide)), [immediate(0)]),
        tirx.BufferStore(wide, tirx.IntImm(source, stored), [immediate(0)]),
    )
    sign = tirx.Select(get(narrow) < tirx.IntImm(target, 0), immediate(-1), immediate(1))
    start = tirx.BufferStore(wide, tirx.IntImm(source, 0), [immediate(0)])
    assert result(surface, alloc(wide), alloc(narrow), start, loop(2, lambda _: change), value=sign) == expected


@pytest.mark.parametrize("surface", SURFACES)
def test_sign_extension_by_shifts(surface):
    """``(x << 16) >> 16`` of a value with bit 15 set is negative, whatever intervals say about products."""
    x = var("x")
    low = op("tirx.bitwise_and", "int32", get(x), 0xFFFF)
    extended = op("tirx.shift_right", "int32", op("tirx.shift_left", "int32", low, 16), 16)
    sign = tirx.Select(extended < 0, immediate(-1), immediate(1))
    grow = loop(3, lambda _: put(x, get(x) + 0x4321))
    assert result(surface, alloc(x), grow, value=sign) == (-1 if (3 * 0x4321) & 0x8000 else 1)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("dtype", "low", "extent"), [("uint8", 1, 255), ("uint16", 65530, 6), ("int8", 0, 127)])
def test_loop_bounds_at_the_edge_of_a_narrow_type(surface, dtype, low, extent):
    count = var("count")
    rounds = loop(extent, lambda _: put(count, get(count) + 1), dtype=dtype, low=low)
    assert result(surface, alloc(count), rounds, value=get(count)) == extent


@pytest.mark.parametrize("surface", SURFACES)
def test_unrolled_arithmetic_wraps(surface):
    """Variables of unrolled loops are Python numbers while tracing; Python does not wrap."""
    low, high = pointer("low", "uint32"), pointer("high", "int32")
    index = tirx.Var("i", "int32")
    body = sequence(
        tirx.BufferStore(view(low, "uint32", 8), tirx.Cast("uint32", index) - tirx.IntImm("uint32", 1), [index]),
        tirx.BufferStore(view(high, "int32", 8), tirx.Cast("int32", tirx.Cast("uint8", index + 250)), [index]),
    )
    unrolled = tirx.For(index, immediate(0), immediate(8), tirx.ForKind.UNROLLED, body)
    mod = vector_kernel("kernel", [low, high], lambda _: unrolled)
    text = emit_module(mod, surface=surface_of(surface)).text
    assert "static_range" in text
    lows, highs = np.zeros(8, np.uint32), np.zeros(8, np.int32)
    run(text, "kernel", lows, highs)
    np.testing.assert_array_equal(lows, np.arange(8, dtype=np.uint32) - np.uint32(1))
    np.testing.assert_array_equal(highs, (np.arange(8) + 250) % 256)


@pytest.mark.parametrize("surface", SURFACES)
def test_constant_folding_is_exact(surface):
    big = tirx.IntImm("int64", 9007199254740993)
    assert result(surface, value=tirx.Cast("int32", tirx.Mod(big, tirx.IntImm("int64", 10)))) == 3
    assert result(surface, value=tirx.Cast("int32", tirx.Mod(tirx.IntImm("int64", -17), tirx.IntImm("int64", 5)))) == -2
    assert result(surface, value=tirx.Cast("int32", tirx.Cast("bool", tirx.FloatImm("float32", 0.5)))) == 1


@pytest.mark.parametrize("surface", SURFACES)
def test_conditions_beside_constants(surface):
    """Boolean literals next to runtime conditions; PTODSL takes no Python booleans there."""
    x = var("x")
    true, false = tirx.const(True, "bool"), tirx.const(False, "bool")
    grow = loop(3, lambda _: put(x, get(x) + 1))
    is_three = get(x).equal(3) if hasattr(get(x), "equal") else tirx.EQ(get(x), immediate(3))
    cases = {
        1: [tirx.EQ(is_three, true), tirx.NE(is_three, false), tirx.And(true, is_three), tirx.Or(is_three, false)],
        0: [tirx.EQ(is_three, false), tirx.NE(is_three, true), tirx.And(is_three, false), tirx.Not(is_three)],
    }
    for expected, conditions in cases.items():
        for condition in conditions:
            assert result(surface, alloc(x), grow, value=tirx.Cast("int32", condition)) == expected


def test_a_view_of_another_dtype_is_refused():
    x = var("x", "float32")
    other = tirx.decl_buffer((1,), "int32", data=x.data, scope="local.var", name="bits")
    with pytest.raises(tilelang_pto.UnsupportedError, match="holds float32 but is accessed as int32"):
        result("2026-09", alloc(x), tirx.DeclBuffer(other), value=get(other))
