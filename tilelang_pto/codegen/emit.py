"""Builds the Python AST of a kernel.

The visitor appends statements to blocks and asks for pure values. A value asked for twice in one scope is computed once; a pure
scalar or address whose operands are defined outside a loop or vector function is placed outside, but stays with its core. When the
kernel is complete, :meth:`Builder.finish` decides which values get a name (used more than once, used inside a deeper loop, a load with a
store behind it, a long expression, a name the user gave) and which are printed where they are used.
"""

from __future__ import annotations

import ast
import bisect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from .naming import NameSupply
from .types import Type
from .values import Interval, Number, Value, VectorAccess, full_range

__all__ = ["Block", "BlockKind", "Builder", "attribute", "call", "constant", "name", "path"]

BlockKind = Literal["function", "section", "loop", "branch", "vector_function"]
Expressions = Sequence[ast.expr]

_LONGEST_INLINE = 72
_DEEPEST_NEST = 18
"""Python compiles at most 20 nested blocks; a loop takes one, a branch two."""


class NestingError(Exception):
    """Control flow is nested more deeply than Python text can be."""


# -- AST helpers ---------------------------------------------------------------------------------------------------------


def name(identifier: str) -> ast.Name:
    """``identifier`` as an expression."""
    return ast.Name(identifier, ast.Load())


def constant(value: object) -> ast.expr:
    """A Python literal."""
    return ast.Constant(value)  # type: ignore[arg-type]


def attribute(owner: ast.expr, member: str) -> ast.Attribute:
    """``owner.member``."""
    return ast.Attribute(owner, member, ast.Load())


def path(dotted: str) -> ast.expr:
    """``"pto.vlds"`` as an expression."""
    first, *rest = dotted.split(".")
    expression: ast.expr = name(first)
    for member in rest:
        expression = attribute(expression, member)
    return expression


def call(function: str | ast.expr, *arguments: ast.expr, **keywords: ast.expr) -> ast.Call:
    """``function(*arguments, **keywords)``; a string is a dotted path."""
    target = path(function) if isinstance(function, str) else function
    return ast.Call(target, list(arguments), [ast.keyword(key, value) for key, value in keywords.items()])


def comment(text: str) -> ast.stmt:
    """A comment line; :func:`tilelang_pto.codegen.printer.print_module` turns it into ``# text``."""
    return ast.Expr(call(name(COMMENT), constant(text)))


def note(text: str) -> ast.stmt:
    """A comment at the end of the line before."""
    return ast.Expr(call(name(NOTE), constant(text)))


COMMENT, NOTE = "__comment__", "__note__"


# -- blocks --------------------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Statement:
    """A statement with an effect, or one that must stay in place."""

    build: Callable[[Expressions], ast.stmt]
    operands: tuple[Value, ...]
    order: int
    access: VectorAccess | None = None  # of a vector store
    orders: tuple[tuple[bool, ...], tuple[bool, ...]] | None = None  # of a mem_bar: kinds before and behind it (True: vector stores)


@dataclass(eq=False, slots=True)
class Nest:
    """A statement with inner blocks; ``build`` gets the operands and the bodies."""

    build: Callable[[Expressions, list[list[ast.stmt]]], list[ast.stmt]]
    operands: tuple[Value, ...]
    order: int
    blocks: list[Block] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Unpacking:
    """``a, b = call(...)``; left out when no result is used, and results nobody uses are called ``_``."""

    build: Callable[[Expressions], ast.expr]
    operands: tuple[Value, ...]
    order: int
    results: tuple[Value, ...]
    access: VectorAccess | None = None  # of a vector load


Item = Value | Statement | Nest | Unpacking


@dataclass(eq=False, slots=True)
class Block:
    """A Python suite being filled."""

    kind: BlockKind
    parent: Block | None
    items: list[Item] = field(default_factory=list)
    known: dict[object, Value] = field(default_factory=dict)
    depth: int = 0
    variable: Value | None = None  # of a loop


EVERYTHING = object()
"""As memory of a statement: it may change all memory (transfers, flags, barriers)."""


class Builder:
    """Appends to the current block of one kernel.

    Loads name the memory they read and stores the memory they write (any object: a kernel argument's storage, UB as a whole, a private
    array), so that a load is only repeated, and only kept apart from its use, where a store to the same memory comes between.
    """

    def __init__(self) -> None:
        self.names = NameSupply()
        self.root = Block("function", None)
        self.block = self.root
        self.order = 0
        self.handed: dict[tuple[str, str], list[Value]] = {}  # what becomes a carried or merged value, by handle and field
        self._stores: dict[object, list[int]] = {EVERYTHING: []}

    # -- values ----------------------------------------------------------------------------------------------------------

    def literal(self, value: Number, type: Type) -> Value:
        """A Python number of the given type."""
        interval = (int(value), int(value)) if type.dtype.is_integer or type.dtype.category == "bool" else None
        return Value(
            type, None, lambda _: constant(value), literal=value, static=True, interval=interval, inline=True, weight=len(repr(value))
        )

    def named(self, identifier: str, type: Type, *, interval: Interval | None = None, static: bool = False) -> Value:
        """A value that already has a name in the current block: a parameter, a loop variable."""
        if interval is None and type.dtype.is_integer and type.kind == "scalar":
            interval = full_range(type.dtype)
        return Value(
            type,
            self.block,
            lambda _: name(identifier),
            static=static,
            interval=interval,
            name=identifier,
            inline=True,
            weight=len(identifier),
        )

    def member(self, handle: str, member: str, type: Type, *, interval: Interval | None = None) -> Value:
        """``handle.member``, a carried or merged value, in the current block."""
        value = self.named(f"{handle}.{member}", type, interval=interval)
        value.build = lambda _: attribute(name(handle), member)
        value.key = ("member", handle, member)
        return value

    def hand(self, handle: str, fields: Sequence[str], values: Sequence[Value]) -> None:
        """Note what the carried or merged values of a handle may come from."""
        for member, value in zip(fields, values, strict=True):
            self.handed.setdefault((handle, member), []).append(value)

    def pure(
        self,
        key: object,
        build: Callable[[Expressions], ast.expr],
        operands: Sequence[Value],
        type: Type,
        *,
        interval: Interval | None = None,
        assumed: bool = False,
        hint: str = "",
        traps: bool = False,
        pinned: bool = False,
        static: bool = False,
        inline: bool = False,
        memory: object | None = None,
        everywhere: bool = False,
        within: Block | None = None,
        weight: int = 6,
    ) -> Value:
        """A value without side effects; the same key and operands in scope give the same value.

        Args:
            key: what is computed, apart from operands and type.
            assumed: the interval relies on signed arithmetic not overflowing here (operands pass that on by themselves).
            traps: may fail for some operands, so it must not be computed where the source would not.
            pinned: must be defined in the current block (register arithmetic, thread indices).
            static: a Python number while tracing.
            inline: never gets a name.
            memory: what a load reads; it is the same value only until the next store there.
            within: enclosing block to define it in.
            everywhere: worth computing even where a branch may not need it (base pointers).
        """
        version = None if memory is None else (len(self._stores[EVERYTHING]), len(self._stores.get(memory, ())))
        # What must not overflow for its value to be known is another value than what may.
        full_key = (key, type, version, assumed, tuple(_identity(operand) for operand in operands))
        scope: Block | None = self.block
        while scope is not None:
            found = scope.known.get(full_key)
            if found is not None:
                found.hint = found.hint or hint
                return found
            scope = scope.parent
        block = within or self.block
        if (
            within is None
            and not (pinned or static or memory is not None)
            and (type.kind == "pointer" or (type.kind == "scalar" and not type.dtype.is_float))
        ):
            block = self._outermost(operands, traps, everywhere)
        assumed = interval is not None and (assumed or any(operand.assumed for operand in operands))
        if interval is None and type.kind == "scalar" and type.dtype.is_integer:
            interval = full_range(type.dtype)
        size = weight + sum(operand.weight for operand in operands)
        value = Value(
            type,
            block,
            build,
            tuple(operands),
            key,
            static=static,
            interval=interval,
            assumed=assumed,
            hint=hint,
            memory=memory,
            created=self.order,
            inline=inline,
            weight=size,
        )
        if size > _LONGEST_INLINE and not inline:
            value.keep_name, value.weight = True, 8
        block.known[full_key] = value
        if block is self.block:
            block.items.append(value)
        else:
            block.items.insert(len(block.items) - 1, value)  # before the nest that is being filled
        return value

    def unpack(
        self,
        build: Callable[[Expressions], ast.expr],
        operands: Sequence[Value],
        types: Sequence[Type],
        hints: Sequence[str],
        access: VectorAccess | None = None,
    ) -> tuple[Value, ...]:
        """The values of a call with several results, which has no effect and stays where it is; ``access``: what a vector load reads."""

        def unreachable(_: Expressions) -> ast.expr:
            raise AssertionError("a result of a call with several results has a name")

        results = tuple(
            Value(type, self.block, unreachable, hint=hint, keep_name=True, created=self.order)
            for type, hint in zip(types, hints, strict=True)
        )
        self.block.items.append(Unpacking(build, tuple(operands), self.order, results, access))
        return results

    def _outermost(self, operands: Sequence[Value], traps: bool, everywhere: bool) -> Block:
        """Block nearest to the root in which a value of these operands can be computed."""
        block = self.block
        while block.parent is not None:
            if block.kind == "section" or (block.kind == "branch" and not everywhere) or (block.kind == "loop" and traps):
                break
            if any(operand.block is block for operand in operands):
                break
            block = block.parent
        return block

    # -- statements ------------------------------------------------------------------------------------------------------

    def statement(
        self, build: Callable[[Expressions], ast.stmt], operands: Sequence[Value] = (), *, writes: object | None = EVERYTHING
    ) -> Statement:
        """Append a statement; ``writes`` is the memory it may change, None if none."""
        added = Statement(build, tuple(operands), self.order)
        self.block.items.append(added)
        self._advance(writes)
        return added

    def effect(
        self, expression: Callable[[Expressions], ast.expr], operands: Sequence[Value] = (), *, writes: object = EVERYTHING
    ) -> Statement:
        """Append an expression statement with an effect."""
        return self.statement(lambda exprs: ast.Expr(expression(exprs)), operands, writes=writes)

    def action(
        self, build: Callable[[Expressions], ast.expr], operands: Sequence[Value], type: Type, hint: str, *, writes: object = EVERYTHING
    ) -> Value:
        """The value of a call with an effect; it stays where it is and is printed whether the value is used or not."""
        identifier = self.names.claim(hint)
        self.statement(lambda exprs: ast.Assign([ast.Name(identifier, ast.Store())], build(exprs)), operands, writes=writes)
        return self.named(identifier, type)

    def _advance(self, writes: object | None) -> None:
        if writes is not None:
            self._stores.setdefault(writes, []).append(self.order)
        self.order += 1

    def comment(self, text: str) -> None:
        """Append a comment line."""
        self.statement(lambda _: comment(text), writes=None)

    @contextmanager
    def nest(
        self,
        kinds: Sequence[BlockKind],
        build: Callable[[Expressions, list[list[ast.stmt]]], list[ast.stmt]],
        operands: Sequence[Value] = (),
    ) -> Iterator[Nest]:
        """Append a statement with ``len(kinds)`` inner blocks; fill them with :meth:`inside`."""
        depth = self.block.depth + (2 if "branch" in kinds else 1)
        if depth > _DEEPEST_NEST:
            raise NestingError(f"control flow nested {depth} Python blocks deep")
        nest = Nest(build, tuple(operands), self.order)
        nest.blocks = [Block(kind, self.block, depth=depth) for kind in kinds]
        self.block.items.append(nest)
        if "loop" in kinds:
            self._advance(EVERYTHING)  # a store at the end of the body comes before a load at its start
        yield nest

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Make ``block`` current."""
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer

    # -- the end ---------------------------------------------------------------------------------------------------------

    def finish(self) -> list[ast.stmt]:
        """Decide on names and return the statements of the kernel body."""
        self._place(self.root)
        return self._print(self.root)

    def _place(self, root: Block) -> None:
        """Record uses, last definition first, and choose names."""
        values: list[Value] = []
        unpackings: dict[Value, tuple[Block, Unpacking]] = {}

        def collect(block: Block) -> None:
            for item in block.items:
                if isinstance(item, Value):
                    values.append(item)
                    continue
                if isinstance(item, Unpacking):
                    unpackings[item.results[0]] = (block, item)
                    values.extend(item.results)
                    continue
                for operand in item.operands:
                    operand.uses.append((block, item.order))
                if isinstance(item, Nest):
                    for inner in item.blocks:
                        collect(inner)

        collect(root)
        for value in reversed(values):  # operands are defined before their users, so users come first
            block = value.block
            if value in unpackings and any(result.uses for result in unpackings[value][1].results):  # the first of them comes last
                where, unpacking = unpackings[value]
                for operand in unpacking.operands:
                    operand.uses.append((where, unpacking.order))
            if not value.uses or block is None:
                continue
            if value.inline or not self._needs_name(value):
                sites = list(value.uses)
            else:
                value.name = ""  # named, in definition order below
                sites = [(block, value.created)]
            for operand in value.operands:
                operand.uses.extend(sites)
        for value in values:
            if value.name == "":
                value.name = self.names.claim(value.hint or "t")

    def _needs_name(self, value: Value) -> bool:
        if value.keep_name or len(value.uses) != 1:
            return True
        site, order = value.uses[0]
        if value.memory is not None:
            return site is not value.block or any(self._stored(m, value.created, order) for m in (value.memory, EVERYTHING))
        block: Block | None = site
        while block is not value.block:
            assert block is not None, "a value is used outside its scope"
            if block.kind in ("loop", "vector_function"):
                return True
            block = block.parent
        return False

    def _stored(self, memory: object, first: int, last: int) -> bool:
        """Whether ``memory`` is written by a statement from ``first`` up to, not including, ``last``."""
        orders = self._stores.get(memory, [])
        position = bisect.bisect_left(orders, first)
        return position < len(orders) and orders[position] < last

    def _print(self, block: Block) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for item in block.items:
            if isinstance(item, Value):
                if item.name and item.uses:
                    target = ast.Name(item.name, ast.Store())
                    out.append(ast.Assign([target], item.build([_expression(v) for v in item.operands])))
                    if item.note:
                        out.append(note(item.note))
            elif isinstance(item, Unpacking):
                if any(result.uses for result in item.results):
                    names: list[ast.expr] = [ast.Name(result.name or "_", ast.Store()) for result in item.results]
                    value = item.build([_expression(v) for v in item.operands])
                    out.append(ast.Assign([ast.Tuple(names, ast.Store())], value))
            elif isinstance(item, Statement):
                out.append(item.build([_expression(v) for v in item.operands]))
            else:
                bodies = [self._print(inner) or [ast.Pass()] for inner in item.blocks]
                out.extend(item.build([_expression(v) for v in item.operands], bodies))
        return out


def _identity(value: Value) -> object:
    return (value.type, repr(value.literal)) if value.literal is not None else id(value)


def _expression(value: Value) -> ast.expr:
    if value.name and not value.inline:
        return name(value.name)
    return value.build([_expression(operand) for operand in value.operands])
