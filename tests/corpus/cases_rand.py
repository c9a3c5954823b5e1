"""Cases of the rand family."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from corpus.case import Case
from tile_kernels_support import CORES, tile_kernels

tile_kernels()
from tile_kernels.rand.randn_asc import get_randn_kernel_asc  # noqa: E402
from tile_kernels.rand.randn_kernel import get_randn_config  # noqa: E402


def cases() -> Iterator[Case]:
    for label, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32)):
        yield _randn(f"{label}.small", dtype, 1 << 16)
        yield _randn(f"{label}.large", dtype, 1 << 26)


def _randn(label: str, dtype: torch.dtype, count: int) -> Case:
    # The public function insists on a device of kind npu.
    return Case(f"rand.randn.{label}", lambda: get_randn_kernel_asc(dtype, CORES, *get_randn_config(dtype, count)))
