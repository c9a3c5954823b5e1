"""Messages of the argument checks in the host function TileLang generates.

A check there is an assertion with a fixed text. TileLang's C code prints the two sides of an equality as expected and given, whatever
they are, and reads any object as if it were a tensor. Here each assertion about an argument becomes a branch that calls
``tilelang_pto.refuse_argument`` (``csrc/ffi/argument_error.cc``) with a sentence and the values that are missing in it.

Numbers, extents and strides arrive with 64 bits and are cut to the type the kernel gives them; where nothing looked at what is cut off,
a branch of the same kind does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

__all__ = ["name_refusals"]

REFUSE = "tilelang_pto.refuse_argument"

# Fields of tvm_struct_get.
_NDIM, _TYPE_CODE, _TYPE_BITS, _TYPE_LANES = 4, 5, 6, 7
_BYTE_OFFSET, _DEVICE_ID, _DEVICE_TYPE = 8, 9, 10
_ANY_VALUE = 15
# Type indices of TVM-FFI.
_OBJECTS, _TENSOR = 64, 70

# What fits an integer type; -1 is a way to write an unsigned number with all bits set.
_RANGES = {f"{sign}int{bits}": (-(2 ** (bits - 1)), 2 ** (bits if sign else bits - 1) - 1) for sign in ("", "u") for bits in (8, 16, 32)}
_NUMBERS = {"float": "a number", "integer": "an integer", "boolean": "a bool"}


@dataclass(frozen=True)
class Refusal:
    """A sentence with places for values, and the values."""

    text: str
    values: tuple[tirx.PrimExpr, ...] = ()

    def call(self) -> tirx.Stmt:
        values = [value if value.dtype == "int64" else value.astype("int64") for value in self.values]
        return tirx.Evaluate(tirx.call_packed(REFUSE, self.text, *values))


def name_refusals(host: tirx.PrimFunc, kernel: str) -> tirx.PrimFunc:
    """Replace the assertions about arguments by branches that say which argument is wrong, what is expected and what was given."""

    def rewrite(node: tirx.Stmt) -> tirx.Stmt | None:
        if isinstance(node, tirx.Bind):
            narrowing = _narrowing(node, kernel)
            if narrowing is None:
                return None
            fits, refusal = narrowing
            return tirx.SeqStmt([tirx.IfThenElse(tirx.Not(fits), refusal.call(), None), node])
        text = "".join(part.value for part in node.message_parts if isinstance(part, tirx.StringImm))
        for pattern, rule in _RULES:
            match = re.fullmatch(pattern, text)
            if match is not None:
                condition, refusal = rule(_Check(kernel, match, node.condition))
                refusal = Refusal(f"kernel {kernel}: {refusal.text}", refusal.values)
                return tirx.IfThenElse(tirx.Not(condition), refusal.call(), None)
        if isinstance(node.condition, tirx.EQ):
            # Without the two numbers: which of them is expected is not known here.
            return tirx.IfThenElse(tirx.Not(node.condition), Refusal(f"kernel {kernel}: {text}").call(), None)
        return None

    return host.with_body(tirx.stmt_functor.ir_transform(host.body, None, rewrite, ["tirx.AssertStmt", "tirx.Bind"]))


def _narrowing(node: tirx.Bind, kernel: str) -> tuple[tirx.PrimExpr, Refusal] | None:
    """Of a variable that gets the lower part of a 64-bit value: when that is all of it, and what to say if not."""
    value, guard = node.value, None
    if isinstance(value, tirx.Call) and value.op.name == "tirx.if_then_else":
        guard, value = value.args[0], value.args[2]
    if not isinstance(value, tirx.Cast) or str(value.value.dtype) != "int64" or value.dtype not in _RANGES:
        return None
    given, (low, high) = value.value, _RANGES[str(value.dtype)]
    if _field(given) == _ANY_VALUE:
        what = f"argument {node.var.name} = {{number}}"
    elif isinstance(given, tirx.BufferLoad) and len(given.indices) == 1:
        name, _, field = str(given.buffer.data.name).removeprefix(f"{kernel}.").rpartition(".")
        what = f"argument {name} has {field}[{given.indices[0]}] = {{number}}, which"
    else:
        return None
    fits = tirx.And(tirx.GE(given, tirx.const(low, "int64")), tirx.LE(given, tirx.const(high, "int64")))
    condition = fits if guard is None else tirx.Or(guard, fits)
    return condition, Refusal(f"kernel {kernel}: {what} does not fit {value.dtype}", (given,))


@dataclass(frozen=True)
class _Check:
    kernel: str
    match: re.Match[str]
    condition: tirx.PrimExpr

    def given(self, field: int) -> tirx.PrimExpr | None:
        """The field of the argument that the condition reads."""
        found = [node for node in _nodes(self.condition) if _field(node) == field]
        return found[0] if found else None


_Rule = Callable[[_Check], tuple[tirx.PrimExpr, Refusal]]


def _is_tensor(check: _Check) -> tuple[tirx.PrimExpr, Refusal]:
    name = check.match["argument"]

    def tighten(node: tirx.PrimExpr) -> tirx.PrimExpr | None:
        # Not any object, a tensor.
        for small, large in ((node.a, node.b), (node.b, node.a)):
            if isinstance(small, tirx.IntImm) and int(small) == _OBJECTS:
                return tirx.EQ(large, tirx.const(_TENSOR, large.dtype))
        return None

    keys = ["tirx.LE", "tirx.GE"]
    statement = tirx.stmt_functor.ir_transform(tirx.Evaluate(check.condition), None, tighten, keys)
    index = next((node for node in _nodes(check.condition) if isinstance(node, tirx.Var)), None)
    if index is None:
        return statement.value, Refusal(f"argument {name} is not a tensor")
    return statement.value, Refusal(f"argument {name} is not a tensor but {{type}}", (index,))


def _is_number(check: _Check) -> tuple[tirx.PrimExpr, Refusal]:
    name, wanted = check.match["argument"], _NUMBERS.get(check.match["kind"], check.match["kind"])
    index = next((node for node in _nodes(check.condition) if isinstance(node, tirx.Var)), None)
    if index is None:
        return check.condition, Refusal(f"argument {name} is not {wanted}")
    return check.condition, Refusal(f"argument {name} is not {wanted} but {{type}}", (index,))


def _is_given(check: _Check) -> tuple[tirx.PrimExpr, Refusal]:
    return check.condition, Refusal(f"argument {check.match['argument']} is None, a tensor is expected")


def _count(check: _Check) -> tuple[tirx.PrimExpr, Refusal]:
    count = next((node for node in _nodes(check.condition) if isinstance(node, tirx.Var)), None)
    wanted = check.match["expected"]
    if count is None:
        return check.condition, Refusal(f"{wanted} arguments are expected")
    return check.condition, Refusal(f"{wanted} arguments are expected, {{number}} are given", (count,))


def _dimensions(check: _Check) -> tuple[tirx.PrimExpr, Refusal]:
    name, wanted = check.match["argument"], check.match["expected"]
    given = check.given(_NDIM)
    text = f"argument {name} has the wrong number of dimensions: expected {wanted}"
    return check.condition, Refusal(text) if given is None else Refusal(f"{text}, got {{number}}", (given,))


def _dtype(check: _Check) -> tuple[tirx.PrimExpr, Refusal]:
    text = f"argument {check.match['argument']} has the wrong dtype: expected {check.match['expected']}"
    code = check.given(_TYPE_CODE)
    if not isinstance(code, tirx.Call):
        return check.condition, Refusal(text)
    parts = [
        tirx.Call(dtype, code.op, [code.args[0], code.args[1], tirx.const(field, "int32")])
        for dtype, field in (("uint8", _TYPE_CODE), ("uint8", _TYPE_BITS), ("uint16", _TYPE_LANES))
    ]
    return check.condition, Refusal(f"{text}, got {{dtype}}", tuple(parts))


def _device(check: _Check) -> tuple[tirx.PrimExpr, Refusal]:
    given = check.given(_DEVICE_TYPE)
    text = f"argument {check.match['argument']} is on the wrong device: expected {check.match['expected']}"
    return check.condition, Refusal(text) if given is None else Refusal(f"{text}, got {{device}}", (given,))


def _anchor_device(check: _Check) -> tuple[tirx.PrimExpr, Refusal]:
    given = check.given(_DEVICE_TYPE)
    text = "the tensors are on the wrong device"
    return check.condition, Refusal(text) if given is None else Refusal(f"{text}: {{device}}", (given,))


def _plain(text: str) -> _Rule:
    return lambda check: (check.condition, Refusal(f"argument {check.match['argument']} {text}"))


def _constraint(check: _Check) -> tuple[tirx.PrimExpr, Refusal]:
    """Shapes, strides and offsets: one side of an equality is what was given."""
    name, field = check.match["argument"], check.match["field"]
    condition = check.condition
    equality = next((node for node in _disjuncts(condition) if isinstance(node, tirx.EQ) and not _is_escape(node, check)), None)
    if equality is None:
        return condition, Refusal(f"argument {name} has an unexpected {field}")
    given, expected = equality.b, equality.a
    if isinstance(given, tirx.IntImm) or (_reads(check, expected) and not _reads(check, given)):
        given, expected = expected, given
    # Of a stride that may be left out, or a tensor that may be, what is there otherwise.
    ways = given.args[1:] if isinstance(given, tirx.Call) and given.op.name == "tirx.if_then_else" else [given]
    plain = [way.value if isinstance(way, tirx.Cast) else way for way in ways]
    if not any(isinstance(way, tirx.BufferLoad) or _field(way) is not None for way in plain):
        return condition, Refusal(f"argument {name} has a {field} that does not fit its other extents or those of the other arguments")
    text, values = f"argument {name} has {field} = {{number}}, expected ", [given]
    if isinstance(expected, tirx.IntImm):
        text += str(int(expected))
    else:
        text += "{number}"
        values.append(expected)
        source = _source(check, expected)
        text += f" (that of {source})" if field == "device_id" else f" ({source})" if source else ""
    return condition, Refusal(text, tuple(values))


def _is_escape(node: tirx.EQ, check: _Check) -> bool:
    """Whether an alternative only lets a case pass: a stride of 0 or of an extent of 1."""
    return not (_reads(check, node.a) or _reads(check, node.b))


def _reads(check: _Check, side: tirx.PrimExpr) -> bool:
    """Whether a side reads what the message is about."""
    name, field = check.match["argument"], check.match["field"]
    array, _, index = field.partition("[")
    for node in _nodes(side):
        if isinstance(node, tirx.BufferLoad) and str(node.buffer.data.name) == f"{check.kernel}.{name}.{array}":
            return str(node.indices[0]) == index.rstrip("]")
        if _field(node) in (_BYTE_OFFSET, _DEVICE_ID) and not index:
            handle = node.args[0]
            if isinstance(handle, tirx.Var) and str(handle.name) in (name, f"{name}_handle"):
                return True
    return False


def _source(check: _Check, side: tirx.PrimExpr) -> str:
    """How a user would write an expected value."""
    inner = side.value if isinstance(side, tirx.Cast) else side
    if isinstance(inner, tirx.BufferLoad) and len(inner.indices) == 1:
        # The data variable of that load is named "<kernel>.<tensor>.shape".
        return f"{str(inner.buffer.data.name).removeprefix(f'{check.kernel}.')}[{inner.indices[0]}]"
    if _field(inner) == _DEVICE_ID:
        return "the first tensor"
    return str(inner.name) if isinstance(inner, tirx.Var) else ""


_ARGUMENT = r"kernel \S+ input (?P<argument>\S+)"
_RULES: Sequence[tuple[str, _Rule]] = (
    (rf"{_ARGUMENT} expected pointer or tensor handle", _is_tensor),
    (r"[^.]+\.(?P<argument>\S+) is expected to have non-NULL pointer", _is_given),
    (r"\S+: num_args should be (?P<expected>\d+)", _count),
    (r"kernel \S+ scalar (?P<argument>\S+) expected (?P<kind>\S+)", _is_number),
    (rf"{_ARGUMENT} ndim mismatch, expected (?P<expected>\d+)", _dimensions),
    (rf"{_ARGUMENT} dtype mismatch, expected (?P<expected>.+)", _dtype),
    (rf"{_ARGUMENT} device_type mismatch, expected (?P<expected>.+)", _device),
    (r"\S+: allocator anchor has the wrong device type", _anchor_device),
    (rf"{_ARGUMENT} data pointer is NULL", _plain("has no data: its data pointer is NULL")),
    (r"[^.]+\.(?P<argument>[^.]+)\.strides: expected to be compact array, .*", _plain("is not contiguous")),
    (rf"{_ARGUMENT} (?P<field>\S+) violates packed ABI constraint", _constraint),
)


def _nodes(expression: tirx.PrimExpr) -> list[tirx.PrimExpr]:
    found: list[tirx.PrimExpr] = []
    tirx.stmt_functor.post_order_visit(expression, found.append)
    return found


def _disjuncts(condition: tirx.PrimExpr) -> list[tirx.PrimExpr]:
    if isinstance(condition, tirx.Or):
        return [*_disjuncts(condition.a), *_disjuncts(condition.b)]
    return [condition]


def _field(node: object) -> int | None:
    """The number of the field that a struct access reads."""
    if not isinstance(node, tirx.Call) or getattr(node.op, "name", "") != "tirx.tvm_struct_get":
        return None
    return int(node.args[2]) if isinstance(node.args[2], tirx.IntImm) else None
