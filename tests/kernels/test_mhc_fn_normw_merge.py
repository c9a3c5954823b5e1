"""The mHC projection matrix merged with the norm's weight, and its gradients, on the simulator: every rounding is the formula's."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run, same_bits
from tile_kernels_support import f32, poisoned, tile_kernels

tile_kernels()
from tile_kernels.mhc import mhc_fn_normw_merge_bwd, mhc_fn_normw_merge_fwd  # noqa: E402

# Rows, elements of a row: four streams of 2560 and of 7168 (more rounds than versions of a buffer), two of 128 (fewer blocks than cores).
SHAPES = [(24, 10240), (24, 28672), (8, 256)]


@pytest.mark.parametrize("shape", SHAPES)
def test_forward(shape):
    for factor in (1.0, -(2.0**-80), 2.0**64):  # the others underflow to subnormal numbers and overflow
        fn, weight, out = f32(*shape) * factor, f32(shape[1], seed=1) * factor, poisoned(*shape)
        merged = run(mhc_fn_normw_merge_fwd, fn, weight, out, written=("out_fn",)).written["out_fn"]
        assert same_bits(merged, fn * weight)


@pytest.mark.parametrize("shape", SHAPES)
def test_backward(shape):
    rows, hidden = shape
    for factor in (1.0, 2.0**64):  # the other overflows
        fn, weight, merged_grad = f32(*shape) * factor, f32(hidden, seed=1) * factor, f32(*shape, seed=2) * factor
        fn_grad, weight_grad = f32(*shape, seed=3), f32(hidden, seed=4)
        arguments = (fn, weight, merged_grad, fn_grad, weight_grad)
        written = run(mhc_fn_normw_merge_bwd, *arguments, written=("fn_grad", "normw_grad")).written
        torch.testing.assert_close(written["fn_grad"], fn_grad + merged_grad * weight, rtol=0, atol=0, equal_nan=True)
        for row in range(rows):
            weight_grad = weight_grad + merged_grad[row] * fn[row]
        torch.testing.assert_close(written["normw_grad"], weight_grad, rtol=0, atol=0, equal_nan=True)
