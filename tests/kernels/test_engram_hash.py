"""The n-gram hash of tile_kernels on the simulator against arithmetic on Python integers."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run
from tile_kernels_support import tile_kernels

tile_kernels()
from tile_kernels.engram import engram_hash  # noqa: E402
from tile_kernels.torch.engram import engram_hash_ref, make_offsets  # noqa: E402

INT32, INT64 = torch.iinfo(torch.int32), torch.iinfo(torch.int64)
TILE, CORES = 128, 64  # tokens of one round of a core; cores


def integers(*shape: int, seed: int, low: int, high: int, dtype=torch.int32) -> torch.Tensor:
    """From ``low`` to ``high``, both included."""
    span = torch.randint(INT64.min, INT64.max, shape, generator=torch.Generator().manual_seed(seed))
    return (span % (high - low + 1) + low).to(dtype) if high - low < INT64.max else span.to(dtype)


def tables(ngram: int, layers: int, per_ngram: int):
    multipliers = integers(layers, ngram, seed=1, low=INT64.min, high=INT64.max, dtype=torch.int64)
    vocabularies = integers(layers, ngram - 1, per_ngram, seed=2, low=1, high=1 << 20)
    return multipliers, vocabularies, make_offsets(vocabularies)


def wrapped(value: int, bits: int) -> int:
    """Two's complement."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def hashed(ids, multipliers, vocabularies, offsets) -> torch.Tensor:
    """By Python integers, token by token."""
    layers, ngram = multipliers.shape
    out = []
    for layer in range(layers):
        for token in ids.tolist():
            row, state = [], 0
            for place in range(ngram):
                state ^= wrapped(token[place] * int(multipliers[layer, place]), 64)
                row += [state % size for size in vocabularies[layer, place - 1].tolist()] if place else []
            out.append([wrapped(column + shift, 32) for column, shift in zip(row, offsets[layer].tolist(), strict=True)])
    return torch.tensor(out, dtype=torch.int32).reshape(layers, len(ids), offsets.shape[1])


@pytest.mark.parametrize("masked", [False, True], ids=["plain", "mask"])
def test_hash(masked):
    ngram, parameters = 3, tables(3, 2, 8)
    for tokens in (0, 1, 127, 129, TILE * CORES + 77):
        ids = integers(tokens, ngram, seed=tokens, low=INT32.min, high=INT32.max)
        some = torch.rand(tokens, generator=torch.Generator().manual_seed(tokens)) < 0.4
        for mask in [some, torch.ones_like(some), torch.zeros_like(some)] if masked else [None]:
            found = run(engram_hash, ids, *parameters, mask).result
            assert found.dtype == torch.int32
            assert torch.equal(found, engram_hash_ref(ids, *parameters, mask))


def test_columns_that_fill_no_block_of_32_bytes():
    """Three layers, 4-grams, five tables: 15 columns."""
    parameters = tables(4, 3, 5)
    for tokens in (1, 131):
        ids = integers(tokens, 4, seed=tokens, low=0, high=1 << 17)
        assert torch.equal(run(engram_hash, ids, *parameters).result, engram_hash_ref(ids, *parameters))


def test_extreme_numbers():
    """Products and sums wrap; the rest has the sign of the divisor."""
    extremes = torch.tensor([INT32.min, INT32.min + 1, -3, -1, 0, 1, 7, INT32.max], dtype=torch.int32)
    ids = torch.cartesian_prod(extremes, extremes, extremes)
    multipliers = torch.tensor([[INT64.min, INT64.max, -1], [1 << 32, -(1 << 31), 3]])
    vocabularies = torch.tensor([1, 2, 3, 1 << 16, INT32.max, INT32.max - 1, 10007, 1 << 30], dtype=torch.int32).expand(2, 2, 8).clone()
    vocabularies[1, 1] = -vocabularies[1, 1]
    vocabularies[1, 1, 0] = INT32.min
    offsets = integers(2, 16, seed=3, low=INT32.max - 10, high=INT32.max)
    found = run(engram_hash, ids, multipliers, vocabularies, offsets).result
    assert torch.equal(found, hashed(ids, multipliers, vocabularies, offsets))
