"""Conversions to and from formats of 8 and 4 bits: every bit pattern, against ml_dtypes or the formulas of the formats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from engine_harness import bits, in_ub, same

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim.program import Type

BYTES = np.arange(256, dtype=np.uint8)
QUARTERS = ("P0", "P1", "P2", "P3")
HALVES = ("EVEN", "ODD")


def widened(source: str, target: str, codes: np.ndarray, parts: tuple[str, ...], program=None) -> np.ndarray:
    """All bytes of a register converted, part by part, back in the order of the bytes."""
    width = bits(target)
    n = 2048 // width
    body = f"""\
    v, m = pto.vlds(a, 0), pto.pset_b8("ALL")
    for k, part in enumerate({parts}):
        pto.vsts(pto.vcvt(v, pto.{target}, m, part=part), c, k * {n}, pto.pset_b{width}("ALL"), dist="NORM_B{width}")
    """
    found = in_ub(body, {"a": (source, codes)}, {"c": (target, n * len(parts))}, program=program)["c"]
    return found.reshape(len(parts), n).T.ravel()


def narrowed(source: str, target: str, values: np.ndarray, parts: tuple[str, ...], words: str, program=None) -> np.ndarray:
    """Values converted register by register, each with every part; the result has one code per value."""
    width = bits(source)
    n = 2048 // width
    assert values.size % n == 0
    out = []
    for start in range(0, values.size, 48 * n):
        rows = values[start : start + 48 * n]
        count = rows.size // n
        body = f"""\
        m, w = pto.pset_b{width}("ALL"), pto.pset_b8("ALL")
        with pto.for_(0, {count}, step=1) as k:
            for p, part in enumerate({parts}):
                v = pto.vbitcast(pto.vcvt(pto.vlds(a, k * {n}), pto.{target}, m, part=part{words}), pto.ui8)
                pto.vsts(v, c, (k * {len(parts)} + p) * 256, w, dist="NORM_B8")
        """
        found = in_ub(body, {"a": (source, rows)}, {"c": ("ui8", count * len(parts) * 256)}, program=program)["c"]
        found = found.reshape(count, len(parts), -1, len(parts))
        for p in range(len(parts)):
            same(np.ascontiguousarray(found[:, p, :, p]), found[:, 0, :, 0])
            assert not np.delete(found[:, p], p, axis=2).any()
        out.append(found[:, 0, :, 0].ravel())
    return np.concatenate(out)


# -- e4m3 and e5m2 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f8e4m3", "f8e5m2"])
def test_every_code_of_float8(dtype: str) -> None:
    kind = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}[dtype]
    found, expected = widened(dtype, "f32", BYTES.view(kind), QUARTERS), BYTES.view(kind).astype(np.float32)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    same(found[~np.isnan(found)], expected[~np.isnan(expected)])


@np.errstate(invalid="ignore")
def samples() -> np.ndarray:
    """Every bfloat16, every half (f32 holds both), and what lies beside the ties of the formats."""
    halves = np.arange(65536, dtype=np.uint16)
    wide = halves.view(ml_dtypes.bfloat16).astype(np.float32)
    exact = halves.view(np.float16).astype(np.float32)
    return np.concatenate((wide, exact, np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(-np.inf))))


@pytest.mark.parametrize("dtype", ["f8e4m3", "f8e5m2"])
def test_rounding_to_float8(dtype: str) -> None:
    kind = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}[dtype]
    most = np.float32(ml_dtypes.finfo(kind).max)
    values = samples()
    with np.errstate(all="ignore"):
        plain = values.astype(kind)
        clamped = np.clip(values, -most, most).astype(kind)
    nan = np.isnan(values)
    found = narrowed("f32", dtype, values, QUARTERS, ', rnd="R", sat="NOSAT"').view(kind)
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), np.isnan(plain.astype(np.float32)))
    same(found[~np.isnan(plain.astype(np.float32))], plain[~np.isnan(plain.astype(np.float32))])
    same(narrowed("f32", dtype, values, QUARTERS, ', rnd="R", sat="SAT"').view(kind), np.where(nan, kind(0), clamped))


@pytest.mark.parametrize(
    ("source", "target", "words", "message"),
    [
        ("f32", "f8e4m3", 'rnd="A", sat="SAT", part="P0"', "exist with rounding R only"),
        ("f16", "f8e5m2", 'rnd="R", sat="SAT", part="EVEN"', "convert to f32 first"),
        ("f32", "bf16", 'rnd="O", sat="SAT", part="EVEN"', "rounding to odd exists only from f32 to f16"),
        ("f32", "f16", 'rnd="H", sat="SAT", part="EVEN"', "unsupported rounding H"),
    ],
)
def test_what_the_hardware_lacks_is_refused(source: str, target: str, words: str, message: str) -> None:
    body = f'v = pto.vcvt(pto.vlds(a, 0), pto.{target}, pto.pset_b{bits(source)}("ALL"), {words})'
    with pytest.raises(SimulationError) as info:
        in_ub(body, {"a": (source, np.zeros(128))}, {})
    assert message in info.value.what


def test_inactive_lanes_become_zero() -> None:
    body = """\
    m = pto.pset_b32("M3")
    v = pto.vcvt(pto.vlds(a, 0), pto.f8e4m3, m, rnd="R", sat="SAT", part="P2")
    w = pto.vcvt(v, pto.f32, pto.pset_b8("VL128"), part="P2")
    pto.vsts(pto.vbitcast(v, pto.ui8), c, 0, pto.pset_b8("ALL"), dist="NORM_B8")
    pto.vsts(w, d, 0, pto.pset_b32("ALL"))
    """
    found = in_ub(body, {"a": ("f32", np.full(64, 1.0))}, {"c": ("ui8", 256), "d": ("f32", 64)})
    i = np.arange(64)
    expected = np.zeros((64, 4), np.uint8)
    expected[:, 2] = np.where(i % 3 == 0, 0x38, 0)
    same(found["c"], expected.ravel())
    same(found["d"], np.where((i % 3 == 0) & (4 * i + 2 < 128), np.float32(1), np.float32(0)))


# -- HiF8 --------------------------------------------------------------------------------------------------------------


def hif8_value(code: int) -> float:
    """By the table of the format: a prefix, the exponent's sign and magnitude without its first one, the mantissa."""
    text = f"{code & 0x7F:07b}"
    sign = -1.0 if code & 0x80 else 1.0
    if code == 0x80:
        return np.nan
    if text == "1101111":
        return sign * np.inf
    for prefix, digits in (("11", 4), ("10", 3), ("01", 2), ("001", 1), ("0001", 0)):
        if text.startswith(prefix):
            field, mantissa = text[len(prefix) : len(prefix) + digits], text[len(prefix) + digits :]
            e = int("1" + field[1:], 2) if digits else 0
            return sign * 2.0 ** (-e if field[:1] == "1" else e) * (1 + int(mantissa, 2) / 2 ** len(mantissa))
    return sign * 2.0 ** (int(text, 2) - 23) if int(text, 2) else 0.0


HIF8 = np.array([hif8_value(code) for code in range(256)])


@pytest.mark.parametrize(("target", "parts"), [("f32", QUARTERS)])
def test_every_code_of_hif8(target: str, parts: tuple[str, ...]) -> None:
    found = widened("hif8", target, BYTES, parts)
    np.testing.assert_array_equal(found.astype(np.float64), HIF8)


def test_hif8_to_half() -> None:
    def change(program) -> None:
        function = program.functions[0]
        for operation in function.walk():
            if operation.opcode == "vcvt":
                operation.attributes["part"] = {"P0": "EVEN", "P1": "ODD"}[operation.attributes["part"]]
                function.types[operation.results[0]] = Type("vreg", "f16", "none", 128)

    body = """\
    v, m = pto.vlds(a, 0), pto.pset_b8("ALL")
    for k, part in enumerate(("P0", "P1")):
        pto.vsts(pto.vbitcast(pto.vcvt(v, pto.f32, m, part=part), pto.f16), c, k * 128, pto.pset_b16("ALL"), dist="NORM_B16")
    """
    found = in_ub(body, {"a": ("hif8", BYTES)}, {"c": ("f16", 256)}, program=change)["c"].reshape(2, 128).T.ravel()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, HIF8.astype(np.float16))


@np.errstate(invalid="ignore")
def hif8_nearest(values: np.ndarray, saturate: bool) -> np.ndarray:
    """The code whose value is nearest, the larger magnitude in a tie; 2^15 * 1.5 stands for infinity."""
    codes = np.arange(128)
    steps = np.where(codes == 0x6F, 2.0**15 * 1.5, HIF8[:128])
    order = np.argsort(steps)
    steps, codes = steps[order], codes[order]
    size = np.minimum(np.abs(values.astype(np.float64)), 2.0**16)
    middle = (steps[1:] + steps[:-1]) / 2
    code = codes[np.searchsorted(middle, np.where(np.isnan(size), 0, size), side="right")]
    if saturate:
        code = np.where(code == 0x6F, 0x6E, code)
    code = np.where(np.signbit(values) & (code != 0), code | 0x80, code)
    return np.where(np.isnan(values), 0 if saturate else 0x80, code).astype(np.uint8)


@pytest.mark.parametrize("sat", ["SAT", "NOSAT"])
def test_rounding_to_hif8(sat: str) -> None:
    values = samples()
    same(narrowed("f32", "hif8", values, QUARTERS, f', rnd="A", sat="{sat}"'), hif8_nearest(values, sat == "SAT"))
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    same(narrowed("f16", "hif8", halves, HALVES, f', rnd="A", sat="{sat}"'), hif8_nearest(halves.astype(np.float32), sat == "SAT"))


def hif8_hybrid(value: float, e: int, mantissa: int, width: int, threshold: int, fraction_bits: int) -> float:
    """Truncated or rounded up by the threshold; middle exponents go to nearest."""
    size = abs(e)
    kept = 3 if size <= 3 else 2 if size <= 7 else 1 if size <= 15 else 0
    significand = (1 << width) | mantissa
    if e == -23:
        return 2.0**-22 if significand >> (width + 1 - fraction_bits) >= threshold else 0.0
    if e < -23:
        return 0.0
    unit = 1 << (width - kept)
    low, rest = divmod(significand, unit)
    if rest:
        up = rest * 2 >= unit if size <= 3 else rest * 2**fraction_bits // unit >= threshold
        low += up
    return low * unit * 2.0 ** (e - width)


def test_hybrid_rounding_to_hif8() -> None:
    rng = np.random.default_rng(1)
    raw = rng.integers(0, 2**23, 4096).astype(np.uint32) | rng.integers(127 - 26, 127 + 18, 4096).astype(np.uint32) << 23
    values = raw.view(np.float32)
    values[:8] = [16.0, 24.0, 2.0**-22, 2.0**-23, 0.0, 1.0, 2.0**15, 2.0**14 * 1.5]
    values[1::2] *= -1
    expected = []
    for value in values:
        bits_ = int(np.abs(value).view(np.uint32))
        rounded = hif8_hybrid(value, (bits_ >> 23) - 127, bits_ & 0x7FFFFF, 23, bits_ & 0x3FFF, 14)
        expected.append(np.copysign(rounded, value))
    same(narrowed("f32", "hif8", values, QUARTERS, ', rnd="H", sat="NOSAT"'), hif8_nearest(np.array(expected), False))


@np.errstate(over="ignore")
def test_hybrid_rounding_of_halves() -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    expected = np.zeros(65536)
    for k, value in enumerate(halves):
        field, mantissa = k >> 10 & 31, k & 0x3FF
        if field == 31:
            expected[k] = value
        elif field or mantissa:
            threshold = (mantissa & 1) << 1 | mantissa >> 1 & 1
            e = field - 15
            if field == 0:
                e = mantissa.bit_length() - 25
                mantissa = (mantissa << (11 - mantissa.bit_length())) & 0x3FF
            expected[k] = np.copysign(hif8_hybrid(value, e, mantissa, 10, threshold, 2), value)
    same(narrowed("f16", "hif8", halves, HALVES, ', rnd="H", sat="SAT"'), hif8_nearest(expected, True))


# -- 4 bits ------------------------------------------------------------------------------------------------------------

FOUR = {"f4e2m1x2": np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]), "f4e1m2x2": np.arange(8) / 4}


@pytest.mark.parametrize("dtype", sorted(FOUR))
def test_every_pair_of_float4(dtype: str) -> None:
    body = """\
    v, m = pto.vlds(a, 0), pto.pset_b8("ALL")
    for k in range(4):
        pto.vsts(pto.vcvt(v, pto.bf16, m, part=f"P{k}"), c, k * 128, pto.pset_b16("ALL"), dist="NORM_B16")
    """
    found = in_ub(body, {"a": (dtype, BYTES)}, {"c": ("bf16", 512)})["c"].reshape(4, 64, 2)
    values = np.concatenate((FOUR[dtype], -FOUR[dtype]))
    pairs = np.stack((values[BYTES & 15], values[BYTES >> 4]), 1).reshape(64, 4, 2)
    same(found, np.ascontiguousarray(pairs.transpose(1, 0, 2)).astype(ml_dtypes.bfloat16))


@np.errstate(invalid="ignore")
def four_bits(values: np.ndarray, table: np.ndarray, letter: str) -> np.ndarray:
    size, negative = np.abs(values), np.signbit(values)
    below = np.clip(np.searchsorted(table, size, side="right") - 1, 0, 7)
    above = np.minimum(below + 1, 7)
    exact = table[below] == size
    middle = (table[below] + table[above]) / 2
    up = {
        "Z": np.zeros(values.shape, bool),
        "F": negative,
        "C": ~negative,
        "A": size >= middle,
        "R": (size > middle) | ((size == middle) & (below % 2 == 1)),
    }[letter] & ~exact  # fmt: skip
    code = np.where(size >= table[7], 7, np.where(up, above, below)) | negative * 8
    return np.where(np.isnan(values), 0, code).astype(np.uint8)


@pytest.mark.parametrize("dtype", sorted(FOUR))
@pytest.mark.parametrize("letter", "RAFCZ")
def test_rounding_to_float4(dtype: str, letter: str) -> None:
    values = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16)
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
    codes = four_bits(wide, FOUR[dtype], letter)
    if letter == "R" and dtype == "f4e2m1x2":  # an independent implementation agrees with the reference
        finite = ~np.isnan(values.astype(np.float32))
        with np.errstate(all="ignore"):
            theirs = values.astype(np.float32).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
        same(theirs[finite], codes[finite])
    out = []
    for start in range(0, 65536, 2048):
        body = f"""\
        m, w = pto.pset_b16("ALL"), pto.pset_b8("ALL")
        for k in range(16):
            part = f"P{{k % 4}}"
            v = pto.vcvt(pto.vlds(a, k * 128), pto.{dtype}, m, rnd="{letter}", part=part)
            pto.vsts(pto.vbitcast(v, pto.ui8), c, k * 256, w, dist="NORM_B8")
        """
        found = in_ub(body, {"a": ("bf16", values[start : start + 2048])}, {"c": ("ui8", 4096)})["c"].reshape(16, 64, 4)
        for k in range(16):
            assert not np.delete(found[k], k % 4, axis=1).any()
            out.append(found[k, :, k % 4])
    found = np.concatenate(out)
    same(found & 15, codes[::2])
    same(found >> 4, codes[1::2])


# -- e8m0: not in the tables of the API, so the recorded program is changed ----------------------------------------------


def test_powers_of_two() -> None:
    def change(program) -> None:
        function = program.functions[0]
        for operation in function.walk():
            if operation.opcode == "vcvt" and "rnd" in operation.attributes:
                del operation.attributes["rnd"]
                function.types[operation.results[0]] = Type("vreg", "f8e8m0", "none", 256)
            elif operation.opcode == "vcvt":
                function.types[operation.operands[0]] = Type("vreg", "f8e8m0", "none", 256)
                function.types[operation.results[0]] = Type("vreg", "bf16", "none", 128)
                operation.attributes["part"] = {"P0": "EVEN", "P1": "ODD"}[operation.attributes["part"]]

    values = np.arange(65536, dtype=np.uint16)
    exponent, nan = values >> 7 & 0xFF, (values & 0x7FFF) > 0x7F80
    for sat in ("SAT", "NOSAT"):
        found = narrowed(
            "f16", "hif8", values.view(np.float16), HALVES, f', rnd="A", sat="{sat}"', program=lambda p: (change(p), _as_bf16(p))
        )
        same(found, np.where(nan, 0 if sat == "SAT" else 0xFF, np.where(exponent == 0xFF, 0xFE, exponent)).astype(np.uint8))

    body = """\
    v, m = pto.vlds(a, 0), pto.pset_b8("ALL")
    for k, part in enumerate(("P0", "P1")):
        pto.vsts(pto.vbitcast(pto.vcvt(v, pto.f32, m, part=part), pto.ui16), c, k * 128, pto.pset_b16("ALL"), dist="NORM_B16")
    """
    found = in_ub(body, {"a": ("hif8", BYTES)}, {"c": ("ui16", 256)}, program=change)["c"].reshape(2, 128).T.ravel()
    expected = BYTES.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    same(np.ascontiguousarray(found[:255]).view(ml_dtypes.bfloat16), expected[:255].astype(ml_dtypes.bfloat16))
    assert np.isnan(found[255:].view(ml_dtypes.bfloat16).astype(np.float32)).all()


def _as_bf16(program) -> None:
    function = program.functions[0]
    for operation in function.walk():
        if operation.opcode == "vcvt":
            function.types[operation.operands[0]] = Type("vreg", "bf16", "none", 128)
