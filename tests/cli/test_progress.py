"""The bar for long launches."""

from __future__ import annotations

import io
import threading
import time
from types import SimpleNamespace

import pytest

from tilelang_pto import _native
from tilelang_pto.cli.progress import progress_bar


def on_standard_error(monkeypatch, stream):
    """Pytest puts its own stream into ``sys.stderr`` after fixtures have run, so the module gets another ``sys``."""
    monkeypatch.setattr("tilelang_pto.cli.progress.sys", SimpleNamespace(stderr=stream))
    return stream


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Launch:
    """Progress as the native library tells it; the test moves it."""

    def __init__(self, monkeypatch) -> None:
        self.state = (0, 0)
        self.asked = 0
        monkeypatch.setattr(_native, "sim_progress", self.progress)

    def progress(self) -> tuple[int, int]:
        self.asked += 1
        return self.state

    def set(self, done: int, total: int) -> None:
        """The state, seen by the bar at least twice."""
        self.state, before, end = (done, total), self.asked, time.monotonic() + 10
        while self.asked < before + 3:
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.fixture
def launch(monkeypatch) -> Launch:
    return Launch(monkeypatch)


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    return on_standard_error(monkeypatch, Terminal())


def test_a_long_launch(launch, terminal):
    with progress_bar(patience=0.0):
        launch.set(0, 64)
        launch.set(12, 64)
        launch.set(63, 64)
        launch.set(0, 0)
    text = terminal.getvalue()
    assert "simulating blocks" in text
    for state in ("12/64", "63/64", "64/64"):
        assert state in text
    assert all(thread.name != "tilelang-pto progress" for thread in threading.enumerate())


def test_one_launch_after_the_other(launch, terminal):
    with progress_bar(patience=0.0):
        launch.set(30, 32)
        launch.set(1, 32)
        launch.set(2, 8)
    text = terminal.getvalue()
    assert text.count("32/32") >= 2
    assert "2/8" in text


def test_short_launches_show_nothing(launch, terminal):
    with progress_bar(patience=5.0):
        launch.set(1, 4)
        launch.set(0, 0)
        launch.set(1, 4)
    assert terminal.getvalue() == ""


def test_a_launch_that_is_over_shows_nothing(launch, terminal):
    launch.state = (64, 64)
    with progress_bar(patience=0.0):
        launch.set(64, 64)
    assert terminal.getvalue() == ""


def test_nothing_is_asked_without_a_terminal(launch, monkeypatch):
    on_standard_error(monkeypatch, io.StringIO())
    with progress_bar(patience=0.0):
        time.sleep(0.3)
    assert launch.asked == 0


def test_an_error_inside_ends_the_bar(launch, terminal):
    with pytest.raises(ZeroDivisionError), progress_bar(patience=0.0):
        launch.set(1, 4)
        raise ZeroDivisionError
    assert all(thread.name != "tilelang-pto progress" for thread in threading.enumerate())
