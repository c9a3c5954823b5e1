"""Routing kernels of tile_kernels on the simulator: the experts chosen exactly, weights and gradients against float64."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run, same_bits, slow
from tile_kernels_support import CORES, f32, tile_kernels

import tilelang_pto

tile_kernels()
from tile_kernels import moe  # noqa: E402
from tile_kernels import torch as reference  # noqa: E402

FACTOR = 2.5


def flags(count: int, seed: int) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed)) < 0.4


def scores_with_ties(tokens: int, experts: int, seed: int = 0) -> torch.Tensor:
    """Quarters, so that many are equal; some rows all equal, some very large."""
    scores = (f32(tokens, experts, seed=seed + tokens) * 4).round() / 4
    scores[1::7] = -1.5
    scores[2::7, ::5] = 3e38
    scores[3::7, ::3] = -3e38
    return scores


@pytest.mark.parametrize(("experts", "topk"), [(72, 6), slow(256, 8), slow(384, 9)])
def test_topk(experts, topk):
    for tokens in (0, 1, 2 * CORES + 3):
        scores = scores_with_ties(tokens, experts)
        assert torch.equal(run(moe.topk_gate, scores, topk).result, scores.sort(dim=1, descending=True, stable=True).indices[:, :topk])


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_topk_takes_finite_scores_alone(value):
    scores = scores_with_ties(70, 72)
    scores[69, 71] = value
    with pytest.raises(tilelang_pto.SimulationError, match="contains nan or inf"):
        run(moe.topk_gate, scores, 6)


@pytest.mark.parametrize("topk", [6, slow(8)])
def test_normalized_weights(topk):
    for tokens in (0, 1, 64 * CORES + 7):
        weights = torch.rand(tokens, topk, generator=torch.Generator().manual_seed(tokens)) * torch.exp2(f32(tokens, 1, seed=1) * 10)
        total, normalized = run(moe.normalize_weight, weights).result
        torch.testing.assert_close(total.double(), weights.double().sum(1), rtol=1e-6, atol=0)
        torch.testing.assert_close(normalized.double(), weights.double() / weights.double().sum(1, keepdim=True), rtol=1e-6, atol=0)


def physical(experts: int, copies: int = 3):
    count = torch.randint(1, copies + 1, (experts,), generator=torch.Generator().manual_seed(1), dtype=torch.int32)
    table = torch.arange(experts * copies, dtype=torch.int32).reshape(experts, copies)
    return {"to_physical_map": table.flip(0).contiguous(), "logical_count": count}


def forward_options(form: str, tokens: int, experts: int, topk: int, shared: int) -> dict:
    options = {}
    if form != "plain":
        options["bias"] = f32(experts, seed=2) * 0.1
    if form in ("image", "all"):
        options |= {"image_bias": f32(experts, seed=3) * 0.1, "image_token_mask": flags(tokens, 4)}
    if form in ("map", "shared_map", "fix_routing", "all"):
        generator = torch.Generator().manual_seed(5)
        chosen = torch.stack([torch.randperm(experts, generator=generator)[:topk] for _ in range(tokens)])
        options |= {**physical(experts + shared), "unmapped_topk_idx": chosen}
    if form in ("fix_routing", "all"):
        options["fix_routing_mask"] = flags(tokens, 6)
    if form in ("mask_scores", "all"):
        options |= {"mask": flags(tokens, 7), "scores": torch.full((tokens, experts), torch.nan)}
    return options


@pytest.mark.parametrize(
    ("form", "experts", "topk"),
    [
        ("all", 256, 8),
        *(slow(form, 256, 8) for form in ("plain", "bias", "mask_scores", "map", "shared_map", "image", "fix_routing")),
        slow("bias", 72, 6),
        slow("bias", 384, 8),
    ],
)
def test_forward(form, experts, topk):
    shared = 1 if form in ("shared_map", "all") else 0
    for tokens in (1, 2 * CORES + 3):
        logits = f32(tokens, experts, seed=tokens) * 3
        logits[:, 5] = logits[:, 200 % experts]  # equal: the lower index comes first
        logits[0, :4] = torch.tensor([80.0, -80.0, 0.0, 20.5])
        options = forward_options(form, tokens, experts, topk, shared)
        outputs = [name for name in ("unmapped_topk_idx", "scores") if name in options]
        common = (logits, topk, shared > 0, shared, FACTOR, 1)
        force = {"force_random": torch.zeros(tokens, dtype=torch.bool)} if form == "all" else {}
        mask = options.get("mask", torch.ones(tokens, dtype=torch.bool))
        found = run(moe.moe_topk_gate_forward, *common, **options, **force, written=tuple(outputs), defined=lambda result: result)
        expected_options = {name: value.clone() for name, value in options.items() if name != "scores"}
        experts_chosen, weights = reference.moe_topk_gate_forward(*common, "sqrtsoftplus", **expected_options)
        assert torch.equal(found.result[0], experts_chosen)
        torch.testing.assert_close(found.result[1], weights, rtol=2e-6, atol=1e-7)
        if "unmapped_topk_idx" in options:
            assert torch.equal(found.written["unmapped_topk_idx"], expected_options["unmapped_topk_idx"])
        if "scores" in options:
            exact = torch.nn.functional.softplus(logits.double(), threshold=1000).sqrt()
            torch.testing.assert_close(found.written["scores"][mask].double(), exact[mask], rtol=2e-7, atol=0)


@pytest.mark.parametrize("auxiliary", [slow(False, id="plain"), pytest.param(True, id="auxiliary")])
def test_backward(auxiliary):
    experts, topk = 256, 8
    for tokens in (0, 4, 2 * CORES + 4):
        scores = torch.nn.functional.softplus(f32(tokens, experts, seed=tokens)).sqrt()
        scores[1::5, :3] = 0
        chosen = scores.topk(topk, 1).indices if tokens else torch.empty(0, topk, dtype=torch.int64)
        chosen[2::5, 3:] = -1
        picked = scores.gather(1, chosen.clamp(min=0)) * (chosen >= 0)
        weights = FACTOR * picked / (picked.sum(1, keepdim=True) + 1e-20)
        options = {"mask": flags(tokens, 1), "grad_scores_sum": f32(4, experts, seed=2)} if auxiliary else {}
        arguments = (scores, chosen, weights, f32(tokens, topk, seed=3), FACTOR)
        found = run(moe.moe_topk_gate_backward, *arguments, **options).result
        expected = reference.moe_topk_gate_backward(*arguments, "sqrtsoftplus", **options)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)
        assert found.shape == scores.shape and same_bits(found.isnan(), torch.zeros_like(found, dtype=torch.bool))
