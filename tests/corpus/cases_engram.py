"""Cases of the engram family."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from corpus.case import TOKENS, Case, empty
from tile_kernels_support import CORES, tile_kernels

tile_kernels()
from tile_kernels import engram  # noqa: E402

bf16, f32, i32, i64, flag = map(empty, (torch.bfloat16, torch.float32, torch.int32, torch.int64, torch.bool))
STREAMS, HIDDEN, COLUMNS = 4, 2560, 512
EPS = 1e-6


def cases() -> Iterator[Case]:
    yield Case("engram.fused_weight", lambda: engram.fused_weight(bf16(STREAMS, HIDDEN), bf16(STREAMS, HIDDEN)))
    for label, inference, masked in (
        ("save", {}, False),
        ("save.mask", {}, True),
        ("infer", {"save_for_backward": False}, False),
        ("infer.inplace.mask", {"save_for_backward": False, "inplace": True}, True),
    ):
        yield _gate_forward(label, inference, masked)
    for label, masked in (("plain", False), ("mask", True)):
        yield _gate_backward(label, masked)
        yield _hash(label, masked)
    yield Case("engram.grad_w_reduce", _weight_gradients)
    yield _momentum("bf16.bf16.nesterov", torch.bfloat16, torch.bfloat16, nesterov=True)
    yield _momentum("f32.f32.nesterov", torch.float32, torch.float32, nesterov=True)
    yield _momentum("bf16.f32", torch.bfloat16, torch.float32, nesterov=False)
    yield Case("engram.sinkhorn_step", lambda: engram.engram_sinkhorn_step(*_table(), EPS))
    yield Case("engram.sinkhorn_step_reduce", lambda: engram.engram_sinkhorn_step_reduce(f32(CORES, COLUMNS), f32(COLUMNS)))
    yield Case("engram.sinkhorn_finalize", lambda: engram.engram_sinkhorn_finalize(*_table(), EPS, 0.2))


def _mask(masked: bool) -> torch.Tensor | None:
    return flag(TOKENS) if masked else None


def _gate_forward(label: str, inference: dict[str, bool], masked: bool) -> Case:
    def call() -> None:
        streams, keys_values = bf16(TOKENS, STREAMS, HIDDEN), bf16(TOKENS, STREAMS + 1, HIDDEN)
        engram.engram_gate_fwd(streams, keys_values, f32(STREAMS, HIDDEN), EPS, EPS, image_token_mask=_mask(masked), **inference)

    return Case(f"engram.gate_fwd.{label}", call)


def _gate_backward(label: str, masked: bool) -> Case:
    def call() -> None:
        streams, keys_values = bf16(TOKENS, STREAMS, HIDDEN), bf16(TOKENS, STREAMS + 1, HIDDEN)
        saved = [f32(TOKENS, STREAMS)] * 4
        engram.engram_gate_bwd(streams, streams, keys_values, f32(STREAMS, HIDDEN), *saved, EPS, image_token_mask=_mask(masked))

    return Case(f"engram.gate_bwd.{label}", call)


def _hash(label: str, masked: bool) -> Case:
    def call() -> None:
        engram.engram_hash(i32(TOKENS, 3), i64(2, 3), i32(2, 2, 8), i32(2, 16), image_token_mask=_mask(masked))

    return Case(f"engram.hash.{label}", call)


def _weight_gradients() -> None:
    weight, gradient = bf16(STREAMS, HIDDEN), f32(STREAMS, HIDDEN)
    engram.grad_w_reduce(f32(16, STREAMS, HIDDEN), weight, weight, gradient, gradient)


def _momentum(label: str, gradient: torch.dtype, momentum: torch.dtype, *, nesterov: bool) -> Case:
    def call() -> None:
        count = TOKENS * 256
        engram.engram_sinkhorn_momentum_update(empty(gradient)(count), empty(momentum)(count), 0.95, nesterov)

    return Case(f"engram.sinkhorn_momentum.{label}", call)


def _table() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return f32(TOKENS, COLUMNS), f32(TOKENS), f32(COLUMNS)
