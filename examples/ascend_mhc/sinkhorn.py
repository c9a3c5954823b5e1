"""Sinkhorn normalisation: the matrix that mixes the streams among themselves becomes (nearly) doubly stochastic.

mHC (arXiv:2512.24880, section 4.2) takes the positive matrix of a softmax and divides columns and rows by their sums in turn (Sinkhorn and
Knopp, 1967), ``repeat`` times:

* ``m = softmax(x, rows) + eps``, then ``m = m / (column sums + eps)``;
* ``repeat - 1`` times ``m = m / (row sums + eps)`` and ``m = m / (column sums + eps)``.

Of every normalisation ``y = m / s`` with ``s`` a sum plus ``eps`` the gradient is ``m_grad = (y_grad - sum of y_grad * y) / s``, of the
softmax ``p`` it is ``x_grad = p * (p_grad - sum of p_grad * p)``. The backward kernels make the forward steps again and keep ``y`` and
``1 / s`` of each in UB.

There are two versions of either kernel. SIMT: one thread works on the matrix of one token, of any number of streams. SIMD, for four
streams: a vector register holds one element of the matrices of 64 tokens, so that sums along rows and columns are sums of registers.
"""

from collections.abc import Callable, Iterator
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

__all__ = [
    "cases",
    "sinkhorn",
    "sinkhorn_backward",
    "sinkhorn_backward_simd",
    "sinkhorn_forward",
    "sinkhorn_forward_simd",
]

_ROWS = 64
"""Tokens of a block: threads, or lanes of a register of float32."""

_LINES, _ELEMENTS = tuple(range(4)), tuple(range(16))
"""SIMD: rows or columns, and registers; tuples, so that loops over them are unrolled while the program is made."""

_STREAMS = (2, 4)
_MOST_REPEATS = 20  # what UB has room for in the backward kernels


@T.macro
def _divide_rows(m, factor, eps):
    """SIMT: divide every row by its sum plus ``eps``; ``factor`` keeps the reciprocals."""
    rows, mhc, _ = m.shape
    T.reduce_sum(m, factor, dim=2)
    for t, i in T.Parallel(rows, mhc):
        factor[t, i] = 1 / (factor[t, i] + eps)
    for t, i, j in T.Parallel(rows, mhc, mhc):
        m[t, i, j] *= factor[t, i]


@T.macro
def _divide_columns(m, factor, eps):
    """SIMT: divide every column by its sum plus ``eps``; ``factor`` keeps the reciprocals."""
    rows, mhc, _ = m.shape
    T.reduce_sum(m, factor, dim=1)
    for t, j in T.Parallel(rows, mhc):
        factor[t, j] = 1 / (factor[t, j] + eps)
    for t, i, j in T.Parallel(rows, mhc, mhc):
        m[t, i, j] *= factor[t, j]


@T.macro
def _softmax(m, factor):
    """SIMT: the softmax of every row."""
    rows, mhc, _ = m.shape
    T.reduce_max(m, factor, dim=2)
    for t, i, j in T.Parallel(rows, mhc, mhc):
        m[t, i, j] = T.exp(m[t, i, j] - factor[t, i])
    _divide_rows(m, factor, 0.0)


def sinkhorn_forward(mhc: int, repeat: int, eps: float) -> Any:
    """Program of the SIMT forward kernel: ``x`` and ``out`` (tokens, mhc, mhc), float32."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def sinkhorn_forward(x: T.Tensor((tokens, mhc, mhc), T.float32), out: T.Tensor((tokens, mhc, mhc), T.float32)):
        with T.Kernel(VECTOR_CORES) as core:
            given = T.alloc_shared((_ROWS, mhc, mhc), T.float32)
            result = T.alloc_shared((_ROWS, mhc, mhc), T.float32)
            T.annotate_buffer_versions({given: 2, result: 2})
            for block in T.Persistent([T.ceildiv(tokens, _ROWS)], VECTOR_CORES, core, group_size=1, num_stages=2):
                T.copy(x[block * _ROWS, 0, 0], given)
                with T.SimtVF(threads=_ROWS):
                    m = T.alloc_fragment((_ROWS, mhc, mhc), T.float32)
                    factor = T.alloc_fragment((_ROWS, mhc), T.float32)
                    T.annotate_layout({m: T.Fragment(m.shape, lambda t, i, j: (t, i * mhc + j))})
                    for t, i, j in T.Parallel(_ROWS, mhc, mhc):
                        m[t, i, j] = T.if_then_else(block * _ROWS + t < tokens, given[t, i, j], 0.0)
                    _softmax(m, factor)
                    for t, i, j in T.Parallel(_ROWS, mhc, mhc):
                        m[t, i, j] += eps
                    _divide_columns(m, factor, eps)
                    for _ in T.serial(repeat - 1):
                        _divide_rows(m, factor, eps)
                        _divide_columns(m, factor, eps)
                    T.copy(m, result)
                T.copy(result, out[block * _ROWS, 0, 0])

    return sinkhorn_forward


@T.macro
def _keep(m, factor, forms, factors, step):
    """SIMT: keep the matrices of a step and the reciprocals they were multiplied with; neighbouring threads write neighbouring places."""
    rows, mhc, _ = m.shape
    for t, i, j in T.Parallel(rows, mhc, mhc):
        forms[step, i, j, t] = m[t, i, j]
    for t, i in T.Parallel(rows, mhc):
        factors[step, i, t] = factor[t, i]


@T.macro
def _rows_gradient(grad, dot, form, forms, factors, step):
    """SIMT: the gradient before a division of rows from the one after it."""
    rows, mhc, _ = grad.shape
    for t, i, j in T.Parallel(rows, mhc, mhc):
        form[t, i, j] = forms[step, i, j, t] * grad[t, i, j]
    T.reduce_sum(form, dot, dim=2)
    for t, i, j in T.Parallel(rows, mhc, mhc):
        grad[t, i, j] = (grad[t, i, j] - dot[t, i]) * factors[step, i, t]


@T.macro
def _columns_gradient(grad, dot, form, forms, factors, step):
    """SIMT: the gradient before a division of columns from the one after it."""
    rows, mhc, _ = grad.shape
    for t, i, j in T.Parallel(rows, mhc, mhc):
        form[t, i, j] = forms[step, i, j, t] * grad[t, i, j]
    T.reduce_sum(form, dot, dim=1)
    for t, i, j in T.Parallel(rows, mhc, mhc):
        grad[t, i, j] = (grad[t, i, j] - dot[t, j]) * factors[step, j, t]


def sinkhorn_backward(mhc: int, repeat: int, eps: float) -> Any:
    """Program of the SIMT backward kernel: ``out_grad``, ``x`` and ``x_grad`` (tokens, mhc, mhc), float32."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def sinkhorn_backward(
        out_grad: T.Tensor((tokens, mhc, mhc), T.float32),
        x: T.Tensor((tokens, mhc, mhc), T.float32),
        x_grad: T.Tensor((tokens, mhc, mhc), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            given = T.alloc_shared((_ROWS, mhc, mhc), T.float32)
            given_grad = T.alloc_shared((_ROWS, mhc, mhc), T.float32)
            result = T.alloc_shared((_ROWS, mhc, mhc), T.float32)
            # Step 0 is the softmax, odd steps divide columns, the other even ones rows.
            forms = T.alloc_shared((2 * repeat, mhc, mhc, _ROWS), T.float32)
            factors = T.alloc_shared((2 * repeat, mhc, _ROWS), T.float32)
            T.annotate_buffer_versions({given: 2, given_grad: 2, result: 2})
            for block in T.Persistent([T.ceildiv(tokens, _ROWS)], VECTOR_CORES, core, group_size=1, num_stages=2):
                T.copy(x[block * _ROWS, 0, 0], given)
                T.copy(out_grad[block * _ROWS, 0, 0], given_grad)
                with T.SimtVF(threads=_ROWS):
                    m = T.alloc_fragment((_ROWS, mhc, mhc), T.float32)
                    grad = T.alloc_fragment((_ROWS, mhc, mhc), T.float32)
                    factor = T.alloc_fragment((_ROWS, mhc), T.float32)
                    whole = T.Fragment(m.shape, lambda t, i, j: (t, i * mhc + j))
                    T.annotate_layout({m: whole, grad: whole})
                    for t, i, j in T.Parallel(_ROWS, mhc, mhc):
                        m[t, i, j] = T.if_then_else(block * _ROWS + t < tokens, given[t, i, j], 0.0)
                        grad[t, i, j] = T.if_then_else(block * _ROWS + t < tokens, given_grad[t, i, j], 0.0)
                    _softmax(m, factor)
                    _keep(m, factor, forms, factors, 0)
                    for t, i, j in T.Parallel(_ROWS, mhc, mhc):
                        m[t, i, j] += eps
                    _divide_columns(m, factor, eps)
                    _keep(m, factor, forms, factors, 1)
                    for step in T.serial(1, repeat):
                        _divide_rows(m, factor, eps)
                        _keep(m, factor, forms, factors, 2 * step)
                        _divide_columns(m, factor, eps)
                        _keep(m, factor, forms, factors, 2 * step + 1)
                    for back in T.serial(1, repeat):
                        _columns_gradient(grad, factor, m, forms, factors, 2 * (repeat - back) + 1)
                        _rows_gradient(grad, factor, m, forms, factors, 2 * (repeat - back))
                    _columns_gradient(grad, factor, m, forms, factors, 1)
                    for t, i, j in T.Parallel(_ROWS, mhc, mhc):
                        m[t, i, j] = forms[0, i, j, t] * grad[t, i, j]
                    T.reduce_sum(m, factor, dim=2)
                    for t, i, j in T.Parallel(_ROWS, mhc, mhc):
                        result[t, i, j] = forms[0, i, j, t] * (grad[t, i, j] - factor[t, i])
                T.copy(result, x_grad[block * _ROWS, 0, 0])

    return sinkhorn_backward


def _split(registers: list[Any]) -> list[Any]:
    """SIMD: registers of every element, from registers with the elements of few matrices one after the other.

    Register ``e`` of the result has element ``e`` of 64 matrices. What is at even positions becomes the elements with an even number,
    what is at odd positions the others, and so on.
    """
    if len(registers) == 1:
        return registers
    pairs = [T.simd.vdintlv(first, second) for first, second in zip(registers[::2], registers[1::2], strict=True)]
    even, odd = _split([pair[0] for pair in pairs]), _split([pair[1] for pair in pairs])
    return [register for both in zip(even, odd, strict=True) for register in both]


def _merge(registers: list[Any]) -> list[Any]:
    """SIMD: the inverse of :func:`_split`."""
    if len(registers) == 1:
        return registers
    even, odd = _merge(registers[::2]), _merge(registers[1::2])
    return [register for both in zip(even, odd, strict=True) for register in T.simd.vintlv(*both)]


def _line(registers: Any, line: int, stride: int) -> list[Any]:
    """SIMD: the registers of a row (``stride`` 1) or column (4)."""
    return [registers[line * (5 - stride) + stride * k] for k in range(4)]


def _folded(operation: Callable[..., Any], values: list[Any], mask: Any) -> Any:
    """SIMD: four registers in one, as a tree."""
    return operation(operation(values[0], values[1], mask), operation(values[2], values[3], mask), mask)


def _sum_plus(values: list[Any], eps: float, mask: Any) -> Any:
    """SIMD: the sum of four registers plus a constant."""
    total = _folded(T.simd.vadd, values, mask)
    return T.simd.vadds(total, T.float32(eps), mask) if eps else total


def _dot(grad: Any, forms: Any, step: Any, line: int, stride: int, mask: Any) -> Any:
    """SIMD: the sum of gradient times result along a row or column."""
    elements = _line(_ELEMENTS, line, stride)
    return _folded(T.simd.vadd, [T.simd.vmul(grad[e], T.simd.vld(forms[step, e, 0]), mask) for e in elements], mask)


@T.macro
def _simd_read(source, m, tokens):
    """SIMD: the matrices of a block; behind the last of ``tokens`` those of the last register that has any: nothing else is written."""
    last = (T.min(tokens, _ROWS) - 1) // 4 * 4
    for element, register in enumerate(_split([T.simd.vld(source[T.min(token, last), 0, 0]) for token in range(0, _ROWS, 4)])):
        m[element] = register


@T.macro
def _simd_write(m, destination, mask):
    for place, register in enumerate(_merge([m[element] for element in _ELEMENTS])):
        T.simd.vsts(destination[4 * place, 0, 0], register, mask)


@T.macro
def _simd_divide(m, factor, one, eps, stride, mask):
    """SIMD: divide rows (``stride`` 1) or columns (4) by their sums plus ``eps``; ``factor`` keeps the reciprocals."""
    for line in _LINES:
        factor[line] = T.simd.vdiv(one, _sum_plus(_line(m, line, stride), eps, mask), mask, precision="ftz_true")
        for element in _line(_ELEMENTS, line, stride):
            m[element] = T.simd.vmul(m[element], factor[line], mask)


@T.macro
def _simd_softmax(m, factor, one, mask):
    """SIMD: the softmax of every row."""
    for line in _LINES:
        factor[line] = _folded(T.simd.vmax, _line(m, line, 1), mask)
        for element in _line(_ELEMENTS, line, 1):
            m[element] = T.simd.vexpdif(m[element], factor[line], mask)
    _simd_divide(m, factor, one, 0.0, 1, mask)


@T.macro
def _simd_add(m, eps, mask):
    for element in _ELEMENTS:
        m[element] = T.simd.vadds(m[element], T.float32(eps), mask)


@T.macro
def _simd_keep(m, factor, forms, factors, step, mask):
    for element in _ELEMENTS:
        T.simd.vsts(forms[step, element, 0], m[element], mask)
    for line in _LINES:
        T.simd.vsts(factors[step, line, 0], factor[line], mask)


@T.macro
def _simd_gradient(grad, forms, factors, step, stride, mask):
    """SIMD: the gradient before a division of rows (``stride`` 1) or columns (4) from the one after it."""
    for line in _LINES:
        dot = _dot(grad, forms, step, line, stride, mask)
        factor = T.simd.vld(factors[step, line, 0])
        for element in _line(_ELEMENTS, line, stride):
            grad[element] = T.simd.vmul(T.simd.vsub(grad[element], dot, mask), factor, mask)


def sinkhorn_forward_simd(repeat: int, eps: float) -> Any:
    """Program of the SIMD forward kernel: ``x`` and ``out`` (tokens, 4, 4), float32."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def sinkhorn_forward_simd(x: T.Tensor((tokens, 4, 4), T.float32), out: T.Tensor((tokens, 4, 4), T.float32)):
        with T.Kernel(VECTOR_CORES) as core:
            given = T.alloc_shared((_ROWS, 4, 4), T.float32)
            result = T.alloc_shared((_ROWS, 4, 4), T.float32)
            T.annotate_buffer_versions({given: 2, result: 2})
            for block in T.Persistent([T.ceildiv(tokens, _ROWS)], VECTOR_CORES, core, group_size=1, num_stages=2):
                T.copy(x[block * _ROWS, 0, 0], given)
                with T.SimdVF():
                    every = T.simd.pset(32)
                    one = T.simd.vdup(T.float32(1), T.float32, every)
                    m = T.simd.alloc_local(16, T.float32)
                    factor = T.simd.alloc_local(4, T.float32)
                    _simd_read(given, m, tokens - block * _ROWS)
                    _simd_softmax(m, factor, one, every)
                    _simd_add(m, eps, every)
                    _simd_divide(m, factor, one, eps, 4, every)
                    for _ in T.serial(repeat - 1):
                        _simd_divide(m, factor, one, eps, 1, every)
                        _simd_divide(m, factor, one, eps, 4, every)
                    _simd_write(m, result, every)
                T.copy(result, out[block * _ROWS, 0, 0])

    return sinkhorn_forward_simd


def sinkhorn_backward_simd(repeat: int, eps: float) -> Any:
    """Program of the SIMD backward kernel: ``out_grad``, ``x`` and ``x_grad`` (tokens, 4, 4), float32."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def sinkhorn_backward_simd(
        out_grad: T.Tensor((tokens, 4, 4), T.float32),
        x: T.Tensor((tokens, 4, 4), T.float32),
        x_grad: T.Tensor((tokens, 4, 4), T.float32),
    ):
        with T.Kernel(VECTOR_CORES) as core:
            given = T.alloc_shared((_ROWS, 4, 4), T.float32)
            given_grad = T.alloc_shared((_ROWS, 4, 4), T.float32)
            result = T.alloc_shared((_ROWS, 4, 4), T.float32)
            # Step 0 is the softmax, odd steps divide columns, the other even ones rows.
            forms = T.alloc_shared((2 * repeat, 16, _ROWS), T.float32)
            factors = T.alloc_shared((2 * repeat, 4, _ROWS), T.float32)
            T.annotate_buffer_versions({given: 2, given_grad: 2, result: 2})
            for block in T.Persistent([T.ceildiv(tokens, _ROWS)], VECTOR_CORES, core, group_size=1, num_stages=2):
                T.copy(x[block * _ROWS, 0, 0], given)
                T.copy(out_grad[block * _ROWS, 0, 0], given_grad)
                with T.SimdVF():
                    every = T.simd.pset(32)
                    one = T.simd.vdup(T.float32(1), T.float32, every)
                    m = T.simd.alloc_local(16, T.float32)
                    factor = T.simd.alloc_local(4, T.float32)
                    _simd_read(given, m, tokens - block * _ROWS)
                    _simd_softmax(m, factor, one, every)
                    _simd_keep(m, factor, forms, factors, 0, every)
                    _simd_add(m, eps, every)
                    _simd_divide(m, factor, one, eps, 4, every)
                    _simd_keep(m, factor, forms, factors, 1, every)
                    for step in T.serial(1, repeat):
                        _simd_divide(m, factor, one, eps, 1, every)
                        _simd_keep(m, factor, forms, factors, 2 * step, every)
                        _simd_divide(m, factor, one, eps, 4, every)
                        _simd_keep(m, factor, forms, factors, 2 * step + 1, every)
                    T.simd.mem_bar("VST_VLD")
                    grad = T.simd.alloc_local(16, T.float32)
                    _simd_read(given_grad, grad, tokens - block * _ROWS)
                    for back in T.serial(1, repeat):
                        _simd_gradient(grad, forms, factors, 2 * (repeat - back) + 1, 4, every)
                        _simd_gradient(grad, forms, factors, 2 * (repeat - back), 1, every)
                    _simd_gradient(grad, forms, factors, 1, 4, every)
                    for line in _LINES:
                        dot = _dot(grad, forms, 0, line, 1, every)
                        for element in _line(_ELEMENTS, line, 1):
                            softmax = T.simd.vld(forms[0, element, 0])
                            grad[element] = T.simd.vmul(softmax, T.simd.vsub(grad[element], dot, every), every)
                    _simd_write(grad, result, every)
                T.copy(result, x_grad[block * _ROWS, 0, 0])

    return sinkhorn_backward_simd


class _Sinkhorn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, repeat: int, eps: float) -> torch.Tensor:
        mhc = x.shape[-1]
        matrices = rows_of(x, 2)
        out = torch.empty_like(matrices)
        if mhc == 4:
            launch(sinkhorn_forward_simd, (repeat, eps), matrices, out)
        else:
            launch(sinkhorn_forward, (mhc, repeat, eps), matrices, out)
        ctx.save_for_backward(matrices)
        ctx.repeat, ctx.eps = repeat, eps
        return out.view(x.shape)

    @staticmethod
    def backward(ctx: Any, out_grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:  # type: ignore[override]
        (matrices,) = ctx.saved_tensors
        mhc = matrices.shape[-1]
        grads = rows_of(out_grad, 2)
        x_grad = torch.empty_like(matrices)
        if mhc == 4:
            launch(sinkhorn_backward_simd, (ctx.repeat, ctx.eps), grads, matrices, x_grad)
        else:
            launch(sinkhorn_backward, (mhc, ctx.repeat, ctx.eps), grads, matrices, x_grad)
        return x_grad.view(out_grad.shape), None, None


def sinkhorn(x: torch.Tensor, *, repeat: int = 20, eps: float = 1e-6) -> torch.Tensor:
    """Nearly doubly stochastic matrices, with gradient; the SIMD kernels for four streams, else the SIMT ones.

    Args:
        x: (..., mhc, mhc), float32; mhc is 2 or 4.
        repeat: divisions of columns, from 1 to 20; 20 in the paper.
        eps: what is added to the softmax and to every sum.

    Returns:
        (..., mhc, mhc), float32.

    Raises:
        ValueError: type, sizes or number of repetitions are others.
    """
    require_tensor("sinkhorn", "x", x, torch.float32, (..., None, None))
    mhc = x.shape[-1]
    require(mhc in _STREAMS, f"sinkhorn: mhc is {mhc}, it has to be one of {_STREAMS}")
    require_tensor("sinkhorn", "x", x, torch.float32, (..., mhc, mhc))
    require(1 <= repeat <= _MOST_REPEATS, f"sinkhorn: repeat is {repeat}, it has to be from 1 to {_MOST_REPEATS}")
    return _Sinkhorn.apply(x, repeat, eps)


_REPEAT, _EPS = 10, 1e-6


def normalised(x: torch.Tensor, repeat: int, eps: float) -> torch.Tensor:
    """The definition, step by step, in the type of ``x``."""
    m = x.softmax(-1) + eps
    m = m / (m.sum(-2, keepdim=True) + eps)
    for _ in range(repeat - 1):
        m = m / (m.sum(-1, keepdim=True) + eps)
        m = m / (m.sum(-2, keepdim=True) + eps)
    return m


def _forward_case(parameters: dict[str, int], tokens: int, program: Callable[..., Any], specialisation: tuple[Any, ...]) -> Case:
    return Case(
        kernel=program.__name__,
        parameters=parameters,
        tokens=tokens,
        program=partial(program, *specialisation),
        specialisation=specialisation,
        inputs=lambda seed: normal(seed, (tokens, 4, 4)) + poisoned((tokens, 4, 4)),
        outputs=(1,),
        reference=lambda given: [normalised(given[0].double(), _REPEAT, _EPS)],
        # The exponential's argument is below 8 with one rounding; each of the 20 divisions adds three sums, the reciprocal and the
        # product, and multiplies no error that is there already.
        tolerances=(Tolerance(relative=(8 + 2 + 2 * _REPEAT * 6) * 2**-24),),
    )


def _backward_case(parameters: dict[str, int], tokens: int, program: Callable[..., Any], specialisation: tuple[Any, ...]) -> Case:
    def reference(given: list[torch.Tensor]) -> list[torch.Tensor]:
        x = given[1].double().requires_grad_()
        (grad,) = torch.autograd.grad(normalised(x, _REPEAT, _EPS), x, given[0].double())
        return [grad]

    return Case(
        kernel=program.__name__,
        parameters=parameters,
        tokens=tokens,
        program=partial(program, *specialisation),
        specialisation=specialisation,
        inputs=lambda seed: normal(seed, (tokens, 4, 4), (tokens, 4, 4)) + poisoned((tokens, 4, 4)),
        outputs=(2,),
        reference=reference,
        # Gradients are below 1. Rounding errors of the 20 steps reach 3e-7 in torch's float32 gradient of the same matrices; here exp and
        # the reciprocals may err by a unit in the last place more, and results are multiplied with reciprocals instead of divided.
        tolerances=(Tolerance(absolute=4e-6),),
    )


def cases(sizes: Sizes) -> Iterator[Case]:
    """n0 (1, 2) x n1 (1, 1024, 4096) with 4 streams and 10 repetitions, forward and backward, SIMT and SIMD."""
    for n0, n1 in product((1, 2), (1, 1024, 4096)):
        parameters, tokens = {"n0": n0, "n1": n1, "mhc": 4}, sizes.tokens(n0 * n1, divisor=2)
        yield _forward_case(parameters, tokens, sinkhorn_forward, (4, _REPEAT, _EPS))
        yield _backward_case(parameters, tokens, sinkhorn_backward, (4, _REPEAT, _EPS))
        yield _forward_case(parameters, tokens, sinkhorn_forward_simd, (_REPEAT, _EPS))
        yield _backward_case(parameters, tokens, sinkhorn_backward_simd, (_REPEAT, _EPS))
