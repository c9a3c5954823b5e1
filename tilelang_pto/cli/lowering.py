"""Lowering and emitting the kernel a command line names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click
from tvm.target import Target

from tilelang_pto.cli.loading import explain, is_ours, load_kernel
from tilelang_pto.errors import PtoError
from tilelang_pto.settings import debugging

if TYPE_CHECKING:
    from tilelang_pto.codegen import EmittedModule
    from tilelang_pto.lowering import Lowered

__all__ = ["emit_named", "kernel_arguments"]

Command = TypeVar("Command", bound=Callable[..., Any])


def kernel_arguments(command: Command) -> Command:
    """Adds the option ``--arg`` to a command that names a kernel."""
    return click.option(
        "--arg",
        "arguments",
        multiple=True,
        metavar="NAME=VALUE",
        help="Argument of a tilelang.jit function: a Python literal, a bare word, or a tensor as dtype[extent,...]. May be repeated.",
    )(command)


def emit_named(kernel: str, arguments: tuple[str, ...], target: Target) -> tuple[Lowered, EmittedModule]:
    """Lower ``MODULE:KERNEL`` for ``target`` and emit its text.

    Raises:
        ClickException: what TileLang refuses, in one line with the user's place.
        PtoError: what this package refuses.
    """
    from tilelang_pto import backend
    from tilelang_pto.lowering import lower_function

    with _quiet():
        function, pass_configs = load_kernel(kernel, arguments, target)
        try:
            lowered = lower_function(function, target=target, pass_configs=pass_configs)
            return lowered, backend.emit(lowered.device, lowered.target)
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


@contextmanager
def _quiet() -> Iterator[None]:
    """Without TileLang's log: what goes wrong is in the exception, and the log repeats it with generated code."""
    before = logging.root.manager.disable
    logging.disable(logging.NOTSET if debugging() else logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
