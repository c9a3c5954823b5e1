"""The figures that the timing model is built on, from the engine's tables.

``python -m tilelang_pto.sim.timing_figures docs/timing.md`` writes the page that shows them.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["TimingFigure", "VectorCost", "timing_figures", "timing_page", "vector_costs"]


@dataclass(frozen=True, slots=True)
class TimingFigure:
    """One figure.

    Args:
        name: its name in the engine.
        value: in ``unit``.
        unit: empty for a plain number.
        what: what it is.
        source: where it is from: ``AC``, ``PI``, ``TL``, ``D`` (derived), ``none``; the page says what these are.
        certainty: how sure it is.
    """

    name: str
    value: float
    unit: str
    what: str
    source: str
    certainty: str


@dataclass(frozen=True, slots=True)
class VectorCost:
    """What one operation of a SIMD function costs.

    Args:
        op: PTODSL name; ``"other"`` stands for all that have no row.
        types: element types that the row is for; the first row that fits counts.
        latency: cycles from the start to the result.
        interval: cycles that its port is taken.
        port: which one.
        source: where the figures are from.
        certainty: how sure they are.
    """

    op: str
    types: str
    latency: float
    interval: float
    port: str
    source: str
    certainty: str


def timing_figures() -> list[TimingFigure]:
    """The figures, in the engine's order."""
    return [TimingFigure(**row) for row in _tables()["figures"]]


def vector_costs() -> list[VectorCost]:
    """The costs of the operations of SIMD functions, in the engine's order."""
    return [VectorCost(**row) for row in _tables()["vector"]]


def _tables() -> dict[str, list[dict[str, Any]]]:
    from tilelang_pto._native import sim_timing_figures

    tables: dict[str, list[dict[str, Any]]] = json.loads(sim_timing_figures())
    return tables


HEAD = """# The timing model

`tilelang_pto.sim.session(timing=True)`, `tilelang-pto profile`: how long a kernel would take on the chip, and on what the time goes.
No figure has been compared with a board by this project; all of them come from public documents and models. The tables are
`csrc/engine/timing_table.h` and `csrc/engine/vector_costs_table.h`; `python -m tilelang_pto.sim.timing_figures docs/timing.md` writes
this page, `python benchmarks/timing_figures.py` compares the model with what is published.

## What is modelled

While a kernel is executed, the engine keeps its commands: when the scalar unit issued them, what they wait for and signal, what they
access. Afterwards all blocks are played on a chip, in simulated time:

* **Scalar unit.** It executes one instruction after the other, pays for each command it issues, waits where the program says so, and is
  at most a queue ahead of each pipe.
* **Pipes.** A command begins when it was issued, the one before it has left the pipe, and all its waits are over. A transfer leaves the
  pipe once its bytes have moved and is complete a latency later: the next one may overlap with that latency. `pipe_barrier`, flags,
  tokens and unit flags wait for completion.
* **GM.** Transfers of all cores share its bandwidth evenly; none is faster than its own path. What a launch reads (or writes) a second
  time costs the bandwidth of L2 only, on average over the launch.
* **SIMD functions.** Instructions enter a window in program order and start out of order, when their registers are there and a port is
  free; accesses to UB share its 8 bank groups of 2 banks; `mem_bar` waits for all accesses of its first class.
* **SIMT functions.** Each warp of 32 threads waits for each of its instructions, and for what it loads from GM where that is used. Four
  schedulers issue for all warps. Conflicts in the sub-banks of UB happen one after the other, and so do atomics on one sector of GM,
  those of all cores. GM moves in sectors of 128 bytes.
* **Blocks.** A block begins when a core is free; flags among blocks wait for the last one.

What is **not** modelled: the start of a kernel (2 to 4 microseconds on a board), instruction caches, the capacity of L2, several cores
in the same 512 bytes of GM, atomic stores of transfers, transfers that take banks of UB from the vector unit, spilled
registers, and that the two vector cores of a cluster share a path to GM. Operations are counted for matrix products and for whole
registers of SIMD functions, whatever their mask; those of SIMT functions are not.

## Figures

Sources: **AC** Ascend C documentation of 950, July 2026; **PI** cost models of pto-isa; **TL** latency estimator of the Ascend backend
of tile-lang; **D** derived here from a figure of one of them; **none** no source: a parameter to be calibrated.

| figure | value | what | source | certainty |
|---|---|---|---|---|
"""

VECTOR = """
## Operations of SIMD functions

For 256 bytes; the first row that fits counts. A dependent operation may start earlier than the latency by `kVectorForwarding`.

| operation | types | latency | interval | port | source | certainty |
|---|---|---|---|---|---|---|
"""


def _number(value: float) -> str:
    return f"{value:g}" if value != int(value) else str(int(value))


def timing_page() -> str:
    """The text of ``docs/timing.md``."""
    rows = [
        f"| `{row.name}` | {_number(row.value)} {row.unit} | {row.what} | {row.source} | {row.certainty} |\n".replace("  |", " |")
        for row in timing_figures()
    ]
    costs = [
        f"| `{row.op}` | {row.types} | {_number(row.latency)} | {_number(row.interval)} | {row.port} | {row.source} | {row.certainty} |\n"
        for row in vector_costs()
    ]
    return HEAD + "".join(rows) + VECTOR + "".join(costs)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(timing_page())
