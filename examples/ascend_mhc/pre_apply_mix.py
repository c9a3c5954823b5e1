"""Pre-apply mix: the input of a layer as the weighted sum of the streams, and its gradients.

``out[t, :] = sum over s of mix[t, s] * x[t, s, :]``, the "width connections" in front of a layer (Hyper-Connections, arXiv:2409.19606,
section 2), with the weights ``H_pre`` of mHC (arXiv:2512.24880, section 4).

The forward kernel comes in two versions, SIMT (which the function uses) and SIMD, whose roundings differ.
"""

from __future__ import annotations

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

__all__ = ["cases", "pre_apply_mix", "pre_apply_mix_backward", "pre_apply_mix_forward", "pre_apply_mix_forward_simd"]

_FORWARD_VERSIONS, _BACKWARD_VERSIONS = 3, 2
_MOST_STREAMS, _LANES = 16, 64
_ELEMENTS = 15360
"""Elements of all streams in a block; the buffers of the backward kernel for them fit into UB twice."""


def pre_apply_mix_forward(hidden: int, mhc: int) -> Any:
    """Program of the forward kernel.

    ``x`` (tokens, mhc, hidden) and ``out`` (tokens, hidden) are bfloat16, ``mix`` (tokens, mhc) is float32.

    Streams are added in their order in float32, and the sum is rounded once.
    """
    block = block_of(hidden, _ELEMENTS // mhc)
    tokens = T.dynamic("tokens")

    @T.prim_func
    def pre_apply_mix_forward(
        x: T.Tensor((tokens, mhc, hidden), T.bfloat16),
        mix: T.Tensor((tokens, mhc), T.float32),
        out: T.Tensor((tokens, hidden), T.bfloat16),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            x_ub = T.alloc_shared((mhc, block), T.bfloat16)
            mix_ub = T.alloc_shared((mhc,), T.float32)
            out_ub = T.alloc_shared((block,), T.bfloat16)
            T.annotate_buffer_versions({x_ub: _FORWARD_VERSIONS, mix_ub: _FORWARD_VERSIONS, out_ub: _FORWARD_VERSIONS})
            for token, part in T.Persistent([tokens, hidden // block], VECTOR_CORES, core, group_size=1, num_stages=_FORWARD_VERSIONS):
                T.copy(mix[token, 0], mix_ub)
                T.copy(x[token, 0, part * block], x_ub)
                with T.SimtVF(threads=THREADS):
                    total = T.alloc_fragment((block,), T.float32)
                    T.clear(total)
                    for stream in T.serial(mhc):
                        for column in T.Parallel(block):
                            total[column] += mix_ub[stream] * x_ub[stream, column]
                    T.copy(total, out_ub)
                T.copy(out_ub, out[token, part * block])

    return pre_apply_mix_forward


def pre_apply_mix_forward_simd(hidden: int, mhc: int) -> Any:
    """Program of the forward kernel in vector instructions: arguments as for SIMT, products and sums rounded together."""
    block = block_of(hidden, _ELEMENTS // mhc)
    tokens = T.dynamic("tokens")

    @T.prim_func
    def pre_apply_mix_forward_simd(
        x: T.Tensor((tokens, mhc, hidden), T.bfloat16),
        mix: T.Tensor((tokens, mhc), T.float32),
        out: T.Tensor((tokens, hidden), T.bfloat16),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            x_ub = T.alloc_shared((mhc, block), T.bfloat16)
            mix_ub = T.alloc_shared((mhc,), T.float32)
            out_ub = T.alloc_shared((block,), T.bfloat16)
            T.annotate_buffer_versions({x_ub: _FORWARD_VERSIONS, mix_ub: _FORWARD_VERSIONS, out_ub: _FORWARD_VERSIONS})
            for token, part in T.Persistent([tokens, hidden // block], VECTOR_CORES, core, group_size=1, num_stages=_FORWARD_VERSIONS):
                T.copy(mix[token, 0], mix_ub)
                T.copy(x[token, 0, part * block], x_ub)
                with T.SimdVF():
                    full = T.simd.pset(32)
                    weights = T.simd.alloc_local((mhc,), T.float32)
                    for stream in T.unroll(mhc, explicit=True):
                        weights[stream] = T.simd.vld(mix_ub[stream], "BRC_B32")
                    for first in T.serial(0, block, _LANES):
                        total = T.simd.alloc_var(T.float32)
                        total = T.simd.vdup(T.float32(0), T.float32, full)
                        for stream in T.unroll(mhc, explicit=True):
                            value = T.simd.vcvt(T.simd.vld(x_ub[stream, first], "UNPK_B16"), T.float32, full, part=0)
                            T.simd.vmula(total, value, weights[stream], full)
                        T.simd.vsts(out_ub[first], T.simd.vcvt(total, T.bfloat16, full), full, "PK_B32")
                T.copy(out_ub, out[token, part * block])

    return pre_apply_mix_forward_simd


def pre_apply_mix_backward(hidden: int, mhc: int) -> Any:
    """Program of the backward kernel.

    ``x_grad[t, s, :] = mix[t, s] * out_grad[t, :]`` and ``mix_grad[t, s] = sum over h of out_grad[t, h] * x[t, s, h]``;
    ``out_grad`` (tokens, hidden), ``x`` and ``x_grad`` (tokens, mhc, hidden) are bfloat16, ``mix`` and ``mix_grad`` (tokens, mhc) float32.

    Every loop over columns has the shape of the one fragment in it, (mhc, 256): fragments as wide as a block, which a loop
    over the streams, one over the columns and a reduction would share, have no layout that suits all three where a thread's
    share of the columns is odd (hidden = 1280).
    """
    block = block_of(hidden, _ELEMENTS // mhc)
    tokens = T.dynamic("tokens")

    @T.prim_func
    def pre_apply_mix_backward(
        out_grad: T.Tensor((tokens, hidden), T.bfloat16),
        x: T.Tensor((tokens, mhc, hidden), T.bfloat16),
        mix: T.Tensor((tokens, mhc), T.float32),
        x_grad: T.Tensor((tokens, mhc, hidden), T.bfloat16),
        mix_grad: T.Tensor((tokens, mhc), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            out_grad_ub = T.alloc_shared((block,), T.bfloat16)
            x_ub = T.alloc_shared((mhc, block), T.bfloat16)
            x_grad_ub = T.alloc_shared((mhc, block), T.bfloat16)
            mix_ub = T.alloc_shared((mhc,), T.float32)
            mix_grad_ub = T.alloc_shared((mhc,), T.float32)
            T.annotate_buffer_versions({out_grad_ub: _BACKWARD_VERSIONS, x_ub: _BACKWARD_VERSIONS, x_grad_ub: _BACKWARD_VERSIONS})
            for token in T.Persistent([tokens], VECTOR_CORES, core, group_size=1, num_stages=_BACKWARD_VERSIONS):
                T.copy(mix[token, 0], mix_ub)
                for part in T.serial(hidden // block):
                    T.copy(out_grad[token, part * block], out_grad_ub)
                    T.copy(x[token, 0, part * block], x_ub)
                    with T.SimtVF(threads=THREADS):
                        products = T.alloc_fragment((mhc, THREADS), T.float32)
                        sums = T.alloc_fragment((mhc,), T.float32)
                        T.clear(products)
                        for first in T.serial(0, block, THREADS):
                            for stream, column in T.Parallel(mhc, THREADS):
                                x_grad_ub[stream, first + column] = mix_ub[stream] * out_grad_ub[first + column]
                                products[stream, column] += x_ub[stream, first + column] * T.cast(out_grad_ub[first + column], T.float32)
                        T.reduce_sum(products, sums, dim=1)
                        for stream in T.Parallel(mhc):
                            if part == 0:
                                mix_grad_ub[stream] = sums[stream]
                            else:
                                mix_grad_ub[stream] += sums[stream]
                    T.copy(x_grad_ub, x_grad[token, 0, part * block])
                T.copy(mix_grad_ub, mix_grad[token, 0])

    return pre_apply_mix_backward


class _PreApplyMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, mix: torch.Tensor) -> torch.Tensor:
        *rows, mhc, hidden = x.shape
        out = x.new_empty(*rows, hidden)
        rows_of_x, rows_of_mix = x.reshape(-1, mhc, hidden).contiguous(), mix.reshape(-1, mhc).contiguous()
        launch(pre_apply_mix_forward, (hidden, mhc), rows_of_x, rows_of_mix, out.view(-1, hidden))
        ctx.save_for_backward(rows_of_x, rows_of_mix)
        ctx.rows = rows
        return out

    @staticmethod
    def backward(ctx: Any, out_grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        x, mix = ctx.saved_tensors
        mhc, hidden = x.shape[1:]
        x_grad, mix_grad = torch.empty_like(x), torch.empty_like(mix)
        launch(pre_apply_mix_backward, (hidden, mhc), out_grad.reshape(-1, hidden).contiguous(), x, mix, x_grad, mix_grad)
        return x_grad.view(*ctx.rows, mhc, hidden), mix_grad.view(*ctx.rows, mhc)


def pre_apply_mix(x: torch.Tensor, mix: torch.Tensor) -> torch.Tensor:
    """The weighted sum of the streams, with gradients for the streams and the weights.

    Args:
        x: (..., mhc, hidden), bfloat16; mhc is at most 16 and hidden a multiple of 256.
        mix: (..., mhc), float32.

    Returns:
        (..., hidden), bfloat16.

    Raises:
        ValueError: types or sizes are others.
    """
    require_tensor("pre_apply_mix", "x", x, torch.bfloat16, (..., None, None))
    *rows, mhc, hidden = x.shape
    require(1 <= mhc <= _MOST_STREAMS, f"pre_apply_mix: mhc is {mhc}, it has to be from 1 to {_MOST_STREAMS}")
    require(hidden > 0 and hidden % THREADS == 0, f"pre_apply_mix: hidden is {hidden}, it has to be a multiple of {THREADS}")
    require_tensor("pre_apply_mix", "mix", mix, torch.float32, (*rows, mhc), x.device)
    return _PreApplyMix.apply(x, mix)


def _forward_case(parameters: dict[str, int], tokens: int, program: Any = pre_apply_mix_forward) -> Case:
    hidden, mhc = parameters["hidden"], parameters["mhc"]

    def inputs(seed: int) -> list[torch.Tensor]:
        random = torch.Generator().manual_seed(seed)
        x = torch.randn(tokens, mhc, hidden, generator=random).bfloat16()
        return [x, torch.randn(tokens, mhc, generator=random), torch.full((tokens, hidden), float("nan"), dtype=torch.bfloat16)]

    return Case(
        kernel=program.__name__,
        parameters=parameters,
        tokens=tokens,
        program=partial(program, hidden, mhc),
        specialisation=(hidden, mhc),
        inputs=inputs,
        outputs=(2,),
        reference=lambda given: [(given[0].double() * given[1].double()[..., None]).sum(1)],
        # Half a unit in the last place of bfloat16, and of the products and sums in float32, whose magnitudes are below 64.
        tolerances=(Tolerance(relative=2**-8, absolute=2 * mhc * 64 * 2**-24),),
    )


_simd_forward_case = partial(_forward_case, program=pre_apply_mix_forward_simd)


def _backward_case(parameters: dict[str, int], tokens: int) -> Case:
    hidden, mhc = parameters["hidden"], parameters["mhc"]

    def inputs(seed: int) -> list[torch.Tensor]:
        random = torch.Generator().manual_seed(seed)
        out_grad = torch.randn(tokens, hidden, generator=random).bfloat16()
        x = torch.randn(tokens, mhc, hidden, generator=random).bfloat16()
        mix = torch.randn(tokens, mhc, generator=random)
        x_grad = torch.full((tokens, mhc, hidden), float("nan"), dtype=torch.bfloat16)
        return [out_grad, x, mix, x_grad, torch.full((tokens, mhc), float("nan"))]

    def reference(given: Any) -> list[torch.Tensor]:
        out_grad, x, mix = (tensor.double() for tensor in given[:3])
        return [mix[..., None] * out_grad[:, None], (x * out_grad[:, None]).sum(-1)]

    additions = hidden // THREADS + 10  # those a term goes through: in its thread, between the threads, between the blocks
    return Case(
        kernel="pre_apply_mix_backward",
        parameters=parameters,
        tokens=tokens,
        program=partial(pre_apply_mix_backward, hidden, mhc),
        specialisation=(hidden, mhc),
        inputs=inputs,
        outputs=(3, 4),
        reference=reference,
        # Half a unit in the last place of bfloat16 after one of float32; each addition's half unit of a sum of terms whose mean magnitude
        # is below 1.
        tolerances=(Tolerance(relative=2**-8 * 1.001), Tolerance(absolute=additions * hidden * 2**-24)),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """n0 (1, 2) x n1 (1024, 4096) x hidden (1280, 2560, 7680), four streams, forward (SIMT and SIMD) and backward."""
    for hidden, n0, n1 in product((1280, 2560, 7680), (1, 2), (1024, 4096)):
        parameters = {"n0": n0, "n1": n1, "mhc": 4, "hidden": hidden}
        for case in (_forward_case, _simd_forward_case, _backward_case):
            yield case(parameters, sizes.tokens(n0 * n1))
