"""``break`` and ``while``: in the kernel body, in SIMT code with threads that leave at different times, nested."""

from __future__ import annotations

import numpy as np
import pytest
from tir_builder import elementwise_body, immediate, op, pointer, sequence, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")
ALWAYS = tirx.const(True, "bool")


def var(name: str) -> tirx.Buffer:
    return tirx.decl_buffer((1,), "int32", name=name, scope="local.var")


def get(buffer):
    return tirx.BufferLoad(buffer, [immediate(0)])


def put(buffer, value):
    return tirx.BufferStore(buffer, immediate(value), [immediate(0)])


def leave():
    return tirx.Evaluate(op("tl.loop_break", "handle"))


def text_of(mod, surface):
    text = emit_module(mod, surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    return text


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("limit", [0, 1, 5, 100])
def test_while_true_with_a_break_in_the_middle(surface, limit):
    """What stands in front of the break runs once more than what stands behind it."""
    n, out = tirx.Var("n", "int32"), pointer("out", "int32")
    before, after = var("before"), var("after")
    body = sequence(
        put(before, get(before) + 1),
        tirx.IfThenElse(get(after) >= n, leave(), None),
        put(after, get(after) + 1),
    )
    stores = [tirx.BufferStore(view(out, "int32", 2), get(b), [immediate(i)]) for i, b in enumerate((before, after))]
    whole = sequence(tirx.AllocBuffer(before), tirx.AllocBuffer(after), tirx.While(ALWAYS, body), *stores)
    result = np.zeros(2, np.int32)
    run(text_of(vector_kernel("k", [out, n], lambda _: whole), surface), "k", result, limit)
    assert result.tolist() == [limit + 1, limit]


@pytest.mark.parametrize("surface", SURFACES)
def test_while_with_a_condition(surface):
    n, out = tirx.Var("n", "int32"), pointer("out", "int32")
    count = var("count")
    loop = tirx.While(get(count) * get(count) < n, put(count, get(count) + 1))
    store = tirx.BufferStore(view(out, "int32"), get(count), [immediate(0)])
    text = text_of(vector_kernel("k", [out, n], lambda _: sequence(tirx.AllocBuffer(count), loop, store)), surface)
    for limit in (0, 1, 2, 99, 100, 101):
        result = np.zeros(1, np.int32)
        run(text, "k", result, limit)
        assert result[0] == int(np.ceil(np.sqrt(limit)))


@pytest.mark.parametrize("surface", SURFACES)
def test_break_of_an_inner_for_loop_leaves_the_outer_one_alone(surface):
    out = pointer("out", "int32")
    total = var("total")
    i, j = tirx.Var("i", "int32"), tirx.Var("j", "int32")
    inner = tirx.For(
        j,
        immediate(0),
        immediate(10),
        tirx.ForKind.SERIAL,
        sequence(tirx.IfThenElse(j > i, sequence(put(total, get(total) + 100), leave()), None), put(total, get(total) + 1)),
    )
    outer = tirx.For(i, immediate(0), immediate(4), tirx.ForKind.SERIAL, inner)
    store = tirx.BufferStore(view(out, "int32"), get(total), [immediate(0)])
    result = np.zeros(1, np.int32)
    run(text_of(vector_kernel("k", [out], lambda _: sequence(tirx.AllocBuffer(total), outer, store)), surface), "k", result)
    assert result[0] == sum(i + 1 + 100 for i in range(4))


@pytest.mark.parametrize("surface", SURFACES)
def test_threads_leave_at_different_times(surface):
    """Length of the Collatz sequence of each thread's number."""

    def body(tx, loads, out):
        x, steps = var("x"), var("steps")
        even = tirx.EQ(tirx.FloorMod(get(x), immediate(2)), immediate(0))
        step = sequence(
            tirx.IfThenElse(tirx.EQ(get(x), immediate(1)), leave(), None),
            put(steps, get(steps) + 1),
            tirx.IfThenElse(even, put(x, tirx.FloorDiv(get(x), immediate(2))), put(x, get(x) * 3 + 1)),
        )
        return sequence(
            tirx.AllocBuffer(x),
            tirx.AllocBuffer(steps),
            put(x, loads[0]),
            tirx.While(ALWAYS, step),
            tirx.BufferStore(out, get(steps), [tx]),
        )

    def collatz(x: int) -> int:
        steps = 0
        while x != 1:
            x, steps = (x // 2 if x % 2 == 0 else 3 * x + 1), steps + 1
        return steps

    numbers = np.arange(1, 65, dtype=np.int32)
    result = np.zeros(64, np.int32)
    run(text_of(elementwise_body({"a": "int32"}, "int32", 64, body), surface), "map", numbers, result)
    assert result.tolist() == [collatz(int(x)) for x in numbers]
