"""Lanes moved inside a register: broadcast of a lane, packing, unpacking, squeezing."""

from __future__ import annotations

from typing import Any

from ..emit import call, constant
from ..registry import op
from ..types import DTYPES, Type
from ..values import Value
from ..visitor import Visitor
from .simd_arith import LANE_TYPES, ZEROING, bitcast, check_lanes
from .simd_mask import full_mask
from .simd_pairs import pair

_HALVES = ("LOWER", "HIGHER")
_COUNTED = ("i8", "i16", "i32")


@op("tl.simd.vdupv", arity=4, regions="simd", merges=1, literals={"position": ("POS_LOWEST", "POS_HIGHEST"), **ZEROING},
    dtypes=LANE_TYPES, emits=("vdup", "vselr", "vand", "vbitcast"))  # fmt: skip
def vdupv(v: Visitor, node: Any, a: Any, m: Any, position: Any, mode: Any) -> Value:
    """Broadcast of the first or the last lane. A5 broadcasts the first only; the last is picked by its number."""
    value = v.expr(a)
    check_lanes(v, "vdupv", value.type)
    mask = v.mask(m, value.dtype.bits)
    if position.value == "POS_LOWEST":
        lowest = constant("LOWEST")
        return v.b.pure("vdupv", lambda e: call("pto.vdup", *e, lowest), (value, mask), value.type, hint="first", pinned=True, weight=20)
    bits = Type("register", DTYPES[f"uint{value.dtype.bits}"], value.type.lanes)
    last = v.arith.typed(v.arith.number(bits.lanes - 1, Type("scalar", bits.dtype)))
    index = v.b.pure("vdup", lambda e: call("pto.vdup", *e), (last, mask), bits, hint="last_lane", pinned=True)
    picked = v.b.pure("vselr", lambda e: call("pto.vselr", *e), (bitcast(v, value, bits), index), bits, hint="picked", pinned=True)
    active = v.b.pure("vand", lambda e: call("pto.vand", *e), (picked, picked, mask), bits, hint="last", pinned=True, weight=10)
    return bitcast(v, active, value.type)


@op("tl.simd.vpack", arity=2, regions="simd", literals={"part": _HALVES}, emits=("vpack", "vbitcast"))
def vpack(v: Visitor, node: Any, a: Any, part: Any) -> Value:
    """The low half of every lane, in one half of the result; the other half is zero."""
    value = v.expr(a)
    result = v.register_type(node.dtype)
    if value.type.kind != "register" or value.dtype.bits not in (16, 32) or result.dtype.bits * 2 != value.dtype.bits:
        v.unsupported(f"vpack of {value.type} to {result}", "pack 32-bit lanes to 16 bits or 16-bit lanes to 8 bits")
    return bitcast(v, pack(v, value, str(part.value)), result)


def pack(v: Visitor, value: Value, half: str) -> Value:
    """The low half of every lane (of integers of twice the width of the result's), in one half of the result."""
    bits = value.dtype.bits
    source = bitcast(v, value, Type("register", DTYPES[f"uint{bits}"], value.type.lanes))
    narrow = Type("register", DTYPES[f"uint{bits // 2}"], 2 * value.type.lanes)
    return v.b.pure(
        ("vpack", half), lambda e: call("pto.vpack", e[0], constant(half)), (source,), narrow, hint="packed", pinned=True, weight=20
    )


@op("tl.simd.vunpack", arity=2, regions="simd", literals={"part": _HALVES}, dtypes=("i8", "ui8", "i16", "ui16"),
    emits=("vsunpack", "vzunpack", "vintlv", "vshls", "vshrs", "vbitcast", "vbr", "pset_b16", "pset_b32"))  # fmt: skip
def vunpack(v: Visitor, node: Any, a: Any, part: Any) -> Value:
    """One half of a register, its lanes widened: zeros or copies of the sign in front."""
    value = v.expr(a)
    result = v.register_type(node.dtype)
    signed = value.dtype.category == "int"
    narrow = value.type.kind == "register" and value.dtype.is_integer and value.dtype.bits in (8, 16)
    if not narrow or result.dtype.bits != 2 * value.dtype.bits or result.dtype.category != value.dtype.category:
        v.unsupported(f"vunpack of {value.type} to {result}", "unpack 8 or 16-bit integers to twice their width")
    half = str(part.value)
    function = "vsunpack" if signed else "vzunpack"
    if v.surface.lookup(f"pto.{function}") is not None:
        return v.b.pure(
            (function, half), lambda e: call(f"pto.{function}", e[0], constant(half)), (value,), result, hint="wide", pinned=True, weight=20
        )
    return _unpacked_by_zeros(v, value, result, half, signed)


def _unpacked_by_zeros(v: Visitor, value: Value, result: Type, half: str, signed: bool) -> Value:
    """A register zipped with zeros has the lanes at twice the width; shifts then spread the sign."""
    zeros = v.zero(f"{value.dtype.tir}x{value.type.lanes}")
    types = (value.type, value.type)
    zipped = pair(v, lambda e: call("pto.vintlv", *e), (value, zeros), types, ("low", "high")).components[_HALVES.index(half)]
    unsigned = bitcast(v, zipped, Type("register", DTYPES[f"uint{result.dtype.bits}"], result.lanes))
    if not signed:
        return unsigned
    count = v.b.literal(value.dtype.bits, Type("scalar", DTYPES["int16"]))
    full = full_mask(v, result.dtype.bits)
    upper = v.b.pure("vshls", lambda e: call("pto.vshls", *e), (unsigned, count, full), unsigned.type, hint="upper", pinned=True)
    return v.b.pure(
        "vshrs", lambda e: call("pto.vshrs", *e), (bitcast(v, upper, result), count, full), result, hint="wide", pinned=True, weight=10
    )


@op("tl.simd.vsqz", arity=3, regions="simd", literals={"mode": ("MODE_STORED",)}, dtypes=LANE_TYPES, emits="vsqz")
def vsqz(v: Visitor, node: Any, a: Any, m: Any, mode: Any) -> Value:
    """Active lanes to the front, zeros behind them."""
    value = v.expr(a)
    check_lanes(v, "vsqz", value.type)
    return v.b.pure(
        "vsqz", lambda e: call("pto.vsqz", *e), (value, v.mask(m, value.dtype.bits)), value.type, hint="squeezed", pinned=True, weight=10
    )


@op("tl.simd.vusqz", arity=1, regions="simd", dtypes=_COUNTED, emits=("vusqz",))
def vusqz(v: Visitor, node: Any, m: Any) -> Value:
    """For every lane, how many lanes before it are active."""
    result = v.register_type(node.dtype)
    if result.dtype.pto not in _COUNTED:
        v.unsupported(f"vusqz into {result}", "use int8, int16 or int32 lanes")
    if v.surface.lookup("pto.vusqz") is None:
        v.unsupported(f"PTODSL {v.surface.name} has no vusqz", "compile for the 2026-09 surface")
    shape = v.zero(str(node.dtype))  # tells the element type; the values are not read
    mask = v.mask(m, result.dtype.bits)
    return v.b.pure("vusqz", lambda e: call("pto.vusqz", *e), (shape, mask), result, hint="before", pinned=True, weight=10)
