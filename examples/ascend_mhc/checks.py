"""Checks of what the functions with gradients are given."""

from __future__ import annotations

from types import EllipsisType

import torch

__all__ = ["require", "require_tensor"]


def require(condition: bool, message: str) -> None:
    """Raise ``ValueError`` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(message)


def require_tensor(
    function: str,
    name: str,
    tensor: torch.Tensor,
    dtype: torch.dtype,
    shape: tuple[int | EllipsisType | None, ...],
    device: torch.device | None = None,
) -> None:
    """Raise ``ValueError`` if a tensor has another type, shape or device than a function takes.

    Args:
        function: who asks.
        name: of the argument.
        tensor: what was given.
        dtype: the one type that is taken.
        shape: extents, ``None`` for any; ``...`` in front stands for any number of dimensions.
        device: where the other arguments are.
    """
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{function}: {name} is a {type(tensor).__name__}, it has to be a tensor")
    require(tensor.dtype == dtype, f"{function}: {name} has dtype {tensor.dtype}, it has to be {dtype}")
    found = tuple(tensor.shape)
    free = shape[:1] == (...,)
    wanted = shape[1:] if free else shape
    tail = found[len(found) - len(wanted) :] if len(found) >= len(wanted) else ()
    fits = (free or len(found) == len(wanted)) and len(tail) == len(wanted)
    fits = fits and all(extent is None or extent == size for extent, size in zip(wanted, tail, strict=True))
    described = ", ".join([*(["..."] if free else []), *("any" if extent is None else str(extent) for extent in wanted)])
    require(fits, f"{function}: {name} has shape {found}, it has to be ({described})")
    require(device is None or tensor.device == device, f"{function}: {name} is on {tensor.device}, the other arguments are on {device}")
