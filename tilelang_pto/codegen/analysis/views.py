"""Gives the buffers of a merged allocation back their own data variables.

TileLang's pipeline leaves one allocation for each memory and accesses that count from its beginning. Where the pipeline has noted which
buffer an access belongs to (:class:`..attributes.View`), it counts from the beginning of the buffer again here, so that every
emitted pointer comes from one buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import PointerType, PrimType

from ..attributes import VIEW_SHIFT, VIEWS, View, read_views

__all__ = ["PlacedView", "buffer_like", "is_numbered_access", "restore_views"]


@dataclass(frozen=True, slots=True)
class PlacedView:
    """A buffer of a merged allocation with its data variable in the rewritten body."""

    view: View
    data: Any


def buffer_like(buffer: Any, name: str, data: Any) -> Any:
    """The buffer under another name, or in other memory."""
    return tirx.decl_buffer(
        buffer.shape,
        buffer.dtype,
        name,
        data=data,
        strides=buffer.strides,
        elem_offset=buffer.elem_offset,
        scope=buffer.scope(),
        data_alignment=buffer.data_alignment,
        offset_factor=buffer.offset_factor,
    )


def is_numbered_access(node: Any) -> bool:
    """Whether a call is an access pointer whose mask can hold the number of a view."""
    return str(getattr(node.op, "name", "")) == "tirx.tvm_access_ptr" and isinstance(node.args[4], tirx.IntImm)


def restore_views(func: Any) -> tuple[Any, dict[str, list[PlacedView]]]:
    """The body of a device function with accesses counted from the buffers, and the buffers of each merged allocation by its name."""
    text = (func.attrs or {}).get(VIEWS)
    views = read_views(str(text)) if text is not None else []
    if not views:
        return func.body, {}
    scopes = _scopes(func.body)
    placed: dict[int, PlacedView] = {}
    arenas: dict[str, list[PlacedView]] = {}
    for view in views:
        if view.arena in scopes:
            data = tirx.Var(view.name, PointerType(PrimType(view.element), scopes[view.arena]))
            placed[view.number] = PlacedView(view, data)
            arenas.setdefault(view.arena, []).append(placed[view.number])
    owners = {name: one for one in placed.values() for name in one.view.buffers}
    buffers: dict[Any, Any] = {}

    def owner_of(buffer: Any) -> PlacedView | None:
        one = owners.get(str(buffer.name))
        return one if one is not None and str(buffer.data.name) == one.view.arena else None

    def own(buffer: Any, data: Any) -> Any:
        if buffer not in buffers:
            buffers[buffer] = buffer_like(buffer, str(buffer.name), data)
        return buffers[buffer]

    def rewrite(node: Any) -> Any:
        if isinstance(node, tirx.Call):
            if not is_numbered_access(node):
                return None
            mask = int(node.args[4])
            one = placed.get(mask >> VIEW_SHIFT)
            if mask >> VIEW_SHIFT == 0:
                return None
            data, index = node.args[1], node.args[2]
            if one is not None and str(data.name) == one.view.arena:
                data, index = one.data, _less(index, _elements(one.view.begin, node.args[0].dtype))
            plain = tirx.IntImm(node.args[4].dtype, mask & ((1 << VIEW_SHIFT) - 1))
            return tirx.Call(node.dtype, node.op, [node.args[0], data, index, node.args[3], plain], node.annotations, node.span)
        one = owner_of(node.buffer)
        if one is None:
            return None
        buffer = own(node.buffer, one.data)
        if isinstance(node, tirx.DeclBuffer):
            return tirx.DeclBuffer(buffer)
        first, *others = node.indices
        indices = [_less(first, _elements(one.view.begin, buffer.dtype)), *others]
        if isinstance(node, tirx.BufferLoad):
            return tirx.BufferLoad(buffer, indices, node.predicate, node.span)
        return tirx.BufferStore(buffer, node.value, indices, node.predicate)

    kinds = ["tirx.Call", "tirx.BufferLoad", "tirx.BufferStore", "tirx.DeclBuffer"]
    return tirx.stmt_functor.ir_transform(func.body, lambda node: None, rewrite, kinds), arenas


def _scopes(body: Any) -> dict[str, str]:
    """Memory scopes of the allocations by name; without those whose name is not their own."""
    found: dict[str, set[str]] = {}

    def visit(node: Any) -> None:
        if isinstance(node, tirx.AllocBuffer):
            scopes = found.setdefault(str(node.buffer.data.name), set())
            scopes.add(str(node.buffer.scope()) if not scopes else "")

    tirx.stmt_functor.post_order_visit(body, visit)
    return {name: next(iter(scopes)) for name, scopes in found.items() if len(scopes) == 1}


def _elements(begin: int, dtype: Any) -> int:
    """Where a view begins, in elements."""
    type = tvm.DataType(str(dtype))
    return int(begin * 8 // (type.bits * type.lanes))


def _less(index: Any, amount: int) -> Any:
    """``index - amount``; a constant among its terms takes it up."""
    if amount == 0:
        return index
    if isinstance(index, tirx.Ramp):
        return tirx.Ramp(_less(index.base, amount), index.stride, index.lanes)
    lanes = tvm.DataType(str(index.dtype)).lanes
    if lanes > 1:
        scalar = str(index.dtype).removesuffix(f"x{lanes}")
        return tirx.Sub(index, tirx.Broadcast(tirx.IntImm(scalar, amount), lanes))
    added: list[Any] = []
    taken: list[Any] = []
    constant = -amount

    def split(node: Any, sign: int) -> None:
        nonlocal constant
        if isinstance(node, (tirx.Add, tirx.Sub)):
            split(node.a, sign)
            split(node.b, sign if isinstance(node, tirx.Add) else -sign)
        elif isinstance(node, tirx.IntImm):
            constant += sign * int(node)
        else:
            (added if sign > 0 else taken).append(node)

    split(index, 1)
    if not added or constant > 0:
        added.append(tirx.IntImm(index.dtype, constant))
        constant = 0
    total = added[0]
    for term in added[1:]:
        total = tirx.Add(total, term)
    for term in taken:
        total = tirx.Sub(total, term)
    return tirx.Sub(total, tirx.IntImm(total.dtype, -constant)) if constant else total
