"""Settings every test runs under."""

from __future__ import annotations

import os
import tempfile

import pytest

# Before TileLang is imported: a cache of our own, so that a test never meets a kernel of an earlier run.
_CACHE = tempfile.TemporaryDirectory(prefix="tilelang-pto-tests-")
os.environ["TILELANG_CACHE_DIR"] = _CACHE.name
os.environ["TILELANG_PTO_CHECK"] = "1"
for _name in (
    "PTOAS_BIN",
    "BISHENG_HOME",
    "TILELANG_PTO_PYTHON",
    "TILELANG_PTO_ARCH",
    "TILELANG_PTO_KEEP",
    "TILELANG_PTO_TOOL_TIMEOUT",
    "TILELANG_PTO_DEVICE",
    "TILELANG_PTO_SURFACE",
    "TILELANG_PTO_THREADS",
    "TILELANG_TARGET",
    "TILELANG_DEFAULT_TARGET",
):
    os.environ.pop(_name, None)
for _name in ("TILELANG_PTO_ULP", "TILELANG_PTO_DEBUG", "TILELANG_PTO_SEED", "TILELANG_PTO_MAD_ORDER"):
    os.environ.pop(_name, None)

import tilelang_pto  # noqa: E402, F401


@pytest.fixture
def cache_dir(tmp_path, monkeypatch):
    """A fresh, empty kernel cache."""
    path = tmp_path / "cache"
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(path))
    return path


@pytest.fixture
def cached_kernels(cache_dir):
    """A function that lists the entries of that cache."""
    return lambda: sorted(entry.parent for entry in cache_dir.rglob("params.json"))


def pytest_collection_modifyitems(items):
    """Tests that lower large kernels come first, so that a parallel run does not end with one of them on one core."""
    items.sort(key=lambda item: "corpus" not in item.path.parts)
