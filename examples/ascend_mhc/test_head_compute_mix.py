"""Weights of the streams at the head, and their gradients."""

from __future__ import annotations

import pytest
import torch

from . import head_compute_mix as family
from .head_compute_mix import head_compute_mix
from .tensors import normal

FAMILY = family


def test_cases(cases, device):
    device.check(cases)


def inputs(mhc: int) -> list[torch.Tensor]:
    return normal(mhc, (3, 43, mhc), (1,), (mhc,))


@pytest.mark.parametrize(("mhc", "eps"), [pytest.param(4, 1e-2, marks=pytest.mark.quick), (2, 0.5), (8, 0.5)])
def test_gradients(device, mhc, eps):
    leaves = [tensor.to(device.torch_device).requires_grad_() for tensor in inputs(mhc)]
    wanted = [tensor.double().requires_grad_() for tensor in inputs(mhc)]
    found, expected = head_compute_mix(*leaves, eps=eps), torch.sigmoid(wanted[0] * wanted[1] + wanted[2]) + eps
    (weights,) = normal(1, tuple(expected.shape))
    (found * weights.to(found.device)).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(found.cpu().double(), expected, rtol=0, atol=1e-6)
    for leaf, reference in zip(leaves, wanted, strict=True):
        torch.testing.assert_close(leaf.grad.cpu().double(), reference.grad, rtol=1e-6, atol=1e-5)


@pytest.mark.quick
def test_no_tokens(device):
    leaves = [torch.zeros(shape, device=device.torch_device, requires_grad=True) for shape in ((0, 4), (1,), (4,))]
    head_compute_mix(*leaves).sum().backward()
    assert [leaf.grad.tolist() for leaf in leaves] == [[], [0.0], [0.0] * 4]


@pytest.mark.quick
def test_saturated_gates(device):
    """Nothing but the last bits of the quotient stays of the gradient."""
    mix = torch.tensor([[-1e4, 1e4, -120.0, 120.0]], device=device.torch_device, requires_grad=True)
    scale, base = torch.ones(1, device=mix.device), torch.zeros(4, device=mix.device)
    out = head_compute_mix(mix, scale, base, eps=1e-2) - 1e-2
    (out * 1e6).sum().backward()
    torch.testing.assert_close(out.detach().cpu(), torch.tensor([[0.0, 1.0, 0.0, 1.0]]), rtol=0, atol=2**-22)
    torch.testing.assert_close(mix.grad.cpu(), torch.zeros(1, 4), rtol=0, atol=1e6 * 2**-23)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({0: torch.zeros(5, 3)}, r"mhc is 3, it has to be one of \(2, 4, 8\)"),
        ({0: torch.zeros(5, 4).double()}, r"mix has dtype torch.float64"),
        ({1: torch.zeros(3)}, r"scale has shape \(3,\), it has to be \(1\)"),
        ({2: torch.zeros(5)}, r"base has shape \(5,\), it has to be \(4\)"),
        ({2: torch.zeros(4, device="meta")}, r"base is on meta, the other arguments are on cpu"),
    ],
    ids=["mhc", "dtype", "scale", "base", "device"],
)
def test_what_it_refuses(changes, message):
    arguments = [torch.zeros(5, 4), torch.zeros(1), torch.zeros(4)]
    for position, value in changes.items():
        arguments[position] = value
    with pytest.raises(ValueError, match=message):
        head_compute_mix(*arguments)
