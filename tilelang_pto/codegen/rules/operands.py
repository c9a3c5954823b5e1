"""Operands of transfers and of the cube core: aligned pointers, numbers within the fields of an instruction."""

from __future__ import annotations

from typing import Any

from tvm import arith

from ..caps import MEMORIES
from ..types import DType
from ..values import Value
from ..visitor import Visitor
from .memory import access_pointer, full_pointer, storage_of


def operand(v: Visitor, node: Any, what: str, dtype: DType | None = None, *, alignment: int = 0) -> Value:
    """The pointer of an operand that lies in a memory of the core.

    Args:
        what: what the operand is, for messages.
        dtype: element type to point to; that of the access if not given.
        alignment: bytes its address must be a multiple of; that of the memory if 0.
    """
    access = access_pointer(v, node, what)
    storage = storage_of(v, access.data)
    wanted = alignment or MEMORIES[storage.kind].alignment
    require_aligned(v, access.index, v.element(access.dtype).bytes, wanted, f"{what} {storage.name}")
    return full_pointer(v, node, what, dtype)


def require_aligned(v: Visitor, index: Any, size: int, alignment: int, what: str) -> None:
    """Refuse an element index of which it is provable that its address is not aligned."""
    known = arith.Analyzer().modular_set(index)
    step, base = int(known.coeff) * size, int(known.base) * size
    if step % alignment == 0 and base % alignment != 0:
        v.unsupported(f"{what} starts at a byte that is no multiple of {alignment}", f"let it start at a multiple of {alignment} bytes")


def field(v: Visitor, node: Any, what: str, maximum: int, minimum: int = 0) -> Value:
    """An operand that goes into a field of an instruction; what provably does not fit is refused."""
    value = v.expr(node)
    require_fits(v, value, what, maximum, minimum)
    return value


def require_fits(v: Visitor, value: Value, what: str, maximum: int, minimum: int = 0) -> None:
    """Refuse a value that is provably outside a field's range."""
    if value.low > maximum or (value.high < minimum and not value.assumed):
        number = value.literal if value.literal is not None else f"{value.low} to {value.high}"
        v.unsupported(f"{what} is {number}, but the instruction takes {minimum} to {maximum}", "use a smaller tile")


def require_multiple(v: Visitor, node: Any, factor: int, what: str, advice: str) -> None:
    """Refuse an operand of which it is provable that it is no multiple of ``factor``."""
    known = arith.Analyzer().modular_set(node)
    if int(known.coeff) % factor == 0 and int(known.base) % factor != 0:
        v.unsupported(f"{what} is {node}, no multiple of {factor}", advice)
