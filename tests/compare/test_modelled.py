"""Modelled time: of all launches of a call, or none where the simulator has no timing model."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from tilelang_pto.compare.case import Case, Tolerance
from tilelang_pto.compare.modelled import ModelledTime, modelled_time
from tilelang_pto.errors import ConfigurationError, SimulationError

CASE = Case("k", {"n": 1}, 1, object, (), lambda seed: [seed], (0,), lambda given: given, (Tolerance(),))


def sessions(monkeypatch, timings, error=None):
    """Sessions whose launches have these timings; what they were asked for, and what the kernel was called with."""
    seen = []

    @contextmanager
    def session(**options):
        if error is not None:
            raise error
        seen.append(options)
        yield SimpleNamespace(report=SimpleNamespace(kernels=[SimpleNamespace(timing=timing) for timing in timings]))

    monkeypatch.setattr("tilelang_pto.sim.session", session)
    return seen


def timing(cycles: float, microseconds: float):
    return SimpleNamespace(cycles=cycles, microseconds=microseconds)


def test_launches_of_a_call_are_added(monkeypatch):
    seen = sessions(monkeypatch, [timing(100.0, 1.0), timing(50.0, 0.5)])
    called = []
    assert modelled_time(CASE, lambda *arguments: called.append(arguments), seed=7) == ModelledTime(150.0, 1.5)
    assert called == [(7,)] and seen[0]["timing"] is True


@pytest.mark.parametrize("timings", [[], [None], [timing(1.0, 1.0), None]], ids=["no launch", "no model", "only some"])
def test_no_time_without_a_model(monkeypatch, timings):
    sessions(monkeypatch, timings)
    assert modelled_time(CASE, lambda *arguments: None) is None


def test_a_library_without_sessions(monkeypatch):
    sessions(monkeypatch, [], ConfigurationError("the native library has no sim_session_begin"))
    assert modelled_time(CASE, lambda *arguments: None) is None


def test_an_error_of_the_kernel_is_not_hidden(monkeypatch):
    sessions(monkeypatch, [timing(1.0, 1.0)])

    def kernel(*arguments):
        raise SimulationError("a deadlock")

    with pytest.raises(SimulationError, match="deadlock"):
        modelled_time(CASE, kernel)
