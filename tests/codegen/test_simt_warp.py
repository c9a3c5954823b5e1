"""Warp reductions, shuffles and votes over every dtype, full, partial and divergent warps.

Operations: warp_reduce_sum, warp_reduce_max, warp_reduce_min, shfl_xor_sync, shfl_up_sync, shfl_down_sync, tvm_warp_shuffle,
tvm_warp_shuffle_up, tvm_warp_shuffle_down.
"""

from __future__ import annotations

import numpy as np
import pytest
from simt_kernels import SURFACES, emitted
from tir_builder import op, pointer, sequence, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import RaceError, UnsupportedError
from tilelang_pto.sim import run

RNG = np.random.default_rng(5)
THREADS = 96
EDGES = {
    "int32": [0, 1, -1, 2**31 - 1, -(2**31), 1000, -1000],
    "uint32": [0, 1, 2**32 - 1, 2**31, 2**31 - 1],
    "float32": [0.0, -1.5, 3.0e38, -3.0e38, 1e-30, 7.25],
    "float16": [0.0, -1.5, 100.0, -100.0, 0.125],
}


def values(dtype: str, count: int = THREADS) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return RNG.integers(-50, 50, count).astype(kind) / 4
    info = np.iinfo(kind)
    return RNG.integers(info.min, info.max, count, kind, endpoint=True)


def mapped(surface: str, array: np.ndarray, output: str, function, threads: int = THREADS) -> np.ndarray:
    dtype = str(array.dtype)
    a, out = pointer("a", dtype), pointer("out", output)

    def body(tx):
        load = tirx.BufferLoad(view(a, dtype, threads), [tx])
        return tirx.BufferStore(view(out, output, threads), function(load, tx), [tx])

    text = emitted(vector_kernel("map", [a, out], lambda _: simt_block(threads, body)), surface)
    result = np.zeros(threads, np.dtype(output))
    run(text, "map", array.copy(), result)
    return result


def i32(value):
    return tirx.IntImm("int32", value)


MASK = tirx.const(0xFFFFFFFF, "uint32")
MODELS = {"sum": np.sum, "max": np.max, "min": np.min}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", EDGES)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("threads", [96, 80])
def test_reductions(surface, dtype, kind, threads):
    """The last warp of 80 threads has 16."""
    array = values(dtype, threads)
    if kind != "sum":
        edges = np.array(EDGES[dtype], np.dtype(dtype))
        array[: len(edges)] = edges
    got = mapped(surface, array, dtype, lambda x, tx: op(f"tl.warp_reduce_{kind}", dtype, x), threads)
    for start in range(0, threads, 32):
        group = array[start : start + 32]
        with np.errstate(over="ignore"):
            expected = MODELS[kind](
                group.astype(np.float64) if np.dtype(dtype).kind == "f" else group,
                **({"dtype": np.dtype(dtype)} if kind == "sum" and np.dtype(dtype).kind != "f" else {}),
            )
        np.testing.assert_array_equal(got[start : start + 32], np.full(len(group), expected).astype(np.dtype(dtype)))


@pytest.mark.parametrize("surface", SURFACES)
def test_reduction_over_the_threads_that_come(surface):
    """In a branch only the active threads are combined; the reduction is not moved out of it."""
    a, out = pointer("a", "int32"), pointer("out", "int32")

    def body(tx):
        load = tirx.BufferLoad(view(a, "int32", THREADS), [tx])
        total = tirx.BufferStore(view(out, "int32", THREADS), op("tl.warp_reduce_sum", "int32", load), [tx])
        return tirx.IfThenElse(tirx.FloorMod(tx, i32(3)).equal(i32(0)), total, None)

    array = values("int32") // 1000
    got = np.zeros(THREADS, np.int32)
    run(emitted(vector_kernel("map", [a, out], lambda _: simt_block(THREADS, body)), surface), "map", array.copy(), got)
    for thread in range(THREADS):
        warp = thread // 32 * 32
        group = [array[t] for t in range(warp, warp + 32) if t % 3 == 0]
        assert got[thread] == (np.sum(group, dtype=np.int32) if thread % 3 == 0 else 0)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float16"])
@pytest.mark.parametrize("width", [16, 32])
def test_shuffles(surface, dtype, width):
    array = values(dtype)
    lane = np.arange(THREADS) % width
    base = np.arange(THREADS) - lane

    def shuffled(name, place):
        return mapped(surface, array, dtype, lambda x, tx: op(f"tl.{name}_sync", dtype, MASK, x, place(tx), i32(width)))

    np.testing.assert_array_equal(shuffled("shfl", lambda tx: i32(3)), array[base + 3])
    np.testing.assert_array_equal(
        shuffled("shfl", lambda tx: tirx.FloorMod(tx * 5, i32(width))), array[base + np.arange(THREADS) * 5 % width]
    )
    np.testing.assert_array_equal(shuffled("shfl_xor", lambda tx: i32(5)), array[base + (lane ^ 5)])
    np.testing.assert_array_equal(shuffled("shfl_up", lambda tx: i32(2)), array[base + np.where(lane < 2, lane, lane - 2)])
    np.testing.assert_array_equal(shuffled("shfl_down", lambda tx: i32(2)), array[base + np.where(lane + 2 < width, lane + 2, lane)])
    for name, expected in (("", array[base + 3]), ("_up", array[base + np.where(lane < 3, lane, lane - 3)])):
        got = mapped(
            surface, array, dtype, lambda x, tx, name=name: op(f"tirx.tvm_warp_shuffle{name}", dtype, MASK, x, i32(3), i32(width), i32(32))
        )
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("surface", SURFACES)
def test_votes(surface):
    array = values("int32")
    array[32:64] = np.abs(array[32:64] // 2) + 1
    positive = (array > 0).reshape(-1, 32)
    bits = (positive.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1).repeat(32)

    def votes(name, output, *before):
        return mapped(surface, array, output, lambda x, tx: op(name, output, *before, x > 0))

    np.testing.assert_array_equal(votes("tl.ballot", "uint64"), bits)
    np.testing.assert_array_equal(votes("tl.ballot_sync", "uint64", MASK), bits)
    np.testing.assert_array_equal(votes("tl.ballot_sync", "uint64", tirx.const(0xF0F, "uint32")), bits & np.uint64(0xF0F))
    np.testing.assert_array_equal(votes("tl.any_sync", "int32", MASK), positive.any(1).repeat(32))
    np.testing.assert_array_equal(votes("tl.all_sync", "int32", MASK), positive.all(1).repeat(32))
    lanes = mapped(surface, array, "int32", lambda x, tx: op("tl.get_lane_idx", "int32"))
    np.testing.assert_array_equal(lanes, np.arange(THREADS) % 32)


@pytest.mark.parametrize("surface", SURFACES)
def test_active_threads(surface):
    out = pointer("out", "uint64")

    def body(tx):
        store = tirx.BufferStore(view(out, "uint64", THREADS), op("tl.activemask", "uint64"), [tx])
        return tirx.IfThenElse(tirx.FloorMod(tx, i32(2)).equal(i32(1)), store, None)

    got = np.zeros(THREADS, np.uint64)
    run(emitted(vector_kernel("map", [out], lambda _: simt_block(THREADS, body)), surface), "map", got)
    np.testing.assert_array_equal(got, np.where(np.arange(THREADS) % 2, 0xAAAAAAAA, 0).astype(np.uint64))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("mask", [(), (tirx.const(0xFF, "uint32"),)])
def test_order_within_a_warp(surface, mask):
    a, out = pointer("a", "int32"), pointer("out", "int32")
    here, there = view(a, "int32", 32), view(out, "int32", 32)

    def body(tx):
        def loaded(index):
            return tirx.BufferLoad(here, [index])

        fence = tirx.Evaluate(op("tl.sync_warp", "void", *mask))
        return sequence(tirx.BufferStore(here, loaded(tx) * 2, [tx]), fence, tirx.BufferStore(there, loaded(i32(31) - tx) + 1, [tx]))

    text = emitted(vector_kernel("map", [a, out], lambda _: simt_block(32, body)), surface)
    assert text.count("pto.threadfence_block()") == 1
    doubled, got = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    run(text, "map", doubled, got)
    np.testing.assert_array_equal(got, np.arange(31, -1, -1) * 2 + 1)
    with pytest.raises(RaceError):
        run(text.replace("pto.threadfence_block()", "pass"), "map", doubled, got)


@pytest.mark.parametrize(
    ("dtype", "function", "needles"),
    [
        ("int64", lambda x: op("tl.warp_reduce_sum", "int64", x), ["warp reduction of i64", "float32"]),
        ("bfloat16", lambda x: op("tl.warp_reduce_max", "bfloat16", x), ["warp reduction of bf16", "float32"]),
        ("int32", lambda x: op("tl.shfl_sync", "int32", MASK, x, i32(0), i32(8)), ["8 as argument width of tl.shfl_sync", "16, 32"]),
        ("bfloat16", lambda x: op("tl.shfl_sync", "bfloat16", MASK, x, i32(0), i32(32)), ["shuffle of bf16"]),
        ("int32", lambda x: op("tl.any_sync", "int32", tirx.const(3, "uint32"), x > 0), ["some threads"]),
    ],
)
def test_refusals(dtype, function, needles):
    from tir_builder import elementwise

    with pytest.raises(UnsupportedError) as caught:
        emit_module(elementwise({"a": dtype}, dtype, 32, function), surface=surface_of("2026-08"))
    for needle in needles:
        assert needle in str(caught.value)
