"""Scopes and regions: which names are visible where."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tilelang_pto.codegen.surface._values import Value

__all__ = ["BUILTINS", "Scope", "assigned_names"]

BUILTINS = frozenset(
    (
        *("abs", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min"),
        *("range", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip"),
    )
)


class Scope:
    """One function (or the module): its names and how its body is traced.

    ``kind`` is ``module``, ``jit``, ``simt``, ``func``, ``tileop`` or ``plain``; ``simt`` is None where it depends on the caller.
    """

    __slots__ = ("explicit", "kernel_kind", "kind", "name", "names", "parent", "rewrite", "section", "sections", "simt", "warned")

    def __init__(self, kind: str, name: str, parent: Scope | None, *, rewrite: bool = False, explicit: bool = True) -> None:
        self.kind = kind
        self.name = name
        self.parent = parent
        self.names: dict[str, tuple[Value, int]] = {}
        self.rewrite = rewrite
        self.explicit = explicit
        self.kernel_kind = ""
        self.section = ""
        self.sections: set[str] = set()
        self.simt: bool | None = {"jit": False, "simt": True}.get(kind)
        self.warned: set[tuple[str, int]] = set()


def assigned_names(body: Iterable[ast.stmt], found: set[str] | None = None) -> set[str]:
    """Names that statements of ``body`` assign, nested blocks included, nested functions not."""
    names: set[str] = set() if found is None else found
    for node in body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _targets(target, names)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            _targets(node.target, names)
        elif isinstance(node, ast.For):
            _targets(node.target, names)
            assigned_names(node.body, names)
            assigned_names(node.orelse, names)
        elif isinstance(node, (ast.If, ast.While)):
            assigned_names(node.body, names)
            assigned_names(node.orelse, names)
        elif isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars is not None:
                    _targets(item.optional_vars, names)
            assigned_names(node.body, names)
    return names


def _targets(target: ast.expr, names: set[str]) -> None:
    if isinstance(target, ast.Name):
        names.add(target.id)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            _targets(item, names)
