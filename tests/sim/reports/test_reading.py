"""Reports from JSON: what is read, and what is refused."""

from __future__ import annotations

import copy
import json

import pytest
from report_data import raw, report

from tilelang_pto.errors import ReportError
from tilelang_pto.sim import SessionReport
from tilelang_pto.sim.report import Event


@pytest.mark.parametrize("name", ["clean", "findings", "timed"])
def test_a_report_is_written_as_it_was_read(name):
    assert json.loads(report(name).to_json()) == raw(name)
    assert SessionReport.from_json(report(name).to_json()) == report(name)


def test_what_is_read():
    kernel = report("timed").kernels[0]
    assert kernel.stats["dma_bytes"] == 65536
    assert kernel.timing is not None and kernel.timeline is not None and kernel.memory is not None
    assert kernel.timing.slowest is kernel.timing.cores[1]
    assert kernel.timing.cores[0].pipes["MTE2"].busy == 2000
    assert kernel.timeline.events[0] == Event(0, "", "S", 10, "for_", 0.0, 8.0, "run")
    assert kernel.memory[0].memory == "UB"
    assert kernel.source_line(11).startswith("pto.mte_gm_ub(")
    assert kernel.source_line(0) == kernel.source_line(10_000) == ""


def paths(value, path=()):
    """Every place in a JSON value."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value[:1]):
            yield from paths(item, (*path, number))


def changed(value, path, change):
    """A copy with ``change(container, key)`` done at a path."""
    result = copy.deepcopy(value)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])
    return result


PLACES = [(name, path) for name in ("findings", "timed") for path in paths(raw(name)) if path]


def test_every_place_with_a_wrong_type_is_named():
    for name, path in PLACES:
        for wrong in ({"no": "field"}, [[None]], 1.5, "text", True):
            before = raw(name)
            value = changed(before, path, lambda inner, key, wrong=wrong: inner.__setitem__(key, wrong))
            try:
                read = SessionReport.from_json(json.dumps(value))
            except ReportError as error:
                assert len(str(error).splitlines()) <= 3
            else:  # what was taken was understood: it comes out again
                assert json.loads(read.to_json()) == value, (name, path, wrong)


def test_every_missing_field_is_named():
    for name, path in PLACES:
        if isinstance(path[-1], int) or path[-2] in ("stats", "pipes"):
            continue
        value = changed(raw(name), path, lambda inner, key: inner.pop(key))
        with pytest.raises(ReportError) as caught:
            SessionReport.from_json(json.dumps(value))
        assert str(caught.value).startswith("a field is missing\n  in report[")
        assert str(caught.value).endswith(f".{path[-1]}")


def test_unknown_fields_of_a_newer_library_are_no_fault():
    value = raw("timed")
    value[0]["new"] = 1
    value[0]["timing"]["new"] = 1
    assert SessionReport.from_json(json.dumps(value)) == report("timed")


@pytest.mark.parametrize("text", ["", "{", "null", "{}", '"x"', "[1]", "[[]]"])
def test_texts_that_are_no_report(text):
    with pytest.raises(ReportError):
        SessionReport.from_json(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none(number):
    value = json.dumps(changed(raw("timed"), (0, "timing", "cycles"), lambda inner, key: inner.__setitem__(key, "HERE")))
    with pytest.raises(ReportError, match="finite"):
        SessionReport.from_json(value.replace('"HERE"', number))


@pytest.mark.parametrize("absent", [{"line": -1, "op": ""}, {}], ids=["no line", "the same"])
def test_the_second_place_of_a_finding_with_one(absent):
    value = raw("findings")
    finding = value[0]["findings"][3]
    assert finding["kind"] == "uninitialised"
    finding["second"] = {**finding["first"], **absent}
    assert SessionReport.from_json(json.dumps(value)) == report("findings")
