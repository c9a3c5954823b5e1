"""Names in emitted text: valid, unique within a kernel, close to those of the TileLang source."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterable

__all__ = ["NameSupply", "free_name"]

_HELPERS = frozenset({"vdiv_exact", "vexp_subnormal", "vln_subnormal", "vsqrt_exact"})
_RESERVED = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins)) | {"pto", "scalar"} | _HELPERS
_INVALID = re.compile(r"\W", re.ASCII)


def free_name(stem: str, taken: Callable[[str], bool]) -> str:
    """``stem``, or the first of ``stem_1``, ``stem_2``, ... that is not taken."""
    name, number = stem, 1
    while taken(name):
        name, number = f"{stem}_{number}", number + 1
    return name


class NameSupply:
    """Hands out names, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken: set[str] = set(taken)

    def claim(self, hint: str) -> str:
        """A free name like ``hint``.

        Leading underscores are dropped: PTODSL reads carried and merged values as attributes of a handle and keeps names that
        start with an underscore for itself.
        """
        stem = _INVALID.sub("_", hint).lstrip("_") or "value"
        if stem[0].isdigit():
            stem = f"v{stem}"
        name = free_name(stem, lambda name: name in self._taken or name in _RESERVED)
        self._taken.add(name)
        return name
