"""Compares ``pto`` and ``ascend`` over this suite: ``tilelang-pto compare`` with its cases; takes the same options (``--help``)."""

from __future__ import annotations

import sys
from pathlib import Path

from tilelang_pto.cli import main

if __name__ == "__main__":
    sys.argv[1:] = ["compare", str(Path(__file__).with_name("cases.py")), *sys.argv[1:]]
    main()
