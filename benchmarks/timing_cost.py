"""What the timing model costs: processor time of kernels with it, as a ratio to the same run without any check and without times."""

from __future__ import annotations

import argparse
import time

import numpy as np
from sim_throughput import ATOMIC, FRAME, IN_UB, SIMT, SMALL, VECTOR

from tilelang_pto import _native
from tilelang_pto.sim import record_module, session

ADD, GATHER = "z = pto.vadd(x, y, m)", "z = pto.vgather2(a, pto.vbitcast(pto.vci(0), pto.ui32), m)"
FULL = 'pto.pset_b32("PAT_ALL")'
CALLS = (
    """    with pto.for_(0, 400, step=1) as k:
"""
    + "".join(f"    {line}\n" for line in VECTOR.format(mask=FULL, rounds=16, op=ADD).splitlines())
)  # fmt: skip
CASES = {
    "one long function of vlds vlds vadd vsts": VECTOR.format(mask=FULL, rounds=2000, op=ADD),
    "400 calls of the same function": CALLS,
    "vlds vlds vci vgather2 vsts": VECTOR.format(mask=FULL, rounds=300, op=GATHER),
    "simt, load, two operations, store, 128 threads": SIMT.format(threads=128, rounds=10000, **IN_UB),
    "simt, the same, 1024 threads": SIMT.format(threads=1024, rounds=2000, **IN_UB),
    "simt, atomic_add in GM": ATOMIC.format(threads=128, target="X", place="t & 63", rounds=2000),
    "transfers, flags and tiny functions": SMALL.format(rounds=50000),
}


def seconds(program: bytes, repeat: int, timing: bool) -> float:
    """Processor time of the best of some launches."""
    x, best = np.ones(8192, np.float32), float("inf")
    for _ in range(repeat):
        with session(check="off", timing=timing):
            start = time.process_time()
            _native.sim_launch(program, "k", [x, 0], grid=1, host_threads=1)
            best = min(best, time.process_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    for name, body in CASES.items():
        program = record_module(FRAME + body, "cost.py", "2026-09").serialize()
        plain, timed = (seconds(program, options.repeat, timing) for timing in (False, True))
        print(f"{name:48s} {1e3 * plain:8.1f} ms, with times {1e3 * timed:8.1f} ms   {timed / plain:5.1f} x")


if __name__ == "__main__":
    main()
