"""The mHC projection split into the mixes before and after a layer and between streams, and its gradients, on the simulator."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run, same_bits
from tile_kernels_support import CORES, f32, poisoned, tile_kernels
from tilelang import language as T

tile_kernels()
import tile_kernels.mhc.pre_split_mixes_asc as split_kernels  # noqa: E402
from tile_kernels.mhc import mhc_pre_split_mixes_bwd, mhc_pre_split_mixes_fwd  # noqa: E402
from tile_kernels.torch.mhc import mhc_pre_split_mixes_ref  # noqa: E402

STREAMS, MIXES = 4, 24
PARTS = (4, 4, 16)
POST_FACTOR, EPS = 2.0, 1e-2
TOKENS = (0, 1, 63, 333, 8257)  # the SIMD kernels take blocks of 64 tokens; the last are more rounds than versions of a buffer
TOLERANCE = {"rtol": 1e-5, "atol": 2e-5}  # the package's own
OUTPUTS = ("pre_layer_mix", "post_layer_mix", "comb_res_mix")
GRADIENTS = ("input_mixes_grad", "mhc_scale_grad", "mhc_base_grad")


def simt_forward(block: int):
    """The package's SIMT kernel, which its own functions do not call."""

    def forward(input_mixes, scale, base, pre_layer_mix, post_layer_mix, comb_res_mix, post_factor, eps):
        options = {"token_block_size": block, "num_stages": 2, "dtype": T.float32, "num_vec_cores": CORES}
        outputs = (pre_layer_mix, post_layer_mix, comb_res_mix)
        split_kernels.mhc_pre_split_mixes_fwd_asc(input_mixes, scale, base, *outputs, post_factor, eps, **options)

    return forward


def simt_backward(block: int):
    """The package's SIMT kernel, with the sum over the cores that its functions make after the SIMD kernel."""

    def backward(pre_grad, post_grad, comb_grad, mixes, post, scale, base, input_mixes_grad, mhc_scale_grad, mhc_base_grad, post_factor):
        partial = torch.empty(CORES, 3), torch.empty(CORES, MIXES)
        options = {"token_block_size": block, "dtype": T.float32, "num_vec_cores": CORES}
        arguments = (pre_grad, post_grad, comb_grad, mixes, post, scale, base, input_mixes_grad, *partial, post_factor)
        split_kernels.mhc_pre_split_mixes_bwd_asc(*arguments, **options)
        mhc_scale_grad.copy_(partial[0].sum(0))
        mhc_base_grad.copy_(partial[1].sum(0))

    return backward


FORWARD = {"simd": mhc_pre_split_mixes_fwd, "simt_8": simt_forward(8), "simt_64": simt_forward(64)}
BACKWARD = {"simd": mhc_pre_split_mixes_bwd, "simt_1": simt_backward(1), "simt_8": simt_backward(8)}


def inputs(tokens: int):
    return f32(tokens, MIXES, seed=tokens), f32(3, seed=1), f32(MIXES, seed=2)


def split(mixes, scale, base):
    parts = mhc_pre_split_mixes_ref(mixes[None], scale, base, STREAMS, POST_FACTOR, EPS)
    return [part.reshape(-1, width) for part, width in zip(parts, PARTS, strict=True)]


def forward(function, mixes, scale, base):
    outputs = [poisoned(mixes.shape[0], width) for width in PARTS]
    written = run(function, mixes, scale, base, *outputs, POST_FACTOR, EPS, written=OUTPUTS).written
    return [written[name] for name in OUTPUTS]


@pytest.mark.parametrize("form", FORWARD)
def test_forward(form):
    for tokens in TOKENS:
        mixes, scale, base = inputs(tokens)
        expected = split(mixes.double(), scale.double(), base.double())
        for part, reference in zip(forward(FORWARD[form], mixes, scale, base), expected, strict=True):
            torch.testing.assert_close(part.double(), reference, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("form", FORWARD)
def test_forward_of_extreme_values(form):
    inf, nan = float("inf"), float("nan")
    mixes = torch.tensor([-inf, inf, nan, -3e38, 3e38, -1e4, 1e4, -104.0, 104.0, 88.5, -88.5, 0.0, -0.0, 1e-45, 1.0, -1.0])
    mixes = torch.stack([mixes.roll(shift)[torch.arange(MIXES) % 16] for shift in range(16)])
    scale, base = torch.ones(3), torch.zeros(MIXES)
    expected = split(mixes.double(), scale.double(), base.double())
    for part, reference in zip(forward(FORWARD[form], mixes, scale, base), expected, strict=True):
        torch.testing.assert_close(part.double(), reference, rtol=1e-6, atol=1e-6, equal_nan=True)


def backward(function, gradients, mixes, post, scale, base):
    outputs = poisoned(*mixes.shape), poisoned(3), poisoned(MIXES)
    written = run(function, *gradients, mixes, post, scale, base, *outputs, POST_FACTOR, written=GRADIENTS).written
    return [written[name] for name in GRADIENTS]


@pytest.mark.parametrize("form", BACKWARD)
def test_backward(form):
    for tokens in TOKENS:
        tensors = inputs(tokens)
        gradients = [f32(tokens, width, seed=width + part) for part, width in enumerate(PARTS)]
        leaves = [tensor.double().requires_grad_() for tensor in tensors]
        parts = split(*leaves)
        torch.autograd.backward(parts, [gradient.double() for gradient in gradients])
        mixes, scale, base = tensors
        found = backward(BACKWARD[form], gradients, mixes, parts[1].detach().float(), scale, base)
        torch.testing.assert_close(found[0].double(), leaves[0].grad, **TOLERANCE)
        for gradient, leaf in zip(found[1:], leaves[1:], strict=True):  # sums over all tokens
            torch.testing.assert_close(gradient.double(), leaf.grad, rtol=1e-5, atol=2e-6 * max(tokens, 1) ** 0.5)


@pytest.mark.parametrize("form", BACKWARD)
def test_backward_of_saturated_mixes(form):
    mixes = torch.tensor([[-1e4, 1e4, -120.0, 120.0] * 6])
    scale, base = torch.ones(3), torch.zeros(MIXES)
    gradients = [torch.full((1, width), 1e6) for width in PARTS]
    found = backward(BACKWARD[form], gradients, mixes, split(mixes, scale, base)[1], scale, base)
    expected = torch.cat([torch.zeros(8), torch.full((16,), 1e6)])
    assert same_bits(found[0][0].abs(), expected) and same_bits(found[2].abs(), expected)
