"""Rotary embedding of tile_kernels on the simulator against complex products in float64."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run, same_bits, slow
from tile_kernels_support import bf16, f32, tile_kernels

tile_kernels()
from tile_kernels.testing.numeric import calc_diff  # noqa: E402
from tile_kernels.transform import apply_rotary  # noqa: E402

CACHE = 4096


def rotated(x, table, places, interleaved: bool, conjugate: bool) -> torch.Tensor:
    """Pairs of columns, neighbours or halves apart, turned by the angles of each token's place."""
    half = x.shape[-1] // 2
    turn = torch.complex(*table.double().split(half, -1))[places][..., None, :]
    pairs = x.double().unflatten(-1, (half, 2)) if interleaved else x.double().unflatten(-1, (2, half)).transpose(-1, -2)
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * (turn.conj() if conjugate else turn))
    return (turned if interleaved else turned.transpose(-1, -2)).flatten(-2)


CASES = {
    "bf16_128": (bf16, 32, 128, None, {}),
    "bf16_128_interleaved": (bf16, 32, 128, None, {"interleaved": True}),
    "bf16_64": (bf16, 32, 64, None, {}),
    "bf16_64_interleaved_odd_heads": (bf16, 33, 64, None, {"interleaved": True}),
    "f32_64_conjugate": (f32, 16, 64, None, {"conjugate": True}),
    "f32_128_interleaved_int32_places": (f32, 16, 128, torch.int32, {"interleaved": True}),
    "bf16_64_int64_places": (bf16, 16, 64, torch.int64, {}),
}
QUICK = ("bf16_64", "f32_128_interleaved_int32_places")


def check(found, expected) -> None:
    assert calc_diff(found, expected.to(found.dtype)) < 1e-8  # as in the package's own tests
    precision = 2.0**-8 * 1.001 if found.dtype == torch.bfloat16 else 1e-6
    torch.testing.assert_close(found.double(), expected, rtol=precision, atol=1e-6)


@pytest.mark.parametrize("case", [case if case in QUICK else slow(case) for case in CASES])
def test_rotation(case):
    tensor, heads, width, places_dtype, options = CASES[case]
    table = f32(CACHE, width, seed=7)
    for batch, tokens in ((1, 1), (2, 67), (1, 300)):
        x = tensor(batch, tokens, heads, width, seed=tokens)
        places, given = torch.arange(tokens) + 5, {"seqlen_offset": 5}
        if places_dtype is not None:
            places = torch.randint(0, CACHE - 5, (batch, tokens), generator=torch.Generator().manual_seed(1))
            given["positions"] = places.to(places_dtype)
            places = places + 5
        found = run(apply_rotary, x, table, **given, **options, written=("query",)).written["query"]
        check(found, rotated(x, table, places, options.get("interleaved", False), options.get("conjugate", False)))


@pytest.mark.slow
def test_tail_of_wider_heads_with_a_key():
    """Only the last columns are turned; query and key have different numbers of heads."""
    query, key, table = bf16(2, 33, 32, 192, seed=1), bf16(2, 33, 4, 192, seed=2), f32(CACHE, 64, seed=3)

    def rotate_tails(query, key, table):
        apply_rotary(query[..., 128:], table, key[..., 128:])

    found = run(rotate_tails, query, key, table, written=("query", "key"))
    for name, x in (("query", query), ("key", key)):
        assert same_bits(found.written[name][..., :128], x[..., :128])
        check(found.written[name][..., 128:], rotated(x[..., 128:], table, torch.arange(33), False, False))
