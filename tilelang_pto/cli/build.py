"""``tilelang-pto build``."""

from __future__ import annotations

from pathlib import Path

import click

from tilelang_pto.cli.lowering import emit_named, kernel_arguments

EPILOG = """\b
Examples:
  tilelang-pto build kernels.py:add --out add
  tilelang-pto build kernels.py:scale --arg x=bf16[128,64] --arg factor=2 --out scale --surface 2026-08
"""


@click.command(epilog=EPILOG)
@click.option("--surface", metavar="NAME", help="PTODSL API: auto, 2026-08 or 2026-09 (default: TILELANG_PTO_SURFACE, else auto).")
@kernel_arguments
@click.option("--out", "directory", required=True, type=click.Path(file_okay=False, path_type=Path), help="Directory for the files.")
@click.argument("kernel", metavar="MODULE:KERNEL")
def build(kernel: str, arguments: tuple[str, ...], surface: str | None, directory: Path) -> None:
    """Write what a machine with a board needs to build a kernel.

    The directory holds the PTODSL text, the launch code, the signatures as JSON, a script that builds a shared library, and a short
    README. No tool of the vendor is needed here.
    """
    from tilelang_pto.lowering import signatures
    from tilelang_pto.runtime.artifacts import write_artifacts
    from tilelang_pto.target import pto_target

    lowered, emitted = emit_named(kernel, arguments, pto_target(surface=surface))
    abis, calls = signatures(lowered)
    for path in write_artifacts(emitted, abis, calls, directory):
        click.echo(path)
