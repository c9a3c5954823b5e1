"""Memory barriers that a SIMD vector function needs.

Inside a vector function the hardware may execute accesses to UB in another order than they are written in: only ``mem_bar`` and values that
flow through registers order them. Kernels are written as if it did not, so where an access meets bytes of an earlier one (in the same
round of a loop, or in an earlier one) and one of them writes, a barrier of their kinds goes in front of it.

Whether two accesses may meet is decided by their byte addresses as sums of multiples of other values (:mod:`..forms`), the intervals
of those, and how far the loops have advanced in between. Gathers, scatters, strided blocks and unaligned streams are left to
who wrote them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..emit import Block, Item, Nest, Statement, Unpacking, call, constant
from ..forms import Form, Forms
from ..values import Value, VectorAccess

__all__ = ["place_barriers"]

_FAR = 1 << 62
_FEW = 64
"""Rounds of a loop, and values of an address, that are looked at one by one."""
_NAMES = {True: "VST", False: "VLD"}


@dataclass(frozen=True, slots=True)
class _Open:
    """An access that later ones may still overtake.

    Attributes:
        item: its statement or value.
        loops: the loops around it, outermost first.
        behind: kinds of accesses (True: stores) that a barrier keeps behind it.
        again: depth of the loop that has begun another round since, None if none has.
        early: a load that comes before a barrier between stores and loads.
    """

    item: Item
    writes: bool
    address: Form
    width: int
    loops: tuple[Block, ...]
    behind: frozenset[bool] = frozenset()
    again: int | None = None
    early: bool = False


Handed = Mapping[tuple[str, str], Sequence[Value]]


@dataclass(frozen=True, slots=True)
class _Distance:
    """``base`` plus something between ``low`` and ``high`` that is a multiple of ``divisor`` (0: nothing)."""

    base: int
    low: int
    high: int
    divisor: int

    def moved(self, by: int, count: int, step: int) -> _Distance:
        """Plus ``by`` and up to ``count`` times ``step``."""
        last = count * step
        return _Distance(self.base + by, self.low + min(0, last), self.high + max(0, last), math.gcd(self.divisor, step))

    def meets(self, old_width: int, new_width: int) -> bool:
        """Whether accesses of these widths may share bytes."""
        least, most = max(self.low, 1 - new_width - self.base), min(self.high, old_width - 1 - self.base)
        return least <= most and (not self.divisor or -(-least // self.divisor) * self.divisor <= most)


@dataclass(frozen=True, slots=True)
class _Distances:
    """One of several distances: values of which there are few count one by one, as multiples of a common divisor would blur them."""

    cases: tuple[_Distance, ...]

    def moved(self, by: int, count: int, step: int) -> _Distances:
        """Plus ``by`` and up to ``count`` times ``step``."""
        if (count + 1) * len(self.cases) > _FEW:
            return _Distances(tuple(case.moved(by, count, step) for case in self.cases))
        return _Distances(tuple(case.moved(by + each * step, 0, 0) for case in self.cases for each in range(count + 1)))

    def meets(self, old_width: int, new_width: int) -> bool:
        """Whether accesses of these widths may share bytes."""
        return any(case.meets(old_width, new_width) for case in self.cases)


def place_barriers(block: Block, forms: Forms, handed: Handed) -> None:
    """Insert ``mem_bar`` statements in the block of a vector function, in place.

    Args:
        handed: what carried and merged values may come from, by handle and field.
    """
    _Placement(forms, handed).region(block, (), ())


class _Placement:
    def __init__(self, forms: Forms, handed: Handed) -> None:
        self.forms = forms
        self.handed = handed

    def region(self, block: Block, loops: tuple[Block, ...], open_: tuple[_Open, ...]) -> tuple[_Open, ...]:
        """Go through a block in program order, given and returning the accesses that are open at its start and end."""
        position = 0
        while position < len(block.items):
            item = block.items[position]
            if isinstance(item, Nest):
                open_ = self.nest(item, loops, open_)
            elif isinstance(item, Statement) and item.orders is not None:
                open_ = _behind(open_, *item.orders)
            elif isinstance(item, (Statement, Value, Unpacking)) and item.access is not None:
                new = self.opened(item, item.access, loops)
                for earlier in (True, False):
                    if any(old.writes == earlier and self.hazard(old, new, open_) for old in open_):
                        block.items.insert(position, _barrier(item, earlier, new.writes))
                        open_ = _behind(open_, (earlier,), (new.writes,))
                        position += 1
                open_ = (*open_, new)
            position += 1
        return open_

    def nest(self, nest: Nest, loops: tuple[Block, ...], open_: tuple[_Open, ...]) -> tuple[_Open, ...]:
        if any(block.kind == "branch" for block in nest.blocks):
            return _union(self.region(block, loops, open_) for block in nest.blocks)
        depth = len(loops)
        for block in nest.blocks:
            once = self.region(block, (*loops, block), open_)
            # In the next round everything of this one comes before.
            old = tuple(replace(a, again=depth) if len(a.loops) > depth and a.again is None else a for a in once)
            more = self.region(block, (*loops, block), old)
            open_ = _union((open_, (replace(a, again=None) if a.again == depth else a for a in more)))
        return open_

    def opened(self, item: Item, access: VectorAccess, loops: tuple[Block, ...]) -> _Open:
        offset = self.forms.of(access.offset).times(access.pointer.dtype.bytes)
        return _Open(item, access.writes, self.pointer(access.pointer).plus(offset), access.width, loops)

    def pointer(self, pointer: Value) -> Form:
        """Byte address."""
        if isinstance(pointer.key, tuple) and pointer.key[0] == "ub":
            return Form((), int(pointer.key[1]))
        if pointer.key == "addptr":
            base, offset = pointer.operands
            return self.pointer(base).plus(self.forms.of(offset).times(pointer.dtype.bytes))
        if pointer.key == "castptr":
            (source,) = pointer.operands
            return self.pointer(source) if source.type.kind == "pointer" else self.forms.of(source)
        return self.forms.of(pointer)

    def hazard(self, old: _Open, new: _Open, open_: tuple[_Open, ...]) -> bool:
        """Whether ``new`` may be executed before ``old`` although they meet and one of them writes."""
        if not (old.writes or new.writes) or new.writes in old.behind or not self.meet(old, new):
            return False
        if not new.writes:
            return True
        needed = any(not (one.writes or one.early) and one.again is None and self.flows(one.item, new.item) for one in open_)
        if old.writes:
            # Behind a load that it needs, which a barrier keeps behind the old store.
            return not (False in old.behind and needed)
        if old.again is None:
            return not self.flows(old.item, new.item)
        # The same through a store of that round that needs what the old load has read.
        return not (needed and any(one.writes and False in one.behind and self.flows(old.item, one.item) for one in open_))

    def flows(self, load: Item, store: Item) -> bool:
        """Whether what the store writes, or where, is computed from what the load has read."""
        seen: set[int] = set()
        pending = list(store.operands)
        while pending:
            value = pending.pop()
            if value is load or (isinstance(load, Unpacking) and value in load.results):
                return True
            if id(value) in seen:
                continue
            seen.add(id(value))
            pending.extend(value.operands)
            if isinstance(value.key, tuple) and value.key[0] in ("member", "final"):
                pending.extend(self.handed.get(value.key[1:], ()))
        return False

    def meet(self, old: _Open, new: _Open) -> bool:
        """Whether the two may access the same bytes."""
        common = 0
        while common < min(len(old.loops), len(new.loops)) and old.loops[common] is new.loops[common]:
            common += 1
        advanced = old.again if old.again is not None and old.again < common else None
        if advanced is None:
            return self.difference(old, new, set()).meets(old.width, new.width)
        loop = old.loops[advanced]
        changing = self.changing(old, new, loop)
        # First as if rounds of the loop had nothing to do with each other.
        if not self.difference(old, new, changing).meets(old.width, new.width):
            return False
        if loop.variable is None:
            return True
        # Then by its variable: the new access' is the old one's and at least one more.
        atom, rounds = self.atom(loop.variable), loop.variable.high - loop.variable.low
        step = dict(new.address.terms).get(atom, 0)
        apart = self.difference(old, new, changing - {atom})
        if rounds <= _FEW:
            return any(apart.moved(step * count, 0, 0).meets(old.width, new.width) for count in range(1, rounds + 1))
        return apart.moved(step, rounds - 1, step).meets(old.width, new.width)

    def difference(self, old: _Open, new: _Open, changing: set[int]) -> _Distances:
        """Address of the new access minus that of the old one; ``changing`` atoms have values of their own in the two."""
        distance = _Distances((_Distance(new.address.constant - old.address.constant, 0, 0, 0),))
        old_terms, new_terms = dict(old.address.terms), dict(new.address.terms)
        for atom in {*old_terms, *new_terms}:
            first, second = old_terms.get(atom, 0), new_terms.get(atom, 0)
            low, high = self.range_of(atom)
            for coefficient in (-first, second) if atom in changing else (second - first,):
                if coefficient:
                    distance = distance.moved(coefficient * low, high - low, coefficient)
        return distance

    def changing(self, old: _Open, new: _Open, loop: Block) -> set[int]:
        """Atoms of the two addresses that may have another value in another round of the loop."""
        return {atom for access in (old, new) for atom, _ in access.address.terms if self.changes(atom, loop)}

    def changes(self, atom: int, loop: Block) -> bool:
        key = self.forms.key_of(atom)
        if isinstance(key, Value):
            block = key.block
            while block is not None and block is not loop:
                block = block.parent
            return block is loop
        return any(self.changes(inner, loop) for form in _forms_in(key) for inner, _ in form.terms)

    def atom(self, variable: Value) -> int:
        ((atom, _),) = self.forms.of(variable).terms
        return atom

    def range_of(self, atom: int) -> tuple[int, int]:
        key = self.forms.key_of(atom)
        if isinstance(key, Value) and key.interval is not None:
            return key.interval
        if isinstance(key, tuple) and key[0] == "%" and not key[2].terms and key[2].constant > 0:
            return (0 if self.least(key[1]) >= 0 else 1 - key[2].constant), key[2].constant - 1
        return -_FAR, _FAR

    def least(self, form: Form) -> int:
        """The least value a form may have."""
        return form.constant + sum(min(coefficient * bound for bound in self.range_of(atom)) for atom, coefficient in form.terms)


def _forms_in(key: object) -> list[Form]:
    """The forms an operation is applied to."""
    if isinstance(key, Form):
        return [key]
    return [form for part in key for form in _forms_in(part)] if isinstance(key, (tuple, frozenset)) else []


def _behind(open_: Iterable[_Open], earlier: Iterable[bool], later: Iterable[bool]) -> tuple[_Open, ...]:
    """After a barrier that keeps the ``later`` kinds of accesses behind the ``earlier`` ones."""
    kinds, kept = tuple(earlier), frozenset(later)
    loads_wait = True in kinds and False in kept
    behind = (
        replace(a, behind=a.behind | kept if a.writes in kinds else a.behind, early=a.early or (loads_wait and not a.writes)) for a in open_
    )
    return tuple(a for a in behind if len(a.behind) < 2 and not (not a.writes and True in a.behind))


def _union(parts: Iterable[Iterable[_Open]]) -> tuple[_Open, ...]:
    return tuple(dict.fromkeys(access for part in parts for access in part))


def _barrier(item: Statement | Value | Unpacking, earlier: bool, later: bool) -> Statement:
    kind = f"{_NAMES[earlier]}_{_NAMES[later]}"
    order = item.created if isinstance(item, Value) else item.order
    statement = Statement(lambda _: ast.Expr(call("pto.mem_bar", constant(kind))), (), order)
    statement.orders = ((earlier,), (later,))
    return statement
