"""mHC expand in TileLang's Ascend dialect: each token's hidden vector goes to several residual streams, and back as a sum.

Manifold-constrained hyper-connections keep ``streams`` copies of the residual stream. Expand starts them: forward copies, backward adds the
gradients of the copies.
"""

from __future__ import annotations

from typing import Any

import tilelang
from tilelang.ascend import language as T

__all__ = ["CORES", "expand_backward", "expand_forward"]

CORES = 64
"""Vector cores of an Ascend 950PR."""

LANES = 128
"""bf16 lanes of a vector register."""


@tilelang.jit(target="pto")
def expand_forward(x: Any, out: Any, cores: int = CORES, versions: int = 4) -> None:
    """``out[t, s, :] = x[t, :]``.

    Args:
        x: bf16, tokens x hidden; hidden is a multiple of 16 (32 bytes).
        out: bf16, tokens x streams x hidden.
        cores: vector cores to use.
        versions: buffers per core, so that loads, copies and stores overlap.
    """
    tokens = T.dynamic("tokens")
    hidden, streams = T.const("hidden, streams")
    x: T.Tensor[(tokens, hidden), T.bfloat16]
    out: T.Tensor[(tokens, streams, hidden), T.bfloat16]

    with T.Kernel(cores) as core:
        row = T.alloc_shared((hidden,), T.bfloat16)
        T.annotate_buffer_versions({row: versions})
        for token in T.Persistent([tokens], cores, core, group_size=1, num_stages=versions):
            T.copy(x[token, 0], row)
            for stream in T.unroll(streams, explicit=True):
                T.copy(row, out[token, stream, 0])


@tilelang.jit(target="pto")
def expand_backward(out_grad: Any, x_grad: Any, cores: int = CORES, versions: int = 2) -> None:
    """``x_grad[t, :] = sum over s of out_grad[t, s, :]``, added in float32 and rounded once.

    Args:
        out_grad: bf16, tokens x streams x hidden; hidden is a multiple of 128.
        x_grad: bf16, tokens x hidden.
        cores: vector cores to use.
        versions: buffers per core.
    """
    tokens = T.dynamic("tokens")
    hidden, streams = T.const("hidden, streams")
    out_grad: T.Tensor[(tokens, streams, hidden), T.bfloat16]
    x_grad: T.Tensor[(tokens, hidden), T.bfloat16]

    with T.Kernel(cores) as core:
        grads = T.alloc_shared((streams, hidden), T.bfloat16)
        total = T.alloc_shared((hidden,), T.bfloat16)
        T.annotate_buffer_versions({grads: versions, total: versions})
        for token in T.Persistent([tokens], cores, core, group_size=1, num_stages=versions):
            T.copy(out_grad[token, 0, 0], grads)
            with T.SimdVF():
                bf16_lanes, f32_lanes = T.simd.pset(16), T.simd.pset(32)
                even, odd = T.simd.alloc_var(T.float32), T.simd.alloc_var(T.float32)
                for chunk in T.serial(hidden // LANES):
                    first = T.simd.vld(grads[0, chunk * LANES])
                    even = T.simd.vcvt(first, T.float32, mask=bf16_lanes, part=0)
                    odd = T.simd.vcvt(first, T.float32, mask=bf16_lanes, part=1)
                    for stream in T.serial(1, streams):
                        grad = T.simd.vld(grads[stream, chunk * LANES])
                        even = T.simd.vadd(even, T.simd.vcvt(grad, T.float32, mask=bf16_lanes, part=0), f32_lanes)
                        odd = T.simd.vadd(odd, T.simd.vcvt(grad, T.float32, mask=bf16_lanes, part=1), f32_lanes)
                    low = T.simd.vcvt(even, T.bfloat16, mask=f32_lanes, part=0)
                    high = T.simd.vcvt(odd, T.bfloat16, mask=f32_lanes, part=1)
                    T.simd.vsts(total[chunk * LANES], T.simd.vor(low, high, bf16_lanes), bf16_lanes)
            T.copy(total, x_grad[token, 0])
