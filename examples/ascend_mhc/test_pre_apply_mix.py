"""The input of a layer as the weighted sum of the streams, and its gradients."""

from __future__ import annotations

import pytest
import torch

from . import pre_apply_mix as FAMILY
from .pre_apply_mix import pre_apply_mix

CASES = FAMILY._forward_case, FAMILY._simd_forward_case, FAMILY._backward_case


def test_cases(cases, device):
    device.check(cases)


@pytest.mark.parametrize("mhc", [1, 2, 3, 8])
def test_other_numbers_of_streams(mhc, device):
    """Numbers of streams that are no multiple of a DMA granule, or change the blocks."""
    parameters = {"n0": 1, "n1": 3, "mhc": mhc, "hidden": 2560}
    device.check(case(parameters, 3) for case in CASES)


@pytest.mark.quick
def test_no_tokens(device):
    device.check(case({"n0": 0, "n1": 0, "mhc": 4, "hidden": 1280}, 0) for case in CASES)


@pytest.mark.quick
def test_gradients(device):
    random = torch.Generator().manual_seed(1)
    x, mix = torch.randn(2, 3, 4, 1280, generator=random).bfloat16(), torch.randn(2, 3, 4, generator=random)
    leaves = [tensor.clone().to(device.torch_device).requires_grad_() for tensor in (x, mix)]
    exact = [tensor.double().requires_grad_() for tensor in (x, mix)]
    out, expected = pre_apply_mix(*leaves), (exact[0] * exact[1][..., None]).sum(-2)
    weights = torch.randn(2, 3, 1280, generator=random).bfloat16()
    (out * weights.to(out.device)).sum().backward()
    (expected * weights.double()).sum().backward()
    torch.testing.assert_close(out.cpu().double(), expected.detach(), rtol=2**-8, atol=1e-4)
    for leaf, reference in zip(leaves, exact, strict=True):
        assert leaf.grad.dtype == leaf.dtype
        torch.testing.assert_close(leaf.grad.cpu().double(), reference.grad, rtol=2**-8, atol=1e-3)


@pytest.mark.parametrize(
    ("x", "mix", "message"),
    [
        (torch.zeros(5, 4, 1280), torch.zeros(5, 4), "x has dtype torch.float32, it has to be torch.bfloat16"),
        (torch.zeros(5, 4, 1000).bfloat16(), torch.zeros(5, 4), "hidden is 1000, it has to be a multiple of 256"),
        (torch.zeros(5, 17, 1280).bfloat16(), torch.zeros(5, 17), "mhc is 17, it has to be from 1 to 16"),
        (torch.zeros(5, 4, 1280).bfloat16(), torch.zeros(5, 4, 1), r"mix has shape \(5, 4, 1\), it has to be \(5, 4\)"),
        (torch.zeros(5, 4, 1280).bfloat16(), torch.zeros(4, 5), r"mix has shape \(4, 5\), it has to be \(5, 4\)"),
        (torch.zeros(1280).bfloat16(), torch.zeros(4), r"x has shape \(1280,\), it has to be \(..., any, any\)"),
    ],
)
def test_what_it_refuses(x, mix, message):
    with pytest.raises(ValueError, match=message):
        pre_apply_mix(x, mix)
