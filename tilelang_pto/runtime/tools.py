"""Finding the tools that turn PTODSL text into a library for a board, and asking them for their versions.

========= ==========================================================================================
PTODSL    the Python package ``ptodsl`` of the interpreter ``TILELANG_PTO_PYTHON`` (this one by default)
ptoas     ``PTOAS_BIN``, then ``PATH``, then the Python package ``ptoas``
bisheng   ``BISHENG_HOME``, then the CANN installation ``ASCEND_HOME_PATH``, then ``PATH``
========= ==========================================================================================
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilelang_pto.errors import ConfigurationError, ToolchainError
from tilelang_pto.runtime.process import run_tool

__all__ = [
    "BISHENG_VARIABLE",
    "CANN_VARIABLE",
    "PTOAS_VARIABLE",
    "PYTHON_VARIABLE",
    "Tool",
    "Toolchain",
    "cann_home",
    "find_bisheng",
    "find_ptoas",
    "find_ptodsl",
    "find_toolchain",
]

PTOAS_VARIABLE = "PTOAS_BIN"
BISHENG_VARIABLE = "BISHENG_HOME"
CANN_VARIABLE = "ASCEND_HOME_PATH"
PYTHON_VARIABLE = "TILELANG_PTO_PYTHON"

#: The first release of ptoas that takes the emitted text.
OLDEST_PTOAS = (0, 60)

PROBE_SECONDS = 60.0
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")

# Run by the interpreter that has PTODSL. The two API states differ in where the scalar functions live.
_PTODSL_PROBE = """
import importlib.metadata, json
import ptodsl
from ptodsl import pto
try:
    version = importlib.metadata.version("ptodsl")
except importlib.metadata.PackageNotFoundError:
    version = getattr(ptodsl, "__version__", "unknown")
print(json.dumps({"version": version, "surface": "2026-09" if hasattr(pto, "load") else "2026-08", "path": ptodsl.__file__}))
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool that was found.

    Attributes:
        name: what messages call it.
        path: the program; for PTODSL the interpreter that has it.
        version: as the tool gives it, ``unknown`` if it gives none.
        source: what led to it.
        surface: of PTODSL, its API state.
    """

    name: str
    path: Path
    version: str
    source: str
    surface: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.path}, from {self.source})"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """All tools of one build."""

    ptodsl: Tool
    ptoas: Tool
    bisheng: Tool

    def versions(self) -> dict[str, str]:
        """What of the tools decides about the result: their versions, and where they are (a rebuilt tool keeps its version)."""
        return {tool.name: f"{tool.version} {tool.path} {_stamp(tool.path)}" for tool in (self.ptodsl, self.ptoas, self.bisheng)}


def find_toolchain() -> Toolchain:
    """Every tool a build needs.

    Raises:
        ConfigurationError: one is missing; all missing ones are named.
    """
    found: list[Tool] = []
    missing: list[ConfigurationError] = []
    for find in (find_ptodsl, find_ptoas, find_bisheng):
        try:
            found.append(find())
        except ConfigurationError as error:
            missing.append(error)
    if missing:
        raise ConfigurationError("; ".join(error.what for error in missing), advice="; ".join(error.advice for error in missing))
    return Toolchain(*found)


def find_ptoas() -> Tool:
    """The assembler.

    Raises:
        ConfigurationError: there is none, ``PTOAS_BIN`` names none, or it is older than what the emitted text needs.
    """
    tool = _program("ptoas", _ptoas_candidates(), "install it, put it on PATH, or set PTOAS_BIN to the program", named=PTOAS_VARIABLE)
    release = tuple(int(number) for number in re.findall(r"\d+", tool.version)[:2])
    if release and release < OLDEST_PTOAS:
        oldest = ".".join(map(str, OLDEST_PTOAS))
        raise ConfigurationError(f"{tool} is too old", advice=f"install ptoas {oldest} or newer, or name one with {PTOAS_VARIABLE}")
    return tool


def find_bisheng() -> Tool:
    """The compiler of the CANN toolkit.

    Raises:
        ConfigurationError: there is none, or ``BISHENG_HOME`` names none.
    """
    return _program("bisheng", _bisheng_candidates(), "source set_env.sh of the CANN toolkit, or set BISHENG_HOME", named=BISHENG_VARIABLE)


def find_ptodsl() -> Tool:
    """The interpreter that has PTODSL, and which API it has.

    Raises:
        ConfigurationError: the interpreter does not run, or has no PTODSL.
    """
    named = os.environ.get(PYTHON_VARIABLE, "").strip()
    interpreter = shutil.which(named) if named else sys.executable
    source = PYTHON_VARIABLE if named else "this interpreter"
    advice = f"install ptodsl, or set {PYTHON_VARIABLE} to an interpreter that has it"
    if interpreter is None:
        raise ConfigurationError(f"{PYTHON_VARIABLE}={named} is no program", advice=advice)
    try:
        done = run_tool([interpreter, "-c", _PTODSL_PROBE], what="PTODSL", timeout=PROBE_SECONDS)
    except ToolchainError as error:
        raise ConfigurationError(f"PTODSL cannot be asked for its version: {error.what}", advice=advice) from error
    lines = done.output.strip().splitlines()
    if done.status != 0 or not lines:
        reason = (done.errors.strip().splitlines() or ["no message"])[-1]
        raise ConfigurationError(f"{interpreter} has no usable PTODSL: {reason}", advice=advice)
    answer = json.loads(lines[-1])
    return Tool("PTODSL", Path(interpreter), str(answer["version"]), source, str(answer["surface"]))


def cann_home() -> Path | None:
    """The CANN installation, None where none is set up."""
    home = os.environ.get(CANN_VARIABLE, "").strip()
    return Path(home) if home else None


def _ptoas_candidates() -> Iterator[tuple[str, str]]:
    named = os.environ.get(PTOAS_VARIABLE, "").strip()
    if named:
        yield PTOAS_VARIABLE, named
        return
    yield "PATH", "ptoas"
    spec = importlib.util.find_spec("ptoas")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for place in ("bin/ptoas", "_runtime/bin/ptoas"):
            yield "the Python package ptoas", str(Path(folder) / place)


def _bisheng_candidates() -> Iterator[tuple[str, str]]:
    named = os.environ.get(BISHENG_VARIABLE, "").strip()
    if named:
        for place in ("bin/bisheng", "bisheng"):
            yield BISHENG_VARIABLE, str(Path(named) / place)
        return
    home = cann_home()
    if home is not None:
        for place in ("bin/bisheng", "compiler/ccec_compiler/bin/bisheng", "tools/bisheng_compiler/bin/bisheng"):
            yield CANN_VARIABLE, str(home / place)
    yield "PATH", "bisheng"


def _program(name: str, candidates: Iterator[tuple[str, str]], advice: str, *, named: str) -> Tool:
    tried = []
    for source, candidate in candidates:
        path = shutil.which(candidate)
        if path is not None:
            return Tool(name, Path(path), _version(name, path), source)
        tried.append((source, candidate))
    if tried and tried[0][0] == named:
        raise ConfigurationError(f"{named}={os.environ[named].strip()} leads to no program {name}", advice=advice)
    raise ConfigurationError(f"{name} was not found (looked at {', '.join(dict.fromkeys(source for source, _ in tried))})", advice=advice)


def _version(name: str, path: str) -> str:
    try:
        done = run_tool([path, "--version"], what=name, timeout=PROBE_SECONDS)
    except ToolchainError as error:
        raise ConfigurationError(f"{name} cannot be asked for its version: {error.what}", where=(path,)) from error
    match = _VERSION.search(done.output) or _VERSION.search(done.errors)
    return match.group() if match else "unknown"


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"
