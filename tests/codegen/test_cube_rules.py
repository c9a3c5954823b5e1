"""What each operation of the cube core becomes, and what of it is refused.

Operations: ascend_copy_gm_to_cbuf ascend_fill_l1 ascend_load_cbuf_to_ca ascend_load_cbuf_to_cb ascend_load_ca_sf ascend_load_cb_sf
ascend_mad ascend_mad_mx ascend_set_hf32_mode ascend_set_mmad_direction ascend_copy_matrix_cc_to_gm ascend_copy_matrix_cc_to_ub
ascend_copy_ubuf_to_cbuf ascend_nd2nz_post_copy ascend_gemm_l1 ascend_blockscaled_gemm_l1 ascend_nd2nz_scatter.
"""

from __future__ import annotations

import pytest
from tir_builder import access, block, cube_kernel, immediate, mixed_kernel, module, op, pointer, sequence, thread_extent, vector_kernel
from tvm import tirx

import tilelang_pto
from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of

SURFACES = ("2026-08", "2026-09")
A, B, C = pointer("a", "bfloat16"), pointer("b", "bfloat16"), pointer("c", "float32")
N = tirx.Var("n", "int32")


def call(name, *arguments):
    return tirx.Evaluate(op(f"tl.ascend_{name}", "handle", *arguments))


def buffer(name, dtype, count, scope):
    return tirx.decl_buffer((count,), dtype, name=name, scope=scope)


def tiles(dtype="bfloat16", accumulator="float32"):
    """Buffers in every memory of the cube core."""
    return {
        "l1": buffer("l1", dtype, 16384, "shared.l1"),
        "l0a": buffer("l0a", dtype, 4096, "shared.l0a"),
        "l0b": buffer("l0b", dtype, 4096, "shared.l0b"),
        "l0c": buffer("l0c", accumulator, 4096, "shared.l0c"),
    }


def at(tile, offset=0, extent=64):
    return access(tile.data, str(tile.dtype), offset, extent)


def emitted(mod, surface="2026-08"):
    """Lines of the body, without comments."""
    text = emit_module(mod, surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    lines = text[text.index("def ") :].splitlines()[1:]
    return [line.strip() for line in lines if not line.strip().startswith("#")]


def cube(statement, *, dtype="bfloat16", accumulator="float32", surface="2026-08", params=(A, B, C, N)):
    """Lines of a cube kernel of one statement, made from the tiles."""
    memory = tiles(dtype, accumulator)
    made = statement(memory)
    allocations = [tirx.AllocBuffer(tile) for tile in memory.values()]
    return emitted(cube_kernel("k", params, *allocations, *(made if isinstance(made, list) else [made])), surface)


def refused(make, *words, **options):
    with pytest.raises(tilelang_pto.UnsupportedError) as caught:
        cube(make, **options)
    for word in words:
        assert word in str(caught.value)


# -- GM to L1 ------------------------------------------------------------------------------------------------------------


def to_l1(dst, src, *, stride=256, rows=64, columns=64, transpose=0, pitch=64, physical="", cache=0, outer=0, small=0):
    return call("copy_gm_to_cbuf", dst, src, 0, stride, cache, rows, columns, outer, small, transpose, pitch, physical)


@pytest.mark.parametrize("mode", ["nd2nz", "dn2nz"])
def test_copy_to_l1(mode):
    lines = cube(lambda m: to_l1(at(m["l1"], 1024), access(A, "bfloat16", 4096, 64), transpose=int(mode == "dn2nz"), pitch=80, cache=4))
    assert lines[-1] == (
        f'pto.mte_gm_l1_frac(pto.addptr(a, 4096), pto.addptr(l1, 1024), "{mode}", shape=(64, 64), '
        "src_layout=(256,), dst_group=(1, 1, 80, 0), ctrl=(4, False))"
    )


def test_copy_to_l1_in_other_elements():
    """Pairs of scale factors travel as 16-bit numbers, float4 as bytes."""
    scales = pointer("scales", "uint8")
    lines = cube(
        lambda m: to_l1(at(m["l1"]), access(scales, "uint8", 32, 64), rows=4, columns=64, transpose=1, pitch=2, physical="uint16_t"),
        dtype="uint8",
        params=(scales,),
    )
    assert 'pto.ptr(pto.ui16, "mat")' in "".join(lines)
    assert 'pto.castptr(pto.addptr(scales, 32), pto.ptr(pto.ui16, "gm")' in "".join(lines)
    assert '"dn2nz", shape=(4, 64)' in lines[-1]


def test_copies_to_l1_that_cannot_be():
    source = access(A, "bfloat16", 0, 64)
    refused(lambda m: to_l1(at(m["l1"]), source, rows=65536), "number of rows", "65536", "65535")
    refused(lambda m: to_l1(at(m["l1"]), source, columns=1 << 21), "number of columns", str(1 << 21))
    refused(lambda m: to_l1(at(m["l1"]), source, stride=tirx.IntImm("int64", 1 << 40)), "row stride in bytes", str(1 << 40))
    refused(lambda m: to_l1(at(m["l1"]), source, pitch=65536), "padded number of rows")
    refused(lambda m: to_l1(at(m["l1"], 8), source), "destination l1 starts at a byte that is no multiple of 32")
    refused(lambda m: to_l1(at(m["l1"], N * 16 + 8), source), "no multiple of 32")
    refused(lambda m: to_l1(at(m["l0a"]), source), "argument dst", "l0a, lies in L0A, not in L1")
    refused(lambda m: to_l1(at(m["l1"]), at(m["l1"])), "argument src", "l1, lies in L1, not in GM")
    refused(lambda m: to_l1(at(m["l1"]), source, small=1), "1 as argument small_c0")
    refused(lambda m: to_l1(at(m["l1"]), source, outer=64), "64 as argument outer_stride")
    refused(lambda m: to_l1(at(m["l1"]), source, physical="double"), "double as argument physical", "uint16_t")
    refused(lambda m: to_l1(at(m["l1"]), source, cache=16), "L2 hint", "16")
    refused(lambda m: to_l1(at(m["l1"]), access(C, "float32", 0, 64)), "copy from f32 to bf16")


def test_positions_that_may_be_aligned_are_left_to_run_time():
    assert "n * 16" in "".join(cube(lambda m: to_l1(at(m["l1"], N * 16), access(A, "bfloat16", 0, 64))))


def test_fill_of_l1():
    lines = cube(lambda m: call("fill_l1", at(m["l1"]), N * 32, tirx.IntImm("uint32", 0), 4, N, 64 - N, 16))
    assert lines[-1] == "pto.raw_fill_l1(l1, n * 32, 0, repeat_times=4, block_num_32b=n, dst_gap_32b=64 - n, fill_word_bits=16)"
    refused(lambda m: call("fill_l1", at(m["l1"]), 0, tirx.IntImm("uint32", 0), 32768, 1, 0, 16), "number of columns", "32768")
    refused(lambda m: call("fill_l1", at(m["l1"]), 0, tirx.IntImm("uint32", 0), 1, 1, 0, 8), "8 as argument width", "16, 32")


# -- L1 to L0 ------------------------------------------------------------------------------------------------------------


def load(m, side, *numbers, source=0, target=0):
    return call(f"load_cbuf_to_c{side}", at(m[f"l0{side}"], target), at(m["l1"], source), *numbers)


@pytest.mark.parametrize("side", ["a", "b"])
def test_load(side):
    lines = cube(lambda m: load(m, side, 1, 2, 4, 3, 8, 5, 0, target=256))
    wanted = "m_start=1, k_start=2, m_step=4, k_step=3, src_stride=8, dst_stride=5"
    assert lines[-1] == f"pto.mte_l1_l0{side}(l1, pto.addptr(l0{side}, 256), {wanted})"
    assert cube(lambda m: load(m, side, 1, 2, 4, 3, 8, 5, 1))[-1].endswith(f"{wanted}, transpose=True)")


@pytest.mark.parametrize("side", ["a", "b"])
def test_load_with_scale_factors(side):
    """Sixteen arguments: the scale factors of the tile come along."""
    lines = cube(lambda m: load(m, side, 0, 0, 4, 2, 4, 4, 0, at(m["l1"], 8192), 0, 3, 4, 1, 2, 1), dtype="float8_e4m3fn")
    scales = "x_start=0, y_start=3, x_step=4, y_step=1, src_stride=2, dst_stride=1"
    assert lines[-3].startswith(f"pto.mte_l1_l0{side}(l1, l0{side}, m_start=0")
    assert lines[-1] == f"pto.mte_l1_l0{side}_mx(pto.addptr(l1_f8e8m0, 8192), l0{side}, {scales})"


@pytest.mark.parametrize("side", ["a", "b"])
def test_scale_factors_alone(side):
    lines = cube(lambda m: call(f"load_c{side}_sf", at(m[f"l0{side}"]), at(m["l1"], 8192), 0, 3, 4, 1, 2, 1), dtype="float8_e4m3fn")
    assert lines[-1].startswith(f"pto.mte_l1_l0{side}_mx(pto.addptr(l1_f8e8m0, 8192), l0{side}, x_start=0, y_start=3")


def test_start_of_a_float4_load_is_in_its_address():
    lines = cube(lambda m: load(m, "a", 1, 2, 4, 3, 8, 5, 0), dtype="float4_e2m1fnx2")
    assert lines[-1].startswith("pto.mte_l1_l0a(pto.addptr(l1, 8704), l0a, m_start=0, k_start=0, m_step=4")


def test_loads_that_cannot_be():
    refused(lambda m: load(m, "a", 0, 0, 256, 1, 4, 4, 0), "number of row groups of a load is 256", "1 to 255")
    refused(lambda m: load(m, "a", 0, 0, 0, 1, 4, 4, 0), "number of row groups of a load is 0")
    refused(lambda m: load(m, "a", 65536, 0, 1, 1, 4, 4, 0), "first row", "65536")
    refused(lambda m: load(m, "a", 0, 0, 1, 1, 65536, 4, 0), "source stride", "65536")
    refused(lambda m: load(m, "a", 0, 0, 3, 1, 4, 4, 1), "int8", "3, no multiple of 2", "whole squares", dtype="int8")
    refused(lambda m: load(m, "b", 0, 0, 2, 1, 4, 4, 1), "float4", "2, no multiple of 4", dtype="float4_e2m1fnx2")
    refused(lambda m: load(m, "b", 0, 0, 2, 1, 4, 4, 1), "float32", "1, no multiple of 2", dtype="float32")
    refused(lambda m: load(m, "b", 0, 0, 1, 1, 4, 4, 0), "a load of int32 for the cube core", "bfloat16", dtype="int32")
    refused(lambda m: load(m, "a", 0, 0, 1, 1, 4, 4, 0, target=16), "no multiple of 512")
    refused(lambda m: call("load_cbuf_to_ca", at(m["l0b"]), at(m["l1"]), 0, 0, 1, 1, 4, 4, 0), "l0b, lies in L0B, not in L0A")


# -- multiplication ------------------------------------------------------------------------------------------------------


def mad(m, extents=(64, 32, 48), *, flag=0, gemv=1, bias=0, clear=1, kind="mad"):
    rows, depth, columns = extents
    return call(kind, at(m["l0c"]), at(m["l0a"]), at(m["l0b"]), rows, depth, columns, flag, gemv, bias, clear)


@pytest.mark.parametrize("surface", SURFACES)
def test_mad(surface):
    assert cube(lambda m: mad(m), surface=surface)[-1] == "pto.mad(l0a, l0b, l0c, 64, 48, 32)"
    assert cube(lambda m: mad(m, clear=0), surface=surface)[-1] == "pto.mad_acc(l0a, l0b, l0c, 64, 48, 32)"


@pytest.mark.parametrize("surface", SURFACES)
def test_small_tiles_wait_for_the_multiplication_before(surface):
    barrier = 'pto.pipe_barrier("M")'
    assert barrier not in cube(lambda m: mad(m, (64, 32, 48), clear=0), surface=surface)
    assert cube(lambda m: mad(m, (48, 32, 48), clear=0), surface=surface)[-2] == barrier
    assert barrier not in cube(lambda m: mad(m, (48, 32, 48), clear=1), surface=surface)
    assert cube(lambda m: mad(m, (N, 32, 48), clear=N == 0), surface=surface).count(barrier) == 1


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("flag", "token"), [(2, "check_only"), (3, "check_and_set")])
def test_unit_flag(flag, token, surface):
    assert cube(lambda m: mad(m, flag=flag), surface=surface)[-1].endswith(f'48, 32, unit_flag="{token}")')


def test_flags_known_at_run_time():
    """September 2026 takes them as numbers, for August one multiplication per case stands under branches."""
    make = lambda m: mad(m, flag=tirx.Select(N == 3, immediate(3), immediate(2)), clear=N == 0)  # noqa: E731
    new = cube(make, surface="2026-09")
    assert new[-1].startswith("pto.mad_acc(l0a, l0b, l0c, 64, 48, 32, init=pto.cast(n == 0, pto.i32), unit_flag=")
    assert "pto.select(n == 3, pto.const(3, dtype=pto.i32), pto.const(2, dtype=pto.i32))" in new[-1]
    old = [line for line in cube(make) if line.startswith(("pto.mad", "with pto.if_"))]
    cases = [f'pto.mad{form}(l0a, l0b, l0c, 64, 48, 32, unit_flag="{token}")'
             for form in ("", "_acc") for token in ("check_and_set", "check_only")]  # fmt: skip
    assert [line for line in old if line.startswith("pto.mad")] == cases
    assert len(old) == 7


def test_a_flag_that_is_any_number():
    lines = [line for line in cube(lambda m: mad(m, flag=N)) if line.startswith(("pto.mad", "with pto.if_"))]
    assert [line.rpartition("32")[2] for line in lines if line.startswith("pto.mad")] == [
        ', unit_flag="check_and_set")', ', unit_flag="check_only")', ")",
    ]  # fmt: skip
    assert "n == 3" in lines[0]


@pytest.mark.parametrize("surface", SURFACES)
def test_gemv_is_off_where_one_row_is_possible(surface):
    assert cube(lambda m: mad(m, (1, 32, 48)), surface=surface)[-1].endswith("1, 48, 32, disable_gemv=True)")
    assert cube(lambda m: mad(m, (1, 32, 48), gemv=0), surface=surface)[-1].endswith("1, 48, 32)")
    assert cube(lambda m: mad(m, (N, 32, 48)), surface=surface)[-1].endswith("n, 48, 32, disable_gemv=True)")


PRODUCTS = [
    ("mad", "float16", "float32"), ("mad", "bfloat16", "float32"), ("mad", "float32", "float32"), ("mad", "float8_e4m3fn", "float32"),
    ("mad", "float8_e5m2", "float32"), ("mad", "int8", "int32"), ("mad_mx", "float8_e4m3fn", "float32"),
    ("mad_mx", "float8_e5m2", "float32"), ("mad_mx", "float4_e2m1fnx2", "float32"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "dtype", "accumulator"), PRODUCTS)
def test_element_types(kind, dtype, accumulator):
    lines = cube(lambda m: mad(m, (64, 64, 64), kind=kind), dtype=dtype, accumulator=accumulator)
    assert lines[-1].startswith(f"pto.{kind}(l0a, ")


def test_scaled_multiplication_has_static_flags_on_every_surface():
    make = lambda m: mad(m, (64, 64, 64), kind="mad_mx", clear=N == 0)  # noqa: E731
    for surface in SURFACES:
        lines = cube(make, dtype="float8_e4m3fn", surface=surface)
        assert [line for line in lines if line.startswith("pto.mad")] == [
            f"pto.{name}(l0a, l0b, l0c, 64, 64, 64)" for name in ("mad_mx", "mad_mx_acc")
        ]


def test_multiplications_that_cannot_be():
    refused(lambda m: mad(m), "int8 x int8 -> float32", "int8 x int8 -> int32", dtype="int8")
    refused(lambda m: mad(m), "uint8 x uint8", dtype="uint8")
    refused(lambda m: mad(m, kind="mad_mx"), "block-scaled", "bfloat16 x bfloat16", "float4_e2m1fnx2")
    refused(lambda m: mad(m, (4096, 32, 48)), "M of a matrix multiplication is 4096", "0 to 4095")
    refused(lambda m: mad(m, bias=1), "1 as argument bias")
    refused(lambda m: mad(m, flag=1), "unit flag 1", "2 (check)")
    refused(lambda m: mad(m, flag=4), "unit flag is 4")


HF32 = {0: "", 1: ', tf32_mode="round_away"', 2: ', tf32_mode="round_even"'}


@pytest.mark.parametrize("mode", HF32)
def test_hf32(mode):
    lines = cube(lambda m: [call("set_hf32_mode", mode), mad(m)], dtype="float32")
    assert lines[-1] == f"pto.mad(l0a, l0b, l0c, 64, 48, 32{HF32[mode]})"
    assert cube(lambda m: [call("set_hf32_mode", mode), mad(m)])[-1] == "pto.mad(l0a, l0b, l0c, 64, 48, 32)"


def test_direction():
    assert cube(lambda m: [call("set_mmad_direction", "n"), mad(m)])[-1].endswith("48, 32, n_dir=True)")
    assert cube(lambda m: [call("set_mmad_direction", "n"), call("set_mmad_direction", "m"), mad(m)])[-1].endswith("48, 32)")


def loop(*statements):
    return tirx.For(tirx.Var("i", "int32"), immediate(0), N, tirx.ForKind.SERIAL, sequence(*statements))


def test_a_mode_that_depends_on_the_way_is_refused():
    on, off = call("set_hf32_mode", 2), call("set_hf32_mode", 0)
    branch = tirx.IfThenElse(N == 0, on, None)
    words = ("the HF32 mode is set in a branch or later in a loop", "in front of the loops")
    refused(lambda m: [branch, mad(m)], *words, dtype="float32")
    refused(lambda m: [loop(mad(m), on)], *words, dtype="float32")
    refused(lambda m: [loop(on), mad(m)], *words, dtype="float32")
    assert cube(lambda m: [branch, off, mad(m)], dtype="float32")[-1].endswith("32)")
    assert cube(lambda m: [on, loop(mad(m))], dtype="float32")[-1].endswith('tf32_mode="round_even")')
    assert cube(lambda m: [loop(on, mad(m))], dtype="float32")[-1].endswith('tf32_mode="round_even")')


# -- L0C to GM and UB ----------------------------------------------------------------------------------------------------

OUTPUTS = [
    ("float32", "float32", 0, ""),
    ("int32", "int32", 0, ""),
    ("float32", "float16", 1, ', pre_quant=(pto.const(1.0, dtype=pto.f16), "f32_f16")'),
    ("float32", "bfloat16", 16, ', pre_quant=(pto.const(1.0, dtype=pto.bf16), "f32_bf16")'),
    ("float32", "float8_e4m3fn", 13, ', pre_quant=(pto.const(1.0, dtype=pto.f32), "qf322fp8_pre_scalar")'),
    ("float32", "float8_e4m3fn", 0, ', pre_quant=(pto.const(1.0, dtype=pto.f32), "qf322fp8_pre_scalar")'),
]


def to_gm(m, out, dtype, *, quantisation=0, flag=0, rows=64, columns=48, stride=128, relu=0, split=0, nd=1, dn=0, clip=0, cache=0, pad=0):
    head = (access(out, dtype, 256, 64), at(m["l0c"]), 0, columns, rows, stride, 64, cache, clip, flag, quantisation, relu, split, nd)
    return call("copy_matrix_cc_to_gm", *head, pad, *[0] * 9, dn)


@pytest.mark.parametrize(("accumulator", "dtype", "mode", "option"), OUTPUTS)
def test_copy_to_gm(accumulator, dtype, mode, option):
    out = pointer("out", dtype)
    lines = cube(lambda m: to_gm(m, out, dtype, quantisation=mode, cache=4), accumulator=accumulator, params=(out,))
    wanted = "pto.mte_l0c_gm(l0c, pto.addptr(out, 256), 64, 48, 64, 128, 0, 4"
    assert lines[-1] == f'{wanted}{option}, layout="nz2nd")'


def test_options_of_a_copy_to_gm():
    def line(**options):
        return cube(lambda m: to_gm(m, C, "float32", **options))[-1].partition("128, 0, 0")[2]

    assert line(flag=2) == ', unit_flag="check_only", layout="nz2nd")'
    assert line(flag=3) == ', unit_flag="check_and_clear", layout="nz2nd")'
    assert line(relu=1) == ', pre_relu=("normal_relu", None, None), layout="nz2nd")'
    assert line(nd=0) == ")"
    assert line(nd=0, dn=1) == ', layout=("nz2dn", 1))'
    assert line(nd=0, split=1) == ', layout=("nz2nz", 1))'


def test_a_unit_flag_of_a_copy_known_at_run_time():
    lines = cube(lambda m: to_gm(m, C, "float32", flag=tirx.Select(N == 0, immediate(3), immediate(0))))
    assert [line.partition("128, 0, 0")[2] for line in lines if line.startswith("pto.mte")] == [
        ', unit_flag="check_and_clear", layout="nz2nd")', ', layout="nz2nd")',
    ]  # fmt: skip


def test_copies_from_l0c_that_cannot_be():
    small = pointer("small", "int8")
    half = pointer("half", "float16")
    for mode in (9, 22, 28, 99):
        refused(
            lambda m, mode=mode: to_gm(m, small, "int8", quantisation=mode), f"quantisation mode {mode}", "vector function", params=(small,)
        )
    refused(lambda m: to_gm(m, half, "float16", quantisation=0), "float32 from L0C to float16", params=(half,))
    refused(lambda m: to_gm(m, half, "float16", quantisation=1), "int32 from L0C to float16", accumulator="int32", params=(half,))
    refused(lambda m: to_gm(m, C, "float32", relu=2), "2 as argument relu")
    refused(lambda m: to_gm(m, C, "float32", nd=1, dn=1), "to rows and to columns at once")
    refused(lambda m: to_gm(m, C, "float32", nd=1, split=1), "channel split")
    refused(lambda m: to_gm(m, C, "float32", clip=1), "1 as argument clip")
    refused(lambda m: to_gm(m, C, "float32", pad=1), "a mode of a copy from L0C that has no PTODSL form")
    refused(lambda m: to_gm(m, C, "float32", columns=4096), "number of columns of a copy from L0C is 4096")
    refused(lambda m: to_gm(m, C, "float32", rows=65536), "number of rows of a copy from L0C is 65536")
    refused(lambda m: to_gm(m, C, "float32", stride=tirx.IntImm("int64", 1 << 32)), "row stride in elements")


UB = buffer("ub", "float32", 4096, "shared.dyn")


def to_ub(m, *, dual=0, core=0, flag=0, quantisation=0, relu=0, rows=64, columns=64, offset=0, target=UB):
    ends = (access(target.data, str(target.dtype), offset, 64), at(m["l0c"]))
    return call("copy_matrix_cc_to_ub", *ends, 0, columns, rows, 64, 64, dual, core, 0, flag, quantisation, relu, 0, 1, *[0] * 10, 0)


def mixed(statement, vector=lambda sid: tirx.Evaluate(immediate(0)), *, surface="2026-08", vectors=2, ub=UB):
    memory = tiles()
    head = [tirx.AllocBuffer(tile) for tile in (*memory.values(), ub)]
    return emitted(mixed_kernel("k", (A, B, C, N), head, statement(memory), vector, vectors), surface)


def test_copy_to_ub():
    assert 'pto.mte_l0c_ub(l0c, ub, 64, 64, 64, 64, 0, layout="nz2nd")' in mixed(lambda m: to_ub(m))
    assert 'pto.mte_l0c_ub(l0c, ub, 64, 64, 64, 64, 1, layout="nz2nd")' in mixed(lambda m: to_ub(m, core=1))
    assert 'pto.mte_l0c_ub(l0c, ub, 64, 64, 64, 64, n, layout="nz2nd")' in mixed(lambda m: to_ub(m, core=N))
    for dual, split in ((1, "M"), (2, "N")):
        lines = mixed(lambda m, dual=dual: to_ub(m, dual=dual, flag=3))
        assert f'pto.mte_l0c_ub(l0c, ub, 64, 64, 64, 64, unit_flag="check_and_clear", layout="nz2nd", split="{split}")' in lines


def test_copies_to_ub_that_cannot_be():
    def refuse(statement, *words, **options):
        with pytest.raises(tilelang_pto.UnsupportedError) as caught:
            mixed(statement, **options)
        for word in words:
            assert word in str(caught.value)

    narrow = buffer("narrow", "bfloat16", 4096, "shared.dyn")
    refuse(lambda m: to_ub(m, dual=3), "3 as argument dual", "0, 1, 2")
    refuse(lambda m: to_ub(m, dual=1, rows=33), "number of rows of a copy to two vector cores is 33, no multiple of 2")
    refuse(lambda m: to_ub(m, dual=2, columns=48), "48, no multiple of 32")
    refuse(lambda m: to_ub(m, dual=1, quantisation=16, target=narrow), "a conversion on the way to two vector cores", ub=narrow)
    refuse(lambda m: to_ub(m, dual=1, relu=1), "a conversion on the way to two vector cores")
    refuse(lambda m: to_ub(m, core=2), "the vector core of a copy from L0C is 2")
    refuse(lambda m: to_ub(m, columns=12), "length in bytes of a row in UB", "no multiple of 32")
    refuse(lambda m: to_ub(m, offset=4), "no multiple of 32")
    refused(lambda m: [tirx.AllocBuffer(UB), to_ub(m)], "a kernel without vector code", "T.Vector()")


# -- UB to L1 ------------------------------------------------------------------------------------------------------------


def test_copy_from_ub_to_l1():
    memory = tiles("float32")
    head = [tirx.AllocBuffer(tile) for tile in (*memory.values(), UB)]
    nothing = tirx.Evaluate(immediate(0))
    raw = call("copy_ubuf_to_cbuf", at(memory["l1"], 512), at(UB), 0, 4, 8, 1, 3)
    mod = mixed_kernel("k", (A,), head, nothing, lambda sid: raw)
    assert emitted(mod)[-1] == "pto.mte_ub_l1(ub, pto.addptr(l1, 512), 8, nburst=(4, 1, 3))"


@pytest.mark.parametrize(("ctype", "dtype", "bursts"), [("float", "float32", 8), ("bfloat16_t", "bfloat16", 4), ("int8_t", "int8", 2)])
def test_copy_of_a_tile_in_columns(ctype, dtype, bursts):
    """As many bursts as a row has blocks of 32 bytes, whatever the element type."""
    memory, ub = tiles(dtype), buffer("ub", dtype, 8192, "shared.dyn")
    head = [tirx.AllocBuffer(tile) for tile in (memory["l1"], ub)]
    copy = call("nd2nz_post_copy", at(memory["l1"]), at(ub), 32, 64, 64, ctype)
    mod = mixed_kernel("k", (A,), head, tirx.Evaluate(immediate(0)), lambda sid: copy)
    assert emitted(mod)[-1].endswith(f"32, nburst=({bursts}, 1, 32))")


# -- memories and cores --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "memory", "size"),
    [("l1", "L1", 524288), ("l0a", "L0A", 65536), ("l0b", "L0B", 65536), ("l0c", "L0C", 262144)],
)
@pytest.mark.parametrize("dynamic", ["", ".dyn"])
def test_capacity(scope, memory, size, dynamic):
    first, second = (buffer(name, "uint8", size // 2, f"shared.{scope}{dynamic}") for name in ("first", "second"))
    fits = [tirx.AllocBuffer(first), tirx.AllocBuffer(second)]
    emit_module(cube_kernel("k", (A,), *fits), surface=surface_of("2026-09"))
    third = buffer("third", "uint8", 64, f"shared.{scope}{dynamic}")
    with pytest.raises(tilelang_pto.UnsupportedError) as caught:
        emit_module(cube_kernel("k", (A,), *fits, tirx.AllocBuffer(third)), surface=surface_of("2026-09"))
    wanted = f"{size + 64} bytes of {memory} are required and {size} are available (first {size // 2}, second {size // 2}, third 64)"
    assert wanted in str(caught.value)


def test_buffers_of_one_memory_follow_each_other():
    first, second = buffer("first", "bfloat16", 100, "shared.l0c"), buffer("second", "float32", 64, "shared.l0c")
    out = pointer("out", "float32")
    body = call("copy_matrix_cc_to_gm", access(out, "float32", 0, 64), at(second), 0, 16, 4, 16, 16, 0, 0, 0, 0, 0, 0, 1, *[0] * 11)
    lines = emitted(cube_kernel("k", (out,), tirx.AllocBuffer(first), tirx.AllocBuffer(second), body))
    assert 'second = pto.castptr(pto.const(1024, dtype=pto.i64), pto.ptr(pto.f32, "acc"))  # L0C view second' in lines


def kernel_kind(mod):
    kernel = emit_module(mod, surface=surface_of("2026-08"))
    return kernel.kernels[0].kind, "kernel_kind" in kernel.text


def test_kind_of_a_kernel():
    memory = tiles()
    nothing = tirx.Evaluate(immediate(0))
    assert kernel_kind(vector_kernel("k", (), lambda bx: nothing)) == ("vector", True)
    assert kernel_kind(cube_kernel("k", (), nothing)) == ("cube", True)
    assert kernel_kind(mixed_kernel("k", (), [], nothing, lambda sid: nothing)) == ("mixed", False)
    bare = sequence(*(tirx.AllocBuffer(tile) for tile in memory.values()), mad(memory))
    assert kernel_kind(module("k", (), thread_extent("blockIdx.x", "bx", 1, lambda bx: bare))) == ("cube", True)
    assert kernel_kind(module("k", (), thread_extent("blockIdx.x", "bx", 1, lambda bx: nothing))) == ("vector", True)


def test_one_vector_core_of_two():
    lines = mixed(lambda m: tirx.Evaluate(immediate(0)), lambda sid: call("set_flag", "V_MTE3", sid), vectors=1)
    assert lines[-3:] == [
        "with pto.if_(pto.get_subblock_idx() == 0) as br:", "with br.then_:", 'pto.set_flag("V", "MTE3", event_id=0)',
    ]  # fmt: skip


def test_each_core_has_its_own_copy_of_a_variable():
    counter = tirx.decl_buffer((1,), "int32", name="counter", scope="local.var")
    first = tirx.AllocBuffer(counter, annotations={"tl.local_var_init": immediate(3)})
    read = tirx.BufferLoad(counter, [immediate(0)])
    change = sequence(
        call("set_flag", "MTE2_MTE1", read), tirx.BufferStore(counter, immediate(5), [immediate(0)]), call("set_flag", "MTE2_MTE1", read)
    )
    mod = mixed_kernel("k", (), [first], change, lambda sid: call("set_flag", "V_MTE3", read))
    lines = [line for line in emitted(mod) if "event_id" in line]
    assert [line.rpartition("=")[2] for line in lines] == ["3)", "5)", "3)"]


def test_a_variable_does_not_leave_its_core():
    counter = tirx.decl_buffer((1,), "int32", name="counter", scope="local.var")
    store = tirx.BufferStore(counter, immediate(5), [immediate(0)])
    read = call("set_flag", "S_MTE2", tirx.BufferLoad(counter, [immediate(0)]))
    body = sequence(tirx.AllocBuffer(counter), block("CUBE", store), block("VECTOR", tirx.Evaluate(immediate(0))), read)
    with pytest.raises(tilelang_pto.UnsupportedError, match="counter is written by the cube core and read after"):
        emit_module(module("k", (), body), surface=surface_of("2026-09"))


def test_code_on_the_wrong_core():
    memory = tiles()
    allocations = [tirx.AllocBuffer(tile) for tile in memory.values()]
    nothing = tirx.Evaluate(immediate(0))
    cases = [
        (vector_kernel("k", (), lambda bx: sequence(*allocations, mad(memory))), "tl.ascend_mad on a vector core", "T.Cube()"),
        (mixed_kernel("k", (), allocations, nothing, lambda sid: mad(memory)), "tl.ascend_mad on a vector core", "T.Cube()"),
        (mixed_kernel("k", (), [*allocations, mad(memory)], nothing, lambda sid: nothing), "outside T.Cube() and T.Vector()", "T.Cube()"),
        (cube_kernel("k", (), block("SIMD_VF", nothing)), "a vector function outside the code of a vector core", "T.Vector()"),
        (cube_kernel("k", (), call("set_flag", "V_MTE2", 0)), "event V_MTE2 on a cube core", "no pipe V"),
        (vector_kernel("k", (), lambda bx: call("set_flag", "M_FIX", 0)), "event M_FIX on a vector core", "no pipe M"),
        (vector_kernel("k", (), lambda bx: call("pipe_barrier", "PIPE_FIX")), "barrier of pipe FIX on a vector core", "no pipe FIX"),
    ]
    for mod, *words in cases:
        with pytest.raises(tilelang_pto.UnsupportedError) as caught:
            emit_module(mod, surface=surface_of("2026-09"))
        for word in words:
            assert word in str(caught.value)


# -- flags between cores -------------------------------------------------------------------------------------------------


def flags(cube_id, vector_id, mode=4, surface="2026-08", pipe="PIPE_FIX"):
    cube_code = call("cross_core_set_flag", mode, pipe, cube_id)
    return mixed(lambda m: cube_code, lambda sid: call("cross_core_wait_flag", mode, "PIPE_V", vector_id), surface=surface)


@pytest.mark.parametrize("surface", SURFACES)
def test_flags_between_cube_and_vector(surface):
    assert 'pto.set_intra_block("FIX", 21)' in flags(21, 5, surface=surface)
    assert 'pto.wait_intra_block("V", 5)' in flags(21, 5, surface=surface)


def test_numbers_of_flags_known_at_run_time():
    """An index for August 2026, an integer for September."""
    assert 'pto.set_intra_block("FIX", scalar.cast(n + 16, pto.index))' in flags(N + 16, 5)
    assert 'pto.set_intra_block("FIX", n + 16)' in flags(N + 16, 5, surface="2026-09")
    assert 'pto.set_cross_block("FIX", scalar.cast(n, pto.index))' in flags(N, 5, mode=0)
    assert 'pto.set_cross_block("FIX", n)' in flags(N, 5, mode=0, surface="2026-09")


def test_barrier_of_all_cores():
    for surface in SURFACES:
        assert 'pto.set_cross_block("FIX", 3)' in flags(3, 3, mode=0, surface=surface)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cube_id": 32, "vector_id": 0}, ["event id 32", "0 to 31"]),
        ({"cube_id": 0, "vector_id": 16}, ["event id 16", "0 to 15"]),
        ({"cube_id": 0, "vector_id": 0, "mode": 1}, ["mode 1", "4 (cube core and vector core)"]),
        ({"cube_id": 0, "vector_id": 0, "mode": 2}, ["mode 2"]),
        ({"cube_id": 0, "vector_id": 0, "pipe": "PIPE_M"}, ["cross-core flag of pipe M", "FIX"]),
    ],
)
def test_flags_that_cannot_be(arguments, words):
    with pytest.raises(tilelang_pto.UnsupportedError) as caught:
        flags(**arguments)
    for word in words:
        assert word in str(caught.value)


def test_a_flag_to_a_core_that_is_not_there():
    with pytest.raises(tilelang_pto.UnsupportedError, match="a flag between cube and vector core in a cube kernel"):
        emit_module(cube_kernel("k", (), call("cross_core_set_flag", 4, "PIPE_FIX", 0)), surface=surface_of("2026-09"))
