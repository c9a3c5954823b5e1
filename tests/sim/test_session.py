"""Sessions: which launches they report, and that nothing is left of them however they end."""

from __future__ import annotations

import gc
import json
import threading

import pytest
from report_data import FakeEngine

from tilelang_pto.errors import ConfigurationError, RaceError, ReportError
from tilelang_pto.sim import Session, SimOptions, session


@pytest.fixture
def engine(monkeypatch) -> FakeEngine:
    return FakeEngine(monkeypatch)


def names(opened) -> list[str]:
    return [kernel.kernel for kernel in opened.report.kernels]


def test_a_session_reports_its_launches_during_and_after(engine):
    engine.launch("before")
    with session() as s:
        assert names(s) == []
        engine.launch("a")
        assert names(s) == ["a"]
        engine.launch("b")
    engine.launch("after")
    assert names(s) == ["a", "b"]
    assert engine.stack == []


def test_options_reach_the_library(engine):
    with session(check="bounds", policy="random:5", race="report", timing=True, timeline=True, max_events=7) as s:
        (options, _) = engine.stack[-1]
        engine.launch()
    assert options == {"check": "bounds", "policy": "random:5", "race": "report", "timing": True, "timeline": True, "max_events": 7}
    assert s.report.kernels[0].options == SimOptions("bounds", "random:5", "report", True, True, 7)


def test_a_launch_belongs_to_the_innermost_session(engine):
    with session() as outer:
        engine.launch("1")
        with session(check="off") as inner:
            engine.launch("2")
            assert names(outer) == ["1"]
            assert names(inner) == ["2"]
            engine.launch("3")
        engine.launch("4")
        assert names(inner) == ["2", "3"]
    assert names(outer) == ["1", "4"]
    assert engine.stack == []


def test_an_exception_inside_ends_all_sessions(engine):
    with pytest.raises(ZeroDivisionError), session() as outer, session() as inner:
        engine.launch("a")
        raise ZeroDivisionError
    assert engine.stack == []
    assert (names(outer), names(inner)) == ([], ["a"])


def test_a_report_that_cannot_be_read_ends_the_session_all_the_same(engine, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(ReportError, match="JSON"), session():
        patch.setattr("tilelang_pto._native.sim_session_end", lambda: engine.end() and "{")
    assert engine.stack == []
    with session() as s:
        engine.launch("a")
        assert names(s) == ["a"]


def generator(engine, opened):
    with session(check="off") as s:
        opened.append(s)
        engine.launch("first step")
        yield
        engine.launch("second step")


@pytest.mark.parametrize("collected", [False, True])
def test_a_generator_that_is_not_run_to_its_end(engine, collected):
    opened: list = []
    steps = generator(engine, opened)
    next(steps)
    assert len(engine.stack) == 1
    if collected:
        del steps
        gc.collect()
    else:
        steps.close()
    assert engine.stack == []
    assert names(opened[0]) == ["first step"]


def test_sessions_may_end_in_any_order(engine):
    opened: list = []
    with session() as outer:
        steps = generator(engine, opened)
        next(steps)
        with session(check="bounds") as innermost:
            engine.launch("innermost")
            steps.close()
            assert [options["check"] for options, _ in engine.stack] == ["full", "bounds"]
            engine.launch("innermost again")
    assert engine.stack == []
    assert (names(outer), names(opened[0]), names(innermost)) == ([], ["first step"], ["innermost", "innermost again"])


def test_an_outer_session_that_ends_first(engine):
    outer, inner = session(), session(check="off")
    outer.__enter__()
    inner.__enter__()
    engine.launch("a")
    outer.__exit__(None, None, None)
    assert [options["check"] for options, _ in engine.stack] == ["off"]
    engine.launch("b")
    inner.__exit__(None, None, None)
    assert engine.stack == []
    assert names(inner) == ["a", "b"]
    inner.__exit__(None, None, None)
    assert names(inner) == ["a", "b"]


def test_a_background_session_stays_outside(engine):
    def background():
        return Session(SimOptions(check="bounds"), background=True)

    with background() as first:
        inner = session(check="off").__enter__()
        engine.launch("a")
    with background() as second:
        assert [options["check"] for options, _ in engine.stack] == ["bounds", "off"]
        engine.launch("b")
        inner.__exit__(None, None, None)
        engine.launch("c")
    assert engine.stack == []
    assert (names(first), names(inner), names(second)) == ([], ["a", "b"], ["c"])


def in_thread(work):
    found: list = []

    def run():
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, name="worker")
    thread.start()
    thread.join()
    return found[0]


def test_a_session_is_for_the_launches_of_all_threads(engine):
    with session() as s:
        in_thread(lambda: engine.launch("there"))
    assert names(s) == ["there"]


def test_a_second_thread_may_not_change_the_options_of_the_first(engine):
    def work():
        with session():
            pass

    with session() as s:
        error = in_thread(work)
        assert isinstance(error, ConfigurationError)
        assert "open in thread MainThread" in str(error)
        engine.launch("a")
    assert names(s) == ["a"]
    assert in_thread(work) is None
    assert engine.stack == []


def test_a_session_may_be_closed_by_another_thread(engine):
    s = session().__enter__()
    in_thread(lambda: s.__exit__(None, None, None))
    assert engine.stack == []


def test_the_garbage_collector_closes_a_session_in_the_middle_of_opening_one(engine, monkeypatch):
    opened: list = []
    steps = generator(engine, opened)
    next(steps)
    begin = engine.begin

    def begin_and_collect(options):
        steps.close()
        begin(options)

    monkeypatch.setattr("tilelang_pto._native.sim_session_begin", begin_and_collect)
    with session(check="bounds") as s:
        monkeypatch.setattr("tilelang_pto._native.sim_session_begin", begin)
        assert [options["check"] for options, _ in engine.stack] == ["bounds"]
        engine.launch("a")
    assert engine.stack == []
    assert (names(opened[0]), names(s)) == (["first step"], ["a"])


def test_a_session_is_used_once(engine):
    s = session()
    with s:
        pass
    with pytest.raises(ConfigurationError, match="already used"), s:
        pass
    assert engine.stack == []


def test_raise_if_findings(engine):
    with session(race="report") as s:
        engine.launch("a")
    s.report.raise_if_findings()
    with session(race="report") as s:
        engine.launch("a")
        engine.launch("b", "findings")
        engine.launch("c", "findings")
    assert len(s.report.findings) == 10
    with pytest.raises(RaceError) as caught:
        s.report.raise_if_findings()
    assert caught.value.where[0] == "kernel b"
    assert caught.value.where[-1] == "the first of 10 findings"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"check": "some"}, "option check='some' of a simulation session is not understood\n  instead: one of off, bounds, full"),
        ({"race": True}, "option race=True"),
        ({"policy": "random"}, "option policy='random'"),
        ({"policy": "random:-1"}, "option policy='random:-1'"),
        ({"policy": "random:SEED"}, "the seed a number"),
        ({"policy": 3}, "option policy=3"),
        ({"timing": 1}, "option timing=1"),
        ({"timing": True, "timeline": None}, "option timeline=None"),
        ({"timeline": True}, "a timeline needs the timing model"),
        ({"max_events": 0}, "a number from 1 to"),
        ({"max_events": True}, "option max_events=True"),
        ({"max_events": 2.5}, "option max_events=2.5"),
    ],
)
def test_bad_options(engine, options, message):
    with pytest.raises(ConfigurationError) as caught:
        session(**options)
    assert message in str(caught.value)
    assert engine.stack == []


def test_options_as_text():
    assert json.loads(SimOptions().to_json()) == {
        "check": "full",
        "policy": "late",
        "race": "raise",
        "timing": False,
        "timeline": False,
        "max_events": 200_000,
    }
