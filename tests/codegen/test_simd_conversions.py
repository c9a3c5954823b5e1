"""Every conversion of registers: values by rational arithmetic, places by the part, lanes by the predicate."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from exact_rounding import rounded
from simd_registers import SURFACES, load, numpy_dtype, register, run_kernel, sample, store
from tir_builder import op

from tilelang_pto.codegen.rules.simd_convert import CONVERSIONS
from tilelang_pto.errors import UnsupportedError

TIR = {
    "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8", "ui8": "uint8", "i16": "int16", "ui16": "uint16",
    "i32": "int32", "ui32": "uint32", "i64": "int64", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f4e2m1x2": "float4_e2m1fnx2",
}  # fmt: skip
FORMATS = {"f32": (24, -126), "f16": (11, -14), "bf16": (8, -126), "f8e4m3": (4, -6), "f8e5m2": (3, -14), "f4e2m1x2": (2, 0)}
"""Bits of precision and least exponent."""
LARGEST = {"f32": 2.0**128 - 2.0**104, "f16": 65504.0, "bf16": 2.0**128 - 2.0**120, "f8e4m3": 448.0, "f8e5m2": 57344.0, "f4e2m1x2": 6.0}
FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
FP4 += [-value for value in FP4]


def bits(pto: str) -> int:
    return numpy_dtype(TIR[pto]).itemsize * 8


def to_float(value: Fraction, target: str, letter: str) -> float:
    """Nearest float of the format, or what the letter asks for; values too large stay too large."""
    precision, least = FORMATS[target]
    if value == 0:
        return 0.0
    exponent = math.frexp(float(value))[1] - 1 if abs(value) < 2**900 else 900
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, least) - precision + 1)
    return float(rounded(value / quantum, letter) * quantum)


def to_integer(value: float | Fraction, target: str, letter: str, saturate: bool) -> int:
    info = np.iinfo(numpy_dtype(TIR[target]))
    if isinstance(value, float) and not math.isfinite(value):
        return 0 if math.isnan(value) else info.max if value > 0 else info.min
    whole = rounded(Fraction(value), letter)
    if saturate:
        return min(max(whole, info.min), info.max)
    whole &= (1 << info.bits) - 1
    return whole - (1 << info.bits) if whole > info.max else whole


def converted(value, source: str, target: str, letter: str, saturate: bool):
    """One lane; floats come as Python floats, integers as int."""
    saturate = saturate and target != "f32"
    if target not in FORMATS:
        saturate = saturate or (source, target) in (("f16", "i16"), ("f16", "i32"))
        if (source, target) == ("i16", "ui32"):
            return max(value, 0)
        return to_integer(value, target, letter, saturate)
    if isinstance(value, float) and not math.isfinite(value):
        if target == "f4e2m1x2" or saturate:
            return 0.0 if math.isnan(value) else math.copysign(LARGEST[target], value)
        return math.nan if target == "f8e4m3" else value
    result = math.copysign(to_float(Fraction(value), target, letter), value if isinstance(value, float) else 1.0 if value >= 0 else -1.0)
    if abs(result) > LARGEST[target]:
        if target == "f4e2m1x2" or saturate:
            return math.copysign(LARGEST[target], result)
        return math.nan if target == "f8e4m3" else math.copysign(math.inf, result)
    return result


def values_of(array: np.ndarray, pto: str) -> list:
    """Lanes as Python numbers; a byte of fp4 gives two."""
    if pto == "f4e2m1x2":
        return [FP4[half] for byte in array.tolist() for half in (byte & 15, byte >> 4)]
    return [float(value) for value in array.astype(np.float64)] if pto in FORMATS else array.tolist()


def lanes_of(values: list, pto: str) -> np.ndarray:
    if pto == "f4e2m1x2":
        codes = [FP4.index(abs(value)) | (8 if math.copysign(1, value) < 0 else 0) for value in values]
        return np.array([low | high << 4 for low, high in zip(codes[0::2], codes[1::2], strict=True)], np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array(values, np.float64 if pto in FORMATS else object).astype(numpy_dtype(TIR[pto]))


def inputs_of(pto: str, target: str) -> np.ndarray:
    """A register of values that a conversion can get wrong: middles, ends of the ranges, both signs, infinities, NaN."""
    kind = numpy_dtype(TIR[pto])
    count = 256 // kind.itemsize
    rng = np.random.default_rng(17)
    if pto not in FORMATS:
        known = (
            sample(TIR[pto]) if pto != "i64" else np.array([0, 1, -1, 2**31, -(2**31) - 1, 2**53 + 1, -(2**62) - 3, 2**24 + 1], np.int64)
        )
        small = rng.integers(0 if pto.startswith("u") else -100, 100, count)
        edges = [255, 256, 127, 128, 32767, 2**15, 65535, 2**16 + 1, 2**24 + 1, 2**25 + 2] + (
            [] if pto.startswith("u") else [-1, -128, -129, -32769]
        )
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        edges = np.array([value for value in edges if low <= value <= high], kind)
        return np.concatenate([edges, known, small.astype(kind)])[:count]
    if pto == "f4e2m1x2":
        return np.arange(256, dtype=np.uint8)
    if bits(pto) == 8:
        return np.arange(256, dtype=np.uint8).view(kind)
    edges = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.5,
        0.25,
        5.0,
        -5.0,
        0.75,
        np.inf,
        -np.inf,
        np.nan,
        7.0,
        -1e9,
        1e9,
        300.0,
        -300.5,
        127.5,
        255.5,
    ]
    edges += [LARGEST.get(target, 32767.5) * s for s in (1, -1, 1.01, -1.1)] + [65504.0, 2.0**-14, 2.0**-24 * 1.5, 2.0**-9 * 0.5, 2.0**-16]
    with np.errstate(over="ignore", invalid="ignore"):
        random = rng.normal(size=count) * 2.0 ** rng.integers(-12, 12, count)
        return np.concatenate([np.array(edges), random])[:count].astype(kind)


def places(source: str, target: str, part: str, index: int) -> tuple[int, int]:
    """Source and target lane of a value."""
    step = 0 if not part else {"E": 0, "O": 1}.get(part[5], 0) if not part.startswith("PART_P") else int(part[6])
    if {source, target} & {"f4e2m1x2"}:
        byte = index // 2 * 4 + step
        return (index, 2 * byte + index % 2) if target == "f4e2m1x2" else (2 * byte + index % 2, index)
    ratio = max(bits(source), bits(target)) // min(bits(source), bits(target))
    other = index * ratio + step
    return (other, index) if bits(source) < bits(target) or (bits(target) == 64) else (index, other)


def model(array: np.ndarray, source: str, target: str, letter: str, saturate: bool, part: str, active=None) -> np.ndarray:
    incoming = values_of(array, source)
    fp4 = 2 if target == "f4e2m1x2" else 1
    results: list = [0.0 if target in FORMATS else 0] * (256 // numpy_dtype(TIR[target]).itemsize * fp4)
    for index in range(len(incoming)):
        here, there = places(source, target, part, index)
        if here >= len(incoming) or there >= len(results):
            break
        if active is None or active(here):
            results[there] = converted(incoming[here], source, target, letter, saturate)
    return lanes_of(results, target)


def call_of(surface, array, source, target, controls, mask):
    def body(at):
        value = op("tl.simd.vcvt", register(TIR[target]), load(at, 0, TIR[source]), mask, *controls, "MODE_ZEROING")
        return [store(at, 1, TIR[target], value)]

    if "i64" in (source, target):  # registers of 64-bit lanes live between conversions only
        raise AssertionError("64-bit lanes have tests of their own")
    return run_kernel(surface, [array], [(TIR[target], 256 // numpy_dtype(TIR[target]).itemsize)], body)[0]


def letters(source: str, target: str) -> str:
    if target.startswith("f8"):
        return "R"  # the others exist in PTODSL, but what the hardware makes of them is not documented
    return "RAFCZO" if (source, target) == ("f32", "f16") else "RAFCZ"


def parts(source: str, target: str) -> list[str]:
    widths = sorted((bits(source), bits(target)))
    quarters = "f4e2m1x2" in (source, target) or widths[1] == 4 * widths[0]
    return [f"PART_P{number}" for number in range(4)] if quarters else ["PART_EVEN", "PART_ODD"]


def narrow_mask(source: str, target: str, pattern: str = "PAT_ALL"):
    return op("tl.simd.pset", "boolx256", min(bits(source), bits(target), 32), pattern)


PLAIN = [pair for pair in CONVERSIONS if "i64" not in pair]


def agree(got: np.ndarray, expected: np.ndarray, pto: str) -> None:
    if pto in FORMATS and pto != "f4e2m1x2":
        got, expected = got.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("pair", PLAIN, ids=lambda pair: "-".join(pair))
def test_every_rounding_saturation_and_part(surface, pair):
    source, target = pair
    wanted = CONVERSIONS[pair]
    whole = inputs_of(source, target)
    choices = {
        "rnd": [f"ROUND_{letter}" for letter in letters(*pair)] if "rnd" in wanted else ["ROUND_R"],
        "sat": ["RS_ENABLE", "RS_DISABLE"] if "sat" in wanted else ["RS_DISABLE"],
        "part": parts(*pair) if "part" in wanted else [""],
    }
    for rounding in choices["rnd"]:
        for saturation in choices["sat"]:
            for part in choices["part"]:
                if surface == "2026-08" and (rounding, part) not in ((rounding, choices["part"][0]), (choices["rnd"][0], part)):
                    continue  # the other surface goes through all of them
                given = {"rnd": rounding, "sat": saturation, "part": part}
                array = whole
                if "R" not in rounding[6:] and saturation == "RS_DISABLE" and target in FORMATS and source in FORMATS:
                    with np.errstate(invalid="ignore"):  # what a directed rounding makes of too large values is not documented
                        array = np.where(np.abs(whole.astype(np.float64)) > LARGEST[target], whole.dtype.type(1), whole)
                got = call_of(surface, array, source, target, [given[name] for name in wanted], narrow_mask(*pair))
                expected = model(array, source, target, rounding[-1], saturation == "RS_ENABLE", part)
                try:
                    agree(got, expected, target)
                except AssertionError as error:
                    raise AssertionError(f"{source} to {target} {rounding} {saturation} {part}: {error}") from error


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("pair", PLAIN, ids=lambda pair: "-".join(pair))
def test_inactive_lanes_are_zero(surface, pair):
    """The predicate has the width of the narrower type in TIR; its bits are read at the width of the source's lanes."""
    source, target = pair
    array = inputs_of(source, target)
    given = {"rnd": "ROUND_R", "sat": "RS_ENABLE", "part": parts(*pair)[0]}
    controls = [given[name] for name in CONVERSIONS[pair]]
    width = min(bits(source), bits(target), 32)
    got = call_of(surface, array, source, target, controls, narrow_mask(source, target, "PAT_VL32"))
    per_lane = bits(source) // 8
    lanes = 2 if source == "f4e2m1x2" else 1  # two values of a byte share its bit

    def active(lane):
        if target == "f4e2m1x2":
            lane -= lane % 2  # the even lane stands for both
        position = lane // lanes * per_lane
        return position < 32 * width // 8 and position % (width // 8) == 0

    saturate = "sat" in CONVERSIONS[pair]
    agree(got, model(array, source, target, "R", saturate, given["part"] if "part" in CONVERSIONS[pair] else "", active), target)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("source", ["f32", "i32"])
@pytest.mark.parametrize("target", ["f32", "i32"])
def test_64_bit_lanes_between_conversions(surface, source, target):
    """There and back: each part of the source, each part of the target."""
    array = inputs_of(source, "i64")
    if source == "f32":
        array = np.where(np.isfinite(array), array, np.float32(3)).clip(-1e18, 1e18)
    for there in ("PART_EVEN", "PART_ODD"):
        for back in ("PART_EVEN", "PART_ODD"):

            def body(at, there=there, back=back):
                mask = op("tl.simd.pset", "boolx256", 32, "PAT_ALL")
                first = ("ROUND_Z", "RS_ENABLE", there) if source == "f32" else (there,)
                second = ("ROUND_R", back) if target == "f32" else ("RS_ENABLE", back)
                wide = op("tl.simd.vcvt", "int64x32", load(at, 0, TIR[source]), mask, *first, "MODE_ZEROING")
                return [store(at, 1, TIR[target], op("tl.simd.vcvt", register(TIR[target]), wide, mask, *second, "MODE_ZEROING"))]

            (got,) = run_kernel(surface, [array], [(TIR[target], 64)], body)
            middle = [rounded(Fraction(value), "Z") for value in values_of(array[0 if there == "PART_EVEN" else 1 :: 2], source)]
            expected = np.zeros(64, numpy_dtype(TIR[target]))
            expected[0 if back == "PART_EVEN" else 1 :: 2] = [converted(value, "i64", target, "R", True) for value in middle]
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("source", ["f8e4m3", "f8e5m2"])
def test_the_model_knows_every_low_precision_value(source):
    """The formats above against ml_dtypes, for every bit pattern and for every value halfway between two."""
    kind = numpy_dtype(TIR[source])
    known = np.arange(256, dtype=np.uint8).view(kind).astype(np.float64)
    finite = np.unique(known[np.isfinite(known)])
    middles = (finite[1:] + finite[:-1]) / 2
    for value in [*finite, *middles]:
        assert to_float(Fraction(value), source, "R") == float(np.float64(value).astype(kind))
    assert float(ml_dtypes.finfo(kind).max) == LARGEST[source]


@pytest.mark.parametrize(
    ("source", "target", "controls", "message"),
    [
        ("f32", "f8e4m3", ("ROUND_F", "RS_ENABLE", "PART_P0"), "ROUND_F as rnd"),
        ("f32", "bf16", ("ROUND_O", "RS_ENABLE", "PART_EVEN"), "ROUND_O as rnd"),
        ("f32", "bf16", ("ROUND_R", "RS_ENABLE", "PART_P2"), "PART_P2 as part"),
        ("f32", "f8e4m3", ("ROUND_R", "RS_ENABLE", "PART_EVEN"), "PART_EVEN as part"),
        ("f32", "i32", ("ROUND_R",), "wanted: rnd, sat"),
        ("f32", "ui16", ("ROUND_R", "RS_ENABLE", "PART_EVEN"), "vcvt from f32 to ui16"),
    ],
)
def test_refusals(source, target, controls, message):
    with pytest.raises(UnsupportedError, match=message):
        call_of("2026-09", inputs_of(source, target), source, target, controls, narrow_mask(source, target))
