"""The mHC kernels of the tile_kernels package, compiled for ``pto`` and run on the simulator, against formulas in torch."""

from __future__ import annotations

import pytest
import torch
from tile_kernels_support import CORES, bf16, compiled, f32, poisoned, tile_kernels

tile_kernels()
from tile_kernels.mhc.expand_asc import expand_to_mhc_bwd_asc, expand_to_mhc_fwd_asc  # noqa: E402
from tile_kernels.mhc.head_compute_mix_asc import mhc_head_compute_mix_bwd_asc, mhc_head_compute_mix_fwd_asc  # noqa: E402
from tile_kernels.mhc.sinkhorn_asc import mhc_sinkhorn_bwd_asc, mhc_sinkhorn_fwd_asc  # noqa: E402

TOKENS = (0, 1, 65, 1000, 1024)  # none, one, not divisible by the cores, several rounds
HIDDEN = (1280, 2560, 7680)
STREAMS = (2, 4)
UB_BYTES = 248 * 1024
FORWARD_VERSIONS, BACKWARD_VERSIONS = 7, 3


def tile(hidden: int, streams: int, versions: int) -> int:
    """Largest part of a row, in whole 128-element registers, of which all versions fit into UB."""
    fits = UB_BYTES // (versions * (streams + 1) * 2)
    return max(part for part in range(128, hidden + 1, 128) if hidden % part == 0 and part <= fits)


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("hidden", HIDDEN)
def test_expand_forward(hidden, streams):
    kernel = compiled(
        expand_to_mhc_fwd_asc,
        bf16(1, hidden),
        bf16(1, streams, hidden),
        h_blk=tile(hidden, streams, FORWARD_VERSIONS),
        num_stages=FORWARD_VERSIONS,
        num_vec_cores=CORES,
    )
    for tokens in TOKENS:
        x, out = bf16(tokens, hidden, seed=tokens), poisoned(tokens, streams, hidden, dtype=torch.bfloat16)
        kernel(x, out)
        assert torch.equal(out, x[:, None, :].expand_as(out))


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("hidden", HIDDEN)
def test_expand_backward(hidden, streams):
    kernel = compiled(
        expand_to_mhc_bwd_asc,
        bf16(1, streams, hidden),
        bf16(1, hidden),
        h_blk=tile(hidden, streams, BACKWARD_VERSIONS),
        num_stages=BACKWARD_VERSIONS,
        num_vec_cores=CORES,
    )
    for tokens in TOKENS:
        grad, x_grad = bf16(tokens, streams, hidden, seed=tokens), poisoned(tokens, hidden, dtype=torch.bfloat16)
        kernel(grad, x_grad)
        total = grad[:, 0].float()
        for stream in range(1, streams):
            total = total + grad[:, stream].float()  # float32, stream by stream, rounded once at the end: the kernel's order
        assert torch.equal(x_grad, total.to(torch.bfloat16))


def head_mix(mix, scale, base):
    return torch.sigmoid(mix.double() * scale.double() + base.double())


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("block", [4, 64])
def test_head_compute_mix_forward(block, streams):
    scale, base = f32(1, seed=1), f32(streams, seed=2)
    eps = 1e-6
    example = (f32(1, streams), scale, base, f32(1, streams))
    kernel = compiled(mhc_head_compute_mix_fwd_asc, *example, mhc_pre_eps=eps, token_block_size=block, num_vec_cores=CORES)
    for tokens in (0, 1, 63, 640, 8193):
        mix, out = f32(tokens, streams, seed=tokens) * 4, poisoned(tokens, streams)
        kernel(mix, scale, base, out)
        torch.testing.assert_close(out.double(), head_mix(mix, scale, base) + eps, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("block", [4, 64])
def test_head_compute_mix_backward(block):
    streams = 4
    scale, base = f32(1, seed=1), f32(streams, seed=2)
    example = (f32(1, streams), f32(1, streams), scale, base, f32(1, streams), f32(CORES, 1), f32(CORES, streams))
    kernel = compiled(mhc_head_compute_mix_bwd_asc, *example, token_block_size=block, num_vec_cores=CORES)
    for tokens in (0, 1, 63, 640, 8193):
        grad, mix = f32(tokens, streams, seed=tokens), f32(tokens, streams, seed=tokens + 1)
        mix_grad, scale_part, base_part = poisoned(tokens, streams), poisoned(CORES, 1), poisoned(CORES, streams)
        kernel(grad, mix, scale, base, mix_grad, scale_part, base_part)
        sigmoid = head_mix(mix, scale, base)
        inner = sigmoid * (1 - sigmoid) * grad.double()
        torch.testing.assert_close(mix_grad.double(), inner * scale.double(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(scale_part.double().sum(), (inner * mix.double()).sum(), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(base_part.double().sum(0), inner.sum(0), rtol=1e-4, atol=1e-4)


def sinkhorn(x: torch.Tensor, repeat: int, eps: float) -> torch.Tensor:
    """Rows to a softmax, then columns and rows in turn to sum one."""
    x = torch.softmax(x, -1) + eps
    x = x / (x.sum(-2, keepdim=True) + eps)
    for _ in range(repeat - 1):
        x = x / (x.sum(-1, keepdim=True) + eps)
        x = x / (x.sum(-2, keepdim=True) + eps)
    return x


def test_sinkhorn_forward():
    repeat, eps = 20, 1e-6
    kernel = compiled(mhc_sinkhorn_fwd_asc, f32(1, 4, 4), f32(1, 4, 4), repeat, eps, token_block_size=4, num_vec_cores=CORES)
    for tokens in (0, 1, 3, 257, 1024):
        x, out = f32(tokens, 4, 4, seed=tokens) * 3, poisoned(tokens, 4, 4)
        kernel(x, out)
        torch.testing.assert_close(out.double(), sinkhorn(x.double(), repeat, eps), rtol=2e-5, atol=1e-6)


def test_sinkhorn_backward():
    repeat, eps = 20, 1e-6
    example = (f32(1, 4, 4), f32(1, 4, 4), f32(1, 4, 4))
    kernel = compiled(mhc_sinkhorn_bwd_asc, *example, repeat, eps, token_block_size=8, num_vec_cores=CORES)
    for tokens in (0, 1, 7, 600):
        grad, x, x_grad = f32(tokens, 4, 4, seed=tokens), f32(tokens, 4, 4, seed=tokens + 1), poisoned(tokens, 4, 4)
        kernel(grad, x, x_grad)
        leaf = x.double().requires_grad_()
        sinkhorn(leaf, repeat, eps).backward(grad.double())
        torch.testing.assert_close(x_grad.double(), leaf.grad, rtol=1e-3, atol=1e-5)
