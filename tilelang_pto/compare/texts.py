"""Emitted texts of a run, kept in its directory: cases that share a compiled kernel share its text."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

from tilelang_pto.compare.case import Case

__all__ = ["TextStore", "device_functions"]

_SUFFIXES = {"ascend": ".asc", "pto": ".py"}
_FUNCTIONS = {
    "ascend": re.compile(r"__global__(?:\s*__\w+__(?:\([^)]*\))?)*\s+void\s+(\w+)\s*\("),
    "pto": re.compile(r'^@pto\.jit\(name="([^"]+)"', re.MULTILINE),
}


def device_functions(text: str, backend: str) -> tuple[str, ...]:
    """Names of the kernels in an emitted text, in its order."""
    return tuple(_FUNCTIONS[backend].findall(text))


class TextStore:
    """Texts by kernel, what it is specialised for, and digest of the suite.

    Args:
        directory: made when the first text is put.
        digest: see :class:`~tilelang_pto.compare.suite.Suite`.
    """

    def __init__(self, directory: Path, digest: str) -> None:
        self.directory, self.digest = directory, digest

    def path(self, case: Case, backend: str) -> Path:
        key = (case.compiled_as, self.digest)
        return self.directory / f"{case.kernel}-{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}{_SUFFIXES[backend]}"

    def get(self, case: Case, backend: str) -> str | None:
        """The text, None if nobody has put it."""
        try:
            return self.path(case, backend).read_text()
        except FileNotFoundError:
            return None

    def put(self, case: Case, backend: str, text: str) -> None:
        """Keep a text; processes may put the same one at the same time."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=self.directory, prefix=".", delete=False) as file:
            file.write(text)
        os.replace(file.name, self.path(case, backend))
