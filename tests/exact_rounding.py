"""Rounding of rational numbers by the letters of ``vcvt``, exact and independent of the package."""

from __future__ import annotations

import math
from fractions import Fraction


def rounded(value: Fraction, letter: str) -> int:
    """An integer near a rational number."""
    down = math.floor(value)
    rest = value - down
    if rest == 0 or letter == "F":
        return down
    if letter == "C":
        return down + 1
    if letter == "Z":
        return down if value > 0 else down + 1
    if letter == "O":
        return down if down % 2 else down + 1
    if rest != Fraction(1, 2):
        return down + (rest > Fraction(1, 2))
    if letter == "A":
        return down + 1 if value > 0 else down
    return down + down % 2


FLOATS = {"f32": (24, -126), "f16": (11, -14), "bf16": (8, -126)}
"""Digits and least exponent."""


def rounded_float(value: Fraction, dtype: str) -> float:
    """The float nearest to a rational number, halves to even; infinite when it is too large."""
    if value == 0:
        return 0.0
    digits, least = FLOATS[dtype]
    exponent = abs(value).numerator.bit_length() - abs(value).denominator.bit_length()
    exponent -= abs(value) < Fraction(2) ** exponent
    step = Fraction(2) ** (max(exponent, least) - digits + 1)
    nearest = rounded(value / step, "R") * step
    greatest = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** (1 - least)
    if abs(nearest) > greatest:
        return math.inf if value > 0 else -math.inf
    return math.copysign(float(nearest), value)
