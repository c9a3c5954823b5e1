"""Tensors of the cases, and the rows the kernels see of a tensor."""

from __future__ import annotations

import math

import torch

__all__ = ["normal", "poisoned", "rows_of"]


def rows_of(tensor: torch.Tensor, inner: int = 1) -> torch.Tensor:
    """A contiguous tensor with all dimensions but the last ``inner`` made one."""
    outer = tensor.ndim - inner
    shape = (math.prod(tensor.shape[:outer]), *tensor.shape[outer:])
    if not tensor.numel():
        return tensor.new_empty(shape)  # torch takes any strides as contiguous where there is nothing, kernels do not
    return tensor.reshape(shape).contiguous()


def normal(seed: int, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Tensors of normally distributed numbers."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def poisoned(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Outputs that show what a kernel did not write."""
    return [torch.full(shape, float("nan"), dtype=dtype) for shape in shapes]
