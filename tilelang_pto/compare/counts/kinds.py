"""What is counted in emitted text, for PTODSL and AscendC alike.

Scalar operations, one each:

* arithmetic, shifts, bit operations, comparisons, logical operations, minimum and maximum, choices (``?:``, ``select``), scalar
  math functions, exchanges and reductions between SIMT threads; compound assignments and ``++`` as well;
* casts that change the width or switch between integer and float (a cast of signedness, of pointers or to an enumeration
  computes nothing);
* address computations: ``&buf[i]``, ``pto.addptr(buf, i)``. An access ``buf[i]``, ``load(buf, i)``, ``vlds(buf, i)`` has its own
  addressing; the arithmetic of its index counts;
* a comparison and an increment for every round of a loop that remains a loop (unrolled and static loops have none).

What a compiler folds to a constant does not count (in Python: what tracing evaluates), nor do branches and copies of values. A value
computed once and named counts once. Everything is weighted by the constant trip counts of the loops around it; a loop whose trip
count is not constant counts as one round, and SIMT code as one thread.

Accesses are loads and stores of single values (or short vectors) in global memory or UB; arrays of a thread are registers. Vector
instructions are those of SIMD vector functions, without reinterpretations; a library function that is several of them counts as what
it is made of. Synchronisations are flags, barriers of pipes, threads, memory and cores, and buffer tokens. Copies are DMA
instructions, each with one descriptor; their bytes are counts times lengths. Where a length depends on values known at run time only,
the largest it can be counts, as far as the text says so (``min``, remainders, masks); copies without such a bound are *unsized* and
have no bytes. Copies from L1 to L0 together with fills of L1, and matrix products, are kinds of their own.

The code size is the number of instructions in the text: everything above once, loops not weighted, unrolled loops expanded.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

__all__ = [
    "QUANTITIES",
    "Counts",
    "Kind",
    "UncountableError",
    "cast_computes",
    "element_bytes",
    "family_of",
    "limit_of",
    "names",
    "product",
]


class UncountableError(ValueError):
    """The text contains something whose operations are not known."""


@dataclass(slots=True)
class Counts:
    """Weighted numbers of operations; ``bytes`` are bytes moved by DMA, ``code`` is the number of instructions in the text."""

    scalar: int = 0
    accesses: int = 0
    atomics: int = 0
    vector: int = 0
    vector_memory: int = 0
    predicates: int = 0
    matrix: int = 0
    matrix_loads: int = 0
    syncs: int = 0
    copies: int = 0
    bytes: int = 0
    unsized: int = 0
    code: int = 0

    def add(self, kind: str, weight: int, code: int) -> None:
        """``weight`` executions of an operation that stands ``code`` times in the program."""
        setattr(self, kind, getattr(self, kind) + weight)
        self.code += code

    def add_all(self, other: Counts, weight: int, code: int) -> None:
        """``weight`` executions of all operations of ``other``, whose text stands ``code`` times in the program."""
        for kind, number in other.as_dict().items():
            setattr(self, kind, getattr(self, kind) + number * (code if kind == "code" else weight))

    def add_copy(self, size: int | None, weight: int, code: int) -> None:
        """A copy of at most ``size`` bytes."""
        self.add("copies", weight, code)
        if size is None:
            self.unsized += weight
        else:
            self.bytes += size * weight

    def as_dict(self) -> dict[str, int]:
        return dataclasses.asdict(self)


#: Fields of :class:`Counts` and their headings in reports.
QUANTITIES = {
    "scalar": "scalar operations",
    "accesses": "scalar accesses",
    "atomics": "atomics",
    "vector": "vector instructions",
    "vector_memory": "vector loads and stores",
    "predicates": "predicate instructions",
    "matrix": "matrix products",
    "matrix_loads": "copies to L0",
    "syncs": "synchronisations",
    "copies": "copies",
    "bytes": "bytes copied",
    "unsized": "copies of unknown size",
    "code": "code size",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known of an expression's value.

    Attributes:
        dtype: element type in PTODSL's spelling (``i32``, ``f32``), of a pointer or array that of its elements; empty if unknown.
        constant: known before the program runs.
        place: ``value``, ``pointer``, or ``array`` for memory that belongs to a name.
        limit: the value of a constant integer, else the largest it can be (indices and extents are taken not to be negative); None if
            unknown.
    """

    dtype: str = ""
    constant: bool = False
    place: str = "value"
    limit: int | None = None


def family_of(
    function: str, syncs: Collection[str], atomics: Collection[str], families: Mapping[str, re.Pattern[str]], spelled: str = ""
) -> str:
    """The field of :class:`Counts` a call that computes no scalar belongs to.

    Args:
        families: how the other functions of a family are called, by field; the first that fits counts.
        spelled: the function as an error names it, if not by its name alone.

    Raises:
        UncountableError: it belongs to none.
    """
    if function in syncs:
        return "syncs"
    if function in atomics:
        return "atomics"
    for family, pattern in families.items():
        if pattern.match(function):
            return family
    raise UncountableError(f"{spelled or function}: not known what kind of operation it is")


def cast_computes(source: str, target: str) -> bool:
    """Whether a conversion between two scalar types is an operation; unknown types are taken to differ."""
    if not source or not target:
        return True
    return _shape(source) != _shape(target)


def element_bytes(dtype: str) -> int | None:
    """Bytes of an element, None for an unknown type; two 4-bit numbers are an element."""
    if not dtype:
        return None
    return max(1, _shape(dtype)[1] // 8)


def product(factors: Iterable[int | None]) -> int | None:
    """Of known factors; None if one is unknown."""
    result = 1
    for factor in factors:
        if factor is None:
            return None
        result *= factor
    return result


def limit_of(operator: str, left: Kind, right: Kind) -> int | None:
    """Largest result of an integer operation on values that are not negative; ``operator`` in C's spelling, ``min`` and ``max`` too."""
    a, b = left.limit, right.limit
    if operator == "min":
        return min((value for value in (a, b) if value is not None), default=None)
    if operator == "&":
        return min((kind.limit for kind in (left, right) if kind.constant and kind.limit is not None and kind.limit >= 0), default=None)
    if operator == "%" and right.constant and b:
        return b - 1 if not (left.constant and a is not None) else a % b
    if a is None:
        return None
    if operator in ("-", "/", ">>") and right.constant and b is not None:
        if operator == "-":
            return a - b
        return a // b if operator == "/" and b else a >> b if operator == ">>" else None
    if operator == "-":
        return a
    if b is None:
        return None
    results = {"+": a + b, "*": a * b, "max": max(a, b), "|": a | b if left.constant and right.constant else None}
    if operator == "<<" and right.constant:
        return a << b
    return results.get(operator)


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
