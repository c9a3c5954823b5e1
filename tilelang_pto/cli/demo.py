"""``tilelang-pto demo``."""

from __future__ import annotations

import importlib.util
import os
import sys

import click

from tilelang_pto.settings import ULP_VARIABLE, parse_perturbation

EPILOG = """\b
Examples:
  tilelang-pto demo
  TILELANG_PTO_THREADS=1 tilelang-pto demo     one host thread
  tilelang-pto demo --ulp perturb:1            approximate functions as inexact as the hardware's may be
"""


@click.command(epilog=EPILOG)
@click.option("--ulp", metavar="exact|perturb:SEED", help=f"Error of approximate functions on the simulator; default: {ULP_VARIABLE}.")
def demo(ulp: str | None) -> None:
    """Compile and run mHC expand forward and backward on the simulator and compare them with torch."""
    if importlib.util.find_spec("tilelang_pto.demo") is None:
        raise click.ClickException("this installation has no demo")
    # The table is what there is to read; TileLang's progress messages come with TILELANG_PRINT_ON_COMPILATION=1.
    os.environ.setdefault("TILELANG_PRINT_ON_COMPILATION", "0")
    if ulp is not None:
        parse_perturbation(ulp, "--ulp")
        os.environ[ULP_VARIABLE] = ulp
    from tilelang_pto.demo import main as run

    status = run()
    if status:
        sys.exit(int(status))
