"""What checks and modelled times cost: processor time of launches without and with them, on one host thread.

Loops of one kind of instruction each, the kernels of the mutation score (mHC, engram, attention, GEMM; one cube core or two vector
cores), and mHC kernels on all cores.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cost_loops import LOOPS

import tilelang_pto.sim as sim
from tilelang_pto import _native

MODES: dict[str, dict[str, Any]] = {
    "off": {"check": "off"},
    "bounds": {"check": "bounds"},
    "full": {"check": "full"},
    "full, times": {"check": "full", "timing": True},
}
MOST = 8.0
"""What a full check may cost, as a multiple of a run without."""
SHORTEST = 5e-3
"""Seconds that a sample without checks takes at least: short launches are repeated."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A launch to measure."""

    name: str
    program: bytes
    kernel: str
    arguments: Sequence[np.ndarray | int | float]
    grid: int = 1


def loops(scale: float = 1.0) -> Iterator[tuple[str, Callable[[], Subject]]]:
    """Loops of one kind of instruction, with ``scale`` times their rounds."""
    for loop in LOOPS:
        yield loop.name, lambda loop=loop: Subject(loop.name, loop.program(scale).serialize(), "k", loop.arguments())


def kernels() -> Iterator[tuple[str, Callable[[], Subject]]]:
    """The kernels of the mutation score."""
    from mutation_kernels import kernels as all_kernels

    for kernel in all_kernels():
        yield kernel.name, lambda kernel=kernel: _caught(kernel.name, kernel.launch)


def all_cores() -> Iterator[tuple[str, Callable[[], Subject]]]:
    """mHC kernels on all vector cores."""
    import torch
    from mhc_kernels import CORES, cases
    from tile_kernels.mhc.expand_asc import expand_to_mhc_fwd_asc

    for case in cases(tokens=256):
        yield case.name, lambda case=case: _called(case.name, case.kernel, case.tensors, case.options)
    x, out = torch.randn(4096, 1280).to(torch.bfloat16), torch.zeros(4096, 2, 1280, dtype=torch.bfloat16)
    name, options = "expand_fwd 4096 x 2 x 1280", {"h_blk": 1280, "num_stages": 7, "num_vec_cores": CORES}
    yield name, lambda: _called(name, expand_to_mhc_fwd_asc, (x, out), options)


def _called(name: str, kernel: Any, tensors: Sequence[Any], options: dict[str, Any]) -> Subject:
    from captured_launches import capture
    from tilelang.backend.target import determine_target

    with capture() as found, determine_target("pto", return_object=True):
        kernel.compile(*tensors, **options)(*tensors)
    return _caught(name, lambda: found[-1])


def _caught(name: str, launch: Callable[[], Any]) -> Subject:
    made = launch()
    return Subject(name, made.program.serialize(), made.kernel, made.arguments, made.grid)


GROUPS: dict[str, Callable[[], Iterator[tuple[str, Callable[[], Subject]]]]] = {"loops": loops, "kernels": kernels, "cores": all_cores}


def seconds(subject: Subject, mode: dict[str, Any], times: int = 1) -> float:
    """Processor time of one of so many launches on one host thread. Raises ``AssertionError`` when something is found."""
    taken = 0.0
    for _ in range(times):
        arguments = [value.copy() if isinstance(value, np.ndarray) else value for value in subject.arguments]
        with sim.session(race="report", **mode) as session:
            started = time.process_time()
            _native.sim_launch(subject.program, subject.kernel, arguments, grid=subject.grid, host_threads=1)
            taken += time.process_time() - started
            assert not session.report.findings, f"{subject.name} is not clean: {session.report.findings[0]}"
    return taken / times


def measure(subject: Subject, repeat: int) -> dict[str, float]:
    """Medians by mode; the modes in turn, so that a busy machine slows all of them."""
    times = max(1, math.ceil(SHORTEST / seconds(subject, MODES["off"])))
    samples: dict[str, list[float]] = {name: [] for name in MODES}
    for _ in range(repeat):
        for name, mode in MODES.items():
            samples[name].append(seconds(subject, mode, times))
    return {name: statistics.median(values) for name, values in samples.items()}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--only", default="", help="only what has this in its name")
    parser.add_argument("--group", choices=[*GROUPS, "all"], default="all")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the rounds of the loops")
    options = parser.parse_args(argv)
    print(f"| {'Launch':40} | off, ms | bounds / off | full / off | full and times / off |\n|---|---|---|---|---|")
    above, count = [], 0
    for group, subjects in GROUPS.items():
        if options.group not in (group, "all"):
            continue
        for name, subject in loops(options.scale) if group == "loops" else subjects():
            if options.only not in name:
                continue
            medians = measure(subject(), options.repeat)
            bounds, full, both = (medians[mode] / medians["off"] for mode in ("bounds", "full", "full, times"))
            print(f"| {name:40} | {1e3 * medians['off']:.2f} | {bounds:.1f} | {full:.1f} | {both:.1f} |", flush=True)
            count += 1
            if full > MOST:
                above.append(f"{name} ({full:.1f})")
    print(f"full check above {MOST:.0f} times: {', '.join(above) if above else 'none'} of {count}")


if __name__ == "__main__":
    from captured_launches import leave

    main()
    leave()
