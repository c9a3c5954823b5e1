"""``tilelang-pto check``."""

from __future__ import annotations

import re
import sys

import click

EPILOG = """\b
Examples:
  tilelang-pto check add.pto.py
  tilelang-pto check --surface 2026-08 add.pto.py
  tilelang-pto emit kernels.py:add | tilelang-pto check -
"""

_IMPORT = re.compile(r"^[ \t]*(from|import)[ \t]+ptodsl\b", re.MULTILINE)


@click.command(epilog=EPILOG)
@click.option("--surface", metavar="NAME", help="PTODSL API: auto, 2026-08 or 2026-09 (default: TILELANG_PTO_SURFACE, else auto).")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
def check(file: str, surface: str | None) -> None:
    """Test PTODSL text against the PTODSL API.

    Every name, argument count, keyword and literal is looked up in the API table. The types of operands are not checked: that is the job
    of the PTO compiler. Findings are printed as FILE:LINE: MESSAGE; the exit status is 1 when there are any.
    """
    from tilelang_pto.codegen.surface import check_text, select_surface

    try:
        with click.open_file(file, encoding="utf-8") as stream:
            text = stream.read()
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file} is not a text file in UTF-8") from error
    chosen = select_surface(surface)
    name = "<stdin>" if file == "-" else file
    if not _IMPORT.search(text):
        kernel = f"{'FILE' if file == '-' else file}:KERNEL"
        raise click.ClickException(f"{name} is not a PTODSL module: it does not import ptodsl; did you mean tilelang-pto emit {kernel}?")
    findings = check_text(text, chosen)
    for finding in findings:
        click.echo(f"{name}:{finding.line}: {finding.sentence}")
    if findings:
        sys.exit(1)
    click.echo(f"{name}: no findings (PTODSL API {chosen.name})", err=True)
