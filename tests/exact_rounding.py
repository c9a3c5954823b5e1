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
