"""The command line. Run in this process through click, and once as a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tilelang_pto import cli

KERNELS = str(Path(__file__).with_name("simple_kernels.py"))


def run(*arguments: str, stdin: str | None = None):
    return CliRunner().invoke(cli.cli, list(arguments), input=stdin)


def one_line(text: str) -> str:
    lines = text.strip().splitlines()
    assert "Traceback" not in text
    return lines[-1]


@pytest.mark.parametrize("command", [[], ["demo"], ["emit"], ["check"], ["doctor"]])
def test_help_has_examples(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert "tilelang-pto " + " ".join(command) in result.output


def test_emit_prints_text_that_check_accepts(tmp_path):
    emitted = run("emit", f"{KERNELS}:add_64")
    assert emitted.exit_code == 0, emitted.output
    assert "def add_kernel(" in emitted.stdout
    file = tmp_path / "add.pto.py"
    file.write_text(emitted.stdout)
    checked = run("check", str(file))
    assert checked.exit_code == 0, checked.output
    assert checked.stdout == ""
    assert run("check", "-", stdin=emitted.stdout).exit_code == 0


def test_emit_a_jit_function_with_arguments_and_surface(tmp_path):
    target = tmp_path / "out.py"
    result = run("emit", f"{KERNELS}:make_add", "--arg", "width=128", "--arg", "dtype=bfloat16", "--surface", "2026-08", "-o", str(target))
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "pto.bf16" in target.read_text()
    assert run("check", "--surface", "2026-08", str(target)).exit_code == 0


def test_emit_an_importable_module(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(KERNELS).parent))
    assert run("emit", "simple_kernels:add_64").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no_colon"], "is not MODULE:KERNEL"),
        (["missing.py:add"], "there is no file missing.py"),
        (["no_such_module_x:add"], "cannot be imported: ModuleNotFoundError"),
        ([f"{KERNELS}:nothing"], "kernels there: add_64, make_add"),
        ([f"{KERNELS}:vector_add"], "neither a T.prim_func nor a tilelang.jit function"),
        ([f"{KERNELS}:add_64", "--arg", "x=1"], "takes no --arg"),
        ([f"{KERNELS}:make_add", "--arg", "x"], "is not NAME=VALUE"),
        ([f"{KERNELS}:make_add", "--arg", "height=1"], "unexpected keyword argument 'height'"),
        ([f"{KERNELS}:make_add", "--arg", "width=float33[2]"], "torch has no dtype 'float33'"),
    ],
)
def test_emit_mistakes_give_one_line(arguments, message):
    result = run("emit", *arguments)
    assert result.exit_code == 1
    assert message in one_line(result.output)


def test_emit_of_a_broken_file(tmp_path):
    broken = tmp_path / "broken_kernels.py"
    broken.write_text("def (:\n")
    result = run("emit", f"{broken}:add")
    assert result.exit_code == 1
    assert "SyntaxError" in one_line(result.output)


def test_check_prints_findings_with_their_lines(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text(
        "from ptodsl import pto\n\n\n"
        '@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)\n'
        'def k(a: pto.ptr(pto.f32, "gm")):\n'
        "    pto.no_such_call(a)\n"
    )
    result = run("check", str(file))
    assert result.exit_code == 1
    assert f"{file}:6: " in result.output
    assert "no_such_call" in result.output


def test_check_of_a_missing_or_binary_file(tmp_path):
    assert "does not exist" in run("check", str(tmp_path / "none.py")).output
    binary = tmp_path / "x.bin"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "not a text file" in one_line(run("check", str(binary)).output)


def test_doctor_lists_what_is_found():
    result = run("doctor")
    assert result.exit_code == 0, result.output
    for name in ("TileLang", "PTODSL", "ptoas", "bisheng", "NPU", "native library", "surface", "device"):
        assert any(line.startswith(name) for line in result.output.splitlines()), name
    assert "compiled for sim" in result.output


def test_doctor_with_a_device_that_is_not_there(monkeypatch):
    monkeypatch.setenv("TILELANG_PTO_DEVICE", "npu")
    result = run("doctor")
    assert result.exit_code == 1
    assert "torch_npu" in result.output


def test_as_a_program_with_a_bad_setting(monkeypatch):
    monkeypatch.setenv("TILELANG_PTO_SURFACE", "1999")
    done = subprocess.run([sys.executable, "-m", "tilelang_pto", "emit", f"{KERNELS}:add_64"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    message = one_line(done.stderr)
    assert message.startswith("tilelang-pto: TILELANG_PTO_SURFACE")
    assert "2026-09" in message


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert "tilelang-pto" in result.output
