"""The variant of each kernel that is the quickest to lower, with the seconds that takes on a slow core: they only order the tests."""

from __future__ import annotations

from types import MappingProxyType

from corpus.case import Case

__all__ = ["QUICK", "usual_seconds"]

QUICK = MappingProxyType(
    {
        "mhc.expand_bwd.h2560": 0.8,
        "mhc.expand_fwd.h2560": 0.8,
        "mhc.fn_normw_merge_bwd.h10240": 3.4,
        "mhc.fn_normw_merge_fwd.h10240": 0.4,
        "mhc.head_compute_mix_bwd.n8192": 0.7,
        "mhc.head_compute_mix_fwd.n640": 2.5,
        "mhc.multilayer_recompute.l3p3": 0.2,
        "mhc.post_bwd.h2560": 6.6,
        "mhc.post_fwd.h2560": 1.4,
        "mhc.pre_apply_mix_bwd.h7168": 4.6,
        "mhc.pre_apply_mix_fwd.h2560": 1.3,
        "mhc.pre_big_fuse_fwd.h2560": 7.3,
        "mhc.pre_split_mixes_bwd.simd": 4.5,
        "mhc.pre_split_mixes_bwd.simt": 1.4,
        "mhc.pre_split_mixes_fwd.simd": 4.5,
        "mhc.pre_split_mixes_fwd.simt": 8.1,
        "mhc.reduce_partials_and_rmsnorm_bwd": 6.8,
        "mhc.reduce_partials_and_rmsnorm_fwd.s1": 8.5,
        "mhc.sinkhorn_bwd": 4.6,
        "mhc.sinkhorn_fwd": 2.5,
        "engram.fused_weight": 0.4,
        "engram.gate_bwd.plain": 2.3,
        "engram.gate_fwd.infer": 1.8,
        "engram.grad_w_reduce": 3.7,
        "engram.hash.plain": 2.4,
        "engram.sinkhorn_finalize": 1.9,
        "engram.sinkhorn_momentum.bf16.bf16.nesterov": 3.1,
        "engram.sinkhorn_step": 5.7,
        "engram.sinkhorn_step_reduce": 0.2,
        "moe.normalize_weight.k8": 2.4,
        "moe.topk_gate.e72k6": 2.2,
        "moe.topk_gate_backward.plain": 14.9,
        "moe.topk_gate_forward.plain": 21.4,
        "quant.batched_transpose_weight_sf": 25.1,
        "quant.cast.stochastic": 21.4,
        "quant.cast_back.e4m3.1x32.f32sf.f32": 1.8,
        "quant.norm_backward.f32.noweight": 2.3,
        "quant.norm_forward.f32.noweight": 4.8,
        "quant.per_block_cast.cast_only": 2.2,
        "quant.per_block_cast_lossless.packed.packed": 6.1,
        "quant.per_channel_cast.bf16.f32sf": 2.1,
        "quant.per_token_cast.cast_only": 1.4,
        "quant.per_token_cast_and_cast_back.f32.e4m3.16.e4m3sf": 1.6,
        "quant.swiglu_backward.f32": 4.9,
        "quant.swiglu_forward.f32": 3.8,
        "transform.rope.bf16.d128.interleaved": 2.4,
        "rand.randn.f32.small": 1.2,
    }
)

_OF_FUNCTION = {".".join(name.split(".")[:2]): seconds for name, seconds in QUICK.items()}


def usual_seconds(case: Case) -> float:
    """About how long a case takes to lower: as the quick one of its function."""
    return QUICK.get(case.name) or _OF_FUNCTION.get(case.function, 0.0)
