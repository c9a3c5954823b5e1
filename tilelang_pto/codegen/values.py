"""Values of a kernel being emitted.

A :class:`Value` is one SSA value. Pure values (arithmetic, casts, address computations, vector arithmetic, loads as long as nothing is
stored to what they read) know the expression that computes them; whether they are printed in place or get a name is decided at
the end, by :mod:`tilelang_pto.codegen.emit`. Integer values carry the interval they lie in; as in TVM, signed arithmetic
is taken not to overflow, so intervals are clipped to the type's range.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .types import DType, Type

if TYPE_CHECKING:
    from .emit import Block

__all__ = ["Interval", "Number", "Pair", "Value", "VectorAccess", "clip", "fits", "full_range"]

Number = int | float | bool
Interval = tuple[int, int]


def full_range(dtype: DType) -> Interval:
    """All values of an integer dtype."""
    return (dtype.minimum, dtype.maximum)


def fits(low: int, high: int, dtype: DType) -> bool:
    """Whether all values of an interval are values of the type."""
    return dtype.minimum <= low and high <= dtype.maximum


def clip(low: int, high: int, dtype: DType) -> Interval:
    """Interval of a sum, difference or product: clipped for signed types (no overflow), everything for wrapping unsigned ones."""
    lowest, highest = full_range(dtype)
    if dtype.category in ("uint", "bool") and not fits(low, high, dtype):
        return lowest, highest
    return min(max(low, lowest), highest), max(min(high, highest), lowest)


@dataclass(eq=False, slots=True)
class Value:
    """One value of the emitted program.

    Attributes:
        type: its type.
        block: block that defines it; None for literals, which are valid everywhere.
        build: makes the Python expression from the operands' expressions.
        operands: values the expression uses.
        key: what is computed from them (see :meth:`tilelang_pto.codegen.emit.Builder.pure`).
        literal: Python number, if the value is a literal.
        static: it is a Python number while tracing (a literal, a ``static_range`` variable, arithmetic on those).
        interval: bounds of an integer value.
        assumed: the interval holds only if no signed arithmetic overflows. Divisions may rely on that, as TVM does; whole comparisons are
            not decided by it.
        hint: name to use when the value gets a name.
        keep_name: print it as a named assignment even if used once.
        memory: what a load reads (see :class:`tilelang_pto.codegen.emit.Builder`); None for values that do not depend on memory.
        created: position in program order, counted in statements.
        cast_of: value this one is a numeric cast of.
        bits_of: register this one has the bits of.
        inline: never give it a name (typed constants, attributes of loop and branch handles).
        weight: rough length of the expression when printed in place.
        access: what a vector load reads.
        note: comment at the end of the line that gives it a name.
    """

    type: Type
    block: Block | None
    build: Callable[[Sequence[ast.expr]], ast.expr]
    operands: tuple[Value, ...] = ()
    key: object = None
    literal: Number | None = None
    static: bool = False
    interval: Interval | None = None
    assumed: bool = False
    hint: str = ""
    keep_name: bool = False
    memory: object | None = None
    created: int = 0
    cast_of: Value | None = None
    bits_of: Value | None = None
    inline: bool = False
    weight: int = 8
    name: str | None = None
    uses: list[tuple[Block, int]] = field(default_factory=list)
    access: VectorAccess | None = None
    note: str = ""

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def low(self) -> int:
        return self.interval[0] if self.interval else self.dtype.minimum

    @property
    def high(self) -> int:
        return self.interval[1] if self.interval else self.dtype.maximum

    @property
    def non_negative(self) -> bool:
        return self.dtype.is_integer and self.low >= 0

    @property
    def may_wrap(self) -> bool:
        """Whether it is a sum, difference or product that may overflow where the source says what comes of it, as left shifts do."""
        return self.key in ("+", "-", "*") and not self.assumed and self.interval == full_range(self.dtype)


@dataclass(frozen=True, slots=True)
class VectorAccess:
    """Bytes of UB that a vector load reads or a vector store may write.

    Attributes:
        pointer: to elements.
        offset: in elements.
        width: bytes.
    """

    pointer: Value
    offset: Value
    width: int
    writes: bool


@dataclass(eq=False, slots=True)
class Pair(Value):
    """What an operation with two results gives; only ``tl.simd.pair_get`` looks inside."""

    components: tuple[Value, ...] = ()
