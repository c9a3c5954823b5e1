"""Rule tables of the code generator.

A rule is one function for one TIR node type or one TIR operation, registered by a decorator in a file named after its family. The
tables are filled once, when :mod:`tilelang_pto.codegen.rules` is imported, and only read afterwards.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from .visitor import Visitor

__all__ = ["CONSTANT", "EXPRESSION_RULES", "OP_RULES", "STATEMENT_RULES", "TEXT", "OneOf", "OpRule", "expression", "op", "statement"]

Rule = Callable[["Visitor", Any], Any]
_RuleT = TypeVar("_RuleT", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class OneOf:
    """What an argument that must be a literal may be: one of some words or integers, or, with none listed, any of its kind.

    Attributes:
        values: the legal ones.
        kind: ``str`` or ``int``.
    """

    values: tuple[str | int, ...]
    kind: type


CONSTANT = OneOf((), int)
TEXT = OneOf((), str)


@dataclass(frozen=True, slots=True)
class OpRule:
    """Rule of one TIR operation.

    Attributes:
        name: operation name (``tl.ascend_set_flag``) or, for ``call_extern``, ``extern:`` and the C name.
        function: called with the visitor, the call node and its arguments.
        arity: legal numbers of arguments.
        family: file the rule lives in.
        regions: where the operation may stand: ``scalar`` (kernel body), ``simd``, ``simt``.
        annotations: call annotations the rule honours; any other is refused.
        emits: PTODSL calls the rule may emit, 2026-09 spelling.
        core: the core that has what the operation needs (``vector``, ``cube``), None for both.
        merges: position of the predicate if the operation can keep the inactive lanes of a destination register (``MODE_MERGING``).
        parameters: names of the arguments; the last one has a star if it takes all the rest.
        literals: what arguments that must be literals may be, by parameter; checked before the rule is called.
        spaces: memory that the arguments which are pointers must lie in, by parameter; checked like literals.
        dtypes: PTODSL element types the operation takes; empty if it takes every one that its surface has, or none.
    """

    name: str
    function: Callable[..., Any]
    arity: tuple[int, ...]
    family: str
    regions: tuple[str, ...]
    annotations: tuple[str, ...]
    emits: tuple[str, ...]
    core: Literal["vector", "cube"] | None = None
    merges: int | None = None
    parameters: tuple[str, ...] = ()
    literals: Mapping[str, OneOf] = field(default_factory=dict)
    spaces: Mapping[str, str] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ()

    def bind(self, arguments: Sequence[Any]) -> list[tuple[str, Any]]:
        """Each argument with the name of its parameter."""
        names = list(self.parameters)
        if names and names[-1].startswith("*"):
            rest = names.pop().removeprefix("*")
            names += [rest] * (len(arguments) - len(names))
        return list(zip(names, arguments, strict=False))


EXPRESSION_RULES: dict[type, Rule] = {}
STATEMENT_RULES: dict[type, Rule] = {}
OP_RULES: dict[str, OpRule] = {}


def _add(table: dict[Any, Any], key: Any, rule: Any) -> None:
    if key in table:
        raise RuntimeError(f"two rules for {key}")
    table[key] = rule


def expression(*node_types: type) -> Callable[[_RuleT], _RuleT]:
    """Register a rule for expression nodes; it returns a value."""

    def register(function: _RuleT) -> _RuleT:
        for node_type in node_types:
            _add(EXPRESSION_RULES, node_type, function)
        return function

    return register


def statement(*node_types: type) -> Callable[[_RuleT], _RuleT]:
    """Register a rule for statement nodes."""

    def register(function: _RuleT) -> _RuleT:
        for node_type in node_types:
            _add(STATEMENT_RULES, node_type, function)
        return function

    return register


REGIONS = ("scalar", "simd", "simt")


def op(
    *names: str,
    arity: int | tuple[int, ...],
    regions: tuple[str, ...] | str = REGIONS,
    annotations: tuple[str, ...] = (),
    emits: tuple[str, ...] | str = (),
    core: Literal["vector", "cube"] | None = None,
    merges: int | None = None,
    literals: Mapping[str, OneOf | Sequence[str | int]] | None = None,
    spaces: Mapping[str, str] | None = None,
    dtypes: Collection[str] | Mapping[str, Collection[str]] = (),
) -> Callable[[_RuleT], _RuleT]:
    """Register a rule for calls of the named operations; it returns a value, or None for a pure effect.

    The fields are those of :class:`OpRule`. ``literals`` may list words or integers; ``dtypes`` may be a table by operation name, without
    its namespace.
    """
    places = (regions,) if isinstance(regions, str) else regions
    counts = (arity,) if isinstance(arity, int) else arity
    calls = (emits,) if isinstance(emits, str) else emits
    legal = {parameter: _one_of(values) for parameter, values in (literals or {}).items()}

    def register(function: _RuleT) -> _RuleT:
        family = function.__module__.rpartition(".")[2]
        parameters = _parameters(function)
        bare = {parameter.removeprefix("*") for parameter in parameters}
        for parameter in (*legal, *(spaces or {})):
            if parameter not in bare:
                raise RuntimeError(f"{function.__qualname__} has no parameter {parameter}")
        for operation in names:
            types = dtypes.get(operation.rpartition(".")[2], ()) if isinstance(dtypes, Mapping) else dtypes
            rule = OpRule(
                operation,
                function,
                counts,
                family,
                places,
                annotations,
                calls,
                core,
                merges,
                parameters,
                legal,
                spaces or {},
                tuple(sorted(types)),
            )
            _add(OP_RULES, operation, rule)
        return function

    return register


def _one_of(values: OneOf | Sequence[str | int]) -> OneOf:
    return values if isinstance(values, OneOf) else OneOf(tuple(values), type(values[0]))


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names behind the visitor and the node; the star of a variadic one is kept."""
    behind = list(inspect.signature(function).parameters.values())[2:]
    return tuple(("*" if each.kind is inspect.Parameter.VAR_POSITIONAL else "") + each.name for each in behind)
