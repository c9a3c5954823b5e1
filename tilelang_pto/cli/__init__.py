"""The command line: ``tilelang-pto``."""

from __future__ import annotations

import sys

import click

from tilelang_pto.cli.build import build
from tilelang_pto.cli.check import check
from tilelang_pto.cli.compare import compare
from tilelang_pto.cli.demo import demo
from tilelang_pto.cli.doctor import doctor
from tilelang_pto.cli.emit import emit
from tilelang_pto.cli.simulate import profile, sim
from tilelang_pto.errors import PtoError
from tilelang_pto.settings import debugging
from tilelang_pto.version import __version__

__all__ = ["cli", "main"]

EPILOG = """\b
Examples:
  tilelang-pto demo                        run the mHC expand kernels on the simulator
  tilelang-pto emit kernels.py:add         print the PTODSL text of a kernel
  tilelang-pto check add.pto.py            test a text against the PTODSL API
  tilelang-pto build kernels.py:add --out add   files to build the kernel on a machine with a board
  tilelang-pto sim script.py               run a script with all its kernels checked for races
  tilelang-pto profile script.py           where the time of its kernels goes
  tilelang-pto compare cases.py --table    pto and ascend over the cases of a suite: what fails where
  tilelang-pto doctor                      what is installed, which device is used
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.version_option(__version__, prog_name="tilelang-pto")
def cli() -> None:
    """TileLang kernels as PTODSL for Ascend A5, with a simulator that runs the emitted text."""


for command in (demo, emit, check, build, sim, profile, compare, doctor):
    cli.add_command(command)


def main() -> None:
    """Entry point. What a user can get wrong ends in one line, never in a traceback (with ``TILELANG_PTO_DEBUG=1`` it does)."""
    keep_traceback = False
    try:
        keep_traceback = debugging()
        cli(prog_name="tilelang-pto")
    except PtoError as error:
        if keep_traceback:
            raise
        parts = [error.what, *(f"in {place}" for place in error.where)]
        if error.advice:
            parts.append(f"instead: {error.advice}")
        click.echo("tilelang-pto: " + "; ".join(" ".join(part.split()) for part in parts), err=True)
        sys.exit(2)
