"""Sums and differences of 32-bit lanes with a carry predicate. A carry of a difference means that nothing was borrowed.

TIR numbers the parts (carry, value), PTODSL gives (value, carry).
"""

from __future__ import annotations

from typing import Any

from ..emit import call
from ..registry import op
from ..types import mask_type
from ..values import Pair, Value
from ..visitor import Visitor
from .simd_pairs import pair

_CARRY = mask_type(32)
_CARRIED = ("i32", "ui32")


@op("tl.simd.vaddc", "tl.simd.vsubc", arity=3, regions="simd", dtypes=_CARRIED, emits=("vaddc", "vsubc", "vaddcs", "vnot"))
def with_carry_out(v: Visitor, node: Any, a: Any, b: Any, m: Any) -> Pair:
    name, left, right = _operands(v, node, a, b)
    mask = v.mask(m, 32)
    if _has(v, name):
        return _carrying(v, name, left, right, mask)
    return _carrying(v, "vaddcs", left, _complement(v, right, mask), mask, mask)


@op("tl.simd.vaddcs", "tl.simd.vsubcs", arity=4, regions="simd", dtypes=_CARRIED, emits=("vaddcs", "vsubcs", "vnot"))
def with_carry_in(v: Visitor, node: Any, a: Any, b: Any, carry: Any, m: Any) -> Pair:
    name, left, right = _operands(v, node, a, b)
    carried, mask = v.mask(carry, 32), v.mask(m, 32)
    if _has(v, name):
        return _carrying(v, name, left, right, carried, mask)
    return _carrying(v, "vaddcs", left, _complement(v, right, mask), carried, mask)


def _operands(v: Visitor, node: Any, a: Any, b: Any) -> tuple[str, Value, Value]:
    name = str(node.op.name).rpartition(".")[2]
    left, right = v.expr(a), v.expr(b)
    if left.type != right.type or left.type.kind != "register" or left.dtype.pto not in _CARRIED:
        v.unsupported(f"{name} of {left.type} and {right.type}", "both registers hold int32 or uint32")
    return name, left, right


def _has(v: Visitor, name: str) -> bool:
    return v.surface.lookup(f"pto.{name}") is not None


def _complement(v: Visitor, value: Value, mask: Value) -> Value:
    """``a - b`` is ``a + ~b + 1``; the carry of that sum is that nothing was borrowed. For surfaces without ``vsubc``."""
    return v.b.pure("vnot", lambda e: call("pto.vnot", *e), (value, mask), value.type, hint="complement", pinned=True, weight=10)


def _carrying(v: Visitor, name: str, *operands: Value) -> Pair:
    return pair(v, lambda e: call(f"pto.{name}", *e), operands, (operands[0].type, _CARRY), ("total", "carry"), swap=True)
