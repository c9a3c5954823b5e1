"""Finding the cases of a suite: a module with a list ``CASES``, by its name or the path of its file."""

from __future__ import annotations

import fnmatch
import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import click

from tilelang_pto.compare.case import Case
from tilelang_pto.errors import ConfigurationError
from tilelang_pto.runtime.fingerprint import build_fingerprint

__all__ = ["Suite", "find_case", "load_suite", "select"]

_FULL = "full_"


@dataclass(frozen=True)
class Suite:
    """A loaded suite.

    Attributes:
        name: module or file it was loaded from.
        cases: in the order of the list.
        digest: sixteen hexadecimal digits over this package and the Python files beside the suite's own: results of another digest are
            of other kernels.
    """

    name: str
    cases: tuple[Case, ...]
    digest: str


def load_suite(name: str, *, full: bool = False) -> Suite:
    """Import a suite.

    Args:
        name: a module (``package.cases``) or a file (``path/cases.py``).
        full: take the module ``full_cases`` beside it instead, which has the sizes of a board.

    Raises:
        ConfigurationError: the module cannot be imported or has no proper list of cases.
    """
    name = _full_name(name) if full else name
    module = _module(name)
    cases = getattr(module, "CASES", None)
    if not isinstance(cases, (list, tuple)) or not cases:
        raise ConfigurationError(f"{name} has no list CASES with cases in it", advice="a list of tilelang_pto.compare.Case")
    for case in cases:
        if not isinstance(case, Case):
            raise ConfigurationError(f"CASES of {name} has a {type(case).__name__} in it", advice="a list of tilelang_pto.compare.Case")
    repeated = [case for case, number in Counter(case.name for case in cases).items() if number > 1]
    if repeated:
        raise ConfigurationError(f"{name} has several cases {repeated[0]}", advice="cases of a kernel differ in their parameters")
    return Suite(name, tuple(cases), _digest(module))


def select(suite: Suite, kernels: Sequence[str]) -> tuple[Case, ...]:
    """The cases whose kernel or name matches one of the patterns (``expand_*``), all of them without patterns.

    Raises:
        ConfigurationError: a pattern matches nothing.
    """
    if not kernels:
        return suite.cases
    for pattern in kernels:
        if not any(_matches(case, pattern) for case in suite.cases):
            known = ", ".join(dict.fromkeys(case.kernel for case in suite.cases))
            raise ConfigurationError(f"no case of {suite.name} matches {pattern}", advice=f"kernels there: {known}")
    return tuple(case for case in suite.cases if any(_matches(case, pattern) for pattern in kernels))


def find_case(cases: Iterable[Case], name: str) -> Case:
    """The case of that name.

    Raises:
        ConfigurationError: there is none.
    """
    for case in cases:
        if case.name == name:
            return case
    raise ConfigurationError(f"there is no case {name}", advice="the suite has changed; start the comparison again")


def _matches(case: Case, pattern: str) -> bool:
    return pattern == case.name or fnmatch.fnmatchcase(case.kernel, pattern)


def _full_name(name: str) -> str:
    if not name.endswith(".py"):
        package, dot, last = name.rpartition(".")
        return f"{package}{dot}{_FULL}{last}"
    path = Path(name)
    full = path.with_name(_FULL + path.name)
    if path.is_file() and not full.is_file():
        raise ConfigurationError(f"{name} has no full sizes: there is no file {full}", advice="without --full")
    return str(full)


def _module(name: str) -> ModuleType:
    from tilelang_pto.cli.loading import load_module

    try:
        return load_module(name)
    except click.ClickException as error:
        raise ConfigurationError(f"the suite cannot be loaded: {error.message}", advice="a module, or a file with a list CASES") from error


def _digest(module: ModuleType) -> str:
    digest = hashlib.sha256(build_fingerprint().encode())
    file = getattr(module, "__file__", None)
    for path in sorted(Path(file).parent.glob("*.py")) if file else ():
        digest.update(path.name.encode() + path.read_bytes())
    digest.update(".".join(map(str, sys.version_info[:2])).encode())
    return digest.hexdigest()[:16]
