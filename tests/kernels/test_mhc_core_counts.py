"""mHC kernels for other numbers of cores than 64: they deal out their work by divisions that are no shifts, in groups of cores."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run, same_bits
from tile_kernels_support import bf16, f32, poisoned, tile_kernels

tile_kernels()
from tile_kernels import config  # noqa: E402
from tile_kernels.mhc import expand_to_mhc_fwd, mhc_sinkhorn_fwd  # noqa: E402
from tile_kernels.torch.mhc import expand_to_mhc_ref, sinkhorn_normalize_ref  # noqa: E402


@pytest.fixture(params=[5, 28])
def cores(request, monkeypatch):
    """A device of that many cube cores, each with two vector cores."""
    monkeypatch.setattr(config, "_num_sms", request.param)
    return 2 * request.param


def test_expand(cores):
    """Each row by itself, in turn."""
    for tokens in (0, 1, cores - 1, cores, 9 * cores + 1):
        x = bf16(tokens, 256, seed=tokens)
        out = poisoned(tokens, 4, 256, dtype=torch.bfloat16)
        assert same_bits(run(expand_to_mhc_fwd, x, out, written=("o",)).written["o"], expand_to_mhc_ref(x, 4))


def test_sinkhorn(cores):
    """Blocks of four tokens, in groups."""
    for tokens in (0, 1, 4 * cores - 1, 4 * cores, 37 * cores + 1):
        x, out = f32(tokens, 4, 4, seed=tokens), poisoned(tokens, 4, 4)
        found = run(mhc_sinkhorn_fwd, x, out, 1, 1e-6, written=("comb_res_mix_out",)).written["comb_res_mix_out"]
        torch.testing.assert_close(found.double(), sinkhorn_normalize_ref(x.double(), 1, 1e-6), rtol=1.3e-6, atol=1e-5)
