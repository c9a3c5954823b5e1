"""Transfers between GM and UB. Operands are (destination, source); strides count bytes from start to start."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ..emit import call, constant
from ..registry import op
from ..types import DTYPES
from ..values import Value
from ..visitor import Visitor
from .memory import at, full_pointer

STORE_CACHE = (
    "nmfv", "nmlv", "nmprs", "nmred", "naci", "napw", "napi", "nared",
    "wbhfv", "wbhlv", "wbhprs", "wbhred", "wtsfv", "wtslv", "wtsprs", "wtsred",
)  # fmt: skip
"""L2 hints of stores, by the number AscendC gives them."""

STORE_HINTS = tuple(range(len(STORE_CACHE)))


@op("tl.ascend_copy_gm_to_ubuf", arity=11, regions="scalar", core="vector", literals={"sid": (0,), "select": (0, 1)},
    spaces={"dst": "ub", "src": "gm"}, emits="mte_gm_ub")  # fmt: skip
def ascend_copy_gm_to_ubuf(
    v: Visitor,
    node: Any,
    dst: Any,
    src: Any,
    sid: Any,
    bursts: Any,
    length: Any,
    left: Any,
    right: Any,
    select: Any,
    cache: Any,
    src_stride: Any,
    dst_stride: Any,
) -> None:
    pointers = [full_pointer(v, src, "source"), full_pointer(v, dst, "destination")]
    _require_same_width(v, pointers)
    padding = _padding(v, left, right, select)

    def copy(source: Value, destination: Value, size: Value, count: Value, strides: tuple[Value, Value]) -> None:
        def build(e: Sequence[ast.expr]) -> ast.expr:
            keywords = {"pad": ast.Tuple(list(e[7:]), ast.Load())} if padding else {}
            return call("pto.mte_gm_ub", *e[:4], nburst=ast.Tuple(list(e[4:7]), ast.Load()), **keywords)

        v.b.effect(build, [source, destination, v.expr(cache), size, count, *strides, *padding])

    _in_bursts(v, copy, pointers, v.expr(length), v.expr(bursts), (v.expr(src_stride), v.expr(dst_stride)))


def _padding(v: Visitor, left: Any, right: Any, select: Any) -> list[Value]:
    """Operands of ``pad=``: nothing, the value for the rest of the last 32 bytes of a row, or also counts at both sides."""
    counts = [v.expr(left), v.expr(right)]
    wanted = any(count.literal != 0 for count in counts)
    if int(select) == 0:
        if wanted:
            v.unsupported("padding of a GM to UB copy by repeating an element", "pad with a value")
        return []
    if v.pad_value is None:
        v.unsupported(
            "a padded copy that no single T.copy padding value reaches", "set the padding value in the same block, in front of the copy"
        )
    return [v.arith.typed(v.pad_value), *(counts if wanted else [])]


@op("tl.ascend_set_copy_pad_value", arity=1, regions="scalar")
def ascend_set_copy_pad_value(v: Visitor, node: Any, value: Any) -> None:
    """The value that fills the padding of the copies behind; it becomes an operand of those."""
    v.pad_value = v.expr(value)
    v.pad_setters += 1


LONGEST_BURST = 65535
"""Field of 16 bits: bytes of one burst."""


def _in_bursts(
    v: Visitor,
    copy: Callable[[Value, Value, Value, Value, tuple[Value, Value]], None],
    pointers: list[Value],
    length: Value,
    bursts: Value,
    strides: tuple[Value, Value],
) -> None:
    """One copy; a single row longer than a burst can be goes in several bursts and a rest."""
    source, destination = pointers
    if length.literal is None or int(length.literal) <= LONGEST_BURST:
        copy(source, destination, length, bursts, strides)
        return
    if bursts.literal != 1:
        v.unsupported(f"a copy of rows of {length.literal} bytes", f"copy at most {LONGEST_BURST} bytes of a row at a time")
    total, part = int(length.literal), LONGEST_BURST // 32 * 32
    count, rest = divmod(total, part)
    copy(source, destination, v.index(part), v.index(count), (v.index(part), v.index(part)))
    if rest:
        moved = [at(v, pointer, v.index(count * part // pointer.dtype.bytes)) for pointer in pointers]
        copy(moved[0], moved[1], v.index(rest), v.index(1), (v.index(rest), v.index(rest)))


@op("tl.ascend_copy_ubuf_to_gm", arity=8, regions="scalar", core="vector", literals={"sid": (0,), "cache": STORE_HINTS},
    spaces={"dst": "gm", "src": "ub"}, emits="mte_ub_gm")  # fmt: skip
def ascend_copy_ubuf_to_gm(
    v: Visitor, node: Any, dst: Any, src: Any, sid: Any, bursts: Any, length: Any, cache: Any, dst_stride: Any, src_stride: Any
) -> None:
    hint = int(cache)
    pointers = [full_pointer(v, src, "source"), full_pointer(v, dst, "destination")]
    _require_same_width(v, pointers)
    keywords = {"l2_cache": constant(STORE_CACHE[hint])} if hint else {}

    def copy(source: Value, destination: Value, size: Value, count: Value, strides: tuple[Value, Value]) -> None:
        def build(e: Sequence[ast.expr]) -> ast.expr:
            return call("pto.mte_ub_gm", *e[:3], nburst=ast.Tuple(list(e[3:6]), ast.Load()), **keywords)

        v.b.effect(build, [source, destination, size, count, *strides])

    _in_bursts(v, copy, pointers, v.expr(length), v.expr(bursts), (v.expr(src_stride), v.expr(dst_stride)))


ATOMIC_TYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int32": "s32", "int16": "s16", "int8": "s8"}
ATOMIC_KINDS = ("add", "max", "min")


@op("tl.ascend_set_atomic", arity=2, regions="scalar", literals={"kind": ATOMIC_KINDS},
    dtypes=tuple(DTYPES[name].pto for name in ATOMIC_TYPES),
    emits=("set_atomic_f32", "set_atomic_add", "set_atomic_max", "set_atomic_min"))  # fmt: skip
def ascend_set_atomic(v: Visitor, node: Any, kind: Any, zero: Any) -> None:
    """Stores to GM accumulate until ``set_atomic_none``."""
    how, dtype = str(kind.value), str(zero.dtype)
    if dtype not in ATOMIC_TYPES:
        v.unsupported(f"atomic {how} of {dtype}", f"use {', '.join(ATOMIC_TYPES)}")
    v.b.effect(lambda _: call(f"pto.set_atomic_{ATOMIC_TYPES[dtype]}"))
    v.b.effect(lambda _: call(f"pto.set_atomic_{how}"))


@op("tl.ascend_set_atomic_none", arity=0, regions="scalar", emits="set_atomic_none")
def ascend_set_atomic_none(v: Visitor, node: Any) -> None:
    v.b.effect(lambda _: call("pto.set_atomic_none"))


def _require_same_width(v: Visitor, pointers: list[Value]) -> None:
    source, destination = pointers
    if source.dtype.bytes != destination.dtype.bytes:
        v.unsupported(f"copy from {source.dtype.pto} to {destination.dtype.pto}", "a copy cannot convert: cast inside a vector function")
