"""``tilelang-pto emit``."""

from __future__ import annotations

import click

from tilelang_pto.cli.lowering import emit_named, kernel_arguments

EPILOG = """\b
Examples:
  tilelang-pto emit kernels.py:add
  tilelang-pto emit mypackage.kernels:add --surface 2026-08
  tilelang-pto emit kernels.py:make_add --arg n=1024 --arg dtype=float32
  tilelang-pto emit kernels.py:scale --arg x=float32[128,64] --arg factor=2
  tilelang-pto emit kernels.py:scale --arg x=bf16[128,64] --arg factor=2
"""


@click.command(epilog=EPILOG)
@click.option("--surface", metavar="NAME", help="PTODSL API: auto, 2026-08 or 2026-09 (default: TILELANG_PTO_SURFACE, else auto).")
@kernel_arguments
@click.option("-o", "--output", type=click.Path(dir_okay=False, writable=True), help="Write to a file instead of the terminal.")
@click.argument("kernel", metavar="MODULE:KERNEL")
def emit(kernel: str, arguments: tuple[str, ...], surface: str | None, output: str | None) -> None:
    """Print the PTODSL text of a kernel.

    MODULE is an importable module or a path ending in .py. KERNEL is a T.prim_func or a tilelang.jit function in it.
    """
    from tilelang_pto.target import pto_target

    _, emitted = emit_named(kernel, arguments, pto_target(surface=surface))
    text = emitted.text
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    try:
        with open(output, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}") from error
