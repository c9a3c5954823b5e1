"""Cases of the mhc family."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from corpus.case import TOKENS, Case, empty
from tile_kernels_support import CORES, tile_kernels

tile_kernels()
from tile_kernels import mhc  # noqa: E402
from tile_kernels.mhc.multilayer_recompute_asc import mhc_multilayer_recompute_asc  # noqa: E402
from tile_kernels.mhc.pre_split_mixes_asc import mhc_pre_split_mixes_bwd_asc, mhc_pre_split_mixes_fwd_asc  # noqa: E402
from tilelang import language as T  # noqa: E402

bf16, f32, i64 = empty(torch.bfloat16), empty(torch.float32), empty(torch.int64)
STREAMS = 4
MIXES = STREAMS * (STREAMS + 2)
EPS = 1e-6


def cases() -> Iterator[Case]:
    for hidden in (7168, 2560):
        yield from _of_hidden_size(hidden)
    for tokens in (TOKENS, 640):
        yield from _head_mix(tokens)
    for splits in (1, 16):
        yield _rms_norm_of_partials(splits)
    yield Case("mhc.reduce_partials_and_rmsnorm_bwd", _rms_norm_of_partials_backward)
    yield from _split_mixes()
    yield Case("mhc.sinkhorn_fwd", lambda: mhc.mhc_sinkhorn_fwd(*[f32(TOKENS, STREAMS, STREAMS)] * 2, 20, EPS))
    yield Case("mhc.sinkhorn_bwd", lambda: mhc.mhc_sinkhorn_bwd(*[f32(TOKENS, STREAMS, STREAMS)] * 3, 20, EPS))
    for posts in (3, 2):
        yield _multilayer_recompute(3, posts)


def _of_hidden_size(hidden: int) -> Iterator[Case]:
    def x() -> torch.Tensor:
        return bf16(TOKENS, hidden)

    def streams() -> torch.Tensor:
        return bf16(TOKENS, STREAMS, hidden)

    def post() -> list[torch.Tensor]:
        batch = (1, TOKENS)
        return [bf16(*batch, hidden), bf16(*batch, STREAMS, hidden), f32(*batch, STREAMS, 1), f32(*batch, STREAMS, STREAMS)]

    def weights() -> torch.Tensor:
        return f32(TOKENS, STREAMS)

    def big_fuse() -> None:
        mhc.mhc_pre_big_fuse_fwd(
            f32(1, TOKENS, MIXES),
            f32(1, TOKENS),
            f32(3),
            f32(MIXES),
            streams(),
            weights(),
            f32(TOKENS, STREAMS**2),
            x(),
            rms_eps=EPS,
            mhc_pre_eps=EPS,
            mhc_sinkhorn_eps=EPS,
            mhc_post_mult_value=2.0,
            sinkhorn_repeat=20,
        )

    flat = STREAMS * hidden

    def merged() -> torch.Tensor:
        return f32(MIXES, flat)

    yield Case(f"mhc.expand_fwd.h{hidden}", lambda: mhc.expand_to_mhc_fwd(x(), streams()))
    yield Case(f"mhc.expand_bwd.h{hidden}", lambda: mhc.expand_to_mhc_bwd(streams(), x()))
    yield Case(f"mhc.post_fwd.h{hidden}", lambda: mhc.mhc_post_fwd(*post()))
    yield Case(f"mhc.post_bwd.h{hidden}", lambda: mhc.mhc_post_bwd(*post(), bf16(1, TOKENS, STREAMS, hidden)))
    yield Case(f"mhc.pre_apply_mix_fwd.h{hidden}", lambda: mhc.mhc_pre_apply_mix_fwd(streams(), weights(), x()))
    yield Case(f"mhc.pre_apply_mix_bwd.h{hidden}", lambda: mhc.mhc_pre_apply_mix_bwd(x(), streams(), weights(), streams()))
    yield Case(f"mhc.pre_big_fuse_fwd.h{hidden}", big_fuse)
    yield Case(f"mhc.fn_normw_merge_fwd.h{flat}", lambda: mhc.mhc_fn_normw_merge_fwd(merged(), f32(flat), merged()))
    yield Case(
        f"mhc.fn_normw_merge_bwd.h{flat}",
        lambda: mhc.mhc_fn_normw_merge_bwd(merged(), f32(flat), merged(), merged(), f32(flat)),
    )


def _head_mix(tokens: int) -> Iterator[Case]:
    def mix() -> torch.Tensor:
        return f32(tokens, STREAMS)

    yield Case(f"mhc.head_compute_mix_fwd.n{tokens}", lambda: mhc.mhc_head_compute_mix_fwd(mix(), f32(1), f32(STREAMS), mix(), EPS))
    yield Case(
        f"mhc.head_compute_mix_bwd.n{tokens}",
        lambda: mhc.mhc_head_compute_mix_bwd(mix(), mix(), f32(1), f32(STREAMS), mix(), f32(CORES, 1), f32(CORES, STREAMS), CORES),
    )


def _rms_norm_of_partials(splits: int) -> Case:
    def call() -> None:
        sums, squares = f32(splits, TOKENS, 1, MIXES), f32(splits, TOKENS, 1)
        mhc.mhc_reduce_partials_and_rmsnorm_fwd(
            sums, squares, f32(TOKENS, 1, MIXES), f32(TOKENS, 1), f32(TOKENS, MIXES), STREAMS * 7168, EPS, splits
        )

    return Case(f"mhc.reduce_partials_and_rmsnorm_fwd.s{splits}", call)


def _rms_norm_of_partials_backward() -> None:
    total, squares = f32(TOKENS, 1, MIXES), f32(TOKENS, 1)
    mhc.mhc_reduce_partials_and_rmsnorm_bwd(f32(TOKENS, MIXES), total, squares, total, squares, STREAMS * 7168, EPS)


def _split_mixes() -> Iterator[Case]:
    mixes = (f32(TOKENS, MIXES), f32(3), f32(MIXES))
    parts = (f32(TOKENS, STREAMS), f32(TOKENS, STREAMS), f32(TOKENS, STREAMS**2))
    simt = {"dtype": T.float32, "num_vec_cores": CORES}

    def simt_backward() -> None:
        # The public function takes the SIMD version; of this one the largest block TileLang can plan is used.
        partial = (f32(CORES, 3), f32(CORES, MIXES))
        mhc_pre_split_mixes_bwd_asc(*parts, mixes[0], parts[1], *mixes[1:], mixes[0], *partial, 2.0, token_block_size=8, **simt)

    yield Case("mhc.pre_split_mixes_fwd.simd", lambda: mhc.mhc_pre_split_mixes_fwd(*mixes, *parts, 2.0, EPS))
    yield Case("mhc.pre_split_mixes_bwd.simd", lambda: mhc.mhc_pre_split_mixes_bwd(*parts, mixes[0], parts[1], *mixes[1:], *mixes, 2.0))
    yield Case(
        "mhc.pre_split_mixes_fwd.simt",
        lambda: mhc_pre_split_mixes_fwd_asc(*mixes, *parts, 2.0, EPS, token_block_size=64, num_stages=2, **simt),
    )
    yield Case("mhc.pre_split_mixes_bwd.simt", simt_backward)


def _multilayer_recompute(layers: int, posts: int) -> Case:
    # The public function builds its tables of addresses in pinned memory, which torch has only beside a device.
    def call() -> None:
        tables = [i64(count) for count in (layers, posts, posts, posts, layers, posts)]
        mhc_multilayer_recompute_asc(bf16(TOKENS, STREAMS, 7168), *tables, h_blk=7168, num_vec_cores=CORES)

    return Case(f"mhc.multilayer_recompute.l{layers}p{posts}", call)
