"""The products of a hidden state with the rows of ``fn``, and its sum of squares, in one pass over it.

``products[t, m] = sum over k of x[t, k] * fn[m, k]`` and ``sqrsum[t] = sum over k of x[t, k]^2``: a projection followed by the RMS
normalisation of what is projected, which mHC (arXiv:2512.24880, section 4.3) reorders so that the wide stream is read once.
"""

# No postponed annotations: the names in those of the program would not be found.

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from tilelang.ascend import language as T

from tilelang_pto.compare.case import Case, Tolerance

from .launching import launch
from .sizes import CUBE_CORES, Sizes

__all__ = ["SLICE", "cases", "gemm_with_sqrsum", "run_gemm_with_sqrsum"]

SLICE = 256
"""Columns that go through the cores at a time."""

_TILE, _LANES, _STAGES = 64, 64, 2
_ROWS = _TILE // 2  # of a tile on each of the two vector cores


def gemm_with_sqrsum(width: int, mixes: int, splits: int) -> Any:
    """Program of the kernel, with each row cut into ``splits`` parts that are summed apart, so that few tokens occupy all cores.

    ``x`` (tokens, width) is bfloat16, ``fn`` (mixes, width), ``products`` (splits, tokens, mixes) and ``sqrsum`` (splits, tokens) are
    float32; ``width / splits`` is a multiple of 256.

    Both vector cores of a block widen half of a tile's rows to float32 and square them, and hand them to L1 in the fractal layout
    of the cube core, which multiplies in float32: nothing is rounded but sums.
    """
    tokens = T.dynamic("tokens")
    columns = -(-mixes // 16) * 16
    part = width // splits

    @T.prim_func
    def gemm_with_sqrsum(
        x: T.Tensor((tokens, width), T.bfloat16),
        fn: T.Tensor((mixes, width), T.float32),
        products: T.Tensor((splits, tokens, mixes), T.float32),
        sqrsum: T.Tensor((splits, tokens), T.float32),
    ):
        with T.Kernel(CUBE_CORES) as core:
            x_ub = T.alloc_shared((_ROWS, SLICE), T.bfloat16)
            wide_ub = T.alloc_shared((_ROWS, SLICE), T.float32)
            squares_ub = T.alloc_shared((_ROWS, _LANES), T.float32)
            sqrsum_ub = T.alloc_shared((1, _ROWS), T.float32)
            x_l1 = T.alloc_l1((_TILE, SLICE), T.float32)
            fn_l1 = T.alloc_l1((columns, SLICE), T.float32)
            total = T.alloc_l0c((_TILE, columns), T.float32)
            for tile, split in T.Persistent([T.ceildiv(tokens, _TILE), splits], CUBE_CORES, core, group_size=1):
                with T.SimdVF():
                    full = T.simd.pset(32)
                    zero = T.simd.vdup(T.float32(0), T.float32, full)
                    for row in T.serial(_ROWS):
                        T.simd.vsts(squares_ub[row, 0], zero, full)
                for step in T.Pipelined(part // SLICE, num_stages=_STAGES):
                    first = split * part + step * SLICE
                    T.dual_copy(x[tile * _TILE : (tile + 1) * _TILE, first : first + SLICE], x_ub)
                    with T.SimdVF():
                        full = T.simd.pset(32)
                        for row in T.serial(_ROWS):
                            squares = T.simd.alloc_var(T.float32)
                            squares = T.simd.vld(squares_ub[row, 0])
                            for chunk in T.serial(SLICE // _LANES):
                                wide = T.simd.vcvt(T.simd.vld(x_ub[row, chunk * _LANES], "UNPK_B16"), T.float32, full, part=0)
                                T.simd.vsts(wide_ub[row, chunk * _LANES], wide, full)
                                T.simd.vmula(squares, wide, wide, full)
                            T.simd.vsts(squares_ub[row, 0], squares, full)
                    T.dual_copy(wide_ub, x_l1)
                    T.copy(fn[0, first], fn_l1)
                    T.gemm(x_l1, fn_l1, total, transpose_B=True, clear_accum=step == 0)
                with T.SimdVF():
                    full, one = T.simd.pset(32), T.simd.pset(32, "PAT_VL1")
                    for row in T.serial(_ROWS):
                        T.simd.vsts(sqrsum_ub[0, row], T.simd.vcadd(T.simd.vld(squares_ub[row, 0]), full), one, "ONEPT_B32")
                T.dual_copy(sqrsum_ub, sqrsum[split : split + 1, tile * _TILE : (tile + 1) * _TILE])
                T.copy(total, products[split, tile * _TILE, 0])

    return gemm_with_sqrsum


class _GemmWithSqrsum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fn: torch.Tensor, splits: int) -> tuple[torch.Tensor, torch.Tensor]:
        (tokens, width), mixes = x.shape, fn.shape[0]
        products, sqrsum = fn.new_empty(splits, tokens, mixes), fn.new_empty(splits, tokens)
        launch(gemm_with_sqrsum, (width, mixes, splits), x, fn, products, sqrsum)
        ctx.save_for_backward(x, fn)
        return products, sqrsum

    @staticmethod
    def backward(  # type: ignore[override]
        ctx: Any, products_grad: torch.Tensor, sqrsum_grad: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, None]:
        x, fn = ctx.saved_tensors
        splits, tokens, mixes = products_grad.shape
        wide, rows = x.float().view(tokens, splits, -1).transpose(0, 1), fn.view(mixes, splits, -1).transpose(0, 1)
        x_grad = products_grad @ rows + 2 * sqrsum_grad[..., None] * wide
        fn_grad = products_grad.transpose(1, 2) @ wide
        return x_grad.transpose(0, 1).reshape(x.shape).to(x.dtype), fn_grad.transpose(0, 1).reshape(fn.shape), None


def run_gemm_with_sqrsum(x: torch.Tensor, fn: torch.Tensor, splits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Products and sums of squares of contiguous tensors of the right types and shapes, with gradients (plain matrix products)."""
    products, sqrsum = _GemmWithSqrsum.apply(x, fn, splits)
    return products, sqrsum


def _case(parameters: dict[str, int], tokens: int) -> Case:
    mhc, splits = parameters["mhc"], parameters["splits"]
    width, mixes = mhc * parameters["hidden"], mhc * (mhc + 2)

    def inputs(seed: int) -> list[torch.Tensor]:
        random = torch.Generator().manual_seed(seed)
        x = torch.randn(tokens, width, generator=random).bfloat16()
        fn = torch.randn(mixes, width, generator=random) * width**-0.5
        return [x, fn, torch.full((splits, tokens, mixes), float("nan")), torch.full((splits, tokens), float("nan"))]

    def reference(given: Any) -> list[torch.Tensor]:
        x, fn = (tensor.double().view(tensor.shape[0], splits, width // splits).transpose(0, 1) for tensor in given[:2])
        return [x @ fn.transpose(1, 2), x.square().sum(-1)]

    part = width // splits
    return Case(
        kernel="gemm_with_sqrsum",
        parameters=parameters,
        tokens=tokens,
        program=partial(gemm_with_sqrsum, width, mixes, splits),
        specialisation=(width, mixes, splits),
        inputs=inputs,
        outputs=(2, 3),
        reference=reference,
        # Half a unit of every sum: of the products, below 8 (standard deviation 1); of the squares, which only grow, relative.
        tolerances=(Tolerance(absolute=part * 8 * 2**-24), Tolerance(relative=(part / _LANES + 7) * 2**-24)),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """n0 (1, 2) x n1 (1024, 4096) x hidden (1280, 2560, 7680) x splits (1, 4), four streams."""
    for hidden, splits, n0, n1 in product((1280, 2560, 7680), (1, 4), (1, 2), (1024, 4096)):
        yield _case({"n0": n0, "n1": n1, "mhc": 4, "hidden": hidden, "splits": splits}, sizes.tokens(n0 * n1))
