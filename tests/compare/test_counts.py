"""Counting operations: hand-written text of both languages, counted by hand."""

from __future__ import annotations

import sys

import pytest

from tilelang_pto.compare.counts import LibraryCall, ascendc_syntax, count_ascendc, count_ptodsl
from tilelang_pto.compare.counts.ascendc_library import VECTOR_COSTS, all_reduce_cost
from tilelang_pto.compare.counts.kinds import Counts, cast_computes
from tilelang_pto.errors import ConfigurationError

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
    asc_copy_ub2gm_align(x, x, 1, 32, static_cast<asc_store_l2_cache_mode>(0), 32, 32);
  }
  asc_sync();"""
    # Outside of the loop a flag and a barrier; in it a flag, a copy, the comparison and the increment.
    assert ptodsl(*lines) == ascendc(text) == Counts(scalar=6, syncs=5, copies=3, bytes=3 * 32, code=6)


COPIES = {
    "two bursts of 96 bytes": (
        "pto.mte_gm_ub(x, 0, 0, 96, nburst=(2, 96, 96))",
        "asc_copy_gm2ub_align(0, x, 2, 96, 0, 0, 0, 0, 96, 96);",
        192,
    ),
    "at most four rows": (
        "pto.mte_gm_ub(x, 0, 0, pto.min(pto.const(4, dtype=pto.i32), n) * 64, nburst=(1, 256, 256))",
        "asc_copy_gm2ub_align(0, x, 1, min(4, n) * 64, 0, 0, 0, 0, 256, 256);",
        256,
    ),
    "a remainder": ("pto.mte_ub_gm(0, x, n % 8, nburst=(1, 8, 8))", "asc_copy_ub2gm_align(x, 0, 1, n % 8, 0, 8, 8);", 7),
    "of unknown length": ("pto.mte_ub_gm(0, x, n, nburst=(1, n, n))", "asc_copy_ub2gm_align(x, 0, 1, n, 0, n, n);", None),
    "UB to UB in blocks": ("pto.mte_ub_ub(0, 0, 4, nburst=(3, 0, 0))", "asc_copy_ub2ub(0, 0, 3, 4, 0, 0);", 384),
    "into L1": (
        'pto.mte_gm_l1_frac(x, 0, "nd2nz", shape=(16, 64), src_layout=(256,), dst_group=(1, 1, 16, 0), ctrl=(0, False))',
        "asc_copy_gm2l1_nd2nz(0, x, 256, 0, 16, 64, 0, 0);",
        16 * 64 * 4,
    ),
    "out of L0C": ("pto.mte_l0c_gm(0, x, 16, 32, 16, 32, 0, 0)", "asc_copy_l0c2gm(x, 0, 32, 16, 32, 16, 0, 0);", 16 * 32 * 4),
}


@pytest.mark.parametrize("ours, theirs, size", COPIES.values(), ids=COPIES)
def test_bytes_of_copies(ours, theirs, size):
    for counts in (ptodsl(ours), ascendc(theirs)):
        assert (counts.copies, counts.bytes, counts.unsized) == (1, size or 0, size is None)


def test_loops_weight_bytes_and_what_stands_in_them_is_one_instruction():
    ours = ptodsl("with pto.for_(0, 10, step=2) as i:", "    pto.mte_ub_gm(0, x, 32, nburst=(1, 32, 32))")
    assert (ours.copies, ours.bytes, ours.code) == (5, 160, 1 + 2)
    theirs = ascendc("for (int32_t i = 0; i < 5; ++i) { asc_copy_ub2gm_align(x, 0, 1, 32, 0, 32, 32); }")
    assert theirs == ours
    unrolled = ptodsl("for i in pto.static_range(0, 5):", "    pto.mte_ub_gm(0, x, 32, nburst=(1, 32, 32))")
    assert unrolled.code == 5
    assert ascendc("#pragma unroll\nfor (int32_t i = 0; i < 5; ++i) { asc_copy_ub2gm_align(x, 0, 1, 32, 0, 32, 32); }") == unrolled


def test_cube_instructions():
    slice_ours = (
        'pto.get_buf("MTE1", 0)',
        "pto.mte_l1_l0a(0, 0, m_start=0, k_start=0, m_step=8, k_step=8, src_stride=8, dst_stride=8)",
        "pto.mte_l1_l0b(0, 0, m_start=0, k_start=0, m_step=8, k_step=8, src_stride=8, dst_stride=8)",
        'pto.rls_buf("MTE1", 0)',
        'pto.get_buf("M", 0)',
        "pto.mad_acc(0, 0, 0, 128, 128, 64)",
        'pto.rls_buf("M", 0)',
    )
    ours = ptodsl(*slice_ours * 2)
    theirs = ascendc("ascend_gemm_l1<128, 128, 128, 64, true, bfloat16_t>(0, 0, 0, 1, 0, 0);")
    assert ours == Counts(matrix=2, matrix_loads=4, syncs=8, code=14)
    assert theirs == Counts(matrix=2, matrix_loads=4, syncs=8, code=7)  # a loop of two rounds
    scaled = ascendc("ascend_blockscaled_gemm_l1<128, 128, 128, 64, true, fp8_e4m3fn_t>(0, 0, 0, 1, 0, 0);")
    assert scaled == Counts(matrix=2, matrix_loads=8, syncs=8, code=9)


# What the library's function does for tiles of 32 rows, written out: the loops of its text with the template's arguments in them. A `while`
# counts as one round, so the loop over the registers of a row, whose rounds are known, stands as a `for` where its length matters.
SCATTERS = {
    "32, 32, float, float": """
  uint32_t count = n; int32_t pass = n;
  while (count > 0) {
    vector_bool mask2 = simd_inst::plt_b32(count);
    __gm__ float* dst = x + pass * (32 + 1) * 64;
    __gm__ float* src = x + pass * 64;
    for (int32_t r = 0; r < 32; ++r) { simd_inst::vlds_norm(src + r * 32, 0); simd_inst::vsstb(0, dst, 33, mask2); }
    ++pass;
  }""",
    "32, 192, float, bfloat16_t": """
  simd_inst::pset_b32(0); simd_inst::pset_b16(0);
  for (int32_t pass = 0; pass < 3; ++pass) {
    __gm__ float* dst = x + pass * (32 + 1) * 64;
    __gm__ float* src = x + pass * 64;
    for (int32_t r = 0; r < 32; ++r) {
      simd_inst::vlds_norm(src + r * 192, 0); simd_inst::vcvt(0, 0); simd_inst::vpack(0); simd_inst::vsstb(0, dst, 33, 0);
    }
  }""",
    "32, 256, bfloat16_t, float": """
  simd_inst::pset_b16(0); simd_inst::pset_b32(0);
  for (int32_t pass = 0; pass < 2; ++pass) {
    __gm__ float* dst0 = x + pass * (32 + 1) * 128;
    __gm__ float* dst1 = dst0 + (32 + 1) * 64;
    for (int32_t r = 0; r < 32; ++r) {
      simd_inst::vlds_norm(x + r * 256 + pass * 128, 0); simd_inst::vcvt(0, 0); simd_inst::vcvt(0, 0); simd_inst::vintlv(0, 0);
      simd_inst::vsstb(0, dst0, 33, 0); simd_inst::vsstb(0, dst1, 33, 0);
    }
  }""",
}


@pytest.mark.parametrize("tile, written_out", SCATTERS.items(), ids=SCATTERS)
def test_changes_of_layout_count_as_their_text(tile, written_out):
    expected = ascendc(written_out)
    for function in ("ascend_nd2nz_scatter", "ascend_nd2nz_scatter_callee"):
        assert ascendc(f"{function}<{tile}>(0, 0);") == expected


def test_changes_of_layout_of_several_registers_a_row():
    one, two = (ascendc(f"ascend_nd2nz_scatter<16, {columns}, bfloat16_t, bfloat16_t>(0, 0);") for columns in (128, 256))
    assert two == Counts(scalar=2 * one.scalar, vector_memory=2 * one.vector_memory, predicates=2 * one.predicates, code=one.code)
    assert ascendc("ascend_nd2nz_scatter<16, 144, bfloat16_t, bfloat16_t>(0, 0);") == two  # part of a second register


@pytest.mark.parametrize("tile", ["16, 64, half, float", "16, 96, float, bfloat16_t", "16, 32, int8_t, int8_t"])
def test_changes_of_layout_the_library_does_not_have(tile):
    with pytest.raises(LibraryCall, match="what a change of layout of"):
        ascendc(f"ascend_nd2nz_scatter<{tile}>(0, 0);")


MEMORY = {  # in both languages
    "vlds": "vlds_norm", "vsts": "vsts_intlv", "vsstb": "vsstb", "vgather2": "vgather2", "vgatherb": "vgatherb", "vscatter": "vscatter",
    "plds": "plds_norm", "psts": "psts_pack",
}  # fmt: skip


@pytest.mark.parametrize("ours, theirs", MEMORY.items())
def test_loads_and_stores_of_vectors_and_predicates(ours, theirs):
    assert ptodsl(f"pto.{ours}(0, 0)") == ascendc(f"simd_inst::{theirs}(0, 0);") == Counts(vector_memory=1, code=1)


def test_fills_of_l1_are_loads_of_the_cube_core():
    ours = ptodsl("pto.raw_fill_l1(0, 768, 0, repeat_times=32, block_num_32b=8, dst_gap_32b=24, fill_word_bits=32)")
    theirs = ascendc("asc_fill_l1(0, (uint32_t)0, { .repeat = static_cast<uint64_t>(32), .blk_num = static_cast<uint64_t>(8)});")
    assert ours == theirs == Counts(matrix_loads=1, code=1)


def test_initialisers_count_what_they_compute():
    assert ascendc("asc_fill_l1(0, (uint32_t)0, { .repeat = n + m, .blk_num = 8});").scalar == 1


def test_sections_of_a_mixed_kernel():
    text = ASCENDC.replace("__global__ __vector__", "__global__ __mix__(1, 2)") % (
        "",
        "",
        "if ASC_IS_AIC { asc_sync_intra_wait(PIPE_FIX, 16); } if ASC_IS_AIV { int32_t sid = asc_get_sub_block_id(); int32_t s = sid * 4; }",
    )
    assert count_ascendc(text) == Counts(scalar=1, syncs=1, code=2)
    lines = (
        'with pto.section("cube"):',
        '    pto.wait_intra_block("FIX", 16)',
        'with pto.section("vector"):',
        "    s = pto.get_subblock_idx() * 4",
    )
    assert ptodsl(*lines) == Counts(scalar=1, syncs=1, code=2)


def test_accesses_are_of_memory_not_of_registers():
    lines = (
        "part = pto.alloc_buffer((4,), pto.f32)",
        "pto.store(pto.load(x, n), part, 0)",
        "pto.store(pto.load(part, 0), x, m)",
        "pto.atomic_add(x, 1.0)",
    )
    ours = ptodsl(*lines)
    theirs = ascendc("float part[4]; part[0] = x[n]; x[m] = part[0]; *(float2*)(&(part[0])) = *(float2*)(x + n); asc_atomic_add(x, 1.0f);")
    assert (ours.accesses, ours.atomics) == (2, 1)
    assert (theirs.accesses, theirs.atomics) == (3, 1)


@pytest.mark.parametrize("cast", ["__float22bfloat162_rn", "__bfloat1622float2", "__float22half2_rn", "__half22float2"])
def test_casts_of_pairs_are_one_operation(cast):
    assert ascendc(f"float2 a = {cast}(x[n]);").scalar == 1


def test_reinterpretations_are_no_instructions_and_library_functions_are_several():
    ours = ptodsl("v = pto.vdup(n, 0)", "w = pto.vbitcast(v, pto.f32)", "u = pto.vdiv(w, w, 0)")
    theirs = ascendc("vf(buf, version);", simd="auto v = simd_inst::vdup<int32_t>(1, mask); simd_inst::vdiv_0ulp_ftz_true(v, v, mask);")
    assert (ours.vector, theirs.vector, theirs.predicates) == (2, 1 + VECTOR_COSTS["simd_inst::vdiv_0ulp_ftz_true"], 1)


def test_counting_ascendc_without_its_grammar_says_what_to_install(monkeypatch):
    ascendc_syntax._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter_cpp", None)
    with pytest.raises(ConfigurationError, match=r"tree_sitter_cpp(.|\n)*pip install"):
        ascendc()
    monkeypatch.undo()
    assert ascendc().code == 0


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
    assert ptodsl(*lines) == Counts(scalar=1, syncs=1, vector=1, vector_memory=2, predicates=1, code=6)


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
    cost = all_reduce_cost("Sum", 256, 4)
    assert (counted.scalar, counted.accesses, counted.syncs) == (cost.scalar, cost.accesses, 4)
    assert counted.code == cost.scalar + cost.accesses + cost.syncs


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
