"""A short digest of this package, part of every cache key: an upgrade must not meet kernels of the version before."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from tilelang_pto.version import __version__

__all__ = ["build_fingerprint"]

_SUFFIXES = {".py", ".json", ".toml", ".j2"}


@functools.cache
def build_fingerprint() -> str:
    """Sixteen hexadecimal digits over the version and the content of every source and data file of the package."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256(__version__.encode())
    for path in sorted(root.rglob("*")):
        if path.suffix in _SUFFIXES and path.is_file():
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
