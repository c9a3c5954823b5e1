"""Small kernels with one kind of synchronisation each, and a launch of them."""

from __future__ import annotations

import numpy as np
from captured_launches import Launch

from tilelang_pto import _native
from tilelang_pto.sim import record_module, session

HEAD = """from ptodsl import pto

@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def k(X: pto.ptr(pto.f32, "gm"), Y: pto.ptr(pto.f32, "gm"), n: pto.si32):
    a = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
    b = pto.castptr(pto.const(16384, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
"""

#: Rounds of load, scale and store through two versions of both buffers.
PIPELINE = """
    with pto.for_(0, 2, step=1) as i:
        pto.set_flag("V", "MTE2", event_id=i)
        pto.set_flag("MTE3", "V", event_id=i)
    with pto.for_(0, n, step=1) as i:
        version = pto.rem(i, 2)
        x, y = pto.addptr(a, version * 64), pto.addptr(b, version * 64)
        pto.wait_flag("V", "MTE2", event_id=version)
        pto.mte_gm_ub(pto.addptr(X, i * 64), x, 0, 256, nburst=(1, 256, 256))
        pto.set_flag("MTE2", "V", event_id=version)
        pto.wait_flag("MTE2", "V", event_id=version)
        pto.wait_flag("MTE3", "V", event_id=version)
        with pto.vecscope():
            m = pto.pset_b32("PAT_ALL")
            pto.vsts(pto.vmuls(pto.vlds(x, 0, pto.vreg_type(64, pto.f32)), 2.0, m), y, 0, m)
        pto.set_flag("V", "MTE2", event_id=version)
        pto.set_flag("V", "MTE3", event_id=version)
        pto.wait_flag("V", "MTE3", event_id=version)
        pto.mte_ub_gm(y, pto.addptr(Y, i * 64), 256, nburst=(1, 256, 256))
        pto.set_flag("MTE3", "V", event_id=version)
    with pto.for_(0, 2, step=1) as i:
        pto.wait_flag("V", "MTE2", event_id=i)
        pto.wait_flag("MTE3", "V", event_id=i)
"""

LOAD = """
    pto.mte_gm_ub(X, a, 0, 2048, nburst=(1, 2048, 2048))
    pto.set_flag("MTE2", "V", event_id=0)
    pto.wait_flag("MTE2", "V", event_id=0)
"""
STORE = """
    pto.set_flag("V", "MTE3", event_id=0)
    pto.wait_flag("V", "MTE3", event_id=0)
    pto.mte_ub_gm(b, Y, 2048, nburst=(1, 2048, 2048))
"""


def launch(body: str, n: int = 6, grid: int = 1) -> Launch:
    """A launch of ``HEAD`` with a body, on 2048 bytes in and out."""
    program = record_module(HEAD + body, "kernel.py", "2026-09")
    x = np.random.default_rng(1).standard_normal(512).astype(np.float32)
    arguments = [x.view(np.uint8), np.zeros(2048, np.uint8), n]
    after = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
    with session(check="off"):  # some of them have faults on purpose
        _native.sim_launch(program.serialize(), "k", after, grid=grid)
    return Launch(program, "k", arguments, after, grid)
