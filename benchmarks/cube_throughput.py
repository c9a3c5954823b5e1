"""How fast the simulator multiplies matrices on this machine: the whole `mad` operation, and a product from GM to GM.

CPU time of the process is measured, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tilelang_pto import _native
from tilelang_pto.sim import record_module

MAD = """from ptodsl import pto

@pto.jit(name="k", kernel_kind="cube", target="a5", mode="explicit", ast_rewrite=False)
def k(X: pto.ptr(pto.ui8, "gm"), rounds: pto.si32):
    zero = pto.const(0, dtype=pto.i64)
    l1 = pto.castptr(zero, pto.ptr(pto.ui8, "mat"))
    pto.mte_gm_l1(X, l1, 65536, nburst=(1, 0, 0))
    pto.set_flag("MTE2", "MTE1")
    pto.wait_flag("MTE2", "MTE1")
    a, b = pto.castptr(zero, pto.ptr(pto.{left}, "left")), pto.castptr(zero, pto.ptr(pto.{left}, "right"))
    c = pto.castptr(zero, pto.ptr(pto.{result}, "acc"))
    pto.mte_l1_l0a(pto.castptr(l1, pto.ptr(pto.{left}, "mat")), a, {m}, {k})
    pto.mte_l1_l0b(pto.castptr(l1, pto.ptr(pto.{left}, "mat")), b, {k}, {n})
    pto.set_flag("MTE1", "M")
    pto.wait_flag("MTE1", "M")
    pto.mad(a, b, c, {m}, {n}, {k})
    with pto.for_(0, rounds, step=1):
        pto.mad_acc(a, b, c, {m}, {n}, {k})
"""


def measure(text: str, rounds: int, repeat: int) -> tuple[int, float]:
    """Operations of all products, and CPU seconds of the best of some runs."""
    program = record_module(text, "throughput.py", "2026-09").serialize()
    x = np.full(1 << 16, 0x3C, np.uint8)
    best, stats = float("inf"), {}
    for _ in range(repeat):
        start = time.process_time()
        stats = _native.sim_launch(program, "k", [x, rounds], grid=1, host_threads=1)
        best = min(best, time.process_time() - start)
    return stats["mad_operations"], best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the work")
    options = parser.parse_args()
    for left, result, k in (("bf16", "f32", 64), ("f16", "f32", 64), ("f8e4m3", "f32", 128), ("i8", "i32", 128), ("f32", "f32", 32)):
        text = MAD.format(left=left, result=result, m=128, n=256, k=k)
        operations, seconds = measure(text, max(1, int(400 * options.scale * 64 / k)), options.repeat)
        print(f"mad {left:7s} 128 x 256 x {k:3d}   {operations / seconds / 1e9:6.1f} GFLOP/s per host core   ({seconds:.3f} s)")


if __name__ == "__main__":
    main()
