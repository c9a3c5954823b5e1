"""Attention on cube and vector cores, on the simulator, against float64: forward, grouped queries, gradients."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import cube_kernels
import pytest
import torch
from cube_runs import SURFACES, accepted, device_module, launch
from real_toolchain import real_toolchain

surfaces = pytest.mark.parametrize("surface", SURFACES)
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "flash_attention.py"


def forward_kernel(queries: int, keys: int, d: int, tile: int):
    """The kernel of ``examples/flash_attention.py`` for these extents."""
    spec = importlib.util.spec_from_file_location("flash_attention_example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    q, k = torch.empty(queries, d, dtype=torch.bfloat16), torch.empty(keys, d, dtype=torch.bfloat16)
    return example.flash_attention.get_tir(q, k, k, q, scale=1 / math.sqrt(d), tile=tile, cores=2)


def tensor(rows: int, columns: int, seed: int, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * scale).bfloat16()


def attention(q, k, v):
    return torch.softmax(q @ k.T / math.sqrt(q.shape[1]), dim=-1) @ v


def forward_bound(q, k, v):
    """Probabilities and the result are rounded to bfloat16; scores are sums in float32."""
    q, k, v = q.double(), k.double(), v.double()
    weights = torch.softmax(q @ k.T / math.sqrt(q.shape[1]), dim=-1)
    score_error = (q.abs() @ k.abs().T).max() / math.sqrt(q.shape[1]) * q.shape[1] * 2.0**-23
    return (weights @ v.abs()) * (2.0**-8 + 2 * score_error + 2.0**-18) + attention(q, k, v).abs() * 2.0**-8


def run_forward(surface, q, k, v, tile=64):
    out = torch.full_like(q, 9)
    mod = device_module(forward_kernel, (q.shape[0], k.shape[0], q.shape[1], tile))
    launch(mod, surface, {"q": q, "k": k, "v": v, "out": out})
    return out


def assert_attention(out, q, k, v):
    error = (out.double() - attention(q.double(), k.double(), v.double())).abs()
    assert (error <= forward_bound(q, k, v)).all(), error.max()


@surfaces
@pytest.mark.parametrize(("queries", "keys", "d", "tile"), [(128, 256, 64, 64), (64, 64, 128, 64), (128, 256, 64, 128)])
def test_forward(queries, keys, d, tile, surface):
    q, k, v = tensor(queries, d, 1), tensor(keys, d, 2), tensor(keys, d, 3)
    assert_attention(run_forward(surface, q, k, v, tile), q, k, v)


def test_scores_that_would_overflow_without_the_maximum():
    q, k, v = tensor(64, 64, 1, 30.0), tensor(128, 64, 2, 30.0), tensor(128, 64, 3)
    out = run_forward("2026-09", q, k, v)
    assert out.isfinite().all()
    assert_attention(out, q, k, v)


def test_queries_that_share_keys():
    """Grouped queries: the heads of a group are more rows of queries."""
    group, rows, d = 4, 32, 64
    q, k, v = tensor(group * rows, d, 5), tensor(128, d, 6), tensor(128, d, 7)
    out = run_forward("2026-09", q, k, v)
    for head in range(group):
        part = slice(head * rows, (head + 1) * rows)
        assert_attention(out[part], q[part], k, v)


def test_host_threads_change_no_bit():
    q, k, v = tensor(128, 64, 1), tensor(256, 64, 2), tensor(256, 64, 3)
    mod = device_module(forward_kernel, (128, 256, 64, 64))
    results = []
    for threads in (1, 2):
        out = torch.zeros_like(q)
        launch(mod, "2026-09", {"q": q, "k": k, "v": v, "out": out}, host_threads=threads)
        results.append(out)
    assert torch.equal(*results)


def backward_module(queries: int = 128, keys: int = 128, d: int = 64):
    return device_module(cube_kernels.attention_backward, (queries, keys, d), (("scale", 1 / math.sqrt(d)),))


@surfaces
def test_gradients(surface):
    """Of grouped queries: two heads of 64 queries share 128 keys. dQ is added up by all cores."""
    queries, keys, d = 128, 128, 64
    q, k, v, grad = tensor(queries, d, 1), tensor(keys, d, 2), tensor(keys, d, 3), tensor(queries, d, 4)
    exact = [t.double().requires_grad_() for t in (q, k, v)]
    scores = exact[0] @ exact[1].T / math.sqrt(d)
    out = torch.softmax(scores, dim=-1) @ exact[2]
    out.backward(grad.double())
    found = {f"{name}_grad": torch.zeros(rows, d) for name, rows in (("q", queries), ("k", keys), ("v", keys))}
    inputs = {
        "q": q, "k": k, "v": v, "out_grad": grad,
        "log_sum": torch.logsumexp(scores.detach(), dim=-1).float(), "delta": (out.detach() * grad.double()).sum(-1).float(),
    }  # fmt: skip
    launch(backward_module(), surface, {**inputs, **found})

    weights = torch.softmax(scores.detach(), dim=-1)
    change = weights * ((grad.double() @ v.double().T) - (out.detach() * grad.double()).sum(-1, keepdim=True)) / math.sqrt(d)
    rounding = 2.0**-8  # of probabilities and score gradients to bfloat16
    allowed = {
        "q_grad": change.abs() @ k.double().abs(), "k_grad": change.abs().T @ q.double().abs(), "v_grad": weights.T @ grad.double().abs(),
    }  # fmt: skip
    for (name, result), wanted in zip(found.items(), exact, strict=True):
        error = (result.double() - wanted.grad).abs()
        assert (error <= allowed[name] * rounding + 2.0**-16).all(), (name, error.max())


@real_toolchain
def test_accepted(tmp_path):
    for name, mod in (("forward", device_module(forward_kernel, (128, 256, 64, 64))), ("backward", backward_module())):
        directory = tmp_path / name
        directory.mkdir()
        accepted(mod, directory)
