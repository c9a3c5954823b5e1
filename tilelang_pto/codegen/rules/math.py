"""Float functions, as TIR intrinsics and under the C names that lowering passes give them.

What a unit of the core has is called directly; the rest is expanded in float32. The error bounds below are those of the expansions with
``exp``, ``log``, ``sin``, ``cos``, ``sqrt`` and division correct to 1 ulp, in units in the last place of float32; halves and bfloat16 go
through float32 and are rounded once more. Subnormal results are as good as those functions give them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..registry import op
from ..types import DTYPES, Type
from ..values import Value
from ..visitor import Visitor

F32 = Type("scalar", DTYPES["float32"])
FLOATS = ("f16", "bf16", "f32")

_NATIVE: dict[str, tuple[str, ...]] = {
    "exp": ("f16", "f32"), "log": ("f16", "f32"), "sqrt": ("f16", "f32"), "pow": ("f16", "f32"), "fabs": ("f16", "f32"),
    "sin": ("f32",), "cos": ("f32",),
    "floor": ("f16", "bf16", "f32"), "ceil": ("f16", "bf16", "f32"), "rint": ("f16", "bf16", "f32"), "round": ("f16", "bf16", "f32"),
    "fma": ("f16", "bf16", "f32"),
}  # fmt: skip
"""Element types each function of the API takes; other floats go through float32."""


def _floats(v: Visitor, what: str, *nodes: Any) -> list[Value]:
    values = [v.expr(node) for node in nodes]
    for value in values:
        if value.type.kind != "scalar" or not value.dtype.is_float:
            v.unsupported(f"{what} of a {value.type} value", "cast it to float32 first")
    return values


def native(v: Visitor, generic: str, *values: Value) -> Value:
    """A function of the API, in float32 if it does not take the operands' type."""
    if not v.surface.has_spelling(generic, v.arith.unit):
        v.unsupported(f"{generic} outside a SIMT vector function on PTODSL {v.surface.name}", "compute it inside T.SimtVF")
    type = values[0].type
    if type.dtype.pto in _NATIVE[generic]:
        return v.arith.function(generic, *values)
    return v.arith.cast(v.arith.function(generic, *(v.arith.cast(value, F32) for value in values)), type)


# -- formulas ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term:
    """A float32 value in a formula."""

    v: Visitor
    value: Value

    def _of(self, other: Term | float) -> Value:
        return other.value if isinstance(other, Term) else self.v.arith.number(other, F32)

    def __add__(self, other: Term | float) -> Term:
        return Term(self.v, self.v.arith.add(self.value, self._of(other)))

    def __sub__(self, other: Term | float) -> Term:
        return Term(self.v, self.v.arith.sub(self.value, self._of(other)))

    def __rsub__(self, other: float) -> Term:
        return Term(self.v, self.v.arith.sub(self._of(other), self.value))

    def __mul__(self, other: Term | float) -> Term:
        return Term(self.v, self.v.arith.mul(self.value, self._of(other)))

    def __truediv__(self, other: Term | float) -> Term:
        return Term(self.v, self.v.arith.true_divide(self.value, self._of(other)))

    def __rtruediv__(self, other: float) -> Term:
        return Term(self.v, self.v.arith.true_divide(self._of(other), self.value))

    def __neg__(self) -> Term:
        return Term(self.v, self.v.arith.negate(self.value))

    def compare(self, operator: str, other: Term | float) -> Value:
        return self.v.arith.compare(operator, self.value, self._of(other))

    def where(self, condition: Value, other: Term | float) -> Term:
        """This value where the condition holds, the other elsewhere."""
        return Term(self.v, self.v.arith.select(condition, self.value, self._of(other)))

    def call(self, generic: str, *others: Term | float) -> Term:
        return Term(self.v, native(self.v, generic, self.value, *(self.v.arith.typed(self._of(other)) for other in others)))

    def polynomial(self, coefficients: tuple[float, ...]) -> Term:
        """Horner's scheme; lowest power first."""
        result = self * coefficients[-1] + coefficients[-2]
        for coefficient in reversed(coefficients[:-2]):
            result = result * self + coefficient
        return result


Formula = Callable[[Term], Term]


def _expand(v: Visitor, what: str, node: Any, formula: Formula) -> Value:
    """A formula in float32, applied to a float of any width."""
    (value,) = _floats(v, what, node)
    result = formula(Term(v, v.arith.cast(value, F32))).value
    return v.arith.cast(result, value.type)


def _split(constant: float, below: bool = False) -> tuple[float, float]:
    """A constant as a float32 and what it lacks; ``below``: what it lacks is positive."""
    high = float(np.float32(constant))
    if below and high > constant:
        high = float(np.nextafter(np.float32(high), np.float32(0)))
    return high, float(np.float32(constant - high))


# -- exponentials and logarithms -----------------------------------------------------------------------------------------


@op("tirx.exp", "tl.__exp", "extern:expf", "extern:exp", "extern:hexp", arity=1, emits="exp", dtypes=FLOATS)
def exp(v: Visitor, node: Any, a: Any) -> Value:
    return native(v, "exp", *_floats(v, "exp", a))


def _power_of(base: float) -> Formula:
    """``base ** x = exp(p) * (1 + e)``, where ``p + e`` is ``x * log(base)`` to twice the precision. At most 3 ulp."""
    high, low = _split(math.log(base))

    def formula(x: Term) -> Term:
        product = x * high
        error = x.call("fma", low, x.call("fma", high, -product))
        error = error.where(product.call("fabs").compare("<", 512.0), 0.0)  # beyond, the result is 0 or infinite
        return product.call("exp") * (error + 1.0)

    return formula


@op("tirx.exp2", "extern:exp2f", "extern:exp2", "extern:hexp2", arity=1, emits=("exp", "fma", "abs", "select"), dtypes=FLOATS)
def exp2(v: Visitor, node: Any, a: Any) -> Value:
    """At most 3 ulp."""
    return _expand(v, "exp2", a, _power_of(2.0))


@op(
    "tirx.exp10",
    "tl.__exp10",
    "extern:exp10f",
    "extern:exp10",
    "extern:hexp10",
    arity=1,
    emits=("exp", "fma", "abs", "select"),
    dtypes=FLOATS,
)
def exp10(v: Visitor, node: Any, a: Any) -> Value:
    """At most 3 ulp."""
    return _expand(v, "exp10", a, _power_of(10.0))


@op("tirx.log", "tl.__log", "extern:logf", "extern:log", "extern:hlog", arity=1, emits="log", dtypes=FLOATS)
def log(v: Visitor, node: Any, a: Any) -> Value:
    return native(v, "log", *_floats(v, "log", a))


def _logarithm_to(base: float) -> Formula:
    """``log(x) / log(base)`` with the factor to twice the precision. At most 3 ulp."""
    high, low = _split(1 / math.log(base), below=True)  # both positive: infinities stay infinities

    def formula(x: Term) -> Term:
        natural = x.call("log")
        return natural.call("fma", low, natural * high)

    return formula


@op("tirx.log2", "tl.__log2", "extern:log2f", "extern:log2", "extern:hlog2", arity=1, emits=("log", "fma"), dtypes=FLOATS)
def log2(v: Visitor, node: Any, a: Any) -> Value:
    """At most 3 ulp."""
    return _expand(v, "log2", a, _logarithm_to(2.0))


@op("tirx.log10", "tl.__log10", "extern:log10f", "extern:log10", "extern:hlog10", arity=1, emits=("log", "fma"), dtypes=FLOATS)
def log10(v: Visitor, node: Any, a: Any) -> Value:
    """At most 3 ulp."""
    return _expand(v, "log10", a, _logarithm_to(10.0))


@op("tirx.log1p", "extern:log1pf", "extern:log1p", "extern:hlog1p", arity=1, emits=("log", "select"), dtypes=FLOATS)
def log1p(v: Visitor, node: Any, a: Any) -> Value:
    """``log(u) * x / (u - 1)`` with ``u = 1 + x`` as rounded (Kahan); ``x`` itself where ``u`` is 1 or infinite. At most 4 ulp."""

    def formula(x: Term) -> Term:
        u = x + 1.0
        corrected = u.call("log") * (x / (u - 1.0))
        itself = v.arith.logical("|", u.compare("==", 1.0), u.compare(">", float(np.finfo(np.float32).max)))
        return x.where(itself, corrected)

    return _expand(v, "log1p", a, formula)


@op("tirx.pow", "extern:powf", "extern:pow", "extern:hpow", arity=2, emits="pow", dtypes=FLOATS)
def power(v: Visitor, node: Any, a: Any, b: Any) -> Value:
    return native(v, "pow", *_floats(v, "pow", a, b))


# -- roots ---------------------------------------------------------------------------------------------------------------


@op("tirx.sqrt", "extern:sqrtf", "extern:sqrt", "extern:hsqrt", arity=1, emits="sqrt", dtypes=FLOATS)
def sqrt(v: Visitor, node: Any, a: Any) -> Value:
    return native(v, "sqrt", *_floats(v, "sqrt", a))


@op("tirx.rsqrt", "tl.ieee_frsqrt", "extern:rsqrtf", "extern:rsqrt", "extern:hrsqrt", arity=1, emits="sqrt", dtypes=FLOATS)
def rsqrt(v: Visitor, node: Any, a: Any) -> Value:
    """``1 / sqrt(x)``: at most 1.5 ulp where division and root are correctly rounded, 3 ulp where they err by 1."""
    return _expand(v, "rsqrt", a, lambda x: 1.0 / x.call("sqrt"))


# -- circular and hyperbolic functions -----------------------------------------------------------------------------------


@op("tirx.sin", "tl.__sin", "extern:sinf", "extern:sin", "extern:hsin", arity=1, emits="sin", dtypes=FLOATS)
def sin(v: Visitor, node: Any, a: Any) -> Value:
    return native(v, "sin", *_floats(v, "sin", a))


@op("tirx.cos", "tl.__cos", "extern:cosf", "extern:cos", "extern:hcos", arity=1, emits="cos", dtypes=FLOATS)
def cos(v: Visitor, node: Any, a: Any) -> Value:
    return native(v, "cos", *_floats(v, "cos", a))


@op("tirx.tan", "tl.__tan", "extern:tanf", "extern:tan", "extern:htan", arity=1, emits=("sin", "cos"), dtypes=FLOATS)
def tan(v: Visitor, node: Any, a: Any) -> Value:
    """``sin(x) / cos(x)``. At most 4 ulp."""
    return _expand(v, "tan", a, lambda x: x.call("sin") / x.call("cos"))


_TANH = (-0.33333316445350647, 0.13332585990428925, -0.05385230854153633, 0.021071676164865494, -0.0062742349691689014)
"""Minimax polynomial (Lawson's iteration) of ``(tanh(x) / x - 1) / x**2`` in ``x**2`` for ``|x| <= 0.55``."""


@op("tirx.tanh", "extern:tanhf", "extern:tanh", "extern:htanh", arity=1, emits=("exp", "abs", "select"), dtypes=FLOATS)
def tanh(v: Visitor, node: Any, a: Any) -> Value:
    """A polynomial up to 0.55 and ``1 - 2 / (exp(2 |x|) + 1)`` with the sign of ``x`` beyond. At most 3 ulp."""

    def formula(x: Term) -> Term:
        size, square = x.call("fabs"), x * x
        near = x * (square * square.polynomial(_TANH) + 1.0)
        far = 1.0 - 2.0 / ((size + size).call("exp") + 1.0)
        return near.where(size.compare("<", 0.55), (-far).where(x.compare("<", 0.0), far))

    return _expand(v, "tanh", a, formula)


@op("tirx.sigmoid", arity=1, emits="exp", dtypes=FLOATS)
def sigmoid(v: Visitor, node: Any, a: Any) -> Value:
    """``1 / (1 + exp(-x))``, as TileLang's own lowering expands it. At most 3 ulp."""
    return _expand(v, "sigmoid", a, lambda x: 1.0 / ((-x).call("exp") + 1.0))


_ERF = (
    1.128379225730896, -0.37612634897232056, 0.11283715069293976, -0.02686050906777382,
    0.005203860346227884, -0.0008175648981705308, 8.513138891430572e-05,
)  # fmt: skip
"""Minimax polynomial (Lawson's iteration) of ``erf(x) / x`` in ``x**2`` for ``|x| <= 0.9``."""

_LOG_ERFC = (
    0.00016920363123062998, -1.1294883489608765, -0.6334008574485779, -0.10822036862373352,
    0.0250806026160717, -0.004156249575316906, 0.0004313924291636795, -2.082851278828457e-05,
)  # fmt: skip
"""Minimax polynomial of ``log(1 - erf(x))`` for ``0.9 <= x <= 3.93``, weighted by ``(1 - erf(x)) / erf(x)``."""


@op("tirx.erf", "extern:erff", "extern:erf", "extern:herf", arity=1, emits=("exp", "abs", "min", "select"), dtypes=FLOATS)
def erf(v: Visitor, node: Any, a: Any) -> Value:
    """A polynomial up to 0.9 and ``1 - exp(polynomial)`` with the sign of ``x`` beyond; 1 from 3.93 on. At most 3 ulp."""

    def formula(x: Term) -> Term:
        size, square = x.call("fabs"), x * x
        near = x * square.polynomial(_ERF)
        capped = Term(v, v.arith.minimum(size.value, v.arith.number(3.93, F32)))
        far = 1.0 - capped.polynomial(_LOG_ERFC).call("exp")
        signed = (-far).where(x.compare("<", 0.0), far)
        beyond = size.compare(">=", 0.9)
        return signed.where(beyond, near)  # a NaN is not beyond

    return _expand(v, "erf", a, formula)


# -- rounding, absolute value, fused multiply-add ------------------------------------------------------------------------


@op("tirx.fabs", "extern:fabsf", "extern:fabs", "extern:hfabs", "extern:habs", arity=1, emits=("abs", "max"), dtypes=FLOATS)
def fabs(v: Visitor, node: Any, a: Any) -> Value:
    """Where the unit has no such function, the larger of ``x`` and ``0 - x``."""
    (value,) = _floats(v, "fabs", a)
    if v.surface.has_spelling("fabs", v.arith.unit):
        return native(v, "fabs", value)
    return v.arith.maximum(value, v.arith.sub(v.arith.typed(v.arith.number(0.0, value.type)), value))


@op("tirx.floor", "extern:floorf", "extern:floor", "extern:hfloor", arity=1, emits="floor", dtypes=FLOATS)
def floor(v: Visitor, node: Any, a: Any) -> Value:
    return native(v, "floor", *_floats(v, "floor", a))


@op("tirx.ceil", "extern:ceilf", "extern:ceil", "extern:hceil", arity=1, emits="ceil", dtypes=FLOATS)
def ceil(v: Visitor, node: Any, a: Any) -> Value:
    return native(v, "ceil", *_floats(v, "ceil", a))


@op("tirx.round", "tl.round_ties_away_from_zero", "extern:roundf", "extern:round", "extern:hround", arity=1, emits="round", dtypes=FLOATS)
def round_away(v: Visitor, node: Any, a: Any) -> Value:
    """To the nearest integer, halves away from zero, like C's ``round``."""
    return native(v, "round", *_floats(v, "round", a))


@op(
    "tirx.nearbyint",
    "extern:nearbyintf",
    "extern:nearbyint",
    "extern:rintf",
    "extern:rint",
    "extern:hrint",
    arity=1,
    emits="rint",
    dtypes=FLOATS,
)
def nearbyint(v: Visitor, node: Any, a: Any) -> Value:
    """To the nearest integer, halves to even."""
    return native(v, "rint", *_floats(v, "nearbyint", a))


@op("tirx.trunc", "extern:truncf", "extern:trunc", "extern:htrunc", arity=1, emits=("floor", "ceil", "select"), dtypes=FLOATS)
def trunc(v: Visitor, node: Any, a: Any) -> Value:
    """Towards zero: up for negative values, down for others. Exact, with the sign of ``x``."""
    (value,) = _floats(v, "trunc", a)
    negative = v.arith.compare("<", value, v.arith.number(0.0, value.type))
    return v.arith.select(negative, native(v, "ceil", value), native(v, "floor", value))


@op("tirx.fma", "tl.fma", "extern:fmaf", "extern:fma", "extern:hfma", arity=3, emits="fma", dtypes=FLOATS)
def fma(v: Visitor, node: Any, a: Any, b: Any, c: Any) -> Value:
    """``a * b + c`` with one rounding."""
    return native(v, "fma", *(v.arith.typed(value) for value in _floats(v, "fma", a, b, c)))


@op("extern:fmaxf", "extern:fmax", arity=2, emits="max", dtypes=FLOATS)
def fmax(v: Visitor, node: Any, a: Any, b: Any) -> Value:
    return v.arith.maximum(*_floats(v, "fmax", a, b))


@op("extern:fminf", "extern:fmin", arity=2, emits="min", dtypes=FLOATS)
def fmin(v: Visitor, node: Any, a: Any, b: Any) -> Value:
    return v.arith.minimum(*_floats(v, "fmin", a, b))


# -- classification ------------------------------------------------------------------------------------------------------


@op("tirx.isnan", "extern:isnan", "extern:__isnan", arity=1, dtypes=FLOATS)
def isnan(v: Visitor, node: Any, a: Any) -> Value:
    """A NaN is not equal to itself."""
    return _flag(v, node, _is_nan(v, *_floats(v, "isnan", a)))


def _is_nan(v: Visitor, value: Value) -> Value:
    if value.literal is not None:
        return v.arith.typed(v.b.literal(math.isnan(value.literal), Type("scalar", DTYPES["bool"])))
    return v.arith.compare("!=", value, value)


@op("tirx.isinf", "extern:isinf", arity=1, emits=("abs", "max"), dtypes=FLOATS)
def isinf(v: Visitor, node: Any, a: Any) -> Value:
    size = fabs(v, node, a)
    return _flag(v, node, v.arith.compare("==", size, v.arith.typed(v.arith.number(math.inf, size.type))))


@op("tirx.isfinite", "extern:isfinite", arity=1, emits=("abs", "max"), dtypes=FLOATS)
def isfinite(v: Visitor, node: Any, a: Any) -> Value:
    size = fabs(v, node, a)
    return _flag(v, node, v.arith.compare("<", size, v.arith.typed(v.arith.number(math.inf, size.type))))


def _flag(v: Visitor, node: Any, condition: Value) -> Value:
    """C functions give an integer where the TIR intrinsic gives a condition."""
    return v.arith.cast(condition, v.scalar_type(node.dtype))


@op("tl.infinity", arity=(0, 1))
def infinity(v: Visitor, node: Any, *_: Any) -> Value:
    return v.arith.typed(v.arith.number(math.inf, v.scalar_type(node.dtype)))


@op("tl.clamp", arity=3, emits=("max", "min", "select"))
def clamp(v: Visitor, node: Any, a: Any, low: Any, high: Any) -> Value:
    """``min(max(x, low), high)``; a NaN among the operands is the result, that of ``x`` first."""
    value, lowest, highest = v.expr(a), v.expr(low), v.expr(high)
    result = v.arith.minimum(v.arith.maximum(value, lowest), highest)
    if not value.dtype.is_float:
        return result
    for operand in (highest, lowest, value):
        if operand.literal is None or math.isnan(operand.literal):
            result = v.arith.select(_is_nan(v, operand), operand, result)
    return result
