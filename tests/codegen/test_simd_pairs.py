"""Operations with two results."""

from __future__ import annotations

import numpy as np
import pytest
from simd_registers import SURFACES, first, full, load, numpy_dtype, register, run_kernel, sample, store
from tir_builder import immediate, op
from tvm import tirx

from tilelang_pto.errors import UnsupportedError

ALL = ("float32", "bfloat16", "float16", "int32", "uint32", "int16", "uint16", "int8", "uint8")


def both(pair, dtype, number=None):
    """The two parts of a bound pair."""
    return [op("tl.simd.pair_get", dtype, pair, part) for part in (0, 1)]


def halves(surface, dtype, arrays, make, output=None):
    """Both results of an operation on registers; ``make`` gives the call."""
    output = output or dtype
    pair = tirx.Var("pair", register(dtype))
    lanes = 256 // numpy_dtype(output).itemsize

    def body(at):
        parts = both(pair, register(dtype))
        return [
            tirx.Bind(pair, make(at)),
            store(at, len(arrays), output, parts[0]),
            store(at, len(arrays) + 1, output, parts[1]),
        ]

    return run_kernel(surface, arrays, [(output, lanes), (output, lanes)], body)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ALL)
def test_interleave_and_back(surface, dtype):
    a, b = sample(dtype), sample(dtype, 1)
    zipped = np.stack([a, b], axis=1).reshape(-1)
    low, high = halves(surface, dtype, [a, b], lambda at: op("tl.simd.vintlv", register(dtype), load(at, 0, dtype), load(at, 1, dtype)))
    np.testing.assert_array_equal(np.concatenate([low, high]).view(np.uint8), zipped.view(np.uint8))
    even, odd = halves(surface, dtype, [a, b], lambda at: op("tl.simd.vdintlv", register(dtype), load(at, 0, dtype), load(at, 1, dtype)))
    joined = np.concatenate([a, b])
    np.testing.assert_array_equal(even.view(np.uint8), joined[0::2].copy().view(np.uint8))
    np.testing.assert_array_equal(odd.view(np.uint8), joined[1::2].copy().view(np.uint8))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("offset", [None, 0, 1])
def test_deinterleaving_load(surface, dtype, offset):
    memory = np.concatenate([sample(dtype, seed) for seed in range(4)])
    bits = numpy_dtype(dtype).itemsize * 8
    step = 32 * 8 // bits * (offset or 0)
    extra = () if offset is None else (step,)
    call = lambda at: op("tl.simd.vld2", register(dtype), at(0, dtype, 0, 512 * 8 // bits), f"DINTLV_B{bits}", *extra)  # noqa: E731
    even, odd = halves(surface, dtype, [memory], call)
    count = 512 * 8 // bits
    np.testing.assert_array_equal(even.view(np.uint8), memory[step : step + count : 2].copy().view(np.uint8))
    np.testing.assert_array_equal(odd.view(np.uint8), memory[step + 1 : step + count : 2].copy().view(np.uint8))


def test_deinterleaving_load_of_another_width_is_refused():
    with pytest.raises(UnsupportedError, match="DINTLV_B16 into"):
        halves(
            "2026-09", "float32", [sample("float32")], lambda at: op("tl.simd.vld2", "float32x64", at(0, "float32", 0, 128), "DINTLV_B16")
        )


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_wide_product(surface, dtype):
    a, b = sample(dtype), sample(dtype, 1)
    low, high = halves(
        surface, dtype, [a, b], lambda at: op("tl.simd.vmull", register(dtype), load(at, 0, dtype), load(at, 1, dtype), first(dtype, 32))
    )
    exact = [int(x) * int(y) if lane < 32 else 0 for lane, (x, y) in enumerate(zip(a, b, strict=True))]
    np.testing.assert_array_equal(low.view(np.uint32), np.array([value & 0xFFFFFFFF for value in exact], np.uint32))
    np.testing.assert_array_equal(high.view(np.uint32), np.array([value >> 32 & 0xFFFFFFFF for value in exact], np.uint32))


def carried(surface, name, dtype, a, b, carry=None, active=64):
    """(Sum or difference, carry lanes as 0 and 1) of a carry operation."""
    pair = tirx.Var("pair", register(dtype))

    def body(at):
        operands = [load(at, 0, dtype), load(at, 1, dtype)]
        if carry is not None:
            operands.append(op("tl.simd.vcmps", "boolx256", load(at, 2, "int32"), immediate(0), full("int32"), "ne"))
        ones = op("tl.simd.vdup", register("int32"), immediate(1), full("int32"), "MODE_ZEROING")
        zeros = op("tl.simd.vdup", register("int32"), immediate(0), full("int32"), "MODE_ZEROING")
        mask = full(dtype) if active == 64 else first(dtype, active)
        return [
            tirx.Bind(pair, op(f"tl.simd.{name}", register(dtype), *operands, mask)),
            store(at, 3, dtype, op("tl.simd.pair_get", register(dtype), pair, 1)),
            store(at, 4, "int32", op("tl.simd.vsel", register("int32"), ones, zeros, op("tl.simd.pair_get", "boolx256", pair, 0))),
        ]

    flags = np.zeros(64, np.int32) if carry is None else carry
    return run_kernel(surface, [a, b, flags], [(dtype, 64), ("int32", 64)], body)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("active", [64, 8])
@pytest.mark.parametrize("name", ["vaddc", "vsubc", "vaddcs", "vsubcs"])
def test_carries(surface, dtype, name, active):
    """Unsigned overflow of a sum; of a difference: that nothing was borrowed, for which 2026-08 adds the complement."""
    a, b = sample(dtype), np.roll(sample(dtype, 1), 7)
    b[20:30] = a[20:30]
    incoming = np.random.default_rng(3).integers(0, 2, 64).astype(np.int32) if name.endswith("s") else None
    value, carry = carried(surface, name, dtype, a, b, incoming, active)
    x, y = a.view(np.uint32).astype(np.int64), b.view(np.uint32).astype(np.int64)
    if name.startswith("vadd"):
        exact = x + y + (0 if incoming is None else incoming)
        expected = exact >= 2**32
    else:
        exact = x - y - (0 if incoming is None else 1 - incoming)
        expected = exact >= 0
    exact[active:], expected[active:] = 0, False
    np.testing.assert_array_equal(value.view(np.uint32), (exact & 0xFFFFFFFF).astype(np.uint32))
    np.testing.assert_array_equal(carry, expected.astype(np.int32))


@pytest.mark.parametrize("surface", SURFACES)
def test_a_pair_keeps_the_values_of_its_place(surface):
    """The load stays in front of a store behind it, wherever its parts are used."""
    a, b = sample("float32"), sample("float32", 1)
    pair = tirx.Var("pair", "float32x64")

    def body(at):
        return [
            tirx.Bind(pair, op("tl.simd.vld2", "float32x64", at(0, "float32", 0, 128), "DINTLV_B32")),
            store(at, 0, "float32", load(at, 1, "float32")),
            store(at, 2, "float32", op("tl.simd.pair_get", "float32x64", pair, 1)),
        ]

    (got,) = run_kernel(surface, [np.concatenate([a, a]), b], [("float32", 64)], body)
    np.testing.assert_array_equal(got, np.concatenate([a, a])[1::2])


@pytest.mark.parametrize("part", [0, 1])
def test_a_part_of_what_is_no_pair(part):
    value = tirx.Var("value", "float32x64")
    with pytest.raises(UnsupportedError, match=f"part {part} of vreg"):
        run_kernel(
            "2026-09",
            [sample("float32")],
            [("float32", 64)],
            lambda at: [
                tirx.Bind(value, load(at, 0, "float32")),
                store(at, 1, "float32", op("tl.simd.pair_get", "float32x64", value, part)),
            ],
        )
