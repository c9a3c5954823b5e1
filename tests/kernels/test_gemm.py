"""GEMM kernels on the simulator: operand types, transposes, ragged shapes, L0 tiles, split K, both cores, scale factors."""

from __future__ import annotations

import cube_kernels
import pytest
import torch
from cube_runs import NO_SCHEDULE, SURFACES, accepted, device_module, launch, round_mantissa, sum_bound
from real_toolchain import real_toolchain

from tilelang_pto.errors import UnsupportedError

surfaces = pytest.mark.parametrize("surface", SURFACES)


def torch_type(name: str) -> torch.dtype:
    return getattr(torch, name)


def operand(rows: int, columns: int, dtype: str, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype == "int8":
        return torch.randint(-128, 128, (rows, columns), generator=generator).to(torch.int8)
    return torch.randn(rows, columns, generator=generator).to(torch_type(dtype))


def run_gemm(mod, surface, m, n, k, *, dtype="bfloat16", out="float32", transpose_a=False, transpose_b=True, **options):
    """Operands, and the result of ``a @ b.T`` that the kernel gives for them in the layouts it takes."""
    a, b = operand(m, k, dtype, 1), operand(n, k, dtype, 2)
    c = torch.full((m, n), 77, dtype=torch.float32).to(torch_type(out))
    stored = {"a": a.T.contiguous() if transpose_a else a, "b": b if transpose_b else b.T.contiguous(), "c": c}
    launch(mod, surface, stored, **options)
    return a, b, c


def assert_product(a, b, c, rounding=0.0, smallest=0.0):
    """``c`` is ``a @ b.T`` but for the order of the sums and the rounding to its type, relative and of subnormal numbers."""
    exact = a.double() @ b.double().T
    allowed = sum_bound(a, b.T) + (exact.abs() * rounding).clamp(min=smallest)
    assert ((c.double() - exact).abs() <= allowed).all(), (c.double() - exact).abs().max()


def kernel(make, *arguments, passes=(), **options):
    return device_module(make, arguments, tuple(sorted(options.items())), passes)


@surfaces
@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, True), (True, True), (False, False), (True, False)])
def test_transposes(transpose_a, transpose_b, surface):
    mod = kernel(cube_kernels.gemm, 128, 64, 192, transpose_a=transpose_a, transpose_b=transpose_b)
    assert_product(*run_gemm(mod, surface, 128, 64, 192, transpose_a=transpose_a, transpose_b=transpose_b))


@surfaces
@pytest.mark.parametrize("dtype", ["float16", "float32", "float8_e4m3fn"])
def test_operand_types(dtype, surface):
    mod = kernel(cube_kernels.gemm, 64, 128, 128, dtype=dtype)
    assert_product(*run_gemm(mod, surface, 64, 128, 128, dtype=dtype))


@surfaces
def test_integers_are_exact(surface):
    mod = kernel(cube_kernels.gemm, 64, 64, 256, dtype="int8", out_dtype="int32", accumulator="int32", tile=(64, 64, 128))
    a, b, c = run_gemm(mod, surface, 64, 64, 256, dtype="int8", out="int32")
    assert torch.equal(c.long(), a.long() @ b.long().T)


@surfaces
@pytest.mark.parametrize(("mode", "ties_away"), [("nearest_even", False), ("nearest_zero", True)])
def test_hf32(mode, ties_away, surface):
    """float32 operands with mantissas of ten bits."""
    mod = kernel(cube_kernels.gemm, 64, 64, 128, dtype="float32", hf32=mode)
    a, b, c = run_gemm(mod, surface, 64, 64, 128, dtype="float32")
    short = [round_mantissa(values, 10, ties_away=ties_away) for values in (a, b)]
    assert_product(*short, c)
    assert not torch.allclose(c, (a.double() @ b.double().T).float(), rtol=1e-6, atol=1e-6)


@surfaces
@pytest.mark.parametrize(
    ("out", "rounding", "smallest"), [("bfloat16", 2.0**-8, 0), ("float16", 2.0**-11, 0), ("float8_e4m3fn", 2.0**-4, 2.0**-10)]
)
def test_conversion_on_the_way_out(out, rounding, smallest, surface):
    mod = kernel(cube_kernels.gemm, 64, 64, 64, out_dtype=out)
    a, b, c = run_gemm(mod, surface, 64, 64, 64, out=out)
    assert_product(a, b, c.float(), rounding, smallest)


SHAPES = [(100, 72, 200), (1, 1, 1), (17, 33, 65), (64, 65, 63), (129, 16, 48)]


@surfaces
@pytest.mark.parametrize("shape", SHAPES)
def test_ragged_shapes(shape, surface):
    mod = kernel(cube_kernels.gemm, *shape)
    assert_product(*run_gemm(mod, surface, *shape))


@surfaces
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_ragged_shapes_of_other_types(dtype, surface):
    integers = {"out_dtype": "int32", "accumulator": "int32"} if dtype == "int8" else {}
    mod = kernel(cube_kernels.gemm, 50, 30, 70, dtype=dtype, **integers)
    a, b, c = run_gemm(mod, surface, 50, 30, 70, dtype=dtype, out=integers.get("out_dtype", "float32"))
    assert_product(a.double(), b.double(), c)


@surfaces
def test_several_slices_of_k(surface):
    """A tile of K in several slices, through two stages of L0."""
    mod = kernel(cube_kernels.gemm, 128, 128, 512, tile=(128, 128, 256))
    assert_product(*run_gemm(mod, surface, 128, 128, 512))
    odd = kernel(cube_kernels.gemm, 256, 64, 240, tile=(256, 64, 240))
    assert_product(*run_gemm(odd, surface, 256, 64, 240))


@surfaces
def test_tiles_so_small_that_multiplications_wait(surface):
    mod = kernel(cube_kernels.gemm, 64, 32, 320, tile=(32, 32, 64))
    assert_product(*run_gemm(mod, surface, 64, 32, 320))


@surfaces
def test_unit_flags_change_no_bit(surface):
    plain, flagged = (kernel(cube_kernels.gemm, 128, 128, 512, tile=(128, 128, 256), unit_flag=flag) for flag in (False, True))
    assert torch.equal(run_gemm(plain, surface, 128, 128, 512)[2], run_gemm(flagged, surface, 128, 128, 512)[2])


@surfaces
@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, True), (True, True), (False, False), (True, False)])
def test_l0_tiles(transpose_a, transpose_b, surface):
    mod = kernel(cube_kernels.gemm_l0, 64, 128, 128, transpose_a=transpose_a, transpose_b=transpose_b)
    assert_product(*run_gemm(mod, surface, 64, 128, 128, transpose_a=transpose_a, transpose_b=transpose_b))


@surfaces
@pytest.mark.parametrize("dtype", ["float32", "float8_e5m2", "int8"])
def test_l0_tiles_of_other_types(dtype, surface):
    """All operands turned while they are loaded: squares of 16 or 32."""
    integers = {"accumulator": "int32"} if dtype == "int8" else {}
    turned = {"transpose_a": True, "transpose_b": False}
    mod = kernel(cube_kernels.gemm_l0, 64, 64, 128, dtype=dtype, **turned, **integers)
    a, b, c = run_gemm(mod, surface, 64, 64, 128, dtype=dtype, out=integers.get("accumulator", "float32"), **turned)
    assert_product(a.double(), b.double(), c)


@surfaces
@pytest.mark.parametrize("parts", [2, 4])
def test_split_k(parts, surface):
    """The parts that come later add to what the first has stored."""
    mod = kernel(cube_kernels.gemm_split_k, 64, 128, 256, parts=parts)
    assert_product(*run_gemm(mod, surface, 64, 128, 256))


@surfaces
def test_deterministic_split_k(surface):
    mod = kernel(cube_kernels.gemm_split_k, 64, 64, 256, parts=4, deterministic=True)
    a, b, c = run_gemm(mod, surface, 64, 64, 256)
    assert_product(a, b, c)
    for threads in (1, 2):
        assert torch.equal(run_gemm(mod, surface, 64, 64, 256, host_threads=threads)[2], c)


@surfaces
@pytest.mark.parametrize("split", ["rows", "columns"])
@pytest.mark.parametrize("unit_flag", [False, True])
def test_both_cores(split, unit_flag, surface):
    """The vector cores clamp what the cube core hands them, half of a tile each."""
    mod = kernel(cube_kernels.gemm_relu, 128, 128, 128, split=split, unit_flag=unit_flag)
    a, b, c = run_gemm(mod, surface, 128, 128, 128)
    exact = (a.double() @ b.double().T).relu()
    assert ((c.double() - exact).abs() <= sum_bound(a, b.T)).all()
    assert (c == 0).any()


@surfaces
@pytest.mark.parametrize("sids", [1, 2])
def test_mixed_kernel(sids, surface):
    mod = kernel(cube_kernels.gemm_mixed_kernel, 128, 64, 128, sids=sids)
    assert_product(*run_gemm(mod, surface, 128, 64, 128))


@surfaces
def test_flags_by_hand(surface):
    mod = kernel(cube_kernels.gemm_manual, 128, 128, 192, passes=NO_SCHEDULE)
    assert_product(*run_gemm(mod, surface, 128, 128, 192))


@surfaces
def test_first_columns_of_l1_tiles(surface):
    mod = kernel(cube_kernels.gemm_of_parts, 64, (0, 64), (0, 64), (0, 32))
    a, b, c = operand(64, 64, "bfloat16", 1), operand(64, 64, "bfloat16", 2), torch.zeros(64, 64)
    launch(mod, surface, {"a": a, "b": b, "c": c})
    assert_product(a[:, :32], b[:, :32], c)


WHOLE = (0, 64)


@pytest.mark.parametrize("part", [(0, 32), (32, 32), (16, 16)])
@pytest.mark.parametrize("of", ["A", "B"])
def test_rows_of_l1_tiles_are_refused(of, part):
    """TileLang would take the rows of the part for those of the tile."""
    rows = (part, WHOLE) if of == "A" else (WHOLE, part)
    with pytest.raises(
        UnsupportedError, match=rf"{of} of a GEMM is a part of the L1 tile {of.lower()}_l1 \({part[1]} rows from row {part[0]}"
    ):
        kernel(cube_kernels.gemm_of_parts, 64, *rows, WHOLE)


@pytest.mark.parametrize("first", [16, 32])
def test_later_columns_of_l1_tiles_are_refused(first):
    """TileLang would read from the first column."""
    with pytest.raises(UnsupportedError, match=f"columns from {first}"):
        kernel(cube_kernels.gemm_of_parts, 64, WHOLE, WHOLE, (first, 32))


# -- scale factors -------------------------------------------------------------------------------------------------------

FLOAT4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def scaled_operand(rows: int, k: int, dtype: str, seed: int):
    """As the kernel takes it, the exact values, and the scale factors of each 32 values as bytes."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.randint(118, 136, (rows, k // 32), generator=generator, dtype=torch.uint8)
    if dtype == "float4_e2m1fn":
        stored = torch.randint(0, 256, (rows, k // 2), generator=generator, dtype=torch.uint8)
        values = torch.stack([FLOAT4[(stored & 15).long()], FLOAT4[(stored >> 4).long()]], -1).reshape(rows, k)
    else:
        stored = torch.randn(rows, k, generator=generator).to(torch_type(dtype))
        values = stored.double()
    return stored, values * torch.pow(2.0, scales.double() - 127).repeat_interleave(32, 1), scales


FORMS = {
    "pairs by columns": ({"scale_dtype": "uint16", "packed": True}, lambda scales: scales.view(torch.uint16).T.contiguous()),
    "pairs by rows": ({"scale_dtype": "uint16", "packed": False}, lambda scales: scales.view(torch.uint16)),
    "bytes by rows": ({"scale_dtype": "uint8", "packed": False}, lambda scales: scales),
}


def run_scaled(mod, surface, m, n, k, dtype, form):
    a, a_values, a_scales = scaled_operand(m, k, dtype, 3)
    b, b_values, b_scales = scaled_operand(n, k, dtype, 4)
    c = torch.zeros(m, n)
    launch(mod, surface, {"a": a, "b": b, "a_scales": form(a_scales), "b_scales": form(b_scales), "c": c})
    exact = a_values @ b_values.T
    assert ((c.double() - exact).abs() <= sum_bound(a_values, b_values.T)).all()


@surfaces
@pytest.mark.parametrize("form", FORMS)
def test_block_scaled(form, surface):
    options, arrange = FORMS[form]
    mod = kernel(cube_kernels.gemm_scaled, 128, 64, 256, **options)
    run_scaled(mod, surface, 128, 64, 256, "float8_e4m3fn", arrange)


@surfaces
@pytest.mark.parametrize(("dtype", "depth"), [("float8_e4m3fn", 512), ("float4_e2m1fn", 1024)])
def test_block_scaled_in_slices(dtype, depth, surface):
    mod = kernel(cube_kernels.gemm_scaled, 64, 128, 2 * depth, dtype=dtype, tile=(64, 128, depth))
    run_scaled(mod, surface, 64, 128, 2 * depth, dtype, FORMS["pairs by columns"][1])


@surfaces
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float4_e2m1fn"])
def test_block_scaled_l0_tiles(dtype, surface):
    mod = kernel(cube_kernels.gemm_scaled_l0, 64, 64, 512, dtype=dtype)
    run_scaled(mod, surface, 64, 64, 512, dtype, FORMS["pairs by columns"][1])


# -- the real toolchain --------------------------------------------------------------------------------------------------

MODULES = {
    "gemm": lambda: kernel(cube_kernels.gemm, 100, 72, 200),
    "turned operands": lambda: kernel(cube_kernels.gemm, 128, 64, 192, transpose_a=True, transpose_b=False),
    "hf32": lambda: kernel(cube_kernels.gemm, 64, 64, 128, dtype="float32", hf32="nearest_even"),
    "float8": lambda: kernel(cube_kernels.gemm, 64, 64, 64, out_dtype="float8_e4m3fn"),
    "integers": lambda: kernel(cube_kernels.gemm, 64, 64, 256, dtype="int8", out_dtype="int32", accumulator="int32", tile=(64, 64, 128)),
    "slices": lambda: kernel(cube_kernels.gemm, 128, 128, 512, tile=(128, 128, 256), unit_flag=True),
    "l0": lambda: kernel(cube_kernels.gemm_l0, 64, 128, 128, transpose_a=True, transpose_b=False),
    "split k": lambda: kernel(cube_kernels.gemm_split_k, 64, 128, 256, parts=2),
    "split k in order": lambda: kernel(cube_kernels.gemm_split_k, 64, 64, 256, parts=4, deterministic=True),
    "both cores": lambda: kernel(cube_kernels.gemm_relu, 128, 128, 128, split="columns", unit_flag=True),
    "one vector core": lambda: kernel(cube_kernels.gemm_mixed_kernel, 128, 64, 128, sids=1),
    "flags by hand": lambda: kernel(cube_kernels.gemm_manual, 128, 128, 192, passes=NO_SCHEDULE),
    "scaled": lambda: kernel(cube_kernels.gemm_scaled, 64, 128, 2048, dtype="float4_e2m1fn", tile=(64, 128, 1024)),
    "scaled l0": lambda: kernel(cube_kernels.gemm_scaled_l0, 64, 64, 512, dtype="float8_e4m3fn"),
}


@real_toolchain
@pytest.mark.parametrize("name", MODULES)
def test_accepted(name, tmp_path):
    accepted(MODULES[name](), tmp_path)
