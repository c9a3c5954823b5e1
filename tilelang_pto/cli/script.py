"""Running a Python script the way ``python SCRIPT`` does, inside this process."""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path

import click

from tilelang_pto.cli.loading import user_place
from tilelang_pto.errors import PtoError
from tilelang_pto.settings import debugging

__all__ = ["output_as_errors", "run_script"]


def run_script(script: str, arguments: tuple[str, ...]) -> int:
    """Run a file as ``__main__``; what it raises is printed, with the frames from the script on.

    Returns:
        The exit status ``python SCRIPT`` would have.
    """
    path = Path(script)
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        click.echo("".join(traceback.format_exception_only(error)), err=True, nl=False)
        return 1
    with _as_main(path, arguments) as module:
        try:
            exec(code, module.__dict__)
        except SystemExit as error:
            return _status(error)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            return 130
        except PtoError as error:
            if debugging():
                raise
            click.echo(f"{user_place(error)}{type(error).__name__}: {error}", err=True)
            return 1
        except Exception as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_frame.f_code.co_filename != str(path):
                trace = trace.tb_next
            click.echo("".join(traceback.format_exception(type(error), error, trace)), err=True, nl=False)
            return 1
    return 0


def _status(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    click.echo(str(error.code), err=True)
    return 1


@contextlib.contextmanager
def _as_main(path: Path, arguments: tuple[str, ...]) -> Iterator[types.ModuleType]:
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=str(path), __builtins__=builtins)
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules["__main__"] = module
    try:
        yield module
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before


@contextlib.contextmanager
def output_as_errors() -> Iterator[None]:
    """What is written to standard output, by Python and by native code, goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
