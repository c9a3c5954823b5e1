"""The HTML page as a file: what is in it. What it does is in test_page_in_browser.py."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from report_data import report

from tilelang_pto.errors import ConfigurationError
from tilelang_pto.sim import SessionReport
from tilelang_pto.sim.report.page import write_page

TIMED = report("timed").kernels[0]


def page_of(found: SessionReport, tmp_path, **options) -> tuple[str, dict]:
    """The text of the page, and the data in it."""
    path = tmp_path / "page.html"
    write_page(found, path, **options)
    text = path.read_text()
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    return text, json.loads(data[1])


def test_the_page_needs_nothing_from_outside(tmp_path):
    text, _ = page_of(report("timed"), tmp_path)
    assert not re.search(r"https?://|\bsrc=|@import|url\(|<link", text)
    assert "default-src 'none'" in text


def test_texts_are_there_once_however_often_a_kernel_was_launched(tmp_path):
    other = dataclasses.replace(TIMED, kernel="other", text="one line", file="other.pto.py")
    text, data = page_of(SessionReport((TIMED, other, TIMED)), tmp_path)
    assert [launch["source"] for launch in data["launches"]] == [0, 1, 0]
    assert [source["file"] for source in data["sources"]] == ["scale_kernel.pto.py", "other.pto.py"]
    assert data["sources"][0]["lines"] == TIMED.text.splitlines()
    assert text.count("def scale_kernel(") == 1


def test_the_timeline_in_short_form(tmp_path):
    _, data = page_of(report("timed"), tmp_path)
    timeline = data["launches"][0]["timeline"]
    assert sum(len(lane["events"]) for lane in timeline["lanes"]) == 5 * len(TIMED.timeline.events)
    lane = next(lane for lane in timeline["lanes"] if lane["pipe"] == "MTE2" and lane["block"] == 0)
    start, end, line, op, waits = lane["events"][:5]
    assert (start, end, line, timeline["ops"][op], waits) == (8, 508, 11, "mte_gm_ub", 0)
    memory = data["launches"][0]["memory"]
    assert [(map["memory"], map["block"]) for map in memory] == [("UB", 0), ("UB", 1)]
    assert memory[0]["extents"][:6] == [0, 4096, 8, 508, 11, 1]


def test_the_memory_map_knows_the_buffers_of_the_kernel(tmp_path):
    comments = "\n    # UB view tile: 1024 float32, bytes 0 to 4095\n    # L1 view other: bytes 0 to 31\n"
    _, data = page_of(SessionReport((dataclasses.replace(TIMED, text=TIMED.text + comments),)), tmp_path)
    assert [map["views"] for map in data["launches"][0]["memory"]] == [[{"name": "tile", "begin": 0, "end": 4096}]] * 2


def test_launches_beyond_the_limit_keep_all_but_their_timeline(tmp_path):
    size = len(TIMED.timeline.events) + len(TIMED.memory)
    small = dataclasses.replace(TIMED, timeline=dataclasses.replace(TIMED.timeline, events=TIMED.timeline.events[:2]), memory=())
    _, data = page_of(SessionReport((TIMED, TIMED, small)), tmp_path, max_events=size + 2)
    first, second, third = data["launches"]
    assert first["timeline"] and third["timeline"]
    assert second["timeline"] is None and second["memory"] is None
    assert second["timing"] == first["timing"]
    assert "the timeline is left out" in second["notes"][-1]


def test_findings_have_their_advice(tmp_path):
    _, data = page_of(report("findings"), tmp_path)
    finding = data["launches"][0]["findings"][0]
    assert finding["title"] == "race, write after read"
    assert finding["range"] == "UB bytes 0 to 4095"
    assert "T.ascend_set_flag" in finding["advice"]


@pytest.mark.parametrize("bad", ["</script><script>fault()</script>", "<!--<script>", "a\u2028b\\\"'&amp;"])
def test_names_and_texts_cannot_leave_their_place(tmp_path, bad):
    kernel = dataclasses.replace(TIMED, kernel=bad, file=bad, text=bad, notes=(bad,), error=bad)
    text, data = page_of(SessionReport((kernel,)), tmp_path, title=bad)
    assert data["launches"][0]["kernel"] == data["launches"][0]["error"] == bad
    assert data["sources"][0]["file"] == bad
    assert text.count("<script") == 2
    assert "<!--" not in text


def test_no_launches(tmp_path):
    _, data = page_of(SessionReport(), tmp_path)
    assert data == {"launches": [], "sources": []}


def test_into_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(ConfigurationError, match="the report cannot be written: No such file"):
        write_page(report("clean"), tmp_path / "none" / "page.html")


def test_pipes_and_memories_come_in_the_order_of_data(tmp_path):
    cores = tuple(dataclasses.replace(core, pipes=dict(reversed(core.pipes.items()))) for core in TIMED.timing.cores)
    memory = tuple(dataclasses.replace(TIMED.memory[0], memory=name) for name in ("L0C", "BT", "UB", "L1"))
    kernel = dataclasses.replace(TIMED, timing=dataclasses.replace(TIMED.timing, cores=cores), memory=memory)
    _, data = page_of(SessionReport((kernel,)), tmp_path)
    assert list(data["launches"][0]["timing"]["cores"][0]["pipes"]) == ["S", "MTE2", "V", "MTE3"]
    assert [row["memory"] for row in data["launches"][0]["memory"]] == ["UB", "L1", "L0C", "BT"]
