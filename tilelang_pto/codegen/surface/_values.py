"""What the checker knows about a value: abstract values, handles, and the place findings go to."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tilelang_pto.codegen.surface.tables import ApiTable, Callable_

__all__ = [
    "BRANCH",
    "FOR",
    "FUNCTION",
    "KIND_NAMES",
    "LOOP",
    "NONE",
    "OPAQUE",
    "PLAIN",
    "RUNTIME",
    "RUNTIME_VALUE",
    "STATIC",
    "TUPLE",
    "TYPE",
    "VOID",
    "Branch",
    "Finding",
    "Function",
    "Loop",
    "Reporter",
    "Value",
    "integer",
]

STATIC, RUNTIME, TYPE, TUPLE, VOID, FOR, LOOP, BRANCH, FUNCTION = range(9)
KIND_NAMES = {TYPE: "a type", VOID: "nothing", FOR: "a loop", LOOP: "a loop handle", BRANCH: "a branch handle", FUNCTION: "a function"}

#: Messages that begin with one of these have the call as their subject.
PREDICATES = {
    "assigns",
    "belongs",
    "cannot",
    "entered",
    "gives",
    "has",
    "is",
    "lacks",
    "leaves",
    "makes",
    "may",
    "must",
    "needs",
    "never",
    "stands",
    "stores",
    "takes",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault in emitted text.

    Attributes:
        line: 1-based line.
        column: 1-based column.
        call: the call or construct at fault (``"pto.vlds"``, ``"if"``).
        message: what is wrong.
        advice: what to write instead; may be empty.
    """

    line: int
    column: int
    call: str
    message: str
    advice: str = ""

    @property
    def sentence(self) -> str:
        """The message with its subject, and the advice in parentheses."""
        advice = f" ({self.advice})" if self.advice else ""
        if not self.call or self.call in self.message:
            return f"{self.message}{advice}"
        separator = " " if self.message.partition(" ")[0] in PREDICATES else ": "
        return f"{self.call}{separator}{self.message}{advice}"

    def __str__(self) -> str:
        return f"line {self.line}:{self.column}: {self.sentence}"


class Branch:
    """The state of one ``with pto.if_(...) as name``."""

    __slots__ = ("assigned", "current", "entered", "line", "open", "python_loops", "region")

    def __init__(self, line: int) -> None:
        self.line = line
        self.region = -1
        self.python_loops = 0
        self.open = True
        self.current = ""
        self.entered: dict[str, int] = {}
        self.assigned: dict[str, frozenset[str]] = {}

    def results(self) -> frozenset[str]:
        """The names that both branches assign."""
        return self.assigned.get("then_", frozenset()) & self.assigned.get("else_", frozenset())


class Loop:
    """The state of one ``name = pto.for_(...).carry(...)``."""

    __slots__ = ("carried", "line", "python_loops", "region", "state", "updates")

    def __init__(self, carried: frozenset[str], line: int) -> None:
        self.carried = carried
        self.line = line
        self.state = "new"
        self.updates = 0
        self.region = -1
        self.python_loops = 0


class Function:
    """A function defined in the checked module: its signature and what calling it gives."""

    __slots__ = ("callable", "kind", "static_result")

    def __init__(self, callable_: Callable_, kind: str, static_result: bool) -> None:
        self.callable = callable_
        self.kind = kind
        self.static_result = static_result


class Value:
    """An abstract value.

    ``low``/``high`` bound a known integer, ``text`` is a known string or enum member, ``sort`` refines the kind: ``vreg``, ``mask`` and
    ``param`` (a helper's parameter) for runtime values; ``dtype``, ``vreg``, ``ptr``, ``vec``, ``mask``, ``struct`` for types; ``bool``,
    ``float``, ``none`` and ``member`` for static ones. ``dtype`` is the element type as far as it shows.
    """

    __slots__ = ("bits", "dtype", "handle", "high", "items", "kind", "low", "sort", "space", "text")

    def __init__(
        self,
        kind: int,
        sort: str = "",
        *,
        low: int | None = None,
        high: int | None = None,
        text: str | None = None,
        dtype: str = "",
        bits: int = 0,
        space: str = "",
        items: tuple[Value, ...] | None = None,
        handle: Branch | Loop | Function | None = None,
    ) -> None:
        self.kind = kind
        self.sort = sort
        self.low = low
        self.high = high
        self.text = text
        self.dtype = dtype
        self.bits = bits
        self.space = space
        self.items = items
        self.handle = handle

    def holds_runtime(self) -> bool:
        """Whether it is, or contains, a value that exists only on the device."""
        if self.kind == TUPLE:
            return any(item.holds_runtime() for item in self.items or ())
        return self.kind == RUNTIME


PLAIN = Value(STATIC)
RUNTIME_VALUE = Value(RUNTIME)
NONE = Value(VOID)
OPAQUE = Value(RUNTIME, "param")


def integer(number: int) -> Value:
    """A known integer."""
    return Value(STATIC, low=number, high=number)


class Reporter:
    """Collects findings."""

    __slots__ = ("api", "findings")

    def __init__(self, api: ApiTable) -> None:
        self.api = api
        self.findings: list[Finding] = []

    def report(self, node: ast.AST, call: str, message: str, advice: str = "") -> None:
        """Add one finding at a node."""
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0) + 1
        self.findings.append(Finding(line, column, call, message, advice))
