"""Environment variables that are not about the target: read, checked, and refused in one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable

from tilelang_pto.errors import ConfigurationError

__all__ = ["CHECK_VARIABLE", "DEBUG_VARIABLE", "SETTINGS", "THREADS_VARIABLE", "checking", "debugging", "host_threads"]

CHECK_VARIABLE = "TILELANG_PTO_CHECK"
DEBUG_VARIABLE = "TILELANG_PTO_DEBUG"
THREADS_VARIABLE = "TILELANG_PTO_THREADS"

MAX_THREADS = 4096
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _switch(variable: str, default: bool) -> bool:
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if text.lower() not in _WORDS:
        raise ConfigurationError(f"{variable}={text} is neither on nor off", advice=f"use one of {', '.join(_WORDS)}")
    return _WORDS[text.lower()]


def checking() -> bool:
    """Whether emitted text is checked against the PTODSL API."""
    return _switch(CHECK_VARIABLE, True)


def debugging() -> bool:
    """Whether errors keep the frames of this package."""
    return _switch(DEBUG_VARIABLE, False)


def host_threads() -> int:
    """Host threads of the simulator; 0 means all. The native library reads the variable itself, by the same rules."""
    text = os.environ.get(THREADS_VARIABLE, "").strip()
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_THREADS):
        advice = f"use a number from 1 to {MAX_THREADS}, or 0 for all"
        raise ConfigurationError(f"{THREADS_VARIABLE}={text} is not a number of threads", advice=advice)
    return int(text)


#: Every variable with what it is set to, for those who show or check them all.
SETTINGS: dict[str, Callable[[], str]] = {
    THREADS_VARIABLE: lambda: f"{host_threads()} host threads" if host_threads() else "all host threads",
    CHECK_VARIABLE: lambda: "emitted text is checked" if checking() else "emitted text is not checked",
    DEBUG_VARIABLE: lambda: "errors keep the frames of tilelang-pto" if debugging() else "errors are cut to the frames of the user",
}
