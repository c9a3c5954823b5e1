"""The casts of tile_kernels to float8 and float4 with block scales, on the simulator: every bit of values and scales."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run, same_bits, slow
from tile_kernels_support import CORES, tile_kernels

tile_kernels()
from tile_kernels import quant  # noqa: E402
from tile_kernels.torch import cast  # noqa: E402

BF16, F32 = torch.bfloat16, torch.float32
HIDDEN = 1024
# Layout of the scales to options: float32, powers of two, their exponents in bytes.
LAYOUTS = {
    "f32": {},
    "round": {"round_sf": True},
    "packed": {"round_sf": True, "use_packed_ue8m0": True},
}


def values(rows: int, columns: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """Numbers of all magnitudes, block by block; zeros, subnormals and the largest among them."""
    generator = torch.Generator().manual_seed(seed + rows)
    numbers = torch.randn(rows, columns, generator=generator)
    exponents = torch.randint(-100, 100, (rows, columns // 32), generator=generator).repeat_interleave(32, 1)
    numbers = (numbers * torch.exp2(torch.where(torch.arange(rows)[:, None] % 2 == 0, exponents, 0))).to(dtype)
    if rows:
        numbers[0, :32] = 0
        numbers[0, 32:64] = 1e-40
        numbers[0, 64:96] = -torch.finfo(dtype).max
        numbers[0, 96:128:2] = -0.0
        numbers[-1, -32:] = torch.arange(-16, 16).to(dtype)  # ties of both formats
    return numbers


def same(found, expected) -> None:
    """Values and scales, the scales in whatever memory order."""
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        assert same_bits(one, other), f"{(bits(one) != bits(other)).sum()} of {one.nbytes} bytes differ"


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().flatten().view(torch.uint8)


TOKEN_CASES = [(dtype, fmt, layout) for dtype, fmt in ((BF16, "e4m3"), (F32, "e4m3"), (BF16, "e2m1")) for layout in LAYOUTS]


@pytest.mark.parametrize(("dtype", "fmt", "layout"), [case if case == (BF16, "e4m3", "packed") else slow(*case) for case in TOKEN_CASES])
def test_per_token(dtype, fmt, layout):
    for tokens in (0, 1, 67, 3 * CORES + 5):
        x = values(tokens, HIDDEN, dtype)
        same(run(quant.per_token_cast, x, fmt, 32, **LAYOUTS[layout]).result, cast(x, fmt, (1, 32), **LAYOUTS[layout]))


@pytest.mark.parametrize("layout", ["round", slow("f32"), slow("packed")])
def test_per_channel(layout):
    for tokens in (0, 128, 384):
        x = values(tokens, HIDDEN, BF16)
        same(run(quant.per_channel_cast, x, "e4m3", 32, **LAYOUTS[layout]).result, cast(x, "e4m3", (32, 1), **LAYOUTS[layout]))


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["round", "packed"])
def test_per_channel_from_scaled_float8(layout):
    x = cast(values(256, HIDDEN, F32), "e4m3", (1, 32))
    found = run(quant.per_channel_cast, x, "e4m3", 32, num_per_channels=32, **LAYOUTS[layout]).result
    same(found, cast(x, "e4m3", (32, 1), x_block_size=(1, 32), **LAYOUTS[layout]))


@pytest.mark.parametrize(
    ("dtype", "fmt", "layout"),
    [
        (BF16, "e4m3", "packed"),
        *(slow(BF16, "e4m3", layout) for layout in LAYOUTS if layout != "packed"),
        slow(F32, "e4m3", "round"),
        slow(BF16, "e2m1", "packed"),
        slow(F32, "e2m1", "f32"),
    ],
)
def test_per_block(dtype, fmt, layout):
    for tokens in (0, 128, 384):
        x = values(tokens, HIDDEN, dtype)
        same(run(quant.per_block_cast, x, fmt, (32, 32), **LAYOUTS[layout]).result, cast(x, fmt, (32, 32), **LAYOUTS[layout]))
