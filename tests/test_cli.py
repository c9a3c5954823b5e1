"""The command line. Run in this process through click, and once as a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_toolchain import FakeToolchain

from tilelang_pto import cli

KERNELS = str(Path(__file__).with_name("simple_kernels.py"))


def run(*arguments: str, stdin: str | None = None):
    return CliRunner().invoke(cli.cli, list(arguments), input=stdin)


def one_line(text: str) -> str:
    lines = text.strip().splitlines()
    assert "Traceback" not in text
    return lines[-1]


@pytest.mark.parametrize("command", [[], ["demo"], ["emit"], ["check"], ["build"], ["compare"], ["doctor"]])
def test_help_has_examples(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert "tilelang-pto " + " ".join(command) in result.output


@pytest.mark.parametrize("setting", ["exact", "perturb:7"])
def test_the_demo_runs_with_the_error_asked_for(monkeypatch, setting):
    import tilelang_pto.demo
    from tilelang_pto.settings import perturbation

    seen = []
    monkeypatch.setenv("TILELANG_PTO_ULP", "perturb:1")
    monkeypatch.setattr(tilelang_pto.demo, "main", lambda: seen.append(perturbation()) or 0)
    assert run("demo").exit_code == 0
    assert run("demo", "--ulp", setting).exit_code == 0
    assert seen == [1, None if setting == "exact" else 7]


def test_the_demo_refuses_a_setting_it_does_not_know(monkeypatch):
    monkeypatch.setattr("tilelang_pto.demo.main", lambda: pytest.fail("ran"))
    result = run("demo", "--ulp", "a bit")
    assert result.exit_code != 0 and "--ulp=a bit is not understood" in str(result.exception)


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


def test_emit_a_file_of_a_package(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [*sys.path])
    package = tmp_path / "kernel_package" / "inner"
    package.mkdir(parents=True)
    for directory in (package, package.parent):
        (directory / "__init__.py").write_text("")
    (package.parent / "sizes.py").write_text("WIDTH = 64\n")
    (package / "copies.py").write_text("from simple_kernels import make_add\nfrom ..sizes import WIDTH\nadd = make_add.get_tir(WIDTH)\n")
    result = run("emit", f"{package}/copies.py:add")
    assert result.exit_code == 0, result.output


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
        (
            [f"{KERNELS}:make_add", "--arg", "width=float33[2]"],
            "torch has no dtype 'float33'; use its names (float32, bfloat16, ...) or short",
        ),
        ([f"{KERNELS}:make_add", "--arg", "width=float32[n]"], "a tensor is written dtype[extent,...]"),
        ([f"{KERNELS}:make_add", "--arg", "width=float32[-1]"], "a tensor is written dtype[extent,...]"),
        ([f"{KERNELS}:make_add", "--arg", "width=float32[2"], "a tensor is written dtype[extent,...]"),
    ],
)
def test_emit_mistakes_give_one_line(arguments, message):
    result = run("emit", *arguments)
    assert result.exit_code == 1
    assert message in one_line(result.output)


def test_emit_into_a_file_that_cannot_be_written(tmp_path):
    result = run("emit", f"{KERNELS}:add_64", "-o", str(tmp_path / "none" / "x.py"))
    assert result.exit_code == 1
    assert result.output.strip() == f"Error: {tmp_path}/none/x.py cannot be written: No such file or directory"


FAULTY = """
import tilelang
from tilelang.ascend import language as T


def helper(x):
    return x / 0  # line 7


@T.prim_func
def outside(a: T.Tensor((64,), "float32"), c: T.Tensor((64,), "float32")):
    with T.Kernel(1) as core:
        for i in T.Parallel(64):
            c[i] = a[i]


@tilelang.jit(target="pto")
def undefined(n: int = 64):
    @T.prim_func
    def kernel(a: T.Tensor((n,), "float32"), c: T.Tensor((n,), "float32")):
        with T.Kernel(1) as core, T.SimtVF(threads=64):
            for i in T.Parallel(n):
                c[i] = a[i] + nothing  # line 23

    return kernel


@tilelang.jit(target="pto")
def called(a, c):
    a: T.Tensor[(64,), T.float32]
    c: T.Tensor[(64,), T.float32]
    with T.Kernel(1) as core, T.SimtVF(threads=64):
        for i in T.Parallel(64):
            c[i] = a[i] + helper(1)


@tilelang.jit(target="pto")
def indexed(a, c):
    a: T.Tensor[(64,), T.float32]
    c: T.Tensor[(64,), T.float32]
    with T.Kernel(1) as core, T.SimtVF(threads=64):
        for i in T.Parallel(64):
            c[i, i] = a[i]  # line 43


@tilelang.jit(target="pto")
def typed(a, c):
    n = T.dynamic("n")
    a: T.Tensor[(n, 4), T.bfloat16]
    c: T.Tensor[(n,), T.float32]
    with T.Kernel(1) as core, T.SimtVF(threads=64):
        for i in T.Parallel(n):
            c[i] = T.float32(a[i, 0])
"""


@pytest.fixture
def faulty(tmp_path):
    path = tmp_path / "faulty_kernels.py"
    path.write_text(FAULTY)
    return path


VECTORS = ["--arg", "a=f32[64]", "--arg", "c=f32[64]"]


@pytest.mark.parametrize(
    ("kernel", "arguments", "line", "message"),
    [
        ("undefined", [], 23, "NameError: name 'nothing' is not defined"),
        ("called", VECTORS, 7, "ZeroDivisionError: division by zero"),
        ("indexed", VECTORS, 43, "cannot be indexed with the 2-dimensional indices"),
        ("outside", [], None, "T.Parallel loop 'i' must be inside a VF block"),
    ],
)
def test_what_tilelang_refuses_is_one_line_with_its_place(faulty, kernel, arguments, line, message):
    result = run("emit", f"{faulty}:{kernel}", *arguments)
    assert result.exit_code == 1
    assert len(result.output.strip().splitlines()) == 1
    assert message in one_line(result.output)
    if line is not None:
        assert f"Error: {faulty}:{line}: {kernel} cannot be traced" in result.output


def test_debugging_keeps_the_traceback(faulty, monkeypatch):
    monkeypatch.setenv("TILELANG_PTO_DEBUG", "1")
    assert isinstance(run("emit", f"{faulty}:undefined").exception, NameError)
    assert isinstance(run("emit", f"{faulty}:outside").exception, ValueError)


def test_errors_of_this_package_are_not_blamed_on_tilelang(monkeypatch):
    def broken(*args, **kwargs):
        exec(compile("raise KeyError('x')", str(Path(cli.__file__).with_name("broken.py")), "exec"))

    monkeypatch.setattr("tilelang_pto.backend._emit", broken)
    result = run("emit", f"{KERNELS}:add_64")
    assert result.exit_code == 1
    assert "tilelang-pto has an internal error" in one_line(result.output)
    assert "KeyError: 'x'" in result.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def (:\n", "{file}:1: {file} cannot be imported: SyntaxError: "),
        ("\nimport no_such_module_x\n", "{file}:2: {file} cannot be imported: ModuleNotFoundError: "),
        ("\n\n1 / 0\n", "{file}:3: {file} cannot be imported: ZeroDivisionError: "),
    ],
)
def test_emit_of_a_broken_file(tmp_path, text, message):
    broken = tmp_path / "broken_kernels.py"
    broken.write_text(text)
    result = run("emit", f"{broken}:add")
    assert result.exit_code == 1
    assert message.format(file=broken) in one_line(result.output)


@pytest.mark.parametrize("dtype", ["bf16", "bfloat16"])
def test_short_names_of_types(faulty, dtype):
    result = run("emit", f"{faulty}:typed", "--arg", f"a={dtype}[8,4]", "--arg", "c=f32[8]")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("a", "c", "message"),
    [
        ("f32[8,4]", "f32[8]", "--arg a has dtype float32, typed expects bfloat16"),
        ("bf16[8,4]", "f16[8]", "--arg c has dtype float16, typed expects float32"),
        ("bf16[8]", "f32[8]", "--arg a has 1 dimensions, typed expects 2"),
        ("bf16[8,5]", "f32[8]", "--arg a has extent 5 at shape[1], typed expects 4"),
        ("bf16[8,4]", "f32[9]", "--arg c has extent 9 at shape[0], typed expects 8 (a.shape[0])"),
    ],
)
def test_tensors_are_held_against_the_annotations(faulty, a, c, message):
    result = run("emit", f"{faulty}:typed", "--arg", f"a={a}", "--arg", f"c={c}")
    assert result.exit_code == 1
    assert message in one_line(result.output)


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pto.store(a, a, 0, 0)", "pto.store takes 3 positional arguments, 4 given"),
        ("pto.store(a)", "pto.store lacks "),
        ("pto.store(a, a, 0, where=1)", "pto.store has no parameter 'where'"),
        ("pto.f32(1, 2)", "pto.f32 takes one number, 2 arguments given"),
        ("return 1", "a kernel returns nothing"),
        ("pto.no_such_call(a)", "has no pto.no_such_call"),
    ],
)
def test_findings_name_their_subject(call, message):
    text = (
        "from ptodsl import pto\n\n\n"
        '@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)\n'
        f'def k(a: pto.ptr(pto.f32, "gm")):\n    {call}\n'
    )
    result = run("check", "-", stdin=text)
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>:6: ")
    assert message in result.stdout


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "import tilelang\n", "x = (\n", FAULTY, "from ptodsl_tools import pto\n"])
def test_check_of_something_else(tmp_path, text):
    file = tmp_path / "kernels.py"
    file.write_text(text)
    for result in (run("check", str(file)), run("check", "-", stdin=text)):
        assert result.exit_code == 1
        assert "is not a PTODSL module" in one_line(result.output)
        assert len(result.output.splitlines()) == 1
    assert f"did you mean tilelang-pto emit {file}:KERNEL?" in run("check", str(file)).output


def test_check_says_what_it_does_not_check():
    assert "types of operands are not checked" in " ".join(run("check", "--help").output.split())


def test_check_of_a_missing_or_binary_file(tmp_path):
    assert "does not exist" in run("check", str(tmp_path / "none.py")).output
    binary = tmp_path / "x.bin"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "not a text file" in one_line(run("check", str(binary)).output)


def test_doctor_lists_what_is_found():
    result = run("doctor")
    assert result.exit_code == 0, result.output
    for name in (
        "TileLang",
        "PTODSL",
        "ptoas",
        "bisheng",
        "NPU",
        "native library",
        "built kernels",
        "surface",
        "device",
        "threads",
        "check",
        "debug",
    ):
        assert any(line.startswith(name) for line in result.output.splitlines()), name
    assert "compiled for sim" in result.output


def test_doctor_shows_the_tools(tmp_path, monkeypatch):
    FakeToolchain(tmp_path, monkeypatch)
    rows = {line.split("  ")[0]: line for line in run("doctor").output.splitlines()}
    assert "2026-09 API" in rows["PTODSL"]
    assert "0.60" in rows["ptoas"]
    assert "(from PTOAS_BIN)" in rows["ptoas"]
    assert "2026.07.30" in rows["bisheng"]
    monkeypatch.setenv("PTOAS_BIN", "/nowhere")
    assert "PTOAS_BIN=/nowhere leads to no program ptoas" in run("doctor").output


def test_doctor_with_a_device_that_is_not_there(monkeypatch):
    monkeypatch.setenv("TILELANG_PTO_DEVICE", "npu")
    result = run("doctor")
    assert result.exit_code == 1
    assert "torch_npu" in result.output
    assert "instead: TILELANG_PTO_DEVICE=sim" in result.output


@pytest.mark.parametrize(
    ("variable", "value", "advice"),
    [
        ("TILELANG_PTO_THREADS", "many", "use a number from 1 to 4096"),
        ("TILELANG_PTO_CHECK", "perhaps", "use one of 1, true, yes, on, 0, false, no, off"),
        ("TILELANG_PTO_DEBUG", "perhaps", "use one of 1"),
        ("TILELANG_PTO_KEEP", "perhaps", "use one of 1"),
        ("TILELANG_PTO_TOOL_TIMEOUT", "soon", "use a number above 0"),
        ("TILELANG_PTO_ARCH", "a five", "use a name such as dav-c310"),
        ("TILELANG_PTO_SURFACE", "1999", "use one of: auto"),
        ("TILELANG_PTO_DEVICE", "gpu", "use auto, sim or npu"),
    ],
)
def test_doctor_with_a_bad_setting(monkeypatch, variable, value, advice):
    monkeypatch.setenv(variable, value)
    result = run("doctor")
    assert result.exit_code == 1
    row = next(line for line in result.output.splitlines() if line.startswith(variable.removeprefix("TILELANG_PTO_").lower()))
    assert " error " in row
    assert value in row
    assert f"; instead: {advice}" in row


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
