"""``tilelang-pto compare``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tilelang_pto.errors import ConfigurationError

EPILOG = """\b
Examples:
  tilelang-pto compare examples/ascend_mhc/cases.py
  tilelang-pto compare examples/ascend_mhc/cases.py --table --kernel 'expand_*'
  tilelang-pto compare examples/ascend_mhc/cases.py --table --markdown > table.md
  tilelang-pto compare examples/ascend_mhc/cases.py --static    counts of both texts, without running anything
"""


@click.command(epilog=EPILOG)
@click.option(
    "--kernel", "kernels", multiple=True, metavar="GLOB", help="Only these kernels (expand_*), or one case by its name. Repeatable."
)
@click.option("--backend", "backends", multiple=True, type=click.Choice(["ascend", "pto"]), help="Only this backend. Repeatable.")
@click.option(
    "--out",
    "directory",
    default="comparison",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for results; a run that was interrupted goes on from what is there.",
)
@click.option("--fresh", is_flag=True, help="Forget the results in the directory.")
@click.option("--table", "only_table", is_flag=True, help="Only how far each kernel gets, and the first error.")
@click.option("--static", is_flag=True, help="Only texts and their static counts: nothing is built or called.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option("--full", is_flag=True, help="The sizes of a board: the cases of full_SUITE beside the suite.")
@click.option("--jobs", default=min(2, os.cpu_count() or 1), show_default=True, type=click.IntRange(1, 256), help="Processes at a time.")
@click.option("--timeout", default=600.0, show_default=True, type=click.FloatRange(min=0, min_open=True), help="Seconds a case may take.")
@click.option("--seed", default=0, show_default=True, help="Seed of the arguments.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(0, 1000), help="On a board: rounds of msprof for each backend.")
@click.option("--calls", default=20, show_default=True, type=click.IntRange(1, 100000), help="On a board: calls of a round that count.")
@click.option("--warm-up", default=3, show_default=True, type=click.IntRange(0, 100000), help="On a board: calls before them.")
@click.option("--npu", default=0, show_default=True, type=click.IntRange(min=0), help="On a board: the NPU that is used.")
@click.option("--msprof", "msprof_path", metavar="PROGRAM", help="On a board: the profiler (default: that of CANN, else of PATH).")
@click.argument("suite", metavar="SUITE")
def compare(
    suite: str,
    kernels: tuple[str, ...],
    backends: tuple[str, ...],
    directory: Path,
    fresh: bool,
    only_table: bool,
    static: bool,
    markdown: bool,
    full: bool,
    jobs: int,
    timeout: float,
    seed: int,
    rounds: int,
    calls: int,
    warm_up: int,
    npu: int,
    msprof_path: str | None,
) -> None:
    """Compare the backends pto and ascend over the cases of a suite.

    SUITE is a Python file or module with a list CASES of tilelang_pto.compare.Case. Every case is compiled for both backends, each in a
    process of its own, and called where it can be. docs/comparing.md says what the numbers mean. The exit status is 1 when something
    failed.
    """
    from tilelang_pto.compare.board import Measuring, measure
    from tilelang_pto.compare.msprof import find_msprof
    from tilelang_pto.compare.records import BACKENDS, Record, RecordFile
    from tilelang_pto.compare.report import Comparison
    from tilelang_pto.compare.report.files import as_markdown, write_report
    from tilelang_pto.compare.report.tables import rich_tables
    from tilelang_pto.compare.runner import Options, run_cases
    from tilelang_pto.compare.suite import load_suite, select
    from tilelang_pto.compare.table import markdown_table, rich_table, rows_of
    from tilelang_pto.runtime.device import choose_device

    loaded = load_suite(suite, full=full)
    cases = select(loaded, kernels)
    setting = "static" if static else choose_device()
    measuring = None
    if setting == "npu" and rounds and not only_table:
        measuring = Measuring(find_msprof(msprof_path), rounds, warm_up, calls, npu, timeout, seed)
    file = _results(directory, fresh)
    options = Options(directory, setting, timeout, jobs, seed, backends or BACKENDS)

    def tell(number: int, total: int, record: Record) -> None:
        error = record.error
        seconds = sum(step.seconds for step in record.steps)
        outcome = f"{error.stage} failed: {error.detail}" if error is not None else f"{seconds:.1f} s"
        click.echo(f"[{number}/{total}] {record.backend:6} {record.case}: {outcome}", err=True)

    results = RecordFile(file)
    run_cases(loaded, cases, results, options, tell)
    if measuring is not None:
        measure(loaded, cases, results, measuring, options.backends, setting, lambda line: click.echo(line, err=True))
    records = [record for record in results.of(case.name for case in cases) if record.backend in options.backends]
    rows = rows_of(records)
    (directory / "table.md").write_text(markdown_table(rows))
    if only_table:
        click.echo(markdown_table(rows), nl=False) if markdown else _print(rich_table(rows))
    else:
        comparison = Comparison(loaded.name, options.setting, records)
        written, remarks = write_report(comparison, records, directory)
        click.echo(as_markdown(comparison, records), nl=False) if markdown else _print(rich_table(rows), *rich_tables(comparison))
        for remark in remarks:
            click.echo(remark, err=True)
        click.echo(f"report: {', '.join(map(str, written))}", err=True)
    if any(record.error is not None for record in records):
        sys.exit(1)


def _results(directory: Path, fresh: bool) -> Path:
    """The file of results in a directory that is made if it is not there."""
    file = directory / "records.jsonl"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if fresh:
            file.unlink(missing_ok=True)
        with file.open("a"):
            pass
    except OSError as error:
        raise ConfigurationError(f"{directory} cannot be written: {error.strerror}", advice="another directory, with --out") from error
    return file


def _print(*tables: object) -> None:
    """On a terminal as wide as it is, in a file wide enough for a line of text."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for table in tables:
        console.print(table)
