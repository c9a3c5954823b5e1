"""Running a suite: every compiled kernel in a process of its own, with cases that fail, crash and hang on the way."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tilelang_pto import cli
from tilelang_pto.compare.records import Record

SUITE = str(Path(__file__).with_name("suites") / "small.py")


def compare(*arguments: object):
    return CliRunner().invoke(cli.cli, ["compare", *map(str, arguments)])


def records_of(folder: Path) -> dict[tuple[str, str], Record]:
    lines = (folder / "records.jsonl").read_text().splitlines()
    return {(record.kernel, record.backend): record for record in map(Record.from_json, lines)}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run of all cases."""
    folder = tmp_path_factory.mktemp("comparison")
    hanging = compare(SUITE, "--out", folder, "--table", "--timeout", 15, "--kernel", "hangs")
    assert hanging.exit_code == 1
    result = compare(SUITE, "--out", folder, "--table")
    return folder, result, records_of(folder)


def test_right_cases_pass_all_stages(run):
    _, result, records = run
    assert result.exit_code == 1  # others fail
    record = records["scaled_forward", "pto"]
    assert record.error is None
    statuses = {step.stage: step.status for step in record.steps}
    assert all(statuses[stage] == "ok" for stage in ("load", "trace", "text", "count", "compile", "run", "numbers"))
    assert record.functions == ("scaled_kernel",)
    assert record.counts["accesses"] > 0 and record.counts["code"] > 0


def test_ascendc_is_generated_and_what_is_not_tried_is_said(run):
    _, _, records = run
    record = records["scaled_forward", "ascend"]
    assert record.error is None
    assert record.step("text").status == "ok" and record.counts["accesses"] > 0
    for stage in ("compile", "run", "numbers"):
        assert (record.step(stage).status, record.step(stage).detail) == ("not tried", "no bisheng")


@pytest.mark.parametrize(
    ("kernel", "stage", "message"),
    [
        ("wrong", "numbers", "argument 1: 511 of 512 elements wrong; the worst at"),
        ("raises", "trace", "no such program"),
        ("crashes", "run", "the process was ended by SIGSEGV"),
        ("hangs", "trace", "the process did not end within 15 s and was stopped"),
        ("refused", "text", "no_such_function"),
    ],
)
def test_first_errors(run, kernel, stage, message):
    _, _, records = run
    error = records[kernel, "pto"].error
    assert error is not None and error.stage == stage
    assert message in error.detail and "\n" not in error.detail


def test_cases_that_share_a_kernel_do_not_fail_together(run):
    folder, _, _ = run
    records = [Record.from_json(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    errors = {record.tokens: record.error for record in records if (record.kernel, record.backend) == ("shared", "pto")}
    stages = {tokens: error.stage if error is not None else None for tokens, error in errors.items()}
    assert stages == {8: None, 9: None, 10: "run", 11: "numbers", 12: None}
    assert "was ended by SIGSEGV" in errors[10].detail and "of 704 elements wrong" in errors[11].detail


def test_cases_that_share_a_kernel_are_done_together(run):
    folder, _, _ = run
    records = [Record.from_json(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    compiling = [record.step("text").seconds for record in records if (record.kernel, record.backend) == ("scaled_forward", "pto")]
    assert compiling[0] > 0 and compiling[1:] == [0]


def test_the_failure_table(run):
    folder, result, _ = run
    table = (folder / "table.md").read_text().splitlines()
    assert table[0].startswith("| kernel | backend | text | compile | run | numbers |")
    cells = {tuple(line.split(" | ")[:2]): line.split(" | ") for line in table[2:]}
    assert cells["| `scaled_forward`", "pto"][2:6] == ["2/2"] * 4
    ascend = cells["| `scaled_forward`", "ascend"]
    assert ascend[2:6] == ["2/2", "not tried", "not tried", "not tried"]
    assert ascend[6].startswith("compile, run, numbers not tried: no bisheng")
    assert cells["| `crashes`", "pto"][2:6] == ["1/1", "1/1", "0/1", "not tried"]
    assert "run: the process was ended by SIGSEGV" in cells["| `crashes`", "pto"][6]
    assert "not tried: no bisheng" in result.stdout and "SIGSEGV" in result.stdout


def test_an_interrupted_run_goes_on(run, tmp_path):
    folder, _, _ = run
    lines = (folder / "records.jsonl").read_text().splitlines()
    kept = [line for line in lines if json.loads(line)["kernel"].startswith("scaled")]
    cut = tmp_path / "records.jsonl"
    cut.write_text("\n".join(kept[1:]) + "\n" + kept[0][:50])  # killed while it wrote
    result = compare(SUITE, "--kernel", "scaled_*", "--out", tmp_path, "--table", "--markdown")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("] ") == 1 and "[1/1]" in result.stderr
    assert len(cut.read_text().splitlines()) == len(kept)
    again = compare(SUITE, "--kernel", "scaled_*", "--out", tmp_path, "--table", "--markdown")
    assert (again.exit_code, again.stderr) == (0, "")
    assert again.stdout == result.stdout == (tmp_path / "table.md").read_text()


def test_records_of_another_package_or_suite_are_not_taken(run, tmp_path):
    folder, _, _ = run
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    old = [{**line, "digest": "another"} for line in lines if line["kernel"] == "scaled_backward"]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in old))
    result = compare(SUITE, "--kernel", "scaled_backward", "--backend", "ascend", "--out", tmp_path, "--table")
    assert "[1/1]" in result.stderr


def test_an_interrupt_ends_what_is_running(tmp_path, monkeypatch):
    started = []

    def interrupted(text, err=False):
        started.append(text)
        raise KeyboardInterrupt

    monkeypatch.setattr("click.echo", interrupted)
    begun = time.monotonic()
    options = ("--kernel", "scaled_forward", "--kernel", "hangs", "--static", "--jobs", 2, "--out", tmp_path)
    result = compare(SUITE, *options)
    assert result.exit_code != 0 and started
    assert time.monotonic() - begun < 300  # the case that hangs has 600 s
    assert all(record.kernel != "hangs" for record in records_of(tmp_path).values())


def test_texts_only(run, tmp_path):
    result = compare(SUITE, "--kernel", "scaled_*", "--static", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    records = records_of(tmp_path)
    for backend in ("ascend", "pto"):
        record = records["scaled_forward", backend]
        assert record.counts == run[2]["scaled_forward", backend].counts
        assert (record.step("run").status, record.step("run").detail) == ("not tried", "only texts were asked for")
    assert len(list((tmp_path / "texts").iterdir())) == 4  # two kernels, both cases of the first share theirs
    assert "Static counts pto / ascend by kernel" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no list CASES"),
        ("CASES = []", "has no list CASES"),
        ("CASES = [1]", "has a int in it"),
        ("raise ImportError('no torch')", "the suite cannot be loaded"),
        (
            "import small\nfrom tilelang_pto.compare import Case\nCASES = [small.RIGHT[0], small.RIGHT[0]]",
            "has several cases scaled_forward[rows=8,width=64]",
        ),
    ],
)
def test_suites_that_are_none(tmp_path, monkeypatch, text, message):
    monkeypatch.syspath_prepend(str(Path(SUITE).parent))
    file = tmp_path / "broken_suite.py"
    file.write_text(text)
    result = compare(file, "--out", tmp_path / "out")
    assert result.exit_code != 0 and message in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_mistakes_on_the_command_line(tmp_path):
    result = compare(SUITE, "--kernel", "nothing*", "--out", tmp_path)
    assert "no case of" in str(result.exception) and "scaled_forward, scaled_backward, wrong" in str(result.exception.advice)
    result = compare(SUITE, "--full", "--out", tmp_path)
    assert "full_small.py" in str(result.exception)
    result = compare("no_such_module_x", "--out", tmp_path)
    assert "the suite cannot be loaded" in str(result.exception)
    (tmp_path / "file").write_text("")
    result = compare(SUITE, "--kernel", "scaled_backward", "--out", tmp_path / "file" / "out")
    assert "cannot be written" in str(result.exception)
    (tmp_path / "records.jsonl").write_text("{}\n")
    result = compare(SUITE, "--kernel", "scaled_backward", "--out", tmp_path)
    assert "records.jsonl:1 is no record" in str(result.exception)
