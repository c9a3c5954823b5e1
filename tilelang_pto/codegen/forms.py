"""Integer values as sums of multiples of other values, whatever the width they are computed in.

Two values with the same form are the same number as long as no signed arithmetic overflows, which TIR takes for granted. Forms find a sum
again that was written differently, put a quotient and its remainder together (``x // n * n + x % n``), and hold the inequalities
that are known where the program stands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from math import gcd

from .values import Value

__all__ = ["Form", "Forms"]

_EXTREMA = ("scalar.min", "scalar.max", "pto.min", "pto.max")


@dataclass(frozen=True, slots=True)
class Form:
    """``constant`` plus the sum of ``coefficient * atom`` over ``terms``, which are sorted by atom."""

    terms: tuple[tuple[int, int], ...]
    constant: int = 0

    def plus(self, other: Form, factor: int = 1) -> Form:
        """``self + factor * other``."""
        sums = dict(self.terms)
        for atom, coefficient in other.terms:
            sums[atom] = sums.get(atom, 0) + factor * coefficient
        return _form(sums, self.constant + factor * other.constant)

    def times(self, factor: int) -> Form:
        return Form((), 0).plus(self, factor)

    def primitive(self) -> tuple[Form, int]:
        """A form without a common factor, and that factor (1 for constants)."""
        factor = reduce(gcd, (coefficient for _, coefficient in self.terms), self.constant)
        if factor in (0, 1) or not self.terms:
            return self, 1
        return Form(tuple((atom, coefficient // factor) for atom, coefficient in self.terms), self.constant // factor), factor


def _form(sums: dict[int, int], constant: int) -> Form:
    return Form(tuple(sorted((atom, coefficient) for atom, coefficient in sums.items() if coefficient)), constant)


@dataclass(slots=True)
class Forms:
    """The forms of the values of one kernel.

    Attributes:
        facts: forms that are known not to be negative where the program stands.
    """

    facts: list[Form] = field(default_factory=list)
    _known: dict[Value, Form] = field(default_factory=dict)
    _atoms: dict[object, int] = field(default_factory=dict)
    _keys: list[object] = field(default_factory=list)
    _remainders: dict[int, tuple[Form, Form]] = field(default_factory=dict)

    def of(self, value: Value) -> Form:
        """Form of an integer value."""
        form = self._known.get(value)
        if form is None:
            form = self._known[value] = self._compute(value)
        return form

    def define(self, value: Value, form: Form) -> None:
        """Take a value for a number that its operands do not tell, since what it is computed from may overflow."""
        self._known[value] = form

    def sum(self, a: Form, b: Form, factor: int = 1) -> Form:
        """``a + factor * b``, with quotients and remainders put together."""
        return self._joined(a.plus(b, factor))

    def product(self, a: Form, b: Form) -> Form:
        """``a * b``."""
        if not a.terms:
            return b.times(a.constant)
        if not b.terms:
            return a.times(b.constant)
        return self._atom(("*", frozenset((a, b))))

    def known_not_negative(self, form: Form) -> bool:
        """Whether the facts say so."""
        return any(fact.terms == form.terms and fact.constant <= form.constant for fact in self.facts)

    def key_of(self, atom: int) -> object:
        """What an atom stands for: a value, or an operation (``//``, ``%``, ``*``, ``min``, ``max``) with the forms it is applied to."""
        if len(self._keys) < len(self._atoms):
            self._keys = list(self._atoms)
        return self._keys[atom]

    def _atom(self, key: object) -> Form:
        return Form(((self._atoms.setdefault(key, len(self._atoms)), 1),))

    def _compute(self, value: Value) -> Form:
        if isinstance(value.literal, int):
            return Form((), int(value.literal))
        if value.dtype.category not in ("int", "index") or value.static:
            return self._atom(value)
        operands = value.operands
        if value.key == "cast" and operands[0].dtype.is_integer:
            source = operands[0]
            preserved = value.dtype.minimum <= source.low and source.high <= value.dtype.maximum
            return self.of(source) if preserved else self._atom(value)
        if value.may_wrap:
            return self._atom(value)
        if value.key in ("+", "-"):
            return self.sum(self.of(operands[0]), self.of(operands[1]), 1 if value.key == "+" else -1)
        if value.key == "*":
            return self.product(self.of(operands[0]), self.of(operands[1]))
        if value.key in ("//", "%"):
            return self._division(value)
        if value.key in _EXTREMA:
            return self._atom((str(value.key)[-3:], frozenset(self.of(operand) for operand in operands)))
        return self._atom(value)

    def _division(self, value: Value) -> Form:
        a, b = value.operands
        dividend, divisor = self.of(a), self.of(b)
        form = self._atom((value.key, dividend, divisor))
        if value.key == "%" and a.non_negative and b.non_negative and divisor != Form(()):  # else // and % do not belong together
            self._remainders[form.terms[0][0]] = dividend, divisor
        return form

    def _joined(self, form: Form) -> Form:
        for atom, coefficient in form.terms:
            if atom in self._remainders:
                dividend, divisor = self._remainders[atom]
                multiple = self.product(self._atom(("//", dividend, divisor)), divisor)
                ((whole, step),) = multiple.terms
                if (whole, step * coefficient) in form.terms:
                    without = form.plus(multiple, -coefficient).plus(Form(((atom, 1),)), -coefficient)
                    return self._joined(without.plus(dividend, coefficient))
        return form
