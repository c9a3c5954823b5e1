"""The timing model against the figures that are published of the chip: each case as a small kernel, the published value, the modelled one.

Where a measurement covers much data, a part of it is run: what is compared is a rate or the time of one piece.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilelang_pto.sim import SessionReport, run, session
from tilelang_pto.sim.report.model import Timing
from tilelang_pto.sim.timing_figures import timing_figures

HEAD = """from ptodsl import pto

@pto.jit(name="k", kernel_kind="{kind}", target="a5", mode="explicit", ast_rewrite=False)
def k({parameters}):
    zero = pto.const(0, dtype=pto.i64)
    b = pto.get_block_idx()
"""


def timing(body: str, arrays: dict[str, tuple[str, np.ndarray]], *, kind: str = "vector", grid: int = 1) -> Timing:
    """The modelled time of a kernel; names of ``arrays`` are pointers to GM in its body."""
    parameters = ", ".join(f'{name}: pto.ptr(pto.{dtype}, "gm")' for name, (dtype, _) in arrays.items())
    text = HEAD.format(kind=kind, parameters=parameters) + textwrap.indent(textwrap.dedent(body), "    ")
    with session(check="off", timing=True) as s:
        run(text, "k", *[array for _, array in arrays.values()], grid=grid)
    report: SessionReport = s.report
    found = report.kernels[0].timing
    assert found is not None
    return found


@dataclass(frozen=True)
class Row:
    """A published figure and what the model makes of it."""

    what: str
    unit: str
    published: float
    modelled: float


# -- transfers -------------------------------------------------------------------------------------------------------


def load(rows: int, width: int, commands: int, cores: int, stride: int) -> Timing:
    """``commands`` transfers of ``rows`` rows on each core, rows ``stride`` bytes apart in GM."""
    body = f"""
    ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
    first = b * {commands * rows * stride}
    with pto.for_(0, {commands}, step=1) as i:
        pto.mte_gm_ub(pto.addptr(x, first + i * {rows * stride}), ub, 0, {width}, nburst=({rows}, {stride}, {width}))
    """
    return timing(body, {"x": ("ui8", np.zeros(cores * commands * rows * stride, np.uint8))}, grid=cores)


def transfers() -> list[Row]:
    one = load(1, 128, 512, 64, 128)
    narrow, wide = load(64, 128, 32, 64, 256), load(16, 2048, 8, 64, 4096)
    rows = [
        Row("single rows of 128 B, 64 cores: a command", "cycles", 881e-6 * 1.65e9 / 36864, one.cycles / 512),
        Row("64 rows of 128 B a command, 64 cores", "TB/s", 302e6 / 206e-6 / 1e12, narrow.achieved.gm_bytes_per_second / 1e12),
        Row("rows of 2 KB, 64 cores", "TB/s", 302e6 / 186e-6 / 1e12, wide.achieved.gm_bytes_per_second / 1e12),
    ]
    for columns, published in ((64, 242), (256, 187)):
        commands = 64 * 64 // columns
        size = 2 * 64 * columns  # every second row piece of the matrix
        body = f"""
        l1 = pto.castptr(zero, pto.ptr(pto.f16, "mat"))
        with pto.for_(0, {commands}, step=1) as i:
            pto.mte_gm_l1_frac(pto.addptr(x, (b * {commands} + i) * {size}), l1, "nd2nz", shape=(64, {columns}),
                               src_layout=({4 * columns},), dst_group=(1, 1, 64, 0), ctrl=(0, False))
        """
        found = timing(body, {"x": ("f16", np.zeros(32 * commands * size, np.float16))}, kind="cube", grid=32)
        rows.append(
            Row(f"nd2nz of 64 x {columns} f16, 32 cores", "TB/s", 302e6 / published / 1e6, found.achieved.gm_bytes_per_second / 1e12)
        )
    return rows


# -- vector functions ------------------------------------------------------------------------------------------------


def vector(loop: str, n: int, dtype: str) -> float:
    """Cycles of a function with a loop over vectors."""
    bits, lanes = (32, 64) if dtype == "f32" else (16, 128)
    body = f"""
    x = pto.castptr(zero, pto.ptr(pto.{dtype}, "ub"))
    y = pto.castptr(pto.const(65536 + 256, dtype=pto.i64), pto.ptr(pto.{dtype}, "ub"))
    z = pto.castptr(pto.const(131072, dtype=pto.i64), pto.ptr(pto.{dtype}, "ub"))
    with pto.vecscope():
        m = pto.pset_b{bits}("PAT_ALL")
        d = pto.vdup(pto.const(2.0, dtype=pto.{dtype}), m)
        with pto.for_(0, {n}, step=1) as i:
            o = i * {lanes}
            {loop.replace("@", "o")}
    """
    return timing(body, {}).cores[0].pipes["V"].busy


def vectors() -> list[Row]:
    rows = []
    add = "pto.vsts(pto.vadd(pto.vlds(x, @), pto.vlds(y, @), m), z, @, m)"
    one = "pto.vsts({}, z, @, m)"
    cases: list[tuple[str, str, str, Callable[[int], float]]] = [
        ("add", "f32", add, lambda n: 1.25 * n + 55),
        ("add", "f16", add, lambda n: 1.25 * n + 55),
        ("division by a scalar", "f32", one.format("pto.vdiv(pto.vlds(x, @), d, m)"), lambda n: 1.91 * n + 65),
        ("exp", "f32", one.format("pto.vexp(pto.vlds(x, @), m)"), lambda n: 1.97 * n + 63),
        ("exp", "f16", one.format("pto.vexp(pto.vlds(x, @), m)"), lambda n: 3.76 * n + 66),
    ]
    for name, dtype, loop, fit in cases:
        for n in (16, 128):
            rows.append(Row(f"{name} of {dtype}, {n} vectors", "cycles", fit(n), vector(loop, n, dtype)))
    plain = vector("pto.vsts(pto.vlds(x, @), z, @, m)", 8, "f32")
    strided = vector("pto.vsstb(pto.vsldb(pto.addptr(x, i * 8), 8, 0, m), pto.addptr(z, i * 8), 8, 0, m)", 8, "f32")
    rows.append(Row("copy of 2 KB, blocks 256 B apart to contiguous", "ratio", 1510 / 442, strided / plain))
    return rows


# -- SIMT functions --------------------------------------------------------------------------------------------------


def simt(body: str, threads: int, arrays: dict[str, tuple[str, np.ndarray]] | None = None) -> float:
    text = f"""
    u = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
    with pto.simt({threads}, 1, 1):
        t = pto.get_tid_x()
{textwrap.indent(textwrap.dedent(body), "        ")}
    """
    return timing(text, arrays or {}).cores[0].pipes["V"].busy


def threads() -> list[Row]:
    def loads(address: str) -> float:
        empty = f"o = {address}\n"
        return (simt(empty + "pto.load(u, o)\n" * 100, 32) - simt(empty, 32)) / 100

    def atomic(count: int, used: bool) -> float:
        use = (
            "pto.store(pto.atomic_add(p, pto.const(1.0, dtype=pto.f32)), u, t)"
            if used
            else "pto.atomic_add(p, pto.const(1.0, dtype=pto.f32))"
        )
        body = f"p = pto.addptr(x, t * 0)\nwith pto.for_(0, {count // 1024}, step=1):\n    {use}"
        return simt(body, 1024, {"x": ("f32", np.zeros(32, np.float32))}) / 1.65e3

    return [
        Row("a load from UB without conflicts, one warp", "cycles", 11, loads("t")),
        Row("the same, 32 accesses to one sub-bank", "cycles", 37.6, loads("t * 64")),
        Row("8192 additions to one address of GM", "us", 351, atomic(8192, False)),
        Row("12288 additions that return the value", "us", 2136, atomic(12288, True)),
    ]


# -- matrix products -------------------------------------------------------------------------------------------------

MAD = """
a, c = pto.castptr(zero, pto.ptr(pto.f16, "left")), pto.castptr(zero, pto.ptr(pto.f32, "acc"))
r = pto.castptr(zero, pto.ptr(pto.f16, "right"))
with pto.for_(0, 8, step=1):
    pto.mad_acc(a, r, c, 128, 256, 64)
"""

# 256 x 256 of the result on each core; loads of 256 x 256 into L1 and of 256 x 64 into L0, both double-buffered.
PRODUCT = """
l1a, l1b = pto.castptr(zero, pto.ptr(pto.f16, "mat")), pto.castptr(pto.const(262144, dtype=pto.i64), pto.ptr(pto.f16, "mat"))
l0a, l0b = pto.castptr(zero, pto.ptr(pto.f16, "left")), pto.castptr(zero, pto.ptr(pto.f16, "right"))
l0c = pto.castptr(zero, pto.ptr(pto.f32, "acc"))
row, column = b // 8, b % 8
for i in range(2):
    pto.set_flag("MTE1", "MTE2", event_id=i)
    pto.set_flag("M", "MTE1", event_id=i)
with pto.for_(0, {steps}, step=1) as step:
    big = step % 2
    pto.wait_flag("MTE1", "MTE2", event_id=big)
    pto.mte_gm_l1_frac(pto.addptr(x, row * {strip} + step * 256), pto.addptr(l1a, big * 65536), "nd2nz", shape=(256, 256),
                       src_layout=({k} * 2,), dst_group=(1, 1, 256, 0), ctrl=(0, False))
    pto.mte_gm_l1_frac(pto.addptr(y, column * {strip} + step * 256), pto.addptr(l1b, big * 65536), "nd2nz", shape=(256, 256),
                       src_layout=({k} * 2,), dst_group=(1, 1, 256, 0), ctrl=(0, False))
    pto.set_flag("MTE2", "MTE1", event_id=big)
    pto.wait_flag("MTE2", "MTE1", event_id=big)
    for part in range(4):
        side = part % 2
        left, right = pto.addptr(l0a, side * 16384), pto.addptr(l0b, side * 16384)
        pto.wait_flag("M", "MTE1", event_id=side)
        pto.mte_l1_l0a(pto.addptr(l1a, big * 65536), left, m_start=0, k_start=part * 4, m_step=16, k_step=4, src_stride=16, dst_stride=16)
        pto.mte_l1_l0b(pto.addptr(l1b, big * 65536), right, m_start=0, k_start=part * 4, m_step=16, k_step=4, src_stride=16, dst_stride=16)
        pto.set_flag("MTE1", "M", event_id=side)
        pto.wait_flag("MTE1", "M", event_id=side)
        pto.mad_acc(left, right, l0c, 256, 256, 64)
        pto.set_flag("M", "MTE1", event_id=side)
    pto.set_flag("MTE1", "MTE2", event_id=big)
for i in range(2):
    pto.wait_flag("MTE1", "MTE2", event_id=i)
    pto.wait_flag("M", "MTE1", event_id=i)
pto.set_flag("M", "FIX", event_id=0)
pto.wait_flag("M", "FIX", event_id=0)
pto.mte_l0c_gm(l0c, pto.addptr(o, row * 524288 + column * 256), 256, 256, 256, 2048, 0, 0, layout="nz2nd")
"""


def products(k: int) -> list[Row]:
    eight = timing(MAD, {}, kind="cube")
    rows = [Row("128 x 256 x 512 f16 in 8 mads, theory", "cycles", 4156, eight.cores[0].pipes["M"].busy)]
    rows.append(Row("the same, measured", "cycles", 4209, eight.cores[0].pipes["M"].busy))
    x, y, o = np.zeros((1024, k), np.float16), np.zeros((2048, k), np.float16), np.zeros((1024, 2048), np.float32)
    body = PRODUCT.format(steps=k // 256, strip=256 * k, k=k)
    found = timing(body, {"x": ("f16", x), "y": ("f16", y), "o": ("f32", o)}, kind="cube", grid=32)
    pipes = found.cores[0].pipes
    scale = 8192 / k * 32 / 1.65e3  # the whole product has 32 such tiles a core
    loop = "8192^3 f16 in tiles of 256 x 256 x 64, 32 cores: "
    rows += [
        Row(loop + "time", "us", 2572, found.cycles * scale),
        Row(loop + "M busy", "us", 2565, pipes["M"].busy * scale),
        Row(loop + "MTE1 busy", "us", 830, pipes["MTE1"].busy * scale),
        Row(loop + "MTE2 busy", "us", 1870, pipes["MTE2"].busy * scale),
        Row(loop + "FIX busy", "us", 220, pipes["FIX"].busy * 32 / 1.65e3),
    ]
    return rows


# -- kernels that GM bounds ------------------------------------------------------------------------------------------

COPY = """
ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
for i in range({buffers}):
    pto.set_flag("MTE3", "MTE2", event_id=i)
with pto.for_(0, {tiles}, step=1) as i:
    part, at = i % {buffers}, (b * {tiles} + i) * {tile}
    here = pto.addptr(ub, part * {tile})
    pto.wait_flag("MTE3", "MTE2", event_id=part)
    pto.mte_gm_ub(pto.addptr(x, at), here, 0, {width}, nburst=({rows}, {width}, {width}))
    pto.set_flag("MTE2", "MTE3", event_id=part)
    pto.wait_flag("MTE2", "MTE3", event_id=part)
    pto.mte_ub_gm(here, pto.addptr(y, at), {width}, nburst=({rows}, {width}, {width}))
    pto.set_flag("MTE3", "MTE2", event_id=part)
for i in range({buffers}):
    pto.wait_flag("MTE3", "MTE2", event_id=i)
"""


def copies() -> list[Row]:
    """Time of a copy: bytes over the bandwidth that the model has, and what the model says."""
    figures = {row.name: row.value for row in timing_figures()}
    rows = []
    for cores, tiles, lines, width, buffers in (
        (64, 32, 1, 16384, 2), (64, 16, 1, 32768, 2), (64, 16, 64, 512, 2), (64, 8, 2, 32768, 2), (64, 64, 1, 8192, 4),
        (1, 64, 1, 16384, 4), (1, 32, 1, 32768, 4), (1, 32, 16, 2048, 4),
    ):  # fmt: skip
        size = cores * tiles * lines * width
        body = COPY.format(tiles=tiles, rows=lines, width=width, tile=lines * width, buffers=buffers)
        found = timing(body, {"x": ("ui8", np.zeros(size, np.uint8)), "y": ("ui8", np.zeros(size, np.uint8))}, grid=cores)
        bound = max(2 * size / figures["kGmBytesPerCycle"], size / cores / figures["kGmUbRate"])
        rows.append(
            Row(
                f"{cores} core{'s' * (cores > 1)}, {tiles} tiles of {lines} x {width} B each, {buffers} buffers",
                "cycles",
                bound,
                found.cycles,
            )
        )
    return rows


def table(rows: list[Row], reference: str) -> None:
    print(f"| what | unit | {reference} | modelled | ratio |\n|---|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.unit} | {row.published:.4g} | {row.modelled:.4g} | {row.modelled / row.published:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, default=8192, help="of the large product, of which one tile a core is computed")
    options = parser.parse_args()
    table([*transfers(), *vectors(), *threads(), *products(options.k)], "published")
    print()
    table(copies(), "bytes / bandwidth")


if __name__ == "__main__":
    main()
