"""Planted faults: every kind the checker knows, on the surface where it is one."""

from __future__ import annotations

import textwrap

import pytest

from tilelang_pto.codegen.surface import check_text, require_clean, surface_of
from tilelang_pto.errors import SurfaceError

AUG, SEP = "2026-08", "2026-09"
BOTH = (AUG, SEP)
THEN = "with pto.if_(n < 1) as br:\n    with br.then_:\n        "
ELSE = "\n    with br.else_:\n        "
HEAD = '@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)\n'
SIGNATURE = 'def k(x: pto.ptr(pto.f32, "gm"), y: pto.ptr(pto.f32, "gm"), n: pto.i32):\n'
SETUP = """
ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
m = pto.pset_b32("PAT_ALL")
v = pto.vlds(ub, 0, pto.vreg_type(64, pto.f32))
"""


def module(body: str, surface: str, *, setup: bool = True) -> str:
    names = "pto, scalar" if surface == AUG else "pto"
    lines = (SETUP if setup else "") + textwrap.dedent(body)
    return f"from ptodsl import {names}\n\n\n{HEAD}{SIGNATURE}{textwrap.indent(lines, '    ')}\n"


def messages(text: str, surface: str) -> list[str]:
    return [str(finding) for finding in check_text(text, surface_of(surface))]


def expect_one(text: str, surface: str, part: str) -> None:
    found = messages(text, surface)
    assert len(found) == 1, found
    assert part in found[0]


CALLS = [
    ("pto.vfoo(v, m)", BOTH, "has no pto.vfoo"),
    ("pto.vexpdiff(v, v, m)", BOTH, "did you mean vexpdif"),
    ("pto.Pipe.XYZ", BOTH, "has no pto.Pipe.XYZ"),
    ("pto.tile.nothing(v)", BOTH, "has no pto.tile.nothing"),
    ("pto.ukernel(v)", BOTH, "rejects"),
    ("a = pto.load(ub, 0)", (AUG,), "use scalar.load"),
    ("a = pto.cast(n, pto.i64)", (AUG,), "use scalar.cast"),
    ("pto.init_core()", (AUG,), "has no pto.init_core"),
    ("a = pto.ld_dev(x, 0)", (AUG,), "bypass_l1=True"),
    ("a = pto.load_scalar(x, 0)", (SEP,), "pto.ld_dev (bypass) or pto.load"),
    ("a = pto.convert(n, pto.f32, rounding='r', saturation='sat')", (SEP,), "use pto.cast"),
    ("pto.vadd", BOTH, "without being called"),
    ("a = pto", BOTH, "module itself"),
    ("a = pto.f32(n)", BOTH, "makes constants only"),
    ("a = pto.vadd(v, v)", BOTH, "lacks mask"),
    ("a = pto.vadd(v, v, m, None, v)", BOTH, "takes 4 positional"),
    ("a = pto.vabs(v, m, v)", BOTH, "takes 2 positional"),
    ("a = pto.vabs(v, mask=m, foo=1)", BOTH, "has no parameter 'foo'"),
    ("a = pto.vabs(v, m, mask=m)", BOTH, "given twice"),
    ("pto.set_flag('V', 'MTE2', 0)", BOTH, "keyword-only: event_id"),
    ("pto.mte_gm_ub(x, ub, 0, 256)", BOTH, "lacks nburst"),
    ("pto.mte_gm_ub(x, ub, 0, 256, (1, 256, 256))", BOTH, "takes 4 positional"),
    ("pto.set_flag('V', 'MTE9', event_id=0)", BOTH, "is not a legal value"),
    ("pto.set_intra_block('S', 0)", BOTH, "is not a legal value"),
    ("pto.set_flag('V', pto.CmpMode.EQ, event_id=0)", BOTH, "use pto.Pipe"),
    ("pto.set_flag('V', 'MTE2', event_id=8)", BOTH, "legal is 0..7"),
    ("pto.set_flag('V', 'MTE2', event_id=-1)", BOTH, "legal is 0..7"),
    ("pto.set_flag('V', 'MTE2', event_id=True)", BOTH, "Python bool"),
    ("pto.set_flag('V', 'MTE2', event_id=None)", BOTH, "may not be None"),
    ("pto.set_flag('V', 'MTE2', event_id='0')", BOTH, "not an integer"),
    ("for e in pto.static_range(0, 9):\n    pto.set_flag('V', 'MTE2', event_id=e)", BOTH, "reaches 8"),
    ("for e in range(4):\n    pto.set_flag('V', 'MTE2', event_id=e * 4)", BOTH, "reaches 12"),
    ("pto.get_buf('V', 32)", BOTH, "legal is 0..31"),
    ("pto.set_cross_block('V', 16)", BOTH, "legal is 0..15"),
    ("pto.mem_bar('V_ALL')", BOTH, "is not a legal value"),
    ("pto.pipe_barrier('PIPE_X')", BOTH, "is not a legal value"),
    ("a = pto.pset_b32('PAT_VL129')", BOTH, "is not a legal value"),
    ("a = pto.vlds(ub, 0, pto.vreg_type(64, pto.f32), dist='NORM_B32')", BOTH, "is not a legal value"),
    ("a = pto.vlds(ub, 0, pto.vreg_type(64, pto.f32), dist='BRC_B16')", BOTH, "does not fit f32"),
    ("a = pto.vlds(ub)", BOTH, "lacks offset"),
    ("pto.vsts(v, ub, 0)", BOTH, "lacks mask"),
    ("pto.vsts(v, ub, 0, m, dist='NORM_B16')", BOTH, "does not fit f32"),
    ("pto.vsts(v, ub, 0, m, dist='ONEPT_B32')", BOTH, "is not a legal value"),
    ("pto.vsts(v, ub, 0, m, post_update='YES')", BOTH, "is not a legal value"),
    ("pto.vsts(v, ub, 0, pto.pset_b16('PAT_ALL'))", BOTH, "mask is b16"),
    ("pto.vsts(m, ub, 0, m)", BOTH, "use pto.psts"),
    ("a, b = pto.vldsx2(ub, 0)", BOTH, "lacks dist"),
    ("a, b = pto.vldsx2(ub, 0, 'DINTLV')", BOTH, "is not a legal value"),
    ("pto.mte_ub_gm(ub, x, 256, nburst=(1, 256, 256), l2_cache='abc')", BOTH, "is not a legal value"),
    ("pto.mte_ub_gm(ub, x, 256, nburst=(1, 256))", BOTH, "2 elements, legal is 3"),
    ("pto.mte_ub_gm(ub, x, 256, nburst=[1, 256, 256])", BOTH, "must be a tuple of 3"),
    ("pto.mte_ub_gm(ub, x, 256, nburst=(1, True, 256))", BOTH, "nburst[1] is a Python bool"),
    ("pto.mte_ub_gm(ub, x, 256, nburst=(1, '1', 256))", BOTH, "nburst[1] is not a number"),
    ("pto.mte_ub_gm(ub, x, 256, nburst=(1, 1, 1), loops=[(1, 2)])", BOTH, "legal is 3"),
    ("pto.mte_ub_gm(ub, x, 256, nburst=(1, 1, 1), loops=3)", BOTH, "list of tuples"),
    ("pto.mte_gm_ub(x, ub, 0, 256, nburst=(1, 1, 1), pad=(0, 1))", BOTH, "legal is 1 or 3"),
    ("pto.mte_gm_ub(x, ub, 0, True, nburst=(1, 1, 1))", BOTH, "Python bool"),
    ("pto.mte_gm_ub(x, ub, 0, 'a', nburst=(1, 1, 1))", BOTH, "where a value is expected"),
    ("a = pto.addptr(ub, pto.f32)", BOTH, "a type where a value is expected"),
    ("a = pto.addptr(ub, (1, 2))", BOTH, "a tuple where a value is expected"),
    ("a = pto.addptr(ub, None)", BOTH, "may not be None"),
    ("a = pto.const(True)", BOTH, "Python bool"),
    ("a = pto.const(n)", BOTH, "must be a Python number"),
    ("a = pto.const(1.5)", BOTH, "float constant of type index"),
    ("a = pto.const(0, pto.i32)", BOTH, "keyword-only: dtype"),
    ("a = pto.const(0, dtype=32)", BOTH, "must be a dtype"),
    ("a = pto.castptr(n, 4)", BOTH, "must be a pto.ptr"),
    ("a = pto.ptr(pto.f32, 'l1')", BOTH, "is not a legal value"),
    ("a = pto.vreg_type(64, pto.f16)", BOTH, "128 lanes of pto.f16"),
    ("a = pto.vreg_type(128, pto.f32)", BOTH, "64 lanes of pto.f32"),
    ("a = pto.vreg_type(n, pto.f32)", BOTH, "known while tracing"),
    ("a = pto.vlds(ub, 0, pto.f32)", BOTH, "must be a pto.vreg_type"),
    ("a = pto.vadd(v, v, v)", BOTH, "vector register where a mask"),
    ("a = pto.vadd(v, v, 1)", BOTH, "must be a mask"),
    ("a = pto.vadd(v, v, pto.pset_b16('PAT_ALL'))", BOTH, "b16 mask, the elements are f32"),
    ("a = pto.vadd(v, pto.vlds(ub, 0, pto.vreg_type(128, pto.f16)), m)", BOTH, "holds f16 elements"),
    ("a = pto.pand(m, pto.pset_b16('PAT_ALL'), m)", BOTH, "different granularity"),
    ("a = pto.vcmp(v, v, m, 'less')", BOTH, "is not a legal value"),
    ("a = pto.vcmp(v, v, m)", BOTH, "lacks cmp_mode"),
    ("a = pto.vcvt(v, pto.f16, m)", BOTH, "needs part"),
    ("a = pto.vcvt(v, pto.f16, m, rnd='R', sat='SAT', part='P0')", BOTH, "takes part EVEN ODD"),
    ("a = pto.vcvt(v, pto.f8e4m3, m, rnd='F', sat='SAT', part='P0')", BOTH, "takes rnd R A H Z"),
    ("a = pto.vcvt(v, pto.i32, m, rnd='Z', sat='SAT', part='EVEN')", BOTH, "does not take part"),
    ("a = pto.vcvt(v, pto.i32, m, rnd='X', sat='SAT')", BOTH, "is not a legal value"),
    ("a = pto.vcvt(v, pto.ui32, m)", BOTH, "no conversion f32 -> u32"),
    ("a = pto.vcvt(pto.vdup(n, m), pto.f16, m, rnd='R', part='ODD')", BOTH, "no conversion to f16 takes part and rnd"),
    ("a = pto.vtrc(v, m, rnd='X')", BOTH, "is not a legal value"),
    ("a = pto.vpack(v, 'EVEN')", BOTH, "is not a legal value"),
    ("a = pto.vdup(n, m, 'FIRST')", BOTH, "is not a legal value"),
    ("a = pto.vdiv(v, v, m, precision='HighPrecision')", (AUG,), "has no parameter 'precision'"),
    ("a = pto.vdiv(v, v, m, precision='Best')", (SEP,), "is not a legal value"),
    ("pto.mad(ub, ub, ub, 16, 16, 16, init=1)", (AUG,), "has no parameter 'init'"),
    ("pto.mad(ub, ub, ub, 16, 16, 16, init=1)", (SEP,), "must be a runtime value"),
    ("pto.mad(ub, ub, ub, 16, 16, 16, disable_gemv=n)", (AUG,), "must be True or False"),
    ("pto.mad(ub, ub, ub, 16, 16, 16, unit_flag='set')", BOTH, "is not a legal value"),
    ("pto.mte_l1_l0a(ub, ub, m_start=0, k_start=0)", BOTH, "missing m_step"),
    ("pto.mte_l1_l0a(ub, ub, 16)", BOTH, "needs both extents"),
    ("pto.mte_l0c_ub(ub, ub, 1, 1, 1, 1, layout='nz2dn')", BOTH, "no legal form"),
    ("pto.mte_l0c_ub(ub, ub, 1, 1, 1, 1, pre_quant=(n, 'f32_f64'))", BOTH, "no legal form"),
    ("pto.mte_gm_l1_frac(x, ub, 'nd2zz', shape=(1, 1), src_layout=(1,), dst_group=(1, 1, 1, 0), ctrl=(0, False))", BOTH, "nd2zz"),
    ("pto.raw_fill_l1(ub, 0, 0, repeat_times=1, block_num_32b=1, dst_gap_32b=0, fill_word_bits=8)", BOTH, "is not one of 16, 32"),
    ("a = pto.alloc_buffer((4,), pto.f32, scope='local')", BOTH, "has no parameter 'scope'"),
    ("a = pto.alloc_buffer((n,), pto.f32)", BOTH, "positive Python integers only"),
    ("a = pto.alloc_buffer(4, pto.f32)", BOTH, "must be a tuple of positive"),
    ("a = pto.set_flag('V', 'MTE2', event_id=0)", BOTH, "returns nothing"),
    ("a = pto.vabs(pto.syncthreads_(), m)", BOTH, "has no pto.syncthreads_"),
    ("a = pto.vabs(pto.mem_bar('VST_VLD'), m)", BOTH, "returns nothing"),
    ("a, b, c = pto.vintlv(v, v)", BOTH, "3 names for 2 values"),
    ("a = pto.get_tid_x()", BOTH, "inside pto.simt only"),
    ("a = pto.atomic_add(x, n)", BOTH, "inside pto.simt only"),
    ("with pto.simt(32, 1, 1):\n    a = pto.vabs(v, m)", BOTH, "not legal inside pto.simt"),
    ("with pto.simt(32, 1):\n    pto.syncthreads()", BOTH, "exactly three dims"),
    ("with pto.simt(n, 1, 1):\n    pto.syncthreads()", BOTH, "must be Python integers"),
    ("with pto.simt(1024, 4, 1):\n    pto.syncthreads()", BOTH, "the limit is 2048"),
    ("with pto.simt(1, 1, 1, max_threads=32):\n    pto.syncthreads()", BOTH, "decorated form"),
    ("with pto.simt(32, 1, 1):\n    a = pto.redux_add(n, signedness='signed')", (SEP,), "has no parameter"),
    ("with pto.simt(32, 1, 1):\n    pto.stg(n, x, 0, l2cache='nmpref')", BOTH, "is not a legal value"),
    ("with pto.simt(32, 1, 1):\n    a = pto.shuffle_idx(n, 0, width=8)", BOTH, "is not one of 16, 32"),
]

OPERATORS = [
    ("a = -n", (AUG,), "use 0 - x"),
    ("a = n << 2", (AUG,), "no shifts"),
    ("a = 1 >> n", (AUG,), "no shifts"),
    ("n <<= 1", (AUG,), "no shifts"),
    ("a = ~n", BOTH, "no surface has ~"),
    ("a = ~5", BOTH, "no surface has ~"),
    ("a = n ** 2", BOTH, "do not have this operator"),
    ("a = (n < 3) and (n > 1)", BOTH, "use & on conditions"),
    ("a = n or 3", BOTH, "use | on conditions"),
    ("a = not n", BOTH, "compare with 0"),
    ("a = 0 < n < 4", BOTH, "chained comparison"),
    ("a = n in (1, 2)", BOTH, "no membership test"),
    ("a = n + True", BOTH, "Python bool"),
    ("a = n == False", BOTH, "Python bool"),
    ("a = v + v", BOTH, "vector registers have no operators"),
    ("a = m & m", BOTH, "masks have no operators"),
    ("a = 1 if n < 2 else 0", BOTH, "conditional expression"),
    ("a = int(n)", BOTH, "Python's int()"),
    ("a = min(n, 4)", BOTH, "Python's min()"),
    ("a = n[0]", BOTH, "cannot be indexed"),
    ("a = (1, 2)[n]", BOTH, "no runtime index"),
    ("a = n.value", BOTH, "no attribute 'value'"),
    ("a = n.get()", BOTH, "no method 'get'"),
    ("a = (b := n)", BOTH, "does not belong"),
]

CONTROL = [
    ("if n < 3:\n    pto.mem_bar('VST_VLD')", BOTH, "use pto.if_"),
    ("while n < 3:\n    pto.mem_bar('VST_VLD')", BOTH, "native while"),
    ("for i in range(n):\n    pto.mem_bar('VST_VLD')", BOTH, "use pto.for_"),
    ("for i in pto.static_range(0, n):\n    pto.mem_bar('VST_VLD')", BOTH, "use pto.for_"),
    ("for i in n:\n    pto.mem_bar('VST_VLD')", BOTH, "cannot be iterated"),
    ("for i in pto.range(0, 4):\n    pto.mem_bar('VST_VLD')", (SEP,), "rewritten functions only"),
    ("with pto.for_(0, 4) as i:\n    pto.mem_bar('VST_VLD')", BOTH, "lacks step"),
    ("with pto.for_(0, 4, 1) as i:\n    pto.mem_bar('VST_VLD')", BOTH, "lacks step"),
    ("with pto.for_(0, 4, step=0) as i:\n    pto.mem_bar('VST_VLD')", BOTH, "step must be positive"),
    ("with pto.for_(0, 4, step=1, unroll='full') as i:\n    pto.mem_bar('VST_VLD')", (AUG,), "has no parameter 'unroll'"),
    ("with pto.for_(0, 4, step=1, unroll='all') as i:\n    pto.mem_bar('VST_VLD')", (SEP,), "is not a legal value"),
    ("with pto.for_(0, 4, step=1, unroll='full', unroll_factor=2) as i:\n    pto.mem_bar('VST_VLD')", (SEP,), "exclude"),
    ("with pto.if_(True) as br:\n    with br.then_:\n        pto.trap()", BOTH, "Python bool"),
    ("with pto.if_(n < 1) as br:\n    pto.trap()\n    with br.then_:\n        pto.trap()", BOTH, "nothing but its two branches"),
    ("with pto.if_(n < 1) as br:\n    with br.else_:\n        pto.trap()", BOTH, "never enters then_"),
    (f"{THEN}pto.trap()\n    with br.then_:\n        pto.trap()", BOTH, "entered twice"),
    ("with pto.if_(n < 1) as br:\n    with br.then_:\n        br.assign(a=n)", BOTH, "only one branch assigns a"),
    (f"{THEN}br.assign(a=n){ELSE}br.assign(a=n)\nb = br.c", BOTH, "'c'"),
    (f"{THEN}br.assign(a=n)\n        br.assign(b=n){ELSE}br.assign(a=n, b=n)", BOTH, "assigns twice"),
    (f"{THEN}br.assign(a=True){ELSE}br.assign(a=n)", BOTH, "Python bool"),
    ("with pto.if_(n < 1) as br:\n    with br.then_:\n        br.set(a=n)", BOTH, "no method 'set'"),
    (f"{THEN}br.assign(a=n){ELSE}br.assign(a=n)\nb = br.get('a')", (AUG,), "no method 'get'"),
    ("with pto.if_(n < 1) as br:\n    with br.then_:\n        a = n + 1\nb = a", BOTH, "block that has ended"),
    ("with pto.for_(0, 4, step=1) as i:\n    pto.trap()\nb = i", BOTH, "block that has ended"),
    ("with pto.vecscope():\n    w = pto.vabs(v, m)\nz = pto.vabs(w, m)", BOTH, "block that has ended"),
    ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    loop.update(b=n)", BOTH, "missing a, unknown b"),
    ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    b = loop.a", BOTH, "never updated"),
    ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    loop.update(a=n)\n    loop.update(a=n)", BOTH, "more than once"),
    ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    loop.update(a=n)\nb = loop.a", BOTH, 'loop.final("a")'),
    ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    loop.update(a=n)\nb = loop.final('c')", BOTH, "carries no 'c'"),
    ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    b = loop.c\n    loop.update(a=n)", BOTH, "carries no 'c'"),
    ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    loop.update(a=n)\nwith loop:\n    loop.update(a=n)", BOTH, "entered twice"),
    ("loop = pto.for_(0, 4, step=1).carry(a=0)\nwith loop:\n    loop.update(a=n)", BOTH, "pto.const(value, dtype=...)"),
    ("with pto.for_(0, 4, step=1).carry(a=n) as loop:\n    loop.update(a=n)", BOTH, "named first"),
    ("loop = pto.for_(0, 4, step=1)", BOTH, "opens a block"),
    ("pto.vecscope()", BOTH, "opens a block"),
    ("with n:\n    pto.trap()", BOTH, "no block of the API"),
    ("with pto.vecscope(), pto.simt(1, 1, 1):\n    pto.trap()", BOTH, "one block per with"),
    ("with pto.section('vector'):\n    pto.trap()", BOTH, "no kernel_kind"),
    ("a = undefined_name + 1", BOTH, "'undefined_name' is not defined"),
    ("b = late\nlate = n", BOTH, "'late' is not defined"),
    ("return n", BOTH, "returns nothing"),
    ("import math", BOTH, "only ptodsl is imported"),
    ("try:\n    pto.trap()\nfinally:\n    pass", BOTH, "does not belong"),
    ("raise ValueError", BOTH, "does not belong"),
    ("assert n < 3", BOTH, "pto.trap()"),
]


def _cases(table: list[tuple[str, tuple[str, ...], str]]) -> list[tuple[str, str, str]]:
    return [(body, surface, part) for body, surfaces, part in table for surface in surfaces]


@pytest.mark.parametrize(("body", "surface", "part"), _cases(CALLS))
def test_call_fault(body: str, surface: str, part: str) -> None:
    found = messages(module(body, surface), surface)
    assert any(part in text for text in found), found
    assert len(found) <= 3


@pytest.mark.parametrize(("body", "surface", "part"), _cases(OPERATORS))
def test_operator_fault(body: str, surface: str, part: str) -> None:
    expect_one(module(body, surface), surface, part)


@pytest.mark.parametrize(("body", "surface", "part"), _cases(CONTROL))
def test_control_fault(body: str, surface: str, part: str) -> None:
    found = messages(module(body, surface), surface)
    assert any(part in text for text in found), found
    assert len(found) <= 3


@pytest.mark.parametrize("surface", BOTH)
@pytest.mark.parametrize("call", ["pto.for_(0, 4, step=1).carry(_a=n)", "pto.for_(0, 4, step=1).carry(__a=n)"])
def test_underscore_carry(call: str, surface: str) -> None:
    name = call.split("carry(")[1].split("=")[0]
    expect_one(module(f"loop = {call}\nwith loop:\n    loop.update({name}=n)", surface), surface, "starts with an underscore")


@pytest.mark.parametrize("surface", BOTH)
def test_underscore_branch_result(surface: str) -> None:
    body = "with pto.if_(n < 1) as br:\n    with br.then_:\n        br.assign(_a=n)\n    with br.else_:\n        br.assign(_a=n)"
    found = messages(module(body, surface), surface)
    assert len(found) == 2
    assert all("starts with an underscore" in text for text in found)


@pytest.mark.parametrize("surface", BOTH)
def test_update_in_nested_block(surface: str) -> None:
    body = """
        loop = pto.for_(0, 4, step=1).carry(a=n)
        with loop:
            with pto.if_(n < 2) as br:
                with br.then_:
                    loop.update(a=n)
    """
    expect_one(module(body, surface), surface, "directly in its own body")


FRAMES = [
    ("import numpy\nfrom ptodsl import pto\n", BOTH, "only ptodsl is imported"),
    ("from __future__ import annotations\nfrom ptodsl import pto\n", BOTH, "__future__"),
    ("from ptodsl import pto as p\n", BOTH, "another name"),
    ("from ptodsl import pto, scalar\n", (SEP,), "exports no 'scalar'"),
    ("from ptodsl import pto, tile\n", BOTH, "exports no 'tile'"),
    ("import ptodsl\n", BOTH, "only ptodsl is imported"),
    ("def k(:\n", BOTH, "not Python"),
    ("x = pto.f32\n", BOTH, "not imported"),
    ("from ptodsl import pto\npto.trap()\n", BOTH, "constants and functions only"),
    ("from ptodsl import pto\nclass A:\n    pass\n", BOTH, "constants and functions only"),
    ("from ptodsl import pto\n@pto.jit\ndef k():\n    pass\n", BOTH, "with parentheses"),
    ("from ptodsl import pto\n@pto.jit(kernel_kind='mixed')\ndef k():\n    pass\n", BOTH, "is not a legal value"),
    ("from ptodsl import pto\n@pto.jit(mode='manual')\ndef k():\n    pass\n", BOTH, "is not a legal value"),
    ("from ptodsl import pto\n@pto.jit(module_style='nested')\ndef k():\n    pass\n", BOTH, "has no parameter"),
    ("from ptodsl import pto\n@pto.jit(mode='explicit', backend='emitc')\ndef k():\n    pass\n", BOTH, "emitc"),
    ("from ptodsl import pto\n@pto.jit(insert_sync=2)\ndef k():\n    pass\n", BOTH, "must be True or False"),
    ("from ptodsl import pto\n@pto.jit(native_options={})\ndef k():\n    pass\n", (AUG,), "has no parameter"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(x):\n    pass\n", BOTH, "no annotation"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(x: 'pto.i32'):\n    pass\n", BOTH, "is a string"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(x: pto.ptr(pto.f32)):\n    pass\n", BOTH, "GM pointers only"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(x: pto.vreg_type(64, pto.f32)):\n    pass\n", BOTH, "neither a pointer nor"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(x: int):\n    pass\n", BOTH, "neither a pointer nor"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(x: pto.const_expr):\n    pass\n", BOTH, "keyword-only"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(x: pto.i32 = 4):\n    pass\n", BOTH, "has a default"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(*, N: pto.const_expr):\n    pass\n", BOTH, "has no default"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(*, N: pto.i32 = 1):\n    pass\n", BOTH, "not annotated with pto.const_expr"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(*args):\n    pass\n", BOTH, "no *args"),
    ("from ptodsl import pto\n@staticmethod\ndef k():\n    pass\n", BOTH, "no decorator"),
    ("from ptodsl import pto\n@pto.simd\ndef k():\n    pass\n", BOTH, "pto.vecscope()"),
    ("from ptodsl import pto\n@pto.jit()\ndef k(x: pto.i32):\n    pto.set_flag('V', 'S', event_id=0)\n", BOTH, 'mode="explicit"'),
    ("from ptodsl import pto\ndef f(a):\n    return a\ndef g(a):\n    return f(a, a)\n", BOTH, "takes 1 positional"),
    ("from ptodsl import pto\ndef f(a):\n    return a\ndef g(a):\n    return f(b=a)\n", BOTH, "has no parameter 'b'"),
]


@pytest.mark.parametrize(("text", "surface", "part"), _cases(FRAMES))
def test_frame_fault(text: str, surface: str, part: str) -> None:
    found = messages(text, surface)
    assert any(part in message for message in found), found


def test_sections() -> None:
    text = """\
from ptodsl import pto


@pto.jit(name="k", target="a5", mode="explicit", ast_rewrite=False)
def k(n: pto.i32):
    with pto.section("cube"):
        a = n + 1
        with pto.section("vector"):
            pto.trap()
    with pto.section("cube"):
        pto.trap()
    with pto.section("scalar"):
        b = a
"""
    found = messages(text, SEP)
    for part in ("stands inside the cube section", "a second cube section", "is not a legal value", "block that has ended"):
        assert any(part in message for message in found), found


def test_position_and_order() -> None:
    text = module("pto.mem_bar('A')\npto.mem_bar('B')\n", SEP, setup=False)
    found = check_text(text, surface_of(SEP))
    assert [finding.line for finding in found] == [6, 7]
    assert found[0].call == "pto.mem_bar"
    assert found[0].column == text.splitlines()[5].index("'A'") + 1
    assert "VST_VLD" in found[0].advice


def test_require_clean_shows_the_first_twenty() -> None:
    text = module("\n".join(f"pto.mem_bar('A{number}')" for number in range(30)), SEP, setup=False)
    with pytest.raises(SurfaceError) as caught:
        require_clean(text, surface_of(SEP), "kernel.py")
    assert "30 faults" in caught.value.what
    assert "the first 20 follow" in caught.value.what
    assert len(caught.value.where) == 20
    assert caught.value.where[0].startswith("kernel.py, line 6:")


def test_require_clean_passes() -> None:
    require_clean(module("pto.mem_bar('VST_VLD')", SEP), surface_of(SEP))


@pytest.mark.parametrize("surface", ["2026-08", "2026-09"])
@pytest.mark.parametrize(
    ("condition", "carries", "fault"),
    [
        ("lambda s: s.go", "go=pto.const(1, dtype=pto.i1)", ""),
        ("lambda s: s.gone", "go=pto.const(1, dtype=pto.i1)", "carries no 'gone'"),
        ("lambda s: s.go", "go=1", "starts with a Python value"),
        ("lambda s: s.go", "_go=pto.const(1, dtype=pto.i1)", "underscore"),
    ],
)
def test_while_handles(surface, condition, carries, fault):
    imports = "pto, scalar" if surface == "2026-08" else "pto"
    names = [part.split("=")[0] for part in carries.split(", ")]
    text = "\n".join(
        [
            f"from ptodsl import {imports}",
            '@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)',
            'def k(a: pto.ptr(pto.i32, "gm")):',
            f"    loop = pto.while_({condition}, {carries})",
            "    with loop:",
            f"        loop.update({names[0]}=loop.{names[0]})",
            "",
        ]
    )
    findings = [str(finding) for finding in check_text(text, surface_of(surface))]
    assert any(fault in finding for finding in findings) if fault else findings == []
