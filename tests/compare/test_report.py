"""Statistics and reports, from records with known results."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from made_records import measured, record

from tilelang_pto.compare.modelled import ModelledTime
from tilelang_pto.compare.records import Record, Step
from tilelang_pto.compare.report import Comparison
from tilelang_pto.compare.report.charts import Chart, charts_of
from tilelang_pto.compare.report.files import as_csv, as_html, as_json, as_markdown, write_report
from tilelang_pto.compare.report.svg import svg_of, ticks_of
from tilelang_pto.compare.report.tables import tables_of
from tilelang_pto.compare.statistics import geometric_mean, group, ratio, time_statistics
from tilelang_pto.compare.table import markdown_table, rows_of


@pytest.fixture
def comparison():
    return Comparison("suite", "npu", measured())


# -- statistics ------------------------------------------------------------------------------------------------------------


def test_statistics_of_calls():
    found = time_statistics([(1.0, 2.0, 3.0), (4.0,)])
    assert (found.calls, found.mean, found.median) == (4, 2.5, 2.5)
    assert found.cv == pytest.approx(math.sqrt(5 / 3) / 2.5)
    assert found.round_cv == pytest.approx(math.sqrt(2) / 3)  # means 2 and 4


def test_statistics_of_one_call_have_no_variation():
    found = time_statistics([(2.0,), ()])
    assert (found.mean, found.cv, found.round_cv) == (2.0, None, None)
    assert time_statistics([]) is None and time_statistics([(), ()]) is None


def test_ratios():
    assert ratio(1.0, 4.0) == 0.25
    assert all(ratio(*pair) is None for pair in ((None, 1.0), (1.0, None), (0, 1), (1, 0)))
    assert geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)
    assert math.isnan(geometric_mean([])) and group("none", []) is None
    found = group("some", [0.5, 1.0, 2.0])
    assert (found.cases, found.wins, found.worst, found.median) == (3, 1, 2.0, 1.0)


# -- comparison ------------------------------------------------------------------------------------------------------------


def test_ratios_of_time_are_of_medians(comparison):
    assert [row.time_ratio for row in comparison.rows] == [0.5, 2.0, 0.8]
    assert comparison.all_times().geometric_mean == pytest.approx(0.8 ** (1 / 3))


def test_groups(comparison):
    by_tokens = {found.name: found for found in comparison.time_groups("tokens")}
    assert list(by_tokens) == ["1024", "4096"]  # by number
    assert (by_tokens["1024"].cases, by_tokens["1024"].wins, by_tokens["4096"].wins) == (2, 2, 0)
    by_direction = {found.name: found.geometric_mean for found in comparison.time_groups("direction")}
    assert by_direction == {"forward": pytest.approx(1.0), "backward": pytest.approx(0.8)}


def test_a_case_without_one_backend_is_shown_and_not_compared():
    comparison = Comparison("suite", "npu", measured()[:1])
    assert comparison.rows[0].time_ratio is None and comparison.all_times() is None
    assert "| mix_forward[tokens=1024] | 10.00 | 10.00 |" in as_markdown(comparison, measured()[:1])


def test_cases_that_share_texts_are_counted_once(comparison):
    assert [row.case for row in comparison.texts()] == ["mix_forward[tokens=1024]", "mix_backward[tokens=1024]"]
    scalar = comparison.all_counts("scalar")
    assert (scalar.cases, scalar.geometric_mean) == (2, pytest.approx(0.25))
    assert comparison.quantities() == ["scalar", "syncs", "copies", "bytes", "code"]


# -- outputs ---------------------------------------------------------------------------------------------------------------


def test_tables(comparison):
    tables = {table.title: table for table in tables_of(comparison)}
    assert tables["Time pto / ascend by tokens"].rows[0] == ("1024", "2", "0.650", "0.650", "0.632", "2 of 2", "0.800")
    assert tables["Time pto / ascend by kernel"].rows[-1][0] == "all"
    assert tables["Static counts by text: pto / ascend"].rows[0][1] == "25 / 100 = 0.25"
    assert all(len(row) == len(table.headings) for table in tables.values() for row in table.rows)


def test_json_and_csv_have_everything(comparison):
    found = json.loads(as_json(comparison))
    assert found["time"]["direction"][1]["geometric_mean"] == pytest.approx(0.8)
    assert found["counts"]["bytes"]["all"]["worst"] == 1.0
    case = found["cases"][1]
    assert (case["case"], case["time_ratio"], case["pto"]["rounds"][0][0]) == ("mix_forward[tokens=4096]", 2.0, 20.0)
    rows = list(csv.DictReader(io.StringIO(as_csv(comparison))))
    assert len(rows) == 3
    assert (rows[0]["time_ratio"], rows[0]["pto_median_us"], rows[0]["ascend_scalar"]) == ("0.5", "5.0", "100")
    assert rows[0]["pto_failed_stage"] == ""


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.resources: list[str] = []
        self.bars = 0

    def handle_starttag(self, tag, attrs):
        self.resources += [value for name, value in attrs if name in ("src", "href") and value]
        self.bars += tag == "rect"


def test_the_page_is_complete_in_itself_and_escapes_what_it_shows():
    broken = record("mix_forward", 1024, "pto", steps=(Step("text", "failed", "<script>alert('&')</script> | x"),), samples=())
    page = as_html(Comparison("<suite>", "npu", [*measured(), broken]), [*measured(), broken])
    assert "<script>" not in page and "&lt;script&gt;alert" in page and "<suite>" not in page
    parsed = _Page()
    parsed.feed(page)
    assert parsed.resources == [] and parsed.bars > 4
    assert "url(" not in page and "@import" not in page
    markdown = markdown_table(rows_of([broken]))
    assert "\\|" in markdown and "<script>" not in markdown


CHARTS = {
    "ratios": Chart("a", "t", "ratio", ("x", "y"), (("s", (0.5, None)), ("r", (1.25, 0.01))), reference=1.0),
    "decades": Chart("b", "t", "us", ("x",), (("s", (3.0,)),), logarithmic=True),
    "one decade": Chart("c", "t", "us", ("x",), (("s", (1.0,)),), reference=1.0, logarithmic=True),
    "long names": Chart("f", "t", "us", ("reduce_partials_and_rmsnorm_backward", "x"), (("s", (1.0, 2.0)),)),
    "many": Chart("g", "t", "ratio", tuple(map(str, range(25))), tuple((f"s{i}", (0.5,) * 25) for i in range(5)), reference=1.0),
    "many decades": Chart("e", "t", "us", ("x", "y"), (("s", (0.3, 4e6)),), logarithmic=True),
    "just beyond powers of ten": Chart("h", "t", "us", ("x", "y"), (("s", (1e-3 - 2e-19, 1e3 + 1e-13)),), logarithmic=True),
    "large": Chart("d", "t", "us", tuple(map(str, range(30))), (("s", tuple(float(i + 1) * 1e5 for i in range(30))),)),
}


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_bars_lie_within_the_axis(chart):
    ticks = ticks_of(chart)
    assert ticks == sorted(ticks) and 2 <= len(ticks) <= 12
    assert max(chart.values) <= ticks[-1] and (not chart.logarithmic or min(chart.values) >= ticks[0])
    root = ElementTree.fromstring(svg_of(chart))
    height = float(root.get("height"))
    bars = [node for node in root.iter() if node.tag.endswith("rect") and len(node)]
    assert len(bars) == len(chart.values)
    legend = [node for node in root.iter() if node.tag.endswith("text") and node.text in dict(chart.series)]
    assert len(legend) == len(chart.series)
    assert all(float(node.get("x")) + 7 * len(node.text) <= float(root.get("width")) for node in legend)
    names = [node for node in root.iter() if node.tag.endswith("text") and node.get("transform")]
    assert [node.text for node in names] == list(chart.categories)
    assert all(float(node.get("x")) >= 7 * 0.7 * len(node.text) for node in names)
    assert all(float(bar.get("x")) + float(bar.get("width")) <= float(root.get("width")) for bar in bars)
    assert float(root.get("width")) <= 1300  # as wide as the page
    assert all(0 <= float(bar.get("y")) <= height and float(bar.get("height")) >= 1 for bar in bars)


def test_charts(comparison):
    names = [chart.name for chart in charts_of(comparison)]
    assert names == ["time-by-tokens", "time-by-kernel", "counts-by-kernel"]
    tokens = charts_of(comparison)[0]
    assert dict(tokens.series) == {"forward": (pytest.approx(0.5), pytest.approx(2.0)), "backward": (pytest.approx(0.8), None)}
    assert [name for name, _ in charts_of(comparison)[-1].series] == ["scalar operations", "synchronisations", "bytes copied", "code size"]
    assert charts_of(Comparison("none", "sim", [record("mix", 1, "pto", counts={})])) == []


def modelled(cycles: float, **changes) -> ModelledTime:
    values = {"gm_share": 0.25, "busy": {"MTE2": 0.125, "V": 0.5, "S": 0.001}, "bound_by": f"a chain of {cycles:g}"}
    return ModelledTime(**{"cycles": cycles, "microseconds": cycles / 1000, **values, **changes})


def test_modelled_times():
    pairs = [("mix", 8, 12500.0), ("mix", 16, 25000.0), ("expand", 8, 1000.0)]
    records = [record(kernel, tokens, "pto", modelled=modelled(cycles)) for kernel, tokens, cycles in pairs]
    records += [record("mix", 8, "ascend"), record("other", 8, "pto")]
    comparison = Comparison("suite", "sim", records)
    (chart,) = (chart for chart in charts_of(comparison) if chart.name == "modelled-time")
    assert chart.categories == ("mix", "expand") and chart.series[0][1] == pytest.approx((12.5 * 2**0.5, 1.0))
    by_kernel, by_case = (table for table in tables_of(comparison) if table.title.startswith("Modelled time"))
    goes_on = ("25%", "V 50%, MTE2 12%")
    assert by_kernel.rows == (
        ("mix", "2", "12.500", "25.000", "25000", *goes_on, "a chain of 25000"),
        ("expand", "1", "1.000", "1.000", "1000", *goes_on, "a chain of 1000"),
    )
    assert [row[:4] for row in by_case.rows] == [
        ("mix[tokens=8]", "8", "12.500", "12500"),
        ("mix[tokens=16]", "16", "25.000", "25000"),
        ("expand[tokens=8]", "8", "1.000", "1000"),
    ]
    assert all(len(row) == len(table.headings) for table in (by_kernel, by_case) for row in table.rows)
    assert "| --- | ---: |" not in as_markdown(comparison, records)
    assert "|---|---:|---:|---:|---:|---:|---|---|" in as_markdown(comparison, records)
    assert "a chain of 25000" in as_html(comparison, records)
    assert json.loads(as_json(comparison))["cases"][1]["pto"]["modelled"]["busy"]["V"] == 0.5
    rows = list(csv.DictReader(io.StringIO(as_csv(comparison))))
    assert (rows[0]["pto_modelled_us"], rows[0]["pto_modelled_cycles"], rows[0]["ascend_modelled_us"]) == ("12.5", "12500.0", "")


def test_files_with_charts(comparison, tmp_path):
    written, remarks = write_report(comparison, measured(), tmp_path)
    assert remarks == []
    assert {path.name for path in written} == {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "time-by-tokens.png").read_bytes().startswith(b"\x89PNG")


def test_files_without_matplotlib(comparison, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    written, remarks = write_report(comparison, measured(), tmp_path)
    assert {path.suffix for path in written} == {".md", ".json", ".csv", ".html"}
    assert len(remarks) == 1 and "matplotlib" in remarks[0] and 'pip install "tilelang-pto[compare]"' in remarks[0]


# -- records ---------------------------------------------------------------------------------------------------------------


def test_records_survive_their_line():
    for one in (*measured(), record("mix", 8, "pto", modelled=modelled(3.5))):
        assert Record.from_json(one.to_json()) == one
    for text in ("", "[]", "{}", '{"steps": 1}', measured()[0].to_json()[:-10]):
        with pytest.raises(ValueError):
            Record.from_json(text)


def test_stages_after_an_error_were_not_tried():
    failed = record("mix", 8, "pto", steps=(Step("load", "ok"), Step("trace", "failed", "no")))
    assert failed.error.stage == "trace"
    assert (failed.step("run").status, failed.step("run").detail) == ("not tried", "trace failed")
