"""Mixed kernels: a cube core with two vector cores, flags within a block, stores into UB and L1 of the other side."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from cube_harness import close, exact, flags, gemm, module, numbers, run
from engine_harness import same

from tilelang_pto import _native
from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module, session

# One product of 64 x 64 x 64, rows split between the vector cores, in the spelling of August 2026.
RELU = """\
from ptodsl import pto, scalar


@pto.jit(name="gemm_relu", target="a5", mode="explicit", ast_rewrite=False)
def gemm_relu(a: pto.ptr(pto.bf16, "gm"), b: pto.ptr(pto.bf16, "gm"), c: pto.ptr(pto.f32, "gm")):
    block = scalar.cast(pto.get_block_idx(), pto.i32)
    with pto.section("cube"):
        zero = pto.const(0, dtype=pto.i64)
        l1a = pto.castptr(zero, pto.ptr(pto.bf16, "mat"))
        l1b = pto.addptr(l1a, 8192)
        l0a, l0b = pto.castptr(zero, pto.ptr(pto.bf16, "left")), pto.castptr(zero, pto.ptr(pto.bf16, "right"))
        l0c, ub = pto.castptr(zero, pto.ptr(pto.f32, "acc")), pto.castptr(zero, pto.ptr(pto.f32, "ub"))
        for source, target in ((pto.addptr(a, block * 4096), l1a), (b, l1b)):
            pto.mte_gm_l1_frac(source, target, "nd2nz", shape=(64, 64), src_layout=(128,), dst_group=(1, 1, 64, 0), ctrl=(0, False))
        pto.set_flag("MTE2", "MTE1")
        pto.wait_flag("MTE2", "MTE1")
        pto.mte_l1_l0a(l1a, l0a, m_start=0, k_start=0, m_step=4, k_step=4, src_stride=4, dst_stride=4)
        pto.mte_l1_l0b(l1b, l0b, m_start=0, k_start=0, m_step=4, k_step=4, src_stride=4, dst_stride=4, transpose=True)
        pto.set_flag("MTE1", "M")
        pto.wait_flag("MTE1", "M")
        pto.mad(l0a, l0b, l0c, 64, 64, 64)
        pto.set_flag("M", "FIX")
        pto.wait_flag("M", "FIX")
        pto.mte_l0c_ub(l0c, ub, 64, 64, 64, 64, split="M", layout="nz2nd")
        pto.set_intra_block("FIX", 0)
        pto.set_intra_block("FIX", 16)
    with pto.section("vector"):
        half = block * 2 + scalar.cast(pto.get_subblock_idx(), pto.i32)
        ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
        pto.wait_intra_block("V", 0)
        with pto.vecscope():
            mask = pto.pset_b32("PAT_ALL")
            with pto.for_(0, 32, step=1) as row:
                v = pto.vlds(ub, row * 64, pto.vreg_type(64, pto.f32))
                pto.vsts(pto.vrelu(v, mask), ub, row * 64, mask)
        pto.set_flag("V", "MTE3")
        pto.wait_flag("V", "MTE3")
        pto.mte_ub_gm(ub, pto.addptr(c, half * 2048), 8192, nburst=(1, 8192, 8192))
"""


def indent(text: str, depth: int = 1) -> str:
    return "".join(f"{'    ' * depth}{line}\n" for line in text.splitlines())


def mixed(cube: str, vector: str, before: str = "") -> str:
    return before + "with pto.section('cube'):\n" + indent(cube) + "with pto.section('vector'):\n" + indent(vector)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_product_with_relu_on_both_vector_cores(seed: int) -> None:
    a, b, c = numbers("bf16", 192, 64, seed=1), numbers("bf16", 64, 64, seed=2), np.zeros((192, 64), np.float32)
    program = record_module(RELU, "relu.py")
    _native.sim_launch(program.serialize(), "gemm_relu", [a.view(np.uint16), b.view(np.uint16), c], grid=3, seed=seed)
    close(c, np.maximum(exact(a, b.T), 0), 64)


# -- which core is which ---------------------------------------------------------------------------------------------


def test_indices_of_cores_and_blocks() -> None:
    body = mixed(
        "pto.store(b * 100 + s * 10 + n, o, b * 5)",
        "pto.store(b * 100 + s * 10 + n, o, b * 5 + 1 + s)\npto.store(pto.get_block_num(), o, b * 5 + 3 + s)",
        "b, s, n = pto.get_block_idx(), pto.get_subblock_idx(), pto.get_subblock_num()\n",
    )
    found = run(body, {"o": ("i64", np.zeros(25))}, kind=None, grid=5)["o"].reshape(5, 5)
    expected = [[100 * b + 1, 100 * b + 2, 100 * b + 12, 5, 5] for b in range(5)]
    assert found.tolist() == expected


def test_a_kernel_with_one_section_runs_on_one_kind_of_core() -> None:
    for kind in ("cube", "vector"):
        body = f"with pto.section('{kind}'):\n    pto.store(pto.get_subblock_num() + 7, o, pto.get_block_idx())\n"
        assert run(body, {"o": ("i64", np.zeros(3))}, kind=None, grid=3)["o"].tolist() == [8, 8, 8]


def test_without_sections_the_operations_tell_the_core() -> None:
    a, b = numbers("bf16", 16, 16, seed=1), numbers("bf16", 16, 16, seed=2)
    arrays = {"a": ("bf16", a), "b": ("bf16", b), "c": ("f32", np.zeros((16, 16)))}
    close(run(gemm(16, 16, 16), arrays, kind=None)["c"], exact(a, b), 16)


def test_each_core_has_its_own_copy_of_what_stands_outside() -> None:
    before = """\
t = pto.struct_type(pto.i64)
s = pto.declare_struct(t)
pto.struct_set(s, [0], 1)
"""
    body = mixed(
        "pto.struct_set(s, [0], pto.struct_get(s, [0]) + 10)\npto.store(pto.struct_get(s, [0]), o, 0)",
        "i = pto.get_subblock_idx()\npto.struct_set(s, [0], pto.struct_get(s, [0]) + i)\npto.store(pto.struct_get(s, [0]), o, 1 + i)",
        before,
    )
    assert run(body, {"o": ("i64", np.zeros(3))}, kind=None)["o"].tolist() == [11, 1, 2]


# -- L0C to UB -------------------------------------------------------------------------------------------------------


def through_ub(store: str, m: int, n: int, rows: int, columns: int, a, b) -> np.ndarray:
    """What a store leaves in the UBs: vector core s copies ``rows`` x ``columns`` numbers to ``c[s]``."""
    cube = gemm(m, n, 16, store="pass").replace("pass\n", "") + f'ub = at("ub", pto.f32, 64)\n{store}\n'
    cube += 'pto.set_intra_block("FIX", 3)\npto.set_intra_block("FIX", 19)\n'
    size = rows * columns * 4
    vector = f"""\
pto.wait_intra_block("MTE3", 3)
pto.mte_ub_gm(at("ub", pto.f32, 64), pto.addptr(c, pto.get_subblock_idx() * {rows * columns}), {size}, nburst=(1, {size}, {size}))
"""
    arrays = {"a": ("bf16", a), "b": ("bf16", b), "c": ("f32", np.zeros((2, rows, columns)))}
    return run(mixed(cube, vector), arrays, kind=None)["c"]


A, B = numbers("bf16", 40, 16, seed=1), numbers("bf16", 64, 16, seed=2)


def product_of(a, b) -> np.ndarray:
    expected = np.zeros((a.shape[0], b.shape[0]), np.float32)
    for k in range(16):
        expected += a.astype(np.float32)[:, k : k + 1] * b.astype(np.float32)[:, k][None]
    return expected


def test_rows_split_between_both_vector_cores() -> None:
    found = through_ub('pto.mte_l0c_ub(lc, ub, 40, 64, 48, 64, split="M", layout="nz2nd")', 40, 64, 20, 64, A, B)
    same(found.reshape(40, 64), product_of(A, B))


def test_columns_split_between_both_vector_cores() -> None:
    found = through_ub('pto.mte_l0c_ub(lc, ub, 40, 64, 48, 32, split="N", layout="nz2nd")', 40, 64, 40, 32, A, B)
    same(np.concatenate(list(found), 1), product_of(A, B))


@pytest.mark.parametrize("core", [0, 1])
def test_one_vector_core(core: int) -> None:
    with session(check="off"):  # the other one copies what nothing has written
        found = through_ub(f'pto.mte_l0c_ub(lc, ub, 40, 64, 48, 64, {core}, layout="nz2nd")', 40, 64, 40, 64, A, B)
    same(found[core], product_of(A, B))
    assert np.isnan(found[1 - core]).all()


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ('pto.mte_l0c_ub(lc, ub, 39, 64, 48, 64, split="M")', 'm is 39, split="M" takes an even number'),
        ('pto.mte_l0c_ub(lc, ub, 40, 48, 48, 64, split="N")', 'n is 48, split="N" takes multiples of 32'),
        ('pto.mte_l0c_ub(lc, ub, 40, 64, 48, 64, 1, split="N")', "split together with sub_blockid"),
        ("pto.mte_l0c_ub(lc, ub, 40, 64, 48, 64, 2)", "sub_blockid=2 is out of range"),
        ("pto.mte_l0c_ub(lc, ub, 40, 64, 48, 64, pto.get_block_idx() + 2)", "sub_blockid is 2, not 0 to 1"),
        ('pto.mte_l0c_ub(lc, ub, 40, 64, 48, 64, split="M", layout=("nz2dn", 1))', "split with nz2dn"),
        (
            'pto.mte_l0c_ub(lc, ub, 40, 64, 48, 64, split="M", pre_relu=("normal_relu", None, None))',
            "split with pre_quant, pre_relu or loop3",
        ),
        ('pto.mte_l0c_ub(lc, at("ub", pto.f32, 262144 - 64), 40, 64, 48, 64, 1)', "UB of AIV1: access out of bounds"),
        ('pto.mte_l0c_ub(lc, at("ub", pto.f32, 16), 40, 64, 48, 64, 1)', "UB of AIV1: address 16 is not a multiple of 32"),
    ],
)
def test_bad_stores_into_ub(store: str, message: str) -> None:
    with pytest.raises(SimulationError) as info:
        through_ub(store, 40, 64, 20, 64, A, B)
    assert message in info.value.what


# -- UB to L1 --------------------------------------------------------------------------------------------------------


def test_operands_made_by_vector_cores() -> None:
    """Each vector core doubles one half of A and puts it into L1 as fractals; the cube core multiplies."""
    m, k, n = 32, 32, 16
    a, b = numbers("f32", m, k, seed=1).astype(ml_dtypes.bfloat16).astype(np.float32), numbers("bf16", n, k, seed=2)
    vector = f"""\
s = pto.get_subblock_idx()
raw, half, out = at("ub", pto.f32), at("ub", pto.bf16, 65536), at("mat", pto.bf16)
pto.mte_gm_ub(pto.addptr(a, s * 512), raw, 0, 2048, nburst=(1, 2048, 2048))
{flags("MTE2-V")}with pto.vecscope():
    m32, m16 = pto.pset_b32("PAT_ALL"), pto.pset_b16("PAT_ALL")
    with pto.for_(0, 16, step=1) as row:
        v = pto.vlds(raw, row * 32, pto.vreg_type(64, pto.f32))
        w = pto.vcvt(pto.vadd(v, v, m32), pto.bf16, m32, rnd="R", sat="NOSAT", part="EVEN")
        pto.vsts(w, half, row * 32, pto.pset_b32("PAT_VL32"), dist="PK_B32")
{flags("V-MTE3")}with pto.for_(0, 2, step=1) as j:
    with pto.for_(0, 16, step=1) as row:
        pto.mte_ub_l1(pto.addptr(half, row * 32 + j * 16), pto.addptr(out, (j * 32 + s * 16 + row) * 16), 1, nburst=(1, 0, 0))
pto.set_intra_block("MTE3", 5)
"""
    cube = f"""\
l1b = at("mat", pto.bf16, 65536)
pto.mte_gm_l1_frac(b, l1b, "nd2nz", shape=({n}, {k}), src_layout=({2 * k},), dst_group=(1, 1, {n}, 0), ctrl=(0, False))
{flags("MTE2-MTE1")}pto.wait_intra_block("MTE1", 5)
pto.wait_intra_block("MTE1", 21)
la, lb, lc = at("left", pto.bf16), at("right", pto.bf16), at("acc", pto.f32)
pto.mte_l1_l0a(at("mat", pto.bf16), la, {m}, {k})
pto.mte_l1_l0b(l1b, lb, {k}, {n})
{flags("MTE1-M")}pto.mad(la, lb, lc, {m}, {n}, {k})
{flags("M-FIX")}pto.mte_l0c_gm(lc, c, {m}, {n}, {m}, {n}, 0, 0, layout="nz2nd")
"""
    vector = vector.replace("pto.vlds(raw, row * 32, pto.vreg_type(64, pto.f32))", "pto.vlds(raw, row * 32, pto.vreg_type(64, pto.f32))")
    arrays = {"a": ("f32", np.concatenate([a.ravel(), np.zeros(32, np.float32)])), "b": ("bf16", b), "c": ("f32", np.zeros((m, n)))}
    for seed in range(3):
        close(run(mixed(cube, vector), arrays, kind=None, seed=seed)["c"], 2 * exact(a, b), k)


# -- many rounds, many blocks ------------------------------------------------------------------------------------------

ROUNDS = mixed(
    f"""\
l1, la, lb, lc = at("mat", pto.bf16), at("left", pto.bf16), at("right", pto.bf16), at("acc", pto.f32)
pto.mte_gm_l1_frac(x, l1, "nd2nz", shape=(16, 16), src_layout=(32,), dst_group=(1, 1, 16, 0), ctrl=(0, False))
{flags("MTE2-MTE1")}pto.mte_l1_l0a(l1, la, 16, 16)
pto.mte_l1_l0b(l1, lb, 16, 16)
{flags("MTE1-M")}with pto.for_(0, 8, step=1) as i:
    pto.mad(la, lb, lc, 16, 16, 16)
    pto.set_flag("M", "FIX")
    pto.wait_flag("M", "FIX")
    j = pto.cast(i, pto.i64)
    with pto.if_(pto.cmp(j, 1, "gt")) as br:
        with br.then_:
            pto.wait_intra_block("FIX", 2 + (j & 1))
            pto.wait_intra_block("FIX", 18 + (j & 1))
    pto.mte_l0c_ub(lc, pto.addptr(at("ub", pto.f32), (j & 1) * 256), 16, 16, 16, 16, split="M", layout="nz2nd")
    pto.set_intra_block("FIX", j & 1)
    pto.set_intra_block("FIX", 16 + (j & 1))
    pto.set_flag("FIX", "M")
    pto.wait_flag("FIX", "M")
with pto.for_(0, 2, step=1) as i:
    j = pto.cast(i, pto.i64)
    pto.wait_intra_block("FIX", 2 + j)
    pto.wait_intra_block("FIX", 18 + j)
""",
    """\
s, b = pto.get_subblock_idx(), pto.get_block_idx()
sums = at("ub", pto.f32, 65536)
with pto.vecscope():
    m = pto.pset_b32("PAT_ALL")
    with pto.for_(0, 2, step=1) as k:
        pto.vsts(pto.vdup(pto.const(0.0, dtype=pto.f32), m), sums, k * 64, m)
with pto.for_(0, 8, step=1) as i:
    j = pto.cast(i, pto.i64)
    u = pto.addptr(at("ub", pto.f32), (j & 1) * 256)
    pto.wait_intra_block("V", j & 1)
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        with pto.for_(0, 2, step=1) as k:
            v = pto.vlds(u, k * 64, pto.vreg_type(64, pto.f32))
            pto.vsts(pto.vadd(pto.vlds(sums, k * 64, pto.vreg_type(64, pto.f32)), v, m), sums, k * 64, m)
    pto.set_intra_block("V", 2 + (j & 1))
pto.set_flag("V", "MTE3")
pto.wait_flag("V", "MTE3")
pto.mte_ub_gm(sums, pto.addptr(o, (b * 2 + s) * 128), 512, nburst=(1, 512, 512))
""",
)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_double_buffered_hand_over(threads: int, seed: int) -> None:
    x = numbers("bf16", 16, 16, seed=3)
    o = run(ROUNDS, {"x": ("bf16", x), "o": ("f32", np.zeros((9, 16, 16)))}, kind=None, grid=9, host_threads=threads, seed=seed)["o"]
    one = product_of(x, x)
    expected = np.zeros_like(one)
    for _ in range(8):
        expected += one
    for block in o:
        same(block, expected)


def test_cores_see_each_other_through_gm() -> None:
    """A vector core waits in a loop for a number that the cube core writes."""
    cube = "pto.store(41, o, 0)\n"
    vector = """\
with pto.if_(pto.cmp(pto.get_subblock_idx(), 1, "eq")) as br:
    with br.then_:
        with pto.while_(lambda state: pto.cmp(state.seen, 0, "eq"), seen=pto.load(o, 0)) as loop:
            loop.update(seen=pto.load(o, 0))
        pto.store(loop.final("seen") + 1, o, 1)
"""
    with session(check="off"):  # polling is no order
        for seed in range(3):
            assert run(mixed(cube, vector), {"o": ("i64", np.zeros(2))}, kind=None, seed=seed)["o"].tolist() == [41, 42]
    # The other way round nobody ever writes.
    error = stopped("pass", vector, max_steps=100_000)
    assert "step limit" in error.what and "block 0, AIV1, pipe S" in error.where


# -- deadlocks and leaks -----------------------------------------------------------------------------------------------


def stopped(cube: str, vector: str, **options) -> SimulationError:
    with pytest.raises(SimulationError) as info:
        run(mixed(cube, vector), {"o": ("i64", np.zeros(8))}, kind=None, **options)
    return info.value


def test_a_deadlock_tells_what_every_core_waits_for() -> None:
    error = stopped('pto.wait_intra_block("FIX", 16)\npto.pipe_barrier("ALL")', 'pto.wait_intra_block("V", 3)\npto.wait_flag("V", "S")')
    assert error.what == (
        "deadlock: AIC: S waits in pipe_barrier ALL (line 10); FIX waits for intra-block flag AIV1->AIC 0 (line 9); "
        "AIV0: S waits for flag V->S 0 (line 13); V waits for intra-block flag AIC->AIV0 3 (line 12); "
        "AIV1: S waits for flag V->S 0 (line 13); V waits for intra-block flag AIC->AIV1 3 (line 12)"
    )
    assert "block 0, AIC, pipe S" in error.where


def test_one_core_at_its_end() -> None:
    error = stopped("pto.store(1, o, 0)", 'pto.wait_intra_block("MTE3", 1)')
    assert "AIC: has ended; AIV0: MTE3 waits for intra-block flag AIC->AIV0 1 (line 11)" in error.what


def test_only_the_named_pipe_waits() -> None:
    cube = f"""\
pto.wait_intra_block("MTE2", 0)
pto.store(5, o, 0)
{flags("S-MTE1")}pto.set_intra_block("MTE1", 1)
pto.set_intra_block("MTE1", 17)
"""
    vector = """\
pto.wait_intra_block("V", 1)
pto.set_flag("V", "S")
pto.wait_flag("V", "S")
with pto.if_(pto.cmp(pto.get_subblock_idx(), 0, "eq")) as br:
    with br.then_:
        pto.store(pto.load(o, 0) + 1, o, 1)
        pto.set_intra_block("MTE3", 0)
"""
    found = run(mixed(cube, vector), {"o": ("i64", np.zeros(8))}, kind=None)["o"]
    assert found[:2].tolist() == [5, 6]


def test_flags_left_set() -> None:
    assert "intra-block flag AIC->AIV1 2 is left set" in stopped('pto.set_intra_block("FIX", 18)', "pass").what
    assert "intra-block flag AIV0->AIC 4 is left set" in stopped("pass", 'pto.set_intra_block("V", 4)').what


def test_flags_far_ahead() -> None:
    error = stopped('with pto.for_(0, 16, step=1):\n    pto.set_intra_block("FIX", 0)', 'pto.wait_flag("MTE2", "V")')
    assert "intra-block flag AIC->AIV0 0 is set more than 15 times" in error.what


@pytest.mark.parametrize(
    ("cube", "vector", "message"),
    [
        ('pto.set_intra_block("FIX", pto.get_block_idx() + 32)', "pass", "intra-block flag 32 is not in 0..31"),
        ("pass", 'pto.set_intra_block("V", 16)', "intra-block flag 16 is not in 0..15 (a vector core's own"),
        ('pto.set_intra_block("V", 0)', "pass", "a cube core has no pipe V"),
        ("pass", 'pto.set_intra_block("FIX", 0)', "a vector core has no pipe FIX"),
        ('pto.set_flag("MTE3", "S")', "pass", "a cube core has no pipe MTE3"),
        ("pass", 'pto.wait_flag("MTE1", "V")', "a vector core has no pipe MTE1"),
        ("with pto.vecscope():\n    pass", "pass", "vecscope runs on a vector core only: put it into pto.section"),
        (
            "pass",
            'pto.raw_fill_l1(at("mat", pto.ui8), 0, 0, repeat_times=1, block_num_32b=1, dst_gap_32b=0, fill_word_bits=16)',
            "cube core only",
        ),
        ('pto.store(1, at("ub", pto.i64), 0)', "pass", "a cube core has no UB of its own"),
    ],
)
def test_what_belongs_to_the_other_side(cube: str, vector: str, message: str) -> None:
    error = stopped(cube, vector)
    assert message in error.what
    assert any(place.startswith("k.py:") for place in error.where)


def test_flags_within_a_block_need_two_kinds_of_cores() -> None:
    for kind in ("cube", "vector"):
        with pytest.raises(SimulationError, match="need a mixed kernel"):
            run('pto.set_intra_block("MTE2", 0)', {"o": ("i64", np.zeros(1))}, kind=kind)


# -- barriers among all cube cores and all vector cores ----------------------------------------------------------------


def test_barriers_of_each_kind_of_core() -> None:
    body = mixed(
        'pto.set_cross_block("FIX", 1)\npto.wait_cross_block("FIX", 1)\npto.store(1, o, b * 3)',
        's = pto.get_subblock_idx()\npto.set_cross_block("V", 1)\npto.wait_cross_block("V", 1)\npto.store(2 + s, o, b * 3 + 1 + s)',
        "b = pto.get_block_idx()\n",
    )
    found = run(body, {"o": ("i64", np.zeros(96))}, kind=None, grid=32, host_threads=2)["o"]
    assert found.tolist() == [1, 2, 3] * 32
    with pytest.raises(SimulationError, match="needs all 33 blocks at once, there are 32 cube cores"):
        run(body, {"o": ("i64", np.zeros(99))}, kind=None, grid=33)


def test_a_barrier_that_one_vector_core_misses() -> None:
    vector = """\
with pto.if_(pto.cmp(pto.get_subblock_idx(), 0, "eq")) as br:
    with br.then_:
        pto.set_cross_block("V", 1)
        pto.wait_cross_block("V", 1)
"""
    error = stopped("pass", vector, grid=2)
    assert "blocks 0-1: AIC: has ended; AIV0: S waits for cross-core flag 1 (line 14); AIV1: has ended" in error.what


def test_printing_goes_core_by_core(capfd) -> None:
    body = mixed('pto.print("cube%d ", b)', 'pto.print("vector%d ", b)', "b = pto.get_block_idx()\n")
    run(body, {"o": ("i64", np.zeros(1))}, kind=None, grid=2, host_threads=2)
    assert capfd.readouterr().out == "cube0 vector0 vector0 cube1 vector1 vector1 "


def test_the_text_of_a_mixed_kernel_without_a_section_kind() -> None:
    with pytest.raises(SimulationError, match="set_intra_block"):
        record_module(module({"o": "i64"}, 'pto.set_intra_block("S", 0)', None), "k.py")
