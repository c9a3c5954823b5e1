"""``tilelang-pto sim`` and ``tilelang-pto profile``: a script under a session."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tilelang_pto.cli.progress import progress_bar
from tilelang_pto.cli.script import output_as_errors, run_script
from tilelang_pto.runtime.device import DEVICE_VARIABLE
from tilelang_pto.sim.options import CHECKS, MAX_EVENTS, POLICIES, SimOptions
from tilelang_pto.sim.report.model import SessionReport
from tilelang_pto.sim.session import Session

__all__ = ["profile", "sim"]

Command = TypeVar("Command", bound=Callable[..., Any])

SIM_EPILOG = """\b
Examples:
  tilelang-pto sim examples/gemm.py                          races, uninitialised reads, flags
  tilelang-pto sim examples/gemm.py --report gemm.html       with timeline, hot lines and memory map
  tilelang-pto sim train.py --policy random:7 -- --steps 3   what follows -- belongs to the script
"""
PROFILE_EPILOG = """\b
Examples:
  tilelang-pto profile examples/gemm.py
  tilelang-pto profile examples/gemm.py --report gemm.html --trace gemm.json
"""


def _script_options(check: str) -> Callable[[Command], Command]:
    """The options both commands have."""
    options = [
        click.option("--check", type=click.Choice(CHECKS), default=check, show_default=True, help="What is checked."),
        click.option(
            "--policy",
            metavar="|".join(POLICIES),
            default="late",
            show_default=True,
            help="When effects of asynchronous commands become visible.",
        ),
        click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write an HTML page with timeline and source."),
        click.option("--trace", type=click.Path(dir_okay=False, path_type=Path), help="Write a timeline for Perfetto or chrome://tracing."),
        click.option(
            "--max-events", type=click.IntRange(1), default=MAX_EVENTS, show_default=True, help="Timeline events kept of a launch."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the report as JSON; the script's output goes to standard error."),
        click.argument("script", type=click.Path(exists=True, dir_okay=False)),
        click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]..."),
    ]

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


_SETTINGS = {"ignore_unknown_options": True}


@click.command(epilog=SIM_EPILOG, context_settings=_SETTINGS)
@_script_options("full")
def sim(**values: Any) -> None:
    """Run a Python script with every kernel launch checked on the simulator.

    Options are those of this command wherever they stand; others, and what follows --, go to the script. The exit status is 1 when
    something was found or the script failed.
    """
    _simulate(timing=False, **values)


@click.command(epilog=PROFILE_EPILOG, context_settings=_SETTINGS)
@_script_options("off")
def profile(**values: Any) -> None:
    """Run a Python script on the simulator and say where the time of its kernels goes.

    The time is modelled; docs/simulator.md says from what.
    """
    _simulate(timing=True, **values)


def _simulate(
    *,
    timing: bool,
    script: str,
    arguments: tuple[str, ...],
    check: str,
    policy: str,
    report: Path | None,
    trace: Path | None,
    max_events: int,
    as_json: bool,
) -> None:
    timeline = report is not None or trace is not None
    options = SimOptions(check, policy, "report", timing or timeline, timeline, max_events)
    for path in (report, trace):
        if path is not None and not path.resolve().parent.is_dir():
            raise click.ClickException(f"there is no directory {path.parent} to write {path.name} into")
    session = Session(options)
    with _on_the_simulator(), output_as_errors() if as_json else contextlib.nullcontext(), session, progress_bar():
        status = run_script(script, arguments)
    found = session.report
    _tell(found, as_json)
    if report is not None:
        found.write_page(report, title=f"Simulator report of {Path(script).name}")
        click.echo(f"report: {report}", err=True)
    if trace is not None and any(kernel.timeline for kernel in found.kernels):
        found.write_trace(trace)
        click.echo(f"trace: {trace} (open it in ui.perfetto.dev)", err=True)
    elif trace is not None:
        click.echo(f"tilelang-pto: {trace} is not written, no launch has a timeline", err=True)
    failed = bool(found.findings) or any(kernel.error for kernel in found.kernels)
    sys.exit(status or int(failed))


def _tell(found: SessionReport, as_json: bool) -> None:
    if as_json:
        click.echo(found.to_json())
        return
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    width = shutil.get_terminal_size((110, 24)).columns
    click.echo(found.summary(width=max(width, 80), ascii_only=not encoding.startswith("utf")), nl=False)


@contextlib.contextmanager
def _on_the_simulator() -> Any:
    """Kernels compiled inside are for the simulator, whatever this machine has."""
    before = os.environ.get(DEVICE_VARIABLE)
    os.environ[DEVICE_VARIABLE] = "sim"
    try:
        yield
    finally:
        if before is None:
            del os.environ[DEVICE_VARIABLE]
        else:
            os.environ[DEVICE_VARIABLE] = before
