"""Lanes moved inside a register."""

from __future__ import annotations

import numpy as np
import pytest
from simd_registers import SURFACES, evaluate, first, full, numpy_dtype, register, sample
from tir_builder import op, registers

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import UnsupportedError

ALL = ("float32", "bfloat16", "float16", "int32", "uint32", "int16", "uint16", "int8", "uint8")


def bits(array):
    return np.ascontiguousarray(array).view(np.uint8)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize(("position", "lane"), [("POS_LOWEST", 0), ("POS_HIGHEST", -1)])
def test_broadcast_of_a_lane(surface, dtype, position, lane):
    a = sample(dtype, 4)
    for mask, active in ((full(dtype), a.size), (first(dtype, 8), 8)):
        got = evaluate(surface, {"a": a}, dtype, lambda x, m=mask: op("tl.simd.vdupv", register(dtype), x, m, position, "MODE_ZEROING"))
        expected = np.zeros_like(a)
        expected[:active] = a[lane]
        np.testing.assert_array_equal(bits(got), bits(expected))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_sums_of_neighbours(surface, dtype):
    a = sample(dtype, 1)
    for mask, active in ((full(dtype), a.size), (first(dtype, 3), 3)):
        got = evaluate(surface, {"a": a}, dtype, lambda x, m=mask: op("tl.simd.vcpadd", register(dtype), x, m, "MODE_ZEROING"))
        values = np.where(np.arange(a.size) < active, a, a.dtype.type(0))
        with np.errstate(over="ignore", invalid="ignore"):
            np.testing.assert_array_equal(got, np.concatenate([values[0::2] + values[1::2], np.zeros(a.size // 2, a.dtype)]))


PACKED = {"uint32": "uint16", "int32": "int16", "uint16": "uint8", "int16": "int8", "float32": "float16"}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", PACKED)
@pytest.mark.parametrize("part", ["LOWER", "HIGHER"])
def test_pack(surface, dtype, part):
    """The low bits of each lane, whatever the types are called."""
    a, target = sample(dtype), PACKED[dtype]
    got = evaluate(surface, {"a": a}, target, lambda x: op("tl.simd.vpack", register(target), x, part))
    width = numpy_dtype(target).itemsize
    low = a.view(f"u{width}")[0::2]
    empty = np.zeros_like(low)
    np.testing.assert_array_equal(got.view(f"u{width}"), np.concatenate([low, empty] if part == "LOWER" else [empty, low]))


UNPACKED = {"uint8": "uint16", "int8": "int16", "uint16": "uint32", "int16": "int32"}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", UNPACKED)
@pytest.mark.parametrize("part", ["LOWER", "HIGHER"])
def test_unpack(surface, dtype, part):
    """Half a register widened; 2026-08 zips it with zeros and shifts the sign."""
    a, target = sample(dtype), UNPACKED[dtype]
    got = evaluate(surface, {"a": a}, target, lambda x: op("tl.simd.vunpack", register(target), x, part))
    half = a[: a.size // 2] if part == "LOWER" else a[a.size // 2 :]
    np.testing.assert_array_equal(got, half.astype(target))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint16", "uint8"])
def test_squeeze(surface, dtype):
    a = sample(dtype)
    mask = op("tl.simd.pset", "boolx256", a.dtype.itemsize * 8, "PAT_M3")
    got = evaluate(surface, {"a": a}, dtype, lambda x: op("tl.simd.vsqz", register(dtype), x, mask, "MODE_STORED"))
    chosen = a[0::3]
    np.testing.assert_array_equal(bits(got), bits(np.concatenate([chosen, np.zeros(a.size - chosen.size, a.dtype)])))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_counts_of_active_lanes_before(dtype):
    a = sample(dtype)
    mask = op("tl.simd.pset", "boolx256", a.dtype.itemsize * 8, "PAT_M4")
    got = evaluate("2026-09", {"a": a}, dtype, lambda _: op("tl.simd.vusqz", register(dtype), mask))
    active = (np.arange(a.size) % 4 == 0).astype(np.int64)
    np.testing.assert_array_equal(got, (np.cumsum(active) - active).astype(dtype))
    mod = registers({"a": dtype}, dtype, lambda _: op("tl.simd.vusqz", register(dtype), mask))
    with pytest.raises(UnsupportedError, match="has no vusqz"):
        emit_module(mod, surface=surface_of("2026-08"))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("dtype", "index_dtype"), [("uint8", "uint8"), ("int8", "uint8"), ("uint16", "uint16"), ("bfloat16", "uint16")])
def test_lanes_by_number(surface, dtype, index_dtype):
    a = sample(dtype)
    index = np.random.default_rng(5).integers(0, a.size, a.size).astype(index_dtype)
    got = evaluate(surface, {"a": a, "i": index}, dtype, lambda x, i: op("tl.simd.vselr", register(dtype), x, i))
    np.testing.assert_array_equal(bits(got), bits(a[index]))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("dtype", "counts"), [("uint32", "int32"), ("int32", "int32"), ("uint16", "int16")])
@pytest.mark.parametrize("name", ["vshl", "vshr"])
def test_shifts_by_signed_counts(surface, dtype, counts, name):
    a = sample(dtype) if name == "vshr" else np.abs(sample(dtype) // 2**14).astype(dtype)
    amount = (np.arange(a.size) % 5).astype(counts)
    got = evaluate(
        surface, {"a": a, "n": amount}, dtype, lambda x, n: op(f"tl.simd.{name}", register(dtype), x, n, full(dtype), "MODE_ZEROING")
    )
    model = np.left_shift if name == "vshl" else np.right_shift
    np.testing.assert_array_equal(got, model(a, amount.astype(dtype)).astype(dtype))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: op("tl.simd.vpack", "uint8x256", x, "LOWER"), "vpack of"),
        (lambda x: op("tl.simd.vunpack", "float32x64", x, "LOWER"), "vunpack of"),
        (lambda x: op("tl.simd.vsqz", "float32x64", x, full("float32"), "MODE_NO_STORED"), "MODE_NO_STORED"),
        (lambda x: op("tl.simd.vdupv", "float32x64", x, full("float32"), "POS_MIDDLE", "MODE_ZEROING"), "POS_MIDDLE"),
    ],
)
def test_refusals(call, message):
    mod = registers({"a": "float32"}, "float32", call)
    with pytest.raises(UnsupportedError, match=message):
        emit_module(mod, surface=surface_of("2026-09"))
