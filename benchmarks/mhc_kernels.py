"""The mHC kernels of tile_kernels that the benchmarks use, with the constants that package chooses on a board."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from tile_kernels.mhc.expand_asc import expand_to_mhc_bwd_asc, expand_to_mhc_fwd_asc
from tile_kernels.mhc.head_compute_mix_asc import mhc_head_compute_mix_bwd_asc, mhc_head_compute_mix_fwd_asc
from tile_kernels.mhc.multilayer_recompute_asc import mhc_multilayer_recompute_asc
from tile_kernels.mhc.norm_fn_asc import (
    mhc_fn_normw_merge_bwd_asc,
    mhc_fn_normw_merge_fwd_asc,
    mhc_reduce_partials_and_rmsnorm_bwd_asc,
    mhc_reduce_partials_and_rmsnorm_fwd_asc,
)
from tile_kernels.mhc.post_asc import mhc_post_bwd_asc, mhc_post_fwd_asc
from tile_kernels.mhc.pre_apply_mix_asc import mhc_pre_apply_mix_bwd_asc, mhc_pre_apply_mix_fwd_asc
from tile_kernels.mhc.pre_big_fuse_asc import mhc_pre_big_fuse_fwd_asc
from tile_kernels.mhc.pre_split_mixes_asc import (
    mhc_pre_split_mixes_bwd_asc,
    mhc_pre_split_mixes_bwd_mhc4_asc,
    mhc_pre_split_mixes_fwd_asc,
    mhc_pre_split_mixes_fwd_simd_mhc4_asc,
)
from tile_kernels.mhc.sinkhorn_asc import mhc_sinkhorn_bwd_asc, mhc_sinkhorn_fwd_asc
from tilelang.backend.target import determine_target

import tilelang_pto  # noqa: F401  (registers the target)
from tilelang_pto.lowering import Lowered, lower_function

CORES = 64
STREAMS = 4
PAIRS = STREAMS * STREAMS
MIXES = 2 * STREAMS + PAIRS
"""Columns of the mixing weights: before the layer, after it, and between any two streams."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel, its tensors (whose extents of tokens are dynamic) and its constants."""

    name: str
    kernel: Any
    tensors: tuple[torch.Tensor, ...]
    options: dict[str, Any]

    def function(self) -> Any:
        """The kernel as TIR before lowering."""
        with determine_target("pto", return_object=True):
            return self.kernel.get_tir(*self.tensors, **self.options)

    def lower(self, function: Any, target: Any) -> Lowered:
        """Run the ``pto`` pipeline under the kernel's own pass configuration."""
        return lower_function(function, target=target, pass_configs=self.kernel.pass_configs)


def cases(tokens: int = 8) -> Iterator[Case]:
    """All mHC kernels in the variants whose code differs."""
    yield from _expand(tokens)
    for hidden in (2560, 7168):
        yield from _wide(tokens, hidden)
    yield from _head_mix(tokens)
    yield from _partial_sums(tokens)
    yield from _split_mixes(tokens)
    square = _f32(tokens, STREAMS, STREAMS)
    rounds = {"repeat": 20, "eps": 1e-6, "num_vec_cores": CORES}
    yield Case("sinkhorn_fwd", mhc_sinkhorn_fwd_asc, (square, square), {**rounds, "token_block_size": 4})
    yield Case("sinkhorn_bwd", mhc_sinkhorn_bwd_asc, (square, square, square), {**rounds, "token_block_size": 8})
    for layers, posts in ((3, 3), (3, 2)):
        every, after = torch.zeros(layers, dtype=torch.int64), torch.zeros(posts, dtype=torch.int64)
        tables = (_bf16(tokens, STREAMS, 7168), every, after, after, after, every, after)
        yield Case(
            f"multilayer_recompute {layers} layers {posts} posts",
            mhc_multilayer_recompute_asc,
            tables,
            {"h_blk": 7168, "num_vec_cores": CORES},
        )


def _bf16(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.bfloat16)


def _f32(*shape: int) -> torch.Tensor:
    return torch.zeros(shape)


def _expand(tokens: int) -> Iterator[Case]:
    for hidden, streams, part in ((1280, 2, 1280), (2560, 4, 2560), (7168, 4, 3584), (7680, 4, 2560)):
        x, expanded = _bf16(tokens, hidden), _bf16(tokens, streams, hidden)
        label = f"{tokens} x {streams} x {hidden}"
        yield Case(f"expand_fwd {label}", expand_to_mhc_fwd_asc, (x, expanded), {"h_blk": part, "num_stages": 7, "num_vec_cores": CORES})
        yield Case(f"expand_bwd {label}", expand_to_mhc_bwd_asc, (expanded, x), {"h_blk": part, "num_stages": 3, "num_vec_cores": CORES})


def _wide(tokens: int, hidden: int) -> Iterator[Case]:
    """Kernels over whole rows of ``hidden`` elements."""
    row, rows = _bf16(tokens, hidden), _bf16(tokens, STREAMS, hidden)
    pairs, weights = _f32(tokens, STREAMS, STREAMS), _f32(tokens, STREAMS)
    narrow = hidden <= 4096
    part = hidden if narrow else hidden // 2
    cores = {"num_vec_cores": CORES}
    yield Case(f"post_fwd {hidden}", mhc_post_fwd_asc, (pairs, rows, weights, row, rows), {"h_blk": part, **cores})
    stages = 3 if narrow else 2
    yield Case(f"post_bwd {hidden}", mhc_post_bwd_asc, (rows, pairs, rows, weights, row), {"h_blk": part, "num_stages": stages, **cores})
    yield Case(f"pre_apply_mix_fwd {hidden}", mhc_pre_apply_mix_fwd_asc, (rows, weights, row), {"h_blk": part, **cores})
    options = {"h_blk": hidden, "num_stages": 3} if narrow else {"h_blk": hidden // 4, "num_stages": 4}
    yield Case(f"pre_apply_mix_bwd {hidden}", mhc_pre_apply_mix_bwd_asc, (row, rows, weights, rows), {**options, **cores})
    sums = (_f32(1, tokens, MIXES), _f32(1, tokens), _f32(3), _f32(MIXES), rows, weights, _f32(tokens, PAIRS), row)
    epsilons = {"rms_eps": 1e-6, "mhc_pre_eps": 1e-6, "mhc_sinkhorn_eps": 1e-6, "mhc_post_mult_value": 2.0, "sinkhorn_repeat": 20}
    tiles = {"h_blk": 256, "n_splits": 1, "token_block": 16, "num_stages": 4}
    yield Case(f"pre_big_fuse_fwd {hidden}", mhc_pre_big_fuse_fwd_asc, sums, {**epsilons, **tiles, **cores})
    flat = STREAMS * hidden
    matrix, vector = _f32(MIXES, flat), _f32(flat)
    blocks = {"mhc_mult3": MIXES, "num_stages": 3, **cores}
    yield Case(f"fn_normw_merge_fwd {flat}", mhc_fn_normw_merge_fwd_asc, (matrix, vector, matrix), {"hidden_block": 256, **blocks})
    gradients = (matrix, vector, matrix, matrix, vector)
    yield Case(f"fn_normw_merge_bwd {flat}", mhc_fn_normw_merge_bwd_asc, gradients, {"hidden_block": 128, **blocks})


def _head_mix(tokens: int) -> Iterator[Case]:
    mix, one, base = _f32(tokens, STREAMS), _f32(1), _f32(STREAMS)
    for block in (4, 64):
        options = {"token_block_size": block, "num_vec_cores": CORES}
        yield Case(f"head_mix_fwd block {block}", mhc_head_compute_mix_fwd_asc, (mix, one, base, mix), {"mhc_pre_eps": 1e-6, **options})
        partial = (_f32(CORES, 1), _f32(CORES, STREAMS))
        yield Case(f"head_mix_bwd block {block}", mhc_head_compute_mix_bwd_asc, (mix, mix, one, base, mix, *partial), options)


def _partial_sums(tokens: int) -> Iterator[Case]:
    total, squares, out = _f32(tokens, 1, MIXES), _f32(tokens, 1), _f32(tokens, MIXES)
    options = {"rms_group_size": STREAMS * 7168, "rms_eps": 1e-6, "num_vec_cores": CORES}
    for splits in (1, 16):
        tensors = (_f32(splits, tokens, 1, MIXES), _f32(splits, tokens, 1), total, squares, out)
        yield Case(
            f"reduce_partials_fwd {splits} splits", mhc_reduce_partials_and_rmsnorm_fwd_asc, tensors, {**options, "n_splits": splits}
        )
    yield Case("reduce_partials_bwd", mhc_reduce_partials_and_rmsnorm_bwd_asc, (out, total, squares, total, squares), options)


def _split_mixes(tokens: int) -> Iterator[Case]:
    mixes, scale, base = _f32(tokens, MIXES), _f32(3), _f32(MIXES)
    before, after, between = _f32(tokens, STREAMS), _f32(tokens, STREAMS), _f32(tokens, PAIRS)
    scaling, cores = {"mhc_post_mult_value": 2.0}, {"num_vec_cores": CORES}
    forward = (mixes, scale, base, before, after, between)
    backward = (before, after, between, mixes, after, scale, base, mixes, _f32(CORES, 3), _f32(CORES, MIXES))
    simd = {"token_block_size": 64, "num_stages": 2, **scaling, **cores}
    yield Case("split_mixes_fwd simd", mhc_pre_split_mixes_fwd_simd_mhc4_asc, forward, {"mhc_pre_eps": 1e-6, **simd})
    yield Case("split_mixes_bwd simd", mhc_pre_split_mixes_bwd_mhc4_asc, backward, simd)
    yield Case("split_mixes_fwd simt", mhc_pre_split_mixes_fwd_asc, forward, {"mhc_pre_eps": 1e-6, "dtype": "float32", **simd})
    options = {"token_block_size": 8, "dtype": "float32", **scaling, **cores}
    yield Case("split_mixes_bwd simt", mhc_pre_split_mixes_bwd_asc, backward, options)
