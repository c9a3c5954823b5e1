"""How rows are cut into the blocks a core takes at a time."""

from __future__ import annotations

__all__ = ["THREADS", "block_of"]

THREADS = 256
"""SIMT threads that share a block of columns: each takes every 256th column."""


def block_of(hidden: int, largest: int) -> int:
    """Columns of a block: the largest multiple of 256 up to ``largest`` that divides ``hidden``, a multiple of 256 itself."""
    return max(block for block in range(THREADS, max(largest, THREADS) + 1, THREADS) if hidden % block == 0)
