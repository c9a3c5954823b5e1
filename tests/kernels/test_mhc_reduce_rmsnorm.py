"""The mHC projection's partial results summed and divided by the root mean square, and its gradients, on the simulator."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run, same_bits
from tile_kernels_support import bf16, f32, poisoned, tile_kernels

tile_kernels()
from tile_kernels.mhc import mhc_reduce_partials_and_rmsnorm_bwd, mhc_reduce_partials_and_rmsnorm_fwd  # noqa: E402
from tile_kernels.torch.mhc import mhc_pre_norm_fn_partials_ref, mhc_pre_norm_fn_ref  # noqa: E402

MIXES = 24
EPS = 1e-6
SPLITS = {1: 28672, 16: 10240, 6: 10240}  # partial results (of which six are three rounds of two) to elements of the group
NAMES = ("out_mul", "sqrsum", "out")


def forward(products, squares, group: int):
    splits, tokens = squares.shape[:2]
    outputs = poisoned(tokens, 1, MIXES), poisoned(tokens, 1), poisoned(tokens, MIXES)
    function = mhc_reduce_partials_and_rmsnorm_fwd
    written = run(function, products, squares, *outputs, group, EPS, splits, written=NAMES).written
    return [written[name] for name in NAMES]


def in_order(partials):
    """The sum over the first axis in float32, from the first to the last."""
    total = torch.zeros_like(partials[0])
    for partial in partials:
        total = total + partial
    return total


def normalized(product, square, group: int):
    return (product * (square[..., None] / group + EPS).rsqrt())[:, 0]


@pytest.mark.parametrize("splits", SPLITS)
def test_forward(splits):
    group = SPLITS[splits]
    for tokens in (0, 1, 16, 133, 4113):  # blocks of 16 tokens; the last are more rounds than versions of a buffer
        products, squares = f32(splits, tokens, 1, MIXES, seed=tokens), f32(splits, tokens, 1, seed=1).abs() * group
        product, square, out = forward(products, squares, group)
        assert torch.equal(product, in_order(products)) and torch.equal(square, in_order(squares))
        torch.testing.assert_close(out.double(), normalized(product.double(), square.double(), group), rtol=1e-6, atol=0)


def test_forward_of_extreme_values():
    products = torch.tensor([-1e30, 1e30, 1e-30, 0.0, 3e38, -3e38]).repeat(4)[None, None].expand(1, 4, 1, MIXES).contiguous()
    squares = torch.tensor([0.0, 1e-38, 1.0, 3e38]).reshape(1, 4, 1)
    product, square, out = forward(products, squares, SPLITS[1])
    assert torch.equal(product, products[0]) and torch.equal(square, squares[0])
    expected = normalized(product.double(), square.double(), SPLITS[1]).float()
    assert expected.isposinf().any() and expected.isneginf().any()
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=0)


def test_forward_normalizes_the_projection():
    """As the package's own test: partial results of a matrix product with bfloat16 rows."""
    splits, tokens, hidden = 16, 37, 2560
    residual, matrix = bf16(1, tokens, 4, hidden), f32(MIXES, 4 * hidden, seed=1) * 1e-4
    products, squares = mhc_pre_norm_fn_partials_ref(residual, matrix, splits)
    out = forward(products, squares, 4 * hidden)[2]
    torch.testing.assert_close(out, mhc_pre_norm_fn_ref(residual, matrix, None, EPS)[0], rtol=1e-3, atol=1e-3)


def backward(grad, product, square, group: int):
    outputs = poisoned(*product.shape), poisoned(*square.shape)
    names = ("out_mul_grad", "sqrsum_grad")
    written = run(mhc_reduce_partials_and_rmsnorm_bwd, grad, product, square, *outputs, group, EPS, written=names).written
    return [written[name] for name in names]


def backward_inputs(tokens: int, group: int):
    return f32(tokens, MIXES, seed=tokens), f32(tokens, 1, MIXES, seed=1), f32(tokens, 1, seed=2).abs() * group


def test_backward():
    group = 28672
    for tokens in (0, 1, 15, 16, 133, 7173):  # whole blocks of 16 and single tokens; the last are more rounds than versions of a buffer
        grad, product, square = backward_inputs(tokens, group)
        leaves = [product.double().requires_grad_(), square.double().requires_grad_()]
        normalized(*leaves, group).backward(grad.double())
        product_grad, square_grad = backward(grad, product, square, group)
        torch.testing.assert_close(product_grad.double(), leaves[0].grad, rtol=1e-6, atol=0)
        # A sum of products of either sign: its error is relative to their magnitudes, not to the sum.
        bound = normalized_square_bound(grad, product, square, group)
        assert ((square_grad.double() - leaves[1].grad).abs() <= bound).all()


def normalized_square_bound(grad, product, square, group: int):
    magnitudes = (grad.double() * product.double()[:, 0]).abs().sum(-1, keepdim=True)
    return 2e-6 * magnitudes * (square.double() / group + EPS) ** -1.5 / (2 * group)


def test_backward_of_single_tokens_is_that_of_whole_blocks():
    """Fewer than 16 tokens take another path, whose products are the same to the last bit."""
    grad, product, square = (tensor.repeat(2, *[1] * (tensor.dim() - 1))[:31] for tensor in backward_inputs(16, 28672))
    found = backward(grad, product, square, 28672)
    assert same_bits(found[0][:15], found[0][16:])
    torch.testing.assert_close(found[1][:15], found[1][16:], rtol=1e-4, atol=1e-9)
