"""The :class:`Surface`: one state of the PTODSL API as the code generator and the checker see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache

from tilelang_pto.codegen.surface.spelling import FEATURES, SPELLINGS, Features, Spelling
from tilelang_pto.codegen.surface.tables import ApiTable, Callable_, load_table
from tilelang_pto.errors import SurfaceError

__all__ = ["SURFACE_NAMES", "UNITS", "Surface", "surface_of"]

SURFACE_NAMES = ("2026-08", "2026-09")
UNITS = ("scalar", "simt")


@dataclass(frozen=True, kw_only=True)
class Surface(Features):
    """One API state: its name, feature flags, table and spellings. Get it from ``select_surface`` or ``surface_of``."""

    name: str
    api: ApiTable = field(repr=False, compare=False)

    def lookup(self, name: str) -> Callable_ | None:
        """The callable of a qualified name (``"pto.vlds"``), or None."""
        return self.api.callables.get(name)

    def has_spelling(self, op: str, unit: str = "scalar") -> bool:
        """Whether the generic operation exists on this surface in that unit."""
        units = SPELLINGS.get(op, {}).get(self.name, {})
        return unit in units or "*" in units

    def spelling(self, op: str, unit: str = "scalar") -> str:
        """The qualified name of a generic operation, e.g. ``"cast"`` -> ``"scalar.cast"``.

        Args:
            op: a key of ``spelling.SPELLINGS``.
            unit: ``"scalar"`` (scalar unit of the core) or ``"simt"``.

        Raises:
            SurfaceError: the surface has no such operation in that unit.
        """
        return self.entry(op, unit).name

    def call(self, op: str, args: Sequence[str], *, unit: str = "scalar", keywords: str = "") -> str:
        """The whole call as text, with generic arguments put in the surface's order.

        ``call("store_scalar", ("v", "p", "0"))`` gives ``pto.store_scalar(p, 0, v)`` on 2026-08 and ``pto.store(v, p, 0)`` on 2026-09.
        """
        found = self.entry(op, unit)
        ordered = [args[position] for position in found.order] if found.order else list(args)
        ordered += [text for text in (found.keywords, keywords) if text]
        return f"{found.name}({', '.join(ordered)})"

    def entry(self, op: str, unit: str = "scalar") -> Spelling:
        units = SPELLINGS.get(op, {}).get(self.name, {})
        found = units.get(unit) or units.get("*")
        if found is None:
            raise SurfaceError(
                f"PTODSL {self.name} has no spelling for {op!r} in the {unit} unit",
                advice=f"it exists in: {', '.join(units)}" if units else "lower the operation to others before emitting",
            )
        return found


@cache
def surface_of(name: str) -> Surface:
    """The surface of that exact name (``"2026-08"`` or ``"2026-09"``)."""
    return Surface(name=name, api=load_table(name), **asdict(FEATURES[name]))
