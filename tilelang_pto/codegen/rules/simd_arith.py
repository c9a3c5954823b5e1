"""Arithmetic, selection and rearrangement of vector registers. Masked-off lanes hold zero (``MODE_ZEROING``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..emit import call, path
from ..registry import op
from ..types import DTYPES, Type
from ..values import Value
from ..visitor import Visitor

_INTEGERS = frozenset({"i8", "i16", "i32", "ui8", "ui16", "ui32"})
_WIDE_INTEGERS = frozenset({"i16", "i32", "ui16", "ui32"})
_FLOATS = frozenset({"f16", "bf16", "f32"})
_FULL_FLOATS = frozenset({"f16", "f32"})

LANE_TYPES: dict[str, frozenset[str]] = {
    "vadd": _INTEGERS | _FLOATS, "vsub": _INTEGERS | _FLOATS, "vmul": _WIDE_INTEGERS | _FLOATS, "vdiv": _FULL_FLOATS,
    "vmax": _INTEGERS | _FLOATS, "vmin": _INTEGERS | _FLOATS, "vshl": _INTEGERS, "vshr": _INTEGERS,
    "vadds": _INTEGERS | _FLOATS, "vmuls": _WIDE_INTEGERS | _FULL_FLOATS, "vmaxs": _INTEGERS | _FLOATS, "vmins": _INTEGERS | _FLOATS,
    "vshls": _INTEGERS, "vshrs": _INTEGERS,
    "vexp": _FULL_FLOATS, "vln": _FULL_FLOATS, "vsqrt": _FULL_FLOATS, "vrelu": frozenset({"i32"}) | _FULL_FLOATS,
    "vabs": frozenset({"i8", "i16", "i32"}) | _FULL_FLOATS, "vneg": frozenset({"i8", "i16", "i32"}) | _FULL_FLOATS,
    "vnot": _INTEGERS, "vand": _INTEGERS, "vor": _INTEGERS, "vxor": _INTEGERS,
    "vcadd": _WIDE_INTEGERS | _FULL_FLOATS, "vcmax": _WIDE_INTEGERS | _FULL_FLOATS, "vcmin": _WIDE_INTEGERS | _FULL_FLOATS,
    "vcgadd": _WIDE_INTEGERS | _FULL_FLOATS, "vcgmax": _WIDE_INTEGERS | _FULL_FLOATS, "vcgmin": _WIDE_INTEGERS | _FULL_FLOATS,
    "vcpadd": _FULL_FLOATS, "vlrelu": _FULL_FLOATS, "vprelu": _FULL_FLOATS, "vmula": _WIDE_INTEGERS | _FLOATS, "vmadd": _FLOATS,
    "vaxpy": _FULL_FLOATS, "vmull": frozenset({"i32", "ui32"}), "vsqz": _INTEGERS | _FLOATS, "vdupv": _INTEGERS | _FLOATS,
    "vexpdif": frozenset({"f32"}), "vsel": _INTEGERS | _FLOATS, "vselr": _INTEGERS | _FLOATS,
}  # fmt: skip
"""Element types each operation takes on A5."""

ZEROING: dict[str, tuple[str]] = {"mode": ("MODE_ZEROING",)}
"""Only whole results have a rule; ``MODE_MERGING`` is turned into a choice before."""


@op(*(f"tl.simd.{name}" for name in ("vadd", "vsub", "vmul", "vmax", "vmin", "vshl", "vshr")), arity=4, regions="simd", merges=2,
    literals=ZEROING, dtypes=LANE_TYPES, emits=("vadd", "vsub", "vmul", "vmax", "vmin", "vshl", "vshr"))  # fmt: skip
def lanewise_binary(v: Visitor, node: Any, a: Any, b: Any, m: Any, mode: Any) -> Value:
    return masked(v, node, [v.expr(a), v.expr(b)], m)


@op(*(f"tl.simd.{name}" for name in ("vand", "vor", "vxor")), arity=4, regions="simd", merges=2, literals=ZEROING,
    dtypes=(*sorted(_INTEGERS), *sorted(_FLOATS)), emits=("vand", "vor", "vxor", "vbitcast"))  # fmt: skip
def lanewise_bits(v: Visitor, node: Any, a: Any, b: Any, m: Any, mode: Any) -> Value:
    """Bitwise operations; registers of floats are taken as bits."""
    left, right = v.expr(a), v.expr(b)
    if not left.dtype.is_float:
        return masked(v, node, [left, right], m)
    bits = Type("register", DTYPES[f"uint{left.dtype.bits}"], left.type.lanes)
    name, operands = _name(node), [bitcast(v, left, bits), bitcast(v, right, bits), v.mask(m, left.dtype.bits)]
    combined = v.b.pure(name, lambda e: call(f"pto.{name}", *e), operands, bits, hint="bits", pinned=True, weight=10)
    return bitcast(v, combined, v.register_type(node.dtype))


@op(*(f"tl.simd.{name}" for name in ("vadds", "vmuls", "vmaxs", "vmins", "vshls", "vshrs")), arity=4, regions="simd", merges=2,
    literals=ZEROING, dtypes=LANE_TYPES, emits=("vadds", "vmuls", "vmaxs", "vmins", "vshls", "vshrs"))  # fmt: skip
def lanewise_scalar(v: Visitor, node: Any, a: Any, scalar: Any, m: Any, mode: Any) -> Value:
    value = v.expr(a)
    operand = v.expr(scalar) if _name(node) in ("vshls", "vshrs") else lane_scalar(v, scalar, value.type)
    return masked(v, node, [value, operand], m)


@op(*(f"tl.simd.{name}" for name in ("vabs", "vneg", "vrelu", "vnot")), arity=3, regions="simd", merges=1,
    literals=ZEROING, dtypes=LANE_TYPES, emits=("vabs", "vneg", "vrelu", "vnot"))  # fmt: skip
def lanewise_unary(v: Visitor, node: Any, a: Any, m: Any, mode: Any) -> Value:
    return masked(v, node, [v.expr(a)], m)


@op(*(f"tl.simd.{name}" for name in ("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd")), arity=3, regions="simd",
    merges=1, literals=ZEROING, dtypes=LANE_TYPES, emits=("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd"))  # fmt: skip
def reduction(v: Visitor, node: Any, a: Any, m: Any, mode: Any) -> Value:
    """Whole-register and 32-byte-group reductions; 16-bit integer sums widen to 32 bits."""
    return masked(v, node, [v.expr(a)], m)


@op("tl.simd.vabsdif", arity=(3, 4), regions="simd", merges=2, literals=ZEROING, dtypes=sorted(_FULL_FLOATS), emits=("vsub", "vabs"))
def vabsdif(v: Visitor, node: Any, a: Any, b: Any, m: Any, *mode: Any) -> Value:
    """Magnitude of the rounded difference."""
    left, right = v.expr(a), v.expr(b)
    if left.type != right.type or left.type.kind != "register" or left.dtype.pto not in _FULL_FLOATS:
        v.unsupported(f"vabsdif of {left.type} and {right.type}", "both registers hold float32 or float16")
    mask = v.mask(m, left.dtype.bits)
    difference = v.b.pure("vsub", lambda e: call("pto.vsub", *e), (left, right, mask), left.type, hint="sub", pinned=True, weight=10)
    return v.b.pure("vabs", lambda e: call("pto.vabs", *e), (difference, mask), left.type, hint="distance", pinned=True, weight=10)


@op("tl.simd.vlrelu", "tl.simd.vprelu", arity=(3, 4), regions="simd", merges=2, literals=ZEROING, dtypes=LANE_TYPES,
    emits=("vlrelu", "vprelu"))  # fmt: skip
def leaky(v: Visitor, node: Any, a: Any, slope: Any, m: Any, *mode: Any) -> Value:
    """Negative lanes times a slope: one for all lanes, or one per lane."""
    value = v.expr(a)
    factor = v.expr(slope) if _name(node) == "vprelu" else v.arith.typed(lane_scalar(v, slope, value.type))
    return masked(v, node, [value, factor], m)


@op("tl.simd.vexpdif", arity=3, regions="simd", dtypes=LANE_TYPES, emits="vexpdif")
def vexpdif(v: Visitor, node: Any, a: Any, b: Any, m: Any) -> Value:
    return masked(v, node, [v.expr(a), v.expr(b)], m)


@op("tl.simd.vsel", arity=3, regions="simd", dtypes=LANE_TYPES, emits="vsel")
def vsel(v: Visitor, node: Any, a: Any, b: Any, m: Any) -> Value:
    return masked(v, node, [v.expr(a), v.expr(b)], m)


@op("tl.simd.vselr", arity=2, regions="simd", dtypes=LANE_TYPES, emits="vselr")
def vselr(v: Visitor, node: Any, table: Any, index: Any) -> Value:
    values, where = v.expr(table), v.expr(index)
    check_lanes(v, "vselr", values.type)
    if where.dtype.bits != values.dtype.bits or not where.dtype.is_integer:
        v.unsupported(f"vselr of {values.type} by {where.type}", "the index register needs integers as wide as the data")
    return v.b.pure("vselr", lambda e: call("pto.vselr", *e), (values, where), values.type, hint="picked", pinned=True)


@op("tl.simd.vdup", arity=3, regions="simd", merges=1, literals=ZEROING, emits="vdup")
def vdup(v: Visitor, node: Any, scalar: Any, m: Any, mode: Any) -> Value:
    """Broadcast of a scalar. Immediates often have another dtype than the lanes: the value counts, not the bits."""
    register = v.register_type(node.dtype)
    operand = v.arith.typed(lane_scalar(v, scalar, register))
    return v.b.pure("vdup", lambda e: call("pto.vdup", *e), (operand, v.mask(m, register.dtype.bits)), register, hint="filled", pinned=True)


@op("tl.simd.vci", arity=2, regions="simd", literals={"order": ("INC_ORDER",)}, emits="vci")
def vci(v: Visitor, node: Any, start: Any, order: Any) -> Value:
    """Lane numbers counted from ``start``."""
    register = v.register_type(node.dtype)
    base = v.arith.typed(lane_scalar(v, start, register))
    return v.b.pure("vci", lambda e: call("pto.vci", *e), (base,), register, hint="lane", pinned=True)


def bitcast(v: Visitor, value: Value, type: Type) -> Value:
    """The same 256 bytes as a register of another element type; a round trip is nothing."""
    if value.type == type:
        return value
    if value.bits_of is not None and value.bits_of.type == type:
        return value.bits_of
    origin = value.bits_of or value
    target = f"pto.{type.dtype.pto}"
    made = v.b.pure("vbitcast", lambda e: call("pto.vbitcast", e[0], path(target)), (origin,), type, hint="bits", pinned=True, weight=22)
    made.bits_of = origin
    return made


def lane_scalar(v: Visitor, node: Any, register: Type) -> Value:
    """Scalar operand of a vector operation, in the element type of the lanes."""
    return v.arith.cast(v.expr(node), Type("scalar", register.dtype))


def masked(v: Visitor, node: Any, operands: Sequence[Value], m: Any) -> Value:
    """``pto.<op>(operands..., mask)``, result as TIR says."""
    name = _name(node)
    check_lanes(v, name, operands[0].type)
    for other in operands[1:]:
        if other.type.kind == "register" and other.type != operands[0].type and not _counts(name, operands[0].type, other.type):
            v.unsupported(f"{name} of {operands[0].type} and {other.type}", "bring both registers to one element type")
    result = v.register_type(node.dtype)
    mask = v.mask(m, operands[0].dtype.bits)
    return v.b.pure(name, lambda e: call(f"pto.{name}", *e), (*operands, mask), result, hint=name.removeprefix("v"), pinned=True, weight=10)


def _counts(name: str, type: Type, counts: Type) -> bool:
    """Shift counts are integers as wide as the lanes."""
    return name in ("vshl", "vshr") and counts.dtype.is_integer and counts.dtype.bits == type.dtype.bits


def _name(node: Any) -> str:
    return str(node.op.name).rpartition(".")[2]


def check_lanes(v: Visitor, name: str, type: Type) -> None:
    """Refuse element types the operation does not have on A5."""
    legal = LANE_TYPES[name]
    if type.kind != "register" or type.dtype.pto not in legal:
        v.unsupported(f"{name} on {type}", f"element types are {', '.join(sorted(legal))}")
