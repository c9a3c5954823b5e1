"""The kernels of the mutation score, each with a call that gives every core several rounds of its loops.

All are compiled for one cube core or two vector cores, so that few tokens fill all versions of every buffer twice.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from captured_launches import Launch, capture
from tilelang.backend.target import determine_target

__all__ = ["Kernel", "kernels"]

ROOT = Path(__file__).resolve().parents[1]
CUBE_CORES, VECTOR_CORES = 1, 2
STREAMS, EPS = 4, 1e-6
MIXES = STREAMS * (STREAMS + 2)


@dataclass(frozen=True)
class Kernel:
    """A kernel and a call of it.

    Attributes:
        name: as in the table: ``family.kernel``.
        call: compiles it, calls it, and raises ``AssertionError`` when the result is wrong.
        addresses: its arguments hold addresses, so the launch means something in this process only.
    """

    name: str
    call: Callable[[], None]
    addresses: bool = False

    def launch(self) -> Launch:
        """The launch of its device function that the call ends with."""
        with capture() as launches, determine_target("pto", return_object=True):
            self.call()
        return launches[-1]


def kernels() -> Iterator[Kernel]:
    """All kernels: the suite of ascend_mhc, the mHC and engram kernels of tile_kernels, the examples."""
    sys.path.insert(0, str(ROOT))
    yield from _examples()
    yield from _suite()
    yield from _mhc()
    yield from _engram()


def f32(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def bf16(*shape: int, seed: int = 0) -> torch.Tensor:
    return f32(*shape, seed=seed).to(torch.bfloat16)


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """An output: what is not written stays NaN."""
    return torch.full(shape, float("nan"), dtype=dtype)


def written(*tensors: torch.Tensor) -> None:
    """Nothing was left out, nor computed from what was not there."""
    for tensor in tensors:
        assert not tensor.isnan().any(), "a part of the result is missing"


# -- examples ------------------------------------------------------------------------------------------------------------


def _examples() -> Iterator[Kernel]:
    yield Kernel("examples.gemm", _gemm)
    yield Kernel("examples.flash_attention", _attention)


def _gemm() -> None:
    from examples.gemm import gemm

    a, b, c = bf16(256, 640, seed=1), bf16(256, 640, seed=2), empty(256, 256)
    gemm.compile(a, b, c, cores=CUBE_CORES)(a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float().T, rtol=1e-4, atol=1e-3)


def _attention() -> None:
    from examples.flash_attention import flash_attention

    q, k, v = bf16(128, 64, seed=1), bf16(320, 64, seed=2), bf16(320, 64, seed=3)
    out = empty(128, 64, dtype=torch.bfloat16)
    flash_attention.compile(q, k, v, out, scale=1 / math.sqrt(64), cores=CUBE_CORES)(q, k, v, out)
    wanted = torch.softmax(q.float() @ k.float().T / math.sqrt(64), dim=-1) @ v.float()
    torch.testing.assert_close(out.float(), wanted, rtol=2e-2, atol=2e-2)


# -- the suite of examples/ascend_mhc ------------------------------------------------------------------------------------

#: Tokens of a kernel whose family divides them at least by so much: rows of many columns, of some, of few.
_TOKENS = {32: 23, 4: 187, 1: 715}


def _suite() -> Iterator[Kernel]:
    import examples.ascend_mhc.sizes as sizes

    sizes.CUBE_CORES, sizes.VECTOR_CORES = CUBE_CORES, VECTOR_CORES  # before the families take them over
    from examples.ascend_mhc.cases import FAMILIES

    class FewTokens(sizes.Sizes):
        def tokens(self, tokens: int, *, divisor: int = 64) -> int:
            return min(tokens, next(count for least, count in _TOKENS.items() if divisor >= least))

    seen: set[str] = set()
    for family in FAMILIES:
        for case in family.cases(FewTokens(full=False)):
            one_tile = case.kernel == "gemm_with_sqrsum" and case.parameters["splits"] == 1
            if case.kernel in seen or case.tokens == 1 or one_tile:
                continue
            seen.add(case.kernel)
            yield Kernel(f"suite.{case.kernel}", lambda case=case: _call_case(case))


def _call_case(case: Any) -> None:
    import tilelang

    from tilelang_pto.compare.checking import problems_of_call

    kernel = tilelang.compile(case.program(), target="pto", pass_configs=dict(case.pass_configs))
    problems = problems_of_call(case, kernel, 0, "cpu")
    assert not problems, "; ".join(problems)


# -- tile_kernels --------------------------------------------------------------------------------------------------------


def _tile_kernels() -> Any:
    """The package as on a device with one cube core and two vector cores."""
    exists = os.path.exists
    os.path.exists = lambda path: path == "/dev/davinci_manager" or exists(path)  # type: ignore[assignment]
    try:
        import tile_kernels
    finally:
        os.path.exists = exists
    tile_kernels.config._num_sms = CUBE_CORES
    return tile_kernels


def _mhc() -> Iterator[Kernel]:
    mhc, reference = _tile_kernels().mhc, _tile_kernels().torch.mhc
    n, hidden = 23, 1280
    x, streams, weights = bf16(n, hidden, seed=1), bf16(n, STREAMS, hidden, seed=2), f32(n, STREAMS, seed=3)

    def expand_forward() -> None:
        out = empty(n, STREAMS, hidden, dtype=torch.bfloat16)
        mhc.expand_to_mhc_fwd(x, out)
        assert torch.equal(out, reference.expand_to_mhc_ref(x, STREAMS))

    def expand_backward() -> None:
        grad = empty(n, hidden, dtype=torch.bfloat16)
        mhc.expand_to_mhc_bwd(streams, grad)
        torch.testing.assert_close(grad.float(), streams.float().sum(1), rtol=2**-8, atol=1e-5)

    post = bf16(1, n, hidden, seed=4), streams[None], f32(1, n, STREAMS, 1, seed=5), f32(1, n, STREAMS, STREAMS, seed=6)

    def post_forward() -> None:
        out = mhc.mhc_post_fwd(*post, empty(1, n, STREAMS, hidden, dtype=torch.bfloat16))
        torch.testing.assert_close(out, reference.mhc_post_ref(*post))

    def post_backward() -> None:
        written(*mhc.mhc_post_bwd(*post, bf16(1, n, STREAMS, hidden, seed=7)))

    def apply_mix_forward() -> None:
        out = empty(n, hidden, dtype=torch.bfloat16)
        mhc.mhc_pre_apply_mix_fwd(streams, weights, out)
        torch.testing.assert_close(out.float(), (streams.float() * weights[..., None]).sum(1), rtol=2**-7, atol=1e-3)

    def apply_mix_backward() -> None:
        grad = bf16(n, hidden, seed=8)
        outputs = streams.clone(), torch.zeros(n, STREAMS)
        mhc.mhc_pre_apply_mix_bwd(grad, streams, weights, outputs[0])
        written(outputs[0])

    def big_fuse() -> None:
        outputs = empty(n, STREAMS), empty(n, STREAMS**2), empty(n, hidden, dtype=torch.bfloat16)
        mhc.mhc_pre_big_fuse_fwd(
            f32(1, n, MIXES, seed=9), f32(1, n, seed=10).abs() * hidden, f32(3, seed=11), f32(MIXES, seed=12), streams, *outputs,
            rms_eps=EPS, mhc_pre_eps=EPS, mhc_sinkhorn_eps=EPS, mhc_post_mult_value=2.0, sinkhorn_repeat=20,
        )  # fmt: skip
        written(*outputs)

    fn, width = f32(MIXES, STREAMS * hidden, seed=13), STREAMS * hidden

    def merge_forward() -> None:
        out, weight = empty(MIXES, width), f32(width, seed=14)
        mhc.mhc_fn_normw_merge_fwd(fn, weight, out)
        torch.testing.assert_close(out, fn * weight)

    def merge_backward() -> None:
        outputs = torch.zeros(MIXES, width), torch.zeros(width)
        mhc.mhc_fn_normw_merge_bwd(fn, f32(width, seed=14), f32(MIXES, width, seed=15), *outputs)
        written(*outputs)

    yield Kernel("mhc.expand_fwd", expand_forward)
    yield Kernel("mhc.expand_bwd", expand_backward)
    yield Kernel("mhc.post_fwd", post_forward)
    yield Kernel("mhc.post_bwd", post_backward)
    yield Kernel("mhc.pre_apply_mix_fwd", apply_mix_forward)
    yield Kernel("mhc.pre_apply_mix_bwd", apply_mix_backward)
    yield Kernel("mhc.pre_big_fuse_fwd", big_fuse)
    yield Kernel("mhc.fn_normw_merge_fwd", merge_forward)
    yield Kernel("mhc.fn_normw_merge_bwd", merge_backward)
    yield from _mhc_of_short_rows(mhc)


def _mhc_of_short_rows(mhc: Any) -> Iterator[Kernel]:
    from tile_kernels.mhc.pre_split_mixes_asc import mhc_pre_split_mixes_bwd_asc, mhc_pre_split_mixes_fwd_asc
    from tilelang import language as T

    n = 715
    mix, one, base = f32(n, STREAMS, seed=1), f32(1, seed=2), f32(STREAMS, seed=3)

    def head_forward() -> None:
        out = empty(n, STREAMS)
        mhc.mhc_head_compute_mix_fwd(mix, one, base, out, EPS)
        torch.testing.assert_close(out, torch.sigmoid(mix * one + base) + EPS)

    def head_backward() -> None:
        outputs = empty(n, STREAMS), empty(VECTOR_CORES, 1), empty(VECTOR_CORES, STREAMS)
        mhc.mhc_head_compute_mix_bwd(f32(n, STREAMS, seed=4), mix, one, base, *outputs, VECTOR_CORES)
        written(*outputs)

    splits, group = 4, STREAMS * 1280

    def norm_forward() -> None:
        outputs = empty(n, 1, MIXES), empty(n, 1), empty(n, MIXES)
        sums, squares = f32(splits, n, 1, MIXES, seed=5), f32(splits, n, 1, seed=6).abs() * group
        mhc.mhc_reduce_partials_and_rmsnorm_fwd(sums, squares, *outputs, group, EPS, splits)
        written(*outputs)

    def norm_backward() -> None:
        outputs = empty(n, 1, MIXES), empty(n, 1)
        total, squares = f32(n, 1, MIXES, seed=5), f32(n, 1, seed=6).abs() * group
        mhc.mhc_reduce_partials_and_rmsnorm_bwd(f32(n, MIXES, seed=7), total, squares, *outputs, group, EPS)
        written(*outputs)

    mixes, scale, bases = f32(n, MIXES, seed=8), f32(3, seed=9), f32(MIXES, seed=10)
    parts = f32(n, STREAMS, seed=11), f32(n, STREAMS, seed=12), f32(n, STREAMS**2, seed=13)
    simt = {"dtype": T.float32, "num_vec_cores": VECTOR_CORES}

    def split_forward(simd: bool) -> None:
        outputs = empty(n, STREAMS), empty(n, STREAMS), empty(n, STREAMS**2)
        if simd:
            mhc.mhc_pre_split_mixes_fwd(mixes, scale, bases, *outputs, 2.0, EPS)
        else:
            mhc_pre_split_mixes_fwd_asc(mixes, scale, bases, *outputs, 2.0, EPS, token_block_size=64, num_stages=2, **simt)
        written(*outputs)

    def split_backward(simd: bool) -> None:
        gradient, saved = empty(n, MIXES), torch.sigmoid(parts[1]) * 2
        if simd:
            outputs = gradient, empty(3), empty(MIXES)
            mhc.mhc_pre_split_mixes_bwd(*parts, mixes, saved, scale, bases, *outputs, 2.0)
        else:
            outputs = gradient, empty(VECTOR_CORES, 3), empty(VECTOR_CORES, MIXES)
            mhc_pre_split_mixes_bwd_asc(*parts, mixes, saved, scale, bases, *outputs, 2.0, token_block_size=8, **simt)
        written(gradient)

    square = f32(n, STREAMS, STREAMS, seed=14)

    def sinkhorn_forward() -> None:
        out = empty(n, STREAMS, STREAMS)
        mhc.mhc_sinkhorn_fwd(square, out, 20, EPS)
        written(out)

    def sinkhorn_backward() -> None:
        out = empty(n, STREAMS, STREAMS)
        mhc.mhc_sinkhorn_bwd(f32(n, STREAMS, STREAMS, seed=15), square, out, 20, EPS)
        written(out)

    yield Kernel("mhc.head_compute_mix_fwd", head_forward)
    yield Kernel("mhc.head_compute_mix_bwd", head_backward)
    yield Kernel("mhc.reduce_partials_and_rmsnorm_fwd", norm_forward)
    yield Kernel("mhc.reduce_partials_and_rmsnorm_bwd", norm_backward)
    yield Kernel("mhc.pre_split_mixes_fwd.simd", lambda: split_forward(True))
    yield Kernel("mhc.pre_split_mixes_fwd.simt", lambda: split_forward(False))
    yield Kernel("mhc.pre_split_mixes_bwd.simd", lambda: split_backward(True))
    yield Kernel("mhc.pre_split_mixes_bwd.simt", lambda: split_backward(False))
    yield Kernel("mhc.sinkhorn_fwd", sinkhorn_forward)
    yield Kernel("mhc.sinkhorn_bwd", sinkhorn_backward)
    yield Kernel("mhc.multilayer_recompute", _recompute, addresses=True)


def _recompute() -> None:
    from tile_kernels.mhc.multilayer_recompute_asc import mhc_multilayer_recompute_asc

    n, layers, posts, hidden = 11, 3, 2, 512
    data = [
        [f32(n, STREAMS, seed=layer) for layer in range(layers)],
        [bf16(n, hidden, seed=10 + layer) for layer in range(posts)],
        [f32(n, STREAMS, seed=20 + layer) for layer in range(posts)],
        [f32(n, STREAMS, STREAMS, seed=30 + layer) for layer in range(posts)],
        [empty(n, hidden, dtype=torch.bfloat16) for _ in range(layers)],
        [empty(n, STREAMS, hidden, dtype=torch.bfloat16) for _ in range(posts)],
    ]
    _recompute.kept = data  # type: ignore[attr-defined]  # mutants run later and write there
    tables = [torch.tensor([tensor.data_ptr() for tensor in tensors], dtype=torch.int64) for tensors in data]
    mhc_multilayer_recompute_asc(bf16(n, STREAMS, hidden, seed=40), *tables, h_blk=256, num_vec_cores=VECTOR_CORES)
    written(*data[4], *data[5])


def _engram() -> Iterator[Kernel]:
    package = _tile_kernels()
    engram = package.engram
    from tile_kernels.torch.engram import engram_hash_ref, make_offsets

    n, heads, hidden, columns = 23, 4, 2560, 512
    x, kv = bf16(n, heads, hidden, seed=1), bf16(n, heads + 1, hidden, seed=2)
    weight, mask = f32(heads, hidden, seed=3), torch.arange(n) % 3 == 1

    def gate_forward(options: dict[str, Any]) -> None:
        out, *_ = engram.engram_gate_fwd(x.clone(), kv, weight, EPS, EPS, **options)
        written(out)

    def gate_backward(options: dict[str, Any]) -> None:
        _, *saved = engram.engram_gate_fwd(x.clone(), kv, weight, EPS, EPS)
        cores = heads // 2  # cube cores; it wants a vector core for each stream
        with mock.patch.object(package.config, "_num_sms", cores):
            gradients = engram.engram_gate_bwd(bf16(n, heads, hidden, seed=4), x, kv, weight, *saved, EPS, **options)
        written(*gradients[:2])

    multipliers = torch.randint(-(1 << 40), 1 << 40, (2, 3), generator=torch.Generator().manual_seed(5))
    sizes = torch.randint(1, 1 << 20, (2, 2, 8), generator=torch.Generator().manual_seed(6), dtype=torch.int32)

    def hashes(masked: bool) -> None:
        ids = torch.randint(0, 1 << 30, (1300, 3), generator=torch.Generator().manual_seed(7), dtype=torch.int32)
        tables = multipliers, sizes, make_offsets(sizes)
        some = torch.arange(1300) % 3 == 1 if masked else None
        assert torch.equal(engram.engram_hash(ids, *tables, some), engram_hash_ref(ids, *tables, some))

    def fused() -> None:
        one, other = bf16(heads, hidden, seed=8), bf16(heads, hidden, seed=9)
        assert torch.equal(engram.fused_weight(one, other), one.float() * other.float())

    def weight_gradients() -> None:
        gradients = f32(heads, hidden, seed=10), f32(heads, hidden, seed=11)
        engram.grad_w_reduce(f32(16, heads, hidden, seed=12), bf16(heads, hidden, seed=13), bf16(heads, hidden, seed=14), *gradients)
        written(*gradients)

    def momentum(dtype: torch.dtype, nesterov: bool) -> None:
        update = engram.engram_sinkhorn_momentum_update(f32(131072, seed=15).to(dtype), f32(131072, seed=16), 0.95, nesterov)
        written(update)

    rows = 187
    matrix = f32(rows, columns, seed=17), f32(rows, seed=18).abs() + 1, f32(columns, seed=19).abs() + 1

    def step() -> None:
        written(*engram.engram_sinkhorn_step(*[tensor.clone() for tensor in matrix], EPS))

    def step_reduce() -> None:
        out = empty(columns)
        engram.engram_sinkhorn_step_reduce(f32(64, columns, seed=20), out)
        torch.testing.assert_close(out, f32(64, columns, seed=20).sum(0), rtol=1e-4, atol=1e-4)

    def finalize() -> None:
        written(engram.engram_sinkhorn_finalize(*[tensor.clone() for tensor in matrix], EPS, 0.2))

    inference = {"save_for_backward": False}
    yield Kernel("engram.gate_fwd.save", lambda: gate_forward({}))
    yield Kernel("engram.gate_fwd.save.mask", lambda: gate_forward({"image_token_mask": mask}))
    yield Kernel("engram.gate_fwd.infer", lambda: gate_forward(inference))
    yield Kernel("engram.gate_fwd.infer.mask", lambda: gate_forward({**inference, "inplace": True, "image_token_mask": mask}))
    yield Kernel("engram.gate_bwd", lambda: gate_backward({}))
    yield Kernel("engram.gate_bwd.mask", lambda: gate_backward({"image_token_mask": mask}))
    yield Kernel("engram.hash", lambda: hashes(False))
    yield Kernel("engram.hash.mask", lambda: hashes(True))
    yield Kernel("engram.fused_weight", fused)
    yield Kernel("engram.grad_w_reduce", weight_gradients)
    yield Kernel("engram.sinkhorn_momentum.bf16", lambda: momentum(torch.bfloat16, False))
    yield Kernel("engram.sinkhorn_momentum.f32.nesterov", lambda: momentum(torch.float32, True))
    yield Kernel("engram.sinkhorn_step", step)
    yield Kernel("engram.sinkhorn_step_reduce", step_reduce)
    yield Kernel("engram.sinkhorn_finalize", finalize)
