"""Cases of the moe family."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from corpus.case import TOKENS, Case, empty
from tile_kernels_support import tile_kernels

tile_kernels()
from tile_kernels import moe  # noqa: E402

f32, i32, i64, flag = map(empty, (torch.float32, torch.int32, torch.int64, torch.bool))
EXPERTS, CHOSEN, SCALE = 256, 8, 2.5


def cases() -> Iterator[Case]:
    for label, shared, names in (
        ("plain", 0, ""),
        ("bias", 0, "bias"),
        ("bias.mask.scores", 0, "bias mask scores"),
        ("map", 0, "bias map"),
        ("shared.map", 1, "bias map"),
        ("image", 0, "bias image_bias image_token_mask"),
        ("fix_routing", 0, "bias fix_routing_mask map"),
        ("all", 1, "bias image_bias image_token_mask mask fix_routing_mask force_random scores map"),
    ):
        yield _gate(label, EXPERTS, CHOSEN, shared, names.split())
    for experts, chosen in ((72, 6), (384, 8)):
        yield _gate(f"e{experts}k{chosen}", experts, chosen, 0, ["bias"])
    yield _gate_backward("plain", with_aux=False)
    yield _gate_backward("aux", with_aux=True)
    for chosen in (8, 6):
        yield _normalized_weights(chosen)
    for experts, chosen in ((256, 8), (72, 6), (384, 9)):
        yield _top_experts(experts, chosen)


def _gate(label: str, experts: int, chosen: int, shared: int, names: list[str]) -> Case:
    """``names`` are the optional arguments given; ``map`` stands for those of the mapping of logical to physical experts."""

    def call() -> None:
        available = {
            "bias": f32(experts),
            "image_bias": f32(experts),
            "scores": f32(TOKENS, experts),
            "to_physical_map": i32(experts + shared, 3),
            "logical_count": i32(experts + shared),
            "unmapped_topk_idx": i64(TOKENS, chosen),
            **{name: flag(TOKENS) for name in ("mask", "image_token_mask", "fix_routing_mask", "force_random")},
        }
        given = [name for name in names if name != "map"]
        if "map" in names:
            given += ["to_physical_map", "logical_count", "unmapped_topk_idx"]
        options = {name: available[name] for name in given}
        moe.moe_topk_gate_forward(f32(TOKENS, experts), chosen, shared > 0, shared, SCALE, 0, **options)

    return Case(f"moe.topk_gate_forward.{label}", call)


def _gate_backward(label: str, *, with_aux: bool) -> Case:
    def call() -> None:
        weights = f32(TOKENS, CHOSEN)
        aux = {"mask": flag(TOKENS), "grad_scores_sum": f32(4, EXPERTS)} if with_aux else {}
        moe.moe_topk_gate_backward(f32(TOKENS, EXPERTS), i64(TOKENS, CHOSEN), weights, weights, SCALE, **aux)

    return Case(f"moe.topk_gate_backward.{label}", call)


def _normalized_weights(chosen: int) -> Case:
    return Case(f"moe.normalize_weight.k{chosen}", lambda: moe.normalize_weight(f32(TOKENS, chosen)))


def _top_experts(experts: int, chosen: int) -> Case:
    return Case(f"moe.topk_gate.e{experts}k{chosen}", lambda: moe.topk_gate(f32(TOKENS, experts), chosen))
