"""vcvt between numbers: every rounding letter, saturating and not, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from engine_harness import NUMPY, bits, in_ub, lanes, same
from exact_rounding import rounded

RNG = np.random.default_rng(9)
HALVES = ("EVEN", "ODD")


def convert(source: str, target: str, values: np.ndarray, words: str = "") -> np.ndarray:
    """Register by register; with parts where the widths differ, one result per value."""
    s, t = bits(source), bits(target)
    ratio = max(s, t) // min(s, t)
    parts = {1: ("",), 2: HALVES, 4: ("P0", "P1", "P2", "P3")}[ratio]
    n, wide = lanes(source), lanes(target)
    rows = values.reshape(-1, n)
    store = min(t, 32)
    kind, per = f"ui{store}", 2048 // store
    body = f"""\
    m, w = pto.pset_b{min(s, 32)}("ALL"), pto.pset_b{min(t, 32)}("ALL")
    for k in range({len(rows)}):
        for p, part in enumerate({parts!r}):
            more = dict(part=part) if part else dict()
            v = pto.vcvt(pto.vlds(a, k * {n}), pto.{target}, m{words}, **more)
            pto.vsts(pto.vbitcast(v, pto.{kind}), c, (k * {len(parts)} + p) * {per}, w, dist="NORM_B{store}")
    """
    found = in_ub(body, {"a": (source, values)}, {"c": (kind, len(rows) * len(parts) * per)})["c"]
    found = found.view(np.uint8).view(NUMPY[target]).reshape(len(rows), len(parts), wide)
    if t > s:  # part p holds every ratio-th lane from p on
        return found.transpose(0, 2, 1).ravel()
    split = found.reshape(len(rows), len(parts), n, ratio)
    for p in range(len(parts)):
        assert not np.delete(split[:, p], p, axis=2).view(np.uint8).any()
    return np.ascontiguousarray(split[:, 0, :, 0]).ravel()


def numbers(dtype: str, count: int, scale: float) -> np.ndarray:
    special = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 127.5, 128.0, -128.5, 255.5, 256.0, -0.25,
               32767.5, -32768.5, 65504.0, -65504.0, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 3e38, -3e38]  # fmt: skip
    with np.errstate(over="ignore"):
        return np.concatenate((special, RNG.standard_normal(count) * scale))[:count].astype(NUMPY[dtype])


def to_integer(values: np.ndarray, target: str, letter: str, saturate: bool) -> np.ndarray:
    info = np.iinfo(NUMPY[target])
    out = []
    for x in values.astype(np.float64):
        if np.isnan(x):
            out.append(0)
        elif np.isinf(x):
            out.append(info.max if x > 0 else info.min)
        else:
            exact = rounded(Fraction(x), letter)
            exact = min(max(exact, info.min), info.max) if saturate else exact % 2**info.bits
            out.append(exact)
    return np.array([x % 2**info.bits for x in out], np.uint64).astype(f"u{info.bits // 8}").view(NUMPY[target])


@pytest.mark.parametrize("sat", ["SAT", "NOSAT"])
@pytest.mark.parametrize("letter", "RAFCZ")
@pytest.mark.parametrize(
    ("source", "target"),
    [("f32", "i16"), ("f32", "i32"), ("f32", "i64"), ("f16", "i8"), ("f16", "ui8"), ("f16", "i16"), ("f16", "i32"), ("bf16", "i32")],
)
def test_floats_to_integers(source: str, target: str, letter: str, sat: str) -> None:
    values = numbers(source, 4 * lanes(source), 300.0)
    one_mode = (source, target) == ("f16", "i32")
    found = convert(source, target, values, f', rnd="{letter}"' + ("" if one_mode else f', sat="{sat}"'))
    same(found, to_integer(values, target, letter, sat == "SAT" or one_mode or (source, target) == ("f16", "i16")))


def test_truncation_as_documented() -> None:
    most = np.finfo(np.float32).max
    assert convert("f32", "i16", np.full(64, most, np.float32), ', rnd="Z", sat="NOSAT"')[0] == 0
    halves = np.resize(np.array([65504, -65504], np.float16), 128)
    assert convert("f16", "i8", halves, ', rnd="Z", sat="NOSAT"')[0] == -32
    assert convert("f16", "ui8", halves, ', rnd="Z", sat="NOSAT"')[:2].tolist() == [224, 32]


# Digits, least exponent, largest finite number.
PRECISION = {
    "f16": (11, -14, 65504.0),
    "bf16": (8, -126, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)),
    "f32": (24, -126, float(np.finfo(np.float32).max)),
}


def to_float(values: list[Fraction | float], target: str, letter: str) -> np.ndarray:
    digits, least, _ = PRECISION[target]
    out = []
    for x in values:
        if x == 0:
            out.append(float(x))
            continue
        exact = Fraction(x)
        top = abs(exact)
        e = max(top.numerator.bit_length() - top.denominator.bit_length() - 1, least - 1)
        while top >= Fraction(2) ** (e + 1):
            e += 1
        step = Fraction(2) ** (max(e, least) - digits + 1)
        y = float(rounded(exact / step, letter) * step)
        out.append(np.copysign(y, float(exact)))
    return np.array(out, np.float64).astype(NUMPY[target])


@pytest.mark.parametrize(
    ("source", "target", "letters", "scale"),
    [("f32", "f16", "RAFCZO", 100.0), ("f32", "f16", "RAFCZO", 1e-6), ("f32", "bf16", "RAFCZ", 1e10), ("bf16", "f16", "RAFCZ", 1e-4)],
)
def test_floats_to_narrower_floats(source: str, target: str, letters: str, scale: float) -> None:
    values = (RNG.standard_normal(2 * lanes(source)) * scale).astype(NUMPY[source])
    values[:4] = [0.0, -0.0, 1.0, -1.0]
    wide = values.astype(np.float64)
    for letter in letters:
        for sat in ("SAT", "NOSAT"):
            same(convert(source, target, values, f', rnd="{letter}", sat="{sat}"'), to_float(list(wide), target, letter))


@np.errstate(over="ignore")
@pytest.mark.parametrize(("source", "target"), [("f32", "f16"), ("f32", "bf16"), ("bf16", "f16")])
def test_overflow_of_floats(source: str, target: str) -> None:
    most = PRECISION[target][2]
    values = np.resize(np.array([np.inf, -np.inf, np.nan, 3.3e38, -3.3e38, 70000.0, most, -most], NUMPY[source]), lanes(source))
    if target == "bf16":
        values[3::8], values[4::8] = np.finfo(np.float32).max, -np.finfo(np.float32).max
    clamped = convert(source, target, values, ', rnd="R", sat="SAT"').astype(np.float64)
    wide = values.astype(np.float64)
    np.testing.assert_array_equal(clamped, np.where(np.isnan(wide), 0, np.clip(wide.astype(NUMPY[target]).astype(np.float64), -most, most)))
    kept = convert(source, target, values, ', rnd="R", sat="NOSAT"').astype(np.float64)
    np.testing.assert_array_equal(kept, wide.astype(NUMPY[target]).astype(np.float64))


@pytest.mark.parametrize("letter", "RAFCZ")
@pytest.mark.parametrize(("source", "target"), [("i16", "f16"), ("i32", "f32")])
def test_integers_to_floats(source: str, target: str, letter: str) -> None:
    info = np.iinfo(NUMPY[source])
    values = RNG.integers(info.min, info.max, 2 * lanes(source), dtype=NUMPY[source], endpoint=True)
    values[:8] = [0, 1, -1, info.max, info.min, info.max - 1, 2049 if info.bits == 16 else 2**24 + 1, -(2**11 + 3)]
    same(convert(source, target, values, f', rnd="{letter}"'), to_float([Fraction(int(x)) for x in values], target, letter))


@pytest.mark.parametrize("letter", "RAFCZ")
def test_a_64_bit_detour(letter: str) -> None:
    """s32 to s64 and on to f32 or back, both of them the lanes that EVEN chose."""
    values = RNG.integers(-(2**31), 2**31, 64).astype(np.int32)
    values[:4] = [2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 3]
    body = f"""\
    m = pto.pset_b32("ALL")
    v = pto.vcvt(pto.vlds(a, 0), pto.i64, m, part="EVEN")
    pto.vsts(pto.vcvt(v, pto.f32, m, rnd="{letter}", part="ODD"), c, 0, m)
    pto.vsts(pto.vcvt(v, pto.i32, m, sat="NOSAT", part="EVEN"), d, 0, m)
    """
    found = in_ub(body, {"a": ("i32", values)}, {"c": ("f32", 64), "d": ("i32", 64)})
    expected = to_float([Fraction(int(x)) for x in values[::2]], "f32", letter)
    same(np.ascontiguousarray(found["c"][1::2]), expected)
    same(np.ascontiguousarray(found["d"][::2]), values[::2])
    assert not found["c"][::2].any() and not found["d"][1::2].any()


@pytest.mark.parametrize("sat", ["SAT", "NOSAT"])
@pytest.mark.parametrize(
    ("source", "target"),
    [("ui16", "ui8"), ("i16", "ui8"), ("ui32", "ui8"), ("ui32", "ui16"), ("ui32", "i16"), ("i32", "ui8"), ("i32", "ui16"), ("i32", "i16")],
)
def test_integers_to_narrower_integers(source: str, target: str, sat: str) -> None:
    info, small = np.iinfo(NUMPY[source]), np.iinfo(NUMPY[target])
    values = RNG.integers(info.min, info.max, 2 * lanes(source), dtype=NUMPY[source], endpoint=True)
    values[:6] = [0, 1, small.max, small.max + 1, info.max, info.min]
    values[6:40] = RNG.integers(0 if info.min == 0 else -300, 300, 34)
    wide = values.astype(np.int64)
    expected = np.clip(wide, small.min, small.max) if sat == "SAT" else wide
    same(convert(source, target, values, f', sat="{sat}"'), expected.astype(NUMPY[target]))


def test_negative_halves_of_words_become_zero() -> None:
    values = RNG.integers(-(2**15), 2**15, 128).astype(np.int16)
    same(convert("i16", "ui32", values), np.maximum(values, 0).astype(np.uint32))
