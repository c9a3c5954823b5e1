"""The tile_kernels package as it behaves on an Ascend machine, and what its test files share.

Its public functions choose the Ascend kernels only where they find the device node, and ask the device for its cores; here
both are answered for a simulated A5, so that ``tile_kernels.mhc.<function>(cpu tensors)`` under :func:`pto` runs on the simulator.
"""

from __future__ import annotations

import os

import pytest
import torch
from tilelang.backend.target import determine_target

CUBE_CORES, CORES = 32, 64
_DEVICE_NODE = "/dev/davinci_manager"


def tile_kernels():
    """The package; the calling test file is skipped where it is not installed."""
    exists = os.path.exists
    os.path.exists = lambda path: path == _DEVICE_NODE or exists(path)
    try:
        package = pytest.importorskip("tile_kernels", reason="the tile_kernels package is not installed")
    finally:
        os.path.exists = exists
    assert package.config.is_ascend(), "tile_kernels was imported before without the answer to its question for the device"
    package.config._num_sms = CUBE_CORES  # what is set already is not asked of a device
    return package


def pto():
    """A context in which kernels that name no target of their own are compiled for ``pto``."""
    return determine_target("pto", return_object=True)


def compiled(kernel, *tensors, **options):
    """A kernel of the package, compiled for ``pto``; the first extents of ``tensors`` are dynamic."""
    with pto():
        return kernel.compile(*tensors, **options)


def bf16(*shape: int, seed: int = 0) -> torch.Tensor:
    return f32(*shape, seed=seed).to(torch.bfloat16)


def f32(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def poisoned(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """An output that shows what a kernel did not write."""
    return torch.full(shape, float("nan"), dtype=dtype)
