"""A layer's input as the weighted sum of the mHC streams, and its gradients, on the simulator against float64."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run
from tile_kernels_support import bf16, f32, poisoned, tile_kernels

tile_kernels()
from tile_kernels.mhc import mhc_pre_apply_mix_bwd, mhc_pre_apply_mix_fwd  # noqa: E402
from tile_kernels.torch.mhc import mhc_pre_apply_mix_ref  # noqa: E402

STREAMS = 4
TOKENS = (0, 1, 67, 259)  # the last are more rounds than there are versions of a buffer
HIDDEN = (2560, 7168)  # one part of a row; two parts forward, four backward
UNEVEN = (100, 6208)  # a row that is no whole number of registers, two parts of unequal length
BF16 = {"rtol": 2.0**-8 * 1.001, "atol": 1e-5}  # half a unit in the last place; the package's tests allow more
F32 = {"rtol": 1e-4, "atol": 1e-4}


def forward(x, mix):
    out = poisoned(x.shape[0], x.shape[2], dtype=torch.bfloat16)
    return run(mhc_pre_apply_mix_fwd, x, mix, out, written=("o",)).written["o"]


@pytest.mark.parametrize("hidden", HIDDEN + UNEVEN)
def test_forward(hidden):
    for tokens in TOKENS:
        x, mix = bf16(tokens, STREAMS, hidden, seed=tokens), f32(tokens, STREAMS, seed=1)
        out = forward(x, mix)
        torch.testing.assert_close(out.double(), (x.double() * mix.double()[..., None]).sum(1), **BF16)


def test_forward_as_the_package_compares_it():
    x, mix = bf16(67, STREAMS, 2560).sigmoid(), f32(67, STREAMS, seed=1).softmax(-1)
    torch.testing.assert_close(forward(x, mix), mhc_pre_apply_mix_ref(x, mix[..., None]), rtol=1e-3, atol=1e-2)


def test_forward_scales_with_powers_of_two():
    x, mix = bf16(5, STREAMS, 2560), f32(5, STREAMS, seed=1)
    out = forward(x, mix)
    for factor in (2.0**100, -(2.0**-100)):
        assert torch.equal(forward(x * factor, mix), out * factor)


def backward(grad, x, mix, x_grad):
    """The gradient of ``x`` is added to ``x_grad``."""
    outcome = run(mhc_pre_apply_mix_bwd, grad, x, mix, x_grad, written=("x_grad",))
    return outcome.written["x_grad"], outcome.result


@pytest.mark.parametrize("hidden", HIDDEN)
def test_backward(hidden):
    for tokens in TOKENS:
        x, mix = bf16(tokens, STREAMS, hidden, seed=tokens), f32(tokens, STREAMS, seed=1)
        grad, before = bf16(tokens, hidden, seed=2), bf16(tokens, STREAMS, hidden, seed=3)
        x_grad, mix_grad = backward(grad, x, mix, before)
        spread = grad.double()[:, None]
        torch.testing.assert_close(x_grad.double(), before.double() + mix.double()[..., None] * spread, **BF16)
        torch.testing.assert_close(mix_grad.double(), (spread * x.double()).sum(-1), **F32)


def test_backward_scales_with_powers_of_two():
    x, mix, grad, before = bf16(5, STREAMS, 2560), f32(5, STREAMS, seed=1), bf16(5, 2560, seed=2), bf16(5, STREAMS, 2560, seed=3)
    found = backward(grad, x, mix, before)
    for factor in (2.0**100, -(2.0**-100)):
        for gradient, scaled in zip(found, backward(grad * factor, x, mix, before * factor), strict=True):
            assert torch.equal(scaled, gradient * factor)
