"""Sinkhorn normalization of the 4 x 4 stream mixing matrices, and its gradient, on the simulator against float64."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run
from tile_kernels_support import f32, poisoned, tile_kernels

tile_kernels()
from tile_kernels.mhc import mhc_sinkhorn_bwd, mhc_sinkhorn_fwd  # noqa: E402
from tile_kernels.torch.mhc import sinkhorn_normalize_ref  # noqa: E402

REPEATS = (1, 20)
EPS = 1e-6
TOLERANCE = {"rtol": 1.3e-6, "atol": 1e-5}  # the package's own: torch's for float32


def forward(x, repeat: int):
    out = poisoned(*x.shape)
    return run(mhc_sinkhorn_fwd, x, out, repeat, EPS, written=("comb_res_mix_out",)).written["comb_res_mix_out"]


@pytest.mark.parametrize("repeat", REPEATS)
def test_forward(repeat):
    for tokens in (0, 1, 3, 257, 1283):  # blocks of four tokens; the last are more rounds than versions of a buffer
        x = f32(tokens, 4, 4, seed=tokens) * 3
        torch.testing.assert_close(forward(x, repeat).double(), sinkhorn_normalize_ref(x.double(), repeat, EPS), **TOLERANCE)


def extreme_matrices():
    """One large entry in each row, equal entries, magnitudes whose differences overflow, rows that vanish, a permutation."""
    inf = float("inf")
    permutation = torch.eye(4)[[2, 0, 3, 1]]
    matrices = [f32(4, 4) * 1e4, torch.full((4, 4), -7.0), f32(4, 4).sign() * 3e38, f32(4, 4) * 1e-40, permutation * 200]
    return torch.stack([*matrices, torch.where(permutation > 0, 0.0, -inf)])


@pytest.mark.parametrize("repeat", REPEATS)
def test_forward_of_extreme_values(repeat):
    x = extreme_matrices()
    torch.testing.assert_close(forward(x, repeat).double(), sinkhorn_normalize_ref(x.double(), repeat, EPS), **TOLERANCE)


def backward(grad, x, repeat: int):
    x_grad = poisoned(*x.shape)
    return run(mhc_sinkhorn_bwd, grad, x, x_grad, repeat, EPS, written=("grad_input",)).written["grad_input"]


def gradient(grad, x, repeat: int):
    leaf = x.double().requires_grad_()
    sinkhorn_normalize_ref(leaf, repeat, EPS).backward(grad.double())
    return leaf.grad


@pytest.mark.parametrize("repeat", REPEATS)
def test_backward(repeat):
    for tokens in (0, 1, 7, 600, 2053):  # blocks of eight tokens; the last are more rounds than versions of a buffer
        grad, x = f32(tokens, 4, 4, seed=tokens), f32(tokens, 4, 4, seed=tokens + 1)
        torch.testing.assert_close(backward(grad, x, repeat).double(), gradient(grad, x, repeat), **TOLERANCE)


@pytest.mark.parametrize("repeat", REPEATS)
def test_backward_of_extreme_values(repeat):
    x = extreme_matrices()
    grad = f32(*x.shape, seed=1)
    torch.testing.assert_close(backward(grad, x, repeat).double(), gradient(grad, x, repeat), **TOLERANCE)
