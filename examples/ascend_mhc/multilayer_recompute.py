"""Several layers' streams computed again from what was kept of them: for gradients, without having stored the streams of every layer.

From the streams before the first layer, and the weights and outputs of all layers, which a checkpointed forward pass keeps, layer by layer
``layer_input = sum over s of pre_mix[s] * residual[s]`` and ``residual'[q] = post_mix[q] * layer_output + sum over p of comb_mix[p, q] *
residual[p]`` (mHC, arXiv:2512.24880, section 4.3: recomputing). The streams of a token stay on the core from layer to layer.
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

__all__ = ["cases", "multilayer_recompute", "multilayer_recompute_forward"]

_PITCH = 8
_MOST_STREAMS = _PITCH
_ELEMENTS = 40960
"""Elements of all streams in a block, of which one stays in UB."""


def multilayer_recompute_forward(hidden: int, mhc: int, layers: int, posts: int) -> Any:
    """Program of the kernel, for ``layers`` layers of which the first ``posts`` (all, or all but one) change the streams.

    ``residual`` (tokens, mhc, hidden), ``layer_outputs`` (posts, tokens, hidden), ``layer_inputs`` (layers, tokens, hidden) and
    ``residuals`` (posts, tokens, mhc, hidden) are bfloat16; ``pre_mixes`` (layers, tokens, mhc), ``post_mixes`` (posts, tokens, mhc) and
    ``comb_mixes`` (posts, tokens, mhc, mhc) float32. Every step rounds to bfloat16, as the kernels of single steps do.
    """
    block = block_of(hidden, _ELEMENTS // mhc)
    tokens = T.dynamic("tokens")

    @T.prim_func
    def multilayer_recompute_forward(
        residual: T.Tensor((tokens, mhc, hidden), T.bfloat16),
        pre_mixes: T.Tensor((layers, tokens, mhc), T.float32),
        layer_outputs: T.Tensor((posts, tokens, hidden), T.bfloat16),
        post_mixes: T.Tensor((posts, tokens, mhc), T.float32),
        comb_mixes: T.Tensor((posts, tokens, mhc, mhc), T.float32),
        layer_inputs: T.Tensor((layers, tokens, hidden), T.bfloat16),
        residuals: T.Tensor((posts, tokens, mhc, hidden), T.bfloat16),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            residual_ub = T.alloc_shared((mhc, block), T.bfloat16)
            output_ub = T.alloc_shared((block,), T.bfloat16)
            input_ub = T.alloc_shared((block,), T.bfloat16)
            mix_ub = T.alloc_shared((mhc + 2, _PITCH), T.float32)
            for token, part in T.Persistent([tokens, hidden // block], VECTOR_CORES, core, group_size=1):
                T.copy(residual[token, 0, part * block], residual_ub)
                for layer in T.serial(posts):
                    T.copy(pre_mixes[layer, token, 0], mix_ub[0, 0:mhc])
                    T.copy(post_mixes[layer, token, 0], mix_ub[1, 0:mhc])
                    T.copy(comb_mixes[layer, token, 0, 0], mix_ub[2 : mhc + 2, 0:mhc])
                    T.copy(layer_outputs[layer, token, part * block], output_ub)
                    with T.SimtVF(threads=THREADS):
                        mix = T.alloc_local((mhc + 2, mhc), T.float32)
                        value = T.alloc_local((mhc + 1,), T.float32)
                        total = T.alloc_local((1,), T.float32)
                        for row in T.serial(mhc + 2):
                            for stream in T.serial(mhc):
                                mix[row, stream] = mix_ub[row, stream]
                        for first in T.serial(0, block, THREADS):
                            for column in T.Parallel(THREADS):
                                value[0] = output_ub[first + column]
                                total[0] = 0
                                for stream in T.unroll(mhc):
                                    value[stream + 1] = residual_ub[stream, first + column]
                                    total[0] += mix[0, stream] * value[stream + 1]
                                input_ub[first + column] = total[0]
                                for stream in T.unroll(mhc):
                                    total[0] = 0
                                    for source in T.unroll(mhc + 1):
                                        total[0] += mix[source + 1, stream] * value[source]
                                    residual_ub[stream, first + column] = total[0]
                    T.copy(input_ub, layer_inputs[layer, token, part * block])
                    T.copy(residual_ub, residuals[layer, token, 0, part * block])
                if layers > posts:
                    T.copy(pre_mixes[posts, token, 0], mix_ub[0, 0:mhc])
                    with T.SimtVF(threads=THREADS):
                        sums = T.alloc_fragment((block,), T.float32)
                        T.clear(sums)
                        for stream in T.serial(mhc):
                            for column in T.Parallel(block):
                                sums[column] += mix_ub[0, stream] * residual_ub[stream, column]
                        T.copy(sums, input_ub)
                    T.copy(input_ub, layer_inputs[posts, token, part * block])

    return multilayer_recompute_forward


def multilayer_recompute(
    residual: torch.Tensor,
    pre_mixes: torch.Tensor,
    layer_outputs: torch.Tensor,
    post_mixes: torch.Tensor,
    comb_mixes: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs of the layers, and the streams behind them; without gradients, as it serves to compute them.

    Args:
        residual: (..., mhc, hidden), bfloat16, the streams before the first layer; mhc is at most 8 and hidden a multiple of 256.
        pre_mixes: (layers, ..., mhc), float32.
        layer_outputs: (posts, ..., hidden), bfloat16; posts is the number of layers, or one less where the last one's output is not kept.
        post_mixes: (posts, ..., mhc), float32.
        comb_mixes: (posts, ..., mhc, mhc), float32: from, to.

    Returns:
        ``layer_inputs`` (layers, ..., hidden) and ``residuals`` (posts, ..., mhc, hidden), bfloat16.

    Raises:
        ValueError: types or sizes are others.
    """
    who, device = "multilayer_recompute", residual.device
    require_tensor(who, "residual", residual, torch.bfloat16, (..., None, None))
    *rows, mhc, hidden = residual.shape
    require(1 <= mhc <= _MOST_STREAMS, f"{who}: mhc is {mhc}, it has to be from 1 to {_MOST_STREAMS}")
    require(hidden > 0 and hidden % THREADS == 0, f"{who}: hidden is {hidden}, it has to be a multiple of {THREADS}")
    require_tensor(who, "pre_mixes", pre_mixes, torch.float32, (None, *rows, mhc), device)
    require_tensor(who, "layer_outputs", layer_outputs, torch.bfloat16, (None, *rows, hidden), device)
    layers, posts = pre_mixes.shape[0], layer_outputs.shape[0]
    require(
        posts >= 1 and posts in (layers - 1, layers), f"{who}: {posts} outputs of {layers} layers; it has to be all of them or all but one"
    )
    require_tensor(who, "post_mixes", post_mixes, torch.float32, (posts, *rows, mhc), device)
    require_tensor(who, "comb_mixes", comb_mixes, torch.float32, (posts, *rows, mhc, mhc), device)
    shapes = (mhc, hidden), (layers, mhc), (posts, hidden), (posts, mhc), (posts, mhc, mhc)
    streams = residual.detach().reshape(-1, mhc, hidden).contiguous()
    tokens = streams.shape[0]
    stacked = [
        tensor.detach().reshape(shape[0], tokens, *shape[1:]).contiguous()
        for tensor, shape in zip((pre_mixes, layer_outputs, post_mixes, comb_mixes), shapes[1:], strict=True)
    ]
    layer_inputs, residuals = streams.new_empty(layers, tokens, hidden), streams.new_empty(posts, tokens, mhc, hidden)
    launch(multilayer_recompute_forward, (hidden, mhc, layers, posts), streams, *stacked, layer_inputs, residuals)
    return layer_inputs.view(layers, *rows, hidden), residuals.view(posts, *rows, mhc, hidden)


def _reference(given: Any) -> list[torch.Tensor]:
    """Every step in float64, and its results rounded as the kernel stores them, for the next step to start from."""
    residual, pre_mixes, layer_outputs, post_mixes, comb_mixes = (tensor.double() for tensor in given[:5])
    inputs, residuals = [], []
    for layer, pre_mix in enumerate(pre_mixes):
        inputs.append((pre_mix[..., None] * residual).sum(1).bfloat16())
        if layer < len(layer_outputs):
            mixed = comb_mixes[layer].transpose(1, 2) @ residual
            residuals.append((post_mixes[layer][..., None] * layer_outputs[layer][:, None] + mixed).bfloat16())
            residual = residuals[-1].double()
    return [torch.stack(inputs), torch.stack(residuals)]


def _case(parameters: dict[str, int], tokens: int) -> Case:
    hidden, mhc, layers, posts = (parameters[name] for name in ("hidden", "mhc", "layers", "posts"))

    def inputs(seed: int) -> list[torch.Tensor]:
        """Values with few digits, so that sums in float32 are exact for three layers and nothing is rounded but what is stored."""
        random = torch.Generator().manual_seed(seed)

        def multiples(unit: float, lowest: int, highest: int, *shape: int) -> torch.Tensor:
            return torch.randint(lowest, highest + 1, shape, generator=random) * unit

        residual = multiples(2**-5, -127, 127, tokens, mhc, hidden).bfloat16()
        pre_mixes = multiples(2**-3, 0, 4, layers, tokens, mhc)
        layer_outputs = multiples(2**-5, -127, 127, posts, tokens, hidden).bfloat16()
        post_mixes = multiples(2**-3, 0, 4, posts, tokens, mhc)
        comb_mixes = multiples(2**-3, 0, 4, posts, tokens, mhc, mhc)
        empty = [torch.full(shape, float("nan")).bfloat16() for shape in ((layers, tokens, hidden), (posts, tokens, mhc, hidden))]
        return [residual, pre_mixes, layer_outputs, post_mixes, comb_mixes, *empty]

    return Case(
        kernel="multilayer_recompute_forward",
        parameters=parameters,
        tokens=tokens,
        program=partial(multilayer_recompute_forward, hidden, mhc, layers, posts),
        specialisation=(hidden, mhc, layers, posts),
        inputs=inputs,
        outputs=(5, 6),
        reference=_reference,
        tolerances=(Tolerance(), Tolerance()),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """n0 (1, 2) x n1 (1024, 4096) x hidden (1280, 2560, 7680), four streams, three layers; of the first size without the last output."""
    for (hidden, posts), n0, n1 in product(((1280, 2), (2560, 3), (7680, 3)), (1, 2), (1024, 4096)):
        yield _case({"n0": n0, "n1": n1, "mhc": 4, "hidden": hidden, "layers": 3, "posts": posts}, sizes.tokens(n0 * n1, divisor=128))
