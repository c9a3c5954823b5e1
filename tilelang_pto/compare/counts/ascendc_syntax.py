"""Syntax trees of AscendC text, by tree-sitter's grammar of C++."""

from __future__ import annotations

import functools
import re
from typing import Any

from tilelang_pto.compare.counts.kinds import UncountableError
from tilelang_pto.errors import ConfigurationError

__all__ = ["Node", "assigned_names", "children", "declared", "field", "integer", "parse", "stripped", "text_of"]

#: A node of a tree-sitter tree; the package that has the type is optional.
Node = Any


def parse(text: str) -> Node:
    """The root of the tree of ``text``.

    Raises:
        ConfigurationError: tree-sitter or its grammar of C++ is not installed.
    """
    return _parser().parse(text.encode()).root_node


@functools.lru_cache(maxsize=1)
def _parser() -> Any:
    try:
        import tree_sitter
        import tree_sitter_cpp
    except ImportError as error:
        raise ConfigurationError(
            f"counting operations of AscendC needs the package {error.name}, which is not installed",
            advice='pip install "tilelang-pto[compare]"',
        ) from error
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def text_of(node: Node) -> str:
    """The text a node stands for."""
    return str(node.text.decode()) if node.text is not None else ""


def field(node: Node, name: str) -> Node:
    """The child of that name, which must be there."""
    child = node.child_by_field_name(name)
    if child is None:
        raise UncountableError(f"{node.type} without {name}: {text_of(node)[:80]}")
    return child


def children(node: Node) -> list[Node]:
    """The named children, comments aside."""
    return [child for child in node.named_children if child.type != "comment"]


def stripped(node: Node) -> Node:
    """A node without the parentheses around it."""
    while node.type == "parenthesized_expression":
        node = children(node)[0]
    return node


def declared(node: Node) -> Node:
    """The name inside a declarator."""
    while node.type != "identifier":
        node = field(node, "declarator")
    return node


def assigned_names(body: Node) -> set[str]:
    """Names that are assigned after their declaration."""
    names, pending = set(), [body]
    while pending:
        node = pending.pop()
        if node.type == "assignment_expression":
            names.add(text_of(field(node, "left")))
        elif node.type == "update_expression":
            names.add(text_of(field(node, "argument")))
        pending.extend(node.named_children)
    return names


def integer(node: Node) -> int | None:
    """The value of an integer literal, perhaps in a cast; None for anything else."""
    node = stripped(node)
    if node.type == "cast_expression":
        return integer(field(node, "value"))
    text = text_of(node)
    return int(text) if re.fullmatch(r"-?\d+", text) else None
