"""Registers and masks of a vector function that hold integers computed from nothing but scalars: the indices of gathers and scatters.

A register is an array with a value for each lane, a mask the number of its first active lanes or an array of truth values; None where
they are not known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilelang_pto.sim.program import Operation, Type

__all__ = ["active_lanes", "index_register"]

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "vadd": operator.add, "vsub": operator.sub, "vmul": operator.mul, "vand": operator.and_, "vor": operator.or_, "vxor": operator.xor,
    "vmin": np.minimum, "vmax": np.maximum, "vshl": operator.lshift, "vshr": operator.rshift,
    "vadds": operator.add, "vmuls": operator.mul, "vmins": np.minimum, "vmaxs": np.maximum, "vshls": operator.lshift,
    "vshrs": operator.rshift,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_BITS = {"i8": 8, "si8": 8, "ui8": 8, "i16": 16, "si16": 16, "ui16": 16, "i32": 32, "si32": 32, "ui32": 32}


def active_lanes(mask: Any, lanes: int) -> np.ndarray | None:
    """Truth values of a mask."""
    if mask is None or isinstance(mask, np.ndarray):
        return mask
    return np.arange(lanes) < mask


def index_register(op: Operation, values: Sequence[Any], types: Sequence[Type], result: Type) -> Any:
    """The result of an operation on integer registers; None when it is none of those known here, or an operand is not known.

    Args:
        op: the operation.
        values: of its operands.
        types: of its operands.
        result: type of its result.
    """
    if any(value is None for value in values) or (result.kind == "vreg" and result.dtype not in _BITS):
        return None
    if op.opcode == "vci":
        step = -1 if op.attributes.get("order") == "DESC" else 1
        return _wrapped(values[0] + step * np.arange(result.lanes), result.dtype)
    if op.opcode == "vbitcast":
        same = types[0].dtype in _BITS and types[0].lanes == result.lanes
        return _wrapped(values[0], result.dtype) if same and isinstance(values[0], np.ndarray) else None
    if op.opcode in ("vbr", "vdup") and types[0].kind == "scalar":
        active = active_lanes(values[1], result.lanes) if op.opcode == "vdup" else True
        return _wrapped(np.where(active, values[0], np.zeros(result.lanes, np.int64)), result.dtype)
    if op.opcode in ("vcmp", "vcmps") and types[0].dtype in _BITS:
        return active_lanes(values[2], types[0].lanes) & _COMPARISONS[str(op.attributes["mode"])](values[0], values[1])
    if op.opcode in _BINARY:
        active = active_lanes(values[2], result.lanes)
        return _wrapped(np.where(active, _BINARY[op.opcode](values[0], values[1]), 0), result.dtype)
    if op.opcode == "vsel":
        return np.where(active_lanes(values[2], result.lanes), values[0], values[1])
    return None


def _wrapped(values: np.ndarray, dtype: str) -> np.ndarray:
    bits = _BITS[dtype]
    low = values.astype(np.int64) & ((1 << bits) - 1)
    return low if dtype.startswith("u") else low - ((low >> (bits - 1)) << bits)
