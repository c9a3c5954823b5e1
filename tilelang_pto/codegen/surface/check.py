"""The checker of emitted text: one pass over the syntax tree against the API table."""

from __future__ import annotations

import ast

from tilelang_pto.codegen.surface._statements import ModuleChecker
from tilelang_pto.codegen.surface._values import Finding
from tilelang_pto.codegen.surface.surface import Surface
from tilelang_pto.errors import SurfaceError

__all__ = ["SHOWN_FINDINGS", "Finding", "check_text", "require_clean"]

SHOWN_FINDINGS = 20


def check_text(text: str, surface: Surface, filename: str = "<pto>") -> list[Finding]:
    """All faults of a generated module, in text order.

    Checks names, arity, keywords and literals of every call, the decorator, control flow and scopes against ``surface``. Values are
    followed as far as they show in the text; what does not show is taken to be right.
    """
    try:
        tree = ast.parse(text, filename)
    except SyntaxError as error:
        return [Finding(error.lineno or 1, error.offset or 1, "", f"not Python: {error.msg}")]
    except ValueError as error:
        return [Finding(1, 1, "", f"not Python: {error}")]
    return ModuleChecker(surface).check(tree)


def require_clean(text: str, surface: Surface, filename: str = "<pto>") -> None:
    """Raise :class:`SurfaceError` with the first faults of ``text``, if it has any."""
    findings = check_text(text, surface, filename)
    if not findings:
        return
    shown = tuple(f"{filename}, {finding}" for finding in findings[:SHOWN_FINDINGS])
    more = len(findings) - len(shown)
    count = "1 fault" if len(findings) == 1 else f"{len(findings)} faults"
    raise SurfaceError(
        f"the emitted text has {count} against PTODSL {surface.name}" + (f"; the first {len(shown)} follow" if more else ""),
        where=shown,
        advice=next((finding.advice for finding in findings if finding.advice), ""),
    )
