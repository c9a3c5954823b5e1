"""``python -m tilelang_pto``."""

from __future__ import annotations

from tilelang_pto.cli import main

if __name__ == "__main__":
    main()
