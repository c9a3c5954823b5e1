"""The weights of an RMS normalisation merged into the rows of the projection after it, and the gradients of both.

``out[m, :] = fn[m, :] * weight``: merged once per step, the normalised and weighted stream is never stored (mHC, arXiv:2512.24880,
section 4.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from tilelang.ascend import language as T

from tilelang_pto.compare.case import Case, Tolerance

from .launching import launch
from .sizes import VECTOR_CORES, Sizes

__all__ = ["cases", "fn_normw_merge_backward", "fn_normw_merge_forward", "run_fn_normw_merge"]

_BLOCK, _STAGES = 256, 2


def fn_normw_merge_forward(mixes: int) -> Any:
    """Program of the forward kernel: ``fn`` and ``out`` (mixes, width), ``weight`` (width), float32, any width."""
    width = T.dynamic("width")

    @T.prim_func
    def fn_normw_merge_forward(
        fn: T.Tensor((mixes, width), T.float32), weight: T.Tensor((width,), T.float32), out: T.Tensor((mixes, width), T.float32)
    ):
        with T.Kernel(VECTOR_CORES) as core:
            fn_ub = T.alloc_shared((mixes, _BLOCK), T.float32)
            weight_ub = T.alloc_shared((_BLOCK,), T.float32)
            out_ub = T.alloc_shared((mixes, _BLOCK), T.float32)
            for block in T.Persistent([T.ceildiv(width, _BLOCK)], VECTOR_CORES, core, group_size=1, num_stages=_STAGES):
                T.copy(fn[0, block * _BLOCK], fn_ub)
                T.copy(weight[block * _BLOCK], weight_ub)
                with T.SimtVF(threads=_BLOCK):
                    for mix, column in T.Parallel(mixes, _BLOCK):
                        out_ub[mix, column] = fn_ub[mix, column] * weight_ub[column]
                T.copy(out_ub, out[0, block * _BLOCK])

    return fn_normw_merge_forward


def fn_normw_merge_backward(mixes: int) -> Any:
    """Program of the backward kernel, float32, any width.

    ``fn_grad[m, :] = out_grad[m, :] * weight`` and ``weight_grad = sum over m of out_grad[m, :] * fn[m, :]``; ``out_grad``, ``fn`` and
    ``fn_grad`` (mixes, width), ``weight`` and ``weight_grad`` (width). Rows are added in their order.
    """
    width = T.dynamic("width")

    @T.prim_func
    def fn_normw_merge_backward(
        out_grad: T.Tensor((mixes, width), T.float32),
        fn: T.Tensor((mixes, width), T.float32),
        weight: T.Tensor((width,), T.float32),
        fn_grad: T.Tensor((mixes, width), T.float32),
        weight_grad: T.Tensor((width,), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            out_grad_ub = T.alloc_shared((mixes, _BLOCK), T.float32)
            fn_ub = T.alloc_shared((mixes, _BLOCK), T.float32)
            weight_ub = T.alloc_shared((_BLOCK,), T.float32)
            fn_grad_ub = T.alloc_shared((mixes, _BLOCK), T.float32)
            weight_grad_ub = T.alloc_shared((_BLOCK,), T.float32)
            for block in T.Persistent([T.ceildiv(width, _BLOCK)], VECTOR_CORES, core, group_size=1, num_stages=_STAGES):
                T.copy(out_grad[0, block * _BLOCK], out_grad_ub)
                T.copy(fn[0, block * _BLOCK], fn_ub)
                T.copy(weight[block * _BLOCK], weight_ub)
                with T.SimtVF(threads=_BLOCK):
                    total = T.alloc_fragment((_BLOCK,), T.float32)
                    T.clear(total)
                    for mix in T.serial(mixes):
                        for column in T.Parallel(_BLOCK):
                            fn_grad_ub[mix, column] = out_grad_ub[mix, column] * weight_ub[column]
                            total[column] += out_grad_ub[mix, column] * fn_ub[mix, column]
                    T.copy(total, weight_grad_ub)
                T.copy(fn_grad_ub, fn_grad[0, block * _BLOCK])
                T.copy(weight_grad_ub, weight_grad[block * _BLOCK])

    return fn_normw_merge_backward


class _FnNormwMerge(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, fn: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(fn)
        launch(fn_normw_merge_forward, (fn.shape[0],), fn, weight, out)
        ctx.save_for_backward(fn, weight)
        return out

    @staticmethod
    def backward(ctx: Any, out_grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        fn, weight = ctx.saved_tensors
        fn_grad, weight_grad = torch.empty_like(fn), torch.empty_like(weight)
        launch(fn_normw_merge_backward, (fn.shape[0],), out_grad.contiguous(), fn, weight, fn_grad, weight_grad)
        return fn_grad, weight_grad


def run_fn_normw_merge(fn: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """``fn * weight`` of contiguous float32 tensors, (mixes, width) and (width), with gradients."""
    out: torch.Tensor = _FnNormwMerge.apply(fn, weight)
    return out


def _sizes(parameters: dict[str, int]) -> tuple[int, int]:
    mhc = parameters["mhc"]
    return mhc * (mhc + 2), mhc * parameters["hidden"]


def _forward_case(parameters: dict[str, int]) -> Case:
    mixes, width = _sizes(parameters)

    def inputs(seed: int) -> list[torch.Tensor]:
        random = torch.Generator().manual_seed(seed)
        fn, weight = torch.randn(mixes, width, generator=random), torch.randn(width, generator=random)
        return [fn, weight, torch.full((mixes, width), float("nan"))]

    return Case(
        kernel="fn_normw_merge_forward",
        parameters=parameters,
        tokens=mixes,
        program=partial(fn_normw_merge_forward, mixes),
        specialisation=(mixes,),
        inputs=inputs,
        outputs=(2,),
        reference=lambda given: [given[0].double() * given[1].double()],
        tolerances=(Tolerance(relative=2**-24),),  # half a unit in the last place
    )


def _backward_case(parameters: dict[str, int]) -> Case:
    mixes, width = _sizes(parameters)

    def inputs(seed: int) -> list[torch.Tensor]:
        random = torch.Generator().manual_seed(seed)
        out_grad, fn = (torch.randn(mixes, width, generator=random) for _ in range(2))
        weight = torch.randn(width, generator=random)
        return [out_grad, fn, weight, torch.full((mixes, width), float("nan")), torch.full((width,), float("nan"))]

    def reference(given: Any) -> list[torch.Tensor]:
        out_grad, fn, weight = (tensor.double() for tensor in given[:3])
        return [out_grad * weight, (out_grad * fn).sum(0)]

    return Case(
        kernel="fn_normw_merge_backward",
        parameters=parameters,
        tokens=mixes,
        program=partial(fn_normw_merge_backward, mixes),
        specialisation=(mixes,),
        inputs=inputs,
        outputs=(3, 4),
        reference=reference,
        # Half a unit of the product; of every product and sum, below 64.
        tolerances=(Tolerance(relative=2**-24), Tolerance(absolute=2 * mixes * 64 * 2**-25)),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """mhc (2, 4) x hidden (1280, 2560, 7680), forward and backward; there are no tokens to reduce."""
    for mhc, hidden in product((2, 4), (1280, 2560, 7680)):
        for case in (_forward_case, _backward_case):
            yield case({"mhc": mhc, "hidden": hidden})
