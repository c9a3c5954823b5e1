"""Pre, fused: all that stands between the projection of the streams and a layer, in one kernel.

From the partial products of ``gemm_with_sqrsum`` to the weights of the streams before, behind and beside the layer, and the layer's input:
reduction and RMS normalisation, scale and base, sigmoids, Sinkhorn normalisation, weighted sum (mHC, arXiv:2512.24880, sections 4.2 and
4.3).
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
from tilelang.ascend import language as T

from tilelang_pto.compare.case import Case, Tolerance

from .checks import require, require_tensor
from .launching import launch
from .sizes import VECTOR_CORES, Sizes

__all__ = ["Constants", "cases", "pre_big_fuse", "pre_big_fuse_forward"]

_BLOCK, _COLUMNS, _THREADS, _STAGES = 16, 256, 256, 2
_MOST_STREAMS = 8


@dataclass(frozen=True)
class Constants:
    """What does not depend on the token.

    Attributes:
        rms_eps: added to the mean of the squares of a token.
        pre_eps: added to the weights before the layer.
        post_scale: largest weight behind the layer.
        sinkhorn_eps: added to what Sinkhorn normalisation divides by, and to the softmax it starts with.
        repeat: its rounds, at least 1.
    """

    rms_eps: float = 1e-6
    pre_eps: float = 1e-6
    post_scale: float = 2.0
    sinkhorn_eps: float = 1e-6
    repeat: int = 10


def pre_big_fuse_forward(hidden: int, mhc: int, splits: int, constants: Constants) -> Any:
    """Program of the kernel.

    ``parts`` (splits, tokens, mhc * (mhc + 2)), ``square_parts`` (splits, tokens), ``scale`` (3), ``base`` (mhc * (mhc + 2)), ``post_mix``
    (tokens, mhc) and ``comb_mix`` (tokens, mhc * mhc) are float32, ``residual`` (tokens, mhc, hidden) and ``layer_input`` (tokens, hidden)
    bfloat16; hidden is a multiple of 256. Of the mixes of a token, the first mhc are its weights before the layer, the next mhc
    those behind it, the rest the matrix beside it by rows; ``scale`` has a factor for each of the three.

    One thread makes the weights of a token, for 16 tokens at a time, and 256 threads their sums.
    """
    rms_eps, pre_eps, post_scale, sinkhorn_eps, repeat = astuple(constants)
    mixes, rest = mhc * (mhc + 2), 2 * mhc
    inverse_width = 1 / (mhc * hidden)
    tokens = T.dynamic("tokens")

    @T.prim_func
    def pre_big_fuse_forward(
        parts: T.Tensor((splits, tokens, mixes), T.float32),
        square_parts: T.Tensor((splits, tokens), T.float32),
        scale: T.Tensor((3,), T.float32),
        base: T.Tensor((mixes,), T.float32),
        residual: T.Tensor((tokens, mhc, hidden), T.bfloat16),
        post_mix: T.Tensor((tokens, mhc), T.float32),
        comb_mix: T.Tensor((tokens, mhc * mhc), T.float32),
        layer_input: T.Tensor((tokens, hidden), T.bfloat16),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            scale_ub = T.alloc_shared((3,), T.float32)
            base_ub = T.alloc_shared((mixes,), T.float32)
            parts_ub = T.alloc_shared((splits, _BLOCK, mixes), T.float32)
            square_parts_ub = T.alloc_shared((splits, _BLOCK), T.float32)
            pre_ub = T.alloc_shared((_BLOCK, mhc), T.float32)
            post_ub = T.alloc_shared((_BLOCK, mhc), T.float32)
            comb_ub = T.alloc_shared((_BLOCK, mhc * mhc), T.float32)
            residual_ub = T.alloc_shared((_BLOCK, mhc, _COLUMNS), T.bfloat16)
            input_ub = T.alloc_shared((_BLOCK, _COLUMNS), T.bfloat16)
            T.copy(scale, scale_ub)
            T.copy(base, base_ub)
            for block in T.Persistent([T.ceildiv(tokens, _BLOCK)], VECTOR_CORES, core, group_size=1):
                T.copy(parts[0, block * _BLOCK, 0], parts_ub)
                T.copy(square_parts[0, block * _BLOCK], square_parts_ub)
                with T.SimtVF(threads=32):
                    mix = T.alloc_local((mixes,), T.float32)
                    total = T.alloc_local((1,), T.float32)
                    top = T.alloc_local((1,), T.float32)
                    for token in T.Parallel(_BLOCK):
                        total[0] = 0
                        for split in T.serial(splits):
                            total[0] += square_parts_ub[split, token]
                        total[0] = 1 / T.sqrt(total[0] * T.float32(inverse_width) + T.float32(rms_eps))
                        for m in T.serial(mixes):
                            mix[m] = 0
                            for split in T.serial(splits):
                                mix[m] += parts_ub[split, token, m]
                            mix[m] = mix[m] * total[0] * scale_ub[T.min(m // mhc, 2)] + base_ub[m]
                        for m in T.serial(mhc):
                            pre_ub[token, m] = 1 / (1 + T.exp(-mix[m])) + T.float32(pre_eps)
                            post_ub[token, m] = T.float32(post_scale) / (1 + T.exp(-mix[mhc + m]))
                        for row in T.serial(mhc):
                            top[0] = mix[rest + row * mhc]
                            for column in T.serial(1, mhc):
                                top[0] = T.max(top[0], mix[rest + row * mhc + column])
                            total[0] = 0
                            for column in T.serial(mhc):
                                mix[rest + row * mhc + column] = T.exp(mix[rest + row * mhc + column] - top[0])
                                total[0] += mix[rest + row * mhc + column]
                            for column in T.serial(mhc):
                                mix[rest + row * mhc + column] = mix[rest + row * mhc + column] / total[0] + T.float32(sinkhorn_eps)
                        for step in T.serial(repeat):
                            if step > 0:
                                for row in T.serial(mhc):
                                    total[0] = T.float32(sinkhorn_eps)
                                    for column in T.serial(mhc):
                                        total[0] += mix[rest + row * mhc + column]
                                    for column in T.serial(mhc):
                                        mix[rest + row * mhc + column] = mix[rest + row * mhc + column] / total[0]
                            for column in T.serial(mhc):
                                total[0] = T.float32(sinkhorn_eps)
                                for row in T.serial(mhc):
                                    total[0] += mix[rest + row * mhc + column]
                                for row in T.serial(mhc):
                                    mix[rest + row * mhc + column] = mix[rest + row * mhc + column] / total[0]
                        for m in T.serial(mhc * mhc):
                            comb_ub[token, m] = mix[rest + m]
                T.copy(post_ub, post_mix[block * _BLOCK, 0])
                T.copy(comb_ub, comb_mix[block * _BLOCK, 0])
                for part in T.Pipelined(hidden // _COLUMNS, num_stages=_STAGES):
                    T.copy(residual[block * _BLOCK, 0, part * _COLUMNS], residual_ub)
                    with T.SimtVF(threads=_THREADS):
                        sums = T.alloc_fragment((_BLOCK, _COLUMNS), T.float32)
                        T.clear(sums)
                        for stream in T.serial(mhc):
                            for token, column in T.Parallel(_BLOCK, _COLUMNS):
                                sums[token, column] += pre_ub[token, stream] * residual_ub[token, stream, column]
                        T.copy(sums, input_ub)
                    T.copy(input_ub, layer_input[block * _BLOCK, part * _COLUMNS])

    return pre_big_fuse_forward


def pre_big_fuse(
    parts: torch.Tensor,
    square_parts: torch.Tensor,
    scale: torch.Tensor,
    base: torch.Tensor,
    residual: torch.Tensor,
    constants: Constants | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Weights behind and beside a layer, and its input; without gradients (training takes the kernels one by one).

    Args:
        parts: (splits, ..., mhc * (mhc + 2)), float32, partial products of the streams with the rows of the projection.
        square_parts: (splits, ...), float32, partial sums of the squares of the streams.
        scale: (3), float32, factors of the three groups of mixes.
        base: (mhc * (mhc + 2)), float32, added to them.
        residual: (..., mhc, hidden), bfloat16, the streams; mhc is at most 8 and hidden a multiple of 256.
        constants: those of the operator; the default ones if not given.

    Returns:
        ``post_mix`` (..., mhc) and ``comb_mix`` (..., mhc, mhc), float32, and ``layer_input`` (..., hidden), bfloat16.

    Raises:
        ValueError: types or sizes are others.
    """
    constants = constants or Constants()
    require_tensor("pre_big_fuse", "residual", residual, torch.bfloat16, (..., None, None))
    *rows, mhc, hidden = residual.shape
    mixes = mhc * (mhc + 2)
    require(1 <= mhc <= _MOST_STREAMS, f"pre_big_fuse: mhc is {mhc}, it has to be from 1 to {_MOST_STREAMS}")
    require(hidden > 0 and hidden % _COLUMNS == 0, f"pre_big_fuse: hidden is {hidden}, it has to be a multiple of {_COLUMNS}")
    require(constants.repeat >= 1, f"pre_big_fuse: repeat is {constants.repeat}, it has to be at least 1")
    require_tensor("pre_big_fuse", "parts", parts, torch.float32, (None, *rows, mixes), residual.device)
    splits = parts.shape[0]
    require_tensor("pre_big_fuse", "square_parts", square_parts, torch.float32, (splits, *rows), residual.device)
    require_tensor("pre_big_fuse", "scale", scale, torch.float32, (3,), residual.device)
    require_tensor("pre_big_fuse", "base", base, torch.float32, (mixes,), residual.device)
    streams = residual.detach().reshape(-1, mhc, hidden).contiguous()
    tokens = streams.shape[0]
    given = [
        tensor.detach().contiguous() for tensor in (parts.reshape(splits, tokens, mixes), square_parts.reshape(splits, tokens), scale, base)
    ]
    post_mix, comb_mix = scale.new_empty(tokens, mhc), scale.new_empty(tokens, mhc * mhc)
    layer_input = streams.new_empty(tokens, hidden)
    launch(pre_big_fuse_forward, (hidden, mhc, splits, constants), *given, streams, post_mix, comb_mix, layer_input)
    return post_mix.view(*rows, mhc), comb_mix.view(*rows, mhc, mhc), layer_input.view(*rows, hidden)


def _reference(given: Any, constants: Constants) -> list[torch.Tensor]:
    parts, square_parts, scale, base, residual = (tensor.double() for tensor in given[:5])
    tokens, mhc, hidden = residual.shape
    norm = (square_parts.sum(0) / (mhc * hidden) + constants.rms_eps).rsqrt()
    mix = parts.sum(0) * norm[:, None] * scale.repeat_interleave(torch.tensor([mhc, mhc, mhc * mhc])) + base
    pre = mix[:, :mhc].sigmoid() + constants.pre_eps
    comb = mix[:, 2 * mhc :].view(tokens, mhc, mhc).softmax(-1) + constants.sinkhorn_eps
    for step in range(constants.repeat):
        if step:
            comb = comb / (comb.sum(-1, keepdim=True) + constants.sinkhorn_eps)
        comb = comb / (comb.sum(-2, keepdim=True) + constants.sinkhorn_eps)
    layer_input = (pre[..., None] * residual).sum(1)
    return [mix[:, mhc : 2 * mhc].sigmoid() * constants.post_scale, comb.flatten(1), layer_input]


def _case(parameters: dict[str, int], tokens: int, constants: Constants | None = None) -> Case:
    constants = constants or Constants()
    hidden, mhc, splits = parameters["hidden"], parameters["mhc"], parameters["splits"]
    mixes = mhc * (mhc + 2)

    def inputs(seed: int) -> list[torch.Tensor]:
        random = torch.Generator().manual_seed(seed)
        parts = torch.randn(splits, tokens, mixes, generator=random)
        square_parts = (torch.rand(splits, tokens, generator=random) + 0.5) * (mhc * hidden / splits)
        scale, base = torch.rand(3, generator=random) + 0.5, torch.randn(mixes, generator=random)
        residual = torch.randn(tokens, mhc, hidden, generator=random).bfloat16()
        empty = [torch.full((tokens, columns), float("nan")) for columns in (mhc, mhc * mhc, hidden)]
        return [parts, square_parts, scale, base, residual, *empty[:2], empty[2].bfloat16()]

    return Case(
        kernel="pre_big_fuse_forward",
        parameters=parameters,
        tokens=tokens,
        program=partial(pre_big_fuse_forward, hidden, mhc, splits, constants),
        specialisation=(hidden, mhc, splits, constants),
        inputs=inputs,
        outputs=(5, 6, 7),
        reference=lambda given: _reference(given, constants),
        # Mixes are below 32 in magnitude and come of splits + 6 roundings, which sigmoids and exponentials pass on as errors of that size;
        # half a unit in the last place of bfloat16 for the sums. Every round of the normalisation rounds once or twice more.
        tolerances=(
            Tolerance(absolute=(splits + 8) * 32 * 2**-24),
            Tolerance(absolute=(splits + 8) * 32 * 2**-24 + 4 * constants.repeat * (mhc + 1) * 2**-24),
            Tolerance(relative=2**-8, absolute=mhc * 8 * (splits + 8) * 32 * 2**-24),
        ),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """n0 (1, 2) x n1 (1024, 4096) x hidden (1280, 2560, 7680), four streams, one part of the products."""
    for hidden, n0, n1 in product((1280, 2560, 7680), (1, 2), (1024, 4096)):
        yield _case({"n0": n0, "n1": n1, "mhc": 4, "hidden": hidden, "splits": 1}, sizes.tokens(n0 * n1))
