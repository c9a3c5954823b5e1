"""Operations with two results. Their TIR value is a pair, of which ``tl.simd.pair_get`` takes one part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..emit import Expressions, call, constant, path
from ..registry import op
from ..types import Type
from ..values import Pair, Value, VectorAccess
from ..visitor import Visitor
from .simd_arith import LANE_TYPES, check_lanes
from .simd_mask import WIDTHS
from .simd_memory import VECTOR_BYTES, lane_address

DEINTERLEAVING = {"DINTLV_B8": 8, "DINTLV_B16": 16, "DINTLV_B32": 32}
"""Distributions of ``tl.simd.vld2`` and the element width they work on."""


@op("tl.simd.pair_get", arity=2, regions="simd", literals={"which": (0, 1)})
def pair_get(v: Visitor, node: Any, pair: Any, which: Any) -> Value:
    value = v.expr(pair)
    if not isinstance(value, Pair):
        v.unsupported(f"part {which} of {value.type}", "take parts of an operation with two results")
    return value.components[int(which)]


@op("tl.simd.vintlv", "tl.simd.vdintlv", arity=2, regions="simd", emits=("vintlv", "vdintlv"))
def interleave(v: Visitor, node: Any, a: Any, b: Any) -> Pair:
    """Registers zipped lane by lane, or unzipped into even and odd lanes; any element type."""
    name = str(node.op.name).rpartition(".")[2]
    left, right = v.expr(a), v.expr(b)
    if left.type.kind != "register" or left.type != right.type:
        v.unsupported(f"{name} of {left.type} and {right.type}", "bring both registers to one element type")
    hints = ("low", "high") if name == "vintlv" else ("even", "odd")
    return pair(v, lambda e: call(f"pto.{name}", *e), (left, right), (left.type, left.type), hints)


@op("tl.simd.vmull", arity=3, regions="simd", dtypes=LANE_TYPES, emits="vmull")
def vmull(v: Visitor, node: Any, a: Any, b: Any, m: Any) -> Pair:
    """Low and high halves of 64-bit products."""
    left, right = v.expr(a), v.expr(b)
    check_lanes(v, "vmull", left.type)
    if left.type != right.type:
        v.unsupported(f"vmull of {left.type} and {right.type}", "bring both registers to one element type")
    return pair(v, lambda e: call("pto.vmull", *e), (left, right, v.mask(m, 32)), (left.type, left.type), ("low", "high"))


@op("tl.simd.vld2", arity=(2, 3), regions="simd", literals={"dist": tuple(DEINTERLEAVING)}, emits="vldsx2")
def vld2(v: Visitor, node: Any, pointer: Any, dist: Any, *offset: Any) -> Pair:
    """Two registers of consecutive memory: the even elements and the odd ones."""
    token = str(dist.value)
    register = v.register_type(node.dtype)
    if DEINTERLEAVING[token] != register.dtype.bits:
        wanted = [name for name, bits in DEINTERLEAVING.items() if bits == register.dtype.bits]
        v.unsupported(f"load distribution {token} into {register}", f"use {', '.join(wanted) or 'registers of 8, 16 or 32-bit elements'}")
    where = lane_address(v, pointer, register.dtype)
    moved = v.arith.add(v.arith.cast(where.offset, v.index(0).type), v.arith.cast(v.expr(offset[0]), v.index(0).type)) if offset else None
    operands = (where.pointer, where.offset if moved is None else moved)
    access = VectorAccess(*operands, 2 * VECTOR_BYTES, writes=False)
    results = v.b.unpack(lambda e: call("pto.vldsx2", *e, constant(token)), operands, (register, register), ("even", "odd"), access)
    return pair_of(v, *results)


@op("tl.simd.pintlv", "tl.simd.pdintlv", arity=3, regions="simd", literals={"width": WIDTHS},
    emits=tuple(f"{name}_b{bits}" for name in ("pintlv", "pdintlv") for bits in (8, 16, 32)))  # fmt: skip
def interleave_predicates(v: Visitor, node: Any, a: Any, b: Any, width: Any) -> Pair:
    """Predicates zipped or unzipped at the granularity of an element width."""
    bits = int(width)
    name = str(node.op.name).rpartition(".")[2]
    operands = (v.mask(a, bits), v.mask(b, bits))
    types = (operands[0].type, operands[1].type)
    return pair(v, lambda e: call(f"pto.{name}_b{bits}", *e), operands, types, ("mask", "mask"))


def pair(v: Visitor, build: Any, operands: Sequence[Value], types: Sequence[Type], hints: Sequence[str], swap: bool = False) -> Pair:
    """The pair that a call gives; ``swap`` if TIR numbers the results the other way round."""
    results = v.b.unpack(build, operands, types, hints)
    return pair_of(v, *(results[::-1] if swap else results))


def pair_of(v: Visitor, first: Value, second: Value) -> Pair:
    """Two values as one TIR value."""

    def refuse(_: Expressions) -> Any:
        raise AssertionError("a pair has no expression")

    return Pair(Type("pair", first.dtype), v.b.block, refuse, inline=True, components=(first, second))


def register_shape(register: Type) -> Any:
    """``pto.vreg_type(lanes, dtype)``."""
    return call("pto.vreg_type", constant(register.lanes), path(f"pto.{register.dtype.pto}"))
