"""GEMM of operands in L1: the loop in the file, its figures, memory and tokens; with scale factors too.

Operations: ascend_gemm_l1 ascend_blockscaled_gemm_l1.
"""

from __future__ import annotations

import pytest
from tir_builder import access, cube_kernel, immediate, op
from tvm import tirx

import tilelang_pto
from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of

SURFACES = ("2026-08", "2026-09")
N = tirx.Var("n", "int32")


def at(tile, offset=0, extent=64):
    return access(tile.data, str(tile.dtype), offset, extent)


def memory(dtype="bfloat16", accumulator="float32", **sizes):
    """Operands, scale factors and a result; sizes in elements."""
    scopes = {"a": "l1", "b": "l1", "sf": "l1", "c": "l0c", "a0": "l0a", "b0": "l0b"}
    types = {"c": accumulator, "sf": "uint16"}
    counts = {"a": 65536 // 4, "b": 65536 // 4, "sf": 1024, "c": 16384, **sizes}
    return {
        name: tirx.decl_buffer((count,), types.get(name, dtype), name=name, scope=f"shared.{scopes[name]}")
        for name, count in counts.items()
    }


def gemm(m, shape=(64, 64, 256), slice=64, *, clear=1, by_rows=1, token=0, flag=0):
    rows, columns, depth = shape
    figures = (rows, depth, columns, slice, by_rows, clear, "bfloat16_t", token, flag)
    return tirx.Evaluate(op("tl.ascend_gemm_l1", "handle", at(m["c"]), at(m["a"]), at(m["b"]), *figures))


def scaled(m, shape=(64, 64, 256), slice=128, *, clear=1, start=0, stride=8, flag=0, by_rows=1):
    rows, columns, depth = shape
    ends = (at(m["c"]), at(m["a"]), at(m["b"]), at(m["sf"]), at(m["sf"], 512))
    figures = (rows, depth, columns, slice, by_rows, clear, "float8_e4m3_t", "uint16_t", "float", 0, start, stride, flag)
    return tirx.Evaluate(op("tl.ascend_blockscaled_gemm_l1", "handle", *ends, *figures))


def text_of(m, *statements, surface="2026-09"):
    body = [*(tirx.AllocBuffer(tile) for tile in m.values()), *statements]
    text = emit_module(cube_kernel("k", (N,), *body), surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    return text


def lines_of(*arguments, **options):
    return [line.strip() for line in text_of(*arguments, **options).splitlines()]


def loop_of(lines):
    """The lines from the comment of the first GEMM on, without the pointers of memories."""
    first = next(number for number, line in enumerate(lines) if line.startswith("# ") and ": GEMM of" in line)
    return [line for line in lines[first:] if " = pto.castptr(" not in line]


def refused(*words, make=gemm, dtype="bfloat16", accumulator="float32", sizes=None, **options):
    m = memory(dtype, accumulator, **(sizes or {}))
    with pytest.raises(tilelang_pto.UnsupportedError) as caught:
        text_of(m, make(m, **options))
    for word in words:
        assert word in str(caught.value)


def test_the_loop():
    m = memory()
    assert loop_of(lines_of(m, gemm(m, token=4))) == [
        "# c: GEMM of 64 x 64 x 256 bfloat16 from L1, 4 slices of K = 64, 2 x 8192 B of L0A and 2 x 8192 B of L0B, tokens 4 and 5",
        "with pto.for_(0, 4, step=1) as k_slice:",
        "stage = k_slice % 2",
        "token = stage + 4",
        "stage_offset = stage * 4096",
        "l0a_bf16_at = pto.addptr(l0a_bf16, stage_offset)",
        "l0b_bf16_at = pto.addptr(l0b_bf16, stage_offset)",
        'pto.get_buf("MTE1", token)',
        "first_column = k_slice * 4",
        "pto.mte_l1_l0a(a, l0a_bf16_at, m_start=0, k_start=first_column, m_step=4, k_step=4, src_stride=4, dst_stride=4)",
        "pto.mte_l1_l0b(b, l0b_bf16_at, m_start=0, k_start=first_column, m_step=4, k_step=4, src_stride=4, dst_stride=4)",
        'pto.rls_buf("MTE1", token)',
        'pto.get_buf("M", token)',
        "pto.mad_acc(l0a_bf16_at, l0b_bf16_at, c, 64, 64, 64, init=pto.cast(k_slice == 0, pto.i32))",
        'pto.rls_buf("M", token)',
    ]


def test_one_slice_needs_no_loop():
    m = memory()
    assert loop_of(lines_of(m, gemm(m, (64, 64, 64), 64, clear=0))) == [
        "# c: GEMM of 64 x 64 x 64 bfloat16 from L1, 1 slice of K = 64, 1 x 8192 B of L0A and 1 x 8192 B of L0B, token 0",
        'pto.get_buf("MTE1", 0)',
        "pto.mte_l1_l0a(a, l0a_bf16, m_start=0, k_start=0, m_step=4, k_step=4, src_stride=4, dst_stride=4)",
        "pto.mte_l1_l0b(b, l0b_bf16, m_start=0, k_start=0, m_step=4, k_step=4, src_stride=4, dst_stride=4)",
        'pto.rls_buf("MTE1", 0)',
        'pto.get_buf("M", 0)',
        "pto.mad_acc(l0a_bf16, l0b_bf16, c, 64, 64, 64)",
        'pto.rls_buf("M", 0)',
    ]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("flag", [0, 3])
def test_text_does_not_grow_with_k_and_n(surface, flag):
    m = memory()
    shapes = (((64, 128, 256), 64), ((64, 128, 1024), 64), ((64, 256, 512), 64), ((64, 256, 1280), 32))
    counts = {text_of(m, gemm(m, shape, slice, flag=flag), surface=surface).count("\n") for shape, slice in shapes}
    assert len(counts) == 1


def test_any_number_of_gemms_share_the_stages():
    """The largest decides how much of L0 they take; tokens order them."""
    m = memory()
    lines = lines_of(m, gemm(m), gemm(m, (128, 32, 64), 32), gemm(m, (16, 16, 32), 32))
    assert sum(": GEMM of" in line for line in lines) == 3
    assert sum('castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.bf16, "left"))' in line for line in lines) == 1


def test_stages_lie_behind_tiles_of_the_kernel():
    m = memory(a0=1000, b0=4096)
    lines = lines_of(m, gemm(m))
    assert 'l0a_bf16 = pto.castptr(pto.const(2048, dtype=pto.i64), pto.ptr(pto.bf16, "left"))  # L0A view GEMM stages' in lines
    assert 'l0b_bf16 = pto.castptr(pto.const(8192, dtype=pto.i64), pto.ptr(pto.bf16, "right"))  # L0B view GEMM stages' in lines


def test_stages_that_do_not_fit():
    refused("98304 bytes of L0A are required and 65536 are available (GEMM stages 98304)", shape=(384, 64, 128))
    refused("69632 bytes of L0B are required and 65536 are available (b0 53248, GEMM stages 16384)", sizes={"b0": 26624})


def test_b_as_k_x_n():
    """Turned on its way to L0: slices are groups of rows."""
    m = memory()
    line = next(line for line in lines_of(m, gemm(m, (64, 48, 128), 32, by_rows=0)) if "mte_l1_l0b" in line)
    assert "m_start=first_row, k_start=0, m_step=2, k_step=3, src_stride=8, dst_stride=3, transpose=True)" in line


@pytest.mark.parametrize("kind", [gemm, scaled])
def test_first_and_last_slice(kind):
    """August: a branch for the first slice, one for the last; the first of several is not the last."""
    m = memory("float8_e4m3fn") if kind is scaled else memory()
    lines = lines_of(m, kind(m, clear=N == 0, flag=tirx.Select(N == 3, immediate(3), immediate(2))), surface="2026-08")
    name = "mad_mx" if kind is scaled else "mad"
    mads = [line.partition("(")[0] + line.rpartition(",")[2] for line in lines if line.startswith("pto.mad")]
    assert mads == [
        f'pto.{name} unit_flag="check_only")', f'pto.{name}_acc unit_flag="check_and_set")', f'pto.{name}_acc unit_flag="check_only")',
    ]  # fmt: skip
    conditions = [line for line in lines if line.startswith("with pto.if_")]
    assert "(n == 0) & (k_slice == 0)" in conditions[0] or "condition & (k_slice == 0)" in conditions[0]
    assert f"k_slice == {1 if kind is scaled else 3}" in "".join(lines)


def test_small_tiles_wait_between_slices():
    m = memory()
    lines = lines_of(m, gemm(m, (48, 48, 256), 64))
    assert lines[lines.index('pto.get_buf("M", stage)') + 1] == 'pto.pipe_barrier("M")'


def test_scale_factors():
    m = memory("float8_e4m3fn")
    lines = lines_of(m, scaled(m, start=2))
    loads = [line for line in lines if "_mx(" in line and "l0" in line and "mte" in line]
    figures = "x_start=0, y_start=first_pair, x_step=4, y_step=2, src_stride=8, dst_stride=2)"
    assert loads == [f"pto.mte_l1_l0a_mx(as_f8e8m0, l0a_f8e4m3_at, {figures}", f"pto.mte_l1_l0b_mx(as_f8e8m0_1, l0b_f8e4m3_at, {figures}"]
    assert "first_pair = k_slice * 2 + 2" in lines


def test_float4_counts_two_values_a_byte():
    m = memory("float4_e2m1fnx2")
    lines = loop_of(lines_of(m, scaled(m, (64, 64, 512), 256)))
    assert "2 slices of K = 256, 2 x 8192 B of L0A" in lines[0]
    load = next(line for line in lines if "mte_l1_l0a(" in line)
    assert "m_start=0, k_start=0, m_step=4, k_step=4, src_stride=4, dst_stride=4" in load
    assert any(line.startswith("pto.mad_mx") and "64, 64, 256" in line for line in lines)


def test_gemms_that_cannot_be():
    refused("a GEMM of 60 x 64 x 128 in slices of 64", "multiples of 16", shape=(60, 64, 128))
    refused("a GEMM of 64 x 64 x 128 in slices of 48", shape=(64, 64, 128), slice=48)
    refused("in slices of 8 of bfloat16", shape=(64, 64, 128), slice=8)
    refused("multiply at most 4095 at a time", shape=(4096, 64, 16), slice=16)
    refused("buffer tokens from 31", "0 to 31", token=31)
    refused("int32 x int32 -> float32", dtype="int32")
    refused("int8 x int8 -> float32", dtype="int8")
    refused("a GEMM of a float32 B that is K x N in L1", "transpose=True", dtype="float32", by_rows=0, slice=8)
    refused("a block-scaled GEMM in slices of 32", "multiple of 64", make=scaled, dtype="float8_e4m3fn", slice=32)
    refused("0 as argument by_rows", make=scaled, dtype="float8_e4m3fn", by_rows=0)
    refused("block-scaled", "bfloat16 x bfloat16", make=scaled, dtype="bfloat16")


def test_operands_of_two_types():
    m = {**memory(), "b": tirx.decl_buffer((4096,), "float16", name="b", scope="shared.l1")}
    with pytest.raises(tilelang_pto.UnsupportedError, match="a GEMM of bfloat16 and float16 in L1"):
        text_of(m, gemm(m))


def test_operands_in_the_wrong_memory():
    m = memory(a0=4096)
    with pytest.raises(tilelang_pto.UnsupportedError, match=r"argument left of .*, a0, lies in L0A, not in L1"):
        text_of(m, gemm({**m, "a": m["a0"]}))
