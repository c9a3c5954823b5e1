"""Predicates: counted ones, packing, interleaving, their images in memory."""

from __future__ import annotations

import numpy as np
import pytest
from simd_registers import SURFACES, first, full, load, numpy_dtype, register, run_kernel, sample, store
from tir_builder import immediate, op
from tvm import tirx

from tilelang_pto.errors import UnsupportedError

UNSIGNED = {8: "uint8", 16: "uint16", 32: "uint32"}


def bits_of(surface, width, make, inputs=()):
    """Which lanes of ``width`` bits a predicate has; ``make`` gets the pointer maker and gives the predicate."""
    dtype = UNSIGNED[width]

    def body(at):
        statements, mask = make(at)
        ones = op("tl.simd.vdup", register(dtype), immediate(1), full(dtype), "MODE_ZEROING")
        zeros = op("tl.simd.vdup", register(dtype), immediate(0), full(dtype), "MODE_ZEROING")
        return [*statements, store(at, len(inputs), dtype, op("tl.simd.vsel", register(dtype), ones, zeros, mask))]

    return run_kernel(surface, list(inputs), [(dtype, 2048 // width)], body)[0].astype(bool)


def compared(at, number, width):
    """A predicate of random lanes: where the input is not zero."""
    return op("tl.simd.vcmps", "boolx256", load(at, number, UNSIGNED[width]), immediate(0), full(UNSIGNED[width]), "ne")


def lanes(seed, width):
    return np.random.default_rng(seed).integers(0, 2, 2048 // width).astype(UNSIGNED[width])


def raw(flags: np.ndarray, width: int) -> np.ndarray:
    """The 256 bits of a predicate: lane ``i`` of ``width`` bits is bit ``i * width / 8``."""
    image = np.zeros(256, bool)
    image[:: width // 8] = flags
    return image


PATTERNS = {
    "PAT_ALL": lambda lane, count: lane >= 0,
    "PAT_ALLF": lambda lane, count: lane < 0,
    "PAT_H": lambda lane, count: lane < count // 2,
    "PAT_Q": lambda lane, count: lane < count // 4,
    "PAT_M3": lambda lane, count: lane % 3 == 0,
    "PAT_M4": lambda lane, count: lane % 4 == 0,
    **{f"PAT_VL{first}": lambda lane, count, first=first: lane < first for first in (1, 2, 3, 4, 8, 16, 32, 64)},
}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("operation", ["tl.simd.pset", "tl.simd.pge"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern(surface, width, operation, pattern):
    got = bits_of(surface, width, lambda at: ([], op(operation, "boolx256", width, pattern)))
    count = 2048 // width
    np.testing.assert_array_equal(got, PATTERNS[pattern](np.arange(count), count))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("count", [0, 1, 7, 63, 64, 200, 300, -5])
def test_counted_mask(surface, width, count):
    got = bits_of(surface, width, lambda at: ([], op("tl.simd.update_mask", "boolx256", count, width)))
    np.testing.assert_array_equal(got, np.arange(2048 // width) < count)


@pytest.mark.parametrize("surface", SURFACES)
def test_mask_of_a_running_count(surface):
    """Rounds of a loop with a tail, the way a kernel handles the rest of a row."""
    index, zero = tirx.Var("i", "int32"), [immediate(0)]
    acc = tirx.decl_buffer((1,), "float32x64", name="acc", scope="local.var")

    def body(at):
        mask = op("tl.simd.update_mask", "boolx256", immediate(100) - index * 64, 32)
        one = tirx.FloatImm("float32", 1.0)
        step = op("tl.simd.vadd", "float32x64", tirx.BufferLoad(acc, zero), op("tl.simd.vdup", "float32x64", one, mask, "MODE_ZEROING"),
                  full("float32"), "MODE_ZEROING")  # fmt: skip
        return [
            tirx.AllocBuffer(acc),
            tirx.BufferStore(acc, op("tl.simd.vdup", "float32x64", immediate(0), full("float32"), "MODE_ZEROING"), zero),
            tirx.For(index, immediate(0), immediate(3), tirx.ForKind.SERIAL, tirx.BufferStore(acc, step, zero)),
            store(at, 0, "float32", tirx.BufferLoad(acc, zero)),
        ]

    (got,) = run_kernel(surface, [], [("float32", 64)], body)
    np.testing.assert_array_equal(got, np.clip(np.ceil((100 - np.arange(64)) / 64), 0, 3))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("part", ["LOWER", "HIGHER"])
@pytest.mark.parametrize(("width", "target"), [(32, 16), (16, 8)])
def test_pack(surface, part, width, target):
    flags = lanes(1, width)
    got = bits_of(surface, target, lambda at: ([], op("tl.simd.ppack", "boolx256", compared(at, 0, width), part)), [flags])
    half = raw(flags, width)[::2]
    image = np.concatenate([half, np.zeros(128, bool)] if part == "LOWER" else [np.zeros(128, bool), half])
    np.testing.assert_array_equal(got, image[:: target // 8])


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("part", ["LOWER", "HIGHER"])
@pytest.mark.parametrize(("width", "target"), [(8, 16), (16, 32)])
def test_unpack(surface, part, width, target):
    flags = lanes(2, width)
    got = bits_of(surface, target, lambda at: ([], op("tl.simd.punpack", "boolx256", compared(at, 0, width), part)), [flags])
    image = raw(flags, width)
    half = image[:128] if part == "LOWER" else image[128:]
    spread = np.zeros(256, bool)
    spread[::2] = half
    np.testing.assert_array_equal(got, spread[:: target // 8])


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("name", ["pintlv", "pdintlv"])
@pytest.mark.parametrize("part", [0, 1])
def test_interleave(surface, width, name, part):
    a, b = lanes(3, width), lanes(4, width)
    pair = tirx.Var("pair", "boolx256")

    def make(at):
        call = op(f"tl.simd.{name}", "boolx256", compared(at, 0, width), compared(at, 1, width), width)
        return [tirx.Bind(pair, call)], op("tl.simd.pair_get", "boolx256", pair, part)

    got = bits_of(surface, width, make, [a, b])
    zipped, joined = np.stack([a, b], axis=1).reshape(2, -1), np.concatenate([a, b])
    np.testing.assert_array_equal(got, (zipped[part] if name == "pintlv" else joined[part::2]).astype(bool))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("width", [8, 16, 32])
def test_image_in_memory(surface, width):
    """Stored as 256 bits, loaded back behind a barrier."""
    flags = lanes(5, width)

    def make(at):
        put = tirx.Evaluate(op("tl.simd.pst", "void", at(2, "uint8", 0, 32), compared(at, 0, width), "NORM"))
        barrier = tirx.Evaluate(op("tl.simd.mem_bar", "void", "VST_VLD"))
        return [put, barrier], op("tl.simd.pld", "boolx256", at(2, "uint8", 0, 32), "NORM")

    got = bits_of(surface, width, make, [flags])
    np.testing.assert_array_equal(got, flags.astype(bool))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dist", ["NORM", "PK"])
def test_stored_image(surface, dist):
    flags = lanes(6, 16)

    def body(at):
        return [tirx.Evaluate(op("tl.simd.pst", "void", at(1, "uint32", 0, 8), compared(at, 0, 16), dist))]

    (got,) = run_kernel(surface, [flags], [("uint8", 32)], body)
    image = raw(flags, 16)
    wanted = np.packbits(image if dist == "NORM" else image[::2], bitorder="little")
    np.testing.assert_array_equal(got[: wanted.size], wanted)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dist", ["NORM", "US", "DS"])
def test_loaded_image(surface, dist):
    memory = np.random.default_rng(7).integers(0, 256, 64).astype(np.uint8)
    got = bits_of(surface, 8, lambda at: ([], op("tl.simd.pld", "boolx256", at(0, "uint8", 0, 64), dist)), [memory])
    image = np.unpackbits(memory, bitorder="little").astype(bool)
    wanted = {"NORM": image[:256], "US": np.repeat(image[:128], 2), "DS": image[::2]}[dist]
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda at: op("tl.simd.update_mask", "boolx256", 3, 64), "64 as argument width of tl.simd.update_mask"),
        (lambda at: op("tl.simd.ppack", "boolx256", first("uint16", 4), "MIDDLE"), "MIDDLE as argument part of tl.simd.ppack"),
        (lambda at: op("tl.simd.pld", "boolx256", at(0, "uint8"), "PK"), "PK as argument dist of tl.simd.pld"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(UnsupportedError, match=message):
        bits_of("2026-09", 16, lambda at: ([], call(at)), [sample("uint16")])


def test_lane_counts_of_the_model():
    assert numpy_dtype("uint16").itemsize * lanes(1, 16).size == 256
