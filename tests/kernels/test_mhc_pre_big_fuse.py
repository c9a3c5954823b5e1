"""The fused mHC kernel before a layer on the simulator: to the last bit what its four parts compute, and close to float64."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run, same_bits
from tile_kernels_support import bf16, f32, poisoned, pto, tile_kernels

tile_kernels()
from tile_kernels.mhc import (  # noqa: E402
    mhc_pre_apply_mix_fwd,
    mhc_pre_big_fuse_fwd,
    mhc_pre_split_mixes_fwd,
    mhc_reduce_partials_and_rmsnorm_fwd,
    mhc_sinkhorn_fwd,
)
from tile_kernels.torch.mhc import mhc_pre_split_mixes_ref, sinkhorn_normalize_ref  # noqa: E402

STREAMS, MIXES = 4, 24
EPS = {"rms_eps": 1e-6, "mhc_pre_eps": 1e-6, "mhc_sinkhorn_eps": 1e-6}
FACTOR = 2.0
OUTPUTS = ("post_mix", "comb_mix", "layer_input")
BF16 = {"rtol": 2.0**-8 * 1.001, "atol": 1e-5}  # half a unit in the last place
# Blocks are of 16 tokens: one core has more rounds than there are versions of a buffer.
VARIANTS = [(2560, 20, (0, 1, 17, 1041)), (7168, 20, (1, 129)), (256, 2, (16, 4113))]  # row, repetitions, tokens


def inputs(tokens: int, hidden: int):
    products, squares = f32(1, tokens, MIXES, seed=tokens) * 3, f32(1, tokens, seed=1).abs() * STREAMS * hidden
    return products, squares, f32(3, seed=2), f32(MIXES, seed=3), bf16(tokens, STREAMS, hidden, seed=4)


def fused(products, squares, scale, base, residual, repeat: int):
    tokens, _, hidden = residual.shape
    outputs = poisoned(tokens, STREAMS), poisoned(tokens, STREAMS**2), poisoned(tokens, hidden, dtype=torch.bfloat16)
    options = {**EPS, "mhc_post_mult_value": FACTOR, "sinkhorn_repeat": repeat, "written": OUTPUTS}
    written = run(mhc_pre_big_fuse_fwd, products, squares, scale, base, residual, *outputs, **options).written
    return [written[name] for name in OUTPUTS]


@pytest.mark.parametrize(("hidden", "repeat", "counts"), VARIANTS)
def test_against_formulas(hidden, repeat, counts):
    for tokens in counts:
        products, squares, scale, base, residual = inputs(tokens, hidden)
        mixes = products.double() * (squares.double()[..., None] / (STREAMS * hidden) + EPS["rms_eps"]).rsqrt()
        pre, post, comb = mhc_pre_split_mixes_ref(mixes, scale.double(), base.double(), STREAMS, FACTOR, EPS["mhc_pre_eps"])
        comb = sinkhorn_normalize_ref(comb, repeat, EPS["mhc_sinkhorn_eps"])
        found = fused(products, squares, scale, base, residual, repeat)
        torch.testing.assert_close(found[0].double(), post.reshape(-1, STREAMS), rtol=3e-6, atol=1e-6)
        torch.testing.assert_close(found[1].double(), comb.reshape(-1, STREAMS**2), rtol=3e-5, atol=1e-6)
        torch.testing.assert_close(found[2].double(), (residual.double() * pre[0]).sum(1), **BF16)


def in_parts(products, squares, scale, base, residual, repeat: int):
    tokens, _, hidden = residual.shape
    mixes, layer_input = poisoned(tokens, MIXES), poisoned(tokens, hidden, dtype=torch.bfloat16)
    pre, post, comb = poisoned(tokens, STREAMS), poisoned(tokens, STREAMS), poisoned(tokens, STREAMS**2)
    normalized = poisoned(tokens, STREAMS, STREAMS)
    sums = poisoned(tokens, 1, MIXES), poisoned(tokens, 1)
    with pto():
        partials = products.reshape(1, tokens, 1, MIXES), squares.reshape(1, tokens, 1)
        mhc_reduce_partials_and_rmsnorm_fwd(*partials, *sums, mixes, STREAMS * hidden, EPS["rms_eps"], 1)
        mhc_pre_split_mixes_fwd(mixes, scale, base, pre, post, comb, FACTOR, EPS["mhc_pre_eps"])
        mhc_sinkhorn_fwd(comb.reshape(normalized.shape), normalized, repeat, EPS["mhc_sinkhorn_eps"])
        mhc_pre_apply_mix_fwd(residual, pre, layer_input)
    return post, normalized.flatten(1), layer_input


def test_against_its_parts():
    hidden, repeat, _ = VARIANTS[0]
    tensors = inputs(133, hidden)
    products, squares = tensors[:2]
    products[0, :8], products[0, 8:16], squares[0, 16:24] = 1e4, -1e30, 0.0  # mixes that saturate
    for part, whole in zip(in_parts(*tensors, repeat), fused(*tensors, repeat), strict=True):
        assert part.isfinite().all() and same_bits(part, whole)
