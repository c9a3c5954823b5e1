"""Expand: a hidden vector becomes the ``mhc`` residual streams of hyper-connections; backward adds the gradients of the streams.

``out[t, s, :] = x[t, :]``, the start of the streams before the first layer (Hyper-Connections, arXiv:2409.19606, section 2; mHC,
arXiv:2512.24880, keeps it).
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
from .tensors import normal, poisoned, rows_of

__all__ = ["cases", "expand", "expand_backward", "expand_forward"]

_GRANULE, _LARGEST_BLOCK, _PER_THREAD, _VERSIONS = 256, 2560, 8, 3
_MOST_STREAMS = 14  # beyond that the buffers do not fit into UB


def expand_forward(hidden: int, mhc: int) -> Any:
    """Program of the forward kernel: ``x`` (tokens, hidden) and ``out`` (tokens, mhc, hidden), bfloat16."""
    block = _block(hidden)
    tokens = T.dynamic("tokens")

    @T.prim_func
    def expand_forward(x: T.Tensor((tokens, hidden), T.bfloat16), out: T.Tensor((tokens, mhc, hidden), T.bfloat16)):
        with T.Kernel(VECTOR_CORES) as core:
            row = T.alloc_shared((block,), T.bfloat16)
            streams = T.alloc_shared((mhc, block), T.bfloat16)
            T.annotate_buffer_versions({row: _VERSIONS, streams: _VERSIONS})
            for token, part in T.Persistent([tokens, hidden // block], VECTOR_CORES, core, group_size=1, num_stages=_VERSIONS):
                T.copy(x[token, part * block], row)
                with T.SimtVF(threads=block // _PER_THREAD):
                    value = T.alloc_fragment((block,), T.bfloat16)
                    T.copy(row, value)
                    for stream, column in T.Parallel(mhc, block):
                        streams[stream, column] = value[column]
                T.copy(streams, out[token, 0, part * block])

    return expand_forward


def expand_backward(hidden: int, mhc: int) -> Any:
    """Program of the backward kernel: ``out_grad`` (tokens, mhc, hidden) and ``x_grad`` (tokens, hidden), bfloat16.

    Streams are added in their order in float32, and the sum is rounded once.
    """
    block = _block(hidden)
    tokens = T.dynamic("tokens")

    @T.prim_func
    def expand_backward(out_grad: T.Tensor((tokens, mhc, hidden), T.bfloat16), x_grad: T.Tensor((tokens, hidden), T.bfloat16)):
        with T.Kernel(VECTOR_CORES) as core:
            grads = T.alloc_shared((mhc, block), T.bfloat16)
            total = T.alloc_shared((block,), T.bfloat16)
            T.annotate_buffer_versions({grads: _VERSIONS, total: _VERSIONS})
            for token, part in T.Persistent([tokens, hidden // block], VECTOR_CORES, core, group_size=1, num_stages=_VERSIONS):
                T.copy(out_grad[token, 0, part * block], grads)
                with T.SimtVF(threads=block // _PER_THREAD):
                    running = T.alloc_fragment((block,), T.float32)
                    T.clear(running)
                    for stream in T.serial(mhc):
                        for column in T.Parallel(block):
                            running[column] += T.cast(grads[stream, column], T.float32)
                    T.copy(running, total)
                T.copy(total, x_grad[token, part * block])

    return expand_backward


def _block(hidden: int) -> int:
    """Columns a core takes at a time: what is copied at once, a multiple of what the threads take."""
    return max(block for block in range(_GRANULE, _LARGEST_BLOCK + 1, _GRANULE) if hidden % block == 0)


def _check_sizes(hidden: int, mhc: int) -> None:
    require(hidden > 0 and hidden % _GRANULE == 0, f"expand: hidden is {hidden}, it has to be a multiple of {_GRANULE}")
    require(1 <= mhc <= _MOST_STREAMS, f"expand: mhc is {mhc}, it has to be from 1 to {_MOST_STREAMS}")


class _Expand(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, mhc: int) -> torch.Tensor:
        hidden = x.shape[-1]
        out = x.new_empty(*x.shape[:-1], mhc, hidden)
        launch(expand_forward, (hidden, mhc), rows_of(x), rows_of(out, 2))
        return out

    @staticmethod
    def backward(ctx: Any, out_grad: torch.Tensor) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        *rows, mhc, hidden = out_grad.shape
        x_grad = out_grad.new_empty(*rows, hidden)
        launch(expand_backward, (hidden, mhc), rows_of(out_grad, 2), rows_of(x_grad))
        return x_grad, None


def expand(x: torch.Tensor, mhc: int) -> torch.Tensor:
    """The streams of a hidden state, with gradient.

    Args:
        x: (..., hidden), bfloat16; hidden is a multiple of 256.
        mhc: number of streams, from 1 to 14.

    Returns:
        (..., mhc, hidden), bfloat16.

    Raises:
        ValueError: type or sizes are others.
    """
    require_tensor("expand", "x", x, torch.bfloat16, (..., None))
    _check_sizes(x.shape[-1], mhc)
    return _Expand.apply(x, mhc)


def _forward_case(parameters: dict[str, int], tokens: int) -> Case:
    hidden, mhc = parameters["hidden"], parameters["mhc"]

    def inputs(seed: int) -> list[torch.Tensor]:
        return normal(seed, (tokens, hidden), dtype=torch.bfloat16) + poisoned((tokens, mhc, hidden), dtype=torch.bfloat16)

    return Case(
        kernel="expand_forward",
        parameters=parameters,
        tokens=tokens,
        program=partial(expand_forward, hidden, mhc),
        specialisation=(hidden, mhc),
        inputs=inputs,
        outputs=(1,),
        reference=lambda given: [given[0][:, None].expand(-1, mhc, -1)],
        tolerances=(Tolerance(),),  # copies
    )


def _backward_case(parameters: dict[str, int], tokens: int) -> Case:
    hidden, mhc = parameters["hidden"], parameters["mhc"]

    def inputs(seed: int) -> list[torch.Tensor]:
        return normal(seed, (tokens, mhc, hidden), dtype=torch.bfloat16) + poisoned((tokens, hidden), dtype=torch.bfloat16)

    return Case(
        kernel="expand_backward",
        parameters=parameters,
        tokens=tokens,
        program=partial(expand_backward, hidden, mhc),
        specialisation=(hidden, mhc),
        inputs=inputs,
        outputs=(1,),
        reference=lambda given: [given[0].sum(1, dtype=torch.float64)],
        # Half a unit in the last place of bfloat16, and of at most 8 sums in float32 of magnitude below 32 (6 sigma of 8 normal numbers).
        tolerances=(Tolerance(relative=2**-8, absolute=8 * 32 * 2**-24),),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """n0 (1, 2) x n1 (1024, 4096) x mhc (2, 4, 8) x hidden (1280, 2560, 7680), forward and backward."""
    for mhc, hidden, n0, n1 in product((2, 4, 8), (1280, 2560, 7680), (1, 2), (1024, 4096)):
        parameters = {"n0": n0, "n1": n1, "mhc": mhc, "hidden": hidden}
        for case in (_forward_case, _backward_case):
            yield case(parameters, sizes.tokens(n0 * n1))
