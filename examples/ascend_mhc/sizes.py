"""Sizes the cases run at."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CUBE_CORES", "VECTOR_CORES", "Sizes"]

CUBE_CORES, VECTOR_CORES = 32, 64
"""Cores of an Ascend 950PR: blocks that kernels with and without matrix products are launched with; each takes its share of the tokens."""


@dataclass(frozen=True)
class Sizes:
    """How many tokens a case runs at.

    Tokens are a dynamic extent of every kernel: the same compiled kernel runs at any number of them.

    Attributes:
        full: the sizes used on a board; otherwise fewer tokens, for the simulator.
    """

    full: bool

    def tokens(self, tokens: int, *, divisor: int = 64) -> int:
        """Tokens to run where a board runs ``tokens``.

        Reduced numbers are odd, beyond one round of the cores and no multiple of any block size, so that partial blocks and cores
        with different numbers of rounds are still tested; ``divisor`` is less for kernels with short rows.
        """
        return tokens if self.full else min(tokens, tokens // divisor + 37)

    def __str__(self) -> str:
        return "full sizes" if self.full else "reduced numbers of tokens"
