"""Which buffer of the kernel an access in a merged memory belongs to.

TileLang puts the buffers of a memory into one allocation and writes every access as an index into that. An instrument watches the pass
that does it: before it, every access pointer gets the number of its buffer, in bits of its access mask that TileLang does not look at;
behind it, the place of each buffer is read off the accesses and kept in an attribute of the device function. The code generator
gives each buffer a pointer of its own again (:mod:`tilelang_pto.codegen.analysis.views`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import IRModule, tirx
from tvm.ir.transform import PassContext
from tvm.target import Target

from tilelang_pto.codegen.analysis.views import buffer_like, is_numbered_access
from tilelang_pto.codegen.attributes import VIEW_SHIFT, VIEWS, View, write_views
from tilelang_pto.codegen.naming import free_name

__all__ = ["lower_with_views"]

_MERGE = "tl.MergeUBAllocations"
_MERGED = "shared"
"""What the memory scopes of buffers that may be merged begin with."""

Lower = Callable[[IRModule, Target], IRModule]


@dataclass
class _Allocation:
    number: int
    name: str
    data: Any
    element: str
    size: int
    extent: str
    buffers: list[str] = field(default_factory=list)


def lower_with_views(lower: Lower) -> Lower:
    """``lower``, which keeps in device functions where the buffers of merged memories lie."""

    def lowered(mod: IRModule, target: Target) -> IRModule:
        allocations: dict[str, list[_Allocation]] = {}

        @tvm.instrument.pass_instrument
        class Watcher:
            def run_before_pass(self, module: IRModule, info: Any) -> None:
                if info.name == _MERGE:
                    for name, func in _functions(module):
                        allocations[name], numbered = _number_buffers(func)
                        _update(module, name, func, numbered)

            def run_after_pass(self, module: IRModule, info: Any) -> None:
                if info.name == _MERGE:
                    for name, func in _functions(module):
                        views = _places(func, allocations.get(name, []))
                        _update(module, name, func, func.with_attr(VIEWS, write_views(views)) if views else func)

        now = PassContext.current()
        config = {str(key): value for key, value in now.config.items()}
        with PassContext(now.opt_level, now.required_pass, now.disabled_pass, [*now.instruments, Watcher()], config):
            return lower(mod, target)

    return lowered


def _functions(mod: IRModule) -> list[tuple[str, tirx.PrimFunc]]:
    return [(str(var.name_hint), func) for var, func in mod.functions.items() if isinstance(func, tirx.PrimFunc)]


def _update(mod: IRModule, name: str, old: tirx.PrimFunc, new: tirx.PrimFunc) -> None:
    """Change a function of a module in place: what an instrument returns is not looked at."""
    if not new.same_as(old):
        mod.update_func(mod.get_global_var(name), new)


# -- before the pass -----------------------------------------------------------------------------------------------------


def _number_buffers(func: tirx.PrimFunc) -> tuple[list[_Allocation], tirx.PrimFunc]:
    """The allocations of a function, and the function with their numbers in its access pointers and each buffer under a name of its own."""
    allocations: dict[Any, _Allocation] = {}
    renamed: dict[Any, Any] = {}
    owners: dict[str, _Allocation] = {}  # of the names of buffers

    def collect(node: Any) -> None:
        if not isinstance(node, (tirx.AllocBuffer, tirx.DeclBuffer)) or not str(node.buffer.scope()).startswith(_MERGED):
            return
        buffer = node.buffer
        if isinstance(node, tirx.AllocBuffer) and buffer.data not in allocations:
            names = {allocation.name for allocation in allocations.values()}
            name = free_name(str(buffer.data.name), names.__contains__)
            extent = " x ".join(str(int(extent) if isinstance(extent, tirx.IntImm) else extent) for extent in buffer.shape)
            allocations[buffer.data] = _Allocation(len(allocations) + 1, name, buffer.data, str(buffer.dtype), _bytes(buffer), extent)
        owner = allocations.get(buffer.data)
        if owner is None or buffer in renamed:
            return
        name = free_name(str(buffer.name), {name for name, other in owners.items() if other is not owner}.__contains__)
        owners[name] = owner
        if name not in owner.buffers:
            owner.buffers.append(name)
        renamed[buffer] = buffer if name == str(buffer.name) else buffer_like(buffer, name, buffer.data)

    _visit_statements(func.body, collect)
    if not allocations:
        return [], func

    def rewrite(node: Any) -> Any:
        if isinstance(node, tirx.Call):
            owner = allocations.get(node.args[1]) if is_numbered_access(node) else None
            if owner is None:
                return None
            mask = tirx.IntImm(node.args[4].dtype, int(node.args[4]) | owner.number << VIEW_SHIFT)
            return tirx.Call(node.dtype, node.op, [*node.args[:4], mask], node.annotations, node.span)
        new = renamed.get(node.buffer)
        if new is None or new.same_as(node.buffer):
            return None
        if isinstance(node, tirx.BufferLoad):
            return tirx.BufferLoad(new, node.indices, node.predicate, node.span)
        if isinstance(node, tirx.BufferStore):
            return tirx.BufferStore(new, node.value, node.indices, node.predicate)
        return tirx.DeclBuffer(new) if isinstance(node, tirx.DeclBuffer) else tirx.AllocBuffer(new, node.annotations)

    kinds = ["tirx.Call"]
    if any(not new.same_as(old) for old, new in renamed.items()):
        kinds += ["tirx.BufferLoad", "tirx.BufferStore", "tirx.DeclBuffer", "tirx.AllocBuffer"]
    body = tirx.stmt_functor.ir_transform(func.body, lambda node: None, rewrite, kinds)
    return list(allocations.values()), func.with_body(body)


def _visit_statements(body: Any, visit: Callable[[Any], None]) -> None:
    """Allocations, then declarations (another shape of a buffer may be declared in front of it), each in the order of the text."""
    found: list[Any] = []

    def keep(node: Any) -> None:
        found.append(node)

    tirx.stmt_functor.ir_transform(body, keep, lambda node: None, ["tirx.AllocBuffer", "tirx.DeclBuffer"])
    for node in sorted(found, key=lambda node: isinstance(node, tirx.DeclBuffer)):
        visit(node)


def _bytes(buffer: Any) -> int:
    """Size of a buffer; 0 if it is not constant."""
    bits = tvm.DataType(str(buffer.dtype)).bits * tvm.DataType(str(buffer.dtype)).lanes
    count = 1
    for extent in buffer.shape:
        count *= int(extent) if isinstance(extent, tirx.IntImm) else 0
    return int(-(-count * bits // 8))


# -- behind the pass -----------------------------------------------------------------------------------------------------


def _places(func: tirx.PrimFunc, allocations: list[_Allocation]) -> list[View]:
    """The allocations that have become part of another, with their places in it. Those of which the place cannot be told are left out."""
    numbers = {name: allocation.number for allocation in allocations for name in allocation.buffers}
    found: dict[int, set[tuple[str, int | None]]] = {}

    def visit(node: Any) -> None:
        if isinstance(node, tirx.Call):
            if is_numbered_access(node):
                note(int(node.args[4]) >> VIEW_SHIFT, node.args[1], node.args[2])
        elif isinstance(node, (tirx.BufferLoad, tirx.BufferStore)) and len(node.indices) == 1:
            note(numbers.get(str(node.buffer.name), 0), node.buffer.data, node.indices[0])

    def note(number: int, data: Any, index: Any) -> None:
        if 0 < number <= len(allocations) and not data.same_as(allocations[number - 1].data):
            found.setdefault(number, set()).add((str(data.name), _first_byte(index)))

    tirx.stmt_functor.post_order_visit(func.body, visit)
    views = []
    for number, places in sorted(found.items()):
        allocation = allocations[number - 1]
        arena, begin = places.pop()
        if not places and begin is not None and allocation.size:
            views.append(
                View(
                    number, allocation.name, arena, begin, allocation.size, allocation.element, allocation.extent, tuple(allocation.buffers)
                )
            )
    return views


def _first_byte(index: Any) -> int | None:
    """Where the buffer of an access begins: the pass adds ``bits // bits of an element`` to the index."""
    found: list[int] = []
    pending = [index]
    while pending:
        term = pending.pop()
        if isinstance(term, tirx.Add):
            pending += [term.a, term.b]
        elif isinstance(term, tirx.Broadcast):  # to the index of a vector
            pending.append(term.value)
        elif isinstance(term, tirx.FloorDiv) and isinstance(term.a, tirx.IntImm) and isinstance(term.b, tirx.IntImm):
            found.append(int(term.a))
    return found[0] // 8 if len(found) == 1 and found[0] % 8 == 0 else None
