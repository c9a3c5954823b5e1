"""The table of names that the stand-in ``ptodsl`` offers, by API state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["AUGUST", "SEPTEMBER", "SURFACES", "Entry", "declare_opcodes", "entries", "entry", "find", "names", "opcodes"]

AUGUST = "2026-08"
SEPTEMBER = "2026-09"
SURFACES = (AUGUST, SEPTEMBER)

#: Where a call may stand: outside every kernel, in the scalar program of a kernel, in a SIMD or in a SIMT function.
EVERYWHERE = frozenset({"module", "kernel", "vecscope", "simt"})
IN_KERNEL = frozenset({"kernel", "vecscope", "simt"})
KERNEL = frozenset({"kernel"})
VECSCOPE = frozenset({"vecscope"})
SIMT = frozenset({"simt"})
NOT_SIMT = frozenset({"kernel", "vecscope"})
NOT_SIMD = frozenset({"kernel", "simt"})

Body = TypeVar("Body", bound=Callable[..., Any])


@dataclass(frozen=True)
class Entry:
    """One callable name of one API state."""

    surface: str
    namespace: str
    name: str
    family: str
    function: Callable[..., Any]
    opcodes: tuple[str, ...]
    places: frozenset[str]


_TABLE: dict[tuple[str, str, str], Entry] = {}
_OPCODES: set[str] = set()


def declare_opcodes(*names_: str) -> None:
    """Add opcodes that are recorded by operators or context managers rather than by a named call."""
    _OPCODES.update(names_)


def entry(
    name: str,
    *,
    aug: str | None = "pto",
    sep: str | None = "pto",
    opcodes: Iterable[str] | None = None,
    places: frozenset[str] = IN_KERNEL,
) -> Callable[[Body], Body]:
    """Register the decorated function under ``name``.

    The function takes the recorder first, then the arguments of the call.

    Args:
        name: the name in the module text.
        aug: namespace in the 2026-08 API (``"pto"`` or ``"scalar"``), None when that API lacks the name.
        sep: namespace in the 2026-09 API, None when that API lacks the name.
        opcodes: opcodes that a call may record; ``(name,)`` when not given.
        places: where the call may stand.
    """
    codes = (name,) if opcodes is None else tuple(opcodes)

    def register(function: Body) -> Body:
        family = function.__module__.rsplit(".", 1)[-1]
        for surface, namespace in ((AUGUST, aug), (SEPTEMBER, sep)):
            if namespace is None:
                continue
            key = (surface, namespace, name)
            if key in _TABLE:
                raise AssertionError(f"{key} is registered twice")
            _TABLE[key] = Entry(surface, namespace, name, family, function, codes, places)
        _OPCODES.update(codes)
        return function

    return register


def find(surface: str, namespace: str, name: str) -> Entry | None:
    """The entry of one name, or None."""
    return _TABLE.get((surface, namespace, name))


def names(surface: str, namespace: str = "pto") -> tuple[str, ...]:
    """All callable names of one namespace, sorted."""
    return tuple(sorted(key[2] for key in _TABLE if key[:2] == (surface, namespace)))


def entries() -> tuple[Entry, ...]:
    """The whole table."""
    return tuple(_TABLE.values())


def opcodes() -> frozenset[str]:
    """Every opcode that the stand-in can record."""
    return frozenset(_OPCODES)
