"""The PTODSL API as data, the choice of its state, and the checker of emitted text."""

from __future__ import annotations

from tilelang_pto.codegen.surface.check import Finding, check_text, require_clean
from tilelang_pto.codegen.surface.select import select_surface
from tilelang_pto.codegen.surface.surface import SURFACE_NAMES, Surface, surface_of
from tilelang_pto.codegen.surface.tables import Callable_, Param, Rule

__all__ = [
    "SURFACE_NAMES",
    "Callable_",
    "Finding",
    "Param",
    "Rule",
    "Surface",
    "check_text",
    "require_clean",
    "select_surface",
    "surface_of",
]
