"""A ``pto`` target for TileLang. Importing this package registers it."""

from __future__ import annotations

from tilelang_pto.version import __version__

__all__ = ["__version__"]
