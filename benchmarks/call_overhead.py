"""What a call of a compiled kernel costs before anything runs: the ``pto`` target against TileLang's CPU target and its cython adapter.

Both kernels have the same signature (two tensors and a number) and get empty tensors, so neither does any work: unpacking, checks, and the
way to the device function are what is left. The two are called in turns in one process; medians are printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import tilelang
import torch
from tilelang.ascend import language as T
from tilelang.cpu import language as L

import tilelang_pto  # noqa: F401  (registers the target)


@tilelang.jit(target="pto")
def scale_pto(x, y, factor: T.float32):
    n = T.dynamic("n")
    x: T.Tensor[(n,), T.float32]
    y: T.Tensor[(n,), T.float32]
    with T.Kernel(T.ceildiv(n, 256)) as block, T.SimtVF(threads=256):
        for i in T.Parallel(256):
            if block * 256 + i < n:
                y[block * 256 + i] = x[block * 256 + i] * factor


@tilelang.jit(target="c")
def scale_cpu(x, y, factor: L.float32):
    n = L.dynamic("n")
    x: L.Tensor[(n,), L.float32]
    y: L.Tensor[(n,), L.float32]
    with L.Kernel(L.ceildiv(n, 256)) as block:
        for i in L.serial(256):
            if block * 256 + i < n:
                y[block * 256 + i] = x[block * 256 + i] * factor


def seconds(call: Callable[[], object], calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - started) / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000, help="calls of one turn")
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_args()
    example = torch.zeros(8), torch.zeros(8), 2.0
    kernels = {"pto": scale_pto.compile(*example), "TileLang's c target": scale_cpu.compile(*example)}
    for kernel in kernels.values():
        x, y = torch.arange(8.0), torch.zeros(8)
        kernel(x, y, 2.0)
        assert torch.equal(y, 2 * x)
    empty = torch.zeros(0), torch.zeros(0), 2.0
    found: dict[str, list[float]] = {name: [] for name in kernels}
    for _ in range(options.turns):
        for name, kernel in kernels.items():
            found[name].append(seconds(lambda kernel=kernel: kernel(*empty), options.calls))
    medians = {name: statistics.median(times) for name, times in found.items()}
    for name, median in medians.items():
        print(f"{name:24} {1e6 * median:8.1f} microseconds a call")
    ours, theirs = medians.values()
    print(f"{'difference':24} {1e6 * (ours - theirs):8.1f} microseconds, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
