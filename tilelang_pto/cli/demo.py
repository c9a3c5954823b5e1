"""``tilelang-pto demo``."""

from __future__ import annotations

import importlib.util
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
    from tilelang_pto.demo import main as run

    status = run()
    if status:
        sys.exit(int(status))
