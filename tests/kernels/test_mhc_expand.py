"""Expansion of hidden states into mHC streams, and its gradient, on the simulator: both are exact."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run, same_bits
from tile_kernels_support import bf16, poisoned, tile_kernels

tile_kernels()
from tile_kernels.mhc import expand_to_mhc_bwd, expand_to_mhc_fwd  # noqa: E402
from tile_kernels.torch.mhc import expand_to_mhc_ref  # noqa: E402

TOKENS = (0, 1, 65, 515)  # none, one, not divisible by the cores, more rounds than there are versions of a buffer
VARIANTS = [(2560, 4), (7168, 4), (1280, 2), (2560, 8)]  # elements of a row, streams
LARGEST = torch.finfo(torch.bfloat16).max


def expand(x, streams: int):
    out = poisoned(x.shape[0], streams, x.shape[1], dtype=torch.bfloat16)
    return run(expand_to_mhc_fwd, x, out, written=("o",)).written["o"]


def gradient(grad):
    x_grad = poisoned(grad.shape[0], grad.shape[2], dtype=torch.bfloat16)
    return run(expand_to_mhc_bwd, grad, x_grad, written=("x_grad",)).written["x_grad"]


@pytest.mark.parametrize(("hidden", "streams"), VARIANTS)
def test_forward(hidden, streams):
    for tokens in TOKENS:
        x = bf16(tokens, hidden, seed=tokens)
        assert same_bits(expand(x, streams), expand_to_mhc_ref(x, streams))


def test_forward_keeps_every_bit_pattern():
    patterns = (torch.arange(26 * 2560) % 65536).to(torch.uint16).view(torch.bfloat16).reshape(26, 2560)
    assert same_bits(expand(patterns, 4), expand_to_mhc_ref(patterns, 4))


def stream_sum(grad):
    """In float32, stream by stream, rounded once at the end; what bfloat16 cannot hold saturates and a NaN becomes zero."""
    total = grad[:, 0].float()
    for stream in range(1, grad.shape[1]):
        total = total + grad[:, stream].float()
    return total.nan_to_num(nan=0.0).clamp(-LARGEST, LARGEST).to(torch.bfloat16)


@pytest.mark.parametrize(("hidden", "streams"), VARIANTS)
def test_backward(hidden, streams):
    for tokens in TOKENS:
        grad = bf16(tokens, streams, hidden, seed=tokens)
        assert same_bits(gradient(grad), stream_sum(grad))


def test_backward_saturates():
    grad = bf16(9, 4, 2560) * 1.5e38
    grad[0, 1, :5], grad[0, 2, :3] = float("inf"), torch.tensor([float("-inf"), float("nan"), 0.0])
    found = gradient(grad)
    assert (found == LARGEST).any() and (found == -LARGEST).any() and found.isfinite().all()
    assert torch.equal(found, stream_sum(grad))
