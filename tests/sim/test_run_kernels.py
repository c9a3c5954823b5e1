"""Whole kernels end to end: scalars, control flow, SIMT, data movement, flags, several blocks."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

pytest.importorskip("tilelang_pto._native")
import ml_dtypes

from tilelang_pto import _native
from tilelang_pto.errors import PtoError, SimulationError
from tilelang_pto.sim import record_module, run, standin

IMPORTS = {"2026-08": "from ptodsl import pto, scalar", "2026-09": "from ptodsl import pto"}
SURFACES = tuple(IMPORTS)


def kernel(parameters: str, body: str, surface: str = "2026-08") -> str:
    head = f'{IMPORTS[surface]}\n\n@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)\ndef k({parameters}):\n'
    return head + textwrap.indent(textwrap.dedent(body), "    ")


def truncated(a: int, b: int) -> int:
    """Quotient toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def test_every_engine_operation_can_be_recorded():
    assert set(_native.sim_ops()) <= standin.recorded_opcodes()


@pytest.mark.parametrize("a", [-17, -16, -1, 0, 1, 15, 17, 2**31 - 1, -(2**31) + 1])
@pytest.mark.parametrize("b", [-7, -1, 1, 3, 16])
def test_integer_division(a: int, b: int):
    text = kernel(
        'o: pto.ptr(pto.i32, "gm"), a: pto.i32, b: pto.i32',
        """\
        for k, v in enumerate((a // b, a % b, a & b, a | b, a ^ b, a ^ -1)):
            pto.store_scalar(o, k, v)
        """,
    )
    found = np.zeros(6, np.int32)
    run(text, "k", found, a, b)
    expected = [a // b, a - b * truncated(a, b), a & b, a | b, a ^ b, ~a]
    np.testing.assert_array_equal(found, np.array(expected, np.int64).astype(np.int32))


def test_unsigned_operands():
    a, b = 0xF0000005, 7
    text = kernel(
        'o: pto.ptr(pto.ui32, "gm"), l: pto.ptr(pto.i64, "gm"), a: pto.ui32, b: pto.ui32',
        """\
        for k, v in enumerate((a // b, a % b, a * b, pto.shr(a, 4), a >> 1, pto.max(a, b))):
            pto.store(v, o, k)
        pto.store(pto.cast(a, pto.i64), l, 0)
        pto.store(pto.cast(pto.cast(a, pto.i32), pto.i64), l, 1)
        pto.store(pto.select(a > b, pto.const(1, dtype=pto.i64), 2), l, 2)
        """,
        "2026-09",
    )
    found, wide = np.zeros(6, np.uint32), np.zeros(3, np.int64)
    run(text, "k", found, wide, a, b)
    np.testing.assert_array_equal(found, np.array([a // b, a % b, a * b % 2**32, a >> 4, a >> 1, a], np.uint32))
    np.testing.assert_array_equal(wide, [a, a - 2**32, 1])


def test_float_scalars():
    text = kernel(
        'o: pto.ptr(pto.f32, "gm"), h: pto.ptr(pto.f16, "gm"), i: pto.ptr(pto.i32, "gm"), x: pto.f32',
        """\
        for k, v in enumerate((x / 3.0, 1.0 / x, -x, pto.abs(x), pto.sqrt(pto.abs(x)), pto.fma(x, x, x), pto.maximum(x, 2.0), x - 0.1)):
            pto.store(v, o, k)
        pto.store(pto.cast(x, pto.f16), h, 0)
        pto.store(pto.cast(x, pto.i32, rounding="z", saturation="sat"), i, 0)
        pto.store(pto.cast(x, pto.i32, rounding="f", saturation="sat"), i, 1)
        pto.store(pto.bitcast(x, pto.i32), i, 2)
        pto.store(pto.bitcast(pto.f32("0x7F800000"), pto.i32), i, 3)
        """,
        "2026-09",
    )
    x = np.float32(-5.6789)
    o, h, i = np.zeros(8, np.float32), np.zeros(1, np.float16), np.zeros(4, np.int32)
    run(text, "k", o, h, i, float(x))
    one = np.float32(1)
    fused = np.float32(np.float64(x) * np.float64(x) + np.float64(x))
    expected = [x / np.float32(3), one / x, -x, -x, np.sqrt(-x), fused, np.float32(2), x - np.float32(0.1)]
    np.testing.assert_array_equal(o, np.array(expected, np.float32))
    assert h[0] == np.float16(x)
    np.testing.assert_array_equal(i, [-5, -6, x.view(np.int32), 0x7F800000])


def test_loops_and_branches():
    """Collatz lengths: a carried loop with a branch inside."""
    text = kernel(
        'o: pto.ptr(pto.i32, "gm"), n: pto.i32',
        """\
        with pto.for_(1, n, step=2) as start:
            steps = pto.for_(0, 200, step=1).carry(value=scalar.cast(start, pto.i32), count=pto.const(0, dtype=pto.i32))
            with steps:
                with pto.if_(steps.value == 1) as done:
                    with done.then_:
                        done.assign(value=steps.value, count=steps.count)
                    with done.else_:
                        with pto.if_(steps.value % 2 == 0) as even:
                            with even.then_:
                                even.assign(value=steps.value // 2)
                            with even.else_:
                                even.assign(value=steps.value * 3 + 1)
                        done.assign(value=even.value, count=steps.count + 1)
                steps.update(value=done.value, count=done.count)
            scalar.store(steps.final("count"), o, start)
        """,
    )
    n = 60
    found = np.zeros(n, np.int32)
    run(text, "k", found, n)

    def length(value: int) -> int:
        count = 0
        while value != 1 and count < 200:
            value, count = (value // 2 if value % 2 == 0 else value * 3 + 1), count + 1
        return count

    np.testing.assert_array_equal(found, [length(i) if i % 2 else 0 for i in range(n)])


def test_swapped_carries():
    """Both carried values change at once (Fibonacci)."""
    text = kernel(
        'o: pto.ptr(pto.i64, "gm")',
        """\
        loop = pto.for_(0, 30, step=1).carry(a=pto.const(0, dtype=pto.i64), b=pto.const(1, dtype=pto.i64))
        with loop:
            scalar.store(loop.a, o, loop.iv)
            loop.update(a=loop.b, b=loop.a + loop.b)
        """,
    )
    found = np.zeros(30, np.int64)
    run(text, "k", found)
    assert list(found[:10]) == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34] and all(found[2:] == found[1:-1] + found[:-2])


@pytest.mark.parametrize("surface", SURFACES)
def test_simt(surface: str):
    """Each work-item sums a strided row into a stack slot; some take another branch."""
    load, store, cast = ("scalar.load", "scalar.store", "scalar.cast") if surface == "2026-08" else ("pto.load", "pto.store", "pto.cast")
    text = kernel(
        'x: pto.ptr(pto.f32, "gm"), o: pto.ptr(pto.f32, "gm"), rows: pto.i32',
        f"""\
        with pto.simt(64, 2, 1):
            t = pto.get_tid_x() + pto.get_tid_y() * 64
            total = pto.alloc_buffer((1,), pto.f32)
            {store}(0.0, total, 0)
            with pto.if_(t < rows) as br:
                with br.then_:
                    with pto.for_(0, {cast}(t, pto.index) % 4 + 1, step=1) as j:
                        {store}({load}(total, 0) + {load}(x, t * 4 + {cast}(j, pto.i32)), total, 0)
                with br.else_:
                    {store}(-1.0, total, 0)
            {store}({load}(total, 0), o, t)
        """,
        surface,
    )
    x, o, rows = np.arange(512, dtype=np.float32).reshape(128, 4), np.zeros(128, np.float32), 100
    run(text, "k", x, o, rows)
    expected = [x[t, : t % 4 + 1].sum() if t < rows else -1 for t in range(128)]
    np.testing.assert_array_equal(o, np.array(expected, np.float32))


def test_simt_through_ub_with_barrier():
    """A tree reduction in UB."""
    text = kernel(
        'x: pto.ptr(pto.i32, "gm"), o: pto.ptr(pto.i32, "gm")',
        """\
        u = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.i32, "ub"))
        with pto.simt(256, 1, 1):
            t = pto.get_tid_x()
            scalar.store(scalar.load(x, t), u, t)
            pto.syncthreads()
            for half in (128, 64, 32, 16, 8, 4, 2, 1):
                with pto.if_(t < half) as br:
                    with br.then_:
                        scalar.store(scalar.load(u, t) + scalar.load(u, t + half), u, t)
                pto.syncthreads()
            with pto.if_(t == 0) as last:
                with last.then_:
                    scalar.store(scalar.load(u, 0), o, 0)
        """,
    )
    x, o = np.random.default_rng(1).integers(-1000, 1000, 256).astype(np.int32), np.zeros(1, np.int32)
    run(text, "k", x, o)
    assert o[0] == x.sum()


def test_short_vectors():
    text = kernel(
        'x: pto.ptr(pto.f32, "gm"), o: pto.ptr(pto.f32, "gm")',
        """\
        with pto.simt(16, 1, 1):
            t = pto.get_tid_x()
            pair = scalar.load(x, t * 2, contiguous=2)
            first = scalar.load(x, t * 2)
            scale = pto.Vec(pto.f32, 2, init=(first, 3.0))
            scalar.store(pair * scale + pto.Vec(pto.f32, 2, init=0.5), o, t * 2, contiguous=2)
        """,
    )
    x, o = np.random.default_rng(3).standard_normal((16, 2)).astype(np.float32), np.zeros((16, 2), np.float32)
    run(text, "k", x, o)
    scale = np.stack((x[:, 0], np.full(16, 3, np.float32)), 1)
    np.testing.assert_array_equal(o, x * scale + np.float32(0.5))


def test_mutable_scalars_and_persistent_buffers():
    text = kernel(
        'o: pto.ptr(pto.i32, "gm"), n: pto.i32',
        """\
        s = pto.declare_struct(pto.struct_type(pto.i32, pto.f32))
        pto.struct_set(s, [0], 1)
        with pto.for_(0, n, step=1):
            pto.struct_set(s, [0], pto.struct_get(s, [0]) * 2)
        kept = pto.alloc_buffer((2,), pto.i32)
        with pto.simt(8, 1, 1):
            scalar.store(pto.get_tid_x() * 10, kept, 1)
        with pto.simt(8, 1, 1):
            scalar.store(scalar.load(kept, 1), o, pto.get_tid_x())
        scalar.store(pto.struct_get(s, [0]), o, 8)
        """,
    )
    o = np.zeros(9, np.int32)
    run(text, "k", o, 7)
    assert list(o) == [0, 10, 20, 30, 40, 50, 60, 70, 128]


def test_strided_copies():
    """Rows of a matrix, an outer loop, and padding of ragged rows."""
    text = kernel(
        'x: pto.ptr(pto.f32, "gm"), o: pto.ptr(pto.f32, "gm"), r: pto.ptr(pto.f32, "gm")',
        """\
        u = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
        v = pto.castptr(pto.const(65536, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
        pto.mte_gm_ub(pto.addptr(x, 8), u, 0, 32, nburst=(3, 256, 64), loops=[(2, 1024, 192)])
        pto.mte_gm_ub(x, v, 0, 12, nburst=(4, 256, 32), pad=(pto.const(-1.0, dtype=pto.f32), 2, 1))
        pto.set_flag("MTE2", "MTE3")
        pto.wait_flag("MTE2", "MTE3")
        pto.mte_ub_gm(u, o, 32, nburst=(6, 64, 32))
        pto.mte_ub_gm(v, r, 32, nburst=(4, 32, 32))
        """,
    )
    x = np.arange(8 * 64, dtype=np.float32).reshape(8, 64)
    o, r = np.zeros((6, 8), np.float32), np.zeros((4, 8), np.float32)
    run(text, "k", x, o, r)
    np.testing.assert_array_equal(o, x[[0, 1, 2, 4, 5, 6], 8:16])
    np.testing.assert_array_equal(r, np.pad(x[:4, :3], ((0, 0), (2, 3)), constant_values=-1))


def test_rows_back_to_back():
    """Rows of twelve bytes that touch in UB: only the first is aligned, only after the last one is there padding."""
    text = kernel(
        'x: pto.ptr(pto.f32, "gm"), o: pto.ptr(pto.f32, "gm"), r: pto.ptr(pto.f32, "gm")',
        """\
        u = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
        pto.mte_gm_ub(x, u, 0, 12, nburst=(5, 256, 12), pad=(pto.const(-1.0, dtype=pto.f32),))
        pto.set_flag("MTE2", "MTE3")
        pto.wait_flag("MTE2", "MTE3")
        pto.mte_ub_gm(u, o, 12, nburst=(5, 12, 16))
        pto.mte_ub_gm(u, r, 64, nburst=(1, 64, 64))
        """,
    )
    x = np.arange(5 * 64, dtype=np.float32).reshape(5, 64)
    o, r = np.full((5, 4), 7, np.float32), np.zeros(16, np.float32)
    run(text, "k", x, o, r)
    np.testing.assert_array_equal(o, np.pad(x[:, :3], ((0, 0), (0, 1)), constant_values=7))
    np.testing.assert_array_equal(r, np.append(x[:, :3].ravel(), -1))


@pytest.mark.parametrize(("length", "stride"), [(8, 12), (12, 20)])
def test_rows_with_gaps_that_are_no_blocks_are_refused(length, stride):
    text = kernel(
        'o: pto.ptr(pto.f32, "gm")',
        f"""\
        u = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
        pto.mte_ub_gm(u, o, {length}, nburst=(2, {stride}, 32))
        """,
    )
    with pytest.raises(SimulationError, match=f"address {stride} is not a multiple of 32"):
        run(text, "k", np.zeros(16, np.float32))


def test_ub_to_ub():
    text = kernel(
        'x: pto.ptr(pto.ui8, "gm"), o: pto.ptr(pto.ui8, "gm")',
        """\
        u = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.ui8, "ub"))
        v = pto.castptr(pto.const(4096, dtype=pto.i64), pto.ptr(pto.ui8, "ub"))
        pto.mte_gm_ub(x, u, 0, 256, nburst=(1, 256, 256))
        pto.mte_gm_ub(o, v, 0, 256, nburst=(1, 256, 256))
        pto.set_flag("MTE2", "V", event_id=2)
        pto.wait_flag("MTE2", "V", event_id=2)
        pto.mte_ub_ub(u, v, 1, nburst=(3, 1, 0))
        pto.set_flag("V", "MTE3", event_id=7)
        pto.wait_flag("V", "MTE3", event_id=7)
        pto.mte_ub_gm(v, o, 256, nburst=(1, 256, 256))
        """,
    )
    x, o = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    run(text, "k", x, o)
    np.testing.assert_array_equal(o.reshape(8, 32)[:3], x.reshape(8, 32)[[0, 2, 4]])
    assert not o[96:].any()


RELU = kernel(
    'x: pto.ptr(pto.bf16, "gm"), o: pto.ptr(pto.bf16, "gm"), tiles: pto.i32',
    """\
    core, cores = pto.get_block_idx(), pto.get_block_num()
    ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.bf16, "ub"))
    for slot in pto.static_range(2):
        pto.set_flag("MTE3", "MTE2", event_id=slot)
    loop = pto.for_(core, tiles, step=cores).carry(turn=pto.const(0, dtype=pto.i32))
    with loop:
        slot = loop.turn % 2
        tile = pto.addptr(ub, slot * 512)
        pto.wait_flag("MTE3", "MTE2", event_id=slot)
        pto.mte_gm_ub(pto.addptr(x, loop.iv * 512), tile, 0, 1024, nburst=(1, 1024, 1024))
        pto.set_flag("MTE2", "V", event_id=slot)
        pto.wait_flag("MTE2", "V", event_id=slot)
        with pto.vecscope():
            m16, m32 = pto.pset_b16("ALL"), pto.pset_b32("ALL")
            with pto.for_(0, 512, step=128) as i:
                v = pto.vlds(tile, i)
                even = pto.vrelu(pto.vcvt(v, pto.f32, m16, part="EVEN"), m32)
                odd = pto.vrelu(pto.vcvt(v, pto.f32, m16, part="ODD"), m32)
                low = pto.vcvt(even, pto.bf16, m32, rnd="R", sat="SAT", part="EVEN")
                high = pto.vcvt(odd, pto.bf16, m32, rnd="R", sat="SAT", part="ODD")
                both = pto.vor(pto.vbitcast(low, pto.ui16), pto.vbitcast(high, pto.ui16), m16)
                pto.vsts(pto.vbitcast(both, pto.bf16), tile, i, m16)
        pto.set_flag("V", "MTE3", event_id=slot)
        pto.wait_flag("V", "MTE3", event_id=slot)
        pto.mte_ub_gm(tile, pto.addptr(o, loop.iv * 512), 1024, nburst=(1, 1024, 1024))
        pto.set_flag("MTE3", "MTE2", event_id=slot)
        loop.update(turn=loop.turn + 1)
    for slot in pto.static_range(2):
        pto.wait_flag("MTE3", "MTE2", event_id=slot)
    """,
)


@pytest.mark.parametrize("grid", [1, 3, 64])
@pytest.mark.parametrize("host_threads", [1, 2])
def test_double_buffering_over_blocks(grid: int, host_threads: int):
    x = np.random.default_rng(1).standard_normal((37, 512)).astype(ml_dtypes.bfloat16)
    o = np.zeros_like(x)
    stats = run(RELU, "k", x, o, 37, grid=grid, host_threads=host_threads)
    np.testing.assert_array_equal(o.astype(np.float32), np.maximum(x.astype(np.float32), 0))
    assert stats["dma_bytes"] == 2 * x.nbytes and stats["vector_functions"] == 37


def test_a_program_can_be_run_again():
    program = record_module(RELU)
    x = np.random.default_rng(2).standard_normal((4, 512)).astype(ml_dtypes.bfloat16)
    found = [np.zeros_like(x) for _ in range(2)]
    for o in found:
        run(program, "k", x, o, 4, grid=2)
    np.testing.assert_array_equal(found[0].view(np.uint16), found[1].view(np.uint16))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('pto.wait_flag("MTE2", "V", event_id=1)', "MTE2->V 1"),
        ('pto.set_flag("MTE2", "V", event_id=1)', "MTE2->V 1"),
        ("scalar.store(1.0, x, 64)", "byte offset 256"),
        ("scalar.load(x, -1) + 1.0", "byte offset -4"),
        (
            'u = pto.castptr(pto.const(262144, dtype=pto.i64), pto.ptr(pto.f32, "ub"))\npto.mte_ub_gm(u, x, 32, nburst=(1, 32, 32))',
            "address 262144",
        ),
    ],
)
def test_faults_of_a_running_kernel(body: str, message: str):
    with pytest.raises(PtoError, match=message) as info:
        run(kernel('x: pto.ptr(pto.f32, "gm")', body), "k", np.zeros(64, np.float32))
    assert "kernel k" in str(info.value)


def test_arguments_are_checked():
    text = kernel('x: pto.ptr(pto.f32, "gm"), n: pto.i32', "scalar.store(1.0, x, n)")
    with pytest.raises(SimulationError, match="1 arguments given, 2 needed"):
        run(text, "k", np.zeros(4, np.float32))
    with pytest.raises(SimulationError, match="elements of 8 bytes"):
        run(text, "k", np.zeros(4), 1)
    with pytest.raises(SimulationError, match="argument x is a int"):
        run(text, "k", 1, 1)
    with pytest.raises(SimulationError, match="argument n is an array"):
        run(text, "k", np.zeros(4, np.float32), np.zeros(4, np.int32))
    with pytest.raises(SimulationError, match="no kernel 'other'"):
        run(text, "other")
    x = np.zeros(4, np.float32)
    run(text, "k", x, 2)
    assert list(x) == [0, 0, 1, 0]
