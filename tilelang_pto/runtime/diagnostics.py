"""What a tool says about its input, as places in the PTODSL text and in the TileLang source."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilelang_pto.sim.program import Program

__all__ = ["Diagnostic", "first_diagnostic", "line_of_operation", "places"]

_MLIR = re.compile(r'^(?:loc\()?"?(?P<file>[^":\n]+)"?:(?P<line>\d+):(?P<column>\d+)\)?: error: (?P<message>.*)$', re.MULTILINE)
_COMPILER = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<message>.*)$", re.MULTILINE)
_OTHER = re.compile(r"^.*?\berror\b:?\s*(?P<message>.+)$", re.MULTILINE | re.IGNORECASE)
_OPERATION = re.compile(r"\bpto\.([a-z_0-9]+)")
_POSITION = re.compile(r"^\s*# (\S+\.py:\d+)\s*$")

#: Said by a ptoas without a CANN toolkit at hand; no error.
_NOISE = re.compile(r"bisheng|falling back to configured default", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """The first error of a tool.

    Attributes:
        message: its own words.
        file: the file it points at, empty if none.
        line: from 1; 0 if none.
    """

    message: str
    file: str = ""
    line: int = 0


def first_diagnostic(text: str) -> Diagnostic:
    """The first error in what a tool printed; its last line where nothing looks like one."""
    for pattern in (_MLIR, _COMPILER):
        match = pattern.search(text)
        if match is not None:
            return Diagnostic(match["message"].strip(), match["file"], int(match["line"]))
    lines = [line for line in text.splitlines() if line.strip() and not _NOISE.search(line)]
    for line in lines:
        match = _OTHER.match(line)
        if match is not None:
            return Diagnostic(match["message"].strip())
    return Diagnostic(lines[-1].strip() if lines else "no message")


def line_of_operation(assembly: str, line: int, program: Program, kernel: str) -> int:
    """The PTODSL line that made the operation at ``line`` of a kernel's ``.pto`` text, 0 if that cannot be told.

    PTODSL writes the operations of one name in the order of the calls, and the recorded program has the same calls with their
    lines: the n-th of one is the n-th of the other.
    """
    rows = assembly.splitlines()
    match = _OPERATION.search(rows[line - 1]) if 0 < line <= len(rows) else None
    if match is None:
        return 0
    name = match[1]
    number = sum(1 for row in rows[: line - 1] for found in _OPERATION.findall(row)[:1] if found == name)
    lines = [operation.line for operation in program.function(kernel).walk() if operation.opcode == name]
    total = sum(1 for row in rows for found in _OPERATION.findall(row)[:1] if found == name)
    return lines[number] if len(lines) == total else 0


def places(text: str, filename: str, line: int) -> tuple[str, ...]:
    """The ``where`` of an error at a line of PTODSL text: the line itself, and the TileLang line it comes from where the text names it."""
    rows = text.splitlines()
    if not 0 < line <= len(rows):
        return ()
    where = [f"{filename}:{line}", rows[line - 1].strip()]
    for row in reversed(rows[: line - 1]):
        if row.startswith("def "):
            break
        match = _POSITION.match(row)
        if match is not None:
            where.append(f"TileLang source {match[1]}")
            break
    return tuple(where)
