"""TIR to PTODSL. Names are loaded on first use, so that the surface tables can be used without TVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .module import EmittedModule, Kernel, Parameter, emit_module

__all__ = ["EmittedModule", "Kernel", "Parameter", "emit_module"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import module

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
