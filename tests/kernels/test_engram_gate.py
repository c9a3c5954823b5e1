"""The engram gate of tile_kernels, forward and backward, on the simulator against formulas in float64."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run, same_bits
from tile_kernels_support import bf16, tile_kernels

tile_kernels()
from tile_kernels.engram import engram_gate_bwd, engram_gate_fwd  # noqa: E402
from tile_kernels.testing.numeric import calc_diff  # noqa: E402

HIDDEN, HEADS = 2560, 4
TOKENS = (1, 33, 70)  # 32 tokens occupy all 64 cores; 70 are three uneven rounds
FORWARD_LIMIT, BACKWARD_LIMIT = 2e-10, 1e-8  # of calc_diff, as in the package's own tests
BF16_HALF_ULP = 2.0**-8


def gate(x, kv, weight, eps: float, clamp: float, mask=None):
    """Output, raw dot, gate and both reciprocal deviations, in float64."""
    x, kv, weight = x.double(), kv.double(), weight.double()
    key, value = kv[:, :HEADS], kv[:, HEADS]
    rstd_x, rstd_k = (x.square().mean(-1) + eps).rsqrt(), (key.square().mean(-1) + eps).rsqrt()
    dot = (x * weight * key).sum(-1)
    normalized = dot * rstd_x * rstd_k * x.shape[-1] ** -0.5
    root = normalized.abs().clamp_min(clamp).sqrt()
    score = torch.where(normalized >= 0, root, -root).sigmoid()
    out = x + score[..., None] * value[:, None]
    if mask is not None:
        out = torch.where(mask[:, None, None], x, out)
    return out, dot, score, rstd_x, rstd_k


def inputs(tokens: int, hidden: int = HIDDEN):
    x, kv = bf16(tokens, HEADS, hidden, seed=tokens), bf16(tokens, HEADS + 1, hidden, seed=tokens + 1)
    return x, kv, bf16(HEADS, hidden, seed=2).float() * bf16(HEADS, hidden, seed=3).float()


def masks(tokens: int) -> list[torch.Tensor]:
    """Some tokens; for the middle size also every other one, all and none."""
    some = torch.rand(tokens, generator=torch.Generator().manual_seed(tokens)) < 0.3
    if tokens != TOKENS[1]:
        return [some]
    return [some, torch.arange(tokens) % 2 == 1, torch.ones(tokens, dtype=torch.bool), torch.zeros(tokens, dtype=torch.bool)]


def check_output(found, expected):
    """Rounded to bfloat16 from a float32 value close to the expected one."""
    assert calc_diff(found, expected.to(torch.bfloat16)) < FORWARD_LIMIT
    torch.testing.assert_close(found.double(), expected, rtol=BF16_HALF_ULP * 1.001, atol=2e-6)


# Form of the kernel to its options, epsilon and clamp; a large clamp is under much of the tokens' dots.
FORMS = {
    "save": ({}, 1e-20, 1e-6),
    "save_mask": ({}, 1e-6, 0.5),
    "infer": ({"save_for_backward": False}, 1e-6, 0.0),
    "infer_in_place_mask": ({"save_for_backward": False, "inplace": True}, 1e-6, 1e-6),
}


@pytest.mark.parametrize("form", FORMS)
def test_forward(form):
    options, eps, clamp = FORMS[form]
    written = ("hidden_states",) if "inplace" in options else ()
    for tokens in TOKENS:
        x, kv, weight = inputs(tokens)
        for mask in masks(tokens) if "mask" in form else [None]:
            computed = torch.ones(tokens, dtype=torch.bool) if mask is None else ~mask

            def defined(result, computed=computed):  # of masked tokens nothing is saved
                return [result[0], *(saved[computed] for saved in result[1:] if saved is not None)]

            masked = {"image_token_mask": mask, "written": written, "defined": defined}
            found = run(engram_gate_fwd, x, kv, weight, eps, clamp, **masked, **options)
            out, *saved = found.result
            assert out is found.written["hidden_states"] if written else out.dtype == torch.bfloat16
            expected, *statistics = gate(x, kv, weight, eps, clamp, mask)
            check_output(out, expected)
            assert same_bits(out[~computed], x[~computed])
            if options:
                assert saved == [None] * 4
                continue
            for one, other in zip(saved, statistics, strict=True):
                assert calc_diff(one[computed], other[computed]) < FORWARD_LIMIT
                torch.testing.assert_close(one[computed].double(), other[computed], rtol=2e-6, atol=2e-4 if other is statistics[0] else 0)


def test_forward_of_no_tokens():
    x, kv, weight = inputs(0)
    out, *saved = run(engram_gate_fwd, x, kv, weight, 1e-20, 1e-6).result
    assert out.shape == x.shape and all(one.shape == (0, HEADS) for one in saved)


def test_forward_at_the_edges():
    """Zeros, large and small magnitudes, rows of one value, opposed rows: each token by itself, near the float64 formula."""
    eps, clamp = 1e-20, 1e-6
    x, kv, weight = inputs(12)
    x[0] = 0
    kv[1, :HEADS] = 0
    x[2], kv[2] = 0, 0
    kv[3, HEADS] = 0
    x[4] *= 2.0**40
    kv[5] *= 2.0**40
    x[6] *= 2.0**-30
    kv[7, :HEADS] *= 2.0**-30
    x[8], kv[8] = 1, -1
    x[9] = kv[9, :HEADS]
    x[10] = -kv[10, :HEADS]
    x[11] = 2.0**-130  # subnormal in bfloat16 and float32
    out, dot, score, rstd_x, rstd_k = run(engram_gate_fwd, x, kv, weight, eps, clamp).result
    expected = gate(x, kv, weight, eps, clamp)
    for token in range(12):
        check_output(out[token], expected[0][token])
    assert same_bits(out[3], x[3])
    torch.testing.assert_close(score.double(), expected[2], rtol=2e-6, atol=0)
    torch.testing.assert_close(rstd_x.double(), expected[3], rtol=1e-6, atol=0)
    torch.testing.assert_close(rstd_k.double(), expected[4], rtol=1e-6, atol=0)
    terms = (x.double() * weight.double() * kv[:, :HEADS].double()).abs().sum(-1)
    assert ((dot.double() - expected[1]).abs() <= 1e-6 * terms).all()


def test_forward_keeps_what_is_not_a_number_to_its_row():
    """The kernel asks for saturated bfloat16 outputs, in which a NaN becomes zero."""
    x, kv, weight = inputs(33)
    clean = run(engram_gate_fwd, x, kv, weight, 1e-20, 1e-6).result
    x[5, 1, 7], kv[20, 2, 100], x[31, 0, 0] = float("nan"), float("inf"), float("-inf")
    spoiled = torch.zeros(33, HEADS, dtype=torch.bool)
    spoiled[5, 1] = spoiled[20, 2] = spoiled[31, 0] = True
    for one, other in zip(run(engram_gate_fwd, x, kv, weight, 1e-20, 1e-6).result, clean, strict=True):
        assert same_bits(one[~spoiled], other[~spoiled])
        if one.dtype == torch.bfloat16:
            assert not one[spoiled].count_nonzero()


def backward(grad, x, kv, weight, eps, clamp, mask):
    """Gradients of hidden states, keys and values, and fused weight in float64, and the saved values."""
    leaves = [tensor.double().requires_grad_() for tensor in (x, kv, weight)]
    out, *saved = gate(*leaves, eps, clamp, mask)
    out.backward(grad.double())
    return [leaf.grad for leaf in leaves], [value.detach().float() for value in saved]


# A quarter of 256 columns is half a bfloat16 register.
@pytest.mark.parametrize(("form", "hidden", "clamp"), [("plain", HIDDEN, 1e-6), ("mask", HIDDEN, 0.5), ("mask", 256, 1e-6)])
def test_backward(form, hidden, clamp):
    eps = 1e-20
    for tokens in (0, *TOKENS):  # 16 tokens occupy all 64 cores
        x, kv, weight = inputs(tokens, hidden)
        grad = bf16(tokens, HEADS, hidden, seed=tokens + 5)
        for mask in masks(tokens) if form == "mask" else [None]:
            expected, saved = backward(grad, x, kv, weight, eps, clamp, mask)
            if mask is not None:
                for value in saved:
                    value[mask] = float("nan")  # a forward run saves nothing of them
            found = run(engram_gate_bwd, grad, x, kv, weight, *saved, clamp, image_token_mask=mask).result
            *found, partial = found
            assert partial.shape == (16, HEADS, hidden)
            for one, other in zip((*found, partial.sum(0)), expected, strict=True):
                assert calc_diff(one, other.to(one.dtype)) < BACKWARD_LIMIT
                precision = BF16_HALF_ULP * 1.001 if one.dtype == torch.bfloat16 else 1e-5
                torch.testing.assert_close(one.double(), other, rtol=precision, atol=1e-5)
            if mask is not None:
                assert same_bits(found[0][mask], grad[mask])
                assert not found[1][mask].count_nonzero()


def test_backward_at_the_edges():
    """Nothing flows back through a clamped gate, also where rows are zero; values still get their gradient."""
    eps, clamp = 1e-20, 1e-6
    x, kv, weight = inputs(6)
    grad = bf16(6, HEADS, HIDDEN, seed=9)
    x[0], kv[1], grad[2] = 0, 0, 0
    x[3] *= 2.0**20
    kv[4] *= 2.0**-20
    x[5], kv[5, :HEADS] = -kv[5, :HEADS], kv[5, :HEADS]
    expected, saved = backward(grad, x, kv, weight, eps, clamp, None)
    *found, _ = run(engram_gate_bwd, grad, x, kv, weight, *saved, clamp).result
    for one, other in zip(found, expected, strict=False):
        for token in range(6):
            assert calc_diff(one[token], other[token].to(one.dtype)) < BACKWARD_LIMIT
    assert same_bits(found[0][:2], grad[:2])
    assert not found[1][:2, :HEADS].count_nonzero() and found[1][:2, HEADS].count_nonzero()
    assert not found[0][2].count_nonzero() and not found[1][2].count_nonzero()
