"""Environment variables that are not about the target: read, checked, and refused in one sentence."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from tilelang_pto.errors import ConfigurationError

__all__ = [
    "ARCH_VARIABLE",
    "CHECK_VARIABLE",
    "DEBUG_VARIABLE",
    "KEEP_VARIABLE",
    "MAD_ORDER_VARIABLE",
    "SEED_VARIABLE",
    "SETTINGS",
    "SIM_CHECK_VARIABLE",
    "SIM_POLICY_VARIABLE",
    "THREADS_VARIABLE",
    "TIMEOUT_VARIABLE",
    "ULP_VARIABLE",
    "architecture_family",
    "checking",
    "debugging",
    "host_threads",
    "keeping",
    "mad_order",
    "parse_perturbation",
    "perturbation",
    "seed",
    "sim_check",
    "sim_policy",
    "tool_timeout",
]

CHECK_VARIABLE = "TILELANG_PTO_CHECK"
DEBUG_VARIABLE = "TILELANG_PTO_DEBUG"
THREADS_VARIABLE = "TILELANG_PTO_THREADS"
KEEP_VARIABLE = "TILELANG_PTO_KEEP"
TIMEOUT_VARIABLE = "TILELANG_PTO_TOOL_TIMEOUT"
ARCH_VARIABLE = "TILELANG_PTO_ARCH"
ULP_VARIABLE = "TILELANG_PTO_ULP"
MAD_ORDER_VARIABLE = "TILELANG_PTO_MAD_ORDER"
SEED_VARIABLE = "TILELANG_PTO_SEED"
SIM_CHECK_VARIABLE = "TILELANG_PTO_SIM_CHECK"
SIM_POLICY_VARIABLE = "TILELANG_PTO_SIM_POLICY"

MAX_THREADS = 4096
MAX_SEED_DIGITS = 18
DEFAULT_TIMEOUT = 600.0
MAX_TIMEOUT = 86400.0
_CHECKS = ("off", "bounds", "full")
_POLICIES = ("late", "eager")
_ORDERS = ("ascending", "blocked", "reverse")
_FAMILY = re.compile(r"dav-[a-z]?[0-9]+")
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


def keeping() -> bool:
    """Whether the files of a build that failed are kept."""
    return _switch(KEEP_VARIABLE, False)


def tool_timeout() -> float:
    """Seconds a tool of the chain may run."""
    text = os.environ.get(TIMEOUT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_TIMEOUT:
        raise ConfigurationError(
            f"{TIMEOUT_VARIABLE}={text} is no number of seconds", advice=f"use a number above 0, at most {MAX_TIMEOUT:g}"
        )
    return seconds


def architecture_family() -> str:
    """The core architecture family launch code is compiled for, empty for that of the target (A5)."""
    text = os.environ.get(ARCH_VARIABLE, "").strip()
    if text and not _FAMILY.fullmatch(text):
        raise ConfigurationError(f"{ARCH_VARIABLE}={text} is no architecture family", advice="use a name such as dav-c310")
    return text


def parse_perturbation(text: str, name: str = ULP_VARIABLE) -> int | None:
    """The seed of ``perturb:SEED``; None for ``exact`` and for nothing.

    Args:
        text: the setting.
        name: what to call it in an error.

    Raises:
        ConfigurationError: it is neither.
    """
    word, _, seed = text.strip().partition(":")
    if word in ("", "exact") and not seed and ":" not in text:
        return None
    if word == "perturb" and seed.isascii() and seed.isdigit() and len(seed) <= MAX_SEED_DIGITS:
        return int(seed)
    advice = f"use exact, or perturb:SEED with a number of at most {MAX_SEED_DIGITS} digits"
    raise ConfigurationError(f"{name}={text.strip()} is not understood", advice=advice)


def perturbation() -> int | None:
    """Seed with which the simulator's approximate functions err by up to their documented error (docs/accuracy.md); None: they do not.

    The native library reads the variable itself, by the same rules.
    """
    return parse_perturbation(os.environ.get(ULP_VARIABLE, ""))


def _describe_perturbation() -> str:
    seed = perturbation()
    return "approximate functions as exact as the host's" if seed is None else f"approximate functions perturbed, seed {seed}"


def _is_number(text: str, digits: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= digits


def mad_order() -> str:
    """In which order the simulator adds the products of a ``mad``. The native library reads the variable itself, by the same rules."""
    text = os.environ.get(MAD_ORDER_VARIABLE, "").strip()
    if not text:
        return "ascending"
    prefix, _, number = text.partition(":")
    if text not in _ORDERS and not (prefix == "random" and _is_number(number, MAX_SEED_DIGITS)):
        advice = f"use {', '.join(_ORDERS)} or random:SEED"
        raise ConfigurationError(f"{MAD_ORDER_VARIABLE}={text} is not an order of summation", advice=advice)
    return text


def seed() -> int:
    """How the cores of a block take turns in the simulator; 0: in equal turns. The native library reads the variable itself."""
    text = os.environ.get(SEED_VARIABLE, "").strip()
    if not text:
        return 0
    if not _is_number(text, MAX_SEED_DIGITS):
        advice = f"use a number of at most {MAX_SEED_DIGITS} digits, 0 for equal turns"
        raise ConfigurationError(f"{SEED_VARIABLE}={text} is not a seed", advice=advice)
    return int(text)


def sim_check() -> str:
    """How much the simulator checks: ``off``, ``bounds`` or ``full``. The native library reads the variable itself, by the same rules."""
    text = os.environ.get(SIM_CHECK_VARIABLE, "").strip() or "full"
    if text not in _CHECKS:
        raise ConfigurationError(f"{SIM_CHECK_VARIABLE}={text} is not a mode", advice="use off, bounds or full")
    return text


def sim_policy() -> str:
    """In which order the simulator's pipes do what nothing orders. The native library reads the variable itself, by the same rules."""
    text = os.environ.get(SIM_POLICY_VARIABLE, "").strip() or "late"
    prefix, _, number = text.partition(":")
    if text not in _POLICIES and not (prefix == "random" and _is_number(number, MAX_SEED_DIGITS)):
        raise ConfigurationError(f"{SIM_POLICY_VARIABLE}={text} is not a policy", advice="use late, eager or random:SEED")
    return text


#: Every variable with what it is set to, for those who show or check them all.
SETTINGS: dict[str, Callable[[], str]] = {
    THREADS_VARIABLE: lambda: f"{host_threads()} host threads" if host_threads() else "all host threads",
    ULP_VARIABLE: _describe_perturbation,
    MAD_ORDER_VARIABLE: lambda: f"products of a matrix product are added in the order {mad_order()}",
    SIM_CHECK_VARIABLE: lambda: f"the simulator checks: {sim_check()}",
    SIM_POLICY_VARIABLE: lambda: f"pipes of a core go on: {sim_policy()}",
    SEED_VARIABLE: lambda: f"cores of a block take turns by seed {seed()}" if seed() else "cores of a block take equal turns",
    CHECK_VARIABLE: lambda: "emitted text is checked" if checking() else "emitted text is not checked",
    KEEP_VARIABLE: lambda: "files of a failed build are kept" if keeping() else "files of a failed build are removed",
    TIMEOUT_VARIABLE: lambda: f"a tool may run {tool_timeout():g} s",
    ARCH_VARIABLE: lambda: architecture_family() or "that of the target",
    DEBUG_VARIABLE: lambda: "errors keep the frames of tilelang-pto" if debugging() else "errors are cut to the frames of the user",
}
