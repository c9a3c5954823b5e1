"""Scalars: constants, operators, functions, casts, core queries, and short vectors."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin.registry import AUGUST, EVERYWHERE, IN_KERNEL, NOT_SIMT, SEPTEMBER, SIMT, declare_opcodes, entry
from tilelang_pto.sim.standin.types import PLAIN, DType, PtrType, VecType
from tilelang_pto.sim.standin.values import SurfaceScalar, Value, VecValue, describe

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

I1, I32, I64, INDEX, F32 = PLAIN["i1"], PLAIN["i32"], PLAIN["i64"], PLAIN["index"], PLAIN["f32"]

declare_opcodes("const", "add", "sub", "mul", "div", "floordiv", "rem", "and", "or", "xor", "cmp", "cast")

_SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "rem": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
}
_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")

ROUNDINGS = {
    "to_nearest_even": "r", "r": "r", "to_nearest_away": "a", "a": "a", "downward": "f", "f": "f", "upward": "c", "c": "c",
    "toward_zero": "z", "z": "z", "to_odd": "o", "o": "o", "hybrid": "h", "h": "h",
}  # fmt: skip
SATURATIONS = {"sat": "sat", "on": "sat", "nosat": "nosat", "off": "nosat"}
_FASTMATH = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "fast")


# -- constants ---------------------------------------------------------------------------------------------


def _fit(rec: Recorder, value: int, dtype: DType) -> int:
    """``value`` as the 64-bit integer that the program form holds."""
    bits = dtype.bits
    low = -(1 << (bits - 1)) if bits > 1 else -1
    high = (1 << bits) - 1
    if dtype.signed and (dtype.name[:2] == "si" or dtype.family == "index"):
        high = (1 << (bits - 1)) - 1
    if not low <= value <= high:
        rec.refuse(f"{value} does not fit into {dtype.name}", f"a value from {low} to {high}")
    if bits == 1:
        return value & 1
    if dtype.signed:
        half = 1 << (bits - 1)
        return ((value + half) & ((1 << bits) - 1)) - half
    value &= (1 << bits) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


def constant(rec: Recorder, value: Any, dtype: DType) -> SurfaceScalar:
    """A constant of type ``dtype``; equal constants of one region are one value."""
    attributes: dict[str, int | str | float]
    known: int | float
    if isinstance(value, SurfaceScalar):
        return cast_to(rec, value, dtype)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        rec.refuse(f"{describe(value)} is not a constant", "an int or a float")
    if dtype.is_float:
        if isinstance(value, str):
            return _float_text(rec, value, dtype)
        known = float(value)
        attributes = {"value": known}
        key: object = struct.pack("<d", known)
    elif dtype.is_integral:
        if not isinstance(value, int):
            rec.refuse(f"{describe(value)} is not a constant of type {dtype.name}", "an int")
        number = _fit(rec, value, dtype)
        known = number if dtype.signed else number & ((1 << dtype.bits) - 1)
        attributes = {"value": number}
        key = number
    else:
        rec.refuse(f"there are no constants of type {dtype.name}", "an i8 constant with the bit pattern")
    return _emit_constant(rec, dtype, attributes, key, known)


def _float_text(rec: Recorder, text: str, dtype: DType) -> SurfaceScalar:
    lowered = text.strip().lower()
    if lowered.startswith("0x"):
        try:
            bits = int(lowered, 16)
        except ValueError:
            rec.refuse(f"{text!r} is not a bit pattern", "hexadecimal digits after 0x")
        if bits >= 1 << dtype.bits:
            rec.refuse(f"bit pattern {text} is wider than {dtype.name}", f"{dtype.bits // 4} hexadecimal digits")
        return _emit_constant(rec, dtype, {"bits": bits}, ("bits", bits), 0.0)
    try:
        number = float(lowered)
    except ValueError:
        rec.refuse(f"{text!r} is not a float constant", 'a number, "inf", "-inf", "nan" or a bit pattern such as "0x7F800000"')
    return _emit_constant(rec, dtype, {"value": number}, struct.pack("<d", number), number)


def _emit_constant(rec: Recorder, dtype: DType, attributes: dict[str, int | str | float], key: object, known: int | float) -> SurfaceScalar:
    scope = rec.scope
    if scope is None:
        rec.refuse("a constant outside of a kernel", "make constants inside the kernel")
    full = (dtype.name, "", key)
    place, search = scope.place, scope
    while True:  # constants of enclosing regions are shared, but not across the border of a vector or SIMT function
        number = search.constants.get(full)
        if number is not None:
            return SurfaceScalar(rec, number, search, dtype, known)
        if search.parent is None or search.parent.place != place:
            break
        search = search.parent
    value: SurfaceScalar = rec.emit("const", (), (dtype,), attributes)[0]
    value.known = known
    scope.constants[full] = value.id
    return value


@entry("const", opcodes=("const",))
def const(rec: Recorder, value: Any, *, dtype: DType | None = None) -> SurfaceScalar:
    """``pto.const(value, dtype=...)``; the type is ``index`` when not given."""
    if dtype is None:
        dtype = INDEX
    if not isinstance(dtype, DType):
        rec.refuse(f"dtype={describe(dtype)} is not an element type", "pto.f32, pto.i32, pto.index, ...")
    return constant(rec, value, dtype)


# -- coercion of arguments ---------------------------------------------------------------------------------


def is_literal(value: object) -> bool:
    """A Python number that may stand for a runtime one."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def scalar_of(rec: Recorder, name: str, value: Any, dtype: DType) -> SurfaceScalar:
    """``value`` as a scalar of exactly ``dtype``: a literal becomes a constant, anything else must have the type."""
    if isinstance(value, SurfaceScalar):
        if value.dtype.record != dtype.record:
            rec.refuse(f"{name} is {describe(value)}, {dtype.name} is needed", f"cast it to pto.{dtype.name}")
        return value
    if not is_literal(value):
        rec.refuse(f"{name} is {describe(value)}, a {dtype.name} is needed", "a runtime scalar or a Python number")
    if isinstance(value, float) and not dtype.is_float:
        rec.refuse(f"{name} is the float {value}, {dtype.name} is needed", "an int")
    return constant(rec, value, dtype)


def integral(rec: Recorder, name: str, value: Any, literal: DType = INDEX) -> SurfaceScalar:
    """An offset, count or stride: a runtime integer or index as it is, a Python int as a constant of type ``literal``."""
    if isinstance(value, SurfaceScalar):
        if not value.dtype.is_integral:
            rec.refuse(f"{name} is {describe(value)}", "an integer or index")
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        rec.refuse(f"{name} is {describe(value)}", "a Python int, a runtime integer or an index")
    return constant(rec, value, literal)


def convert_integral(rec: Recorder, name: str, value: Any, dtype: DType) -> SurfaceScalar:
    """As :func:`integral`, then cast to ``dtype``."""
    return cast_to(rec, integral(rec, name, value, dtype), dtype)


def static_int(rec: Recorder, name: str, value: Any, low: int, high: int) -> int:
    """A Python int in a range."""
    if isinstance(value, bool) or not isinstance(value, int):
        rec.refuse(f"{name} is {describe(value)}, a Python int is needed", f"an int from {low} to {high}")
    if not low <= value <= high:
        rec.refuse(f"{name}={value} is out of range", f"{low} to {high}")
    return value


def static_flag(rec: Recorder, name: str, value: Any) -> int:
    """``True``, ``False``, 1 or 0 as a number."""
    if not isinstance(value, int) or value not in (0, 1):
        rec.refuse(f"{name} is {describe(value)}", "True or False")
    return int(value)


def token(rec: Recorder, name: str, value: Any, legal: tuple[str, ...] | frozenset[str], prefix: str = "", fold: bool = False) -> str:
    """A word out of ``legal``; ``prefix`` may stand before it."""
    if isinstance(value, str):
        word = value.upper() if fold else value
        if word in legal:
            return word
        if prefix and word.startswith(prefix) and word[len(prefix) :] in legal:
            return word[len(prefix) :]
    rec.refuse(f"{name}={value!r} is not legal", "one of " + ", ".join(sorted(legal)))


# -- casts -------------------------------------------------------------------------------------------------


def cast_to(rec: Recorder, value: SurfaceScalar, dtype: DType, attributes: dict[str, int | str | float] | None = None) -> SurfaceScalar:
    """``value`` in type ``dtype``; nothing is recorded when the recorded type stays the same."""
    if value.dtype.record == dtype.record:
        return SurfaceScalar(rec, value.id, value.scope, dtype, value.known)
    known = value.known
    if isinstance(known, int) and dtype.is_integral and value.dtype.is_integral and value.dtype.bits > 1:
        high = (1 << (dtype.bits - 1)) - 1 if dtype.signed else (1 << dtype.bits) - 1
        if dtype.bits > 1 and -(1 << (dtype.bits - 1)) * dtype.signed <= known <= high:
            return constant(rec, known, dtype)
    result: SurfaceScalar = rec.emit1("cast", (value,), dtype, attributes)
    return result


def _cast_attributes(rec: Recorder, rounding: Any, saturation: Any) -> dict[str, int | str | float]:
    attributes: dict[str, int | str | float] = {}
    if rounding is not None:
        word = ROUNDINGS.get(rounding.lower()) if isinstance(rounding, str) else None
        if word is None:
            rec.refuse(f"rounding={rounding!r} is not legal", "one of " + ", ".join(ROUNDINGS))
        attributes["rounding"] = word
    if saturation is not None:
        word = SATURATIONS.get(saturation.lower()) if isinstance(saturation, str) else None
        if word is None:
            rec.refuse(f"saturation={saturation!r} is not legal", "one of " + ", ".join(SATURATIONS))
        attributes["saturation"] = word
    return attributes


def _cast(rec: Recorder, value: Any, dtype: Any, attributes: dict[str, int | str | float]) -> Any:
    if not isinstance(dtype, DType):
        rec.refuse(f"cast to {describe(dtype)}", "an element type such as pto.f32")
    if dtype.family == "storage":
        rec.refuse(f"there are no scalars of type {dtype.name}", "load the byte as pto.i8 and convert on vectors")
    if isinstance(value, VecValue):
        if value.type.element == dtype:
            return value
        return rec.emit1("cast", (value,), VecType(dtype, value.type.lanes), attributes)
    if not isinstance(value, SurfaceScalar):
        rec.refuse(f"cast of {describe(value)}", "a runtime scalar; pto.const(x, dtype=...) makes constants")
    if attributes:
        if value.dtype == dtype:
            rec.refuse("a cast to the same type takes no rounding or saturation", "leave the attributes out")
        if value.dtype.is_integral and dtype.is_integral and value.dtype.bits == dtype.bits:
            rec.refuse("a cast that only changes signedness takes no rounding or saturation", "leave the attributes out")
    return cast_to(rec, value, dtype, attributes or None)


@entry("cast", aug="scalar", sep=None)
def cast_aug(rec: Recorder, value: Any, dtype: Any) -> Any:
    """``scalar.cast(value, dtype)``."""
    return _cast(rec, value, dtype, {})


@entry("cast", aug=None)
def cast_sep(
    rec: Recorder, value: Any, dtype: Any, *, rounding: Any = None, saturation: Any = None, overflow: Any = None, fastmath: Any = None
) -> Any:
    """``pto.cast(value, dtype, ...)``."""
    _flags(rec, overflow, fastmath)
    return _cast(rec, value, dtype, _cast_attributes(rec, rounding, saturation))


@entry("convert", sep=None, opcodes=("cast",), places=frozenset({"simt"}))
def convert(rec: Recorder, src: Any, dst_type: Any, *, rounding: Any, saturation: Any, signedness: Any = None) -> Any:
    """``pto.convert(src, dtype, rounding=, saturation=)`` of the 2026-08 API."""
    if isinstance(src, SurfaceScalar) and isinstance(dst_type, DType) and src.dtype.is_integral and dst_type.is_integral:
        rec.refuse("pto.convert does not convert integers to integers", "scalar.cast(x, dtype)")
    if signedness not in (None, "signed", "unsigned"):
        rec.refuse(f"signedness={signedness!r} is not legal", "signed or unsigned")
    if signedness == "unsigned" and isinstance(src, SurfaceScalar) and isinstance(dst_type, DType):
        attributes = _cast_attributes(rec, rounding, saturation)
        if src.dtype.is_integer:
            return _cast(rec, cast_to(rec, src, PLAIN[f"ui{src.dtype.bits}"]), dst_type, attributes)
        return cast_to(rec, _cast(rec, src, PLAIN[f"ui{dst_type.bits}"], attributes), dst_type)
    return _cast(rec, src, dst_type, _cast_attributes(rec, rounding, saturation))


@entry("index_cast", aug="scalar", sep=None, opcodes=("cast",))
def index_cast(rec: Recorder, type_or_val: Any, val: Any = None) -> Any:
    """``scalar.index_cast(value)`` or ``scalar.index_cast(type, value)``."""
    dtype, value = (INDEX, type_or_val) if val is None else (type_or_val, val)
    if isinstance(value, SurfaceScalar) and not value.dtype.is_integral:
        rec.refuse(f"index_cast of {describe(value)}", "an integer or index")
    return _cast(rec, value, dtype, {})


@entry("bitcast", aug=None)
def bitcast(rec: Recorder, value: Any, dtype: Any) -> Any:
    """``pto.bitcast(value, dtype)``: the same bits as another type."""
    if not isinstance(dtype, DType) or not isinstance(value, (SurfaceScalar, VecValue)):
        rec.refuse(f"bitcast of {describe(value)} to {describe(dtype)}", "a runtime scalar and an element type")
    source = value.dtype if isinstance(value, SurfaceScalar) else value.type.element
    if source.bits != dtype.bits or dtype.family == "index" or source.family == "index":
        rec.refuse(f"bitcast from {source.name} to {dtype.name}", "types of the same width, not index")
    if isinstance(value, VecValue):
        return rec.emit1("bitcast", (value,), VecType(dtype, value.type.lanes))
    if source.record == dtype.record:
        return cast_to(rec, value, dtype)
    return rec.emit1("bitcast", (value,), dtype)


# -- binary operations -------------------------------------------------------------------------------------


def _widen(rec: Recorder, name: str, a: SurfaceScalar, b: SurfaceScalar, sign_matters: bool) -> tuple[SurfaceScalar, SurfaceScalar]:
    x, y = a.dtype, b.dtype
    if x == y:
        return a, b
    if x.is_float or y.is_float:
        rec.refuse(f"{name} of {x.name} and {y.name}", "cast one side: both operands need one type")
    if x.family == "index" or y.family == "index":
        return cast_to(rec, a, INDEX), cast_to(rec, b, INDEX)
    if x.unsigned != y.unsigned and x.bits > 1 and y.bits > 1 and (x.bits == y.bits or (sign_matters and rec.surface == SEPTEMBER)):
        rec.refuse(f"{name} of {x.name} and {y.name} mixes signedness", "cast one side")
    if x.bits == y.bits:
        return a, cast_to(rec, b, x)
    wide = x if x.bits > y.bits else y
    return cast_to(rec, a, wide), cast_to(rec, b, wide)


def unify(rec: Recorder, name: str, a: Any, b: Any, sign_matters: bool = False) -> tuple[SurfaceScalar, SurfaceScalar]:
    """Both operands in one type, by the rules of the surface.

    A literal takes the type of the other side, an index wins over integers, the wider integer wins.
    """
    left, right = isinstance(a, SurfaceScalar), isinstance(b, SurfaceScalar)
    if left and right:
        return _widen(rec, name, a, b, sign_matters)
    if left:
        return a, _literal(rec, name, b, a.dtype)
    if right:
        return _literal(rec, name, a, b.dtype), b
    rec.refuse(f"{name} of {describe(a)} and {describe(b)}", "at least one runtime scalar")


def _literal(rec: Recorder, name: str, value: Any, dtype: DType) -> SurfaceScalar:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        rec.refuse(f"{name} of a runtime {dtype.name} and {describe(value)}", "a runtime scalar or a Python number")
    if isinstance(value, float) and not dtype.is_float:
        rec.refuse(f"{name} of a runtime {dtype.name} and the float {value}", "an int, or cast the integer to a float type")
    return constant(rec, value, dtype)


def binary(rec: Recorder, opcode: str, a: Any, b: Any, attributes: dict[str, int | str | float] | None = None) -> SurfaceScalar:
    """A binary scalar operation with the type rules of the operators."""
    sign = _SIGNS.get(opcode, opcode)
    if isinstance(a, VecValue) or isinstance(b, VecValue):
        vector: SurfaceScalar = vector_binary(rec, opcode, a, b, attributes)
        return vector
    x, y = unify(rec, sign, a, b, opcode in ("div", "floordiv", "rem", "shr"))
    dtype = x.dtype
    if opcode == "div":
        if rec.surface == AUGUST and not dtype.is_float:
            rec.refuse(f"/ of {dtype.name} operands: the 2026-08 API has / for floats only", "// for integers")
        if dtype.family == "index":
            rec.refuse("/ of index operands", "//")
    elif opcode == "rem":
        if dtype.is_float and rec.surface == AUGUST:
            rec.refuse("% of floats: the 2026-08 API has % for integers only", "x - y * floor(x / y), or cast to an integer first")
    elif opcode in ("floordiv", "and", "or", "xor", "shl", "shr", "ceildiv"):
        if dtype.is_float:
            rec.refuse(f"{sign} of {dtype.name} operands", "integers or index; / divides floats")
    elif opcode in ("maximum", "minimum", "pow") and not dtype.is_float:
        rec.refuse(f"{opcode} of {dtype.name} operands", "floats")
    if dtype.bits == 1 and opcode not in ("and", "or", "xor", "add", "sub", "mul"):
        rec.refuse(f"{sign} of i1 operands", "cast to an integer type first")
    result: SurfaceScalar = rec.emit1(opcode, (x, y), dtype, attributes)
    return result


def compare(rec: Recorder, predicate: str, a: Any, b: Any) -> SurfaceScalar:
    """A comparison; the result is an ``i1``."""
    if isinstance(a, (VecValue,)) or isinstance(b, VecValue):
        rec.refuse("comparison of short vectors", "compare their elements")
    x, y = unify(rec, f"comparison ({predicate})", a, b, True)
    result: SurfaceScalar = rec.emit1("cmp", (x, y), I1, {"pred": predicate})
    return result


def nonzero(rec: Recorder, name: str, value: Any) -> SurfaceScalar:
    """A condition as ``i1``: integers and index are compared with zero."""
    if isinstance(value, bool):
        rec.refuse(f"{name} is the Python bool {value}", "a Python `if` for conditions known while tracing")
    if not isinstance(value, SurfaceScalar):
        rec.refuse(f"{name} is {describe(value)}", "a runtime i1, integer or index")
    if value.dtype.bits == 1:
        return value
    if not value.dtype.is_integral:
        rec.refuse(f"{name} is {describe(value)}", "a comparison: x != 0.0")
    return compare(rec, "ne", value, 0)


def operator_shift(rec: Recorder, opcode: str, a: Any, b: Any) -> SurfaceScalar:
    """``<<`` and ``>>``, which the 2026-08 API does not have."""
    if rec.surface == AUGUST:
        rec.refuse(f"scalars of the 2026-08 API have no operator {_SIGNS[opcode]}", "* and // with a power of two")
    return binary(rec, opcode, a, b)


def operator_neg(rec: Recorder, a: SurfaceScalar) -> SurfaceScalar:
    """Unary minus, which the 2026-08 API does not have."""
    if rec.surface == AUGUST:
        rec.refuse("scalars of the 2026-08 API have no unary minus", "0 - x")
    result: SurfaceScalar = _unary(rec, "neg", a)
    return result


def _flags(rec: Recorder, overflow: Any, fastmath: Any) -> None:
    for name, value, legal in (("overflow", overflow, ("nsw", "nuw")), ("fastmath", fastmath, _FASTMATH)):
        if value is None:
            continue
        words = [value] if isinstance(value, str) else list(value)
        for word in words:
            if word not in legal:
                rec.refuse(f"{name}={word!r} is not legal", "one of " + ", ".join(legal))


def _register_arithmetic() -> None:
    for name in ("add", "sub", "mul"):

        def with_overflow(rec: Recorder, lhs: Any, rhs: Any, *, overflow: Any = None, fastmath: Any = None, _opcode: str = name) -> Any:
            _flags(rec, overflow, fastmath)
            return binary(rec, _opcode, lhs, rhs)

        entry(name, aug=None)(with_overflow)

        def august(rec: Recorder, lhs: Any, rhs: Any, _opcode: str = name) -> Any:
            x, y = unify(rec, _opcode, lhs, rhs)
            if x.dtype.is_float:
                rec.refuse(f"scalar.{_opcode}i of {x.dtype.name} operands", "the operators + - * for floats")
            return binary(rec, _opcode, x, y)

        entry(f"{name}i", aug="scalar", sep=None, opcodes=(name,))(august)
    for name in ("max", "min", "maximum", "minimum", "rem"):

        def with_fastmath(rec: Recorder, lhs: Any, rhs: Any, *, fastmath: Any = None, _opcode: str = name) -> Any:
            _flags(rec, None, fastmath)
            return binary(rec, _opcode, lhs, rhs)

        entry(name, aug=None)(with_fastmath)
    for name in ("max", "min"):

        def plain(rec: Recorder, lhs: Any, rhs: Any, _opcode: str = name) -> Any:
            return binary(rec, _opcode, lhs, rhs)

        entry(name, aug="scalar", sep=None)(plain)

        def float_only(rec: Recorder, lhs: Any, rhs: Any, _opcode: str = name) -> Any:
            x, y = unify(rec, f"f{_opcode}", lhs, rhs)
            if not x.dtype.is_float:
                rec.refuse(f"pto.f{_opcode} of {x.dtype.name} operands", f"scalar.{_opcode}")
            return binary(rec, _opcode, x, y)

        entry(f"f{name}", sep=None, opcodes=(name,), places=frozenset({"simt"}))(float_only)


_register_arithmetic()


@entry("div", aug=None)
def div(rec: Recorder, lhs: Any, rhs: Any, *, fastmath: Any = None, precision: Any = None) -> Any:
    """``pto.div(a, b)``: true division."""
    _flags(rec, None, fastmath)
    if precision not in (None, 0, 1, "Default", "HighPrecision"):
        rec.refuse(f"precision={precision!r} is not legal", "pto.DivPrecision.Default or HighPrecision")
    high = precision in (1, "HighPrecision")
    return binary(rec, "div", lhs, rhs, {"precision": "HighPrecision"} if high else None)


@entry("floordiv", aug=None)
def floordiv(rec: Recorder, lhs: Any, rhs: Any) -> Any:
    """``pto.floordiv(a, b)``: toward minus infinity."""
    return binary(rec, "floordiv", lhs, rhs)


@entry("ceildiv", aug=None, opcodes=("floordiv", "sub"))
def ceildiv(rec: Recorder, lhs: Any, rhs: Any) -> Any:
    """``pto.ceildiv(a, b)``, as ``-((-a) // b)`` for signed and ``(a + b - 1) // b`` for unsigned operands."""
    x, y = unify(rec, "ceildiv", lhs, rhs, True)
    if not x.dtype.is_integral:
        rec.refuse(f"ceildiv of {x.dtype.name} operands", "integers or index")
    if x.dtype.unsigned:
        return binary(rec, "floordiv", binary(rec, "sub", binary(rec, "add", x, y), 1), y)
    return binary(rec, "sub", 0, binary(rec, "floordiv", binary(rec, "sub", 0, x), y))


@entry("shl", aug=None)
def shl(rec: Recorder, lhs: Any, rhs: Any, *, overflow: Any = None) -> Any:
    """``pto.shl(a, b)``."""
    _flags(rec, overflow, None)
    return binary(rec, "shl", lhs, rhs)


@entry("shr", aug=None)
def shr(rec: Recorder, lhs: Any, rhs: Any) -> Any:
    """``pto.shr(a, b)``: arithmetic for signed and signless, logical for unsigned operands."""
    return binary(rec, "shr", lhs, rhs)


@entry("cmp", aug=None)
def cmp(rec: Recorder, lhs: Any, rhs: Any, predicate: Any, *, fastmath: Any = None) -> Any:
    """``pto.cmp(a, b, "lt")``."""
    _flags(rec, None, fastmath)
    return compare(rec, token(rec, "predicate", predicate, _PREDICATES), lhs, rhs)


def _select(rec: Recorder, cond: Any, true_val: Any, false_val: Any) -> Any:
    condition = nonzero(rec, "the condition of select", cond)
    if not isinstance(true_val, SurfaceScalar) and not isinstance(false_val, SurfaceScalar):
        if isinstance(true_val, VecValue) and isinstance(false_val, VecValue) and true_val.type == false_val.type:
            return rec.emit1("select", (condition, true_val, false_val), true_val.type)
        rec.refuse(f"select of {describe(true_val)} and {describe(false_val)}", "at least one runtime scalar")
    if isinstance(true_val, SurfaceScalar) and isinstance(false_val, SurfaceScalar) and true_val.dtype != false_val.dtype:
        rec.refuse(f"select of {true_val.dtype.name} and {false_val.dtype.name}", "cast one side: both arms need one type")
    x, y = unify(rec, "select", true_val, false_val)
    return rec.emit1("select", (condition, x, y), x.dtype)


@entry("select", aug="scalar")
def select(rec: Recorder, cond: Any, true_val: Any, false_val: Any) -> Any:
    """``select(condition, t, f)``; both arms are evaluated."""
    return _select(rec, cond, true_val, false_val)


# -- unary operations --------------------------------------------------------------------------------------


def _unary(rec: Recorder, opcode: str, value: Any, float_only: bool = False) -> Any:
    if isinstance(value, VecValue):
        if float_only and not value.type.element.is_float:
            rec.refuse(f"{opcode} of {describe(value)}", "floats")
        return rec.emit1(opcode, (value,), value.type)
    if not isinstance(value, SurfaceScalar):
        rec.refuse(f"{opcode} of {describe(value)}", "a runtime scalar; fold constants in Python")
    if float_only and not value.dtype.is_float:
        rec.refuse(f"{opcode} of {describe(value)}", "a float scalar; cast it first")
    if opcode == "abs" and value.dtype.unsigned:
        return value
    return rec.emit1(opcode, (value,), value.dtype)


@entry("neg", aug=None)
def neg(rec: Recorder, value: Any, *, overflow: Any = None, fastmath: Any = None) -> Any:
    """``pto.neg(x)``."""
    _flags(rec, overflow, fastmath)
    return _unary(rec, "neg", value)


@entry("abs", aug="scalar")
def absolute(rec: Recorder, value: Any) -> Any:
    """Absolute value of an integer, index or float."""
    return _unary(rec, "abs", value)


def _register_math() -> None:
    simt = frozenset({"simt"})
    for name, aug, sep, places in (
        ("exp", "scalar", None, IN_KERNEL), ("log", "scalar", None, IN_KERNEL), ("sqrt", "scalar", None, IN_KERNEL),
        ("exp", "pto", None, simt), ("log", "pto", None, simt), ("sqrt", "pto", None, simt),
        ("exp", None, "pto", IN_KERNEL), ("log", None, "pto", IN_KERNEL), ("sqrt", None, "pto", IN_KERNEL),
        ("sin", "pto", "pto", simt), ("cos", "pto", "pto", simt), ("ceil", "pto", "pto", simt), ("floor", "pto", "pto", simt),
        ("rint", "pto", "pto", simt), ("round", "pto", "pto", simt),
    ):  # fmt: skip

        def function(rec: Recorder, value: Any, _opcode: str = name) -> Any:
            return _unary(rec, _opcode, value, float_only=True)

        entry(name, aug=aug, sep=sep, places=places)(function)


_register_math()


@entry("absf", opcodes=("abs",), places=frozenset({"simt"}))
def absf(rec: Recorder, value: Any) -> Any:
    """``pto.absf(x)`` of a float."""
    return _unary(rec, "abs", value, float_only=True)


@entry("pow", places=frozenset({"simt"}))
def power(rec: Recorder, lhs: Any, rhs: Any) -> Any:
    """``pto.pow(a, b)`` of floats."""
    return binary(rec, "pow", lhs, rhs)


@entry("fma")
def fma(rec: Recorder, lhs: Any, rhs: Any, acc: Any) -> Any:
    """``pto.fma(a, b, c)``: ``a * b + c`` with one rounding."""
    runtime = next((v for v in (lhs, rhs, acc) if isinstance(v, SurfaceScalar)), None)
    if runtime is None or not runtime.dtype.is_float:
        rec.refuse("fma needs float scalars", "cast the operands to one float type")
    if rec.surface == AUGUST and rec.place != "simt":
        rec.refuse("pto.fma may stand in a SIMT function only", "x * y + z")
    return rec.emit1("fma", [scalar_of(rec, "an operand of fma", v, runtime.dtype) for v in (lhs, rhs, acc)], runtime.dtype)


@entry("mulhi", places=frozenset({"simt"}))
def mulhi(rec: Recorder, lhs: Any, rhs: Any, *, signedness: Any) -> Any:
    """``pto.mulhi(a, b, signedness=)``: the high half of the product."""
    x, y = unify(rec, "mulhi", lhs, rhs)
    if x.dtype.name not in ("i32", "i64"):
        rec.refuse(f"mulhi of {x.dtype.name}", "signless i32 or i64")
    return rec.emit1("mulhi", (x, y), x.dtype, {"signedness": token(rec, "signedness", signedness, ("signed", "unsigned"))})


@entry("mul_i32toi64", places=frozenset({"simt"}))
def mul_i32toi64(rec: Recorder, lhs: Any, rhs: Any, *, signedness: Any) -> Any:
    """``pto.mul_i32toi64(a, b, signedness=)``: the whole product of two i32."""
    x, y = unify(rec, "mul_i32toi64", lhs, rhs)
    if x.dtype.name != "i32":
        rec.refuse(f"mul_i32toi64 of {x.dtype.name}", "signless i32")
    return rec.emit1("mul_i32toi64", (x, y), I64, {"signedness": token(rec, "signedness", signedness, ("signed", "unsigned"))})


@entry("prmt", places=frozenset({"simt"}))
def prmt(rec: Recorder, lhs: Any, rhs: Any, selector: Any) -> Any:
    """``pto.prmt(a, b, selector)``: byte permute."""
    return rec.emit1("prmt", [scalar_of(rec, "an operand of prmt", v, I32) for v in (lhs, rhs, selector)], I32)


def _register_extended() -> None:
    def addui_extended(rec: Recorder, lhs: Any, rhs: Any) -> Any:
        x, y = unify(rec, "addui_extended", lhs, rhs)
        if not x.dtype.is_integer:
            rec.refuse(f"addui_extended of {x.dtype.name}", "integers")
        return tuple(rec.emit("addui_extended", (x, y), (x.dtype, I1)))

    entry("addui_extended", aug=None)(addui_extended)

    def mul_extended(rec: Recorder, lhs: Any, rhs: Any, *, signedness: Any = None) -> Any:
        x, y = unify(rec, "mul_extended", lhs, rhs)
        if not x.dtype.is_integer:
            rec.refuse(f"mul_extended of {x.dtype.name}", "integers")
        word = (
            ("unsigned" if x.dtype.unsigned else "signed")
            if signedness is None
            else token(rec, "signedness", signedness, ("signed", "unsigned"))
        )
        return tuple(rec.emit("mul_extended", (x, y), (x.dtype, x.dtype), {"signedness": word}))

    entry("mul_extended", aug=None)(mul_extended)


_register_extended()


# -- queries -----------------------------------------------------------------------------------------------


def _register_queries() -> None:
    for name in ("get_block_idx", "get_block_num", "get_subblock_idx", "get_subblock_num"):

        def query(rec: Recorder, _opcode: str = name) -> Any:
            return rec.emit1(_opcode, (), I64)

        entry(name, places=NOT_SIMT)(query)


_register_queries()


# -- short vectors -----------------------------------------------------------------------------------------


def vector_binary(rec: Recorder, opcode: str, a: Any, b: Any, attributes: dict[str, int | str | float] | None = None) -> Any:
    """An operator on two short vectors of one type."""
    if not isinstance(a, VecValue) or not isinstance(b, VecValue) or a.type != b.type:
        rec.refuse(
            f"{_SIGNS.get(opcode, opcode)} of {describe(a)} and {describe(b)}",
            "two short vectors of one type; pto.Vec(dtype, n, init=x) broadcasts",
        )
    if rec.surface == AUGUST and opcode not in ("add", "sub", "mul"):
        rec.refuse(f"short vectors of the 2026-08 API have no operator {_SIGNS.get(opcode, opcode)}", "+, - and *")
    return rec.emit1(opcode, (a, b), a.type, attributes)


def as_scalar(rec: Recorder, name: str, value: Any) -> SurfaceScalar:
    """``value`` as a runtime scalar."""
    if not isinstance(value, SurfaceScalar):
        rec.refuse(f"{name} is {describe(value)}", "a runtime scalar; pto.const(x, dtype=...) makes one")
    return value


@entry("Vec", opcodes=("alloc_buffer", "store", "load"), places=EVERYWHERE)
def vec(rec: Recorder, dtype: Any, size: Any, *, init: Any = None) -> Any:
    """``pto.Vec(dtype, n)`` is a type, ``pto.Vec(dtype, n, init=...)`` a value, recorded as a stack buffer that is filled and read."""
    if not isinstance(dtype, DType) or dtype.family not in ("float", "int") or dtype.bits == 1:
        rec.refuse(f"a short vector of {describe(dtype)}", "an integer or float element type of whole bytes")
    kind = VecType(dtype, static_int(rec, "size", size, 1, 64))
    if init is None:
        return kind
    if isinstance(init, VecValue):
        if init.type != kind:
            rec.refuse(f"init is {describe(init)}, {kind} is needed", "the same element type and size")
        return init
    items: list[Any] = list(init) if isinstance(init, (tuple, list)) else [init] * kind.lanes
    if len(items) != kind.lanes:
        rec.refuse(f"init has {len(items)} values, {kind.lanes} are needed", "one scalar per lane, or one scalar for all")
    rec.require_place("pto.Vec(init=...)", SIMT)
    values: list[Value] = [scalar_of(rec, "a value of init", item, dtype) for item in items]
    slot = rec.emit1("alloc_buffer", (), PtrType(dtype, "stack"), {"count": kind.lanes})
    for lane, value in enumerate(values):
        rec.emit("store", (value, slot, constant(rec, lane, INDEX)))
    return rec.emit1("load", (slot, constant(rec, 0, INDEX)), kind)
