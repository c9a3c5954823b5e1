"""``tilelang-pto sim`` and ``profile``: the script, its options, what is written, the exit status."""

from __future__ import annotations

import json
import os
import sys

import pytest
from click.testing import CliRunner
from report_data import FakeEngine

from tilelang_pto import cli
from tilelang_pto.sim import SessionReport

HEAD = "import sys, os, report_data\nengine = report_data.FakeEngine.current\n"


@pytest.fixture
def engine(monkeypatch) -> FakeEngine:
    return FakeEngine(monkeypatch)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A function that writes ``script.py``; the working directory is where it lies."""
    monkeypatch.chdir(tmp_path)

    def write(body: str) -> str:
        (tmp_path / "script.py").write_text(HEAD + body)
        return "script.py"

    return write


def run(*arguments: str):
    result = CliRunner().invoke(cli.cli, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.parametrize("command", ["sim", "profile"])
def test_help_has_examples(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"tilelang-pto {command} examples/gemm.py" in result.output


def test_a_clean_script(engine, script):
    result = run("sim", script("print('hello'); engine.launch('first'); engine.launch('second')"))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("hello\nfirst  (2 blocks; check full, policy late)\n  findings   none\n")
    assert result.stdout.endswith("\n2 launches, 0 findings\n")
    assert engine.stack == []


def test_findings_are_told_and_change_the_exit_status(engine, script):
    result = run("sim", script("engine.launch('k', 'findings'); print('went on')"))
    assert result.exit_code == 1
    assert "went on" in result.stdout
    assert "race, write after read: no V->MTE2 ordering" in result.stdout


def test_the_script_runs_like_under_python(engine, script, tmp_path):
    (tmp_path / "beside.py").write_text("value = 7\n")
    body = """
import beside, pickle
class Here: pass
print(sys.argv, __name__, __file__, beside.value, type(pickle.loads(pickle.dumps(Here()))).__name__)
print(sys.modules['__main__'].Here is Here, os.environ['TILELANG_PTO_DEVICE'])
"""
    before = list(sys.argv), list(sys.path), sys.modules["__main__"], os.environ.get("TILELANG_PTO_DEVICE")
    result = run("sim", script(body), "--steps", "3", "-n", "x", "--report", "out.html", "--", "--report", "mine")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:2] == [
        "['script.py', '--steps', '3', '-n', 'x', '--report', 'mine'] __main__ script.py 7 Here",
        "True sim",
    ]
    assert (tmp_path / "out.html").is_file()
    assert before == (list(sys.argv), list(sys.path), sys.modules["__main__"], os.environ.get("TILELANG_PTO_DEVICE"))


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit('no input')", 1, "no input\n"),
        ("raise KeyboardInterrupt", 130, "interrupted\n"),
    ],
)
def test_a_script_that_exits(engine, script, body, status, message):
    result = run("sim", script(f"engine.launch('k')\n{body}"))
    assert result.exit_code == status
    assert result.stderr == message
    assert "1 launch, 0 findings" in result.stdout


def test_an_exit_status_of_the_script_is_kept_when_something_is_found(engine, script):
    assert run("sim", script("engine.launch('k', 'findings'); sys.exit(3)")).exit_code == 3
    assert run("sim", script("engine.launch('k', 'findings'); sys.exit(0)")).exit_code == 1


def test_an_error_of_this_package_is_told_with_the_place_in_the_script(engine, script):
    body = """engine.launch('k')
import tilelang_pto
def inner():
    raise tilelang_pto.SimulationError('stopped', where=('kernel k', 'k.pto.py:3'), advice='another one')
inner()
"""
    result = run("sim", script(body), "--report", "out.html")
    assert result.exit_code == 1
    assert result.stderr == (
        "script.py:6: SimulationError: stopped\n  in kernel k\n  in k.pto.py:3\n  instead: another one\nreport: out.html\n"
    )
    assert "1 launch" in result.stdout
    assert engine.stack == []


def test_any_other_error_has_the_traceback_of_the_script_alone(engine, script):
    result = run("sim", script("def inner():\n    return 1 / 0\ninner()\n"))
    assert result.exit_code == 1
    assert result.stderr.startswith('Traceback (most recent call last):\n  File "script.py", line 5, in <module>')
    assert result.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert "tilelang_pto" not in result.stderr
    assert result.stdout == "no kernel was launched\n"


def test_a_script_that_is_no_python(engine, script):
    result = run("sim", script("def (:\n"))
    assert result.exit_code == 1
    assert "SyntaxError" in result.stderr
    assert "tilelang_pto" not in result.stderr


def test_profile(engine, script):
    result = run("profile", script("engine.launch('k', 'timed')"))
    assert "3,148 cycles, 1.91 us" in result.stdout
    assert "bound by   MTE2" in result.stdout
    assert result.exit_code == 1  # the report has a finding, though this command asks for no check by itself
    assert engine.stack == []


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["sim"], {"check": "full", "policy": "late", "timing": False, "timeline": False}),
        (["sim", "--check", "bounds", "--policy", "random:4"], {"check": "bounds", "policy": "random:4", "timing": False}),
        (["sim", "--report", "a.html"], {"check": "full", "timing": True, "timeline": True}),
        (["sim", "--trace", "a.json", "--max-events", "9"], {"timing": True, "timeline": True, "max_events": 9}),
        (["profile"], {"check": "off", "timing": True, "timeline": False}),
        (["profile", "--report", "a.html", "--check", "full"], {"check": "full", "timing": True, "timeline": True}),
    ],
)
def test_options(engine, script, arguments, options):
    name = script("import json; print(json.dumps(engine.stack[-1][0]))")
    found = json.loads(run(*arguments, name).stdout.splitlines()[0])
    assert found["race"] == "report"
    assert {key: found[key] for key in options} == options


def test_files(engine, script, tmp_path):
    result = run("profile", script("engine.launch('k', 'timed')"), "--report", "out.html", "--trace", "out.json")
    assert "report: out.html\ntrace: out.json (open it in ui.perfetto.dev)\n" in result.stderr
    assert "<title>Simulator report of script.py</title>" in (tmp_path / "out.html").read_text()
    assert any(event["ph"] == "X" for event in json.loads((tmp_path / "out.json").read_text())["traceEvents"])


def test_a_trace_of_nothing(engine, script, tmp_path):
    result = run("sim", script(""), "--trace", "out.json")
    assert result.exit_code == 0
    assert "out.json is not written, no launch has a timeline" in result.stderr
    assert not (tmp_path / "out.json").exists()


def test_json(engine, script, capfd):
    body = "engine.launch('k', 'findings'); print('from the script'); os.write(1, b'from native code\\n')"
    result = run("sim", script(body), "--json")
    assert result.exit_code == 1
    assert SessionReport.from_json(result.stdout).kernels[0].kernel == "k"
    assert result.stderr == "from the script\n"
    assert capfd.readouterr() == ("", "from native code\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], "none.py' does not exist"),
        ([], "Missing argument"),
        (["script.py", "--check", "all"], "'all' is not one of"),
        (["script.py", "--max-events", "0"], "0 is not in the range"),
        (["script.py", "--report", "nowhere/x.html"], "there is no directory nowhere"),
        (["script.py", "--trace", "nowhere/x.json"], "there is no directory nowhere"),
    ],
)
def test_mistakes_are_found_before_the_script_runs(engine, script, arguments, message):
    script("print('ran')")
    result = run("sim", *arguments)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert "ran" not in result.stdout


def test_a_bad_policy(engine, script):
    result = CliRunner().invoke(cli.cli, ["sim", script(""), "--policy", "soon"])
    assert "option policy='soon'" in str(result.exception)


@pytest.mark.parametrize(("text", "status"), [("CLEAN", 0), ("RACY", 1)])
def test_a_kernel_on_the_engine(script, text, status, tmp_path):
    (tmp_path / "real.py").write_text(f"import sync_kernels\nsync_kernels.run(sync_kernels.{text})\n")
    result = run("sim", str(tmp_path / "real.py"))
    assert result.exit_code == status, result.output
    assert result.stdout.startswith("double  (2 blocks; check full, policy late)\n")
    assert ("race, write after read: no V->MTE2" in result.stdout) == (text == "RACY")
