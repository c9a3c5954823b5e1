"""Expansion into streams, and its gradient."""

from __future__ import annotations

import pytest
import torch

from . import expand as family
from .expand import expand
from .tensors import normal

FAMILY = family


def test_cases(cases, device):
    device.check(cases)


@pytest.mark.quick
def test_gradient(device):
    (x,) = normal(1, (3, 5, 1280), dtype=torch.bfloat16)
    leaf = x.to(device.torch_device).requires_grad_()
    streams = expand(leaf, 2)
    assert torch.equal(streams.detach().cpu(), x.unsqueeze(-2).expand(-1, -1, 2, -1))
    weights = torch.tensor([0.5, -4.0], dtype=torch.bfloat16, device=leaf.device)
    (streams * weights[:, None]).sum().backward()
    assert torch.equal(leaf.grad.cpu(), torch.full_like(x, -3.5))


@pytest.mark.quick
def test_no_tokens(device):
    leaf = torch.zeros(0, 1280, dtype=torch.bfloat16, device=device.torch_device, requires_grad=True)
    streams = expand(leaf, 2)
    assert streams.shape == (0, 2, 1280)
    streams.sum().backward()
    assert leaf.grad.shape == leaf.shape


def exact_sum(grads: torch.Tensor) -> torch.Tensor:
    """In float32, stream by stream, rounded once."""
    total = grads[:, 0].float()
    for stream in range(1, grads.shape[1]):
        total = total + grads[:, stream].float()
    return total.bfloat16()


@pytest.mark.parametrize(("hidden", "mhc"), [(256, 1), (2816, 3), (5120, 14)])
def test_other_sizes(device, hidden, mhc):
    x, grads = normal(mhc, (67, hidden), (67, mhc, hidden), dtype=torch.bfloat16)
    leaf = x.to(device.torch_device).requires_grad_()
    streams = expand(leaf, mhc)
    assert torch.equal(streams.detach().cpu(), x.unsqueeze(-2).expand(-1, mhc, -1))
    streams.backward(grads.to(leaf.device))
    assert torch.equal(leaf.grad.cpu(), exact_sum(grads))


@pytest.mark.parametrize(
    ("x", "mhc", "message"),
    [
        (torch.zeros(4, 1280), 4, r"x has dtype torch.float32, it has to be torch.bfloat16"),
        (torch.zeros(4, 1000, dtype=torch.bfloat16), 4, r"hidden is 1000, it has to be a multiple of 256"),
        (torch.zeros(4, 1280, dtype=torch.bfloat16), 15, r"mhc is 15, it has to be from 1 to 14"),
        (torch.tensor(1.0, dtype=torch.bfloat16), 4, r"x has shape \(\), it has to be \(..., any\)"),
    ],
    ids=["dtype", "hidden", "mhc", "shape"],
)
def test_what_it_refuses(x, mhc, message):
    with pytest.raises(ValueError, match=message):
        expand(x, mhc)
