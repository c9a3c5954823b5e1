"""The mHC head's mixing weights, and their gradients, on the simulator against float64."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run
from tile_kernels_support import CORES, compiled, f32, poisoned, tile_kernels

tile_kernels()
from tile_kernels.mhc import mhc_head_compute_mix_bwd, mhc_head_compute_mix_fwd  # noqa: E402
from tile_kernels.mhc.head_compute_mix_asc import mhc_head_compute_mix_bwd_asc, mhc_head_compute_mix_fwd_asc  # noqa: E402
from tile_kernels.torch.mhc import mhc_head_compute_mix_ref  # noqa: E402

STREAMS = 4
BLOCKS = (1, 4, 64)  # tokens of a block: what the package chooses for few, some and many tokens
TOKENS = (0, 1, 63, 640, 8193)
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}  # the package's own
EPS = 1e-2


def forward(mix, scale, base, block: int):
    out = poisoned(*mix.shape)
    return run(mhc_head_compute_mix_fwd, mix, scale, base, out, EPS, token_block_size=block, written=("output_mix",)).written["output_mix"]


@pytest.mark.parametrize("block", BLOCKS)
def test_forward(block):
    scale, base = f32(1, seed=1), f32(STREAMS, seed=2)
    for tokens in TOKENS:
        mix = f32(tokens, STREAMS, seed=tokens) * 4
        expected = mhc_head_compute_mix_ref(mix.double(), scale.double(), base.double(), EPS)
        torch.testing.assert_close(forward(mix, scale, base, block).double(), expected, rtol=1e-6, atol=1e-7)


def test_forward_chooses_the_block_itself():
    scale, base = f32(1, seed=1), f32(STREAMS, seed=2)
    mix = f32(640, STREAMS)
    assert torch.equal(forward(mix, scale, base, 0), forward(mix, scale, base, 4))


def test_forward_of_extreme_values():
    inf, nan = float("inf"), float("nan")
    mix = torch.tensor([[-inf, -3e38, -1e4, -100.0], [inf, 3e38, 1e4, 100.0], [0.0, -0.0, 1e-45, nan], [88.0, -88.0, 104.0, -104.0]])
    scale, base = torch.ones(1), torch.zeros(STREAMS)
    expected = mhc_head_compute_mix_ref(mix.double(), scale.double(), base.double(), EPS)
    torch.testing.assert_close(forward(mix, scale, base, 1).double(), expected, rtol=1e-6, atol=1e-7, equal_nan=True)


def backward(grad, mix, scale, base, block: int):
    outputs = poisoned(*mix.shape), poisoned(CORES, 1), poisoned(CORES, STREAMS)
    names = ("input_mix_grad", "mhc_scale_grad_partial", "mhc_base_grad_partial")
    written = run(mhc_head_compute_mix_bwd, grad, mix, scale, base, *outputs, CORES, token_block_size=block, written=names).written
    return written[names[0]], written[names[1]].sum(0), written[names[2]].sum(0)


@pytest.mark.parametrize("block", BLOCKS)
def test_backward(block):
    scale, base = f32(1, seed=1), f32(STREAMS, seed=2)
    for tokens in TOKENS:
        grad, mix = f32(tokens, STREAMS, seed=tokens), f32(tokens, STREAMS, seed=tokens + 1)
        leaves = [tensor.double().requires_grad_() for tensor in (mix, scale, base)]
        mhc_head_compute_mix_ref(*leaves, EPS).backward(grad.double())
        for found, leaf in zip(backward(grad, mix, scale, base, block), leaves, strict=True):
            torch.testing.assert_close(found.double(), leaf.grad, **TOLERANCE)


def test_backward_of_saturated_weights():
    mix = torch.tensor([[-1e4, 1e4, -100.0, 100.0]])
    scale, base = torch.ones(1), torch.zeros(STREAMS)
    for gradient in backward(torch.full((1, STREAMS), 1e6), mix, scale, base, 1):
        assert torch.equal(gradient, torch.zeros_like(gradient))


@pytest.mark.slow
def test_two_streams():
    """The kernels are general in the number of streams; the package's functions ask for four."""
    tokens, streams = 640, 2
    scale, base, mix, grad = f32(1, seed=1), f32(streams, seed=2), f32(tokens, streams), f32(tokens, streams, seed=3)
    outputs = poisoned(tokens, streams), poisoned(CORES, 1), poisoned(CORES, streams)
    options = {"token_block_size": 4, "num_vec_cores": CORES}
    out = poisoned(tokens, streams)
    compiled(mhc_head_compute_mix_fwd_asc, mix, scale, base, out, mhc_pre_eps=EPS, **options)(mix, scale, base, out)
    compiled(mhc_head_compute_mix_bwd_asc, grad, mix, scale, base, *outputs, **options)(grad, mix, scale, base, *outputs)
    leaves = [tensor.double().requires_grad_() for tensor in (mix, scale, base)]
    expected = mhc_head_compute_mix_ref(*leaves, EPS)
    expected.backward(grad.double())
    torch.testing.assert_close(out.double(), expected.detach(), rtol=1e-6, atol=1e-7)
    for found, leaf in zip((outputs[0], outputs[1].sum(0), outputs[2].sum(0)), leaves, strict=True):
        torch.testing.assert_close(found.double(), leaf.grad, **TOLERANCE)
