"""SIMT on the engine: divergence, private buffers, checks for active threads only; all against numpy."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module

_native = pytest.importorskip("tilelang_pto._native")

HEAD = """\
from ptodsl import pto
@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)
def k(x: pto.ptr(pto.i32, "gm"), y: pto.ptr(pto.i32, "gm"), n: pto.i32):
    with pto.simt({dims}):
        t = pto.get_tid_x()
"""


def launch(body: str, x: np.ndarray | None = None, n: int = 0, dims: str = "64, 1, 1", size: int = 64) -> np.ndarray:
    text = HEAD.format(dims=dims) + textwrap.indent(textwrap.dedent(body), " " * 8)
    x = np.arange(size, dtype=np.int32) if x is None else x.astype(np.int32)
    y = np.full(size, -1, np.int32)
    _native.sim_launch(record_module(text, "k.py", "2026-09").serialize(), "k", [x, y, n])
    return y


def test_thread_indices() -> None:
    body = """
    row, plane = pto.get_tid_y(), pto.get_tid_z()
    pto.store(row * 100 + plane * 10 + t, y, t + 4 * (row + 3 * plane))
    """
    y = launch(body, dims="4, 3, 2")
    expected = [yy * 100 + z * 10 + xx for z in range(2) for yy in range(3) for xx in range(4)]
    assert y[:24].tolist() == expected


def test_divergent_branches_and_merges() -> None:
    body = """
    with pto.if_(pto.cmp(t & 1, 0, "eq")) as br:
        with br.then_:
            with pto.if_(pto.cmp(t, 32, "lt")) as inner:
                with inner.then_:
                    inner.assign(v=t * 10)
                with inner.else_:
                    inner.assign(v=t * 100)
            br.assign(v=inner.v)
        with br.else_:
            br.assign(v=-t)
    pto.store(br.v, y, t)
    """
    t = np.arange(64)
    assert (launch(body) == np.where(t % 2 == 0, np.where(t < 32, t * 10, t * 100), -t)).all()


def test_trip_counts_differ_between_threads() -> None:
    body = """
    loop = pto.for_(0, pto.load(x, t), step=1).carry(a=pto.const(0, dtype=pto.i32), b=pto.const(1, dtype=pto.i32))
    with loop:
        loop.update(a=loop.b, b=loop.a + loop.b)
    pto.store(loop.final("a"), y, t)
    """
    counts = (np.arange(64) * 7) % 13
    fibonacci = [0, 1]
    while len(fibonacci) < 14:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    assert (launch(body, counts) == np.array(fibonacci)[counts]).all()


def test_private_buffers() -> None:
    body = """
    buf = pto.alloc_buffer((4,), pto.i32)
    with pto.for_(0, 4, step=1) as i:
        pto.store(pto.cast(i, pto.i32) + t, buf, i)
    pto.store(pto.load(buf, t & 3) * 1000 + pto.load(buf, 3), y, t)
    """
    t = np.arange(64)
    assert (launch(body) == (t + t % 4) * 1000 + t + 3).all()


def test_only_active_threads_divide_and_access() -> None:
    body = """
    with pto.if_(pto.cmp(t, 8, "gt")) as br:
        with br.then_:
            pto.store(pto.floordiv(pto.const(1000, dtype=pto.i32), t - 8), y, t - 9)
    """
    t = np.arange(9, 64)
    assert (launch(body)[:55] == 1000 // (t - 8)).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pto.store(t, y, t + 1)", "at byte offset 256 of tensor y, which has 256 bytes (thread 63)"),
        ("pto.store(t, y, t - 1)", "byte offset -4"),
        ("pto.store(pto.floordiv(t, t - 7), y, t)", "division by zero in thread 7"),
        ("buf = pto.alloc_buffer((4,), pto.i32)\npto.store(t, buf, t)", "element 4 of 4"),
        ("with pto.if_(pto.cmp(t, 8, 'gt')) as br:\n    with br.then_:\n        pto.syncthreads()", "55 of 64 threads"),
    ],
)
def test_checks(body: str, message: str) -> None:
    with pytest.raises(SimulationError) as info:
        launch(body)
    assert message in info.value.what
    assert any(place.startswith("k.py:") for place in info.value.where)


@pytest.mark.parametrize("op", ["floordiv", "div", "rem"])
def test_division_of_extremes_does_not_trap(op: str) -> None:
    x = np.array([-(2**31), 7, -7, -7, 7, 2**31 - 1], np.int32)
    d = np.array([-1, -2, 2, -2, 2, -1], np.int32)
    y = launch(f"pto.store(pto.{op}(pto.load(x, t), pto.load(x, t + 6)), y, t)", np.concatenate([x, d]), dims="6, 1, 1", size=12)
    q = {
        "floordiv": [-(2**31), -4, -4, 3, 3, -(2**31) + 1],
        "div": [-(2**31), -3, -3, 3, 3, -(2**31) + 1],
        "rem": [0, 1, -1, -1, 1, 0],
    }[op]
    assert y[:6].tolist() == q


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("pto.shuffle_bfly(v, 5)", lambda v: v.reshape(-1, 32)[:, np.arange(32) ^ 5]),
        ("pto.shuffle_up(v, 3)", lambda v: v.reshape(-1, 32)[:, np.where(np.arange(32) < 3, np.arange(32), np.arange(32) - 3)]),
        ("pto.shuffle_down(v, 3)", lambda v: v.reshape(-1, 32)[:, np.where(np.arange(32) > 28, np.arange(32), np.arange(32) + 3)]),
        ("pto.shuffle_idx(v, t + 1, width=16)", lambda v: np.roll(v.reshape(-1, 16), -1, 1)),
        ("pto.redux_add(v)", lambda v: np.repeat(v.reshape(-1, 32).sum(1), 32)),
        ('pto.redux_max(v, signedness="signed")', lambda v: np.repeat(v.reshape(-1, 32).max(1), 32)),
        ('pto.vote_ballot(pto.cmp(v, 0, "gt"))', lambda v: np.repeat(((v.reshape(-1, 32) > 0) << np.arange(32)).sum(1), 32)),
    ],
)
def test_warp_collectives(call: str, expected) -> None:
    v = np.random.default_rng(1).integers(-1000, 1000, 64)
    y = launch(f"v = pto.load(x, t)\npto.store({call}, y, t)", v)
    assert (y == expected(v).reshape(-1).astype(np.uint32).view(np.int32)).all()


def test_shuffle_from_a_thread_that_does_not_take_part() -> None:
    body = "with pto.if_(pto.cmp(t, 3, 'lt')) as br:\n    with br.then_:\n        pto.store(pto.shuffle_bfly(t, 1), y, t)"
    with pytest.raises(SimulationError, match="thread 2 reads the value of thread 3"):
        launch(body)
