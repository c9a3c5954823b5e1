"""Tensors of the cases."""

from __future__ import annotations

import torch

__all__ = ["normal", "poisoned"]


def normal(seed: int, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Tensors of normally distributed numbers."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def poisoned(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Outputs that show what a kernel did not write."""
    return [torch.full(shape, float("nan"), dtype=dtype) for shape in shapes]
