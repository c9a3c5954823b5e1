"""Atomic operations of SIMT threads on single elements of GM and UB."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..emit import call, constant
from ..registry import op
from ..types import DType, Type
from ..values import Value
from ..visitor import Visitor
from .memory import access_pointer, full_pointer, memory_of, signless, storage_of

_TYPES = ("i32", "ui32", "i64", "ui64", "f16", "f32")


@op("tl.atomic_add_elem_op", arity=(2, 3), regions="simt", dtypes=_TYPES, emits="atomic_add")
def atomic_add(v: Visitor, node: Any, pointer: Any, value: Any, order: Any = None) -> None:
    """Add. All orders are the same here: hardware orders atomics per address only, as TileLang's AscendC target assumes."""
    _atomic(v, "add", pointer, value)


@op("tl.atomic_max_elem_op", arity=(2, 3), regions="simt", dtypes=_TYPES, emits="atomic_max")
def atomic_max(v: Visitor, node: Any, pointer: Any, value: Any, order: Any = None) -> None:
    _atomic(v, "max", pointer, value)


@op("tl.atomic_min_elem_op", arity=(2, 3), regions="simt", dtypes=_TYPES, emits="atomic_min")
def atomic_min(v: Visitor, node: Any, pointer: Any, value: Any, order: Any = None) -> None:
    _atomic(v, "min", pointer, value)


@op("tl.atomic_add_ret_elem_op", arity=(2, 3), regions="simt", dtypes=_TYPES, emits="atomic_add")
def atomic_add_ret(v: Visitor, node: Any, pointer: Any, value: Any, order: Any = None) -> Value:
    """Add; the result is the value before."""
    return _returning(v, "add", pointer, value)


@op("tl.atomic_max_ret_elem_op", arity=(2, 3), regions="simt", dtypes=_TYPES, emits="atomic_max")
def atomic_max_ret(v: Visitor, node: Any, pointer: Any, value: Any, order: Any = None) -> Value:
    return _returning(v, "max", pointer, value)


@op("tl.atomic_min_ret_elem_op", arity=(2, 3), regions="simt", dtypes=_TYPES, emits="atomic_min")
def atomic_min_ret(v: Visitor, node: Any, pointer: Any, value: Any, order: Any = None) -> Value:
    return _returning(v, "min", pointer, value)


def _atomic(v: Visitor, verb: str, pointer: Any, value: Any) -> None:
    dtype, operands, memory = _operands(v, verb, pointer, value)
    build = _call(verb, dtype)
    v.b.effect(build, operands, writes=memory)


def _returning(v: Visitor, verb: str, pointer: Any, value: Any) -> Value:
    dtype, operands, memory = _operands(v, verb, pointer, value)
    if dtype.pto == "f16":
        v.unsupported(f"the old value of an atomic {verb} on float16", "hardware does not return it reliably: use float32, or ignore it")
    build = _call(verb, dtype)
    result = v.b.names.claim("before")
    v.b.statement(lambda e: ast.Assign([ast.Name(result, ast.Store())], build(e)), operands, writes=memory)
    return v.arith.cast(v.b.named(result, Type("scalar", signless(dtype))), Type("scalar", dtype))


def _call(verb: str, dtype: DType) -> Any:
    keywords = {}
    if verb != "add" and dtype.is_integer:
        keywords["signedness"] = constant("unsigned" if dtype.category == "uint" else "signed")

    def build(exprs: Sequence[ast.expr]) -> ast.expr:
        return call(f"pto.atomic_{verb}", *exprs, **keywords)

    return build


def _operands(v: Visitor, verb: str, pointer: Any, value: Any) -> tuple[DType, tuple[Value, Value], object]:
    """Element type, signless pointer and value, and the memory that is written."""
    access = access_pointer(v, pointer, f"the address of an atomic {verb}")
    storage, dtype = storage_of(v, access.data), v.element(access.dtype)
    what = f"an atomic {verb} on {dtype.tir}"
    if dtype.pto == "bf16":
        v.unsupported(what, "accumulate in float32 and cast the result")
    if dtype.pto not in _TYPES:
        v.unsupported(what, "use int32, uint32, float32 or float16, or 64-bit integers in GM")
    if storage.kind not in ("gm", "ub"):
        v.unsupported(f"{what} in private memory", "use T.alloc_shared or a tensor")
    if dtype.bits == 64 and storage.kind == "ub":
        v.unsupported(f"{what} in UB", "use a 32-bit type, or a tensor in GM")
    element = signless(dtype)
    number = v.arith.cast(v.arith.cast(v.expr(value), Type("scalar", dtype)), Type("scalar", element))
    where = full_pointer(v, pointer, f"the address of an atomic {verb}", element)
    return dtype, (where, v.arith.typed(number)), memory_of(v, storage)
