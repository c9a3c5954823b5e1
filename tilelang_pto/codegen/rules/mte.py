"""Transfers between GM and UB. Operands are (destination, source); strides count bytes from start to start."""

from __future__ import annotations

import ast
from typing import Any

from tvm import tirx

from ..emit import call, constant
from ..registry import op
from ..values import Value
from ..visitor import Visitor
from .memory import access_pointer, full_pointer, storage_of

STORE_CACHE = (
    "nmfv", "nmlv", "nmprs", "nmred", "naci", "napw", "napi", "nared",
    "wbhfv", "wbhlv", "wbhprs", "wbhred", "wtsfv", "wtslv", "wtsprs", "wtsred",
)  # fmt: skip
"""L2 hints of stores, by the number AscendC gives them."""


@op("tl.ascend_copy_gm_to_ubuf", arity=11, regions="scalar", emits="mte_gm_ub")
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
    _require_zero(v, sid, "sid")
    for padding, what in ((left, "left padding"), (right, "right padding"), (select, "padding source")):
        if not (isinstance(padding, tirx.IntImm) and int(padding) == 0):
            v.unsupported(f"{what} of a GM to UB copy has no rule yet", "copy whole rows, or clear the buffer before the copy")
    _require_space(v, dst, "ub", "destination")
    _require_space(v, src, "gm", "source")
    pointers = [full_pointer(v, src, "source"), full_pointer(v, dst, "destination")]
    _require_same_width(v, pointers)
    numbers = [v.expr(cache), v.expr(length), v.expr(bursts), v.expr(src_stride), v.expr(dst_stride)]
    v.b.effect(lambda e: call("pto.mte_gm_ub", *e[:4], nburst=ast.Tuple(list(e[4:7]), ast.Load())), [*pointers, *numbers])


@op("tl.ascend_copy_ubuf_to_gm", arity=8, regions="scalar", emits="mte_ub_gm")
def ascend_copy_ubuf_to_gm(
    v: Visitor, node: Any, dst: Any, src: Any, sid: Any, bursts: Any, length: Any, cache: Any, dst_stride: Any, src_stride: Any
) -> None:
    _require_zero(v, sid, "sid")
    _require_space(v, dst, "gm", "destination")
    _require_space(v, src, "ub", "source")
    hint = v.integer(cache, "the L2 hint")
    if not 0 <= hint < len(STORE_CACHE):
        v.unsupported(f"L2 hint {hint} of a store", f"hints are 0 to {len(STORE_CACHE) - 1}")
    pointers = [full_pointer(v, src, "source"), full_pointer(v, dst, "destination")]
    _require_same_width(v, pointers)
    numbers = [v.expr(length), v.expr(bursts), v.expr(src_stride), v.expr(dst_stride)]
    keywords = {"l2_cache": constant(STORE_CACHE[hint])} if hint else {}
    v.b.effect(lambda e: call("pto.mte_ub_gm", *e[:3], nburst=ast.Tuple(list(e[3:6]), ast.Load()), **keywords), [*pointers, *numbers])


def _require_zero(v: Visitor, node: Any, what: str) -> None:
    if v.integer(node, what) != 0:
        v.unsupported(f"{what} {node} of a copy", "leave it 0")


def _require_space(v: Visitor, node: Any, space: str, what: str) -> None:
    storage = storage_of(v, access_pointer(v, node, what).data)
    if storage.kind != space:
        v.unsupported(f"{what} {storage.name} of the copy lies in {storage.kind}, not in {space}")


def _require_same_width(v: Visitor, pointers: list[Value]) -> None:
    source, destination = pointers
    if source.dtype.bytes != destination.dtype.bytes:
        v.unsupported(f"copy from {source.dtype.pto} to {destination.dtype.pto}", "a copy cannot convert: cast inside a vector function")
