"""From partial products to the weights of the streams and the input of a layer, in one kernel."""

from __future__ import annotations

import pytest
import torch

from . import pre_big_fuse as FAMILY
from .pre_big_fuse import Constants, pre_big_fuse


def test_cases(cases, device):
    device.check(cases)


@pytest.mark.parametrize(("mhc", "splits", "constants"), [(2, 4, Constants(1e-3, 1e-2, 1.5, 1e-2, repeat=1)), (8, 1, Constants(repeat=3))])
def test_other_sizes_and_constants(mhc, splits, constants, device):
    device.check([FAMILY._case({"mhc": mhc, "hidden": 512, "splits": splits}, 35, constants)])


@pytest.mark.quick
@pytest.mark.parametrize("tokens", [0, 1, 15, 16, 17])
def test_blocks_of_tokens(tokens, device):
    device.check([FAMILY._case({"mhc": 4, "hidden": 1280, "splits": 1}, tokens)])


@pytest.mark.quick
def test_function(device):
    case = FAMILY._case({"mhc": 4, "hidden": 1280, "splits": 1}, 6)
    given = case.inputs(0)
    parts, square_parts, scale, base, residual = (tensor.to(device.torch_device) for tensor in given[:5])
    found = pre_big_fuse(parts.view(1, 2, 3, 24), square_parts.view(1, 2, 3), scale, base, residual.view(2, 3, 4, 1280))
    assert [tuple(tensor.shape) for tensor in found] == [(2, 3, 4), (2, 3, 4, 4), (2, 3, 1280)]
    for tensor, expected in zip(found, case.reference(given), strict=True):
        torch.testing.assert_close(tensor.cpu().double().reshape(expected.shape), expected, rtol=2**-8, atol=1e-4)


PARTS, SQUARES, SCALE, BASE, RESIDUAL = (
    torch.zeros(1, 5, 24),
    torch.zeros(1, 5),
    torch.zeros(3),
    torch.zeros(24),
    torch.zeros(5, 4, 256).bfloat16(),
)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((PARTS, SQUARES, SCALE, BASE, RESIDUAL.float()), {}, "residual has dtype torch.float32, it has to be torch.bfloat16"),
        ((PARTS[..., :20], SQUARES, SCALE, BASE, RESIDUAL), {}, r"parts has shape \(1, 5, 20\), it has to be \(any, 5, 24\)"),
        ((PARTS, SQUARES.repeat(2, 1), SCALE, BASE, RESIDUAL), {}, r"square_parts has shape \(2, 5\), it has to be \(1, 5\)"),
        ((PARTS, SQUARES, BASE, BASE, RESIDUAL), {}, r"scale has shape \(24,\), it has to be \(3\)"),
        ((PARTS, SQUARES, SCALE, SCALE, RESIDUAL), {}, r"base has shape \(3,\), it has to be \(24\)"),
        ((PARTS, SQUARES, SCALE, BASE, RESIDUAL[..., :100]), {}, "hidden is 100, it has to be a multiple of 256"),
        ((PARTS, SQUARES, SCALE, BASE, RESIDUAL), {"constants": Constants(repeat=0)}, "repeat is 0, it has to be at least 1"),
    ],
)
def test_what_it_refuses(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        pre_big_fuse(*arguments, **options)
