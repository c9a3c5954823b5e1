"""Built libraries on disk: built once, whoever asks, and never read half written.

An entry is a directory named by the digest of everything that decides about its content. It is made elsewhere in the cache and
moved to its place as a whole, and its manifest holds the digest of every file, so what a killed process, a full disk or another program
left there is noticed and built again. Processes that want the same entry wait for the one that builds it; its lock ends with it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tilelang_pto.errors import ConfigurationError

__all__ = ["MANIFEST", "KernelCache", "default_root", "digest"]

MANIFEST = "manifest.json"
_STRIPES = 64


def default_root() -> Path:
    """Where libraries are kept: beside TileLang's kernel cache."""
    from tilelang import env

    return Path(str(env.TILELANG_CACHE_DIR)) / "pto"


def digest(parts: Mapping[str, Any]) -> str:
    """Key of an entry: forty hexadecimal digits over ``parts``, whatever their order."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


class KernelCache:
    """The cache in one directory.

    Args:
        root: the directory; it is made when an entry is.
        patience: seconds to wait for another process that builds the same entry.
    """

    def __init__(self, root: Path, *, patience: float = 3600.0) -> None:
        self.root = root
        self.patience = patience

    def get(self, key: str, build: Callable[[Path], None], *, describe: Mapping[str, Any] | None = None) -> Path:
        """The directory of an entry, built if it is not there.

        Args:
            key: what :func:`digest` gave.
            build: fills an empty directory; whatever it raises goes through, and nothing is kept.
            describe: more for the manifest, for people who look into it.

        Raises:
            ConfigurationError: the cache cannot be read or written, or another process holds the entry for too long.
        """
        entry = self.root / key
        if self._is_whole(entry):
            return entry
        try:
            for folder in ("building", "locks"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            with FileLock(str(self.root / "locks" / f"{int(key[:8], 16) % _STRIPES:02}.lock"), timeout=self.patience):
                if not self._is_whole(entry):  # else it was built while this process waited
                    self._build(key, entry, build, describe or {})
        except Timeout:
            raise ConfigurationError(
                f"another process has held the kernel cache for {self.patience:g} s",
                where=(str(self.root),),
                advice="end that process, or give this one a cache of its own with TILELANG_CACHE_DIR",
            ) from None
        except OSError as error:
            raise self._unusable(error) from error
        return entry

    def _build(self, key: str, entry: Path, build: Callable[[Path], None], describe: Mapping[str, Any]) -> None:
        building = self.root / "building"
        for left in building.glob(f"{key}-*"):  # of processes that were killed: the lock is ours
            _remove(left)
        made = Path(tempfile.mkdtemp(prefix=f"{key}-", dir=building))
        try:
            build(made)
            files = {str(path.relative_to(made)): _file_digest(path) for path in sorted(made.rglob("*")) if path.is_file()}
            manifest = json.dumps({**describe, "files": files}, indent=1)
            (made / MANIFEST).write_text(manifest, encoding="utf-8")
            _flush(made)
            if entry.exists():  # damaged: out of the way in one step, then gone
                old = made.with_name(made.name + "-old")
                os.rename(entry, old)
                _remove(old)
            os.rename(made, entry)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise

    def _is_whole(self, entry: Path) -> bool:
        try:
            files = json.loads((entry / MANIFEST).read_text(encoding="utf-8"))["files"]
            return bool(files) and all(_file_digest(entry / name) == wanted for name, wanted in files.items())
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError, AttributeError):
            return False
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> ConfigurationError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return ConfigurationError(
                "the disk of the kernel cache is full",
                where=(str(self.root),),
                advice="make room there, or name another place with TILELANG_CACHE_DIR",
            )
        place = error.filename or str(self.root)
        return ConfigurationError(
            f"the kernel cache cannot be used: {error.strerror or error}",
            where=(str(place),),
            advice="check the rights of that directory, or name another place with TILELANG_CACHE_DIR",
        )


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        value = hashlib.sha256()
        while block := file.read(1 << 20):
            value.update(block)
    return value.hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flush(directory: Path) -> None:
    """Files on the disk before the rename makes them an entry."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
