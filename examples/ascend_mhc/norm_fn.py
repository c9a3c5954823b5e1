"""Norm and projection in front of a layer: the logits of the weights that mix the streams, from the streams themselves.

``out = (x * weight / rms(x)) @ fn.T`` for the flattened streams ``x`` of a token, with ``rms(x) = sqrt(mean(x^2) + eps)``
(mHC, arXiv:2512.24880, section 4.2). As there, the division by ``rms(x)`` comes last and the weights go into ``fn``: three kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tilelang_pto.compare.case import Case

from . import fn_normw_merge, gemm_with_sqrsum, reduce_partials_and_rmsnorm
from .checks import require, require_tensor
from .sizes import Sizes

__all__ = ["cases", "norm_fn"]

_MOST_MIXES = 128


def norm_fn(
    residual: torch.Tensor, fn: torch.Tensor, weight: torch.Tensor | None = None, *, eps: float = 1e-6, splits: int = 1
) -> torch.Tensor:
    """The normalised projection of the streams, with gradients for all tensors.

    Args:
        residual: (..., mhc, hidden), bfloat16.
        fn: (mixes, mhc * hidden), float32, at most 128 rows.
        weight: (mhc * hidden), float32, of the normalisation; ones if not given.
        eps: added to the mean of the squares.
        splits: parts of a row that are summed apart, so that few tokens occupy all cores; ``mhc * hidden / splits`` is a multiple of 256.

    Returns:
        (..., mixes), float32.

    Raises:
        ValueError: types or sizes are others.
    """
    require_tensor("norm_fn", "residual", residual, torch.bfloat16, (..., None, None))
    *rows, mhc, hidden = residual.shape
    width = mhc * hidden
    require_tensor("norm_fn", "fn", fn, torch.float32, (None, width), residual.device)
    mixes = fn.shape[0]
    require(1 <= mixes <= _MOST_MIXES, f"norm_fn: fn has {mixes} rows, it has to have from 1 to {_MOST_MIXES}")
    granule = splits * gemm_with_sqrsum.SLICE
    require(splits >= 1, f"norm_fn: splits is {splits}, it has to be at least 1")
    require(width > 0 and width % granule == 0, f"norm_fn: mhc * hidden is {width}, it has to be a multiple of {granule}")
    merged = fn.contiguous()
    if weight is not None:
        require_tensor("norm_fn", "weight", weight, torch.float32, (width,), residual.device)
        merged = fn_normw_merge.run_fn_normw_merge(merged, weight.contiguous())
    parts = gemm_with_sqrsum.run_gemm_with_sqrsum(residual.reshape(-1, width).contiguous(), merged, splits)
    out = reduce_partials_and_rmsnorm.run_reduce_partials_and_rmsnorm(*parts, width, eps)
    return out.view(*rows, mixes)


def cases(sizes: Sizes) -> Iterator[Case]:
    """Those of the three kernels."""
    for family in (gemm_with_sqrsum, reduce_partials_and_rmsnorm, fn_normw_merge):
        yield from family.cases(sizes)
