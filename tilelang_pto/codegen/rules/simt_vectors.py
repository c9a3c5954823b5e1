"""Short vectors of SIMT threads: a few neighbouring elements that are loaded, stored or moved together.

PTODSL has such vectors as values but nothing that takes one apart. So an expression that only moves whole vectors, or adds, subtracts,
multiplies or converts floats, stays one; any other is computed lane by lane, from single loads, and packed again where it is stored.
Vectors are signless in memory: unsigned elements, booleans and 8-bit floats are carried by the integers of their width.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ..emit import call, constant, path
from ..registry import expression
from ..types import DTYPES, DType, Type, split_lanes
from ..values import Value
from ..visitor import Visitor, operation_name
from .memory import address, memory_of, private_array, signless, storage_of, store_element

LONGEST = 16
"""Lanes of the widest vector; vector registers of SIMD functions have more."""

_ARITHMETIC: dict[type, str] = {tirx.Add: "+", tirx.Sub: "-", tirx.Mul: "*"}
_PAIRS = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max)
_TESTS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE, tirx.And, tirx.Or)


@dataclass(eq=False, slots=True)
class Lanes(Value):
    """A short vector of which every lane is a value of its own."""

    lanes: tuple[Value, ...] = ()


def lane_count(node: Any) -> int:
    """Lanes of an expression, 1 for a scalar."""
    return split_lanes(str(node.dtype))[1]


def is_short(v: Visitor, node: Any) -> bool:
    """Whether an expression is a short vector of a SIMT thread or the scalar unit."""
    return v.region != "simd" and 1 < lane_count(node) <= LONGEST


def carrier(v: Visitor, tir_dtype: Any) -> DType:
    """Element type a vector of a TIR element dtype has in memory."""
    return signless(v.element(split_lanes(str(tir_dtype))[0]))


def vector_type(dtype: DType, lanes: int) -> Type:
    """Type of a short vector."""
    return Type("vector", dtype, lanes)


@expression(tirx.Broadcast, tirx.Shuffle, tirx.Ramp)
def short_vector(v: Visitor, node: Any) -> Value:
    if isinstance(node, tirx.Shuffle) and lane_count(node) == 1:
        return v.expr(_lane(v, node, 0))
    if not is_short(v, node):
        v.unsupported(f"{type(node).__name__} of {node.dtype}", "inside T.SimdVF use the T.simd.* operations")
    return evaluate(v, node)


def evaluate(v: Visitor, node: Any) -> Value:
    """Value of a short vector: whole if it can be, else its lanes."""
    if _packable(v, node):
        return _packed(v, node)
    lanes = values(v, node)
    return Lanes(vector_type(lanes[0].dtype, len(lanes)), None, _no_expression, lanes=tuple(lanes))


def _no_expression(_: Sequence[ast.expr]) -> ast.expr:
    raise AssertionError("a short vector of separate lanes has no expression")


# -- whole vectors -------------------------------------------------------------------------------------------------------


def _packable(v: Visitor, node: Any) -> bool:
    """Whether an expression can be computed on whole vectors."""
    if v.region != "simt" or lane_count(node) == 1:
        return False
    if isinstance(node, tirx.BufferLoad):
        return _start(node) is not None and storage_of(v, node.buffer.data).kind != "slot"
    if isinstance(node, tirx.Broadcast):
        return lane_count(node.value) == 1 and not _draws(node.value) and (not _bits_only(v, node) or _is_zero(node.value))
    if isinstance(node, tirx.Var):
        value = v.variables.get(node)
        return value is not None and value.type.kind == "vector" and not isinstance(value, Lanes)
    if type(node) in _ARITHMETIC:
        return _is_float(node) and _packable(v, node.a) and _packable(v, node.b)
    if isinstance(node, tirx.Cast):
        return _is_float(node) and _is_float(node.value) and _packable(v, node.value)
    if isinstance(node, tirx.Call) and operation_name(node) == "tirx.if_then_else":
        condition, then_case, else_case = node.args
        return lane_count(condition) == 1 and _packable(v, then_case) and _packable(v, else_case)
    return False


def _is_float(node: Any) -> bool:
    dtype = DTYPES.get(split_lanes(str(node.dtype))[0])
    return dtype is not None and dtype.is_float


def _bits_only(v: Visitor, node: Any) -> bool:
    """Whether the elements have no scalar values, like 8-bit floats."""
    return v.element(split_lanes(str(node.dtype))[0]).category == "storage"


def _is_zero(node: Any) -> bool:
    while isinstance(node, tirx.Cast):
        node = node.value
    return isinstance(node, (tirx.IntImm, tirx.FloatImm)) and node.value == 0 and math.copysign(1.0, node.value) > 0


def _packed(v: Visitor, node: Any) -> Value:
    """Value of a packable expression."""
    lanes, dtype = lane_count(node), carrier(v, node.dtype)
    type = vector_type(dtype, lanes)
    if isinstance(node, tirx.BufferLoad):
        return _load(v, node, type)
    if isinstance(node, tirx.Broadcast):
        element = Type("scalar", dtype)
        value = v.arith.number(0, element) if _bits_only(v, node) else v.arith.cast(v.expr(node.value), element)
        return _pack(v, [value], type)
    if isinstance(node, tirx.Var):
        return v.variables[node]
    if isinstance(node, tirx.Cast):
        return _convert(v, _packed(v, node.value), type)
    if isinstance(node, tirx.Call):
        from .control import merge_values

        condition, then_case, else_case = node.args
        return merge_values(v, v.expr(condition), lambda: _packed(v, then_case), lambda: _packed(v, else_case), type)
    sign = {"+": ast.Add(), "-": ast.Sub(), "*": ast.Mult()}[_ARITHMETIC[node.__class__]]
    operands = (_packed(v, node.a), _packed(v, node.b))
    return v.b.pure(
        ("vector", _ARITHMETIC[node.__class__]), lambda e: ast.BinOp(e[0], sign, e[1]), operands, type, hint="pair", pinned=True
    )


def _load(v: Visitor, node: Any, type: Type) -> Value:
    storage = storage_of(v, node.buffer.data)
    where = address(v, node.buffer.data, type.dtype, _start(node))
    spelled = v.surface.spelling("load", "simt")

    def build(exprs: Sequence[ast.expr]) -> ast.expr:
        return call(spelled, *exprs, contiguous=constant(type.lanes))

    hint = f"{node.buffer.name.lstrip('_')}_values"
    return v.b.pure(
        (spelled, type.lanes), build, (where.pointer, where.offset), type, hint=hint, memory=memory_of(v, storage), pinned=True, weight=28
    )


def _pack(v: Visitor, lanes: Sequence[Value], type: Type) -> Value:
    """A vector of the given scalars; one scalar stands for all lanes."""

    def build(exprs: Sequence[ast.expr]) -> ast.expr:
        init = exprs[0] if len(exprs) == 1 else ast.Tuple(list(exprs), ast.Load())
        return call("pto.Vec", path(f"pto.{type.dtype.pto}"), constant(type.lanes), init=init)

    operands = [v.arith.typed(lane) for lane in lanes]
    return v.b.pure(("Vec", len(operands)), build, operands, type, hint="pair" if type.lanes == 2 else "group", pinned=True, weight=26)


def _convert(v: Visitor, value: Value, type: Type) -> Value:
    if value.dtype == type.dtype:
        return value
    spelled = v.surface.spelling("cast", "simt")
    return v.b.pure("cast", lambda e: call(spelled, e[0], path(f"pto.{type.dtype.pto}")), (value,), type, hint=type.dtype.pto, pinned=True)


def _start(node: Any) -> Any:
    """Index of the first element of an access to neighbouring elements, None if they are not neighbours."""
    index = node.indices[0]
    if len(node.indices) == 1 and isinstance(index, tirx.Ramp) and isinstance(index.stride, tirx.IntImm) and int(index.stride) == 1:
        return index.base
    return None


# -- lane by lane --------------------------------------------------------------------------------------------------------


def values(v: Visitor, node: Any) -> list[Value]:
    """The lanes of a short vector, each computed by itself."""
    drawn = _draw_in_order(v, node)
    return [v.expr(_lane(v, node, number, drawn)) for number in range(lane_count(node))]


Drawn = dict[Any, list[Any]]


def _lane(v: Visitor, node: Any, number: int, drawn: Drawn | None = None) -> Any:
    """The scalar TIR expression of one lane."""
    if lane_count(node) == 1 and not isinstance(node, tirx.Shuffle):
        return node
    if drawn and node in drawn:
        return drawn[node][number]
    kind, element = type(node), split_lanes(str(node.dtype))[0]

    def lane(inner: Any) -> Any:
        return _lane(v, inner, number, drawn)

    if isinstance(node, tirx.Broadcast):
        return node.value
    if isinstance(node, tirx.Ramp):
        return node.base + node.stride * number
    if isinstance(node, tirx.Var):
        return _lane_of_variable(v, node, number)
    if isinstance(node, tirx.BufferLoad):
        return tirx.BufferLoad(_element_view(v, node), [lane(node.indices[0])])
    if isinstance(node, tirx.Cast):
        return tirx.Cast(element, lane(node.value))
    if isinstance(node, _PAIRS + _TESTS):
        return kind(lane(node.a), lane(node.b))
    if isinstance(node, tirx.Not):
        return tirx.Not(lane(node.a))
    if isinstance(node, tirx.Select):
        return tirx.Select(lane(node.condition), lane(node.true_value), lane(node.false_value))
    if isinstance(node, tirx.Shuffle):
        return _shuffled(v, node, number, drawn)
    if isinstance(node, tirx.Call):
        return tirx.Call(element, node.op, [argument if _is_text(argument) else lane(argument) for argument in node.args], node.annotations)
    v.unsupported(f"{kind.__name__} of {node.dtype}", "write the operation on single elements")


def _is_text(node: Any) -> bool:
    return isinstance(node, tirx.StringImm) or not hasattr(node, "dtype")


def _shuffled(v: Visitor, node: Any, number: int, drawn: Drawn | None) -> Any:
    """Lane ``number`` of a shuffle: an element of the concatenation of its vectors."""
    wanted = v.integer(node.indices[number], "an index of a shuffle")
    for vector in node.vectors:
        lanes = lane_count(vector)
        if wanted < lanes:
            return _lane(v, vector, wanted, drawn)
        wanted -= lanes
    v.unsupported("a shuffle beyond its vectors")


def _element_view(v: Visitor, node: Any) -> Any:
    buffer = node.buffer
    if lane_count(buffer) != 1 or len(node.indices) != 1:
        v.unsupported(f"access to {buffer.name} of {buffer.dtype} elements", "declare the buffer with scalar elements")
    return buffer


def _lane_of_variable(v: Visitor, node: Any, number: int) -> Any:
    """A fresh scalar variable for one lane of a bound vector."""
    value = v.variables.get(node)
    if value is None or value.type.kind != "vector":
        v.unsupported(f"variable {node.name} is used outside the region that binds it")
    if not isinstance(value, Lanes):
        value = _unpack(v, value)
        v.variables[node] = value
    scalar = tirx.Var(f"{node.name}_{number}", split_lanes(str(node.dtype))[0])
    v.variables[scalar] = v.arith.cast(value.lanes[number], v.scalar_type(scalar.dtype))
    return scalar


def _unpack(v: Visitor, value: Value) -> Lanes:
    """The lanes of a whole vector, by way of a private array: the only way there is."""
    storage = private_array(v, "lanes", value.dtype, value.type.lanes)
    pointer = storage.pointer
    assert pointer is not None
    _write(v, value, pointer, v.index(0), storage)
    spelled = v.surface.spelling("load", "simt")
    element = Type("scalar", value.dtype)
    lanes = [
        v.b.pure(spelled, lambda e: call(spelled, *e), (pointer, v.index(lane)), element, hint="lane", memory=storage, weight=14)
        for lane in range(value.type.lanes)
    ]
    return Lanes(value.type, None, _no_expression, lanes=tuple(lanes))


# -- random numbers under a broadcast ------------------------------------------------------------------------------------


def _draws(node: Any) -> bool:
    """Whether an expression draws random numbers: a broadcast of it draws anew for each lane."""
    found = False

    def visit(inner: Any) -> None:
        nonlocal found
        found = found or (isinstance(inner, tirx.Call) and operation_name(inner).startswith("tl.rng_rand"))

    tirx.stmt_functor.post_order_visit(node, visit)
    return found


def _draw_in_order(v: Visitor, node: Any) -> Drawn:
    """Draws of all broadcasts of random numbers, one broadcast after the other."""
    drawn: Drawn = {}
    if not _draws(node):
        return drawn
    from .random import draw_lanes

    def visit(inner: Any) -> None:
        if isinstance(inner, tirx.Broadcast) and _draws(inner.value) and inner not in drawn:
            drawn[inner] = draw_lanes(v, inner)
        elif isinstance(inner, tirx.Call) and operation_name(inner) == "tirx.if_then_else":
            v.unsupported("random numbers drawn in an arm of a vector expression", "draw them into a variable first")

    tirx.stmt_functor.post_order_visit(node, visit)
    return drawn


# -- stores --------------------------------------------------------------------------------------------------------------


def store(v: Visitor, node: Any) -> None:
    """A store of a short vector: one access where the elements are neighbours, else one per lane."""
    storage, start = storage_of(v, node.buffer.data), _start(node)
    if storage.kind == "slot":
        v.unsupported(f"a short vector in {storage.name}, which lives in registers", "allocate it inside T.SimtVF")
    whole = start is not None and v.region == "simt"
    dtype, lanes = carrier(v, node.value.dtype), lane_count(node.value)
    if whole and _packable(v, node.value):
        vector = _packed(v, node.value)
    else:
        elements = values(v, node.value)
        if not whole or storage.kind == "stack":
            _store_lanes(v, node, elements)
            return
        vector = _pack(v, [v.arith.cast(value, Type("scalar", dtype)) for value in elements], vector_type(dtype, lanes))
    where = address(v, node.buffer.data, dtype, start)
    _write(v, vector, where.pointer, where.offset, memory_of(v, storage))


def _write(v: Visitor, vector: Value, pointer: Value, offset: Value, memory: object) -> None:
    spelled = v.surface.spelling("store", "simt")

    def build(exprs: Sequence[ast.expr]) -> ast.expr:
        return call(spelled, *exprs, contiguous=constant(vector.type.lanes))

    v.b.effect(build, (vector, pointer, offset), writes=memory)


def _store_lanes(v: Visitor, node: Any, elements: Sequence[Value]) -> None:
    view = _element_view(v, node)
    for number, value in enumerate(elements):
        store_element(v, view, _lane(v, node.indices[0], number), value)
