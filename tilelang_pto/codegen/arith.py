"""Scalar arithmetic with TIR's meaning, in PTODSL's spelling.

Each function takes and returns :class:`Value`, folds literals, drops operations that change nothing, and keeps integer intervals. Where
PTODSL's operators mean something else than TIR's (``//`` floors, ``%`` takes the sign of the dividend) the intervals decide
between the plain operator and an exact expansion.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from .emit import Block, Builder, call, constant, path
from .forms import Form, Forms
from .surface import Surface
from .types import BOOL, DTYPES, INDEX, DType, Type
from .values import Interval, Number, Value, clip, fits

__all__ = ["Arithmetic"]

_OPERATORS: dict[str, ast.operator] = {
    "+": ast.Add(),
    "-": ast.Sub(),
    "*": ast.Mult(),
    "/": ast.Div(),
    "//": ast.FloorDiv(),
    "%": ast.Mod(),
    "&": ast.BitAnd(),
    "|": ast.BitOr(),
    "^": ast.BitXor(),
    "<<": ast.LShift(),
    ">>": ast.RShift(),
}
_COMPARISONS: dict[str, ast.cmpop] = {
    "<": ast.Lt(),
    "<=": ast.LtE(),
    ">": ast.Gt(),
    ">=": ast.GtE(),
    "==": ast.Eq(),
    "!=": ast.NotEq(),
}
_FOLD: dict[str, Callable[[Number, Number], Number]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: int(a) & int(b),
    "|": lambda a, b: int(a) | int(b),
    "^": lambda a, b: int(a) ^ int(b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def wrap(value: int, dtype: DType) -> int:
    """``value`` modulo 2**bits, in the range of the dtype."""
    if dtype.category == "bool":
        return int(bool(value))
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if value > dtype.maximum else value


class Arithmetic:
    """Scalar operations on the values of one kernel."""

    def __init__(self, builder: Builder, surface: Surface, refuse: Callable[[str, str], NoReturn]) -> None:
        self.b = builder
        self.surface = surface
        self.unit = "scalar"
        self.refuse = refuse
        self.forms = Forms()
        self._computed: dict[Block, dict[Form, list[Value]]] = {}
        self._speculative = False

    # -- literals --------------------------------------------------------------------------------------------------------

    def number(self, value: Number, type: Type) -> Value:
        """A literal of the given type, wrapped to it."""
        if type.dtype.is_integer or type.dtype.category == "bool":
            return self.b.literal(wrap(int(value), type.dtype), type)
        return self.b.literal(float(value), type)

    def typed(self, value: Value) -> Value:
        """``value`` as a runtime value: a Python number becomes ``pto.const(value, dtype=...)``.

        Needed where PTODSL has no other operand to take the type from. Floats that are not finite have no literal and are written
        ``float("inf")``; ``pto.const`` refuses Python booleans, so those become 0 and 1.
        """
        if not value.static:
            return value
        dtype = value.dtype
        if dtype.category == "bool":
            value = self.b.literal(int(bool(value.literal)), value.type)
        if dtype.is_float and isinstance(value.literal, float) and not math.isfinite(value.literal):
            text = repr(value.literal)

            def special(_: Sequence[ast.expr]) -> ast.expr:
                return call("pto.const", call("float", constant(text)), dtype=path(f"pto.{dtype.pto}"))

            return self.b.pure(("const", text), special, (), value.type, inline=True, weight=30)

        def build(exprs: Sequence[ast.expr]) -> ast.expr:
            return call("pto.const", exprs[0], dtype=path(f"pto.{dtype.pto}"))

        made = self.b.pure("const", build, (value,), value.type, interval=value.interval, inline=True, pinned=True, weight=22)
        return made

    # -- binary ----------------------------------------------------------------------------------------------------------

    def binary(
        self,
        operator: str,
        a: Value,
        b: Value,
        *,
        interval: Interval | None = None,
        assumed: bool = False,
        hint: str = "",
        traps: bool = False,
    ) -> Value:
        """``a operator b`` as PTODSL means it; the operands have one type, the result has it too.

        The result is a Python number while tracing only if both operands are and ``interval``, if given, lies within the type: Python
        does not wrap.
        """
        type = a.type if not a.static else b.type
        if type.dtype.category == "bool":
            a, b = self._runtime_bool(a), self._runtime_bool(b)
        if a.literal is not None and b.literal is not None and operator in _FOLD and not a.dtype.is_float:
            return self.number(_FOLD[operator](a.literal, b.literal), type)
        static = a.static and b.static
        if static and (a.dtype.is_float or assumed or (interval is None and operator in ("+", "-", "*", "<<"))):
            a, static = self.typed(a), False
        node = _OPERATORS[operator]
        hint = hint or _result_name(operator, a, b)

        def build(exprs: Sequence[ast.expr]) -> ast.expr:
            return ast.BinOp(exprs[0], node, exprs[1])

        return self.b.pure(
            operator, build, (a, b), type, interval=interval, assumed=assumed, hint=hint, traps=traps, static=static, weight=3
        )

    def _runtime_bool(self, value: Value) -> Value:
        """PTODSL takes no Python booleans beside runtime conditions."""
        return self.typed(value) if value.literal is not None else value

    def _ring(self, operator: str, a: Value, b: Value, low: int, high: int) -> Value:
        """Integer sum, difference or product whose exact value lies in an interval."""
        return self._known_sum(operator, a, b) or self._computed_here(self._operation(operator, a, b, low, high))

    def _operation(self, operator: str, a: Value, b: Value, low: int, high: int) -> Value:
        exact = fits(low, high, a.dtype)
        interval = clip(low, high, a.dtype)
        if exact:
            return self.binary(operator, a, b, interval=interval)
        if a.dtype.category == "uint":
            return self.binary(operator, a, b)
        return self.binary(operator, a, b, interval=interval, assumed=True)

    # -- sums that were computed before ----------------------------------------------------------------------------------

    @contextmanager
    def speculation(self) -> Iterator[None]:
        """For code that is evaluated although the source might not: its values say nothing of later ones, since they may overflow."""
        outer, self._speculative = self._speculative, True
        yield
        self._speculative = outer

    @contextmanager
    def assuming(self, *not_negative: Form) -> Iterator[None]:
        """For code that is only reached where forms are known not to be negative."""
        for form in not_negative:
            primitive = Form(form.terms).primitive()[1]
            self.forms.facts.append(Form(Form(form.terms).primitive()[0].terms, form.constant // primitive))
        yield
        del self.forms.facts[len(self.forms.facts) - len(not_negative) :]

    def consequences(self, condition: Value, holds: bool) -> list[Form]:
        """What is not negative where a condition holds, or does not."""
        if condition.key == "&" and holds:
            return [form for operand in condition.operands for form in self.consequences(operand, True)]
        if condition.key not in ("<", "<=", ">", ">=") or condition.operands[0].dtype.category not in ("int", "index"):
            return []
        first, second = (self.forms.of(operand) for operand in condition.operands)
        if condition.key in (">", ">="):
            first, second = second, first
        strict = condition.key in ("<", ">")
        if not holds:
            first, second, strict = second, first, not strict
        return [self.forms.sum(second, first, -1).plus(Form((), -strict))]

    def _computed_here(self, value: Value) -> Value:
        """Remember an integer that the program computes at this place."""
        if not (self._speculative or value.static) and value.dtype.category in ("int", "index"):
            self._computed.setdefault(self.b.block, {}).setdefault(self.forms.of(value), []).append(value)
        return value

    def _found(self, form: Form, type: Type) -> Value | None:
        """A value of that form: one of the same type, or a narrower one that is converted."""
        narrower = None
        block: Block | None = self.b.block
        while block is not None:
            for value in self._computed.get(block, {}).get(form, ()):
                if value.type == type:
                    return value
                if value.dtype.category == "int" and value.dtype.bits < type.dtype.bits and type.dtype.category == "int":
                    narrower = value
            block = block.parent
        return None if narrower is None else self.cast(narrower, type)

    def _known_sum(self, operator: str, a: Value, b: Value) -> Value | None:
        """``a operator b`` from what was computed before: the same number, or a multiple of one."""
        if a.dtype.category not in ("int", "index") or (a.static and b.static):
            return None
        first, second = self.forms.of(a), self.forms.of(b)
        if operator == "*":
            form = self.forms.product(first, second)
        else:
            form = self.forms.sum(first, second, 1 if operator == "+" else -1)
        if not form.terms:
            return self.number(form.constant, a.type)
        found = self._found(form, a.type)
        if found is not None:
            return found
        primitive, factor = form.primitive()
        if operator != "*" and factor != 1:
            found = self._found(primitive, a.type)
            if found is not None:
                multiplier = self.number(factor, a.type)
                return self._computed_here(self._operation("*", found, multiplier, *_product(found, multiplier)))
        return self._regrouped(operator, a, b)

    def _regrouped(self, operator: str, a: Value, b: Value) -> Value | None:
        """``x + y + b`` or ``x - y - b`` where ``y`` and ``b`` make a sum that was computed before."""
        if operator == "*" or a.key != operator or a.static or b.static:
            return None
        x, y = a.operands
        inner = self._known_sum("+", y, b)
        if inner is None:
            return None
        return self.add(x, inner) if operator == "+" else self.sub(x, inner)

    def split_constant(self, value: Value) -> tuple[Value, int]:
        """A value and a constant whose sum is ``value``."""
        if isinstance(value.literal, int):
            return self.number(0, value.type), int(value.literal)
        if value.key == "+" and value.dtype.category in ("int", "index") and isinstance(value.operands[1].literal, int):
            rest, constant = self.split_constant(value.operands[0])
            return rest, constant + int(value.operands[1].literal)
        return value, 0

    def as_index(self, value: Value) -> Value:
        """The same number computed in ``index`` arithmetic where that spares the conversion of loop variables; else ``value``."""
        return self._in_index(value) or value

    def _in_index(self, value: Value) -> Value | None:
        inner = value.cast_of
        if value.dtype.category == "index" or value.static:
            return self.cast(value, INDEX)
        if inner is not None:
            exact = inner.dtype.category == "index" and (inner.low, inner.high) == (value.low, value.high)
            return inner if exact else None
        if value.dtype.category != "int" or value.key not in ("+", "-", "*") or value.may_wrap:
            return None
        a, b = (self._in_index(operand) for operand in value.operands)
        if a is None or b is None:
            return None
        return {"+": self.add, "-": self.sub, "*": self.mul}[str(value.key)](a, b)

    # -- binary, by operator ---------------------------------------------------------------------------------------------

    def add(self, a: Value, b: Value) -> Value:
        """Sum; literals go to the right."""
        if a.dtype.is_integer:
            if a.literal == 0:
                return b
            if b.literal == 0:
                return a
            if a.literal is not None:
                a, b = b, a
            return self._ring("+", a, b, a.low + b.low, a.high + b.high)
        return self.binary("+", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        """Difference."""
        if a.dtype.is_integer:
            if b.literal == 0:
                return a
            return self._ring("-", a, b, a.low - b.high, a.high - b.low)
        return self.binary("-", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        """Product; literals go to the right."""
        if a.dtype.is_integer:
            if a.literal is not None:
                a, b = b, a
            if b.literal == 1:
                return a
            if b.literal == 0:
                return b
            return self._ring("*", a, b, *_product(a, b))
        return self.binary("*", a, b)

    def wrapping_multiply(self, a: Value, b: Value) -> Value:
        """Product modulo 2**bits: nothing is assumed of values too large for the type (left shifts)."""
        if b.literal == 1:
            return a
        low, high = _product(a, b)
        return self.binary("*", a, b, interval=(low, high) if fits(low, high, a.dtype) else None)

    def wrapping_double(self, a: Value) -> Value:
        """``2 * a`` modulo 2**bits."""
        return self.binary("+", a, a, interval=(2 * a.low, 2 * a.high) if fits(2 * a.low, 2 * a.high, a.dtype) else None)

    def true_divide(self, a: Value, b: Value) -> Value:
        """Float division."""
        return self.binary("/", a, b)

    def floor_divide(self, a: Value, b: Value) -> Value:
        """Integer division rounding to minus infinity: PTODSL's ``//``."""
        if b.literal == 1:
            return a
        if a.literal is not None and b.literal:
            return self.number(int(a.literal) // int(b.literal), a.type)
        interval = None
        if b.low > 0:
            corners = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
            interval = (min(corners), max(corners))
            if interval[0] == interval[1]:
                return self.number(interval[0], a.type)
        if self._below(a, b):
            return self.number(0, a.type)
        quotient = self.binary("//", a, b, interval=interval, traps=not (b.low > 0 or b.high < 0))
        return self._shared(quotient)

    def remainder(self, a: Value, b: Value) -> Value:
        """Integer remainder with the sign of the dividend: PTODSL's ``%`` on runtime values."""
        if b.literal == 1:
            return self.number(0, a.type)
        if a.literal is not None and b.literal:
            dividend, divisor = int(a.literal), abs(int(b.literal))
            return self.number(abs(dividend) % divisor * (-1 if dividend < 0 else 1), a.type)
        if (a.non_negative and a.high < b.low) or self._below(a, b):
            return a
        if a.static and b.static and not (a.non_negative and b.non_negative):
            a = self.typed(a)  # Python's own % floors
        interval = None
        if b.low > 0:
            interval = (0 if a.non_negative else max(a.low, 1 - b.high), max(0, min(a.high, b.high - 1)))
        return self._shared(self.binary("%", a, b, interval=interval, traps=not (b.low > 0 or b.high < 0)))

    def _shared(self, value: Value) -> Value:
        """``value``, or a narrower one of the same form that was computed before, converted."""
        if value.static or value.dtype.category not in ("int", "index"):
            return value
        return self._found(self.forms.of(value), value.type) or self._computed_here(value)

    def _below(self, a: Value, b: Value) -> bool:
        """Whether ``0 <= a < b`` is known."""
        if not (a.non_negative and b.non_negative) or a.dtype.category not in ("int", "index"):
            return False
        return self.forms.known_not_negative(self.forms.sum(self.forms.of(b), self.forms.of(a), -1).plus(Form((), -1)))

    def truncating_divide(self, a: Value, b: Value) -> Value:
        """Integer division rounding to zero. Exact: the remainder is taken off first, so that flooring changes nothing."""
        if a.dtype.category == "uint" or (a.non_negative and b.non_negative):
            return self.floor_divide(a, b)
        return self.floor_divide(self.sub(a, self.remainder(a, b)), b)

    def floor_modulo(self, a: Value, b: Value) -> Value:
        """Integer modulo with the sign of the divisor."""
        if a.dtype.category == "uint" or (a.non_negative and b.non_negative):
            return self.remainder(a, b)
        quotient = self.floor_divide(a, b)
        if fits(*_product(quotient, b), a.dtype):
            difference = self.sub(a, self.mul(quotient, b))
        else:
            difference = self._wrapping_modulo(a, b, quotient)
        if b.low > 0 and difference.interval is not None and not difference.static:
            difference.interval = (0, b.high - 1)
        return difference

    def _wrapping_modulo(self, a: Value, b: Value, quotient: Value) -> Value:
        """``a - quotient * b`` where the product may be too small for the type: both wrap, and the difference is right again."""
        form = self.forms.sum(self.forms.of(a), self.forms.product(self.forms.of(quotient), self.forms.of(b)), -1)
        found = self._found(form, a.type)
        if found is not None:
            return found
        difference = self.binary("-", a, self.binary("*", quotient, b))
        self.forms.define(difference, form)
        return self._computed_here(difference)

    # -- comparison, choice ----------------------------------------------------------------------------------------------

    def compare(self, operator: str, a: Value, b: Value) -> Value:
        """``a operator b`` as ``i1``; decided at once where the intervals allow."""
        if a.literal is not None and b.literal is not None:
            return self.b.literal(bool(_FOLD[operator](a.literal, b.literal)), BOOL)
        if a.dtype.category == "bool":
            return self._compare_conditions(operator, a, b)
        if a.dtype.is_integer and not (a.assumed or b.assumed):
            known = _decide(operator, (a.low, a.high), (b.low, b.high))
            if known is not None:
                return self.b.literal(known, BOOL)
        if b.literal is not None and a.key == "//":
            undivided = self._undivided(operator, a, int(b.literal))
            if undivided is not None:
                return undivided
        if a.static and b.static:
            a = self.typed(a)
        node = _COMPARISONS[operator]

        def build(exprs: Sequence[ast.expr]) -> ast.expr:
            return ast.Compare(exprs[0], [node], [exprs[1]])

        return self.b.pure(operator, build, (a, b), BOOL, hint="condition", weight=4)

    def _undivided(self, operator: str, quotient: Value, limit: int) -> Value | None:
        """``x // d < limit`` as ``x < limit * d``, where that product is a constant or ``d`` itself."""
        x, divisor = quotient.operands
        if operator == "==" and limit == 0 and x.non_negative:
            operator, limit = "<", 1
        if operator in ("<=", ">"):
            operator, limit = {"<=": "<", ">": ">="}[operator], limit + 1
        if operator not in ("<", ">=") or divisor.low < 0 or x.static:
            return None
        if limit == 1:
            return self.compare(operator, x, divisor)
        if divisor.literal is None or not fits(bound := limit * int(divisor.literal), bound, x.dtype):
            return None
        return self.compare(operator, x, self.number(bound, x.type))

    def _compare_conditions(self, operator: str, a: Value, b: Value) -> Value:
        """Equality of two conditions."""
        if a.literal is not None:
            a, b = b, a
        if b.literal is None:
            different = self.binary("^", a, b, hint="condition")
            return different if operator == "!=" else self.invert(different)
        return a if bool(b.literal) == (operator == "==") else self.invert(a)

    def logical(self, operator: str, a: Value, b: Value) -> Value:
        """``&`` or ``|`` of two conditions; both are evaluated."""
        for first, second in ((a, b), (b, a)):
            if first.literal is not None:
                return second if bool(first.literal) == (operator == "&") else first
        return self.binary(operator, a, b, hint="condition")

    def invert(self, a: Value) -> Value:
        """Logical negation."""
        if a.literal is not None:
            return self.b.literal(not a.literal, BOOL)
        return self.binary("^", a, self.typed(self.b.literal(True, BOOL)), hint="condition")

    def minimum(self, a: Value, b: Value) -> Value:
        """Smaller of two; for floats a number wins over NaN."""
        return self._extremum("min", a, b)

    def maximum(self, a: Value, b: Value) -> Value:
        """Larger of two; for floats a number wins over NaN."""
        return self._extremum("max", a, b)

    def _extremum(self, which: str, a: Value, b: Value) -> Value:
        pick = min if which == "min" else max
        interval = None
        if a.dtype.is_integer:
            if a.literal is not None and b.literal is not None:
                return self.number(pick(a.literal, b.literal), a.type)
            for one, other in ((a, b), (b, a)):
                if one.assumed or other.assumed:
                    break
                if (one.high <= other.low) if which == "min" else (one.low >= other.high):
                    return one
            interval = (pick(a.low, b.low), pick(a.high, b.high))
        return self._shared(self.function(f"f{which}" if a.dtype.is_float else which, a, b, interval=interval))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """``condition ? a : b``; both are evaluated."""
        if condition.literal is not None:
            return a if condition.literal else b
        interval = (min(a.low, b.low), max(a.high, b.high)) if a.dtype.is_integer else None
        return self.function("select", condition, a, b, interval=interval, type=a.type)

    # -- casts -----------------------------------------------------------------------------------------------------------

    def cast(self, value: Value, type: Type, *, hint: str = "") -> Value:
        """Numeric conversion between scalar types; nothing is printed when nothing changes."""
        source, target = value.dtype, type.dtype
        if source == target:
            return value
        if value.literal is not None:
            if target.category == "bool":
                return self.b.literal(bool(value.literal), type)
            if not (source.is_float and target.is_integer):
                return self.number(value.literal, type)
            if math.isfinite(value.literal):
                return self.number(int(value.literal), type)
        if target.category == "bool":
            return self.compare("!=", value, self.number(0, value.type))
        if value.static and source.is_integer and target.is_integer and fits(value.low, value.high, target):
            return self.b.pure("retype", lambda e: e[0], (value,), type, interval=value.interval, static=True, inline=True, weight=0)
        interval: Interval | None = None
        if target.is_integer:
            interval = (
                (value.low, value.high) if source.is_integer and target.minimum <= value.low and value.high <= target.maximum else None
            )
            if source.category == "bool":
                interval = (0, 1)
        inner = value.cast_of
        if (
            inner is not None
            and interval is not None
            and not inner.assumed
            and inner.dtype.is_integer
            and (inner.low, inner.high) == (value.low, value.high)
        ):
            return self.cast(inner, type, hint=hint or value.hint)
        if source.category == "bool" and target.is_float:
            return self.select(value, self.number(1.0, type), self.number(0.0, type))
        operand = self.typed(value)
        if source.is_float and target.is_float and source.bits == target.bits and not self.surface.has_cast_attributes:
            return self.cast(self.cast(operand, Type("scalar", DTYPES["float32"])), type)  # the halves know each other only by way of f32
        if source.is_float != target.is_float and self.surface.has_spelling("convert", self.unit) and not self.surface.has_cast_attributes:
            return self._convert(operand, type)
        if source.is_float != target.is_float and not self.surface.has_cast_attributes:
            self.refuse(
                f"a conversion from {source.tir} to {target.tir} in the kernel body",
                f"convert inside T.SimtVF, or compile for the 2026-09 surface: the scalar unit of {self.surface.name} converts no floats",
            )
        stem = (value.name or value.hint).rpartition(".")[2]
        hint = hint or (f"{stem}_{target.pto}" if 0 < len(stem) <= _LONGEST_STEM else target.pto)

        def build(exprs: Sequence[ast.expr]) -> ast.expr:
            return call(self.surface.spelling("cast"), exprs[0], path(f"pto.{target.pto}"))

        made = self.b.pure("cast", build, (operand,), type, interval=interval, hint=hint, weight=18)
        made.cast_of = operand
        return self._computed_here(made)

    def _convert(self, value: Value, type: Type) -> Value:
        """Conversion between integers and floats where the plain cast has none: signless words of 32 or 64 bits only, 64 with f32 only.

        Floats become integers towards zero, saturating; 64-bit integers become halves by way of f32.
        """
        source, target = value.dtype, type.dtype
        if source.category == "bool":
            return self.select(value, self.number(1.0, type), self.number(0.0, type))
        integer = target if source.is_float else source
        wide = integer.bits > 32 or (source.category == "index")
        word = Type("scalar", DTYPES["int64" if wide else "int32"])
        single = Type("scalar", DTYPES["float32"])
        unsigned = integer.category == "uint" and integer.bits >= 32
        rounding, saturation = ("z", "sat") if source.is_float else ("r", "nosat")
        keywords = {
            "rounding": constant(rounding),
            "saturation": constant(saturation),
            "signedness": constant("unsigned" if unsigned else "signed"),
        }
        if source.is_float:
            operand, result = (self.cast(value, single) if wide else value), word
        else:
            operand, result = self.cast(value, word), (single if wide else type)

        def build(exprs: Sequence[ast.expr]) -> ast.expr:
            return call("pto.convert", exprs[0], path(f"pto.{result.dtype.pto}"), **keywords)

        key = ("convert", rounding, unsigned)
        made = self.b.pure(key, build, (self.typed(operand),), result, hint=result.dtype.pto, weight=40)
        return self.cast(made, type)

    def function(self, generic: str, *operands: Value, interval: Interval | None = None, type: Type | None = None) -> Value:
        """Call of a scalar function of the API by its generic name; literals are given a type."""
        result = type or operands[0].type
        spelled = self.surface.spelling(generic, self.unit)

        def build(exprs: Sequence[ast.expr]) -> ast.expr:
            return call(spelled, *exprs)

        return self.b.pure(spelled, build, [self.typed(o) for o in operands], result, interval=interval, hint=generic)

    def negate(self, a: Value) -> Value:
        """``-a``; for floats the sign of zero flips too."""
        if a.literal is not None:
            return self.number(-a.literal, a.type)
        if a.dtype.is_integer:
            return self.sub(self.number(0, a.type), a)
        return self.binary("*", a, self.number(-1.0, a.type))


_RESULT_NAMES = {
    "+": "index",
    "-": "difference",
    "*": "product",
    "/": "quotient",
    "//": "quotient",
    "%": "remainder",
    "&": "bits",
    "|": "bits",
    "^": "bits",
}
_OPERATOR_WORDS = {"*": "x", "//": "div_", "%": "mod_"}
_LONGEST_STEM = 12


def _result_name(operator: str, a: Value, b: Value) -> str:
    """Name for a result that needs one: ``col_x128`` for ``col * 128``, ``slot`` for a buffer version modulo their number."""
    stem = (a.name or a.hint).rpartition(".")[2]
    word = _OPERATOR_WORDS.get(operator)
    if stem == "version" and operator == "%":
        return "slot"
    if operator == "+" and not a.dtype.is_integer:
        return "total"
    if word and isinstance(b.literal, int) and b.literal > 0 and 0 < len(stem) <= _LONGEST_STEM and stem not in _RESULT_NAMES.values():
        return f"{stem}_{word}{b.literal}"
    return _RESULT_NAMES.get(operator, "value")


def _product(a: Value, b: Value) -> Interval:
    """Bounds of the exact product."""
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(corners), max(corners)


def _decide(operator: str, a: Interval, b: Interval) -> bool | None:
    below, not_above = a[1] < b[0], a[1] <= b[0]
    above, not_below = a[0] > b[1], a[0] >= b[1]
    table = {"<": (below, not_below), "<=": (not_above, above), ">": (above, not_above), ">=": (not_below, below)}
    if operator in table:
        yes, no = table[operator]
        return True if yes else False if no else None
    if below or above:
        return operator == "!="
    return None
