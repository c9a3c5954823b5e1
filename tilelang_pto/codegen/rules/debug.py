"""Asserts and prints in device code."""

from __future__ import annotations

from typing import Any

from ..emit import call, constant
from ..registry import TEXT, op
from ..types import I32
from ..values import Value
from ..visitor import Visitor
from .control import only_if


@op("tl.device_assert", arity=1, regions=("scalar", "simt"), emits=("if_", "trap"))
def device_assert(v: Visitor, node: Any, condition: Any) -> None:
    """Stop the kernel where the condition does not hold."""
    _assert(v, condition, "device assert")


@op("tl.device_assert_with_msg", arity=2, regions=("scalar", "simt"), literals={"message": TEXT}, emits=("if_", "trap"))
def device_assert_with_msg(v: Visitor, node: Any, condition: Any, message: Any) -> None:
    """As ``device_assert``. PTODSL's trap takes no text: the message stands as a comment above it, where the simulator reports it from."""
    _assert(v, condition, str(message.value))


def _assert(v: Visitor, condition: Any, message: str) -> None:
    value = v.expr(condition)
    if value.literal is not None and value.literal:
        return
    with only_if(v, v.arith.invert(value)):
        for line in message.splitlines() or [message]:
            v.b.comment(f"assert: {line.strip()}")
        v.b.effect(lambda _: call("pto.trap"))


@op("extern:debug_print_var", arity=2, regions=("scalar", "simt"), literals={"message": TEXT}, emits="print")
def debug_print_var(v: Visitor, node: Any, message: Any, value: Any) -> None:
    """``T.print`` of a value."""
    _print(v, str(message.value), v.expr(value))


@op("extern:debug_print_msg", arity=1, regions=("scalar", "simt"), literals={"message": TEXT}, emits="print")
def debug_print_msg(v: Visitor, node: Any, message: Any) -> None:
    """``T.print`` of a text; the value ``pto.print`` asks for is not shown."""
    text = str(message.value).replace("%", "%%") + "\n"
    v.b.effect(lambda e: call("pto.print", constant(text), e[0]), [v.arith.typed(v.arith.number(0, I32))])


@op("extern:debug_print_buffer_value", arity=5, regions=("scalar", "simt"), literals={"message": TEXT, "name": TEXT}, emits="print")
def debug_print_buffer_value(v: Visitor, node: Any, message: Any, kind: Any, name: Any, index: Any, value: Any) -> None:
    """``T.print`` of one element of a buffer."""
    where = v.expr(index)
    text = f"{message.value} {name.value}"
    _print(v, f"{text} index", where)
    _print(v, text, v.expr(value))


def _print(v: Visitor, message: str, value: Value) -> None:
    """One value with its text: ``pto.print`` takes a single scalar."""
    place = "%f" if value.dtype.is_float else "%d"
    text = message.replace("%", "%%") + f" = {place}\n"
    shown = v.arith.cast(value, v.scalar_type("float32")) if value.dtype.is_float else value
    v.b.effect(lambda e: call("pto.print", constant(text), e[0]), [v.arith.typed(shown)])
