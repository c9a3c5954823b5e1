"""Rule tables of the code generator.

A rule is one function for one TIR node type or one TIR operation, registered by a decorator in a file named after its family. The
tables are filled once, when :mod:`tilelang_pto.codegen.rules` is imported, and only read afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from .visitor import Visitor

__all__ = ["EXPRESSION_RULES", "OP_RULES", "STATEMENT_RULES", "OpRule", "expression", "op", "statement"]

Rule = Callable[["Visitor", Any], Any]
_RuleT = TypeVar("_RuleT", bound=Callable[..., Any])


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
) -> Callable[[_RuleT], _RuleT]:
    """Register a rule for calls of the named operations; it returns a value, or None for a pure effect."""
    places = (regions,) if isinstance(regions, str) else regions
    counts = (arity,) if isinstance(arity, int) else arity
    calls = (emits,) if isinstance(emits, str) else emits

    def register(function: _RuleT) -> _RuleT:
        family = function.__module__.rpartition(".")[2]
        for operation in names:
            _add(OP_RULES, operation, OpRule(operation, function, counts, family, places, annotations, calls, core, merges))
        return function

    return register
