"""Sinkhorn normalisation of mixing matrices, and its gradient."""

from __future__ import annotations

import pytest
import torch

from . import sinkhorn as family
from .sinkhorn import normalised, sinkhorn
from .tensors import normal

FAMILY = family


def test_cases(cases, device):
    device.check(cases)


@pytest.mark.parametrize(("mhc", "repeat"), [pytest.param(4, 10, marks=pytest.mark.quick), (2, 20), (4, 1)])
def test_gradient(device, mhc, repeat):
    x, grad = normal(mhc, (3, 43, mhc, mhc), (3, 43, mhc, mhc))
    wanted = x.double().requires_grad_()
    leaf = x.to(device.torch_device).requires_grad_()
    found, expected = sinkhorn(leaf, repeat=repeat), normalised(wanted, repeat, 1e-6)
    found.backward(grad.to(found.device))
    expected.backward(grad.double())
    torch.testing.assert_close(found.detach().cpu().double(), expected.detach(), rtol=1e-5, atol=0)
    torch.testing.assert_close(leaf.grad.cpu().double(), wanted.grad, rtol=0, atol=1e-5)


@pytest.mark.quick
def test_no_tokens(device):
    leaf = torch.zeros(0, 4, 4, device=device.torch_device, requires_grad=True)
    sinkhorn(leaf, repeat=10).sum().backward()
    assert leaf.grad.shape == leaf.shape


@pytest.mark.quick
def test_a_permutation(device):
    """Its rows and columns have sums of one already, up to eps."""
    permutation = torch.eye(4)[[2, 0, 3, 1]]
    out = sinkhorn((permutation * 200).to(device.torch_device)[None], repeat=10)
    torch.testing.assert_close(out.cpu()[0], permutation, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "repeat", "message"),
    [
        (torch.zeros(5, 3, 3), 10, r"mhc is 3, it has to be one of \(2, 4\)"),
        (torch.zeros(5, 2, 4), 10, r"x has shape \(5, 2, 4\), it has to be \(..., 4, 4\)"),
        (torch.zeros(4), 10, r"x has shape \(4,\), it has to be \(..., any, any\)"),
        (torch.zeros(5, 4, 4), 0, r"repeat is 0, it has to be from 1 to 20"),
        (torch.zeros(5, 4, 4), 21, r"repeat is 21, it has to be from 1 to 20"),
    ],
    ids=["mhc", "square", "rank", "none", "many"],
)
def test_what_it_refuses(x, repeat, message):
    with pytest.raises(ValueError, match=message):
        sinkhorn(x, repeat=repeat)
