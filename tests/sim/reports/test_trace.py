"""The trace file against the Trace Event Format."""

from __future__ import annotations

import dataclasses
import json
import random
from collections import defaultdict
from itertools import pairwise

import pytest
from report_data import report

from tilelang_pto.errors import ConfigurationError
from tilelang_pto.sim import SessionReport
from tilelang_pto.sim.report import Event, Timeline
from tilelang_pto.sim.report.trace import trace_events, write_trace


def with_events(*events: Event, launches: int = 1) -> SessionReport:
    kernel = dataclasses.replace(report("timed").kernels[0], timeline=Timeline(False, tuple(events)))
    return SessionReport((kernel,) * launches)


def validate(data: dict) -> None:
    """What the format demands of the events used here, and what viewers need to show them."""
    assert set(data) <= {"traceEvents", "displayTimeUnit", "otherData"}
    assert data["displayTimeUnit"] in ("ms", "ns")
    named, slices, flows = set(), defaultdict(list), defaultdict(list)
    for event in data["traceEvents"]:
        assert isinstance(event["name"], str)
        assert type(event["pid"]) is int and type(event["tid"]) is int
        phase = event["ph"]
        if phase == "M":
            assert event["name"] in ("process_name", "process_sort_index", "thread_name", "thread_sort_index")
            (value,) = event["args"].values()
            assert isinstance(value, str if event["name"].endswith("name") else int)
            named.add((event["name"], event["pid"], event["tid"]))
            continue
        assert event["ts"] >= 0
        assert ("process_name", event["pid"], 0) in named
        if phase == "X":
            assert event["dur"] >= 0
            assert ("thread_name", event["pid"], event["tid"]) in named
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif phase == "C":
            assert all(isinstance(value, int) and value >= 0 for value in event["args"].values())
        else:
            assert phase in ("s", "f")
            flows[event["cat"], event["id"]].append(event)
    for spans in slices.values():  # on a thread, slices do not overlap
        spans.sort()
        for (_, end), (start, _) in pairwise(spans):
            assert end <= start + 1e-5
    for pair in flows.values():
        start, end = pair
        assert (start["ph"], end["ph"], end["bp"]) == ("s", "f", "e")
        assert start["ts"] <= end["ts"]
        for event in pair:
            assert any(a - 1e-5 <= event["ts"] <= b + 1e-5 for a, b in slices[event["pid"], event["tid"]])


def written(found: SessionReport, tmp_path) -> dict:
    path = tmp_path / "trace.json"
    write_trace(found, path)
    data = json.loads(path.read_text())
    validate(data)
    return data


def test_a_trace(tmp_path):
    data = written(report("timed"), tmp_path)
    kernel = report("timed").kernels[0]
    assert kernel.timeline is not None
    slices = [event for event in data["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == len(kernel.timeline.events)
    names = {event["args"]["name"] for event in data["traceEvents"] if event["ph"] == "M" and "name" in event["args"]}
    assert names == {"scale_kernel block 0", "scale_kernel block 1", "S", "MTE2", "V", "MTE3"}
    load = next(event for event in slices if event["name"] == "mte_gm_ub")
    assert load["dur"] == pytest.approx(500 / 1650, abs=1e-5)
    assert load["args"]["line"] == "scale_kernel.pto.py:11"
    assert load["args"]["source"].startswith("pto.mte_gm_ub(")
    assert data["otherData"]["notes"] == ["scale_kernel: the timeline holds 2 of 2 cores"]


def test_waits_have_arrows_from_what_ended_them():
    events = list(trace_events(report("timed")))
    waits = [event for event in events if event["ph"] == "X" and event["cat"] == "wait"]
    assert len(waits) == 16
    assert sum(event["ph"] == "s" for event in events) == len(waits)


def test_no_arrow_where_two_could_have_ended_the_wait():
    both = [Event(0, "", "MTE2", 1, "set_flag", 4, 5, "run"), Event(0, "", "MTE3", 2, "set_flag", 3, 5, "run")]
    wait = Event(0, "", "V", 3, "wait_flag", 0, 5, "wait")
    assert not [event for event in trace_events(with_events(*both, wait)) if event["ph"] in "sf"]
    assert len([event for event in trace_events(with_events(both[0], wait)) if event["ph"] in "sf"]) == 2


def test_the_counter_of_busy_pipes():
    events = [Event(0, "", "V", 1, "a", 0, 10, "run"), Event(0, "", "MTE2", 2, "b", 5, 10, "run"), Event(0, "", "V", 3, "c", 10, 12, "run")]
    counters = [event["args"]["pipes"] for event in trace_events(with_events(*events)) if event["ph"] == "C"]
    assert counters == [1, 2, 1, 0]


def test_commands_of_a_pipe_that_overlap_get_rows_of_their_own(tmp_path):
    rng = random.Random(5)
    events = []
    for _ in range(300):
        start = rng.randrange(1000)
        place = (rng.randrange(3), rng.choice(["AIC", "AIV0"]), rng.choice(["MTE2", "V", "X9"]))
        events.append(Event(*place, 1, "op", float(start), float(start + rng.randrange(40)), rng.choice(["run", "wait"])))
    data = written(with_events(*events), tmp_path)
    assert sum(event["ph"] == "X" for event in data["traceEvents"]) == 300


def test_launches_follow_one_another(tmp_path):
    data = written(with_events(Event(0, "", "V", 1, "a", 0, 10, "run"), launches=3), tmp_path)
    slices = [event for event in data["traceEvents"] if event["ph"] == "X"]
    assert len({event["pid"] for event in slices}) == 3
    cycles = report("timed").kernels[0].timing.cycles
    assert all(b["ts"] - a["ts"] > cycles / 1650 for a, b in pairwise(slices))


def test_a_large_timeline_is_written_without_being_one_text(tmp_path, monkeypatch):
    pieces = []

    class Sink:
        def __enter__(self):
            return self

        def __exit__(self, *rest):
            pass

        def write(self, text):
            pieces.append(len(text))

    monkeypatch.setattr("builtins.open", lambda *args, **options: Sink())
    found = with_events(*(Event(0, "", "V", 11, "vadd", float(n), float(n + 1), "run") for n in range(20_000)))
    write_trace(found, tmp_path / "x")
    monkeypatch.undo()
    assert sum(pieces) > 1_000_000
    assert max(pieces) < 1000


def test_without_a_timeline(tmp_path):
    with pytest.raises(ConfigurationError, match="no launch has a timeline"):
        write_trace(report("clean"), tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_into_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be written: No such file"):
        write_trace(report("timed"), tmp_path / "none" / "x.json")
