"""Numbers as people read them."""

from __future__ import annotations

__all__ = ["count", "percent", "plural", "rate", "size", "time"]


def count(value: float) -> str:
    """``12,345``; one decimal below 100 unless it is a whole number."""
    return f"{value:,.1f}" if abs(value) < 100 and value != int(value) else f"{value:,.0f}"


def percent(part: float, whole: float) -> str:
    """``38.2 %``; ``-`` of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def plural(number: int, one: str, many: str = "") -> str:
    """``1 launch``, ``2 launches``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _scaled(value: float, factor: int, units: tuple[str, ...]) -> str:
    number = 0
    while abs(value) >= factor and number + 1 < len(units):
        value /= factor
        number += 1
    return f"{value:.3g} {units[number]}" if abs(value) < 999.5 else f"{value:.0f} {units[number]}"


def size(value: float) -> str:
    """Bytes: ``32 KiB``."""
    return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def rate(value: float, unit: str) -> str:
    """Per second: ``812 GB/s``."""
    return _scaled(value, 1000, tuple(f"{prefix}{unit}/s" for prefix in ("", "k", "M", "G", "T", "P")))


def time(microseconds: float) -> str:
    """``7.52 us``, ``1.2 ms``."""
    return _scaled(microseconds, 1000, ("us", "ms")) if microseconds < 1e6 else f"{microseconds / 1e6:.3g} s"
