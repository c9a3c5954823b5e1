"""Names in emitted text: valid, unique within a kernel, close to those of the TileLang source."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

__all__ = ["NameSupply"]

_HELPERS = frozenset({"vdiv_exact", "vexp_subnormal", "vln_subnormal", "vsqrt_exact"})
_RESERVED = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins)) | {"pto", "scalar"} | _HELPERS
_INVALID = re.compile(r"\W", re.ASCII)


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
        name, number = stem, 1
        while name in self._taken or name in _RESERVED:
            name = f"{stem}_{number}"
            number += 1
        self._taken.add(name)
        return name
