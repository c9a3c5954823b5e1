"""Cases of the transform family."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from corpus.case import TOKENS, Case, empty
from tile_kernels_support import tile_kernels

tile_kernels()
from tile_kernels import transform  # noqa: E402

bf16, f32, i32, i64 = map(empty, (torch.bfloat16, torch.float32, torch.int32, torch.int64))
POSITIONS = 4096


def cases() -> Iterator[Case]:
    yield _rope("bf16.d128", torch.bfloat16, 32, 128)
    yield _rope("bf16.d128.interleaved", torch.bfloat16, 32, 128, interleaved=True)
    yield _rope("bf16.d64", torch.bfloat16, 32, 64)
    yield _rope("bf16.d64.interleaved.odd", torch.bfloat16, 33, 64, interleaved=True)
    yield _rope("f32.d64.conjugate", torch.float32, 16, 64, conjugate=True)
    yield _rope("f32.d128.interleaved.pos32", torch.float32, 16, 128, interleaved=True, positions=i32(1, TOKENS))
    yield _rope("bf16.d64.pos64", torch.bfloat16, 16, 64, positions=i64(1, TOKENS))
    yield Case("transform.rope.bf16.d64.tail", lambda: transform.apply_rotary(bf16(2, TOKENS, 32, 192)[..., 128:], f32(POSITIONS, 64)))


def _rope(label: str, dtype: torch.dtype, heads: int, width: int, **options: object) -> Case:
    def call() -> None:
        transform.apply_rotary(empty(dtype)(1, TOKENS, heads, width), f32(POSITIONS, width), **options)

    return Case(f"transform.rope.{label}", call)
