"""What is documented about the error of approximate functions, from the engine's table.

``python -m tilelang_pto.sim.accuracy docs/accuracy.md`` writes the page that shows it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Accuracy", "accuracies", "accuracy_page"]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How exact one operation of the hardware is.

    Args:
        op: PTODSL name of the operation.
        region: ``"simd"`` or ``"simt"``.
        types: element types of the result that the figure is for.
        ulp: greatest distance from the exact value, in units in the last place; ``0`` if no figure is documented.
        source: where the figure is from.
        certainty: how sure it is.
    """

    op: str
    region: str
    types: tuple[str, ...]
    ulp: int
    source: str
    certainty: str


def accuracies() -> list[Accuracy]:
    """The table, in the engine's order."""
    from tilelang_pto._native import sim_accuracy

    return [Accuracy(**{**row, "types": tuple(row["types"])}) for row in json.loads(sim_accuracy())]


HEAD = """# Accuracy of approximate functions

The hardware computes the functions below only approximately, and public documents say by how much. No result has been compared with
a board. The table is `csrc/engine/accuracy_table.h`; `python -m tilelang_pto.sim.accuracy docs/accuracy.md` writes this page.

| operation | region | types | error | source | certainty |
|---|---|---|---|---|---|
"""

TAIL = """
What the simulator makes of it:

* Subnormal operands and results of these operations count as zero of the same sign, as documented; so `1 / x` of a subnormal `x` is
  infinite. Types that are not listed (bf16), and the scalar unit, of which nothing is documented, keep subnormals.
* `TILELANG_PTO_ULP=exact` (default): the results of the host's functions, quotients and roots correctly rounded.
* `TILELANG_PTO_ULP=perturb:SEED`: any of the floats within the documented error of the exact value. Which one depends on the
  operation, the bits of its operands and the seed, so it is the same in every block, thread and order, for any number of host
  threads. Zeros, infinities and NaN stay what they are, a sign never changes, and a normal number stays one. No value is documented
  as exact, so `exp(0)` may be off too.
* An operation without a figure is never perturbed.
* Everything else (sums, products, fused multiply-add, conversions) is correctly rounded on the hardware, and here.

A kernel whose results agree with its reference for some seeds does not depend on the simulator being more exact than the hardware.
Corrections that the code generator emits where TileLang asks for precision (division of f32 vectors unless fast math is on; `exp`,
`ln` and `sqrt` with their precision annotation) are ordinary code on top of these operations and absorb their error: division and
square root stay correctly rounded. `div` and `vdiv` that ask PTODSL for high precision are not approximate.
"""


def accuracy_page() -> str:
    """The text of ``docs/accuracy.md``."""
    rows = []
    for row in accuracies():
        error = f"{row.ulp} ulp" if row.ulp else "no figure"
        rows.append(f"| `{row.op}` | {row.region} | {', '.join(row.types)} | {error} | {row.source} | {row.certainty} |\n")
    return HEAD + "".join(rows) + TAIL


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(accuracy_page())
