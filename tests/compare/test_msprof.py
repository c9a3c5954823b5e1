"""Tables of msprof, written here in the layouts of several versions, and what is wrong with them; the driver with a stand-in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_msprof import fake_msprof
from made_records import record

from tilelang_pto import cli
from tilelang_pto.compare.board import Measuring, measure
from tilelang_pto.compare.msprof import (
    Launch,
    MsprofError,
    Total,
    find_msprof,
    profile,
    read_op_statistic,
    read_op_summary,
    samples_of,
    summaries,
)
from tilelang_pto.compare.records import RecordFile, Step
from tilelang_pto.compare.report import Comparison
from tilelang_pto.compare.suite import load_suite, select
from tilelang_pto.errors import ConfigurationError

SUITE = str(Path(__file__).with_name("suites") / "small.py")

# -- tables ----------------------------------------------------------------------------------------------------------------

SUMMARIES = {
    "single operators, units in the headings": """\
Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Dim
0,4294967295,7,2,mix_kernel,mix_kernel,dynamic,AI_VECTOR_CORE,1717000000000100.25\t,12.5,0.0,64
0,4294967295,8,2,mix_kernel,mix_kernel,dynamic,AI_VECTOR_CORE,1717000000000200.50\t,11.5,80.0,64
""",
    "older, no units, other columns": """\
Model Name,Model ID,Task ID,Stream ID,Infer ID,Op Name,OP Type,Task Type,Task Start Time,Task Duration,Task Wait Time,Block Dim,aicore_time
,1,7,2,1,mix_kernel,mix_kernel,AI_VECTOR_CORE,100,12.5,0,64,11
,1,8,2,1,mix_kernel,mix_kernel,AI_VECTOR_CORE,200,11.5,0,64,10
""",
    "nanoseconds, spaces, a byte order mark": """\
\ufeffOp Name , Task Type, Task Duration(ns) , Task Start Time(ns)
mix_kernel,AI_VECTOR_CORE,12500,100
mix_kernel,AI_VECTOR_CORE, 11500 ,200

""",
    "quoted shapes with commas": """\
Op Name,Task Type,Task Start Time(us),Task Duration(us),Input Shapes
mix_kernel,AI_VECTOR_CORE,100,12.5,"""
    + '"""4,64;4,64"""\n'
    + """\
mix_kernel,AI_VECTOR_CORE,200,11.5,"4,64"
""",
}


@pytest.mark.parametrize("text", SUMMARIES.values(), ids=SUMMARIES)
def test_op_summary(tmp_path, text):
    path = tmp_path / "op_summary_1.csv"
    path.write_text(text)
    launches = read_op_summary(path)
    assert [(launch.name, launch.task_type) for launch in launches] == [("mix_kernel", "AI_VECTOR_CORE")] * 2
    assert [launch.microseconds for launch in launches] == pytest.approx([12.5, 11.5])
    assert launches[0].start < launches[1].start


def test_op_statistic(tmp_path):
    path = tmp_path / "op_statistic_1.csv"
    path.write_text(
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        "0,mix_kernel,AI_VECTOR_CORE,4,50.0,11.0,12.5,14.0,80\n"
    )
    assert read_op_statistic(path) == [Total("mix_kernel", 4, 50.0)]


def test_rows_of_others_need_no_numbers(tmp_path):
    path = tmp_path / "op_summary_1.csv"
    path.write_text("Op Name,Task Type,Task Start Time(us),Task Duration(us)\nallreduce,HCCL,N/A,N/A\nmix_kernel,MIX_AIC,5,2\n")
    assert read_op_summary(path, lambda name: name == "mix_kernel") == [Launch("mix_kernel", "MIX_AIC", 5.0, 2.0)]
    with pytest.raises(MsprofError, match=r"op_summary_1.csv:2: task start time is 'N/A'"):
        read_op_summary(path)


BROKEN = {
    "empty": ("", "has no column task duration"),
    "headings cut off": ("Device_id,Model ID,Task ID,Str", "has no column task duration"),
    "no name": ("Task Duration(us)\n1.0\n", "there is no column op name"),
    "row cut off": ("Op Name,Task Type,Task Start Time(us),Task Duration(us),Block Dim\nk,AIV,1,2,64\nk,AI", r":3 has 2 of 5 cells"),
    "number cut off": ("Op Name,Task Duration(us)\nk,1.\nk,-\n", r":3: task duration is '-'"),
    "negative": ("Op Name,Task Duration(us)\nk,-3\n", "is '-3', no number"),
    "infinite": ("Op Name,Task Duration(us)\nk,inf\n", "is 'inf', no number"),
    "binary": ("\x00\x01\x02", "has no column task duration"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_tables(tmp_path, text, message):
    path = tmp_path / "op_summary_1.csv"
    path.write_text(text)
    with pytest.raises(MsprofError, match=message):
        read_op_summary(path)


# -- samples ---------------------------------------------------------------------------------------------------------------


def output_of(folder: Path, rows: list[tuple[str, float, float]], name: str = "op_summary_1.csv") -> Path:
    where = folder / "PROF_1" / "mindstudio_profiler_output"
    where.mkdir(parents=True, exist_ok=True)
    lines = [f"{name},AIV,{start},{duration}" for name, start, duration in rows]
    (where / name).write_text("Op Name,Task Type,Task Start Time(us),Task Duration(us)\n" + "\n".join(lines) + "\n")
    return folder


def test_samples_leave_the_warm_up_out_and_follow_the_start(tmp_path):
    rows = [("k", 30, 3.0), ("other", 5, 100.0), ("k", 10, 1.0), ("k", 20, 2.0)]
    found = samples_of(output_of(tmp_path, rows), ["k"], warm_up=1, calls=2)
    assert (found.microseconds, found.source) == ((2.0, 3.0), "op_summary")


def test_several_functions_and_launches_make_one_call(tmp_path):
    rows = [
        (name, 10 * call + part, time) for call in range(3) for part, (name, time) in enumerate((("k", 1.0), ("k_1", 10.0), ("k", 2.0)))
    ]
    assert samples_of(output_of(tmp_path, rows), ["k", "k_1"], warm_up=1, calls=2).microseconds == (13.0, 13.0)


def test_tables_in_slices_and_names_with_the_kind_of_core(tmp_path):
    output_of(tmp_path, [("k_0_mix_aic", 1, 1.0)], "op_summary_slice_0_1.csv")
    output_of(tmp_path, [("k_0_mix_aic", 2, 2.0)], "op_summary_slice_1_1.csv")
    assert samples_of(tmp_path, ["k"], warm_up=0, calls=2).microseconds == (1.0, 2.0)


def test_older_directories(tmp_path):
    where = tmp_path / "PROF_1" / "device_0" / "summary"
    where.mkdir(parents=True)
    (where / "op_summary_0_1_1.csv").write_text("Op Name,Task Duration\nk,4\n")
    assert samples_of(tmp_path, ["k"], warm_up=0, calls=1).microseconds == (4.0,)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("other_kernel", 1, 1.0)], "0 launches of k for 3 calls; it has other_kernel"),
        ([("k", 1, 1.0)] * 4, "4 launches of k for 3 calls"),
    ],
)
def test_launches_that_do_not_fit_the_calls(tmp_path, rows, message):
    with pytest.raises(MsprofError, match=message):
        samples_of(output_of(tmp_path, rows), ["k"], warm_up=1, calls=2)


def test_no_tables(tmp_path):
    with pytest.raises(MsprofError, match="there is nothing in"):
        summaries(tmp_path)
    (tmp_path / "PROF_7").mkdir()
    with pytest.raises(MsprofError, match="PROF_7 without tables"):
        summaries(tmp_path)


# -- the program -----------------------------------------------------------------------------------------------------------


def test_finding_msprof(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    with pytest.raises(ConfigurationError, match="msprof was not found"):
        find_msprof()
    with pytest.raises(ConfigurationError, match="is no program"):
        find_msprof(str(tmp_path / "msprof"))
    named = fake_msprof(tmp_path)
    assert find_msprof(str(named)) == named
    home = tmp_path / "cann" / "tools" / "profiler" / "bin"
    home.mkdir(parents=True)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "cann"))
    fake_msprof(home)
    assert find_msprof() == home / "msprof"


def test_paths_msprof_refuses(tmp_path):
    with pytest.raises(ConfigurationError, match="takes no path with '&'"):
        profile(Path("msprof"), ["true"], tmp_path / "a&b", timeout=5)


@pytest.fixture
def faked(tmp_path, monkeypatch):
    """A suite whose cases are all right, records of them, and a way to measure them with the stand-in."""
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    suite = load_suite(SUITE)
    cases = select(suite, ["scaled_backward"])
    records = RecordFile(tmp_path / "records.jsonl")
    for backend in ("ascend", "pto"):
        one = record("scaled_backward", 8, backend, case=cases[0].name, digest=suite.digest, setting="npu")
        records.add(one)

    def go(backends=("pto",), **how):
        measuring = Measuring(
            fake_msprof(tmp_path), **{"rounds": 1, "warm_up": 1, "calls": 2, "timeout": 120, "device": "cpu", "npu": 3, **how}
        )
        measure(suite, cases, records, measuring, backends, "npu", lambda line: None)
        return {found.backend: found for found in records.of([cases[0].name])}

    return go


def log_of(tmp_path: Path) -> list[dict]:
    return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


def test_the_program_under_the_profiler(faked, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_MSPROF", "run")
    assert faked()["pto"].samples == ((6.0, 7.0),)


def test_measuring(faked, tmp_path):
    found = faked(rounds=2)["pto"]
    assert found.samples == ((6.0, 7.0), (6.0, 7.0))  # the first call of each round is warm-up
    assert found.source == "op_summary" and found.step("time") == Step("time", "ok")
    calls = log_of(tmp_path)
    assert len(calls) == 2 and all(call["pinned"] == "3" for call in calls)
    assert all(call["program"][0] == sys.executable and not call["program"][1].startswith("-") for call in calls)
    faked(rounds=2)
    assert len(log_of(tmp_path)) == 2  # what is measured is not measured again
    assert Comparison("suite", "npu", [found]).rows[0].pto.time.median == 6.5


def test_only_totals(faked, monkeypatch):
    monkeypatch.setenv("FAKE_MSPROF", "statistic")
    found = faked()["pto"]
    assert (found.samples, found.source) == (((5.0,),), "op_statistic")


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("few", "2 launches of scaled_kernel for 3 calls"),
        ("cut", "the file is cut off"),
        ("nothing", "msprof has written no op_summary"),
        ("idle", "did not come to their end; the last thing printed: [WARNING] the application was not started"),
        ("fail", "msprof ended with status 1: [ERROR] Failed to start the device profiling"),
        ("crash", "msprof ended with signal 11"),
        ("hang", "msprof did not end within 2 s and was stopped"),
    ],
)
def test_what_goes_wrong_is_in_the_record(faked, monkeypatch, mode, message):
    monkeypatch.setenv("FAKE_MSPROF", mode)
    found = faked(**({"timeout": 2} if mode == "hang" else {}))["pto"]
    assert found.samples == ()
    assert found.error is not None and found.error.stage == "time" and message in found.error.detail


def test_backends_take_turns_and_one_that_fails_does_not_stop_the_other(faked, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_FAILS", "ascend")
    found = faked(("ascend", "pto"), rounds=2)
    assert found["pto"].error is None and len(found["pto"].samples) == 2
    assert found["ascend"].error is not None and found["ascend"].samples == ()
    assert [call["backend"] for call in log_of(tmp_path)] == ["ascend", "pto", "pto"]
    monkeypatch.setenv("FAKE_FAILS", "none")
    monkeypatch.setenv("FAKE_MSPROF", "fail")
    (tmp_path / "log").write_text("")
    faked(("ascend", "pto"), rounds=3)
    assert [call["backend"] for call in log_of(tmp_path)] == ["pto"]  # ascend has an error, pto is measured anew for a third round


def test_the_command_on_a_board(faked, tmp_path, monkeypatch):
    monkeypatch.setattr("tilelang_pto.runtime.device.choose_device", lambda: "npu")
    arguments = ["compare", SUITE, "--kernel", "scaled_backward", "--out", str(tmp_path), "--rounds", "2", "--calls", "4", "--npu", "5"]
    result = CliRunner().invoke(cli.cli, [*arguments, "--msprof", str(fake_msprof(tmp_path))])
    assert result.exit_code == 0, result.output
    assert [(call["backend"], call["pinned"]) for call in log_of(tmp_path)] == [(b, "5") for b in ("ascend", "pto", "pto", "ascend")]
    assert "Time pto / ascend by tokens" in result.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["cases"][0]["pto"]["time"]["calls"] == 8
    assert report["cases"][0]["time_ratio"] == pytest.approx((5 + 4.5) / (10 + 4.5))  # calls 3 to 6 after the warm-up
    missing = CliRunner().invoke(cli.cli, [*arguments, "--msprof", str(tmp_path / "nothing")])
    assert "is no program" in str(missing.exception)
