"""Scalar accesses of GM past the data cache: what the pipeline makes of tensors that the scalar unit of one kernel both reads and writes.

They carry signless integers; other types travel as the bits of one. They stay where they are: another core may write in between.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ..emit import call, constant
from ..registry import op
from ..types import DTYPES, Type
from ..values import Value
from ..visitor import Visitor, operation_name
from .memory import Address, address, memory_of, storage_of
from .scalar import bits_as


@op("tl.ascend_read_gm_bypass_dcache", arity=1, regions="scalar", emits=("ld_dev", "bitcast"))
def read_gm_bypass_dcache(v: Visitor, node: Any, place: Any) -> Value:
    """One element of a tensor."""
    where, element, carrier, memory = _place(v, place)
    spelled = v.surface.entry("read_uncached", "scalar")
    keywords = {"bypass_l1": constant(True)} if spelled.keywords else {}
    operands = (where.pointer, where.offset)
    read = v.b.action(lambda e: call(spelled.name, *e, **keywords), operands, carrier, f"{place.args[0].buffer.name}_value", writes=memory)
    return v.arith.cast(_as(v, read, element), v.scalar_type(node.dtype))


@op("tl.ascend_write_gm_bypass_dcache", arity=2, regions="scalar", emits=("st_dev", "bitcast"))
def write_gm_bypass_dcache(v: Visitor, node: Any, place: Any, value: Any) -> None:
    """One element of a tensor."""
    where, element, carrier, memory = _place(v, place)
    stored = _as(v, v.arith.cast(v.expr(value), element), carrier)
    spelled = v.surface.entry("write_uncached", "scalar")
    keywords = {"bypass_l1": constant(True)} if spelled.keywords else {}
    order = spelled.order or (0, 1, 2)
    operands = (v.arith.typed(stored), where.pointer, where.offset)
    v.b.effect(lambda e: call(spelled.name, *(e[i] for i in order), **keywords), operands, writes=memory)


def _place(v: Visitor, node: Any) -> tuple[Address, Type, Type, object]:
    """Address, type of the value, type that carries it, and the memory it is in."""
    if not (isinstance(node, tirx.Call) and operation_name(node) == "tirx.address_of" and isinstance(node.args[0], tirx.BufferLoad)):
        v.unsupported("a scalar access past the data cache of something that is no element", "index a tensor")
    load = node.args[0]
    storage = storage_of(v, load.buffer.data)
    if storage.kind != "gm":
        v.unsupported(f"an access past the data cache of {storage.name}, which lies in {storage.kind}", "index a tensor")
    element = v.scalar_type("int8" if str(load.buffer.dtype) == "bool" else load.buffer.dtype)
    carrier = Type("scalar", DTYPES[f"int{element.dtype.bits}"])
    (index,) = load.indices
    return address(v, load.buffer.data, carrier.dtype, index, v.element(load.buffer.dtype)), element, carrier, memory_of(v, storage)


def _as(v: Visitor, value: Value, type: Type) -> Value:
    return value if value.type == type else bits_as(v, value, type)
