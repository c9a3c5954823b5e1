"""The counters behind ``benchmarks/operation_counts.py``: hand-written text of both languages, counted by hand."""

from __future__ import annotations

import pytest
from ascendc_counts import LibraryCall, all_reduce_cost, count_ascendc
from counts import Counts, cast_computes
from ptodsl_counts import count_ptodsl

PTODSL = """from ptodsl import pto, scalar


@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def k(x: pto.ptr(pto.f32, "gm"), n: pto.i32, m: pto.i32):
"""
ASCENDC = """#include <tl_templates/ascend/common.h>
__simd_vf__ inline void vf(__ubuf__ uint8_t* buf, int32_t version) {
  vector_bool mask = asc_create_mask_b32(PAT_ALL);
%s
}

__simt_vf__ __launch_bounds__(256) inline void threads(__ubuf__ float* ub, int32_t n, __gm__ float* x) {
  float part[2];
%s
}

extern "C" __global__ __vector__ void k(__gm__ float* x, int32_t n, int32_t m) {
  asc_init();
  __ubuf__ uint8_t *buf = (__ubuf__ uint8_t *)0;
  int32_t version = 0;
%s
}
"""


def ptodsl(*lines: str) -> Counts:
    return count_ptodsl(PTODSL + "\n".join(f"    {line}" for line in lines or ("pass",)) + "\n")


def ascendc(body: str = "", *, simd: str = "", simt: str = "") -> Counts:
    return count_ascendc(ASCENDC % (simd, simt, body))


# -- the same thing in both languages --------------------------------------------------------------------------------------

PAIRS = {
    "arithmetic": (("t = n * 3 + m",), "int32_t t = n * 3 + m;", 2),
    "operators": (("t = (n - m) // 2 % 7 & n | m ^ n",), "int32_t t = (n - m) / 2 % 7 & n | m ^ n;", 6),
    "comparison": (("c = n < m",), "bool c = n < m;", 1),
    "conditions": (("c = (n < m) & (m < 4)",), "bool c = (n < m) && (m < 4);", 3),
    "extrema": (("t = scalar.min(scalar.max(n, pto.const(0, dtype=pto.i32)), m)",), "int32_t t = min(max(n, 0), m);", 2),
    "choice": (("t = scalar.select(n < m, n, m)",), "int32_t t = n < m ? n : m;", 2),
    "a name counts once": (("t = n + m", "u = t * t"), "int32_t t = n + m; int32_t u = t * t;", 2),
    "what is written twice counts twice": (("u = (n + m) * (n + m)",), "int32_t u = (n + m) * (n + m);", 3),
    "widening": (("t = scalar.cast(n, pto.i64) + 1",), "int64_t t = ((int64_t)n) + (int64_t)1;", 2),
    "sign only": (("t = scalar.cast(n, pto.ui32) + 1",), "uint32_t t = ((uint32_t)n) + (uint32_t)1;", 1),
    "constants": (("t = 3 * 4 + 1", "u = pto.const(8, dtype=pto.i32)"), "int32_t t = 3 * 4 + 1; int32_t u = (int32_t)8;", 0),
    "named constants": (("t = 3 * 4", "u = t * 2"), "int32_t t = 3 * 4; int32_t u = t * 2;", 0),
    "address": (("pto.mte_gm_ub(pto.addptr(x, n * 4), 0, 0, 32, nburst=(1, 32, 32))",), "asc_copy_gm2ub_align(0, &(x[n * 4]), 1);", 2),
    "first element": (("pto.mte_gm_ub(x, 0, 0, 32, nburst=(1, 32, 32))",), "asc_copy_gm2ub_align(0, &(x[0]), 1);", 0),
    "access": (("t = scalar.load(x, n + 1)",), "float t = x[n + 1];", 1),
    "loop": (("with pto.for_(0, 10, step=1) as i:", "    t = n + m"), "for (int32_t i = 0; i < 10; ++i) { int32_t t = n + m; }", 30),
    "nested loops": (
        ("with pto.for_(0, 10, step=1) as i:", "    with pto.for_(0, 3, step=1) as j:", "        t = n + m"),
        "for (int32_t i = 0; i < 10; ++i) { for (uint16_t j = (uint16_t)0; j < (uint16_t)3; ++j) { int32_t t = n + m; } }",
        20 + 90,
    ),
    "dynamic loop": (("with pto.for_(0, n + 1, step=1) as i:", "    t = n + m"), "for (int32_t i = 0; i < (n + 1); ++i) { n + m; }", 4),
    "unrolled loop": (
        ("for i in pto.static_range(0, 4):", "    t = n + i * 2"),
        "#pragma unroll\nfor (int32_t i = 0; i < 4; ++i) { int32_t t = n + i * 2; }",
        4,
    ),
    "branch": (("with pto.if_(n < m) as br:", "    with br.then_:", "        t = n + m"), "if (n < m) { int32_t t = n + m; }", 2),
}


@pytest.mark.parametrize("ours, theirs, scalar", PAIRS.values(), ids=PAIRS)
def test_same_count_for_the_same_computation(ours, theirs, scalar):
    assert ptodsl(*ours).scalar == scalar
    assert ascendc(theirs).scalar == scalar


def test_synchronisations_and_copies():
    lines = (
        'pto.set_flag("V", "MTE2", event_id=0)',
        "with pto.for_(0, 3, step=1) as i:",
        '    pto.wait_flag("V", "MTE2", event_id=0)',
        "    pto.mte_ub_gm(x, x, 32, nburst=(1, 32, 32))",
        'pto.pipe_barrier("ALL")',
    )
    text = """
  asc_sync_notify(PIPE_V, PIPE_MTE2, static_cast<event_t>(0));
  for (int32_t i = 0; i < 3; ++i) {
    asc_sync_wait(PIPE_V, PIPE_MTE2, static_cast<event_t>(0));
    asc_copy_ub2gm_align(x, x, 1);
  }
  asc_sync();"""
    assert ptodsl(*lines) == ascendc(text) == Counts(scalar=6, syncs=5, copies=3)


# -- PTODSL ----------------------------------------------------------------------------------------------------------------


def test_carries_keep_their_types():
    lines = (
        "loop = pto.for_(0, 8, step=1).carry(version=pto.const(0, dtype=pto.i32))",
        "with loop:",
        "    slot = scalar.cast(loop.version, pto.i32)",  # no conversion
        "    row = scalar.cast(loop.iv, pto.i64)",  # an index has 64 bits
        "    narrow = scalar.cast(loop.iv, pto.i32)",
        "    loop.update(version=loop.version + 1)",
        'last = scalar.cast(loop.final("version"), pto.i64)',
    )
    assert ptodsl(*lines).scalar == 8 * (2 + 1 + 1) + 1


def test_vector_instructions_do_not_count_but_their_operands_do():
    lines = (
        "ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, 'ub'))",
        "with pto.vecscope():",
        "    mask = pto.pset_b32('PAT_ALL')",
        "    v = pto.vlds(ub, n * 64, pto.vreg_type(64, pto.f32))",
        "    pto.vsts(pto.vadd(v, v, mask), pto.addptr(ub, 64), 0, mask)",  # a constant address
        "    pto.mem_bar('VST_VLD')",
    )
    assert ptodsl(*lines) == Counts(scalar=1, syncs=1)


def test_helper_functions_count_where_they_are_called():
    text = PTODSL.replace("@pto.jit", "def twice(value):\n    double = value + value\n    return double * 3\n\n\n@pto.jit")
    text += "    with pto.for_(0, 5, step=1) as i:\n        t = twice(n)\n    u = twice(2)\n"
    assert count_ptodsl(text).scalar == 5 * (2 + 2)


def test_while_has_no_counter():
    lines = (
        "loop = pto.while_(lambda state: state.running, running=n < 4)",
        "with loop:",
        "    loop.update(running=loop.running & (m < 3))",
    )
    assert ptodsl(*lines).scalar == 1 + 2


def test_unknown_ptodsl_is_refused():
    with pytest.raises(ValueError, match="frobnicate"):
        ptodsl("t = pto.frobnicate(n)")


# -- AscendC ---------------------------------------------------------------------------------------------------------------


def test_vector_functions_count_where_they_are_called():
    vlds = "auto v = simd_inst::vlds_norm<float>((__ubuf__ float*)(&(((__ubuf__ float*)buf)[%s])), 0);"
    call = "vf(buf, version);"
    assert ascendc(call, simd=vlds % "64").scalar == 0  # buf is constant where it is called
    assert ascendc(call, simd=vlds % "version * 64").scalar == 0  # so is a version nothing changes
    changing = f"for (int32_t i = 0; i < 10; ++i) {{ {call} version = version + 1; }}"
    assert ascendc(changing, simd=vlds % "version * 64").scalar == 10 * (2 + 2 + 1)  # loop, product and address, the next version
    assert ascendc("", simd=vlds % "version * 64").scalar == 0  # never called


def test_threads():
    call = "asc_vf_call<threads>(cce::dim3(256), (__ubuf__ float*)buf, n, x);"
    assert ascendc(call, simt="part[0] = x[((int32_t)threadIdx.x) & 3];").scalar == 1
    assert ascendc(call, simt="part[n & 1] += expf(part[0]) * float(2);").scalar == 4
    assert ascendc(call, simt="*(float2*)(&(part[0])) = *(float2*)(ub + (n * 2));").scalar == 1
    assert ascendc(call, simt="asc_syncthreads();").syncs == 1


def test_predefined_names():
    assert ascendc("int32_t core = (int32_t)block_idx;").scalar == 1  # 64 bits become 32
    assert ascendc("float f = (float)n;").scalar == 1


def test_all_reduce_is_counted_by_its_template():
    call = "asc_vf_call<threads>(cce::dim3(256), (__ubuf__ float*)buf, n, x);"
    counted = ascendc(call, simt="part[0] = tl::AscendAllReduce<tl::SumOp, 256, 4, 0>::run(part[0], ub);")
    assert counted == all_reduce_cost("Sum", 256, 4)
    assert counted.syncs == 4


@pytest.mark.parametrize(
    "kind, threads, scale, scalar",
    [
        ("Sum", 4, 4, 0),  # one value
        ("Sum", 4, 1, 2 * 2),  # two exchanges, two sums
        ("Max", 4, 1, 2 * 3),  # a maximum is a comparison and a choice
        ("Sum", 32, 1, 1),  # one hardware reduction
        ("Sum", 16, 1, 2 + 2 * 4),  # one for each half of the warp, with a mask
        ("Sum", 256, 1, 1 + 5 + 1 + 3 + 1),
    ],
)
def test_cost_of_an_all_reduce(kind, threads, scale, scalar):
    assert all_reduce_cost(kind, threads, scale).scalar == scalar


def test_what_is_not_in_the_text_is_not_guessed():
    with pytest.raises(LibraryCall, match="philox"):
        ascendc("tl::philox_init(n, m);")
    with pytest.raises(LibraryCall):
        all_reduce_cost("Sum", 96, 1)
    with pytest.raises(ValueError, match="frobnicate"):
        ascendc("frobnicate(n);")
    with pytest.raises(ValueError, match="grammar"):
        count_ascendc("void f( {")


@pytest.mark.parametrize(
    "source, target, computes",
    [("i32", "i64", True), ("i32", "ui32", False), ("index", "i64", False), ("i32", "f32", True), ("f32", "bf16", True), ("", "i32", True)],
)
def test_casts_that_compute(source, target, computes):
    assert cast_computes(source, target) == computes
