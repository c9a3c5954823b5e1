"""Gradients of parameters all tokens share: every core writes the sum of its tokens, and the sums of the cores are added afterwards.

Which core takes which token is fixed, so are the order of all additions and the bits of the result.
"""

from __future__ import annotations

import torch

from .sizes import VECTOR_CORES

__all__ = ["sums_of_cores"]


def sums_of_cores(values: torch.Tensor, block: int) -> torch.Tensor:
    """What the cores are to write: sums over the tokens each of them takes.

    Args:
        values: (tokens, width), what a token contributes.
        block: tokens a core takes at a time; block ``i`` belongs to core ``i % VECTOR_CORES``.

    Returns:
        (VECTOR_CORES, width), zero for a core without tokens.
    """
    core = torch.arange(values.shape[0]) // block % VECTOR_CORES
    return values.new_zeros(VECTOR_CORES, values.shape[1]).index_add_(0, core, values)
