"""Bits of scalars as another type, in threads and in the scalar unit, on both surfaces."""

from __future__ import annotations

import ml_dtypes  # noqa: F401  (registers the dtypes with NumPy)
import numpy as np
import pytest
from simt_kernels import SURFACES, emitted, mapped
from tir_builder import op, pointer, sequence, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import UnsupportedError
from tilelang_pto.sim import run

RNG = np.random.default_rng(11)
FLOATS = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, 65504.0, 1e-40, -3e38, 6e-8]
PAIRS = [
    ("float32", "int32"), ("float32", "uint32"), ("int32", "float32"), ("uint32", "float32"),
    ("float16", "int16"), ("uint16", "float16"), ("bfloat16", "uint16"), ("int16", "bfloat16"),
]  # fmt: skip


def values(dtype: str, count: int = 600) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        numbers = RNG.integers(info.min, info.max, count, kind, endpoint=True)
        return np.where(np.isnan(numbers.view({2: "float16", 4: "float32"}[kind.itemsize])), 7, numbers).astype(kind)
    with np.errstate(over="ignore"):
        return np.concatenate([FLOATS, RNG.normal(size=count)]).astype(np.float32).astype(kind)


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_in_threads(surface, source, target):
    array = values(source)
    got = mapped(surface, {"a": array}, target, lambda x: op("tirx.reinterpret", target, x))
    np.testing.assert_array_equal(bits(got), bits(array))


@pytest.mark.parametrize("surface", SURFACES)
def test_there_and_back_between_threads_of_three_dimensions(surface):
    """Two reinterpretations at once: the sign bit of one number on the size of another."""
    a, b, out = pointer("a", "float32"), pointer("b", "float32"), pointer("out", "float32")
    shape = (5, 3, 4)
    count = shape[0] * shape[1] * shape[2]

    def load(data, index):
        return op("tirx.reinterpret", "int32", tirx.BufferLoad(view(data, "float32", count), [index]))

    def i32(value):
        return tirx.IntImm("int32", value)

    axes = [tirx.Var(name, "int32") for name in ("tx", "ty", "tz")]
    index = axes[0] + axes[1] * shape[0] + axes[2] * (shape[0] * shape[1])
    sign = op("tirx.bitwise_and", "int32", load(a, index), i32(-(2**31)))
    size = op("tirx.bitwise_and", "int32", load(b, index), i32(2**31 - 1))
    joined = op("tirx.reinterpret", "float32", op("tirx.bitwise_or", "int32", sign, size))
    body = tirx.BufferStore(view(out, "float32", count), joined, [index])
    for tag, var, extent in reversed(list(zip("xyz", axes, shape, strict=True))):
        iteration = tirx.IterVar(_range(extent), var, tirx.IterVar.ThreadIndex, f"threadIdx.{tag}")
        body = tirx.AttrStmt(iteration, "thread_extent", i32(extent), body)
    from tir_builder import block

    mod = vector_kernel("map", [a, b, out], lambda _: block("SIMT_VF", body))
    x, y = (RNG.normal(size=count).astype(np.float32) for _ in range(2))
    got = np.zeros(count, np.float32)
    run(emitted(mod, surface), "map", x, y, got)
    np.testing.assert_array_equal(got, np.copysign(y, x))


def _range(extent: int):
    import tvm

    return tvm.ir.Range(0, extent)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("source", "target"), [("float32", "int32"), ("int32", "float32")])
def test_in_the_scalar_unit(surface, source, target):
    """In front of a vector function, and beside threads that do the same."""
    a, out = pointer("a", source), pointer("out", target)

    def turned(index):
        return op("tirx.reinterpret", target, tirx.BufferLoad(view(a, source, 34), [index]))

    def store(index):
        return tirx.BufferStore(view(out, target, 34), turned(index), [index])

    first, last = tirx.IntImm("int32", 32), tirx.IntImm("int32", 33)
    mod = vector_kernel("map", [a, out], lambda _: sequence(store(first), simt_block(32, store), store(last)))
    array = values(source)[:34].copy()
    got = np.zeros(34, target)
    run(emitted(mod, surface), "map", array, got)
    np.testing.assert_array_equal(bits(got), bits(array))


@pytest.mark.parametrize("surface", SURFACES)
def test_in_more_threads_than_before(surface):
    """The places of a later, larger vector function are another buffer, which findings do not take for the first one."""
    a, out = pointer("a", "float32"), pointer("out", "int32")

    def store(first):
        def one(thread):
            index = thread + first
            load = tirx.BufferLoad(view(a, "float32", 160), [index])
            return tirx.BufferStore(view(out, "int32", 160), op("tirx.reinterpret", "int32", load), [index])

        return one

    mod = vector_kernel("map", [a, out], lambda _: sequence(simt_block(32, store(0)), simt_block(128, store(32))))
    array, got = values("float32")[:160].copy(), np.zeros(160, "int32")
    run(emitted(mod, surface), "map", array, got)
    np.testing.assert_array_equal(bits(got), bits(array))


def test_places_are_counted():
    """UB that is full has none left for the places of the threads."""
    a, out = pointer("a", "float32"), pointer("out", "int32")
    arena = tirx.decl_buffer((248 * 1024 - 64,), "uint8", name="arena", scope="shared.dyn")

    def body(tx):
        load = tirx.BufferLoad(view(a, "float32", 64), [tx])
        return tirx.BufferStore(view(out, "int32", 64), op("tirx.reinterpret", "int32", load), [tx])

    mod = vector_kernel("map", [a, out], lambda _: sequence(tirx.AllocBuffer(arena), simt_block(64, body)))
    with pytest.raises(UnsupportedError, match="bits_of_threads 256"):
        emit_module(mod, surface=surface_of("2026-08"))
    emit_module(mod, surface=surface_of("2026-09"))
