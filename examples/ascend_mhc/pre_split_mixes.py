"""Split mixes: a projection of a token's streams becomes the three sets of weights that mix them at a layer.

Of the ``mhc * (mhc + 2)`` columns of ``mixes``, ``mhc`` each give the weights in front of and behind the layer and ``mhc * mhc`` the
matrix that mixes the streams among themselves, before it is made doubly stochastic (mHC, arXiv:2512.24880, section 4.2):

* ``pre[t, s] = sigmoid(mixes[t, s] * scale[0] + base[s]) + eps``
* ``post[t, s] = sigmoid(mixes[t, mhc + s] * scale[1] + base[mhc + s]) * factor``
* ``comb[t, p] = mixes[t, 2 * mhc + p] * scale[2] + base[2 * mhc + p]``
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from tilelang.ascend import language as T

from tilelang_pto.compare.case import Case, Tolerance

from .checks import require, require_tensor
from .gradients_of_cores import sums_of_cores
from .launching import launch
from .sizes import VECTOR_CORES, Sizes
from .tensors import normal, poisoned, rows_of

__all__ = ["cases", "pre_split_mixes", "pre_split_mixes_backward", "pre_split_mixes_forward"]

_THREADS = 256  # one weight in front of and one behind the layer each
_STREAMS = (2, 4, 8)


def pre_split_mixes_forward(mhc: int, factor: float, eps: float) -> Any:
    """Program of the forward kernel, all float32.

    ``mixes`` (tokens, mhc * (mhc + 2)), ``scale`` (3,), ``base`` (mhc * (mhc + 2),); ``pre`` and ``post`` (tokens, mhc), ``comb`` (tokens,
    mhc * mhc).
    """
    rows, width, pairs = _THREADS // mhc, mhc * (mhc + 2), mhc * mhc
    tokens = T.dynamic("tokens")

    @T.prim_func
    def pre_split_mixes_forward(
        mixes: T.Tensor((tokens, width), T.float32),
        scale: T.Tensor((3,), T.float32),
        base: T.Tensor((width,), T.float32),
        pre: T.Tensor((tokens, mhc), T.float32),
        post: T.Tensor((tokens, mhc), T.float32),
        comb: T.Tensor((tokens, pairs), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            given = T.alloc_shared((rows, width), T.float32)
            front = T.alloc_shared((rows, mhc), T.float32)
            behind = T.alloc_shared((rows, mhc), T.float32)
            among = T.alloc_shared((rows, pairs), T.float32)
            T.annotate_buffer_versions({given: 2, front: 2, behind: 2, among: 2})
            for block in T.Persistent([T.ceildiv(tokens, rows)], VECTOR_CORES, core, group_size=1, num_stages=2):
                T.copy(mixes[block * rows, 0], given)
                with T.SimtVF(threads=_THREADS):
                    for row, stream in T.Parallel(rows, mhc):
                        if block * rows + row < tokens:
                            front[row, stream] = T.sigmoid(given[row, stream] * scale[0] + base[stream]) + eps
                            gate = T.sigmoid(given[row, mhc + stream] * scale[1] + base[mhc + stream])
                            behind[row, stream] = gate * factor
                    for row, pair in T.Parallel(rows, pairs):
                        if block * rows + row < tokens:
                            among[row, pair] = given[row, 2 * mhc + pair] * scale[2] + base[2 * mhc + pair]
                T.copy(front, pre[block * rows, 0])
                T.copy(behind, post[block * rows, 0])
                T.copy(among, comb[block * rows, 0])

    return pre_split_mixes_forward


def pre_split_mixes_backward(mhc: int, factor: float) -> Any:
    """Program of the backward kernel, all float32.

    ``pre_grad`` and ``post_grad`` (tokens, mhc), ``comb_grad`` (tokens, mhc * mhc), ``mixes`` and ``mixes_grad`` (tokens, mhc * (mhc + 2)),
    ``scale`` (3,), ``base`` (mhc * (mhc + 2),); ``scale_grads`` (cores, 3) and ``base_grads`` (cores, mhc * (mhc + 2)) are sums over the
    tokens of each core. The gates are computed again from ``mixes``, which is read anyhow.
    """
    rows, width, pairs = _THREADS // mhc, mhc * (mhc + 2), mhc * mhc
    tokens = T.dynamic("tokens")

    @T.prim_func
    def pre_split_mixes_backward(
        pre_grad: T.Tensor((tokens, mhc), T.float32),
        post_grad: T.Tensor((tokens, mhc), T.float32),
        comb_grad: T.Tensor((tokens, pairs), T.float32),
        mixes: T.Tensor((tokens, width), T.float32),
        scale: T.Tensor((3,), T.float32),
        base: T.Tensor((width,), T.float32),
        mixes_grad: T.Tensor((tokens, width), T.float32),
        scale_grads: T.Tensor((VECTOR_CORES, 3), T.float32),
        base_grads: T.Tensor((VECTOR_CORES, width), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core, T.SimtVF(threads=_THREADS):
            # Every thread adds up what its rows give, plain and times the mix; threads meet once, at the end.
            front = T.alloc_fragment((rows, mhc), T.float32)
            front_weighted = T.alloc_fragment((rows, mhc), T.float32)
            behind = T.alloc_fragment((rows, mhc), T.float32)
            behind_weighted = T.alloc_fragment((rows, mhc), T.float32)
            among = T.alloc_fragment((rows, pairs), T.float32)
            among_weighted = T.alloc_fragment((rows, pairs), T.float32)
            T.clear(front)
            T.clear(front_weighted)
            T.clear(behind)
            T.clear(behind_weighted)
            T.clear(among)
            T.clear(among_weighted)
            for block in T.Persistent([T.ceildiv(tokens, rows)], VECTOR_CORES, core, group_size=1):
                for row, stream in T.Parallel(rows, mhc):
                    token = block * rows + row
                    if token < tokens:
                        gate = T.sigmoid(mixes[token, stream] * scale[0] + base[stream])
                        grad = pre_grad[token, stream] * gate * (1 - gate)
                        front[row, stream] += grad
                        front_weighted[row, stream] += grad * mixes[token, stream]
                        mixes_grad[token, stream] = grad * scale[0]
                        post_gate = T.sigmoid(mixes[token, mhc + stream] * scale[1] + base[mhc + stream])
                        gate_grad = post_grad[token, stream] * factor * post_gate * (1 - post_gate)
                        behind[row, stream] += gate_grad
                        behind_weighted[row, stream] += gate_grad * mixes[token, mhc + stream]
                        mixes_grad[token, mhc + stream] = gate_grad * scale[1]
                for row, pair in T.Parallel(rows, pairs):
                    token = block * rows + row
                    if token < tokens:
                        among[row, pair] += comb_grad[token, pair]
                        among_weighted[row, pair] += comb_grad[token, pair] * mixes[token, 2 * mhc + pair]
                        mixes_grad[token, 2 * mhc + pair] = comb_grad[token, pair] * scale[2]
            of_front = T.alloc_fragment((mhc,), T.float32)
            of_behind = T.alloc_fragment((mhc,), T.float32)
            of_among = T.alloc_fragment((pairs,), T.float32)
            T.reduce_sum(front, of_front, dim=0)
            T.reduce_sum(behind, of_behind, dim=0)
            T.reduce_sum(among, of_among, dim=0)
            T.copy(of_front, base_grads[core, 0:mhc])
            T.copy(of_behind, base_grads[core, mhc : 2 * mhc])
            T.copy(of_among, base_grads[core, 2 * mhc :])
            front_columns = T.alloc_fragment((mhc,), T.float32)
            behind_columns = T.alloc_fragment((mhc,), T.float32)
            among_columns = T.alloc_fragment((pairs,), T.float32)
            T.reduce_sum(front_weighted, front_columns, dim=0)
            T.reduce_sum(behind_weighted, behind_columns, dim=0)
            T.reduce_sum(among_weighted, among_columns, dim=0)
            front_total = T.alloc_fragment((1,), T.float32)
            behind_total = T.alloc_fragment((1,), T.float32)
            among_total = T.alloc_fragment((1,), T.float32)
            T.reduce_sum(front_columns, front_total, dim=0)
            T.reduce_sum(behind_columns, behind_total, dim=0)
            T.reduce_sum(among_columns, among_total, dim=0)
            T.copy(front_total, scale_grads[core, 0:1])
            T.copy(behind_total, scale_grads[core, 1:2])
            T.copy(among_total, scale_grads[core, 2:3])

    return pre_split_mixes_backward


class _PreSplitMixes(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, mixes: torch.Tensor, scale: torch.Tensor, base: torch.Tensor, mhc: int, factor: float, eps: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows = rows_of(mixes)
        outputs = [rows.new_empty(rows.shape[0], width) for width in (mhc, mhc, mhc * mhc)]
        launch(pre_split_mixes_forward, (mhc, factor, eps), rows, scale, base, *outputs)
        ctx.save_for_backward(rows, scale, base)
        ctx.mhc, ctx.factor, ctx.shape = mhc, factor, mixes.shape
        pre, post, comb = outputs
        outer = mixes.shape[:-1]
        return pre.view(*outer, mhc), post.view(*outer, mhc), comb.view(*outer, mhc, mhc)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        rows, scale, base = ctx.saved_tensors
        mixes_grad = torch.empty_like(rows)
        scale_grads, base_grads = rows.new_empty(VECTOR_CORES, 3), rows.new_empty(VECTOR_CORES, rows.shape[1])
        flat = [rows_of(grad) for grad in (*grads[:2], grads[2].flatten(-2))]
        launch(pre_split_mixes_backward, (ctx.mhc, ctx.factor), *flat, rows, scale, base, mixes_grad, scale_grads, base_grads)
        return mixes_grad.view(ctx.shape), scale_grads.sum(0), base_grads.sum(0), None, None, None


def pre_split_mixes(
    mixes: torch.Tensor, scale: torch.Tensor, base: torch.Tensor, mhc: int, *, factor: float = 2.0, eps: float = 1e-2
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The weights of a layer, with gradients of the first three arguments.

    Args:
        mixes: (..., mhc * (mhc + 2)), float32.
        scale: (3,), float32: for the weights in front of the layer, behind it, and among the streams.
        base: (mhc * (mhc + 2),), float32.
        mhc: number of streams: 2, 4 or 8.
        factor: the largest weight behind the layer.
        eps: what every weight in front of the layer is at least.

    Returns:
        ``pre`` (..., mhc), ``post`` (..., mhc) and ``comb`` (..., mhc, mhc), float32.

    Raises:
        ValueError: a type, size or device is another.
    """
    name = "pre_split_mixes"
    require(mhc in _STREAMS, f"{name}: mhc is {mhc}, it has to be one of {_STREAMS}")
    width = mhc * (mhc + 2)
    require_tensor(name, "mixes", mixes, torch.float32, (..., width))
    require_tensor(name, "scale", scale, torch.float32, (3,), mixes.device)
    require_tensor(name, "base", base, torch.float32, (width,), mixes.device)
    return _PreSplitMixes.apply(mixes, scale, base, mhc, factor, eps)


_FACTOR, _EPS = 2.0, 1e-2


def _forward_case(parameters: dict[str, int], tokens: int) -> Case:
    mhc = parameters["mhc"]
    width, pairs = mhc * (mhc + 2), mhc * mhc

    def reference(given: list[torch.Tensor]) -> list[torch.Tensor]:
        mixes, scale, base = (tensor.double() for tensor in given[:3])
        front, behind, among = (mixes * scale.repeat_interleave(torch.tensor([mhc, mhc, pairs])) + base).split([mhc, mhc, pairs], dim=1)
        return [torch.sigmoid(front) + _EPS, torch.sigmoid(behind) * _FACTOR, among]

    # The linear part is below 16 with two roundings, of which a quarter gets through a sigmoid at most; exp, the quotient and the sums err
    # by a few units in the last place of a number below 1.02.
    gate = (16 / 4 * 2 + 4) * 2**-24
    return Case(
        kernel="pre_split_mixes_forward",
        parameters=parameters,
        tokens=tokens,
        program=partial(pre_split_mixes_forward, mhc, _FACTOR, _EPS),
        specialisation=(mhc, _FACTOR, _EPS),
        inputs=lambda seed: normal(seed, (tokens, width), (3,), (width,)) + poisoned((tokens, mhc), (tokens, mhc), (tokens, pairs)),
        outputs=(3, 4, 5),
        reference=reference,
        tolerances=(Tolerance(absolute=gate), Tolerance(absolute=_FACTOR * gate), Tolerance(absolute=2 * 16 * 2**-24)),
    )


def _backward_case(parameters: dict[str, int], tokens: int) -> Case:
    mhc = parameters["mhc"]
    width, pairs = mhc * (mhc + 2), mhc * mhc

    def inputs(seed: int) -> list[torch.Tensor]:
        given = normal(seed, (tokens, mhc), (tokens, mhc), (tokens, pairs), (tokens, width), (3,), (width,))
        return given + poisoned((tokens, width), (VECTOR_CORES, 3), (VECTOR_CORES, width))

    def reference(given: list[torch.Tensor]) -> list[torch.Tensor]:
        pre_grad, post_grad, comb_grad, mixes, scale, base = (tensor.double() for tensor in given[:6])
        scales = scale.repeat_interleave(torch.tensor([mhc, mhc, pairs]))
        gates = torch.sigmoid(mixes * scales + base)[:, : 2 * mhc]
        grads = torch.cat([torch.cat([pre_grad, post_grad * _FACTOR], dim=1) * gates * (1 - gates), comb_grad], dim=1)
        block = _THREADS // mhc
        weighted = [part.sum(1) for part in (grads * mixes).split([mhc, mhc, pairs], dim=1)]
        return [grads * scales, sums_of_cores(torch.stack(weighted, dim=1), block), sums_of_cores(grads, block)]

    # A gate errs by 12 * 2^-24 (see forward) and its derivative by no more; gradients, mixes and scales are below 6, the factor is 2.
    # A core adds up at most 128 tokens (2048 numbers for a scale), in a tree of the depth of 10 sums.
    error = 6 * 12 * 2**-24 * _FACTOR
    return Case(
        kernel="pre_split_mixes_backward",
        parameters=parameters,
        tokens=tokens,
        program=partial(pre_split_mixes_backward, mhc, _FACTOR),
        specialisation=(mhc, _FACTOR),
        inputs=inputs,
        outputs=(6, 7, 8),
        reference=reference,
        tolerances=(
            Tolerance(absolute=6 * error),
            Tolerance(relative=10 * 2**-24, absolute=2048**0.5 * 6 * error),
            Tolerance(relative=10 * 2**-24, absolute=128**0.5 * error),
        ),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """n0 (1, 2) x n1 (1024, 4096) with 4 streams, forward and backward."""
    for n0, n1 in product((1, 2), (1024, 4096)):
        for case in (_forward_case, _backward_case):
            yield case({"n0": n0, "n1": n1, "mhc": 4}, sizes.tokens(n0 * n1, divisor=2))
