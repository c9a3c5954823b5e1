"""``tilelang-pto doctor``."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
import sys
from collections.abc import Callable, Iterator

import click

from tilelang_pto.errors import ConfigurationError
from tilelang_pto.runtime import tools
from tilelang_pto.runtime.kernel_cache import default_root
from tilelang_pto.settings import SETTINGS

EPILOG = """\b
Examples:
  tilelang-pto doctor
  TILELANG_PTO_DEVICE=npu tilelang-pto doctor      what an NPU would still need
"""


@click.command(epilog=EPILOG)
def doctor() -> None:
    """Show what is installed and which device and PTODSL API a kernel would use.

    The exit status is 1 when no kernel can run as things are.
    """
    rows = list(_rows())
    width = max(len(name) for name, _, _ in rows)
    for name, state, text in rows:
        click.echo(f"{name:<{width}}  {state:<7}  {text}")
    if any(state == "error" for _, state, _ in rows):
        sys.exit(1)


def _rows() -> Iterator[tuple[str, str, str]]:
    yield "Python", "ok", f"{platform.python_version()} on {platform.machine()}"
    for label, distribution in (("TileLang", "tilelang"), ("TVM-FFI", "apache-tvm-ffi"), ("torch", "torch")):
        yield _distribution(label, distribution, needed=True)
    yield _native_library()
    yield _compiler()
    for label, find in (("PTODSL", tools.find_ptodsl), ("ptoas", tools.find_ptoas), ("bisheng", tools.find_bisheng)):
        yield _tool(label, find)
    yield _kernel_cache()
    yield _npu()
    yield _choice("surface", _surface)
    yield _choice("device", _device)
    for variable, describe in SETTINGS.items():
        yield _choice(variable.removeprefix("TILELANG_PTO_").lower(), describe)


def _distribution(label: str, name: str, *, needed: bool) -> tuple[str, str, str]:
    try:
        return label, "ok", importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        if importlib.util.find_spec(name) is not None:
            return label, "ok", "found, without package metadata"
        return label, "error" if needed else "-", "not installed"


def _tool(label: str, find: Callable[[], tools.Tool]) -> tuple[str, str, str]:
    try:
        tool = find()
    except ConfigurationError as error:
        return label, "-", f"{error.what} (needed for an NPU only)"
    surface = f", {tool.surface} API" if tool.surface else ""
    return label, "ok", f"{tool.version}{surface}, {tool.path} (from {tool.source})"


def _kernel_cache() -> tuple[str, str, str]:
    return "built kernels", "ok", f"kept in {default_root()}"


def _compiler() -> tuple[str, str, str]:
    path = next((found for found in map(shutil.which, ("g++", "clang++", "c++")) if found), None)
    return "C++ compiler", "ok" if path else "error", path or "not found; TileLang compiles the host part of a kernel with it"


def _native_library() -> tuple[str, str, str]:
    from tilelang_pto.runtime import native

    try:
        native.load()
    except ConfigurationError as error:
        return "native library", "error", _told(error)
    return "native library", "ok", str(native.library_path())


def _npu() -> tuple[str, str, str]:
    from tilelang_pto.runtime.device import probe_npu

    report = probe_npu()
    return "NPU", "ok" if report.usable else "-", "usable" if report.usable else "missing: " + "; ".join(report.missing)


def _choice(label: str, choose: Callable[[], str]) -> tuple[str, str, str]:
    try:
        return label, "ok", choose()
    except ConfigurationError as error:
        return label, "error", _told(error)


def _told(error: ConfigurationError) -> str:
    return f"{error.what}; instead: {error.advice}" if error.advice else error.what


def _surface() -> str:
    from tilelang_pto.codegen.surface import select_surface

    return f"PTODSL API {select_surface().name}"


def _device() -> str:
    from tilelang_pto.runtime.device import choose_device

    return f"kernels are compiled for {choose_device()}"
