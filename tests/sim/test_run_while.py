"""``pto.while_``: in the kernel body, in a vector function, in threads that leave at different times; an endless one ends."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang_pto import _native
from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module, run

HEAD = """from ptodsl import pto

@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def k(a: pto.ptr(pto.i32, "gm"), n: pto.i32):
"""

BODY = """    loop = pto.while_(lambda s: s.x * s.x < n, x=pto.const(0, dtype=pto.i32))
    with loop:
        loop.update(x=loop.x + 1)
    pto.store(loop.final("x"), a, 0)
"""

THREADS = """    with pto.simt(64, 1, 1):
        t = pto.get_tid_x()
        loop = pto.while_(lambda s: s.x < n, x=t, rounds=pto.const(0, dtype=pto.i32))
        with loop:
            loop.update(x=loop.x + t + 1, rounds=loop.rounds + 1)
        pto.store(loop.final("rounds"), a, t)
"""

VECTOR = """    ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.i32, "ub"))
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        loop = pto.while_(lambda s: s.i < n, i=pto.const(0, dtype=pto.i32), v=pto.vci(pto.const(0, dtype=pto.i32)))
        with loop:
            loop.update(i=loop.i + 1, v=pto.vadds(loop.v, 3, m))
        pto.vsts(loop.final("v"), ub, 0, m, dist="NORM_B32")
    pto.set_flag("V", "MTE3", event_id=0)
    pto.wait_flag("V", "MTE3", event_id=0)
    pto.mte_ub_gm(ub, a, 256, nburst=(1, 256, 256))
"""

ENDLESS = """    loop = pto.while_(lambda s: s.x >= 0, x=pto.const(0, dtype=pto.i32))
    with loop:
        loop.update(x=loop.x)
"""


@pytest.mark.parametrize("limit", [0, 1, 2, 24, 25, 26])
def test_kernel_body(limit):
    out = np.full(1, -1, np.int32)
    run(HEAD + BODY, "k", out, limit)
    assert out[0] == int(np.ceil(np.sqrt(limit)))


@pytest.mark.parametrize("limit", [0, 1, 40, 1000])
def test_threads(limit):
    out = np.full(64, -1, np.int32)
    run(HEAD + THREADS, "k", out, limit)
    expected = []
    for thread in range(64):
        x, rounds = thread, 0
        while x < limit:
            x, rounds = x + thread + 1, rounds + 1
        expected.append(rounds)
    assert out.tolist() == expected


def test_vector_registers_are_carried():
    out = np.zeros(64, np.int32)
    run(HEAD + VECTOR, "k", out, 5)
    np.testing.assert_array_equal(out, np.arange(64) + 15)


def test_endless_loop_ends_with_an_error():
    program = record_module(HEAD + ENDLESS)
    with pytest.raises(SimulationError, match="step limit"):
        _native.sim_launch(program.serialize(), "k", [np.zeros(1, np.int32), 1], grid=1, max_steps=100_000)
