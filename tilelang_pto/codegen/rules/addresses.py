"""Pointers made from integers: tables of addresses in GM (``T.make_tensor(table[i], ...)``).

An address becomes a pointer where it is bound to a variable, whose annotation tells what it points to; from there on the variable is the
storage of a tensor in GM like a kernel argument. It may be one: what is stored through it and through the arguments is taken to alias.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.ir import PointerType

from ..emit import call
from ..types import pointer_type
from ..visitor import Storage, Visitor, operation_name
from .memory import pointer_type_expression

__all__ = ["bind_address", "binds_address", "has_addresses"]


def binds_address(node: Any) -> bool:
    """Whether a ``Bind`` makes a pointer from an integer."""
    value = node.value
    return isinstance(value, tirx.Call) and str(value.dtype) == "handle" and operation_name(value) == "tirx.reinterpret"


def has_addresses(body: Any) -> bool:
    """Whether pointers are made from integers anywhere in a kernel."""
    found = False

    def visit(node: Any) -> None:
        nonlocal found
        found = found or (isinstance(node, tirx.Bind) and binds_address(node))

    tirx.stmt_functor.post_order_visit(body, visit)
    return found


def bind_address(v: Visitor, node: Any) -> None:
    """``pointer = castptr(address)``."""
    name, annotation = str(node.var.name), node.var.type_annotation
    if not isinstance(annotation, PointerType):
        v.unsupported(f"address {name} without the type it points to", "make the tensor with T.make_tensor")
    if str(annotation.storage_scope) not in ("", "global"):
        v.unsupported(f"address {name} of memory scope {annotation.storage_scope}", "only addresses of GM lie in memory")
    address = v.expr(node.value.args[0])
    if not address.dtype.is_integer or address.dtype.bits != 64:
        v.unsupported(f"address {name} made from {address.dtype.tir}", "tables of addresses are int64 or uint64 (T.ptr)")
    element = str(annotation.element_type.dtype)
    type = pointer_type(v.element("int8" if element == "bool" else element), "gm")
    pointer = v.b.pure(
        "castptr", lambda e: call("pto.castptr", e[0], pointer_type_expression(type)), (v.arith.typed(address),), type, hint=name, weight=30
    )
    pointer.keep_name = True
    v.storage[node.var] = Storage("gm", name, element, pointer)
