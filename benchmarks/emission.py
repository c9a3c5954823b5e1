"""Time to emit PTODSL (load the kept TIR, visit, print, check) as a share of TileLang's own lowering of the same kernel."""

from __future__ import annotations

import argparse
import statistics
import time

from mhc_kernels import cases
from tilelang.backend.target import determine_target

import tilelang_pto  # noqa: F401  (registers the target)
from tilelang_pto import backend
from tilelang_pto.lowering import lower_function
from tilelang_pto.target import pto_target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each step; medians are printed")
    parser.add_argument("--surface", default="2026-09")
    options = parser.parse_args()
    target = pto_target(surface=options.surface)
    print(f"{'kernel':32} {'lowering ms':>12} {'emission ms':>12} {'share':>7} {'lines':>6}")
    shares = []
    for case in cases():
        with determine_target("pto", return_object=True):
            function = case.kernel.get_tir(*case.tensors, **case.options)
        lowering, emission = [], []
        for _ in range(options.repeat):
            started = time.perf_counter()
            lowered = lower_function(function, target=target)
            lowering.append(time.perf_counter() - started)
            started = time.perf_counter()
            text = backend.emit(lowered.device, lowered.target).text
            emission.append(time.perf_counter() - started)
        share = statistics.median(emission) / statistics.median(lowering)
        shares.append(share)
        print(
            f"{case.name:32} {1e3 * statistics.median(lowering):12.1f} {1e3 * statistics.median(emission):12.1f}"
            f" {share:7.1%} {text.count(chr(10)):6}"
        )
    print(f"largest share {max(shares):.1%}")


if __name__ == "__main__":
    main()
