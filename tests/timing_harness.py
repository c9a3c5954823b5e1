"""Kernels of a few lines under the timing model."""

from __future__ import annotations

import textwrap

import numpy as np

from tilelang_pto.sim import run, session
from tilelang_pto.sim.report.model import Event, KernelReport
from tilelang_pto.sim.timing_figures import timing_figures

#: The figures of the model by name.
FIGURES = {row.name: row.value for row in timing_figures()}
CLOCK = 1.65e9

Arrays = dict[str, tuple[str, np.ndarray]]


def timed(
    body: str, arrays: Arrays | None = None, *, kind: str | None = "vector", grid: int = 1, host_threads: int = 0, **options
) -> KernelReport:
    """The report of a launch; names of ``arrays`` are pointers to GM, ``zero`` and the block ``b`` are at hand. A mixed kernel has
    ``kind=None``."""
    arrays = arrays or {}
    parameters = ", ".join(f'{name}: pto.ptr(pto.{dtype}, "gm")' for name, (dtype, _) in arrays.items())
    kernel_kind = f'kernel_kind="{kind}", ' if kind else ""
    text = (
        f'from ptodsl import pto\n\n@pto.jit(name="k", {kernel_kind}target="a5", mode="explicit", ast_rewrite=False)\n'
        f"def k({parameters}):\n"
        "    zero = pto.const(0, dtype=pto.i64)\n    b = pto.get_block_idx()\n"
    )
    text += textwrap.indent(textwrap.dedent(body), "    ")
    with session(**{"check": "off", "timing": True, "timeline": True, **options}) as s:
        run(text, "k", *[array for _, array in arrays.values()], grid=grid, host_threads=host_threads)
    return s.report.kernels[0]


def gm(count: int, dtype: type = np.uint8) -> tuple[str, np.ndarray]:
    """A tensor of zeros."""
    return {np.uint8: "ui8", np.float32: "f32", np.float16: "f16"}[dtype], np.zeros(count, dtype)


def events(report: KernelReport, pipe: str, block: int = 0, core: str = "", kind: str = "run") -> list[Event]:
    """What a pipe did, in order."""
    assert report.timeline is not None
    return [e for e in report.timeline.events if (e.pipe, e.block, e.core, e.kind) == (pipe, block, core, kind)]
