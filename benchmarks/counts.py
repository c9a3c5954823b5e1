"""What is counted in emitted text, for PTODSL and AscendC alike.

Scalar operations, one each:

* arithmetic, shifts, bit operations, comparisons, logical operations, minimum and maximum, choices (``?:``, ``select``), scalar
  math functions, exchanges and reductions between SIMT threads; compound assignments and ``++`` as well;
* casts that change the width or switch between integer and float (a cast of signedness, of pointers or to an enumeration
  computes nothing);
* address computations: ``&buf[i]``, ``pto.addptr(buf, i)``. An access ``buf[i]``, ``load(buf, i)``, ``vlds(buf, i)`` has its own
  addressing; the arithmetic of its index counts;
* a comparison and an increment for every round of a loop that remains a loop (unrolled and static loops have none).

Not counted: what a compiler folds to a constant (in Python: what tracing evaluates), branches, copies of values, memory accesses,
vector instructions and their predicates. A value computed once and named counts once. Everything is weighted by the constant
trip counts of the loops around it; a loop whose trip count is not constant counts as one round, and SIMT code as one thread.

Synchronisations are flags, barriers of pipes, threads, memory and cores, and buffer tokens; copies are DMA instructions.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Counts", "Kind", "cast_computes", "names"]


@dataclass(slots=True)
class Counts:
    """Weighted numbers of operations."""

    scalar: int = 0
    syncs: int = 0
    copies: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known of an expression's value.

    Attributes:
        dtype: element type in PTODSL's spelling (``i32``, ``f32``), of a pointer or array that of its elements; empty if unknown.
        constant: known before the program runs.
        place: ``value``, ``pointer``, or ``array`` for memory that belongs to a name.
    """

    dtype: str = ""
    constant: bool = False
    place: str = "value"


def cast_computes(source: str, target: str) -> bool:
    """Whether a conversion between two scalar types is an operation; unknown types are taken to differ."""
    if not source or not target:
        return True
    return _shape(source) != _shape(target)


def _shape(dtype: str) -> tuple[str, int]:
    """Integer or float, and the width."""
    if dtype == "index":
        return "integer", 64
    kind = "float" if dtype.startswith(("f", "bf")) else "integer"
    digits = dtype.lstrip("abcdefghijklmnopqrstuvwxyz")
    return kind, int(digits.partition("e")[0] or 0)


def names(words: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(words.split())
