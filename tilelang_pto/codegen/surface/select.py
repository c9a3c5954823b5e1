"""Choosing the surface: by argument, by environment, or by looking at an installed PTODSL."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path

from tilelang_pto.codegen.surface.surface import SURFACE_NAMES, Surface, surface_of
from tilelang_pto.errors import ConfigurationError

__all__ = ["DEFAULT_SURFACE", "ENVIRONMENT", "select_surface"]

ENVIRONMENT = "TILELANG_PTO_SURFACE"
DEFAULT_SURFACE = "2026-09"
PROBE_TIMEOUT = 60.0

_PROBE = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
import ptodsl
from ptodsl import pto
try:
    from ptodsl import scalar
except ImportError:
    scalar = None
print("probe:" + json.dumps([scalar is not None, hasattr(pto, "load")]))
"""


def select_surface(requested: str | None = None) -> Surface:
    """The surface to emit for.

    Args:
        requested: ``"auto"``, ``"2026-08"`` or ``"2026-09"``; None means the environment variable ``TILELANG_PTO_SURFACE``, or ``auto``.
            ``auto`` looks at the installed ``ptodsl`` package, and takes ``2026-09`` when there is none.

    Raises:
        ConfigurationError: the value is not one of those, or an installed PTODSL cannot be recognized.
    """
    where = "the surface option"
    value = requested
    if value is None:
        value, where = os.environ.get(ENVIRONMENT, ""), ENVIRONMENT
        if not value.strip():
            value = "auto"
    value = value.strip()
    if value == "auto":
        return surface_of(_installed_surface())
    if value not in SURFACE_NAMES:
        legal = ", ".join(("auto", *SURFACE_NAMES))
        raise ConfigurationError(f"{where} is {value!r}, which is not a PTODSL surface", advice=f"use one of: {legal}")
    return surface_of(value)


@lru_cache(maxsize=1)
def _installed_surface() -> str:
    spec = _find_ptodsl()
    if spec is None:
        return DEFAULT_SURFACE
    has_scalar, has_load = _probe_by_import() or _probe_by_files(spec)
    if has_load:
        return "2026-09"
    if has_scalar:
        return "2026-08"
    raise ConfigurationError(
        "the installed ptodsl package is neither of the known API states",
        where=(str(spec.origin or "ptodsl"),),
        advice=f"set {ENVIRONMENT} to {' or '.join(SURFACE_NAMES)}",
    )


def _find_ptodsl() -> ModuleSpec | None:
    try:
        return importlib.util.find_spec("ptodsl")
    except (ImportError, ValueError):
        return None


def _probe_by_import() -> tuple[bool, bool] | None:
    """(has scalar, has pto.load) as a child process sees it; None when the package cannot be imported there."""
    command = [sys.executable, "-c", _PROBE, json.dumps(sys.path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    for line in done.stdout.splitlines():
        if done.returncode == 0 and line.startswith("probe:"):
            has_scalar, has_load = json.loads(line[len("probe:") :])
            return bool(has_scalar), bool(has_load)
    return None


def _probe_by_files(spec: ModuleSpec) -> tuple[bool, bool]:
    """The same answer from the package's files, for a package that lacks something it needs to be imported."""
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    has_scalar = any((folder / "scalar.py").is_file() or (folder / "scalar").is_dir() for folder in folders)
    has_private = any((folder / "_scalar.py").is_file() for folder in folders)
    return has_scalar, has_private and not has_scalar
