"""Predicates of SIMD vector functions.

TIR has one predicate type for all widths; PTODSL has one per element width. The width is that of the operation that makes the predicate; a
consumer that wants another reinterprets the 256 bits, which is what the hardware does.
"""

from __future__ import annotations

from typing import Any

from ..emit import call, constant, path
from ..registry import op
from ..types import DTYPES, INDEX, Type, mask_type
from ..values import Value
from ..visitor import Visitor
from .memory import UB, full_pointer

_ANY_WIDTH = ("PAT_ALL", "PAT_ALLF", "PAT_H", "PAT_Q", "PAT_M3", "PAT_M4")
_FIRST = tuple(f"PAT_VL{count}" for count in (1, 2, 3, 4, 8, 16, 32, 64, 128))
PATTERNS = _ANY_WIDTH + _FIRST
WIDTHS = (8, 16, 32)
"""Bits of the elements a predicate is for."""

_PATTERN: dict[str, tuple[str | int, ...]] = {"width": WIDTHS, "pattern": PATTERNS}
_COMPARISON = {"mode": ("eq", "ne", "lt", "le", "gt", "ge")}


@op("tl.simd.pset", arity=2, regions="simd", literals=_PATTERN, emits=("pset_b8", "pset_b16", "pset_b32"))
def pset(v: Visitor, node: Any, width: Any, pattern: Any) -> Value:
    return _pattern(v, "pset", width, pattern)


@op("tl.simd.pge", arity=2, regions="simd", literals=_PATTERN, emits=("pge_b8", "pge_b16", "pge_b32"))
def pge(v: Visitor, node: Any, width: Any, pattern: Any) -> Value:
    return _pattern(v, "pge", width, pattern)


def _pattern(v: Visitor, which: str, width: Any, pattern: Any) -> Value:
    bits, token = int(width), str(pattern.value)
    function = f"pto.{which}_b{bits}"
    return v.b.pure(
        (function, token), lambda _: call(function, constant(token)), (), mask_type(bits), hint=f"mask_b{bits}", pinned=True, weight=24
    )


def full_mask(v: Visitor, bits: int) -> Value:
    """All lanes of ``bits`` bits."""
    function = f"pto.pset_b{bits}"
    return v.b.pure(
        (function, "PAT_ALL"),
        lambda _: call(function, constant("PAT_ALL")),
        (),
        mask_type(bits),
        hint=f"mask_b{bits}",
        pinned=True,
        weight=24,
    )


@op("tl.simd.update_mask", arity=2, regions="simd", literals={"width": WIDTHS}, emits=("plt_b8", "plt_b16", "plt_b32"))
def update_mask(v: Visitor, node: Any, count: Any, width: Any) -> Value:
    """The first ``count`` lanes; none for a negative count, which the hardware would take as a large one."""
    bits = int(width)
    value = v.expr(count)
    if not value.dtype.is_integer:
        v.unsupported(f"a mask of {value.type} lanes", "the count is an integer")
    if not value.non_negative or value.assumed:
        value = v.arith.maximum(value, v.arith.number(0, value.type))
    if value.literal is None:
        lanes = v.arith.number(256, value.type) if value.dtype.bits > 32 else None  # more than any mask has
        value = v.arith.minimum(value, lanes) if lanes is not None else value
    narrow = v.arith.cast(value, Type("scalar", DTYPES["int32"]))
    function = f"pto.plt_b{bits}"
    mask, _ = v.b.unpack(lambda e: call(function, *e), (narrow,), (mask_type(bits), narrow.type), ("mask", "rest"))
    return mask


@op("tl.simd.ppack", "tl.simd.punpack", arity=2, regions="simd", literals={"part": ("LOWER", "HIGHER")}, emits=("ppack", "punpack"))
def repack(v: Visitor, node: Any, a: Any, part: Any) -> Value:
    """A predicate for elements of half the width, in one half of it; or one half of a predicate for elements of twice the width."""
    name = str(node.op.name).rpartition(".")[2]
    value = v.expr(a)
    half = str(part.value)
    bits = max(8, value.dtype.bits // 2) if name == "ppack" else min(32, value.dtype.bits * 2)
    target = f"pto.mask_b{bits}"
    return v.b.pure(
        (name, half),
        lambda e: call(f"pto.{name}", e[0], constant(half), path(target)),
        (value,),
        mask_type(bits),
        hint="mask",
        pinned=True,
        weight=30,
    )


_IMAGE = DTYPES["uint32"]
"""Predicates in memory are words of bits."""


@op("tl.simd.pld", arity=2, regions="simd", literals={"dist": ("NORM", "US", "DS")}, emits="plds")
def pld(v: Visitor, node: Any, pointer: Any, dist: Any) -> Value:
    """A predicate from its image in UB."""
    token = str(dist.value)
    where = full_pointer(v, pointer, "the address of a predicate", _IMAGE)
    return v.b.pure(
        ("plds", token),
        lambda e: call("pto.plds", *e, dist=constant(token)),
        (where, v.b.literal(0, INDEX)),
        mask_type(32),
        hint="mask",
        memory=UB,
        pinned=True,
        weight=24,
    )


@op("tl.simd.pst", arity=3, regions="simd", literals={"dist": ("NORM", "PK")}, emits="psts")
def pst(v: Visitor, node: Any, pointer: Any, value: Any, dist: Any) -> None:
    """A predicate to its image in UB."""
    token = str(dist.value)
    mask = v.expr(value)
    if mask.type.kind != "mask":
        v.unsupported(f"pst of {mask.type}", "store a predicate")
    where = full_pointer(v, pointer, "the address of a predicate", _IMAGE)
    v.b.effect(lambda e: call("pto.psts", *e, dist=constant(token)), (mask, where, v.b.literal(0, INDEX)), writes=UB)


@op("tl.simd.pand", "tl.simd.por", "tl.simd.pxor", arity=3, regions="simd", emits=("pand", "por", "pxor"))
def predicate_logic(v: Visitor, node: Any, a: Any, b: Any, m: Any) -> Value:
    left = v.expr(a)
    bits = left.dtype.bits
    return _predicate(v, str(node.op.name), left.type, left, v.mask(b, bits), v.mask(m, bits))


@op("tl.simd.pnot", arity=2, regions="simd", emits="pnot")
def pnot(v: Visitor, node: Any, a: Any, m: Any) -> Value:
    value = v.expr(a)
    return _predicate(v, "tl.simd.pnot", value.type, value, v.mask(m, value.dtype.bits))


@op("tl.simd.psel", arity=3, regions="simd", emits="psel")
def psel(v: Visitor, node: Any, a: Any, b: Any, m: Any) -> Value:
    left = v.expr(a)
    bits = left.dtype.bits
    return _predicate(v, "tl.simd.psel", left.type, left, v.mask(b, bits), v.mask(m, bits))


def _predicate(v: Visitor, operation: str, type: Type, *operands: Value) -> Value:
    function = "pto." + operation.rpartition(".")[2]
    return v.b.pure(function, lambda e: call(function, *e), operands, type, hint="mask", pinned=True)


@op("tl.simd.vcmp", arity=4, regions="simd", literals=_COMPARISON, emits="vcmp")
def vcmp(v: Visitor, node: Any, a: Any, b: Any, m: Any, mode: Any) -> Value:
    return _compare(v, "pto.vcmp", v.expr(a), v.expr(b), m, mode)


@op("tl.simd.vcmps", arity=4, regions="simd", literals=_COMPARISON, emits="vcmps")
def vcmps(v: Visitor, node: Any, a: Any, scalar: Any, m: Any, mode: Any) -> Value:
    from .simd_arith import lane_scalar

    value = v.expr(a)
    return _compare(v, "pto.vcmps", value, lane_scalar(v, scalar, value.type), m, mode)


def _compare(v: Visitor, function: str, a: Value, b: Value, m: Any, mode: Any) -> Value:
    bits = a.dtype.bits
    how = str(mode.value)
    return v.b.pure(
        (function, how), lambda e: call(function, *e, constant(how)), (a, b, v.mask(m, bits)), mask_type(bits), hint="mask", pinned=True
    )


def recast(v: Visitor, value: Value, type: Type) -> Value:
    """The same 256 bits as a predicate of another granularity."""
    target = f"pto.mask_b{type.dtype.bits}"
    return v.b.pure("pbitcast", lambda e: call("pto.pbitcast", e[0], path(target)), (value,), type, hint="mask", pinned=True, weight=24)
