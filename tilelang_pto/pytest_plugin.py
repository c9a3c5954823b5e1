"""Pytest plugin: every kernel that a test launches is checked, and a finding fails that test.

``pytest -p tilelang_pto.pytest_plugin``; docs/simulator.md describes it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tilelang_pto.errors import ConfigurationError
from tilelang_pto.sim.options import CHECKS, POLICIES, SimOptions
from tilelang_pto.sim.report.model import SessionReport
from tilelang_pto.sim.report.numbers import plural
from tilelang_pto.sim.session import Session

_PLUGIN = "tilelang-pto-simulation"
_LONGEST_NAME = 120


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tilelang-pto", "checks of kernels on the simulator")
    group.addoption("--pto-check", choices=CHECKS, default="full", help="what is checked of each launch (full)")
    group.addoption("--pto-policy", default="late", metavar="|".join(POLICIES), help="when effects of asynchronous commands show (late)")
    group.addoption("--pto-report", type=Path, metavar="DIR", help="directory for an HTML page per test with findings")


def pytest_configure(config: pytest.Config) -> None:
    try:
        options = SimOptions(config.getoption("--pto-check"), config.getoption("--pto-policy"), "report")
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from error
    directory = config.getoption("--pto-report")
    config.pluginmanager.register(_Simulation(options, directory and config.invocation_params.dir / directory), _PLUGIN)


class _Simulation:
    """A session around each phase of each test, so that a finding belongs to what ran the kernel: the test or one of its fixtures."""

    def __init__(self, options: SimOptions, directory: Path | None) -> None:
        self._options = options
        self._directory = directory
        self._phase_counts = (0, 0)  # launches and findings of the phase that ended last
        self._launches = self._findings = 0  # of the run; with pytest-xdist the reports of the workers bring them
        self._tests: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._phase(item, "setup"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._phase(item, "call"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._phase(item, "teardown"))

    def _phase(self, item: pytest.Item, when: str) -> Generator[None, Any, Any]:
        self._phase_counts = (0, 0)
        session = Session(self._options, background=True)
        try:
            with session:
                result = yield
        except BaseException:  # the test's own failure stays what it is told for
            text = self._finish(item, when, session.report)
            if text:
                item.add_report_section(when, "tilelang-pto", text)
            raise
        text = self._finish(item, when, session.report)
        if text:
            pytest.fail(text, pytrace=False)
        return result

    def _finish(self, item: pytest.Item, when: str, report: SessionReport) -> str:
        """Keep the counts; what is to be said, empty when nothing was found."""
        self._phase_counts = len(report.kernels), len(report.findings)
        if not report.findings:
            return ""
        text = report.summary()
        if self._directory is not None:
            path = self._directory / _file_name(item.nodeid, when)
            path.parent.mkdir(parents=True, exist_ok=True)
            report.write_page(path, title=item.nodeid)
            text += f"report: {path}\n"
        return text

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        report.__dict__["tilelang_pto"] = self._phase_counts
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        launches, findings = report.__dict__.get("tilelang_pto", (0, 0))
        self._launches += launches
        self._findings += findings
        if findings:
            self._tests.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        options = self._options
        text = f"tilelang-pto: {plural(self._launches, 'launch', 'launches')} checked ({options.check}, policy {options.policy})"
        if self._findings:
            text += f", {plural(self._findings, 'finding')} in {plural(len(self._tests), 'test')}"
            if self._directory is not None:
                text += f", pages in {self._directory}"
        terminalreporter.write_line(text, red=bool(self._findings))


def _file_name(test: str, when: str) -> str:
    """A name for the page of a test: readable, and no other test has it."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", test)[-_LONGEST_NAME:].strip("._")
    return f"{name}-{hashlib.sha256(test.encode()).hexdigest()[:8]}-{when}.html"
