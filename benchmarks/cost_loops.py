"""Loops without findings whose checks or modelled times may cost much beside what they do: one kind of instruction each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sim_throughput import ATOMIC, FRAME, SIMT, SMALL

from tilelang_pto.sim import record_module
from tilelang_pto.sim.program import Program

__all__ = ["LOOPS", "Loop"]

ELEMENTS = 1 << 20
"""Of the tensor ``X`` of f32 that the loops read and write."""

SIMD = """    with pto.vecscope():
        m = pto.pset_b32("{mask}")
        k = pto.vbitcast({index}, pto.ui32)
        with pto.for_(0, {rounds}, step=1):
            pto.mem_bar("VST_VST")
            with pto.for_(0, 64, step=1) as i:
                o = pto.mul(i, 64)
                x = pto.vlds(a, o, pto.vreg_type(64, pto.f32))
                y = pto.vlds(a, o, pto.vreg_type(64, pto.f32))
                {op}
                pto.vsts(z, b, o, m, dist="NORM_B32")
"""

SCATTER = """    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        k = pto.vbitcast({index}, pto.ui32)
        with pto.for_(0, {rounds}, step=1):
            with pto.for_(0, 64, step=1) as i:
                pto.mem_bar("VST_VST")
                x = pto.vlds(a, pto.mul(i, 64), pto.vreg_type(64, pto.f32))
                pto.vscatter(x, b, k, m)
"""

FLAGS = """    with pto.for_(0, {rounds}, step=1) as i:
        pto.set_flag("MTE2", "V", event_id=1)
        pto.wait_flag("MTE2", "V", event_id=1)
        pto.set_flag("V", "MTE2", event_id=1)
        pto.wait_flag("V", "MTE2", event_id=1)
"""

TRANSFERS = '    pto.pipe_barrier("MTE2")\n' + SMALL

IN_ORDER, APART = "pto.vci(0)", "pto.vshls(pto.vci(0), 4, m)"


@dataclass(frozen=True, slots=True)
class Loop:
    """A kernel that does one thing again and again.

    Attributes:
        name: what it does.
        body: text, with ``{rounds}``.
        rounds: so many take some milliseconds without any check.
    """

    name: str
    body: str
    rounds: int

    def program(self, scale: float = 1.0) -> Program:
        """The recorded kernel ``k(X, n)`` with ``scale`` times its rounds."""
        text = FRAME + self.body.replace("{rounds}", str(max(1, int(self.rounds * scale))))
        return record_module(text, "cost_loops.py", "2026-09")

    @staticmethod
    def arguments() -> list[np.ndarray | int]:
        """Fresh arguments of the kernel."""
        return [np.ones(ELEMENTS, np.float32), 0]


def _simd(name: str, rounds: int, op: str, *, mask: str = "PAT_ALL", index: str = IN_ORDER) -> Loop:
    return Loop(name, SIMD.replace("{op}", op).replace("{mask}", mask).replace("{index}", index), rounds)


def _simt(name: str, rounds: int, threads: int, place: str, source: str, target: str, target_place: str = "j") -> Loop:
    values = {"threads": str(threads), "place": place, "source": source, "target": target, "target_place": target_place}
    return Loop(name, _filled(SIMT, values), rounds)


def _atomic(name: str, rounds: int, threads: int, target: str, place: str) -> Loop:
    return Loop(name, _filled(ATOMIC, {"threads": str(threads), "target": target, "place": place}), rounds)


def _filled(body: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        body = body.replace("{" + name + "}", value)
    return body


GATHER = "z = pto.vgather2(a, k, m)"
LOOPS = (
    _simd("SIMD: vlds vlds vadd vsts", 1000, "z = pto.vadd(x, y, m)"),
    _simd("SIMD: the same, 16 lanes", 1000, "z = pto.vadd(x, y, m)", mask="PAT_VL16"),
    _simd("gather of neighbours", 400, GATHER),
    _simd("gather of places 64 bytes apart", 400, GATHER, index=APART),
    Loop("scatter to neighbours", SCATTER.replace("{index}", IN_ORDER), 400),
    Loop("scatter to places 64 bytes apart", SCATTER.replace("{index}", APART), 400),
    _simt("SIMT: UB, 128 threads", 4000, 128, "t", "a", "b"),
    _simt("SIMT: UB, 1024 threads", 500, 1024, "t", "a", "b"),
    _simt("SIMT: UB, places in no order", 2000, 256, "pto.mul(t, 37) & 255", "a", "b"),
    _simt("SIMT: GM, neighbours", 2000, 256, "t", "X", "X"),
    _simt("SIMT: GM, places in no order", 2000, 256, "pto.mul(t, 37) & 255", "X", "X"),
    _simt("SIMT: GM, other places each time", 1000, 256, "pto.mul(pto.add(pto.mul(i, 256), t), 1237) & 1048575", "X", "b", "t"),
    _atomic("atomics in UB, two threads a place", 4000, 128, "a", "t & 63"),
    _atomic("atomics in GM, two threads a place", 2000, 128, "X", "t & 63"),
    _atomic("atomics in GM, a place a thread", 300, 1024, "X", "t"),
    _atomic("atomics in GM, places 148 bytes apart", 300, 1024, "X", "pto.mul(t, 37)"),
    Loop("flags alone", FLAGS, 4000),
    Loop("transfers, flags and tiny functions", TRANSFERS, 4000),
)  # fmt: skip
