"""The mHC kernels of tile_kernels that the benchmarks use, with the constants that package chooses on a board."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from tile_kernels.mhc.expand_asc import expand_to_mhc_bwd_asc, expand_to_mhc_fwd_asc
from tile_kernels.mhc.head_compute_mix_asc import mhc_head_compute_mix_bwd_asc, mhc_head_compute_mix_fwd_asc
from tile_kernels.mhc.sinkhorn_asc import mhc_sinkhorn_bwd_asc, mhc_sinkhorn_fwd_asc

CORES = 64


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel, its tensors (whose first extent is dynamic) and its constants."""

    name: str
    kernel: Any
    tensors: tuple[torch.Tensor, ...]
    options: dict[str, Any]


def cases(tokens: int = 8) -> Iterator[Case]:
    """All benchmark cases."""
    for hidden, streams, part in ((1280, 2, 1280), (2560, 4, 2560), (7680, 4, 2560)):
        x, expanded = torch.zeros(tokens, hidden, dtype=torch.bfloat16), torch.zeros(tokens, streams, hidden, dtype=torch.bfloat16)
        label = f"{tokens} x {streams} x {hidden}"
        yield Case(f"expand_fwd {label}", expand_to_mhc_fwd_asc, (x, expanded), {"h_blk": part, "num_stages": 7, "num_vec_cores": CORES})
        yield Case(f"expand_bwd {label}", expand_to_mhc_bwd_asc, (expanded, x), {"h_blk": part, "num_stages": 3, "num_vec_cores": CORES})
    mix, one, base = torch.zeros(tokens, 4), torch.zeros(1), torch.zeros(4)
    for block in (4, 64):
        options = {"token_block_size": block, "num_vec_cores": CORES}
        yield Case(f"head_mix_fwd block {block}", mhc_head_compute_mix_fwd_asc, (mix, one, base, mix), {"mhc_pre_eps": 1e-6, **options})
        partial = (torch.zeros(CORES, 1), torch.zeros(CORES, 4))
        yield Case(f"head_mix_bwd block {block}", mhc_head_compute_mix_bwd_asc, (mix, mix, one, base, mix, *partial), options)
    square = torch.zeros(tokens, 4, 4)
    rounds = {"repeat": 20, "eps": 1e-6, "num_vec_cores": CORES}
    yield Case("sinkhorn_fwd", mhc_sinkhorn_fwd_asc, (square, square), {**rounds, "token_block_size": 4})
    yield Case("sinkhorn_bwd", mhc_sinkhorn_bwd_asc, (square, square, square), {**rounds, "token_block_size": 8})
