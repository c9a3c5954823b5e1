"""Streams of several layers computed again."""

from __future__ import annotations

import pytest
import torch

from . import multilayer_recompute as FAMILY
from .multilayer_recompute import multilayer_recompute


def test_cases(cases, device):
    device.check(cases)


@pytest.mark.parametrize(("mhc", "layers", "posts"), [(2, 1, 1), (8, 2, 1)])
def test_other_sizes(mhc, layers, posts, device):
    device.check([FAMILY._case({"mhc": mhc, "hidden": 512, "layers": layers, "posts": posts}, 5)])


@pytest.mark.quick
def test_function(device):
    case = FAMILY._case({"mhc": 4, "hidden": 1280, "layers": 3, "posts": 2}, 6)
    given = case.inputs(0)
    shaped = [given[0].view(2, 3, *given[0].shape[1:]), *(tensor.view(len(tensor), 2, 3, *tensor.shape[2:]) for tensor in given[1:5])]
    found = multilayer_recompute(*(tensor.to(device.torch_device) for tensor in shaped))
    assert [tuple(tensor.shape) for tensor in found] == [(3, 2, 3, 1280), (2, 2, 3, 4, 1280)]
    for tensor, expected in zip(found, case.reference(given), strict=True):
        assert torch.equal(tensor.cpu().flatten(1, 2), expected)


def arguments(**changes: torch.Tensor) -> list[torch.Tensor]:
    """Those of three layers, with some changed."""
    tensors = {
        "residual": torch.zeros(5, 4, 256).bfloat16(),
        "pre_mixes": torch.zeros(3, 5, 4),
        "layer_outputs": torch.zeros(2, 5, 256).bfloat16(),
        "post_mixes": torch.zeros(2, 5, 4),
        "comb_mixes": torch.zeros(2, 5, 4, 4),
    }
    return list({**tensors, **changes}.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"residual": torch.zeros(5, 4, 256)}, "residual has dtype torch.float32, it has to be torch.bfloat16"),
        ({"pre_mixes": torch.zeros(3, 4, 4)}, r"pre_mixes has shape \(3, 4, 4\), it has to be \(any, 5, 4\)"),
        ({"pre_mixes": torch.zeros(4, 5, 4)}, "2 outputs of 4 layers; it has to be all of them or all but one"),
        ({"pre_mixes": torch.zeros(1, 5, 4), "layer_outputs": torch.zeros(0, 5, 256).bfloat16()}, "0 outputs of 1 layers"),
        ({"post_mixes": torch.zeros(3, 5, 4)}, r"post_mixes has shape \(3, 5, 4\), it has to be \(2, 5, 4\)"),
        ({"comb_mixes": torch.zeros(2, 5, 16)}, r"comb_mixes has shape \(2, 5, 16\), it has to be \(2, 5, 4, 4\)"),
    ],
)
def test_what_it_refuses(changes, message):
    with pytest.raises(ValueError, match=message):
        multilayer_recompute(*arguments(**changes))
