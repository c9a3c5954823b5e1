"""Partial products and sums of squares added up, and the products normalised by the root mean square, with gradients.

``products = sum of the parts``, ``sqrsum = sum of the square parts``, ``out[t, :] = products[t, :] / sqrt(sqrsum[t] / width + eps)``: the
RMS normalisation of a row (Zhang and Sennrich, arXiv:1910.07467) after its projection, as mHC (arXiv:2512.24880, section 4.3) orders them.
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

__all__ = [
    "cases",
    "reduce_partials_and_rmsnorm_backward",
    "reduce_partials_and_rmsnorm_forward",
    "run_reduce_partials_and_rmsnorm",
]

_BLOCK, _THREADS, _STAGES = 16, 128, 2


def reduce_partials_and_rmsnorm_forward(mixes: int, splits: int) -> Any:
    """Program of the forward kernel, all in float32.

    ``parts`` (splits, tokens, mixes), ``square_parts`` (splits, tokens), ``products`` and ``out`` (tokens, mixes), ``sqrsum`` (tokens);
    ``inverse_width`` is ``1 / width``. Parts are added in their order.
    """
    tokens = T.dynamic("tokens")

    @T.prim_func
    def reduce_partials_and_rmsnorm_forward(
        parts: T.Tensor((splits, tokens, mixes), T.float32),
        square_parts: T.Tensor((splits, tokens), T.float32),
        inverse_width: T.float32,
        eps: T.float32,
        products: T.Tensor((tokens, mixes), T.float32),
        sqrsum: T.Tensor((tokens,), T.float32),
        out: T.Tensor((tokens, mixes), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            parts_ub = T.alloc_shared((splits, _BLOCK, mixes), T.float32)
            square_parts_ub = T.alloc_shared((splits, _BLOCK), T.float32)
            products_ub = T.alloc_shared((_BLOCK, mixes), T.float32)
            sqrsum_ub = T.alloc_shared((_BLOCK,), T.float32)
            factor_ub = T.alloc_shared((_BLOCK,), T.float32)
            out_ub = T.alloc_shared((_BLOCK, mixes), T.float32)
            for block in T.Persistent([T.ceildiv(tokens, _BLOCK)], VECTOR_CORES, core, group_size=1, num_stages=_STAGES):
                T.copy(parts[0, block * _BLOCK, 0], parts_ub)
                T.copy(square_parts[0, block * _BLOCK], square_parts_ub)
                with T.SimtVF(threads=_THREADS):
                    squares = T.alloc_fragment((_BLOCK,), T.float32)
                    T.clear(squares)
                    for split in T.serial(splits):
                        for token in T.Parallel(_BLOCK):
                            squares[token] += square_parts_ub[split, token]
                    for token in T.Parallel(_BLOCK):
                        sqrsum_ub[token] = squares[token]
                        factor_ub[token] = 1 / T.sqrt(squares[token] * inverse_width + eps)
                    sums = T.alloc_fragment((_BLOCK, mixes), T.float32)
                    T.clear(sums)
                    for split in T.serial(splits):
                        for token, mix in T.Parallel(_BLOCK, mixes):
                            sums[token, mix] += parts_ub[split, token, mix]
                    for token, mix in T.Parallel(_BLOCK, mixes):
                        products_ub[token, mix] = sums[token, mix]
                        out_ub[token, mix] = sums[token, mix] * factor_ub[token]
                T.copy(products_ub, products[block * _BLOCK, 0])
                T.copy(sqrsum_ub, sqrsum[block * _BLOCK])
                T.copy(out_ub, out[block * _BLOCK, 0])

    return reduce_partials_and_rmsnorm_forward


def reduce_partials_and_rmsnorm_backward(mixes: int) -> Any:
    """Program of the backward kernel, all in float32; the gradients of all parts are those of their sums.

    ``products_grad[t, :] = r[t] * out_grad[t, :]`` and ``sqrsum_grad[t] = -r[t]^3 / (2 * width) * sum over m of out_grad * products`` with
    ``r = 1 / sqrt(sqrsum / width + eps)``; ``out_grad``, ``products`` and ``products_grad`` (tokens, mixes), ``sqrsum`` and ``sqrsum_grad``
    (tokens), ``inverse_width`` is ``1 / width``.
    """
    tokens = T.dynamic("tokens")
    lanes = 1 << (mixes - 1).bit_length()

    @T.prim_func
    def reduce_partials_and_rmsnorm_backward(
        out_grad: T.Tensor((tokens, mixes), T.float32),
        products: T.Tensor((tokens, mixes), T.float32),
        sqrsum: T.Tensor((tokens,), T.float32),
        inverse_width: T.float32,
        eps: T.float32,
        products_grad: T.Tensor((tokens, mixes), T.float32),
        sqrsum_grad: T.Tensor((tokens,), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            out_grad_ub = T.alloc_shared((_BLOCK, mixes), T.float32)
            products_ub = T.alloc_shared((_BLOCK, mixes), T.float32)
            sqrsum_ub = T.alloc_shared((_BLOCK,), T.float32)
            factor_ub = T.alloc_shared((_BLOCK,), T.float32)
            products_grad_ub = T.alloc_shared((_BLOCK, mixes), T.float32)
            sqrsum_grad_ub = T.alloc_shared((_BLOCK,), T.float32)
            for block in T.Persistent([T.ceildiv(tokens, _BLOCK)], VECTOR_CORES, core, group_size=1, num_stages=_STAGES):
                T.copy(out_grad[block * _BLOCK, 0], out_grad_ub)
                T.copy(products[block * _BLOCK, 0], products_ub)
                T.copy(sqrsum[block * _BLOCK], sqrsum_ub)
                with T.SimtVF(threads=_THREADS):
                    for token in T.Parallel(_BLOCK):
                        factor_ub[token] = 1 / T.sqrt(sqrsum_ub[token] * inverse_width + eps)
                    terms = T.alloc_fragment((_BLOCK, lanes), T.float32)
                    dots = T.alloc_fragment((_BLOCK,), T.float32)
                    for token, mix in T.Parallel(_BLOCK, lanes):
                        if mix < mixes:
                            products_grad_ub[token, mix] = out_grad_ub[token, mix] * factor_ub[token]
                            terms[token, mix] = out_grad_ub[token, mix] * products_ub[token, mix]
                        else:
                            terms[token, mix] = 0
                    T.reduce_sum(terms, dots, dim=1)
                    for token in T.Parallel(_BLOCK):
                        cube = factor_ub[token] * factor_ub[token] * factor_ub[token]
                        sqrsum_grad_ub[token] = dots[token] * cube * (inverse_width * T.float32(-0.5))
                T.copy(products_grad_ub, products_grad[block * _BLOCK, 0])
                T.copy(sqrsum_grad_ub, sqrsum_grad[block * _BLOCK])

    return reduce_partials_and_rmsnorm_backward


class _ReducePartialsAndRmsnorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, parts: torch.Tensor, square_parts: torch.Tensor, width: int, eps: float) -> torch.Tensor:
        splits, tokens, mixes = parts.shape
        products, sqrsum, out = parts.new_empty(tokens, mixes), parts.new_empty(tokens), parts.new_empty(tokens, mixes)
        launch(reduce_partials_and_rmsnorm_forward, (mixes, splits), parts, square_parts, 1 / width, eps, products, sqrsum, out)
        ctx.save_for_backward(products, sqrsum)
        ctx.splits, ctx.width, ctx.eps = splits, width, eps
        return out

    @staticmethod
    def backward(ctx: Any, out_grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:  # type: ignore[override]
        products, sqrsum = ctx.saved_tensors
        products_grad, sqrsum_grad = torch.empty_like(products), torch.empty_like(sqrsum)
        given = (out_grad.contiguous(), products, sqrsum, 1 / ctx.width, ctx.eps)
        launch(reduce_partials_and_rmsnorm_backward, (products.shape[1],), *given, products_grad, sqrsum_grad)
        return products_grad.expand(ctx.splits, -1, -1), sqrsum_grad.expand(ctx.splits, -1), None, None


def run_reduce_partials_and_rmsnorm(parts: torch.Tensor, square_parts: torch.Tensor, width: int, eps: float) -> torch.Tensor:
    """Normalised sums of contiguous float32 tensors of the shapes the forward program says, with gradients."""
    out: torch.Tensor = _ReducePartialsAndRmsnorm.apply(parts, square_parts, width, eps)
    return out


_WIDTH, _EPS = 4 * 2560, 1e-6


def _random(tokens: int, mixes: int, splits: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Products and sums of squares as of rows of normal numbers."""
    random = torch.Generator().manual_seed(seed)
    squares = torch.rand(splits, tokens, generator=random) + 0.5
    return torch.randn(splits, tokens, mixes, generator=random), squares * (_WIDTH / splits)


def _forward_case(parameters: dict[str, int], tokens: int) -> Case:
    mixes, splits = parameters["mhc"] * (parameters["mhc"] + 2), parameters["splits"]

    def inputs(seed: int) -> list[Any]:
        rows = torch.full((tokens, mixes), float("nan"))
        return [*_random(tokens, mixes, splits, seed), 1 / _WIDTH, _EPS, rows, torch.full((tokens,), float("nan")), rows.clone()]

    def reference(given: Any) -> list[torch.Tensor]:
        products, sqrsum = given[0].double().sum(0), given[1].double().sum(0)
        return [products, sqrsum, products * (sqrsum[:, None] / _WIDTH + _EPS).rsqrt()]

    # Half a unit of every sum, below 8 * sqrt(splits) (standard deviation sqrt(splits)); relative ones of what only grows, and of the rest.
    absolute, relative = splits * 8 * splits**0.5 * 2**-24, (splits + 6) * 2**-24
    return Case(
        kernel="reduce_partials_and_rmsnorm_forward",
        parameters=parameters,
        tokens=tokens,
        program=partial(reduce_partials_and_rmsnorm_forward, mixes, splits),
        specialisation=(mixes, splits),
        inputs=inputs,
        outputs=(4, 5, 6),
        reference=reference,
        tolerances=(Tolerance(absolute=absolute), Tolerance(relative=relative), Tolerance(relative, absolute * 2**0.5)),
    )


def _backward_case(parameters: dict[str, int], tokens: int) -> Case:
    mixes = parameters["mhc"] * (parameters["mhc"] + 2)

    def inputs(seed: int) -> list[Any]:
        products, sqrsum = _random(tokens, mixes, 1, seed)
        out_grad = torch.randn(tokens, mixes, generator=torch.Generator().manual_seed(seed + 1))
        grads = torch.full((tokens, mixes), float("nan")), torch.full((tokens,), float("nan"))
        return [out_grad, products[0], sqrsum[0], 1 / _WIDTH, _EPS, *grads]

    def reference(given: Any) -> list[torch.Tensor]:
        out_grad, products, sqrsum = (tensor.double() for tensor in given[:3])
        factor = (sqrsum / _WIDTH + _EPS).rsqrt()
        return [out_grad * factor[:, None], (out_grad * products).sum(1) * factor**3 * (-0.5 / _WIDTH)]

    dots = (mixes + 1) * 64 * 2**-24  # half a unit of every product and sum, below 64
    return Case(
        kernel="reduce_partials_and_rmsnorm_backward",
        parameters=parameters,
        tokens=tokens,
        program=partial(reduce_partials_and_rmsnorm_backward, mixes),
        specialisation=(mixes,),
        inputs=inputs,
        outputs=(5, 6),
        reference=reference,
        # The factor comes of five roundings and is below sqrt(2); its cube of three factors.
        tolerances=(Tolerance(relative=8 * 2**-24), Tolerance(relative=24 * 2**-24, absolute=dots * 2**1.5 * 0.5 / _WIDTH)),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """n0 (1, 2) x n1 (1024, 4096) x splits (1, 4, 16), four streams, forward and backward."""
    for splits, n0, n1 in product((1, 4, 16), (1, 2), (1024, 4096)):
        parameters = {"n0": n0, "n1": n1, "mhc": 4, "splits": splits}
        for case in (_forward_case, _backward_case):
            yield case(parameters, sizes.tokens(n0 * n1, divisor=4))
