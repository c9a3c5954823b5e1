"""Post: the streams after a layer, mixed among themselves and with the output of the layer added to each, and the gradients.

``out[t, q, :] = post_mix[t, q] * x[t, :] + sum over p of comb_mix[t, p, q] * residual[t, p, :]``: the depth and width connections behind a
layer (Hyper-Connections, arXiv:2409.19606, section 2), with ``H_post`` and the doubly stochastic ``H_res`` of mHC (arXiv:2512.24880,
section 4).
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from tilelang.ascend import language as T

from tilelang_pto.compare.case import Case, Tolerance

from .checks import require, require_tensor
from .launching import launch
from .sizes import VECTOR_CORES, Sizes
from .tiling import THREADS, block_of

__all__ = ["cases", "post", "post_backward", "post_forward"]

_VERSIONS, _LANES, _PITCH = 2, 64, 8
_MOST_STREAMS = _PITCH
_ELEMENTS = 10240
"""Elements of all streams in a block; the buffers of the backward kernel for them fit into UB twice."""


def post_forward(hidden: int, mhc: int) -> Any:
    """Program of the forward kernel.

    ``x`` (tokens, hidden), ``residual`` and ``out`` (tokens, mhc, hidden) are bfloat16, ``post_mix`` (tokens, mhc) and ``comb_mix``
    (tokens, mhc, mhc) are float32. The layer's output stands in front of the streams, and its weights in front of theirs: one
    matrix of weights takes all of them to the new streams.
    """
    block = block_of(hidden, _ELEMENTS // mhc)
    sources = mhc + 1
    tokens = T.dynamic("tokens")

    @T.prim_func
    def post_forward(
        x: T.Tensor((tokens, hidden), T.bfloat16),
        residual: T.Tensor((tokens, mhc, hidden), T.bfloat16),
        post_mix: T.Tensor((tokens, mhc), T.float32),
        comb_mix: T.Tensor((tokens, mhc, mhc), T.float32),
        out: T.Tensor((tokens, mhc, hidden), T.bfloat16),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            source_ub = T.alloc_shared((sources, block), T.bfloat16)
            mix_ub = T.alloc_shared((sources, _PITCH), T.float32)
            out_ub = T.alloc_shared((mhc, block), T.bfloat16)
            T.annotate_buffer_versions({source_ub: _VERSIONS, mix_ub: _VERSIONS, out_ub: _VERSIONS})
            for token, part in T.Persistent([tokens, hidden // block], VECTOR_CORES, core, group_size=1, num_stages=_VERSIONS):
                T.copy(post_mix[token, 0], mix_ub[0, 0:mhc])
                T.copy(comb_mix[token, 0, 0], mix_ub[1:sources, 0:mhc])
                T.copy(x[token, part * block], source_ub[0, :])
                T.copy(residual[token, 0, part * block], source_ub[1:sources, :])
                with T.SimtVF(threads=THREADS):
                    mix = T.alloc_local((sources, mhc), T.float32)
                    total = T.alloc_local((mhc,), T.float32)
                    for source in T.serial(sources):
                        for stream in T.serial(mhc):
                            mix[source, stream] = mix_ub[source, stream]
                    for first in T.serial(0, block, THREADS):
                        for column in T.Parallel(THREADS):
                            for stream in T.unroll(mhc):
                                total[stream] = 0
                            for source in T.unroll(sources):
                                value = T.cast(source_ub[source, first + column], T.float32)
                                for stream in T.unroll(mhc):
                                    total[stream] += mix[source, stream] * value
                            for stream in T.unroll(mhc):
                                out_ub[stream, first + column] = total[stream]
                T.copy(out_ub, out[token, 0, part * block])

    return post_forward


def post_backward(hidden: int, mhc: int) -> Any:
    """Program of the backward kernel; types and shapes of gradients are those of what they belong to.

    Every thread adds up the products of its columns for each weight, and a vector function adds the threads' sums: always in one order.
    """
    block = block_of(hidden, _ELEMENTS // mhc)
    sources = mhc + 1
    tokens = T.dynamic("tokens")

    @T.prim_func
    def post_backward(
        out_grad: T.Tensor((tokens, mhc, hidden), T.bfloat16),
        x: T.Tensor((tokens, hidden), T.bfloat16),
        residual: T.Tensor((tokens, mhc, hidden), T.bfloat16),
        post_mix: T.Tensor((tokens, mhc), T.float32),
        comb_mix: T.Tensor((tokens, mhc, mhc), T.float32),
        x_grad: T.Tensor((tokens, hidden), T.bfloat16),
        residual_grad: T.Tensor((tokens, mhc, hidden), T.bfloat16),
        post_mix_grad: T.Tensor((tokens, mhc), T.float32),
        comb_mix_grad: T.Tensor((tokens, mhc, mhc), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            out_grad_ub = T.alloc_shared((mhc, block), T.bfloat16)
            source_ub = T.alloc_shared((sources, block), T.bfloat16)
            source_grad_ub = T.alloc_shared((sources, block), T.bfloat16)
            mix_ub = T.alloc_shared((sources, _PITCH), T.float32)
            mix_grad_ub = T.alloc_shared((sources, _PITCH), T.float32)
            sums_ub = T.alloc_shared((sources, mhc, THREADS), T.float32)
            T.annotate_buffer_versions({out_grad_ub: _VERSIONS, source_ub: _VERSIONS, source_grad_ub: _VERSIONS})
            for token in T.Persistent([tokens], VECTOR_CORES, core, group_size=1, num_stages=_VERSIONS):
                T.copy(post_mix[token, 0], mix_ub[0, 0:mhc])
                T.copy(comb_mix[token, 0, 0], mix_ub[1:sources, 0:mhc])
                with T.SimdVF():
                    full = T.simd.pset(32)
                    zero = T.simd.vdup(T.float32(0), T.float32, full)
                    for source in T.serial(sources):
                        for stream in T.serial(mhc):
                            for chunk in T.serial(THREADS // _LANES):
                                T.simd.vsts(sums_ub[source, stream, chunk * _LANES], zero, full)
                for part in T.serial(hidden // block):
                    T.copy(out_grad[token, 0, part * block], out_grad_ub)
                    T.copy(x[token, part * block], source_ub[0, :])
                    T.copy(residual[token, 0, part * block], source_ub[1:sources, :])
                    with T.SimtVF(threads=THREADS):
                        mix = T.alloc_local((sources, mhc), T.float32)
                        sums = T.alloc_local((sources, mhc), T.float32)
                        grad = T.alloc_local((mhc,), T.float32)
                        total = T.alloc_local((1,), T.float32)
                        for column in T.Parallel(THREADS):
                            for source in T.serial(sources):
                                for stream in T.serial(mhc):
                                    mix[source, stream] = mix_ub[source, stream]
                                    sums[source, stream] = sums_ub[source, stream, column]
                            for first in T.serial(0, block, THREADS):
                                for stream in T.unroll(mhc):
                                    grad[stream] = out_grad_ub[stream, first + column]
                                for source in T.unroll(sources):
                                    value = T.cast(source_ub[source, first + column], T.float32)
                                    total[0] = 0
                                    for stream in T.unroll(mhc):
                                        total[0] += mix[source, stream] * grad[stream]
                                        sums[source, stream] += value * grad[stream]
                                    source_grad_ub[source, first + column] = total[0]
                            for source in T.serial(sources):
                                for stream in T.serial(mhc):
                                    sums_ub[source, stream, column] = sums[source, stream]
                    T.copy(source_grad_ub[0, :], x_grad[token, part * block])
                    T.copy(source_grad_ub[1:sources, :], residual_grad[token, 0, part * block])
                with T.SimdVF():
                    full, one = T.simd.pset(32), T.simd.pset(32, "PAT_VL1")
                    lanes = T.simd.alloc_var(T.float32)
                    for source in T.serial(sources):
                        for stream in T.serial(mhc):
                            lanes = T.simd.vld(sums_ub[source, stream, 0])
                            for chunk in T.serial(1, THREADS // _LANES):
                                lanes = T.simd.vadd(lanes, T.simd.vld(sums_ub[source, stream, chunk * _LANES]), full)
                            T.simd.vsts(mix_grad_ub[source, stream], T.simd.vcadd(lanes, full), one, "ONEPT_B32")
                T.copy(mix_grad_ub[0, 0:mhc], post_mix_grad[token, 0])
                T.copy(mix_grad_ub[1:sources, 0:mhc], comb_mix_grad[token, 0, 0])

    return post_backward


class _Post(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, residual: torch.Tensor, post_mix: torch.Tensor, comb_mix: torch.Tensor) -> torch.Tensor:
        *rows, mhc, hidden = residual.shape
        shapes = (hidden,), (mhc, hidden), (mhc,), (mhc, mhc)
        given = [tensor.reshape(-1, *shape).contiguous() for tensor, shape in zip((x, residual, post_mix, comb_mix), shapes, strict=True)]
        out = torch.empty_like(given[1])
        launch(post_forward, (hidden, mhc), *given, out)
        ctx.save_for_backward(*given)
        ctx.rows = rows
        return out.view(*rows, mhc, hidden)

    @staticmethod
    def backward(ctx: Any, out_grad: torch.Tensor) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        given = ctx.saved_tensors
        mhc, hidden = given[1].shape[1:]
        grads = [torch.empty_like(tensor) for tensor in given]
        launch(post_backward, (hidden, mhc), out_grad.reshape(-1, mhc, hidden).contiguous(), *given, *grads)
        return tuple(grad.view(*ctx.rows, *grad.shape[1:]) for grad in grads)


def post(x: torch.Tensor, residual: torch.Tensor, post_mix: torch.Tensor, comb_mix: torch.Tensor) -> torch.Tensor:
    """The streams behind a layer, with gradients for all arguments.

    Args:
        x: (..., hidden), bfloat16, the output of the layer; hidden is a multiple of 256.
        residual: (..., mhc, hidden), bfloat16, the streams before the layer; mhc is at most 8.
        post_mix: (..., mhc), float32, weights of the layer's output.
        comb_mix: (..., mhc, mhc), float32, weights of the streams: from, to.

    Returns:
        (..., mhc, hidden), bfloat16.

    Raises:
        ValueError: types or sizes are others.
    """
    require_tensor("post", "residual", residual, torch.bfloat16, (..., None, None))
    *rows, mhc, hidden = residual.shape
    require(1 <= mhc <= _MOST_STREAMS, f"post: mhc is {mhc}, it has to be from 1 to {_MOST_STREAMS}")
    require(hidden > 0 and hidden % THREADS == 0, f"post: hidden is {hidden}, it has to be a multiple of {THREADS}")
    require_tensor("post", "x", x, torch.bfloat16, (*rows, hidden), residual.device)
    require_tensor("post", "post_mix", post_mix, torch.float32, (*rows, mhc), residual.device)
    require_tensor("post", "comb_mix", comb_mix, torch.float32, (*rows, mhc, mhc), residual.device)
    return _Post.apply(x, residual, post_mix, comb_mix)


def _tensors(tokens: int, hidden: int, mhc: int, seed: int) -> list[torch.Tensor]:
    """Arguments of the forward program without the output."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(tokens, hidden, generator=random).bfloat16()
    residual = torch.randn(tokens, mhc, hidden, generator=random).bfloat16()
    return [x, residual, torch.randn(tokens, mhc, generator=random), torch.randn(tokens, mhc, mhc, generator=random)]


def _forward_case(parameters: dict[str, int], tokens: int) -> Case:
    hidden, mhc = parameters["hidden"], parameters["mhc"]

    def inputs(seed: int) -> list[torch.Tensor]:
        given = _tensors(tokens, hidden, mhc, seed)
        return [*given, torch.full_like(given[1], float("nan"))]

    def reference(given: Any) -> list[torch.Tensor]:
        x, residual, post_mix, comb_mix = (tensor.double() for tensor in given[:4])
        return [post_mix[..., None] * x[:, None] + comb_mix.transpose(1, 2) @ residual]

    return Case(
        kernel="post_forward",
        parameters=parameters,
        tokens=tokens,
        program=partial(post_forward, hidden, mhc),
        specialisation=(hidden, mhc),
        inputs=inputs,
        outputs=(4,),
        reference=reference,
        # Half a unit in the last place of bfloat16, and of the products and sums in float32, whose magnitudes are below 64.
        tolerances=(Tolerance(relative=2**-8, absolute=2 * (mhc + 1) * 64 * 2**-24),),
    )


def _backward_case(parameters: dict[str, int], tokens: int) -> Case:
    hidden, mhc = parameters["hidden"], parameters["mhc"]

    def inputs(seed: int) -> list[torch.Tensor]:
        given = _tensors(tokens, hidden, mhc, seed)
        out_grad = torch.randn(tokens, mhc, hidden, generator=torch.Generator().manual_seed(seed + 1)).bfloat16()
        return [out_grad, *given, *(torch.full_like(tensor, float("nan")) for tensor in given)]

    def reference(given: Any) -> list[torch.Tensor]:
        out_grad, x, residual, post_mix, comb_mix = (tensor.double() for tensor in given[:5])
        x_grad = (post_mix[..., None] * out_grad).sum(1)
        post_mix_grad = (out_grad @ x[..., None]).squeeze(-1)
        return [x_grad, comb_mix @ out_grad, post_mix_grad, residual @ out_grad.transpose(1, 2)]

    rounded = Tolerance(relative=2**-8, absolute=2 * mhc * 64 * 2**-24)  # as forward
    # Half a unit of every sum a term goes through (in its thread, then between the threads), of terms whose mean magnitude is below 1.
    summed = Tolerance(absolute=(hidden // THREADS + 10) * hidden * 2**-24)
    return Case(
        kernel="post_backward",
        parameters=parameters,
        tokens=tokens,
        program=partial(post_backward, hidden, mhc),
        specialisation=(hidden, mhc),
        inputs=inputs,
        outputs=(5, 6, 7, 8),
        reference=reference,
        tolerances=(rounded, rounded, summed, summed),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """n0 (1, 2) x n1 (1024, 4096) x hidden (1280, 2560, 7680), four streams, forward and backward."""
    for hidden, n0, n1 in product((1280, 2560, 7680), (1, 2), (1024, 4096)):
        parameters = {"n0": n0, "n1": n1, "mhc": 4, "hidden": hidden}
        for case in (_forward_case, _backward_case):
            yield case(parameters, sizes.tokens(n0 * n1, divisor=128))
