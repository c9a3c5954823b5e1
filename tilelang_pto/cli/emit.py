"""``tilelang-pto emit``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click

from tilelang_pto.cli.loading import explain, is_ours, load_kernel
from tilelang_pto.errors import PtoError
from tilelang_pto.settings import debugging

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
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Argument of a tilelang.jit function: a Python literal, a bare word, or a tensor as dtype[extent,...]. May be repeated.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, writable=True), help="Write to a file instead of the terminal.")
@click.argument("kernel", metavar="MODULE:KERNEL")
def emit(kernel: str, arguments: tuple[str, ...], surface: str | None, output: str | None) -> None:
    """Print the PTODSL text of a kernel.

    MODULE is an importable module or a path ending in .py. KERNEL is a T.prim_func or a tilelang.jit function in it.
    """
    from tilelang_pto.lowering import emit_function
    from tilelang_pto.target import pto_target

    target = pto_target(surface=surface)
    with _quiet():
        function, pass_configs = load_kernel(kernel, arguments, target)
        try:
            text = emit_function(function, target=target, pass_configs=pass_configs).text
        except PtoError:
            raise
        except Exception as error:
            if debugging():
                raise
            if is_ours(error):
                what = f"tilelang-pto has an internal error on {kernel} (TILELANG_PTO_DEBUG=1 shows where)"
            else:
                what = f"TileLang refuses {kernel}"
            raise click.ClickException(explain(error, what)) from error
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    try:
        with open(output, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without TileLang's log: what goes wrong is in the exception, and the log repeats it with generated code."""
    before = logging.root.manager.disable
    logging.disable(logging.NOTSET if debugging() else logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
