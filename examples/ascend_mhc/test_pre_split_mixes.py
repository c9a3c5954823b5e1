"""Weights of a layer from one projection, and their gradients."""

from __future__ import annotations

import pytest
import torch

from . import pre_split_mixes as family
from .pre_split_mixes import pre_split_mixes
from .tensors import normal

FAMILY = family


def test_cases(cases, device):
    device.check(cases)


def weights(mixes: torch.Tensor, scale: torch.Tensor, base: torch.Tensor, mhc: int, factor: float, eps: float) -> list[torch.Tensor]:
    linear = [part * scale[i] for i, part in enumerate(mixes.split([mhc, mhc, mhc * mhc], dim=-1))]
    front, behind, among = (part + bias for part, bias in zip(linear, base.split([mhc, mhc, mhc * mhc]), strict=True))
    return [front.sigmoid() + eps, behind.sigmoid() * factor, among.unflatten(-1, (mhc, mhc))]


@pytest.mark.parametrize(("mhc", "factor", "eps"), [pytest.param(4, 2.0, 1e-2, marks=pytest.mark.quick), (2, 3.0, 0.5), (8, 3.0, 0.5)])
def test_gradients(device, mhc, factor, eps):
    width = mhc * (mhc + 2)
    given = normal(mhc, (3, 43, width), (3,), (width,))
    wanted = [tensor.double().requires_grad_() for tensor in given]
    leaves = [tensor.to(device.torch_device).requires_grad_() for tensor in given]
    found, expected = pre_split_mixes(*leaves, mhc, factor=factor, eps=eps), weights(*wanted, mhc, factor, eps)
    grads = normal(1, *(tuple(part.shape) for part in expected))
    torch.autograd.backward(found, [grad.to(device.torch_device) for grad in grads])
    torch.autograd.backward(expected, [grad.double() for grad in grads])
    for part, reference in zip(found, expected, strict=True):
        torch.testing.assert_close(part.detach().cpu().double(), reference.detach(), rtol=1e-6, atol=2e-6)
    for leaf, reference in zip(leaves, wanted, strict=True):
        torch.testing.assert_close(leaf.grad.cpu().double(), reference.grad, rtol=1e-6, atol=3e-5)


@pytest.mark.quick
def test_no_tokens(device):
    leaves = [torch.zeros(shape, device=device.torch_device, requires_grad=True) for shape in ((0, 24), (3,), (24,))]
    sum(part.sum() for part in pre_split_mixes(*leaves, 4)).backward()
    assert [leaf.grad.tolist() for leaf in leaves] == [[], [0.0] * 3, [0.0] * 24]


@pytest.mark.quick
def test_a_result_nobody_uses(device):
    """Its gradient is zero."""
    leaves = [tensor.to(device.torch_device).requires_grad_() for tensor in normal(0, (5, 24), (3,), (24,))]
    pre_split_mixes(*leaves, 4)[2].sum().backward()
    scale = leaves[1].detach().cpu()
    assert torch.equal(leaves[0].grad.cpu(), torch.cat([torch.zeros(5, 8), scale[2].expand(5, 16)], dim=1))
    assert torch.equal(leaves[2].grad.cpu(), torch.tensor([0.0] * 8 + [5.0] * 16))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({3: 3}, r"mhc is 3, it has to be one of \(2, 4, 8\)"),
        ({0: torch.zeros(5, 23)}, r"mixes has shape \(5, 23\), it has to be \(..., 24\)"),
        ({1: torch.zeros(1)}, r"scale has shape \(1,\), it has to be \(3\)"),
        ({2: torch.zeros(24).half()}, r"base has dtype torch.float16, it has to be torch.float32"),
    ],
    ids=["mhc", "mixes", "scale", "base"],
)
def test_what_it_refuses(changes, message):
    arguments = [torch.zeros(5, 24), torch.zeros(3), torch.zeros(24), 4]
    for position, value in changes.items():
        arguments[position] = value
    with pytest.raises(ValueError, match=message):
        pre_split_mixes(*arguments)
