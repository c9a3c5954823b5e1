"""The engine's pipes: flags, barriers, deadlocks, leaks, limits; and that results do not depend on the host."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module, run, session

_native = pytest.importorskip("tilelang_pto._native")

HEAD = """\
from ptodsl import pto
@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)
def k(x: pto.ptr(pto.f32, "gm"), y: pto.ptr(pto.f32, "gm"), n: pto.i32):
    a = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
    b = pto.castptr(pto.const(1024, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
    block = pto.get_block_idx()
"""


def launch(body: str, n: int = 0, size: int = 64, **options) -> np.ndarray:
    program = record_module(HEAD + textwrap.indent(textwrap.dedent(body), "    "), "k.py", "2026-09").serialize()
    x, y = np.arange(size, dtype=np.float32), np.full(size, -1, np.float32)
    _native.sim_launch(program, "k", [x, y, n], **options)
    return y


def stopped(body: str, **options) -> SimulationError:
    with pytest.raises(SimulationError) as info:
        launch(body, **options)
    return info.value


LOAD = "pto.mte_gm_ub(x, a, 0, 256, nburst=(1, 256, 256))\n"
STORE = "pto.mte_ub_gm(a, y, 256, nburst=(1, 256, 256))\n"


def test_commands_behind_a_wait_run_after_the_set() -> None:
    # The store is issued before the load; only the flag makes it wait.
    body = 'pto.wait_flag("MTE2", "MTE3")\n' + STORE + LOAD + 'pto.set_flag("MTE2", "MTE3")\n'
    assert (launch(body) == np.arange(64)).all()


def test_operands_are_captured_at_issue() -> None:
    body = """
    pto.wait_flag("MTE2", "V")
    with pto.for_(0, 4, step=1) as i:
        with pto.vecscope():
            m = pto.pset_b32("PAT_ALL")
            pto.vsts(pto.vdup(pto.cast(i, pto.f32), m), b, i * 64, m, dist="NORM_B32")
    pto.set_flag("V", "MTE3")
    pto.wait_flag("V", "MTE3")
    with pto.for_(0, 4, step=1) as i:
        pto.mte_ub_gm(pto.addptr(b, i * 64), pto.addptr(y, i * 64), 256, nburst=(1, 256, 256))
    pto.set_flag("MTE2", "V")
    """
    assert (launch(body, size=256) == np.repeat(np.arange(4), 64)).all()


def test_deadlock_names_every_blocked_pipe_its_flag_and_line() -> None:
    error = stopped('pto.wait_flag("MTE2", "V", event_id=3)\npto.wait_flag("V", "MTE3", event_id=1)\n' + STORE)
    assert "V waits for flag MTE2->V 3 (line 7)" in error.what
    assert "MTE3 waits for flag V->MTE3 1 (line 8), 1 commands behind it" in error.what
    assert error.where[0] == "kernel k"


def test_scalar_unit_waits() -> None:
    assert (launch(LOAD + 'pto.set_flag("MTE2", "S")\npto.wait_flag("MTE2", "S")\npto.store(pto.load(a, 5), y, 0)\n')[0]) == 5
    error = stopped('pto.wait_flag("MTE2", "S")\n')
    assert "S waits for flag MTE2->S 0 (line 7)" in error.what


def test_barrier_all_stops_the_scalar_unit() -> None:
    error = stopped('pto.wait_flag("MTE2", "V")\npto.pipe_barrier("ALL")\npto.set_flag("MTE2", "V")\n')
    assert "S waits in pipe_barrier ALL (line 8)" in error.what
    assert (launch(LOAD + 'pto.pipe_barrier("ALL")\npto.store(pto.load(a, 5), y, 0)\n')[0]) == 5


def test_flag_set_twice() -> None:
    error = stopped('pto.set_flag("V", "MTE3")\npto.set_flag("V", "MTE3")\n')
    assert "set again" in error.what
    assert error.where[1] == "k.py:8"


def test_flag_left_set() -> None:
    assert "V->MTE3 2, V->MTE3 5" in stopped('pto.set_flag("V", "MTE3", event_id=2)\npto.set_flag("V", "MTE3", event_id=5)\n').what


def test_runtime_event_id_out_of_range() -> None:
    assert "event id 8" in stopped('pto.set_flag("V", "MTE3", event_id=n)\n', n=8).what


def test_endless_loop_is_stopped() -> None:
    body = "with pto.for_(0, 1 << 50, step=1) as i:\n    pto.store(1.0, y, 0)\n"
    assert "step limit" in stopped(body, max_steps=100_000).what


def test_step_must_be_positive() -> None:
    assert "step" in stopped("with pto.for_(0, 4, step=n) as i:\n    pto.store(1.0, y, 0)\n").what


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_first_failing_block_is_reported(threads: int) -> None:
    body = "with pto.if_(pto.cmp(block, 5, 'ge')) as br:\n    with br.then_:\n        pto.store(1.0, y, 1000)\n"
    for _ in range(5):
        assert any("block 5" in place for place in stopped(body, grid=64, host_threads=threads).where)


def test_results_do_not_depend_on_host_threads() -> None:
    body = (
        LOAD
        + """
pto.set_flag("MTE2", "V")
pto.wait_flag("MTE2", "V")
with pto.vecscope():
    m = pto.pset_b32("PAT_ALL")
    v = pto.vlds(a, 0, pto.vreg_type(64, pto.f32))
    pto.vsts(pto.vadds(v, pto.cast(block, pto.f32), m), a, 0, m, dist="NORM_B32")
pto.set_flag("V", "MTE3")
pto.wait_flag("V", "MTE3")
pto.mte_ub_gm(a, pto.addptr(y, block * 64), 256, nburst=(1, 256, 256))
"""
    )
    expected = np.arange(64) + np.repeat(np.arange(100), 64).reshape(100, 64)
    for threads in (1, 2, 16):
        assert (launch(body, size=6400, grid=100, host_threads=threads).reshape(100, 64) == expected).all()


def test_empty_grid_runs_nothing() -> None:
    assert (launch("pto.store(1.0, y, 1000)\n", grid=0) == -1).all()


def test_fresh_memory_is_poisoned() -> None:
    with session(check="off"):  # the copy reads what nothing has written
        assert np.isnan(launch(STORE)).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pto.mte_gm_ub(x, pto.addptr(a, 1), 0, 256, nburst=(1, 256, 256))\n", "not a multiple of 32"),
        ("pto.mte_gm_ub(x, a, 0, 4, nburst=(2, 4, 8))\n", "not a multiple of 32"),
        ("pto.mte_gm_ub(pto.addptr(x, -1), a, 0, 256, nburst=(1, 256, 256))\n", "byte offset -4 of tensor x, which has 256"),
        ("pto.mte_gm_ub(x, pto.addptr(a, 65536 - 8), 0, 64, nburst=(1, 64, 64))\n", "UB access out of bounds: 64 bytes at address 262112"),
        ("pto.mte_gm_ub(x, a, 0, n, nburst=(1, 256, 256))\n", "burst length is -1"),
        ("pto.store(1.0, y, 64)\n", "4 bytes at byte offset 256 of tensor y"),
        ('p = pto.castptr(pto.const(64, dtype=pto.i64), pto.ptr(pto.f32, "gm"))\npto.store(1.0, p, 0)\n', "null pointer"),
        ("pto.store(pto.cast(pto.floordiv(5, n + 1), pto.f32), y, 0)\n", "division by zero"),
    ],
)
def test_accesses_are_checked(body: str, message: str) -> None:
    error = stopped(body, n=-1)
    assert message in error.what
    assert any(place.startswith("k.py:") for place in error.where)


def test_a_run_from_text_quotes_the_line() -> None:
    text = (
        "from ptodsl import pto\n\n\n"
        '@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)\n'
        'def k(out: pto.ptr(pto.f32, "gm")):\n    pto.store(1.0, out, 64)\n'
    )
    with pytest.raises(SimulationError, match="of tensor out, which has 256 bytes") as caught:
        run(text, "k", np.zeros(64, np.float32))
    at = next(number for number, place in enumerate(caught.value.where) if place.endswith(":6"))
    assert caught.value.where[at + 1] == "pto.store(1.0, out, 64)"
