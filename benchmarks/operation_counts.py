"""Scalar operations, synchronisations and copies of the emitted PTODSL, as ratios to TileLang's AscendC text of the same lowered TIR.

What counts as an operation is said in ``benchmarks/counts.py``. Without ``--tir`` all mHC kernels of tile_kernels are lowered and compared.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tilelang
import tvm
from ascendc_counts import LibraryCall, count_ascendc
from counts import Counts
from ptodsl_counts import count_ptodsl
from tilelang.backend.module import create_backend_context
from tilelang.backend.target import determine_target
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import UnsupportedError
from tilelang_pto.pipeline import stashed_module
from tilelang_pto.target import pto_target

WHAT = ("scalar", "syncs", "copies")


def ascendc_text(module: Any) -> str:
    """AscendC that TileLang prints for a module of device functions, as its own backend prepares it."""
    context = create_backend_context(determine_target("ascend", return_object=True), None, "tvm_ffi")
    with tvm.transform.PassContext(opt_level=3), context.target:
        module = tilelang.transform.LowerIntrin()(module)
        module = tirx.transform.Simplify()(module)
        module = tilelang.transform.HoistBroadcastValues()(module)
        return str(context.codegen_device(module, compile_device=False).inspect_source())


def lowered_cases(surface: str, only: str) -> Iterator[tuple[str, Any]]:
    """Names and device modules of the mHC kernels with ``only`` in their names."""
    from mhc_kernels import cases

    target = pto_target(surface=surface)
    for case in cases():
        if only in case.name:
            yield case.name, stashed_module(case.lower(case.function(), target).device)


def saved_modules(paths: Sequence[Path], only: str) -> Iterator[tuple[str, Any]]:
    """Names and device modules of files written with ``tvm.ir.save_json``, or of folders of them."""
    for path in paths:
        for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            if only in file.stem:
                yield file.stem, tvm.ir.load_json(file.read_text())


def ratio(ours: int, theirs: int) -> float | None:
    """Quotient, None where there is nothing to compare."""
    return ours / theirs if ours and theirs else None


def row(name: str, ours: Counts, theirs: Counts) -> str:
    """A line of the table."""
    cells = []
    for what in WHAT:
        mine, other = getattr(ours, what), getattr(theirs, what)
        quotient = ratio(mine, other)
        cells.append(f"{mine:6} {other:7} {f'{quotient:6.2f}' if quotient is not None else '     -'}")
    return f"{name:42} {'  '.join(cells)}"


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surface", default="2026-09")
    parser.add_argument("--tir", type=Path, nargs="+", metavar="PATH", help="lowered device modules as JSON, or folders of them")
    parser.add_argument("--only", default="", help="only kernels with this in their names")
    options = parser.parse_args()
    surface = surface_of(options.surface)
    heading = f"{'ours':>6} {'AscendC':>7} {'ratio':>6}"
    print(f"{'':42} {'  '.join(f'{what:^21}' for what in ('scalar operations', 'synchronisations', 'copies'))}")
    print(f"{'kernel':42} {'  '.join([heading] * len(WHAT))}")
    ratios: dict[str, list[float]] = {what: [] for what in WHAT}
    modules = saved_modules(options.tir, options.only) if options.tir else lowered_cases(options.surface, options.only)
    for name, module in modules:
        try:
            ours, theirs = count_ptodsl(emit_module(module, surface=surface).text), count_ascendc(ascendc_text(module))
        except (LibraryCall, UnsupportedError) as error:
            print(f"{name:42} not compared: {error}".splitlines()[0])
            continue
        print(row(name, ours, theirs), flush=True)
        for what in WHAT:
            quotient = ratio(getattr(ours, what), getattr(theirs, what))
            if quotient is not None:
                ratios[what].append(quotient)
    means = [f"{'':14} {geometric_mean(ratios[what]):6.2f}" for what in WHAT]
    print(f"{'geometric mean of the ratios':42} {'  '.join(means)}")


if __name__ == "__main__":
    main()
