"""Operations of the emitted PTODSL, as ratios to TileLang's AscendC text of the same lowered TIR.

What counts as an operation is said in :mod:`tilelang_pto.compare.counts.kinds`. The kernels are the mHC ones of tile_kernels, or
all of its Ascend kernels.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.compare.ascendc import ascendc_of_device_module
from tilelang_pto.compare.counts import QUANTITIES, Counts, LibraryCall, count_ascendc, count_ptodsl
from tilelang_pto.errors import UnsupportedError

WHAT = {name: QUANTITIES[name] for name in ("scalar", "syncs", "copies", "bytes", "vector", "code")}


def lowered_cases(every_family: bool, only: str) -> Iterator[tuple[str, Any, bool]]:
    """Name, device module and fast-math flag of the cases of the test corpus; lowered TIR is kept between runs, as for the tests."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from corpus.cases import all_cases
    from corpus.kept_tir import kept_tir

    for name, case in all_cases().items():
        if only in name and (every_family or name.startswith("mhc.")):
            kept = kept_tir(case)
            yield name, kept.module(), kept.fast_math


def ratio(ours: int, theirs: int) -> float | None:
    """Quotient, None where there is nothing to compare."""
    return ours / theirs if ours and theirs else None


def row(name: str, ours: Counts, theirs: Counts) -> str:
    """A line of the table."""
    cells = []
    for what in WHAT:
        mine, other = getattr(ours, what), getattr(theirs, what)
        quotient = ratio(mine, other)
        cells.append(f"{mine:8} {other:8} {f'{quotient:6.2f}' if quotient is not None else '     -'}")
    return f"{name:42} {'  '.join(cells)}"


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surface", default="2026-09")
    parser.add_argument("--all", action="store_true", help="kernels of all families; lowering them for the first time takes 20 minutes")
    parser.add_argument("--only", default="", help="only kernels with this in their names")
    options = parser.parse_args()
    surface = surface_of(options.surface)
    heading = f"{'ours':>8} {'AscendC':>8} {'ratio':>6}"
    print(f"{'':42} {'  '.join(f'{what:^24}' for what in WHAT.values())}")
    print(f"{'kernel':42} {'  '.join([heading] * len(WHAT))}")
    ratios: dict[str, list[float]] = {what: [] for what in WHAT}
    for name, module, fast_math in lowered_cases(options.all, options.only):
        try:
            ours = count_ptodsl(emit_module(module, surface=surface, fast_math=fast_math).text)
            theirs = count_ascendc(ascendc_of_device_module(module))
        except (LibraryCall, UnsupportedError) as error:
            print(f"{name:42} not compared: {error}".splitlines()[0])
            continue
        print(row(name, ours, theirs), flush=True)
        for what in WHAT:
            quotient = ratio(getattr(ours, what), getattr(theirs, what))
            if quotient is not None:
                ratios[what].append(quotient)
    means = [f"{'':17} {geometric_mean(ratios[what]):6.2f}" for what in WHAT]
    print(f"{'geometric mean of the ratios':42} {'  '.join(means)}")


if __name__ == "__main__":
    main()
