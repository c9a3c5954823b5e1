"""Gathers, scatters, strided stores, pointers that advance."""

from __future__ import annotations

import numpy as np
import pytest
from simd_registers import SURFACES, first, full, load, numpy_dtype, register, run_kernel, sample, store
from tir_builder import immediate, op
from tvm import tirx

from tilelang_pto.errors import UnsupportedError

WIDE = ("float32", "int32", "uint32")
NARROW = ("float16", "bfloat16", "int16", "uint16")
BYTES = ("int8", "uint8")


def memory(dtype: str, bytes_: int = 1024) -> np.ndarray:
    parts = [sample(dtype, seed) for seed in range(bytes_ // 256)]
    return np.concatenate(parts)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", WIDE + NARROW + BYTES)
@pytest.mark.parametrize("count", [None, 16])
def test_gather(surface, dtype, count):
    """Bytes become 16-bit lanes with zeros in front, whatever their sign; inactive lanes are zero."""
    table = memory(dtype)
    size = numpy_dtype(dtype).itemsize
    index_dtype = "uint32" if size == 4 else "uint16"
    result = {"int8": "int16", "uint8": "uint16"}.get(dtype, dtype)
    lanes = 256 // numpy_dtype(result).itemsize
    index = np.random.default_rng(1).integers(0, table.size, lanes).astype(index_dtype)

    def body(at):
        mask = first(result, count) if count else full(dtype)  # TIR gives the predicate of the elements in memory
        call = op("tl.simd.vgather2", register(result), at(0, dtype, 0, 1), load(at, 1, index_dtype), mask)
        return [store(at, 2, result, call)]

    (got,) = run_kernel(surface, [table, index], [(result, lanes)], body)
    expected = table[index] if size > 1 else table[index].view(np.uint8).astype(result)
    if count:
        expected[count:] = 0
    np.testing.assert_array_equal(got.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize("masked", [False, True])
def test_gather_of_blocks(surface, dtype, masked):
    table = memory(dtype)
    blocks = np.array([3, 0, 31, 7, 7, 12, 1, 30] + [0] * 56, np.uint32)
    lanes = 256 // numpy_dtype(dtype).itemsize

    def body(at):
        mask = (first("uint32", 4),) if masked else ()
        return [store(at, 2, dtype, op("tl.simd.vgatherb", register(dtype), at(0, dtype, 0, 1), load(at, 1, "uint32"), *mask))]

    (got,) = run_kernel(surface, [table, blocks * np.uint32(32)], [(dtype, lanes)], body)
    expected = table.view(np.uint8).reshape(32, 32)[blocks[:8]].copy()
    if masked:
        expected[4:] = 0
    np.testing.assert_array_equal(got.view(np.uint8), expected.reshape(-1))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", WIDE + NARROW)
@pytest.mark.parametrize("count", [None, 8])
def test_scatter(surface, dtype, count):
    values = sample(dtype)
    lanes = values.size
    index_dtype = "uint32" if lanes == 64 else "uint16"
    index = np.random.default_rng(2).permutation(2 * lanes)[:lanes].astype(index_dtype)

    def body(at):
        mask = first(dtype, count) if count else full(dtype)
        return [tirx.Evaluate(op("tl.simd.vscatter", "void", load(at, 0, dtype), at(2, dtype, 0, 1), load(at, 1, index_dtype), mask))]

    (got,) = run_kernel(surface, [values, index], [(dtype, 2 * lanes)], body)
    active = count or lanes
    np.testing.assert_array_equal(got[index[:active]].view(np.uint8), values[:active].view(np.uint8))


@pytest.mark.parametrize("surface", SURFACES)
def test_scatter_into_bytes_takes_the_low_byte_of_each_lane(surface):
    values = sample("uint16")
    index = np.random.default_rng(3).permutation(256)[:128].astype(np.uint16)

    def body(at):
        return [
            tirx.Evaluate(
                op("tl.simd.vscatter", "void", load(at, 0, "uint16"), at(2, "uint8", 0, 1), load(at, 1, "uint16"), full("uint16"))
            )
        ]

    (got,) = run_kernel(surface, [values, index], [("uint8", 256)], body)
    np.testing.assert_array_equal(got[index], (values & 0xFF).astype(np.uint8))


@pytest.mark.parametrize("name", ["vgather2", "vscatter"])
def test_an_index_of_another_width_is_refused(name):
    def body(at):
        index = load(at, 1, "uint16")
        if name == "vgather2":
            return [store(at, 2, "float32", op("tl.simd.vgather2", "float32x64", at(0, "float32"), index, full("float32")))]
        return [tirx.Evaluate(op("tl.simd.vscatter", "void", load(at, 0, "float32"), at(2, "float32"), index, full("float32")))]

    with pytest.raises(UnsupportedError, match="with the index"):
        run_kernel("2026-09", [sample("float32"), sample("uint16")], [("float32", 64)], body)


# -- strided stores and handles ------------------------------------------------------------------------------------------


def blocks_at(memory_: np.ndarray, start: int, stride: int) -> np.ndarray:
    """Eight 32-byte blocks of memory."""
    rows = memory_.view(np.uint8).reshape(-1, 32)
    return rows[start : start + 8 * stride : stride][:8].reshape(-1)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_strided_store(surface, dtype, stride):
    values = sample(dtype)
    config = immediate(stride << 16)

    def body(at):
        return [tirx.Evaluate(op("tl.simd.vsstb", "void", load(at, 0, dtype), at(1, dtype, 0, 1), config, full(dtype)))]

    (got,) = run_kernel(surface, [values], [("uint8", 1024)], body)
    np.testing.assert_array_equal(blocks_at(got, 0, stride), values.view(np.uint8))


def handle(name: str):
    return tirx.decl_buffer((1,), "handle", name=name, scope="local.var")


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_strided_stores_through_a_handle_in_a_loop(surface, dynamic):
    """Each round writes 8 blocks three apart and advances the pointer by one block."""
    values = sample("bfloat16")
    pointer, zero, index = handle("target"), [immediate(0)], tirx.Var("i", "int32")

    def body(at):
        config = (immediate(3) << 16) + (index * 0 + 1) if dynamic else immediate(0x00030001)
        advance = op(
            "tl.simd.vsstb", "handle", load(at, 0, "bfloat16"), tirx.BufferLoad(pointer, zero), config, full("bfloat16"), "POST_UPDATE"
        )
        return [
            tirx.AllocBuffer(pointer),
            tirx.BufferStore(pointer, at(1, "bfloat16", 0, 1), zero),
            tirx.For(index, immediate(0), immediate(3), tirx.ForKind.SERIAL, tirx.BufferStore(pointer, advance, zero)),
        ]

    (got,) = run_kernel(surface, [values], [("uint8", 1024)], body)
    for start in range(3):
        np.testing.assert_array_equal(blocks_at(got, start, 3), values.view(np.uint8))


@pytest.mark.parametrize("surface", SURFACES)
def test_loads_through_a_handle_in_a_loop(surface):
    memory_ = memory("uint16")
    pointer, zero, index = handle("source"), [immediate(0)], tirx.Var("i", "int32")
    pair = tirx.Var("pair", "uint16x128")
    acc = tirx.decl_buffer((1,), "uint16x128", name="acc", scope="local.var")

    def body(at):
        part = op("tl.simd.pair_get", "uint16x128", pair, 0)
        total = op("tl.simd.vadd", "uint16x128", tirx.BufferLoad(acc, zero), part, full("uint16"), "MODE_ZEROING")
        inner = tirx.SeqStmt(
            [
                tirx.Bind(pair, op("tl.simd.vld", "uint16x128", tirx.BufferLoad(pointer, zero), "NORM", 128)),
                tirx.BufferStore(pointer, op("tl.simd.pair_get", "handle", pair, 1), zero),
                tirx.BufferStore(acc, total, zero),
            ]
        )
        return [
            tirx.AllocBuffer(pointer),
            tirx.AllocBuffer(acc),
            tirx.BufferStore(pointer, at(0, "uint16", 0, 1), zero),
            tirx.BufferStore(acc, op("tl.simd.vdup", "uint16x128", immediate(0), full("uint16"), "MODE_ZEROING"), zero),
            tirx.For(index, immediate(0), immediate(4), tirx.ForKind.SERIAL, inner),
            store(at, 1, "uint16", tirx.BufferLoad(acc, zero)),
        ]

    (got,) = run_kernel(surface, [memory_], [("uint16", 128)], body)
    np.testing.assert_array_equal(got, memory_.reshape(4, 128).sum(axis=0, dtype=np.uint16))


def test_a_handle_without_a_value_is_refused():
    pointer, zero = handle("nowhere"), [immediate(0)]
    with pytest.raises(UnsupportedError, match="nowhere"):
        run_kernel(
            "2026-09",
            [sample("bfloat16")],
            [("uint8", 1024)],
            lambda at: [
                tirx.AllocBuffer(pointer),
                tirx.BufferStore(
                    pointer,
                    op(
                        "tl.simd.vsstb",
                        "handle",
                        load(at, 0, "bfloat16"),
                        tirx.BufferLoad(pointer, zero),
                        1,
                        full("bfloat16"),
                        "POST_UPDATE",
                    ),
                    zero,
                ),
            ],
        )
