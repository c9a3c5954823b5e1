"""Head mix: the weights with which the streams are added up after the last layer.

``out[t, s] = sigmoid(mix[t, s] * scale + base[s]) + eps``: a projection of the token's streams, gated by a learned scale and a learned
bias of each stream, as the weights in front of a layer are (mHC, arXiv:2512.24880, section 4.2).
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

__all__ = ["cases", "head_compute_mix", "head_compute_mix_backward", "head_compute_mix_forward"]

_THREADS = 256  # one weight each
_STREAMS = (2, 4, 8)


def head_compute_mix_forward(mhc: int, eps: float) -> Any:
    """Program of the forward kernel, all float32: ``mix`` and ``out`` (tokens, mhc), ``scale`` (1,), ``base`` (mhc,)."""
    rows = _THREADS // mhc
    tokens = T.dynamic("tokens")

    @T.prim_func
    def head_compute_mix_forward(
        mix: T.Tensor((tokens, mhc), T.float32),
        scale: T.Tensor((1,), T.float32),
        base: T.Tensor((mhc,), T.float32),
        out: T.Tensor((tokens, mhc), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            given = T.alloc_shared((rows, mhc), T.float32)
            weights = T.alloc_shared((rows, mhc), T.float32)
            T.annotate_buffer_versions({given: 2, weights: 2})
            for block in T.Persistent([T.ceildiv(tokens, rows)], VECTOR_CORES, core, group_size=1, num_stages=2):
                T.copy(mix[block * rows, 0], given)
                with T.SimtVF(threads=_THREADS):
                    for row, stream in T.Parallel(rows, mhc):
                        if block * rows + row < tokens:
                            weights[row, stream] = T.sigmoid(given[row, stream] * scale[0] + base[stream]) + eps
                T.copy(weights, out[block * rows, 0])

    return head_compute_mix_forward


def head_compute_mix_backward(mhc: int) -> Any:
    """Program of the backward kernel, all float32.

    ``out_grad``, ``mix`` and ``mix_grad`` (tokens, mhc), ``scale`` (1,), ``base`` (mhc,); ``scale_grads`` (cores, 1) and ``base_grads``
    (cores, mhc) are sums over the tokens of each core.
    """
    rows = _THREADS // mhc
    tokens = T.dynamic("tokens")

    @T.prim_func
    def head_compute_mix_backward(
        out_grad: T.Tensor((tokens, mhc), T.float32),
        mix: T.Tensor((tokens, mhc), T.float32),
        scale: T.Tensor((1,), T.float32),
        base: T.Tensor((mhc,), T.float32),
        mix_grad: T.Tensor((tokens, mhc), T.float32),
        scale_grads: T.Tensor((VECTOR_CORES, 1), T.float32),
        base_grads: T.Tensor((VECTOR_CORES, mhc), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core, T.SimtVF(threads=_THREADS):
            # Every thread adds up what its rows give; threads meet once, at the end.
            inner = T.alloc_fragment((rows, mhc), T.float32)
            weighted = T.alloc_fragment((rows, mhc), T.float32)
            T.clear(inner)
            T.clear(weighted)
            for block in T.Persistent([T.ceildiv(tokens, rows)], VECTOR_CORES, core, group_size=1):
                for row, stream in T.Parallel(rows, mhc):
                    token = block * rows + row
                    if token < tokens:
                        gate = T.sigmoid(mix[token, stream] * scale[0] + base[stream])
                        grad = out_grad[token, stream] * gate * (1 - gate)
                        inner[row, stream] += grad
                        weighted[row, stream] += grad * mix[token, stream]
                        mix_grad[token, stream] = grad * scale[0]
            of_base = T.alloc_fragment((mhc,), T.float32)
            of_streams = T.alloc_fragment((mhc,), T.float32)
            of_scale = T.alloc_fragment((1,), T.float32)
            T.reduce_sum(inner, of_base, dim=0)
            T.reduce_sum(weighted, of_streams, dim=0)
            T.reduce_sum(of_streams, of_scale, dim=0)
            T.copy(of_base, base_grads[core, :])
            T.copy(of_scale, scale_grads[core, :])

    return head_compute_mix_backward


class _HeadComputeMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mix: torch.Tensor, scale: torch.Tensor, base: torch.Tensor, eps: float) -> torch.Tensor:
        mhc = mix.shape[-1]
        rows = rows_of(mix)
        out = torch.empty_like(rows)
        launch(head_compute_mix_forward, (mhc, eps), rows, scale, base, out)
        ctx.save_for_backward(rows, scale, base)
        return out.view(mix.shape)

    @staticmethod
    def backward(ctx: Any, out_grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, None]:  # type: ignore[override]
        rows, scale, base = ctx.saved_tensors
        mhc = rows.shape[-1]
        mix_grad = torch.empty_like(rows)
        scale_grads, base_grads = rows.new_empty(VECTOR_CORES, 1), rows.new_empty(VECTOR_CORES, mhc)
        launch(head_compute_mix_backward, (mhc,), rows_of(out_grad), rows, scale, base, mix_grad, scale_grads, base_grads)
        return mix_grad.view(out_grad.shape), scale_grads.sum(0), base_grads.sum(0), None


def head_compute_mix(mix: torch.Tensor, scale: torch.Tensor, base: torch.Tensor, eps: float = 1e-2) -> torch.Tensor:
    """Weights of the streams, with gradients of the first three arguments.

    Args:
        mix: (..., mhc), float32; mhc is 2, 4 or 8.
        scale: (1,), float32.
        base: (mhc,), float32.
        eps: what every weight is at least.

    Returns:
        (..., mhc), float32.

    Raises:
        ValueError: a type, size or device is another.
    """
    name = "head_compute_mix"
    require_tensor(name, "mix", mix, torch.float32, (..., None))
    mhc = mix.shape[-1]
    require(mhc in _STREAMS, f"{name}: mhc is {mhc}, it has to be one of {_STREAMS}")
    require_tensor(name, "scale", scale, torch.float32, (1,), mix.device)
    require_tensor(name, "base", base, torch.float32, (mhc,), mix.device)
    return _HeadComputeMix.apply(mix, scale, base, eps)


_EPS = 1e-2


def _forward_case(parameters: dict[str, int], tokens: int) -> Case:
    mhc = parameters["mhc"]

    def reference(given: list[torch.Tensor]) -> list[torch.Tensor]:
        mix, scale, base = (tensor.double() for tensor in given[:3])
        return [torch.sigmoid(mix * scale + base) + _EPS]

    return Case(
        kernel="head_compute_mix_forward",
        parameters=parameters,
        tokens=tokens,
        program=partial(head_compute_mix_forward, mhc, _EPS),
        specialisation=(mhc, _EPS),
        inputs=lambda seed: normal(seed, (tokens, mhc), (1,), (mhc,)) + poisoned((tokens, mhc)),
        outputs=(3,),
        reference=reference,
        # The argument of the sigmoid is below 16 with two roundings, of which a quarter arrives at most; exp, the quotient and the
        # sums err by a few units in the last place of a number below 1.02.
        tolerances=(Tolerance(absolute=(16 / 4 * 2 + 4) * 2**-24),),
    )


def _backward_case(parameters: dict[str, int], tokens: int) -> Case:
    mhc = parameters["mhc"]

    def inputs(seed: int) -> list[torch.Tensor]:
        given = normal(seed, (tokens, mhc), (tokens, mhc), (1,), (mhc,))
        return given + poisoned((tokens, mhc), (VECTOR_CORES, 1), (VECTOR_CORES, mhc))

    def reference(given: list[torch.Tensor]) -> list[torch.Tensor]:
        out_grad, mix, scale, base = (tensor.double() for tensor in given[:4])
        gate = torch.sigmoid(mix * scale + base)
        grad = out_grad * gate * (1 - gate)
        block = _THREADS // mhc
        return [grad * scale, sums_of_cores((grad * mix).sum(1, keepdim=True), block), sums_of_cores(grad, block)]

    return Case(
        kernel="head_compute_mix_backward",
        parameters=parameters,
        tokens=tokens,
        program=partial(head_compute_mix_backward, mhc),
        specialisation=(mhc,),
        inputs=inputs,
        outputs=(4, 5, 6),
        reference=reference,
        # The gate errs by 12 * 2^-24 (see forward) and its derivative by no more; gradients, mixes and the scale are below 6.
        # A core adds up at most 128 tokens (512 numbers for the scale), in a tree of the depth of 8 sums.
        tolerances=(
            Tolerance(absolute=6 * 6 * 12 * 2**-24),
            Tolerance(relative=8 * 2**-24, absolute=512**0.5 * 6 * 6 * 12 * 2**-24),
            Tolerance(relative=8 * 2**-24, absolute=128**0.5 * 6 * 12 * 2**-24),
        ),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """n0 (1, 2) x n1 (1024, 4096) with 4 streams, forward and backward."""
    for n0, n1 in product((1, 2), (1024, 4096)):
        for case in (_forward_case, _backward_case):
            yield case({"n0": n0, "n1": n1, "mhc": 4}, sizes.tokens(n0 * n1, divisor=2))
