"""Accesses of UB at scattered places: gathers, scatters, strided blocks."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ..caps import MEMORIES
from ..emit import call, constant
from ..registry import op
from ..types import DTYPES, DType, Type, pointer_type
from ..values import Value, VectorAccess
from ..visitor import Visitor
from .memory import UB, access_pointer, cast_pointer, full_pointer
from .simd_arith import bitcast
from .simd_mask import full_mask
from .simd_pairs import register_shape

_BLOCK_STRIDES = 0x7FFF


@op("tl.simd.vgather2", arity=3, regions="simd", emits="vgather2")
def vgather2(v: Visitor, node: Any, pointer: Any, index: Any, m: Any) -> Value:
    """One element per lane, at ``index[lane]`` elements from the pointer. Bytes become 16-bit lanes, zeros in front.

    The predicate is read at the width of the lanes; TIR gives that of the elements in memory.
    """
    element = v.element(access_pointer(v, pointer, "the address of a gather").dtype)
    lanes, result = v.expr(index), v.register_type(node.dtype)
    bits = 16 if element.bits == 8 else element.bits
    _require_index(v, "vgather2", element, lanes, bits)
    if result.dtype.bits != bits:
        v.unsupported(f"vgather2 from {element.pto} memory into {result}", f"the result has {bits}-bit lanes")
    base = full_pointer(v, pointer, "the address of a gather")
    loaded = result if element.bits == 8 else Type("register", element, result.lanes)
    operands = (base, lanes, v.mask(m, bits))
    shape = register_shape(loaded)
    gathered = v.b.pure(
        "vgather2", lambda e: call("pto.vgather2", *e, shape), operands, loaded, hint="gathered", memory=UB, pinned=True, weight=44
    )
    return bitcast(v, gathered, result)


@op("tl.simd.vgatherb", arity=(2, 3), regions="simd", emits=("vgatherb", "pset_b32"))
def vgatherb(v: Visitor, node: Any, pointer: Any, offsets: Any, *m: Any) -> Value:
    """Eight blocks of 32 bytes, at byte offsets that the first eight lanes of a 32-bit register hold."""
    result, lanes = v.register_type(node.dtype), v.expr(offsets)
    if lanes.type.kind != "register" or not lanes.dtype.is_integer or lanes.dtype.bits != 32:
        v.unsupported(f"vgatherb with offsets {lanes.type}", "the offsets are uint32 lanes")
    base = full_pointer(v, pointer, "the address of a gather", result.dtype)
    if m:
        mask = v.mask(m[0], 32)
    else:
        mask = full_mask(v, 32)
    shape = register_shape(result)
    return v.b.pure(
        "vgatherb",
        lambda e: call("pto.vgatherb", *e, shape),
        (base, lanes, mask),
        result,
        hint="gathered",
        memory=UB,
        pinned=True,
        weight=44,
    )


@op("tl.simd.vscatter", arity=4, regions="simd", emits=("vscatter", "vbitcast"))
def vscatter(v: Visitor, node: Any, value: Any, pointer: Any, index: Any, m: Any) -> None:
    """One element per lane, to ``index[lane]`` elements from the pointer. Into byte memory go the low bytes of 16-bit lanes."""
    stored, lanes = v.expr(value), v.expr(index)
    element = v.element(access_pointer(v, pointer, "the address of a scatter").dtype)
    bits = 16 if element.bits == 8 else element.bits
    if stored.type.kind != "register" or stored.dtype.bits not in (element.bits, bits):
        v.unsupported(f"vscatter of {stored.type} to {element.pto} memory", f"the value has {bits}-bit lanes")
    _require_index(v, "vscatter", element, lanes, bits)
    base = full_pointer(v, pointer, "the address of a scatter")
    register = Type("register", element, 256 // element.bytes)
    operands = (bitcast(v, stored, register), base, lanes, v.mask(m, bits))
    scatter = v.b.effect(lambda e: call("pto.vscatter", *e), operands, writes=UB)
    scatter.access = VectorAccess(base, v.index(0), MEMORIES["ub"].size, writes=True)  # anywhere behind the pointer


def _require_index(v: Visitor, name: str, element: DType, lanes: Value, bits: int) -> None:
    if lanes.type.kind != "register" or not lanes.dtype.is_integer or lanes.dtype.bits != bits:
        v.unsupported(f"{name} of {element.pto} with the index {lanes.type}", f"the index has uint{bits} lanes")


@op("tl.simd.vsstb", arity=(4, 5), regions="simd", literals={"update": ("POST_UPDATE",)}, emits="vsstb")
def vsstb(v: Visitor, node: Any, value: Any, pointer: Any, config: Any, m: Any, *update: Any) -> Value | None:
    """Store of eight 32-byte blocks at a stride, both strides counted in blocks: between blocks, and of the pointer.

    With ``POST_UPDATE`` the pointer is a handle and the call gives the advanced one.
    """
    stored = v.expr(value)
    if stored.type.kind != "register":
        v.unsupported(f"vsstb of {stored.type}", "store a register")
    block, advance = _strides(v, config)
    mask = v.mask(m, stored.dtype.bits)
    if not update:
        base = pointer_operand(v, pointer, stored.dtype, "the address of a strided store")
        v.b.effect(lambda e: call("pto.vsstb", *e), (stored, base, block, advance, mask), writes=UB)
        return None
    handle = v.expr(pointer)
    base = cast_pointer(v, handle, stored.dtype)
    on = constant("ON")
    type = pointer_type(stored.dtype, "ub")
    advanced = v.b.action(
        lambda e: call("pto.vsstb", *e, post_update=on), (stored, base, block, advance, mask), type, "advanced", writes=UB
    )
    return cast_pointer(v, advanced, handle.dtype)


def pointer_operand(v: Visitor, pointer: Any, dtype: DType, what: str) -> Value:
    """An access pointer or a handle variable, as pointer to ``dtype``."""
    if isinstance(pointer, tirx.Call) and str(getattr(pointer.op, "name", "")) == "tirx.tvm_access_ptr":
        return full_pointer(v, pointer, what, dtype)
    value = v.expr(pointer)
    if value.type.kind != "pointer":
        v.unsupported(f"{what} is {value.type}", "use an access pointer or T.simd.make_ubuf_ptr")
    return cast_pointer(v, value, dtype)


def _strides(v: Visitor, config: Any) -> tuple[Value, Value]:
    """High and low half of the configuration."""
    packed = v.expr(config)
    stride = Type("scalar", DTYPES["int16"])
    if packed.literal is not None:
        halves = ((int(packed.literal) >> 16) & 0xFFFF, int(packed.literal) & 0xFFFF)
        if max(halves) > _BLOCK_STRIDES:
            v.unsupported(f"strides {halves[0]} and {halves[1]} of vsstb", f"strides are at most {_BLOCK_STRIDES} blocks")
        return v.b.literal(halves[0], stride), v.b.literal(halves[1], stride)
    step = v.arith.number(1 << 16, packed.type)
    return v.arith.floor_divide(packed, step), v.arith.floor_modulo(packed, step)
