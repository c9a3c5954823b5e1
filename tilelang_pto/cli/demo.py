"""``tilelang-pto demo``."""

from __future__ import annotations

import importlib.util
import os
import sys

import click

EPILOG = """\b
Examples:
  tilelang-pto demo
  TILELANG_PTO_THREADS=1 tilelang-pto demo     one host thread
"""


@click.command(epilog=EPILOG)
def demo() -> None:
    """Compile and run mHC expand forward and backward on the simulator and compare them with torch."""
    if importlib.util.find_spec("tilelang_pto.demo") is None:
        raise click.ClickException("this installation has no demo")
    # The table is what there is to read; TileLang's progress messages come with TILELANG_PRINT_ON_COMPILATION=1.
    os.environ.setdefault("TILELANG_PRINT_ON_COMPILATION", "0")
    from tilelang_pto.demo import main as run

    status = run()
    if status:
        sys.exit(int(status))
