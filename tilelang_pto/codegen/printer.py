"""Turns the AST of a module into text: header, imports, kernels, comment lines, stable line breaks."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from .emit import COMMENT, NOTE

__all__ = ["print_module"]

_COMMENT_LINE = re.compile(rf"^(\s*)({COMMENT}|{NOTE})\((.*)\)$")
_PLAIN_STRING = re.compile(r"'([^'\"\\]*)'")
_SIGNATURE = re.compile(r"^(def \w+\()(.*)(\):)$")
_PARAMETER_SEPARATOR = re.compile(r", (?=\w+: )")
_LONGEST_LINE = 120


def print_module(header: Sequence[str], imports: Sequence[str], functions: Sequence[ast.stmt]) -> str:
    """Text of a module.

    Args:
        header: lines of the module docstring.
        imports: import lines.
        functions: top-level statements, separated by two blank lines.
    """
    parts = ['"""' + "\n".join(header) + '\n"""', "\n".join(imports)]
    parts += [_finish(ast.unparse(ast.fix_missing_locations(function))) for function in functions]
    return "\n\n\n".join(["\n\n".join(parts[:2]), *parts[2:]]) + "\n"


def _finish(text: str) -> str:
    """Double quotes, comment lines, and one parameter per line where a signature is long."""
    lines: list[str] = []
    for line in text.split("\n"):
        match = _COMMENT_LINE.match(line)
        if match:
            text = f"# {ast.literal_eval(match.group(3))}"
            if match.group(2) == NOTE:
                lines[-1] += f"  {text}"
            else:
                lines.append(match.group(1) + text)
            continue
        line = _PLAIN_STRING.sub(r'"\1"', line)
        if len(line) > _LONGEST_LINE and line.startswith("def "):
            head, parameters, tail = _SIGNATURE.match(line).groups()  # type: ignore[union-attr]
            lines += [head, *(f"    {parameter}," for parameter in _PARAMETER_SEPARATOR.split(parameters)), tail]
        else:
            lines.append(line)
    return "\n".join(lines)
