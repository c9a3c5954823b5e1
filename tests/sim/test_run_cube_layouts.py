"""What the copies of a cube kernel put where, byte for byte, against the layout formulas."""

from __future__ import annotations

import numpy as np
import pytest
from cube_harness import C0, exact, flags, numbers, nz, run, scatter, up, zn
from engine_harness import NUMPY, same

from tilelang_pto.errors import SimulationError

POISON = 0xFF

TO_VECTOR = """\
    pto.mte_l1_ub(at("mat", pto.ui8), at("ub", pto.ui8), {blocks}, nburst=(1, 0, 0))
    pto.set_intra_block("MTE1", 0)
    pto.set_intra_block("MTE1", 16)
with pto.section("vector"):
    pto.wait_intra_block("MTE3", 0)
    with pto.if_(pto.cmp(pto.get_subblock_idx(), 0, "eq")) as br:
        with br.then_:
            pto.mte_ub_gm(at("ub", pto.ui8), out, {bytes}, nburst=(1, {bytes}, {bytes}))
"""


def l1_after(body: str, arrays: dict, size: int) -> np.ndarray:
    """The first ``size`` bytes of L1 after a cube kernel: through the UB of vector core 0."""
    lines = "with pto.section('cube'):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    lines += "    pto.set_flag('MTE2', 'MTE1')\n    pto.wait_flag('MTE2', 'MTE1')\n"
    lines += TO_VECTOR.format(blocks=size // 32, bytes=size)
    return run(lines, {**arrays, "out": ("ui8", np.zeros(size))}, kind=None)["out"]


def as_bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8).ravel()


# -- GM to L1 ----------------------------------------------------------------------------------------------------------

SHAPES = [(16, 32), (5, 32), (16, 3), (33, 50), (1, 1), (40, 64)]


def words(size: int, *shape: int) -> np.ndarray:
    """Numbers of ``size`` bytes, none of them zero or poison."""
    return np.random.default_rng(7).integers(1, 0x7F, shape).astype(f"u{size}")


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("mode", ["nd2nz", "dn2nz"])
def test_fractals_of_ragged_matrices(size: int, n: int, d: int, mode: str) -> None:
    dtype, c0, pad = {1: "ui8", 2: "ui16", 4: "ui32"}[size], 32 // size, 3
    matrix = words(size, n, d)
    rows = up(n, 16)
    source = matrix if mode == "nd2nz" else matrix.T
    stored = np.full((source.shape[0], source.shape[1] + pad), 0x55, matrix.dtype)  # rows further apart than they are long
    stored[:, : source.shape[1]] = source
    total = up(d, c0) // c0 * rows * 32
    inner = stored.shape[1] * size
    body = f'pto.mte_gm_l1_frac(x, at("mat", pto.{dtype}), "{mode}", shape=({n}, {d}), src_layout=({inner},), '
    body += f"dst_group=(1, 1, {rows}, 0), ctrl=(0, False))"
    found = l1_after(body, {"x": (dtype, stored)}, total)
    expected = np.full(total // size, -1, np.int64)
    r, c = np.indices((n, up(d, c0)))
    expected[nz(r, c, n, c0)] = 0  # what is missing of a group of columns
    r, c = np.indices((n, d))
    expected[nz(r, c, n, c0)] = matrix
    poison = int.from_bytes(bytes([POISON] * size), "little")
    same(found.view(matrix.dtype), np.where(expected < 0, poison, expected))


@pytest.mark.parametrize("mode", ["nd2nz", "dn2nz"])
def test_groups_of_matrices(mode: str) -> None:
    groups, n, d = 3, 16, 32
    matrices = words(2, groups, n, d)
    source = matrices if mode == "nd2nz" else matrices.transpose(0, 2, 1)
    inner, outer = source.shape[2] * 2, n * d * 2
    # Matrices in reverse order of columns: rows of all groups interleaved (loop2 = 3), a matrix one block further (loop4 = 1).
    body = f'pto.mte_gm_l1_frac(x, at("mat", pto.ui16), "{mode}", shape=({n}, {d}), src_layout=({inner}, {outer}), '
    body += f"dst_group=({groups}, {groups}, {n * groups}, 1), ctrl=(0, False))"
    found = l1_after(body, {"x": ("ui16", source)}, groups * n * d * 2).view(np.uint16)
    g, r, c = np.indices((groups, n, d))
    expected = np.zeros(groups * n * d, np.uint16)
    expected[16 * (g + c // 16 * n * groups + r * groups) + c % 16] = matrices
    same(found, expected)


@pytest.mark.parametrize("mode", ["nd2nz", "dn2nz"])
def test_small_c0_keeps_four_columns(mode: str) -> None:
    n, d = 10, 3
    matrix = words(2, n, d)
    source = matrix if mode == "nd2nz" else matrix.T
    body = f'pto.mte_gm_l1_frac(x, at("mat", pto.ui16), "{mode}", shape=({n}, {d}), src_layout=({source.shape[1] * 2},), '
    body += "dst_group=(1, 1, 16, 0), ctrl=(0, True))"
    found = l1_after(body, {"x": ("ui16", source)}, 96).view(np.uint16)
    expected = np.zeros(48, np.uint16)
    expected[: n * 4].reshape(n, 4)[:, :d] = matrix
    same(found, expected)


def test_plain_copies_and_fills() -> None:
    x = words(1, 4, 48)
    body = """\
pto.mte_gm_l1(x, at("mat", pto.ui8), 40, nburst=(2, 48, 64), loops=[(2, 96, 128)])
pto.raw_fill_l1(at("mat", pto.ui8), 256, 0x1234, repeat_times=2, block_num_32b=1, dst_gap_32b=1, fill_word_bits=16)
pto.raw_fill_l1(at("mat", pto.ui8, 384), 32, 0x01020304, repeat_times=1, block_num_32b=2, dst_gap_32b=0, fill_word_bits=32)
"""
    found = l1_after(body, {"x": ("ui8", x)}, 512)
    expected = np.full(512, POISON, np.uint8)
    for row in range(4):
        expected[64 * row : 64 * row + 40] = x[row, :40]
    for start in (256, 320):
        expected[start : start + 32] = np.tile(np.array([0x34, 0x12], np.uint8), 16)
    expected[416:480] = np.tile(np.array([4, 3, 2, 1], np.uint8), 16)
    same(found, expected)


def test_rows_that_touch_are_copied_back_to_back() -> None:
    x = words(1, 5, 20)
    found = l1_after('pto.mte_gm_l1(x, at("mat", pto.ui8), 12, nburst=(5, 20, 12))', {"x": ("ui8", x)}, 96)
    expected = np.full(96, POISON, np.uint8)
    expected[:60] = x[:, :12].ravel()
    same(found, expected)


# -- L1 to L0: through a product with the identity -----------------------------------------------------------------------


def identity_product(
    dtype: str, load: str, matrix: np.ndarray, index, m: int, n: int, k: int, left: bool, result: str = "f32"
) -> np.ndarray:
    """C of a product in which one operand is ``load``ed from fractals in L1 that hold ``matrix``, the other is the identity."""
    c0, size = C0[dtype], np.dtype(NUMPY[dtype]).itemsize
    rows, columns = matrix.shape
    stored = scatter(matrix, lambda r, c: index(r, c, rows, c0), up(rows, 64) * up(columns, 64))
    ones = n if left else m
    one = scatter(np.eye(ones, k).astype(NUMPY[dtype]), lambda r, c: nz(r, c, ones, c0), up(ones, 16) * up(k, c0))
    other = f"mte_l1_l0{'b' if left else 'a'}(one, {'lb' if left else 'la'}, " + (f"{k}, {n})" if left else f"{m}, {k})")
    body = f"""\
src, one = at("mat", pto.{dtype}), at("mat", pto.{dtype}, 131072)
la, lb, lc = at("left", pto.{dtype}), at("right", pto.{dtype}), at("acc", pto.{result})
pto.mte_gm_l1(x, src, {stored.size * size}, nburst=(1, 0, 0))
pto.mte_gm_l1(y, one, {one.size * size}, nburst=(1, 0, 0))
{flags("MTE2-MTE1")}pto.{load}
pto.{other}
{flags("MTE1-M")}pto.mad(la, lb, lc, {m}, {n}, {k}, disable_gemv=True)
{flags("M-FIX")}pto.mte_l0c_gm(lc, c, {m}, {n}, {up(m, 16)}, {n}, 0, 0, layout="nz2nd")
"""
    arrays = {"x": (dtype, stored), "y": (dtype, one), "c": (result, np.zeros((m, n)))}
    return run(body, arrays)["c"]


LOADS = ["f32", "f16", "i8", "f8e4m3"]


@pytest.mark.parametrize("dtype", LOADS)
@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("form", ["shape", "controls"])
def test_loads_into_l0(dtype: str, side: str, transpose: bool, form: str) -> None:
    size, c0 = np.dtype(NUMPY[dtype]).itemsize, C0[dtype]
    rows, k = 64, 96 if dtype != "f32" else 48
    matrix = numbers(dtype, rows, k, seed=5)
    stored = matrix.T if transpose else matrix
    left = side == "a"
    # The identity picks the elements: C = A I or C = I B.
    m, n = (rows, k) if left else (k, rows)
    extents = f"{m}, {k}" if left else f"{k}, {n}"
    if form == "controls":
        source_rows, source_columns = stored.shape
        extents = (
            f"m_start=0, k_start=0, m_step={source_rows // 16}, k_step={source_columns * size // 32}, "
            f"src_stride={source_rows // 16}, dst_stride={rows // 16}"
        )
    load = f"mte_l1_l0{side}(src, l{side}, {extents}, transpose={transpose})"
    found = identity_product(dtype, load, stored, nz, m, n, k, left, "i32" if dtype == "i8" else "f32")
    expected = (matrix if left else matrix.T).astype(np.int32 if dtype == "i8" else np.float32)
    same(found, expected + 0)  # a sum that starts from 0 is never -0
    assert c0 * size == 32


def test_start_and_strides_of_a_load() -> None:
    matrix = numbers("f16", 64, 64, seed=6)
    load = "mte_l1_l0a(src, la, m_start=1, k_start=2, m_step=2, k_step=2, src_stride=4, dst_stride=2)"
    found = identity_product("f16", load, matrix, nz, 32, 32, 32, True)
    same(found, matrix[16:48, 32:64].astype(np.float32))
    load = "mte_l1_l0a(src, la, 32, 32, start_row=2, start_col=1)"
    # The rows of a tile of this form lie as close as its extent says: read the matrix as one of 32 rows.
    found = identity_product("f16", load, matrix, lambda r, c, rows, c0: nz(r, c, 32, c0) % 8192, 32, 32, 32, True)
    assert found.shape == (32, 32)


def test_transposed_loads_take_whole_squares() -> None:
    cases = {
        "i8": ("m_step=3, k_step=2", "m_step in multiples of 2"),
        "f32": ("m_step=2, k_step=3", "k_step in multiples of 2"),
    }
    for dtype, (steps, message) in cases.items():
        load = f"mte_l1_l0a(src, la, m_start=0, k_start=0, {steps}, src_stride=4, dst_stride=4, transpose=True)"
        with pytest.raises(SimulationError, match=message):
            identity_product(dtype, load, numbers(dtype, 64, 64), nz, 16, 16, 16, True, "i32" if dtype == "i8" else "f32")


def test_four_bit_loads_are_transposed_in_squares_of_64() -> None:
    rng = np.random.default_rng(9)
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    k, m = 128, 64
    codes = rng.integers(0, 16, (k, m))  # stored with K rows
    values = (table[codes & 7] * np.where(codes & 8, -1, 1)).T
    stored = scatter((codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), lambda r, c: nz(r, c, k, 32), k * m // 2)
    ones = np.full(16 * k // 2, 0x22, np.uint8)  # 1.0
    scales = np.full(64 * k // 32, 127, np.uint8)
    body = f"""\
src, one, scale = at("mat", pto.f4e2m1x2), at("mat", pto.f4e2m1x2, 65536), at("mat", pto.f8e8m0, 131072)
la, lb, lc = at("left", pto.f4e2m1x2), at("right", pto.f4e2m1x2), at("acc", pto.f32)
pto.mte_gm_l1(x, src, {stored.size}, nburst=(1, 0, 0))
pto.mte_gm_l1(y, one, {ones.size}, nburst=(1, 0, 0))
pto.mte_gm_l1(pto.castptr(s, pto.ptr(pto.f8e8m0, "gm")), scale, {scales.size}, nburst=(1, 0, 0))
{flags("MTE2-MTE1")}pto.mte_l1_l0a(src, la, {m}, {k}, transpose=True)
pto.mte_l1_l0b(one, lb, {k}, 16)
pto.mte_l1_l0a_mx(scale, la, {m}, {k})
pto.mte_l1_l0b_mx(scale, lb, {k}, 16)
{flags("MTE1-M")}pto.mad_mx(la, lb, lc, {m}, 16, {k})
{flags("M-FIX")}pto.mte_l0c_gm(lc, c, {m}, 16, {m}, 16, 0, 0, layout="nz2nd")
"""
    arrays = {"x": ("f4e2m1x2", stored), "y": ("f4e2m1x2", ones), "s": ("ui8", scales), "c": ("f32", np.zeros((m, 16)))}
    found = run(body, arrays)["c"]
    same(found, np.repeat(values.sum(1, keepdims=True), 16, 1).astype(np.float32))


def test_the_layout_of_b_in_l0() -> None:
    """A plain copy of bytes that are laid out as L0B wants them: one burst of fractals."""
    k, n = 32, 48
    b = numbers("f16", k, n, seed=4)
    a = numbers("f16", 16, k, seed=3)
    stored = scatter(b, lambda r, c: zn(r, c, n, 16), k * n)
    body = f"""\
l1a, l1b = at("mat", pto.f16), at("mat", pto.f16, 65536)
la, lb, lc = at("left", pto.f16), at("right", pto.f16), at("acc", pto.f32)
pto.mte_gm_l1_frac(a, l1a, "nd2nz", shape=(16, {k}), src_layout=({k * 2},), dst_group=(1, 1, 16, 0), ctrl=(0, False))
pto.mte_gm_l1(b, l1b, {k * n * 2}, nburst=(1, 0, 0))
{flags("MTE2-MTE1")}pto.mte_l1_l0a(l1a, la, 16, {k})
pto.mte_l1_l0b(l1b, lb, m_start=0, k_start=0, m_step={k * n // 256}, k_step=1, src_stride=1, dst_stride=1)
{flags("MTE1-M")}pto.mad(la, lb, lc, 16, {n}, {k})
{flags("M-FIX")}pto.mte_l0c_gm(lc, c, 16, {n}, 16, {n}, 0, 0, layout="nz2nd")
"""
    c = run(body, {"a": ("f16", a), "b": ("f16", stored), "c": ("f32", np.zeros((16, n)))})["c"]
    assert np.abs(c - exact(a, b.T)).max() < 1e-4


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('mte_gm_l1(x, at("mat", pto.ui8, 16), 32, nburst=(1, 0, 0))', "L1 address 16 is not a multiple of 32"),
        ('mte_gm_l1(x, at("mat", pto.ui8, 524288 - 32), 64, nburst=(1, 0, 0))', "L1 access out of bounds: 64 bytes at address 524256"),
        ('mte_gm_l1(x, at("mat", pto.ui8), 1025, nburst=(1, 0, 0))', "of tensor x, which has 1024 bytes"),
        (
            'mte_gm_l1_frac(x, at("mat", pto.ui8), "nd2nz", shape=(16, 65), src_layout=(64,), dst_group=(1, 1, 16, 0), ctrl=(0, False))',
            "of tensor x, which has 1024 bytes",
        ),
        (
            'mte_gm_l1_frac(x, at("mat", pto.ui8), "nd2nz", shape=(65536, 1), src_layout=(0,), dst_group=(1, 1, 16, 0), ctrl=(0, False))',
            "n is 65536, not 0 to 65535",
        ),
        (
            'mte_gm_l1_frac(x, at("mat", pto.ui8), "nd2nz", shape=(4, 5), src_layout=(64,), dst_group=(1, 1, 16, 0), ctrl=(0, True))',
            "small C0 takes at most 4 columns",
        ),
        (
            'mte_gm_l1_frac(x, at("mat", pto.ui16), "nd2nz", shape=(4, 5), src_layout=(64,), dst_group=(1, 1, 1, 0), ctrl=(0, 0))',
            "of one size",
        ),
        ('mte_gm_l1_frac(x, at("mat", pto.ui8), "nz2nd", shape=(4, 5), src_layout=(64,), dst_group=(1, 1, 1, 0), ctrl=(0, 0))', "nd2nz"),
        ('mte_gm_l1_frac(x, at("mat", pto.ui8), "nd2nz", shape=(4,), src_layout=(64,), dst_group=(1, 1, 1, 0), ctrl=(0, 0))', "tuple of 2"),
        ('mte_l1_l0a(at("mat", pto.f16), at("left", pto.f16), 16)', "without k"),
        ('mte_l1_l0a(at("mat", pto.f16), at("left", pto.f16), m_start=0, k_start=0)', "without m_step"),
        ('mte_l1_l0a(at("mat", pto.f16), at("left", pto.f16), 16, 16, m_start=0)', "with extents and controls"),
        ('mte_l1_l0a(at("mat", pto.f16), at("right", pto.f16), 16, 16)', "points to 'right'"),
        ('mte_l1_l0a(at("mat", pto.f16), at("left", pto.f16, 256), 16, 16)', "L0A address 256 is not a multiple of 512"),
        ('mte_l1_l0a(at("mat", pto.f16), at("left", pto.f16), 1024, 64)', "L0A access out of bounds"),
        (
            'mte_l1_l0b(at("mat", pto.f16), at("right", pto.f16), m_start=0, k_start=0, m_step=256, k_step=1, src_stride=1, dst_stride=1)',
            "m_step=256 is out of range",
        ),
        (
            'mte_l1_bt(at("mat", pto.f16), at("bias", pto.f32, 32), 1, nburst=(1, 0, 0))',
            "the bias table address 32 is not a multiple of 64",
        ),
        ('mte_l1_bt(at("mat", pto.f16), at("bias", pto.f16), 1, nburst=(1, 0, 0))', "mte_l1_bt from f16 to f16"),
        ('mte_l1_bt(at("mat", pto.f32), at("bias", pto.f32), 129, nburst=(1, 0, 0))', "the bias table access out of bounds"),
        ('mte_l1_fb(at("mat", pto.f32), at("scaling", pto.f32), 65, nburst=(1, 0, 0))', "the fixpipe buffer access out of bounds"),
        ('mte_l1_ub(at("mat", pto.f32), at("ub", pto.f32), 1, nburst=(1, 0, 0))', "a kernel for cube cores has no UB"),
        ('mte_gm_ub(x, at("ub", pto.ui8), 0, 32, nburst=(1, 32, 32))', "mte_gm_ub runs on a vector core only"),
        ('raw_fill_l1(at("mat", pto.ui8), 16, 0, repeat_times=1, block_num_32b=1, dst_gap_32b=0, fill_word_bits=16)', "byte_offset=16"),
        ('raw_fill_l1(at("mat", pto.ui8), 0, 0, repeat_times=32768, block_num_32b=1, dst_gap_32b=0, fill_word_bits=16)', "0 to 32767"),
    ],
)
def test_bad_copies(call: str, message: str) -> None:
    with pytest.raises(SimulationError) as info:
        run(f"pto.{call}", {"x": ("ui8", np.zeros(1024))})
    assert message in str(info.value)
    assert any(place.startswith("k.py:") for place in info.value.where)
