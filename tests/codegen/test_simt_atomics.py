"""Atomic operations on GM and UB: totals over threads and cores, old values, signs, refusals.

Operations: atomic_add_elem_op, atomic_max_elem_op, atomic_min_elem_op, atomic_add_ret_elem_op, atomic_max_ret_elem_op,
atomic_min_ret_elem_op.
"""

from __future__ import annotations

import numpy as np
import pytest
from simt_kernels import SURFACES, emitted
from tir_builder import access, op, pointer, sequence, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import UnsupportedError
from tilelang_pto.sim import run

RNG = np.random.default_rng(9)
THREADS, SLOTS = 128, 8
MODELS = {"add": np.add, "max": np.maximum, "min": np.minimum}


def i32(value):
    return tirx.IntImm("int32", value)


def numbers(dtype: str, count: int) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return (RNG.integers(-40, 40, count) / 4).astype(kind)  # sums are exact in any order
    info = np.iinfo(kind)
    return RNG.integers(info.min, info.max, count, kind, endpoint=True)


def combined(kind: str, start: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What the slots hold in the end; thread ``t`` goes to slot ``t mod SLOTS``."""
    result = start.copy()
    with np.errstate(over="ignore"):
        for thread, value in enumerate(values):
            result[thread % SLOTS] = MODELS[kind](result[thread % SLOTS], value)
    return result


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float16"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("order", [False, True])
def test_on_gm(surface, dtype, kind, order):
    a, out = pointer("a", dtype), pointer("out", dtype)

    def body(tx):
        load = tirx.BufferLoad(view(a, dtype, THREADS), [tx])
        place = access(out, dtype, tirx.FloorMod(tx, i32(SLOTS)), 1)
        return tirx.Evaluate(op(f"tl.atomic_{kind}_elem_op", "handle", place, load, *([i32(0)] if order else [])))

    values, slots = numbers(dtype, THREADS), numbers(dtype, SLOTS)
    expected = combined(kind, slots, values)
    run(emitted(vector_kernel("map", [a, out], lambda _: simt_block(THREADS, body)), surface), "map", values, slots)
    np.testing.assert_array_equal(slots, expected)


@pytest.mark.parametrize("surface", SURFACES)
def test_from_several_cores(surface):
    out = pointer("out", "int32")

    def kernel(bx):
        place = access(out, "int32", i32(0), 1)
        return simt_block(THREADS, lambda tx: tirx.Evaluate(op("tl.atomic_add_elem_op", "handle", place, tx + bx)))

    text = emitted(vector_kernel("map", [out], kernel, cores=6), surface)
    total = np.zeros(1, np.int32)
    run(text, "map", total, grid=6)
    assert total[0] == sum(tx + bx for tx in range(THREADS) for bx in range(6))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32", "float16"])
@pytest.mark.parametrize("kind", MODELS)
def test_on_ub(surface, dtype, kind):
    """Slots in UB, filled by threads, combined, and read after a barrier."""
    a, out = pointer("a", dtype), pointer("out", dtype)
    arena = tirx.decl_buffer((4096,), "uint8", name="arena", scope="shared.dyn")
    ub = view(arena.data, dtype, SLOTS, "shared.dyn")

    def body(tx):
        load = tirx.BufferLoad(view(a, dtype, THREADS), [tx])
        start = tirx.BufferStore(ub, tirx.BufferLoad(view(out, dtype, SLOTS), [tx]), [tx])
        finish = tirx.BufferStore(view(out, dtype, SLOTS), tirx.BufferLoad(ub, [tx]), [tx])
        barrier = tirx.Evaluate(op("tirx.tvm_storage_sync", "int32", "shared"))
        place = access(arena.data, dtype, tirx.FloorMod(tx, i32(SLOTS)), 1)
        return sequence(
            tirx.IfThenElse(tx < SLOTS, start, None),
            barrier,
            tirx.Evaluate(op(f"tl.atomic_{kind}_elem_op", "handle", place, load)),
            barrier,
            tirx.IfThenElse(tx < SLOTS, finish, None),
        )

    values, slots = numbers(dtype, THREADS), numbers(dtype, SLOTS)
    expected = combined(kind, slots, values)
    mod = vector_kernel("map", [a, out], lambda _: sequence(tirx.AllocBuffer(arena), simt_block(THREADS, body)))
    run(emitted(mod, surface), "map", values, slots)
    np.testing.assert_array_equal(slots, expected)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "float32"])
@pytest.mark.parametrize("kind", MODELS)
def test_old_values(surface, dtype, kind):
    """Every thread gets what the slot held before it; together with the results these are the steps of one order."""
    a, counter, before = pointer("a", dtype), pointer("counter", dtype), pointer("before", dtype)

    def body(tx):
        load = tirx.BufferLoad(view(a, dtype, THREADS), [tx])
        old = op(f"tl.atomic_{kind}_ret_elem_op", dtype, access(counter, dtype, i32(1), 1), load)
        return tirx.BufferStore(view(before, dtype, THREADS), old, [tx])

    values = np.sort(numbers(dtype, THREADS))[:: -1 if kind == "min" else 1].copy()
    if kind == "add":
        values = np.ones(THREADS, np.dtype(dtype))
    slots, old = np.zeros(3, np.dtype(dtype)), np.zeros(THREADS, np.dtype(dtype))
    run(emitted(vector_kernel("map", [a, counter, before], lambda _: simt_block(THREADS, body)), surface), "map", values, slots, old)
    assert slots[0] == slots[2] == 0
    if kind == "add":
        np.testing.assert_array_equal(np.sort(old), np.arange(THREADS))
        assert slots[1] == THREADS
    else:
        final = MODELS[kind].reduce(np.append(values, values.dtype.type(0)))
        assert slots[1] == final
        seen = set(values.tolist()) | {0}
        assert set(old.tolist()) <= seen and 0 in old.tolist()


@pytest.mark.parametrize("surface", SURFACES)
def test_unused_result_is_still_an_effect(surface):
    out = pointer("out", "int32")

    def body(tx):
        unused = tirx.Var("unused", "int32")
        return tirx.Bind(unused, op("tl.atomic_add_ret_elem_op", "int32", access(out, "int32", i32(0), 1), i32(2)))

    total = np.zeros(1, np.int32)
    run(emitted(vector_kernel("map", [out], lambda _: simt_block(32, body)), surface), "map", total)
    assert total[0] == 64


def refusal(dtype: str, scope: str = "global", name: str = "atomic_add_elem_op") -> str:
    out = pointer("out", dtype)
    arena = tirx.decl_buffer((64,), dtype, name="arena", scope=scope)
    data = out if scope == "global" else arena.data
    returning = "ret" in name

    def body(tx):
        result = op(f"tl.{name}", dtype if returning else "handle", access(data, dtype, tx, 1), tirx.const(1, dtype))
        statement = tirx.BufferStore(view(out, dtype, 64), result, [tx]) if returning else tirx.Evaluate(result)
        return sequence(tirx.AllocBuffer(arena), statement) if scope == "local" else statement

    def kernel(_):
        block = simt_block(32, body)
        return sequence(tirx.AllocBuffer(arena), block) if scope == "shared.dyn" else block

    with pytest.raises(UnsupportedError) as caught:
        emit_module(vector_kernel("map", [out], kernel), surface=surface_of("2026-09"))
    return str(caught.value)


def test_refusals():
    assert "accumulate in float32" in refusal("bfloat16")
    assert "int32" in refusal("int16")
    assert "in UB" in refusal("int64", "shared.dyn")
    assert "private memory" in refusal("int32", "local")
    assert "does not return it reliably" in refusal("float16", name="atomic_add_ret_elem_op")
