"""What the simulator's checks cost: host time of a call without checks, with bounds, and with the full check, kernel by kernel."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from captured_launches import Launch, capture
from tilelang.backend.target import determine_target

import tilelang_pto.sim as sim
from tilelang_pto import _native

CHECKS = ("off", "bounds", "full")
MOST = 8.0
"""What a full check may cost, as a multiple of a run without."""


def calls() -> Iterator[tuple[str, Callable[[], None]]]:
    """Names and calls of mHC kernels with all cores, of a GEMM, and of a long expand."""
    from mhc_kernels import cases

    for case in cases(tokens=256):
        yield case.name, lambda case=case: case.kernel.compile(*case.tensors, **case.options)(*case.tensors)
    x, out = torch.randn(4096, 1280).to(torch.bfloat16), torch.zeros(4096, 2, 1280, dtype=torch.bfloat16)
    from tile_kernels.mhc.expand_asc import expand_to_mhc_fwd_asc

    options = {"h_blk": 1280, "num_stages": 7, "num_vec_cores": 64}
    yield "expand_fwd 4096 x 2 x 1280", lambda: expand_to_mhc_fwd_asc.compile(x, out, **options)(x, out)
    yield "gemm 512 x 512 x 1024", _gemm


def _gemm() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from examples.gemm import gemm

    a, b, c = torch.randn(512, 1024).bfloat16(), torch.randn(512, 1024).bfloat16(), torch.zeros(512, 512)
    gemm.compile(a, b, c)(a, b, c)


def caught(call: Callable[[], None]) -> Launch:
    """The launch a call ends with."""
    with capture() as found, determine_target("pto", return_object=True):
        call()
    return found[-1]


def seconds(launch: Launch, check: str, threads: int) -> float:
    """Wall time of one launch on so many host threads."""
    arguments = [value.copy() if isinstance(value, np.ndarray) else value for value in launch.arguments]
    program = launch.program.serialize()
    with sim.session(check=check, race="report") as session:
        started = time.perf_counter()
        _native.sim_launch(program, launch.kernel, arguments, grid=launch.grid, host_threads=threads)
        taken = time.perf_counter() - started
        assert not session.report.findings, f"{launch.kernel} is not clean"
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--only", default="", help="only kernels with this in their names")
    parser.add_argument("--threads", type=int, default=1, help="host threads")
    options = parser.parse_args()
    print(f"{'kernel':32} {'off':>10} {'bounds':>10} {'full':>10} {'bounds/off':>11} {'full/off':>9}")
    above = []
    for name, call in calls():
        if options.only not in name:
            continue
        launch = caught(call)
        times: dict[str, list[float]] = {check: [] for check in CHECKS}
        for _ in range(options.repeat):
            for check in CHECKS:  # in turn, so that a busy machine slows all of them
                times[check].append(seconds(launch, check, options.threads))
        medians = {check: statistics.median(values) for check, values in times.items()}
        ratios = [statistics.median(c / o for c, o in zip(times[check], times["off"], strict=True)) for check in ("bounds", "full")]
        cells = " ".join(f"{1e3 * medians[check]:7.2f} ms" for check in CHECKS)
        print(f"{name:32} {cells} {ratios[0]:11.2f} {ratios[1]:9.2f}", flush=True)
        if ratios[1] > MOST:
            above.append(f"{name} ({ratios[1]:.1f})")
    print(f"full check above {MOST:.0f} times: {', '.join(above) if above else 'none'}")


if __name__ == "__main__":
    main()
