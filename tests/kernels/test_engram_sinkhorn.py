"""The engram Sinkhorn optimizer steps of tile_kernels on the simulator against formulas in float64."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run
from tile_kernels_support import CORES, f32, tile_kernels

tile_kernels()
from tile_kernels.engram import (  # noqa: E402
    engram_sinkhorn_finalize,
    engram_sinkhorn_momentum_update,
    engram_sinkhorn_step,
    engram_sinkhorn_step_reduce,
)

ROW, BETA = 256, 0.95
BF16, F32 = torch.bfloat16, torch.float32
SPECIAL = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 3.4e38, -3.4e38, 1e-40, -1e-45, 65504.0])


def uniform(*shape: int, seed: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def exactly(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def fused(factor: torch.Tensor, scale: float, addend: torch.Tensor) -> torch.Tensor:
    """A float32 product and sum, rounded once."""
    return (factor.double() * torch.tensor(scale, dtype=F32).double() + addend.double()).float()


def saturated(values: torch.Tensor) -> torch.Tensor:
    """In bfloat16 as the kernel asks for it: the largest number instead of infinity, zero instead of NaN."""
    largest = torch.finfo(BF16).max
    return values.nan_to_num(nan=0.0, posinf=largest, neginf=-largest).clamp(-largest, largest).to(BF16)


@pytest.mark.parametrize(("grad_dtype", "momentum_dtype", "nesterov"), [(BF16, BF16, True), (F32, F32, True), (BF16, F32, False)])
def test_momentum(grad_dtype, momentum_dtype, nesterov):
    for rows in (0, 1, 15, 17, 16 * CORES * 2 + 3):  # 16 rows are a round of a core
        grad, momentum = f32(rows * ROW, seed=rows), f32(rows * ROW, seed=rows + 1)
        if rows:
            pairs = torch.cartesian_prod(SPECIAL, SPECIAL)
            grad[: len(pairs)], momentum[: len(pairs)] = pairs.T
        grad, momentum = grad.to(grad_dtype), momentum.to(momentum_dtype)
        found = run(engram_sinkhorn_momentum_update, grad, momentum, BETA, nesterov, written=("momentum_buffer",))
        scaled = grad.float() * (1 - BETA)
        updated = fused(momentum.float(), BETA, scaled)
        exactly(found.written["momentum_buffer"], saturated(updated) if momentum_dtype == BF16 else updated)
        exactly(found.result, fused(updated, BETA, scaled) if nesterov else updated)


def scaled_matrix(rows: int, width: int):
    """A matrix with its scales; some rows and columns are zero, negative, or far from one."""
    matrix, row_scale, column_scale = f32(rows, width, seed=rows), uniform(rows, seed=1), uniform(width, seed=2)
    row_scale[3::7] *= -1
    matrix[5::11] *= 1e8
    matrix[6::11] *= 1e-8
    matrix[7::11] = 0
    row_scale[8::11] = 0
    column_scale[1::5] = 0
    return matrix, row_scale, column_scale


def normalized(matrix, row_scale, column_scale, eps: float):
    """Rows of norm one, what their scales became, and their norms before, in float64."""
    matrix, row_scale, column_scale = matrix.double(), row_scale.double(), column_scale.double()
    norm = (row_scale[:, None] * matrix * column_scale).norm(dim=1)
    scale = row_scale / (norm + eps)
    return scale[:, None] * matrix * column_scale, scale, norm


def close(found: torch.Tensor, expected: torch.Tensor, atol: float = 0.0) -> None:
    """torch's own relative tolerance for float32, as in the package's tests, but relative throughout."""
    torch.testing.assert_close(found.double(), expected, rtol=1.3e-6, atol=atol)


def test_step():
    width, eps = 512, 1e-6
    for rows in (0, 1, 255, 257, 256 * CORES + 259):  # 256 rows are a round of a core
        matrix, row_scale, column_scale = scaled_matrix(rows, width)
        found = run(engram_sinkhorn_step, matrix, row_scale, column_scale, eps, written=("row_scale",))
        norm, partial = found.result
        assert partial.shape == (CORES, width)
        expected, scale, expected_norm = normalized(matrix, row_scale, column_scale, eps)
        close(norm, expected_norm)
        close(found.written["row_scale"], scale)
        close(partial.double().sum(0), expected.square().sum(0))
        first = expected[:256].square().sum(0) + expected[256 * CORES : 256 * CORES + 256].square().sum(0)
        close(partial[0], first, atol=1e-9)


@pytest.mark.parametrize(("partials", "width"), [(CORES, 512), (1, 256), (65, 5120)])
def test_step_reduce(partials, width):
    partial = uniform(partials, width, seed=partials)
    partial[:, ::7] *= 1e30
    partial[:, 1::7] = 0
    found = run(engram_sinkhorn_step_reduce, partial, torch.full((width,), torch.nan), written=("col_sumsq",)).written["col_sumsq"]
    total = torch.zeros(width)
    for one in partial:
        total = total + one  # float32, one after the other: the kernel's order
    exactly(found, total)


def test_finalize():
    width, eps, alpha = 512, 1e-20, 0.2
    for rows in (0, 1, CORES - 1, CORES * 3 + 5):
        matrix, row_scale, column_scale = scaled_matrix(rows, width)
        expected = alpha * normalized(matrix, row_scale, column_scale, eps)[0]
        close(run(engram_sinkhorn_finalize, matrix, row_scale, column_scale, eps, alpha).result, expected)
        given = run(engram_sinkhorn_finalize, matrix, row_scale, column_scale, eps, alpha, torch.zeros(rows, width), written=("out",))
        assert given.result is given.written["out"]
        close(given.result, expected)
