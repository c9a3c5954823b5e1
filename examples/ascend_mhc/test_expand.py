"""Expansion into streams, and its gradient."""

from __future__ import annotations

import pytest
import torch

from . import expand as family
from .expand import expand

FAMILY = family


def test_cases(cases, device):
    device.check(cases)


def test_gradient(device):
    x = torch.randn(3, 5, 1280, generator=torch.Generator().manual_seed(1)).bfloat16()
    leaf = x.to(device.torch_device).requires_grad_()
    streams = expand(leaf, 4)
    assert torch.equal(streams.cpu(), x.unsqueeze(-2).expand(-1, -1, 4, -1))
    weights = torch.tensor([1.0, 2.0, -4.0, 0.5], dtype=torch.bfloat16, device=leaf.device)
    (streams * weights[:, None]).sum().backward()
    assert torch.equal(leaf.grad.cpu(), torch.full_like(x, -0.5))


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
