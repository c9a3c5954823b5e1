"""Synchronisation from TIR: flags, barriers between cores, buffer tokens, prints in order."""

from __future__ import annotations

import numpy as np
import pytest
from real_toolchain import SURFACE, assert_accepted, real_toolchain
from tir_builder import access, immediate, op, pointer, sequence, simt_block, thread_extent, vector_kernel, view
from tvm import tirx

import tilelang_pto
from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")


def text_of(mod, surface):
    text = emit_module(mod, surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    return text


def call(name, *arguments):
    return tirx.Evaluate(op(name, "handle", *arguments))


@pytest.mark.parametrize("surface", SURFACES)
def test_a_wait_without_a_set_is_a_deadlock(surface):
    body = call("tl.ascend_wait_flag", "V_MTE3", 3)
    with pytest.raises(tilelang_pto.SimulationError, match="V->MTE3 3"):
        run(text_of(vector_kernel("k", (), lambda _: body), surface), "k")


@pytest.mark.parametrize("surface", SURFACES)
def test_barrier_between_cores_orders_partial_sums(surface):
    """Each core writes a partial result, all meet, each reads its neighbour's."""
    part, out = pointer("part", "int32"), pointer("out", "int32")
    cores = 16
    ub = tirx.decl_buffer((16,), "int32", name="ub", scope="shared.dyn")

    def copy(load, gm, index):
        name = "tl.ascend_copy_gm_to_ubuf" if load else "tl.ascend_copy_ubuf_to_gm"
        ends = [access(ub.data, "int32", 0, 8), access(gm, "int32", index * 8, 8)]
        tail = (0, 0, 0, 0, 32, 32) if load else (4, 32, 32)
        return call(name, *(ends if load else reversed(ends)), 0, 1, 32, *tail)

    def body(bx):
        fill = simt_block(8, lambda tx: tirx.BufferStore(ub, bx * 10 + tx, [tx]))
        neighbour = tirx.FloorMod(bx + 1, immediate(cores))
        return sequence(
            tirx.AllocBuffer(ub),
            fill,
            call("tl.ascend_set_flag", "V_MTE3", 0),
            call("tl.ascend_wait_flag", "V_MTE3", 0),
            copy(False, part, bx),
            call("tl.ascend_cross_core_set_flag", 0, "PIPE_MTE3", 0),
            call("tl.ascend_cross_core_wait_flag", 0, "PIPE_MTE2", 0),
            call("tl.ascend_set_flag", "MTE3_MTE2", 0),
            call("tl.ascend_wait_flag", "MTE3_MTE2", 0),
            copy(True, part, neighbour),
            call("tl.ascend_set_flag", "MTE2_MTE3", 0),
            call("tl.ascend_wait_flag", "MTE2_MTE3", 0),
            copy(False, out, bx),
        )

    mod = vector_kernel("k", [out, part], body, cores=cores)
    text = text_of(mod, surface)
    for threads in (1, 2, 4):
        result, scratch = np.zeros((cores, 8), np.int32), np.zeros((cores, 8), np.int32)
        run(text, "k", result, scratch, grid=cores, host_threads=threads)
        expected = (np.arange(cores)[:, None] + 1) % cores * 10 + np.arange(8)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("mode", "pipe", "number", "message"),
    [
        (1, "PIPE_MTE3", 0, "cross-core flags of mode 1"),
        (0, "PIPE_S", 0, "a cross-core flag of pipe S"),
        (0, "PIPE_M", 0, "a cross-core flag of pipe M"),
        (0, "PIPE_MTE3", 16, "cross-core event id 16"),
    ],
)
def test_cross_core_flags_that_do_not_exist(surface, mode, pipe, number, message):
    for verb in ("set", "wait"):
        body = call(f"tl.ascend_cross_core_{verb}_flag", mode, pipe, number)
        with pytest.raises(tilelang_pto.UnsupportedError, match=message):
            text_of(vector_kernel("k", (), lambda _, body=body: body), surface)


@real_toolchain
def test_barrier_between_cores_is_accepted(tmp_path):
    body = sequence(
        call("tl.ascend_cross_core_set_flag", 0, "PIPE_MTE3", 3),
        call("tl.ascend_cross_core_wait_flag", 0, "PIPE_MTE2", 3),
    )
    path = tmp_path / "barrier.py"
    path.write_text(text_of(vector_kernel("k", (), lambda _: body), SURFACE))
    assert_accepted(path, tmp_path)
    (made,) = tmp_path.glob("*.ll")
    text = made.read_text()
    # Pipe MTE3 is 5, MTE2 is 4; the message is 1 + (mode 0 << 4) + (id 3 << 8).
    assert "SET.CROSS.CORE(i64 5, i64 769)" in text
    assert "WAIT.FLAG.DEV.PIPE.IMM(i64 4, i64 3)" in text


@pytest.mark.parametrize("surface", SURFACES)
def test_buffer_tokens_order_pipes(surface):
    """Token pairs instead of flags between the loading and the storing pipe."""
    a, out = pointer("a", "float32"), pointer("out", "float32")
    ub = tirx.decl_buffer((64,), "float32", name="ub", scope="shared.dyn")
    body = sequence(
        tirx.AllocBuffer(ub),
        call("tl.ascend_get_buf", "PIPE_MTE2", 5, 0),
        call("tl.ascend_copy_gm_to_ubuf", access(ub.data, "float32", 0, 64), access(a, "float32", 0, 64), 0, 1, 256, 0, 0, 0, 0, 256, 256),
        call("tl.ascend_rls_buf", "PIPE_MTE2", 5, 0),
        call("tl.ascend_get_buf", "PIPE_MTE3", 5, 0),
        call("tl.ascend_copy_ubuf_to_gm", access(out, "float32", 0, 64), access(ub.data, "float32", 0, 64), 0, 1, 256, 4, 256, 256),
        call("tl.ascend_rls_buf", "PIPE_MTE3", 5, 0),
    )
    values, result = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run(text_of(vector_kernel("k", [a, out], lambda _: body), surface), "k", values, result)
    np.testing.assert_array_equal(result, values)


@pytest.mark.parametrize("surface", SURFACES)
def test_prints_come_in_block_order(surface, capfd):
    n = tirx.Var("n", "int32")

    def body(bx):
        return sequence(
            tirx.Evaluate(tirx.call_extern("handle", "debug_print_msg", "100% sure")),
            tirx.Evaluate(tirx.call_extern("handle", "debug_print_var", "block", bx * n)),
            tirx.Evaluate(tirx.call_extern("handle", "debug_print_buffer_value", "message", "buffer<x>", "x", immediate(3), bx)),
        )

    run(text_of(vector_kernel("k", [n], body, cores=3), surface), "k", 7, grid=3)
    lines = capfd.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("block")] == ["block = 0", "block = 7", "block = 14"]
    assert lines.count("100% sure") == 3


@pytest.mark.parametrize("surface", SURFACES)
def test_fence_of_threads(surface):
    out = pointer("out", "int32")

    def body(tx):
        return sequence(tirx.BufferStore(view(out, "int32", 32), tx, [tx]), call("tl.ascend_threadfence"))

    result = np.zeros(32, np.int32)
    run(text_of(vector_kernel("k", [out], lambda _: simt_block(32, body)), surface), "k", result)
    np.testing.assert_array_equal(result, np.arange(32))


def test_launch_variables_of_simt_code():
    """threadIdx.y and z are numbers of their own."""
    out = pointer("out", "int32")
    store = lambda tx, ty: tirx.BufferStore(view(out, "int32", 32), ty * 100 + tx, [ty * 8 + tx])  # noqa: E731
    inner = lambda tx: thread_extent("threadIdx.y", "ty", 4, lambda ty: thread_extent("threadIdx.z", "tz", 1, lambda _: store(tx, ty)))  # noqa: E731
    block = tirx.SBlock([], [], [], "SIMT_VF", thread_extent("threadIdx.x", "tx", 8, inner))
    result = np.zeros((4, 8), np.int32)
    run(text_of(vector_kernel("k", [out], lambda _: block), "2026-09"), "k", result)
    np.testing.assert_array_equal(result, np.arange(4)[:, None] * 100 + np.arange(8))
