"""Loading the native library: the simulator engine and the runtime module."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import tvm_ffi  # noqa: F401  (loads libtvm_ffi, which the native library needs)

from tilelang_pto.errors import ConfigurationError

__all__ = ["library_path", "load", "load_if_built"]


def library_path() -> Path:
    """Where the build puts the library."""
    return Path(__file__).resolve().parent.parent / "libtilelang_pto.so"


@functools.cache
def _open(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def load() -> ctypes.CDLL:
    """Load the library; its functions register themselves with TVM-FFI.

    Raises:
        ConfigurationError: it is not built, or does not fit this machine or the installed apache-tvm-ffi.
    """
    path = library_path()
    if not path.exists():
        raise ConfigurationError("the native library of tilelang-pto is not built", where=(str(path),), advice="run: pip install .")
    try:
        return _open(str(path))
    except OSError as error:
        raise ConfigurationError(
            f"the native library of tilelang-pto cannot be loaded: {error}",
            where=(str(path),),
            advice="build it again: pip install --force-reinstall --no-deps .",
        ) from error


def load_if_built() -> bool:
    """Load the library when it is there and fits; whoever needs it gets the error from :func:`load`."""
    try:
        load()
    except ConfigurationError:
        return False
    return True
