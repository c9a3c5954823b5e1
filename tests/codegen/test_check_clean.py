"""Text that has to pass, in the style the generator writes."""

from __future__ import annotations

import pytest

from tilelang_pto.codegen.surface import check_text, surface_of

AUG, SEP = "2026-08", "2026-09"

KERNEL = '''\
"""Two units and a helper."""
from ptodsl import {exports}


WIDTH = 64


def clamp(value, low: int, high: int):
    if high is not None and low < high:
        return {max}({min}(value, high), low)
    return value


@pto.jit(name="scale", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def scale(x: pto.ptr(pto.bf16, "gm"), y: pto.ptr(pto.f32, "gm"), rows: pto.i32, eps: pto.f32):
    core = {cast}(pto.get_block_idx(), pto.i32)
    ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.bf16, "ub"))
    out = pto.castptr(pto.const(65536, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
    for slot in pto.static_range(0, 8):
        pto.set_flag("MTE3", "V", event_id=slot)
    loop = pto.for_(0, (rows + 63) // 64, step=1).carry(step=pto.const(0, dtype=pto.i32), total=eps)
    with loop:
        row = {cast}(loop.iv, pto.i32) * 64 + core
        with pto.if_((row < rows) & (row >= 0)) as br:
            with br.then_:
                slot = loop.step % 8
                pto.wait_flag(pto.Pipe.V, "PIPE_MTE2", event_id=slot)
                pto.mte_gm_ub(pto.addptr(x, row * 128), ub, 0, 256, nburst=(1, 256, 256), loops=[(2, 256, 256)])
                pto.mte_gm_ub(x, ub, 0, 2, nburst=(1, 2, 2), pad=(pto.const(0.0, dtype=pto.bf16), 0, 15))
                with pto.vecscope():
                    half = pto.pset_b16("PAT_ALL")
                    full = pto.pset_b32(pto.PAT.ALL)
                    wide = pto.vlds(ub, 0, pto.vreg_type(128, pto.bf16))
                    even = pto.vcvt(wide, pto.f32, half, part="EVEN")
                    odd = pto.vcvt(wide, pto.f32, half, part="ODD")
                    low, high = pto.vintlv(pto.vmuls(even, 2.0, full), odd)
                    tail, rest = pto.make_mask(pto.f32, rows)
                    best = pto.vsel(low, high, pto.vcmps(low, 0.0, full, "gt"))
                    back = pto.vcvt(best, pto.f16, tail, rnd="R", sat="SAT", part="EVEN")
                    pto.vsts(back, pto.castptr(out, pto.ptr(pto.f16, "ub")), 0, pto.pset_b16("PAT_VL64"), dist="NORM_B16")
                    vec = pto.for_(0, 4, step=1).carry(acc=low)
                    with vec:
                        vec.update(acc=pto.vadd(vec.acc, high, full))
                    pto.vsts(vec.final("acc"), out, 64, full, dist="NORM_B32")
                br.assign(step=loop.step + 1, total=loop.total * 2.0)
            with br.else_:
                br.assign(step=loop.step, total=loop.total)
        loop.update(step=br.step, total=br.total)
    last = clamp(loop.final("step"), 0, 7)
    with pto.simt(128, 1, 1):
        tx = pto.get_tid_x()
        frag = pto.alloc_buffer((8,), pto.f32)
        for j in range(0, 8, 1):
            {store}(pto.const(float.fromhex("0x1p-3"), dtype=pto.f32), frag, j)
        with pto.for_(0, 4, step=1) as _k:
            k = {cast}(_k, pto.i32)
            value = {load}(frag, k) + eps
            {store}(1.0 / pto.sqrt(value), out, tx * 8 + k)
        pair = {load}(out, tx * 2, contiguous=2)
        {store}(pair, frag, 0, contiguous=2)
        {store}(pto.Vec(pto.f32, 2, init=(value_of(frag), pto.f32("0x7F800000"))), out, 0, contiguous=2)
        pto.syncthreads()
        pto.atomic_add(pto.addptr(y, last), {load}(frag, 0))
    pto.pipe_barrier("ALL")
    if WIDTH > 32:
        pto.mte_ub_gm(out, pto.addptr(y, core * WIDTH), 4 * WIDTH, nburst=(1, 4 * WIDTH, 4 * WIDTH), l2_cache="naci")
    flag = {read}
    pto.print("flag %d", flag)


def value_of(buffer):
    return {load}(buffer, 0)
'''

MIXED = """\
from ptodsl import pto


@pto.jit(name="mix", target="a5", mode="explicit", ast_rewrite=False)
def mix(a: pto.ptr(pto.f16, "gm"), o: pto.ptr(pto.f32, "gm"), *, N: pto.const_expr = 64):
    block = pto.get_block_idx()
    with pto.section("cube"):
        l1 = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f16, "mat"))
        l0 = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f16, "left"))
        acc = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "acc"))
        pto.mte_gm_l1_frac(a, l1, "nd2nz", shape=(N, 64), src_layout=(128,), dst_group=(1, 1, 64, 0), ctrl=(0, False))
        pto.mte_l1_l0a(l1, l0, 64, 64)
        pto.mte_l1_l0b(l1, l0, m_start=0, k_start=0, m_step=4, k_step=4, src_stride=4, dst_stride=4, transpose=True)
        pto.mad(l0, l0, acc, 64, 64, 64, unit_flag="check_only")
        pto.mte_l0c_gm(acc, o, 64, 64, 64, 64, 0, 0, layout=("nz2dn", 1), pre_quant=(pto.f32(1.0), "f32_f16"), atomic=("f32", "add"))
        pto.set_intra_block("FIX", 16)
    with pto.section("vector"):
        pto.wait_intra_block("V", 0)
        ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
        pto.mte_ub_gm(ub, pto.addptr(o, block * 64), 256, nburst=(1, 256, 256))
"""

REWRITTEN = """\
from ptodsl import pto


@pto.jit(name="r", kernel_kind="vector", target="a5", mode="explicit")
def r(x: pto.ptr(pto.i32, "gm"), n: pto.i32):
    pto.init_core()
    count = pto.const(0, dtype=pto.i32)
    for _i in pto.range(0, n, 1, unroll="enable"):
        i = pto.cast(_i, pto.i32)
        if i < n and i > 2:
            count = count + 1
        elif -i < -4:
            count = count << 1
        while count > 100:
            count = count - 7
    pto.st_dev(x, 0, count if count > 1 else n)
"""


def kernel(surface: str) -> str:
    spell = surface_of(surface)
    names = {op: spell.spelling(op) for op in ("max", "min", "cast", "load", "store")}
    read = spell.call("read_uncached", ("pto.castptr(y, pto.ptr(pto.i32, 'gm'))", "core"))
    return KERNEL.format(exports=", ".join(sorted(spell.api.exports)), read=read, **names)


@pytest.mark.parametrize("surface", [AUG, SEP])
def test_kernel_is_clean(surface: str) -> None:
    assert check_text(kernel(surface), surface_of(surface)) == []


@pytest.mark.parametrize("surface", [AUG, SEP])
def test_mixed_is_clean(surface: str) -> None:
    assert check_text(MIXED, surface_of(surface)) == []


def test_rewritten_is_clean() -> None:
    assert check_text(REWRITTEN, surface_of(SEP)) == []


def test_each_text_is_for_one_surface() -> None:
    assert check_text(kernel(AUG), surface_of(SEP))
    assert check_text(kernel(SEP), surface_of(AUG))
    assert check_text(REWRITTEN, surface_of(AUG))
