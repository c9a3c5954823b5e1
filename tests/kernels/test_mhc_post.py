"""The mHC step after a layer (streams mixed, the layer's output added to each) on the simulator against float64."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run
from tile_kernels_support import bf16, f32, poisoned, tile_kernels

tile_kernels()
from tile_kernels.mhc import mhc_post_bwd, mhc_post_fwd  # noqa: E402
from tile_kernels.torch.mhc import mhc_post_ref  # noqa: E402

STREAMS = 4
SEQUENCES = ((1, 0), (1, 1), (2, 33), (2, 131))  # sequences, tokens of each; the last are more rounds than versions of a buffer
HIDDEN = (2560, 7168)  # one part of a row, two parts
UNEVEN = (100, 4160)  # a row that is no whole number of registers, two parts of unequal length
BF16 = {"rtol": 2.0**-8 * 1.001, "atol": 1e-5}  # half a unit in the last place; the package's tests allow 1.6e-2
F32 = {"rtol": 1e-4, "atol": 1e-4}


def post(x, residual, post_mix, comb_mix):
    """``out[mo] = post_mix[mo] * x + sum over mi of comb_mix[mi, mo] * residual[mi]``"""
    return x[:, :, None] * post_mix + comb_mix.transpose(-1, -2) @ residual


def inputs(sequences: int, tokens: int, hidden: int):
    shape = (sequences, tokens)
    mixes = f32(*shape, STREAMS, 1, seed=3), f32(*shape, STREAMS, STREAMS, seed=4)
    return bf16(*shape, hidden, seed=tokens + 1), bf16(*shape, STREAMS, hidden, seed=tokens + 2), *mixes


def forward(x, residual, *mixes):
    out = poisoned(*residual.shape, dtype=torch.bfloat16)
    outcome = run(mhc_post_fwd, x, residual, *mixes, out, written=("out",))
    assert outcome.result is outcome.written["out"]
    return outcome.result


@pytest.mark.parametrize("hidden", HIDDEN + UNEVEN)
def test_forward(hidden):
    for shape in SEQUENCES:
        tensors = inputs(*shape, hidden)
        out = forward(*tensors)
        torch.testing.assert_close(out.double(), post(*(tensor.double() for tensor in tensors)), **BF16)
        torch.testing.assert_close(out, mhc_post_ref(*tensors))  # the package's own comparison


def test_forward_scales_with_powers_of_two():
    x, residual, *mixes = inputs(1, 5, 2560)
    out = forward(x, residual, *mixes)
    for factor in (2.0**100, -(2.0**-100)):
        assert torch.equal(forward(x * factor, residual * factor, *mixes), out * factor)


@pytest.mark.parametrize("hidden", HIDDEN)
def test_backward(hidden):
    for shape in SEQUENCES:
        tensors, grad = inputs(*shape, hidden), bf16(*shape, STREAMS, hidden, seed=5)
        found = run(mhc_post_bwd, *tensors, grad).result
        leaves = [tensor.double().requires_grad_() for tensor in tensors]
        post(*leaves).backward(grad.double())
        for gradient, leaf in zip(found, leaves, strict=True):
            assert gradient.shape == leaf.shape
            torch.testing.assert_close(gradient.double(), leaf.grad, **(BF16 if gradient.dtype is torch.bfloat16 else F32))


def test_backward_scales_with_powers_of_two():
    tensors, grad = inputs(1, 5, 2560), bf16(1, 5, STREAMS, 2560, seed=5)
    found = run(mhc_post_bwd, *tensors, grad).result
    for factor in (2.0**100, -(2.0**-100)):
        for gradient, scaled in zip(found, run(mhc_post_bwd, *tensors, grad * factor).result, strict=True):
            assert torch.equal(scaled, gradient * factor)
