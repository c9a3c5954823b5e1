"""How fast the execution engine runs on this machine without checks: vector instructions, SIMT thread-instructions, small commands."""

from __future__ import annotations

import argparse
import time

import numpy as np

from tilelang_pto import _native
from tilelang_pto.sim import record_module, session

FRAME = """from ptodsl import pto

@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def k(X: pto.ptr(pto.f32, "gm"), n: pto.si32):
    a = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
    b = pto.castptr(pto.const(65536, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
    pto.mte_gm_ub(X, a, 0, 32768, nburst=(1, 32768, 32768))
    pto.set_flag("MTE2", "V", event_id=0)
    pto.wait_flag("MTE2", "V", event_id=0)
"""

VECTOR = """    with pto.vecscope():
        m = {mask}
        with pto.for_(0, {rounds}, step=1):
            with pto.for_(0, 64, step=1) as i:
                o = pto.mul(i, 64)
                x = pto.vlds(a, o, pto.vreg_type(64, pto.f32))
                y = pto.vlds(a, o, pto.vreg_type(64, pto.f32))
                {op}
                pto.vsts(z, b, o, m, dist="NORM_B32")
"""

SIMT = """    with pto.simt({threads}, 1, 1):
        t = pto.get_tid_x()
        with pto.for_(0, {rounds}, step=1) as i:
            j = {place}
            x = pto.load({source}, j)
            y = pto.add(pto.mul(x, x), x)
            pto.store(y, {target}, {target_place})
"""

IN_UB = {"place": "t", "source": "a", "target": "b", "target_place": "j"}
"""Of a SIMT loop: each thread at a place of its own."""

ATOMIC = """    with pto.simt({threads}, 1, 1):
        t = pto.get_tid_x()
        p = pto.addptr({target}, {place})
        with pto.for_(0, {rounds}, step=1) as i:
            pto.atomic_add(p, 1.0)
"""

SMALL = """    with pto.for_(0, {rounds}, step=1) as i:
        pto.mte_gm_ub(X, a, 0, 256, nburst=(1, 256, 256))
        pto.set_flag("MTE2", "V", event_id=1)
        pto.wait_flag("MTE2", "V", event_id=1)
        with pto.vecscope():
            m = pto.pset_b32("PAT_ALL")
            x = pto.vlds(a, 0, pto.vreg_type(64, pto.f32))
            pto.vsts(x, b, 0, m, dist="NORM_B32")
        pto.set_flag("V", "MTE2", event_id=1)
        pto.wait_flag("V", "MTE2", event_id=1)
"""


def measure(body: str, counter: str, cores: int, repeat: int) -> tuple[int, float]:
    """Instructions counted, and processor time of all host threads in the best of some runs."""
    program = record_module(FRAME + body, "throughput.py", "2026-09").serialize()
    x = np.ones(8192, np.float32)
    best, stats = float("inf"), {}
    for _ in range(repeat):
        with session(check="off"):
            start = time.process_time()
            stats = _native.sim_launch(program, "k", [x, 0], grid=cores, host_threads=cores)
            best = min(best, time.process_time() - start)
    return stats[counter], best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=1, help="simulated cores, each on a host thread of its own")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the work")
    options = parser.parse_args()
    scale = options.scale

    def report(name: str, body: str, counter: str, unit: str) -> None:
        count, seconds = measure(body, counter, options.cores, options.repeat)
        rate = count / seconds / 1e6
        print(f"{name:34s} {rate:10.1f} M {unit}/s per core   ({count} in {seconds:.3f} s)")

    full, part = 'pto.pset_b32("PAT_ALL")', 'pto.pset_b32("PAT_VL16")'
    rounds = max(1, int(20000 * scale))
    for name, mask, op in (
        ("vlds vlds vadd vsts", full, "z = pto.vadd(x, y, m)"),
        ("vlds vlds vadd vsts, 16 lanes", part, "z = pto.vadd(x, y, m)"),
        ("vlds vlds vmax vsts", full, "z = pto.vmax(x, y, m)"),
    ):
        report(name, VECTOR.format(mask=mask, rounds=rounds, op=op), "vector_instructions", "instructions")
    report("vlds vlds vexp vsts", VECTOR.format(mask=full, rounds=rounds // 20 + 1, op="z = pto.vexp(x, m)"), "vector_instructions",
           "instructions")  # fmt: skip
    bf16 = 'w = pto.vcvt(x, pto.bf16, m, rnd="R", sat="NOSAT", part="EVEN"); ' \
           'z = pto.vcvt(w, pto.f32, pto.pset_b16("PAT_ALL"), part="EVEN")'  # fmt: skip
    report("vlds vlds vcvt vcvt vsts (bf16)", VECTOR.format(mask=full, rounds=rounds, op=bf16), "vector_instructions", "instructions")
    gather = "z = pto.vgather2(a, pto.vbitcast(pto.vci(0), pto.ui32), m)"
    report("vlds vlds vci vgather2 vsts", VECTOR.format(mask=full, rounds=rounds // 10 + 1, op=gather), "vector_instructions",
           "instructions")  # fmt: skip
    float8 = 'w = pto.vcvt(x, pto.f8e4m3, m, rnd="R", sat="SAT", part="P0"); ' \
             'z = pto.vcvt(w, pto.f32, pto.pset_b8("PAT_ALL"), part="P0")'  # fmt: skip
    report("vlds vlds vcvt vcvt vsts (e4m3)", VECTOR.format(mask=full, rounds=rounds // 20 + 1, op=float8), "vector_instructions",
           "instructions")  # fmt: skip
    for target, memory in (("a", "UB"), ("X", "GM")):
        body = ATOMIC.format(threads=128, target=target, place="t & 63", rounds=max(1, int(5_000 * scale)))
        report(f"simt, atomic_add in {memory}", body, "simt_thread_instructions", "thread instructions")
    for threads in (128, 1024):
        rounds = max(1, int(20_000_000 * scale / threads / 5))
        body = SIMT.format(threads=threads, rounds=rounds, **IN_UB)
        report(f"simt, {threads} threads", body, "simt_thread_instructions", "thread instructions")
    report("DMA, flags and a tiny vecscope", SMALL.format(rounds=max(1, int(200_000 * scale))), "vector_functions", "rounds")


if __name__ == "__main__":
    main()
