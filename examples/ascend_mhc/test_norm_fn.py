"""Norm and projection of the streams: the kernels one by one, and together with their gradients."""

from __future__ import annotations

import pytest
import torch

from . import fn_normw_merge, gemm_with_sqrsum, reduce_partials_and_rmsnorm
from . import norm_fn as FAMILY
from .norm_fn import norm_fn
from .sizes import Sizes
from .suite import by_parameters


def test_cases(cases, device):
    device.check(cases)


def test_number_of_cases():
    assert len(by_parameters(FAMILY.cases(Sizes(full=True)))) == 42


@pytest.mark.quick
@pytest.mark.parametrize("tokens", [0, 1, 63, 64, 65, 200])
def test_tiles_of_the_gemm(tokens, device):
    """Part of a tile, tiles of which one vector core has none, several tiles."""
    device.check([gemm_with_sqrsum._case({"mhc": 4, "hidden": 1280, "splits": 1}, tokens)])


@pytest.mark.parametrize("mhc", [1, 8])
def test_other_numbers_of_mixes(mhc, device):
    device.check([gemm_with_sqrsum._case({"mhc": mhc, "hidden": 512, "splits": 1}, 70)])
    for case in (reduce_partials_and_rmsnorm._forward_case, reduce_partials_and_rmsnorm._backward_case):
        device.check([case({"mhc": mhc, "splits": 4}, 70)])


@pytest.mark.parametrize("hidden", [1, 100, 257])
def test_merge_of_any_width(hidden, device):
    device.check(case({"mhc": 4, "hidden": hidden}) for case in (fn_normw_merge._forward_case, fn_normw_merge._backward_case))


@pytest.mark.parametrize(("weighted", "splits"), [(False, 1), (True, 4)])
def test_gradients(weighted, splits, device):
    random = torch.Generator().manual_seed(1)
    residual = torch.randn(2, 5, 4, 1280, generator=random).bfloat16()
    fn, weight = torch.randn(24, 5120, generator=random) / 64, torch.randn(5120, generator=random)
    given = (residual, fn, weight) if weighted else (residual, fn)
    leaves = [tensor.clone().to(device.torch_device).requires_grad_() for tensor in given]
    exact = [tensor.double().requires_grad_() for tensor in given]
    out = norm_fn(*leaves, eps=1e-3, splits=splits)
    x = exact[0].flatten(-2)
    normalised = x * (x.square().mean(-1, keepdim=True) + 1e-3).rsqrt() * (exact[2] if weighted else 1)
    expected = normalised @ exact[1].T
    cotangent = torch.randn(2, 5, 24, generator=random)
    (out * cotangent.to(out.device)).sum().backward()
    (expected * cotangent.double()).sum().backward()
    torch.testing.assert_close(out.cpu().double(), expected.detach(), rtol=1e-5, atol=1e-5)
    for leaf, reference in zip(leaves, exact, strict=True):
        assert leaf.grad.dtype == leaf.dtype
        relative = 2**-8 if leaf.dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(leaf.grad.cpu().double(), reference.grad, rtol=relative, atol=1e-5)


RESIDUAL, FN = torch.zeros(5, 4, 256).bfloat16(), torch.zeros(24, 1024)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((RESIDUAL.float(), FN), {}, "residual has dtype torch.float32, it has to be torch.bfloat16"),
        ((RESIDUAL, FN[:, :1000]), {}, r"fn has shape \(24, 1000\), it has to be \(any, 1024\)"),
        ((RESIDUAL, FN, torch.zeros(4, 256)), {}, r"weight has shape \(4, 256\), it has to be \(1024\)"),
        ((RESIDUAL, torch.zeros(129, 1024)), {}, "fn has 129 rows, it has to have from 1 to 128"),
        ((RESIDUAL, FN), {"splits": 3}, r"mhc \* hidden is 1024, it has to be a multiple of 768"),
        ((RESIDUAL, FN), {"splits": 0}, "splits is 0, it has to be at least 1"),
        ((RESIDUAL[..., :100], FN[:, :400]), {}, r"mhc \* hidden is 400, it has to be a multiple of 256"),
    ],
)
def test_what_it_refuses(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        norm_fn(*arguments, **options)
