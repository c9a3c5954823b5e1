"""Errors of the native library arrive as the exceptions of :mod:`tilelang_pto.errors`."""

from __future__ import annotations

import re

import tvm_ffi

from tilelang_pto import _native
from tilelang_pto.errors import (
    ConfigurationError,
    FindingError,
    PtoError,
    RaceError,
    RuntimeModuleError,
    SimulationError,
    SurfaceError,
    UnsupportedError,
)
from tilelang_pto.sim.report.finding_text import finding_error
from tilelang_pto.sim.report.reading import read_kernel

__all__ = ["parse_error", "register"]

_PLACE = re.compile(r"\n  in ")
_ADVICE = "\n  instead: "


def parse_error(error_type: type[PtoError], text: str) -> PtoError:
    """Rebuild an error from its text, the inverse of ``str(error)``."""
    body, _, advice = text.partition(_ADVICE)
    what, *where = _PLACE.split(body)
    return error_type(what, where=tuple(where), advice=advice)


def _register(error_type: type[PtoError]) -> None:
    name = f"tilelang_pto.{error_type.__name__}"

    def rebuild(text: str) -> PtoError:
        if error_type is FindingError:
            report = _native.sim_failed_report()
            if report:
                return finding_error(read_kernel(report))
        return parse_error(error_type, text)

    # First the class, so that raising it in Python code under a native call finds the name; then the function that builds one
    # from the text, in its place for the way back.
    tvm_ffi.register_error(name, error_type)
    tvm_ffi.register_error(name, rebuild)


def register() -> None:
    """Let TVM-FFI translate the error kinds of this package."""
    for error_type in (
        UnsupportedError,
        SurfaceError,
        SimulationError,
        FindingError,
        RaceError,
        RuntimeModuleError,
        ConfigurationError,
    ):
        _register(error_type)
