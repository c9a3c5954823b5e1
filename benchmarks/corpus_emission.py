"""Time to emit PTODSL (load the kept TIR, visit, print, check) as a share of TileLang's lowering, over the corpus of the tests.

Both are processor times of one process, so that other work on the machine matters little. Lowering is timed when a kernel is lowered
and kept beside its TIR; what is not kept yet is lowered now, which takes tens of minutes for the whole corpus.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from corpus.cases import all_cases
from corpus.kept_tir import KeptTir, is_kept, kept_tir
from corpus.quick import QUICK

from tilelang_pto import UnsupportedError
from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import Surface, require_clean, surface_of


def emission_seconds(kept: KeptTir, surface: Surface, repeat: int) -> float | None:
    """Median of ``repeat`` emissions; None if the kernel is refused."""
    seconds = []
    for _ in range(repeat):
        started = time.process_time()
        try:
            text = emit_module(kept.module(), surface=surface, fast_math=kept.fast_math).text
        except UnsupportedError:
            return None
        require_clean(text, surface)
        seconds.append(time.process_time() - started)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="emissions of each kernel; the median counts")
    parser.add_argument("--surface", default="2026-09")
    parser.add_argument("--slowest", type=int, default=10, help="kernels to list, by the share of their emission")
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--quick", action="store_true", help="only one variant of each kernel")
    some.add_argument("--kept", action="store_true", help="only what is kept already")
    options = parser.parse_args()
    cases = [case for case in all_cases().values() if not options.quick or case.name in QUICK]
    if options.kept:
        cases = [case for case in cases if is_kept(case)]
    times: dict[str, tuple[float, float]] = {}
    refused = []
    for case in cases:
        kept = kept_tir(case)
        emission = emission_seconds(kept, surface_of(options.surface), options.repeat)
        if emission is None:
            refused.append(case.name)
        else:
            times[case.name] = kept.seconds, emission
    families: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, pair in times.items():
        families[name.partition(".")[0]].append(pair)
        families["all"].append(pair)
    families["all"] = families.pop("all")
    print(f"{'family':60} {'kernels':>8} {'lowering s':>11} {'emission s':>11} {'share':>7}")
    for family, pairs in families.items():
        report(family, len(pairs), sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))
    print("largest shares")
    for name in sorted(times, key=lambda name: -times[name][1] / times[name][0])[: options.slowest]:
        report(name, 1, *times[name])
    if refused:
        print(f"refused for {options.surface}: {', '.join(refused)}")


def report(name: str, kernels: int, lowering: float, emission: float) -> None:
    print(f"{name:60} {kernels:8} {lowering:11.2f} {emission:11.2f} {emission / lowering:7.1%}")


if __name__ == "__main__":
    main()
