"""Reports kept as JSON files, and a native library that keeps sessions but runs nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tilelang_pto import _native
from tilelang_pto.sim import SessionReport

DATA = Path(__file__).parent / "sim" / "reports" / "data"


def raw(name: str) -> list[dict[str, Any]]:
    """The launches of ``data/NAME.json`` as plain values; they may be changed."""
    return json.loads((DATA / f"{name}.json").read_text())


def report(name: str) -> SessionReport:
    """The report of ``data/NAME.json``."""
    return SessionReport.from_json((DATA / f"{name}.json").read_text())


class FakeEngine:
    """Takes the place of the native session functions. ``launch`` files a report with the innermost session.

    Scripts that a test writes reach it as ``report_data.FakeEngine.current``.
    """

    current: FakeEngine

    def __init__(self, monkeypatch) -> None:
        FakeEngine.current = self
        self.stack: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        monkeypatch.setattr(_native, "sim_session_begin", self.begin)
        monkeypatch.setattr(_native, "sim_session_end", self.end)
        monkeypatch.setattr(_native, "sim_session_reports", lambda: json.dumps(self.stack[-1][1]))
        monkeypatch.setattr(_native, "sim_progress", lambda: (0, 0))

    def begin(self, options: str) -> None:
        self.stack.append((json.loads(options), []))

    def end(self) -> str:
        return json.dumps(self.stack.pop()[1])

    def launch(self, kernel: str = "k", data: str = "clean") -> None:
        """Run a kernel, with the first report of ``data/DATA.json``."""
        if self.stack:
            options, reports = self.stack[-1]
            whole = raw(data)[0]
            if not options["timeline"]:
                whole.update(timeline=None, memory=None)
            if not options["timing"]:
                whole.update(timing=None)
            reports.append({**whole, "kernel": kernel, "options": options})
