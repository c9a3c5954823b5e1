"""Engram weights of tile_kernels, fused and their gradients, on the simulator: every bit."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run
from tile_kernels_support import bf16, f32, tile_kernels

tile_kernels()
from tile_kernels.engram import fused_weight, grad_w_reduce  # noqa: E402


def exactly(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("heads", "hidden"), [(4, 2560), (1, 256), (7, 5120)])
def test_fused_weight(heads, hidden):
    one, other = bf16(heads, hidden, seed=1), bf16(heads, hidden, seed=2)
    one[0, :8] = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 2.0**-133, 3e38, -3e38], dtype=torch.bfloat16)
    other[0, :8] = torch.tensor([-1.0, -1.0, 0.0, 2.0, 1.0, 0.5, 3e38, 3e38], dtype=torch.bfloat16)
    found = run(fused_weight, one, other).result
    exactly(found, one.float() * other.float())
    assert found[0, 1].signbit() == torch.tensor(False) and found[0, 0].signbit()


# Widths that are divided among 10, 1 and 7 shards of a head.
@pytest.mark.parametrize(("partials", "hidden"), [(16, 2560), (1, 64), (33, 448)])
def test_weight_gradients(partials, hidden):
    partial, weight_hidden, weight_embed = f32(partials, 4, hidden, seed=1), bf16(4, hidden, seed=2), bf16(4, hidden, seed=3)
    grad_hidden, grad_embed = f32(4, hidden, seed=4), f32(4, hidden, seed=5)
    partial[:, 1] *= 1e3
    partial[:, 2, ::3] = 0
    weight_hidden[3], weight_embed[3] = 0, -1
    written = ("grad_weight_hidden", "grad_weight_embed")
    found = run(grad_w_reduce, partial, weight_hidden, weight_embed, grad_hidden, grad_embed, written=written).written
    total = torch.zeros(4, hidden)
    for one in partial:
        total = total + one  # float32, one after the other: the kernel's order
    for name, weight, before in (("grad_weight_hidden", weight_embed, grad_hidden), ("grad_weight_embed", weight_hidden, grad_embed)):
        # Fused: rounded once. A product has 32 significant bits, so the sum is exact in float64.
        exactly(found[name], (total.double() * weight.double() + before.double()).float())
