"""Turns the AST of a module into text: header, imports, kernels, comment lines, stable line breaks."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from .emit import COMMENT

__all__ = ["print_module"]

_COMMENT_LINE = re.compile(rf"^(\s*){COMMENT}\((.*)\)$")


def print_module(header: Sequence[str], imports: Sequence[str], functions: Sequence[ast.stmt]) -> str:
    """Text of a module.

    Args:
        header: lines of the module docstring.
        imports: import lines.
        functions: top-level statements, separated by two blank lines.
    """
    parts = ['"""' + "\n".join(header) + '\n"""', "\n".join(imports)]
    parts += [_with_comments(ast.unparse(ast.fix_missing_locations(function))) for function in functions]
    return "\n\n\n".join(["\n\n".join(parts[:2]), *parts[2:]]) + "\n"


def _with_comments(text: str) -> str:
    if COMMENT not in text:
        return text
    lines = []
    for line in text.split("\n"):
        match = _COMMENT_LINE.match(line)
        lines.append(f"{match.group(1)}# {ast.literal_eval(match.group(2))}" if match else line)
    return "\n".join(lines)
