"""Scalar expressions: literals, arithmetic, comparison, casts, bit operations, math."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tvm import tirx

from ..emit import call, path
from ..registry import OP_RULES, expression, op
from ..types import BOOL, Type, split_lanes
from ..values import Value
from ..visitor import Visitor, operation_name


@expression(tirx.IntImm, tirx.FloatImm)
def literal(v: Visitor, node: Any) -> Value:
    type = v.scalar_type(node.dtype)
    return v.b.literal(bool(node.value), BOOL) if type == BOOL else v.arith.number(node.value, type)


@expression(tirx.Var)
def variable(v: Visitor, node: Any) -> Value:
    value = v.variables.get(node)
    if value is None:
        v.unsupported(f"variable {node.name} is used outside the region that binds it")
    return value


@expression(tirx.Add, tirx.Sub, tirx.Mul, tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod, tirx.Min, tirx.Max)
def binary(v: Visitor, node: Any) -> Value:
    _only_scalar(v, node)
    a, b = v.expr(node.a), v.expr(node.b)
    kind = type(node)
    if kind is tirx.Div and a.dtype.is_float:
        return v.arith.true_divide(a, b)
    combined: Value = _BINARY[kind](v, a, b)
    return combined


_BINARY: dict[type, Any] = {
    tirx.Add: lambda v, a, b: v.arith.add(a, b),
    tirx.Sub: lambda v, a, b: v.arith.sub(a, b),
    tirx.Mul: lambda v, a, b: v.arith.mul(a, b),
    tirx.FloorDiv: lambda v, a, b: v.arith.floor_divide(a, b),
    tirx.FloorMod: lambda v, a, b: v.arith.floor_modulo(a, b),
    tirx.Div: lambda v, a, b: v.arith.truncating_divide(a, b),
    tirx.Mod: lambda v, a, b: v.arith.remainder(a, b),
    tirx.Min: lambda v, a, b: v.arith.minimum(a, b),
    tirx.Max: lambda v, a, b: v.arith.maximum(a, b),
}
_COMPARE: dict[type, str] = {tirx.LT: "<", tirx.LE: "<=", tirx.GT: ">", tirx.GE: ">=", tirx.EQ: "==", tirx.NE: "!="}


@expression(*_COMPARE)
def compare(v: Visitor, node: Any) -> Value:
    _only_scalar(v, node.a)
    return v.arith.compare(_COMPARE[type(node)], v.expr(node.a), v.expr(node.b))


@expression(tirx.And, tirx.Or)
def logical(v: Visitor, node: Any) -> Value:
    """Both sides are evaluated, so the right one must not be able to fail: TIR means C's short circuit."""
    operator = "&" if isinstance(node, tirx.And) else "|"
    a = v.expr(node.a)
    if a.literal is not None:
        return v.expr(node.b) if bool(a.literal) == (operator == "&") else a
    if may_fail(node.b):
        return _lazy_logical(v, operator, a, node.b)
    with v.arith.speculation():
        b = v.expr(node.b)
    return v.arith.logical(operator, a, b)


def _lazy_logical(v: Visitor, operator: str, a: Value, right: Any) -> Value:
    constant = tirx.const(operator == "|", "bool")
    return _choose(v, a, right, constant, BOOL) if operator == "&" else _choose(v, a, constant, right, BOOL)


@expression(tirx.Not)
def negation(v: Visitor, node: Any) -> Value:
    inverse = _INVERSE.get(type(node.a))
    if inverse is not None and str(node.a.a.dtype).startswith(("int", "uint")):
        return v.expr(inverse(node.a.a, node.a.b))
    return v.arith.invert(v.expr(node.a))


_INVERSE: dict[type, Any] = {
    tirx.LT: tirx.GE,
    tirx.GE: tirx.LT,
    tirx.LE: tirx.GT,
    tirx.GT: tirx.LE,
    tirx.EQ: tirx.NE,
    tirx.NE: tirx.EQ,
}


@expression(tirx.Select)
def select(v: Visitor, node: Any) -> Value:
    """Eager: TIR allows both arms to be evaluated."""
    _only_scalar(v, node)
    condition = v.expr(node.condition)
    with v.arith.speculation():
        return v.arith.select(condition, v.expr(node.true_value), v.expr(node.false_value))


@expression(tirx.Cast)
def cast(v: Visitor, node: Any) -> Value:
    _only_scalar(v, node)
    return v.arith.cast(v.expr(node.value), v.scalar_type(node.dtype))


@expression(tirx.Call)
def call_node(v: Visitor, node: Any) -> Value | None:
    name = operation_name(node)
    if name in ("tirx.call_extern", "tirx.call_pure_extern"):
        function = v.string(node.args[0], "the name of an external function")
        key = f"extern:{function.partition('<')[0]}"
        if key not in OP_RULES:
            v.unsupported(f"external function {function} has no rule", "use the TileLang operation of that name instead of a C function")
        return v.call_rule(node, key, list(node.args)[1:])
    return v.call_rule(node, name, list(node.args))


# -- operations ----------------------------------------------------------------------------------------------------------


@op("tirx.if_then_else", arity=3, emits=("if_", "const"))
def if_then_else(v: Visitor, node: Any, condition: Any, then_case: Any, else_case: Any) -> Value:
    """Lazy choice: only the taken arm is evaluated, so a guarded load stays guarded."""
    _only_scalar(v, node)
    chosen = v.expr(condition)
    if chosen.literal is not None:
        return v.expr(then_case if chosen.literal else else_case)
    if not (may_fail(then_case) or may_fail(else_case)):
        with v.arith.speculation():
            return v.arith.select(chosen, v.expr(then_case), v.expr(else_case))
    return _choose(v, chosen, then_case, else_case, v.scalar_type(node.dtype))


def _choose(v: Visitor, condition: Value, then_case: Any, else_case: Any, result: Type) -> Value:
    from .control import merge_values

    return merge_values(v, condition, lambda: v.expr(then_case), lambda: v.expr(else_case), result)


@op("tirx.bitwise_and", arity=2)
def bitwise_and(v: Visitor, node: Any, a: Any, b: Any) -> Value:
    left, right = v.expr(a), v.expr(b)
    limits = [value.high for value in (left, right) if value.non_negative]
    return v.arith.binary("&", left, right, interval=(0, min(limits)) if limits else None)


@op("tirx.bitwise_or", arity=2)
def bitwise_or(v: Visitor, node: Any, a: Any, b: Any) -> Value:
    return v.arith.binary("|", v.expr(a), v.expr(b))


@op("tirx.bitwise_xor", arity=2)
def bitwise_xor(v: Visitor, node: Any, a: Any, b: Any) -> Value:
    return v.arith.binary("^", v.expr(a), v.expr(b))


@op("tirx.bitwise_not", arity=1)
def bitwise_not(v: Visitor, node: Any, a: Any) -> Value:
    """``x ^ -1``; PTODSL has no ``~``."""
    value = v.expr(a)
    return v.arith.binary("^", value, v.arith.number(-1, value.type))


@op("tirx.shift_left", arity=2, emits=("const", "for_"))
def shift_left(v: Visitor, node: Any, a: Any, b: Any) -> Value:
    """Left shift. Without shift operators a constant amount is a product with a power of two (which wraps alike)."""
    value, amount = v.expr(a), v.expr(b)
    if amount.literal is not None:
        bits = _shift_amount(v, value, int(amount.literal))
        return v.arith.wrapping_multiply(value, v.arith.number(1 << bits, value.type))
    if v.surface.has_shift_operators:
        return v.arith.binary("<<", value, v.arith.cast(amount, value.type), hint="shifted")
    return _repeat(v, value, amount, v.arith.wrapping_double)


@op("tirx.shift_right", arity=2, emits=("const", "for_", "select"))
def shift_right(v: Visitor, node: Any, a: Any, b: Any) -> Value:
    """Right shift: arithmetic for signed types, logical for unsigned ones, which is flooring division by a power of two."""
    value, amount = v.expr(a), v.expr(b)
    if amount.literal is None:
        if v.surface.has_shift_operators:
            return v.arith.binary(">>", value, v.arith.cast(amount, value.type), hint="shifted")
        return _repeat(v, value, amount, lambda x: v.arith.floor_divide(x, v.arith.number(2, value.type)))
    bits = _shift_amount(v, value, int(amount.literal))
    if 1 << bits > value.dtype.maximum:  # the power of two is no value of the type: only the sign is left
        negative = v.arith.compare("<", value, v.arith.number(0, value.type))
        return v.arith.select(negative, v.arith.number(-1, value.type), v.arith.number(0, value.type))
    return v.arith.floor_divide(value, v.arith.number(1 << bits, value.type))


def _shift_amount(v: Visitor, value: Value, amount: int) -> int:
    if not 0 <= amount < value.dtype.bits:
        v.unsupported(f"shift of a {value.dtype.bits}-bit value by {amount}", f"shift by 0 to {value.dtype.bits - 1}")
    return amount


def _repeat(v: Visitor, value: Value, count: Value, step: Any) -> Value:
    """Apply ``step`` ``count`` times; for surfaces without shift operators."""
    from .control import repeat

    return repeat(v, value, count, step)


@op("tirx.reinterpret", arity=1, emits=("vbitcast", "bitcast", "castptr"))
def reinterpret(v: Visitor, node: Any, a: Any) -> Value:
    """Same bits, another type: vector registers, and scalars where the API can. Pointers are in :mod:`.addresses`."""
    if str(node.dtype) == "handle":
        v.unsupported("an address used as a pointer without a name", "give the tensor of T.make_tensor a name")
    value = v.expr(a)
    if value.type.kind == "register":
        from .simd_arith import bitcast

        return bitcast(v, value, v.register_type(node.dtype))
    return bits_as(v, value, v.scalar_type(node.dtype))


def bits_as(v: Visitor, value: Value, target: Type) -> Value:
    """The bits of a scalar as another scalar type of the same width."""
    if value.dtype.is_integer and target.dtype.is_integer and value.dtype.bits == target.dtype.bits:
        return v.arith.cast(value, target)
    if not v.surface.has_spelling("bitcast", v.arith.unit):
        from .simt_bits import through_ub

        return through_ub(v, value, target)
    spelled = v.surface.spelling("bitcast", v.arith.unit)

    def build(exprs: Sequence[ast.expr]) -> ast.expr:
        return call(spelled, exprs[0], path(f"pto.{target.dtype.pto}"))

    return v.b.pure("bitcast", build, [v.arith.typed(value)], target)


def _only_scalar(v: Visitor, node: Any) -> None:
    lanes = split_lanes(str(node.dtype))[1]
    if lanes != 1:
        v.unsupported(f"{type(node).__name__} on {node.dtype}", "inside T.SimdVF use the T.simd.* operations")


_SAFE = (tirx.IntImm, tirx.FloatImm, tirx.Var)


def may_fail(node: Any) -> bool:
    """Whether evaluating an expression can touch memory or trap, so that it must stay behind its guard."""
    found = False

    def visit(inner: Any) -> None:
        nonlocal found
        if isinstance(inner, (tirx.BufferLoad, tirx.Call)):
            found = True
        elif isinstance(inner, (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)):
            found = found or not (isinstance(inner.b, tirx.IntImm) and int(inner.b) != 0)

    if isinstance(node, _SAFE):
        return False
    tirx.stmt_functor.post_order_visit(node, visit)
    return found
