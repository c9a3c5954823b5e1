"""The streams behind a layer, and their gradients."""

from __future__ import annotations

import pytest
import torch

from . import post as FAMILY
from .post import post


def test_cases(cases, device):
    device.check(cases)


@pytest.mark.parametrize("mhc", [1, 8])
def test_other_numbers_of_streams(mhc, device):
    """The fewest and the most; weights of one stream are less than a DMA granule."""
    parameters = {"n0": 1, "n1": 3, "mhc": mhc, "hidden": 512}
    device.check(case(parameters, 3) for case in (FAMILY._forward_case, FAMILY._backward_case))


@pytest.mark.quick
def test_no_tokens(device):
    device.check(case({"n0": 0, "n1": 0, "mhc": 4, "hidden": 1280}, 0) for case in (FAMILY._forward_case, FAMILY._backward_case))


@pytest.mark.quick
def test_gradients(device):
    random = torch.Generator().manual_seed(1)
    given = [
        torch.randn(2, 3, 1280, generator=random).bfloat16(),
        torch.randn(2, 3, 4, 1280, generator=random).bfloat16(),
        torch.randn(2, 3, 4, generator=random),
        torch.randn(2, 3, 4, 4, generator=random),
    ]
    leaves = [tensor.clone().to(device.torch_device).requires_grad_() for tensor in given]
    exact = [tensor.double().requires_grad_() for tensor in given]
    out = post(*leaves)
    x, residual, post_mix, comb_mix = exact
    expected = post_mix[..., None] * x[..., None, :] + comb_mix.transpose(-1, -2) @ residual
    cotangent = torch.randn(2, 3, 4, 1280, generator=random).bfloat16()
    (out * cotangent.to(out.device)).sum().backward()
    (expected * cotangent.double()).sum().backward()
    torch.testing.assert_close(out.cpu().double(), expected.detach(), rtol=2**-8, atol=1e-4)
    for leaf, reference in zip(leaves, exact, strict=True):
        assert leaf.grad.dtype == leaf.dtype
        torch.testing.assert_close(leaf.grad.cpu().double(), reference.grad, rtol=2**-8, atol=1e-3)


X, RESIDUAL, POST, COMB = torch.zeros(5, 256).bfloat16(), torch.zeros(5, 4, 256).bfloat16(), torch.zeros(5, 4), torch.zeros(5, 4, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X.float(), RESIDUAL, POST, COMB), "x has dtype torch.float32, it has to be torch.bfloat16"),
        ((X, RESIDUAL.float(), POST, COMB), "residual has dtype torch.float32, it has to be torch.bfloat16"),
        ((X[:4], RESIDUAL, POST, COMB), r"x has shape \(4, 256\), it has to be \(5, 256\)"),
        ((X, RESIDUAL, POST[:, :3], COMB), r"post_mix has shape \(5, 3\), it has to be \(5, 4\)"),
        ((X, RESIDUAL, POST, COMB.flatten(1)), r"comb_mix has shape \(5, 16\), it has to be \(5, 4, 4\)"),
        ((X[:, :100], RESIDUAL[..., :100], POST, COMB), "hidden is 100, it has to be a multiple of 256"),
        ((X, RESIDUAL.repeat(1, 3, 1), POST, COMB), "mhc is 12, it has to be from 1 to 8"),
    ],
)
def test_what_it_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        post(*arguments)
