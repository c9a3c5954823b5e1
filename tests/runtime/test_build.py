"""From text to a library: which tools are found, how they are called, and what their failures look like."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_toolchain import FakeToolchain, is_running

from tilelang_pto import ConfigurationError, RuntimeModuleError, ToolchainError
from tilelang_pto.runtime import tools, trace_child
from tilelang_pto.runtime.abi import AbiParameter, KernelAbi
from tilelang_pto.runtime.build import Source, build_library, working_directory
from tilelang_pto.runtime.tools import find_bisheng, find_ptoas, find_ptodsl, find_toolchain
from tilelang_pto.sim.record import record_module

TEXT = '''"""Two kernels."""
from ptodsl import pto


@pto.jit(name="bump", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def bump(x: pto.ptr(pto.f32, "gm"), n: pto.i32):
    # bump.py:12
    pto.store(pto.load(x, 0), x, 1)
    # bump.py:14
    pto.store(pto.load(x, 2), x, 3)


@pto.jit(name="clear", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def clear(x: pto.ptr(pto.f32, "gm")):
    pto.store(pto.load(x, 4), x, 0)
'''
X = AbiParameter("x", "pointer", "float32")
ABIS = {
    "bump": KernelAbi("bump", (X, AbiParameter("n", "scalar", "int32")), ("blockIdx.x",)),
    "clear": KernelAbi("clear", (X,), ("blockIdx.x",)),
}


@pytest.fixture
def fake(tmp_path, monkeypatch):
    folder = tmp_path / "tools"
    folder.mkdir()
    return FakeToolchain(folder, monkeypatch)


@pytest.fixture(scope="module")
def source():
    kernels = (SimpleNamespace(name="bump", kind="vector"), SimpleNamespace(name="clear", kind="cube"))
    emitted = SimpleNamespace(text=TEXT, surface="2026-09", kernels=kernels)
    return Source(emitted, record_module(TEXT, "bump.pto.py", "2026-09"), ABIS)


@pytest.fixture
def built(fake, source, tmp_path):
    def build():
        with working_directory(tmp_path) as directory:
            made = build_library(source, find_toolchain(), directory)
            target = tmp_path / "kept.so"
            target.write_bytes(made.read_bytes())
            return target

    return build


def test_every_step_is_called_as_it_should_be(fake, built):
    library = ctypes.CDLL(str(built()))
    assert library.tilelang_pto_launch_bump(None, 0, 1, None) == 2  # the wrong size of the arguments
    (trace,) = fake.calls("ptodsl")
    assert trace["heavy"] == []
    assert [Path(word).name for word in trace["arguments"]] == ["kernel.py", Path(trace["arguments"][1]).name]
    for call, kernel in zip(fake.calls("ptoas"), ("bump", "clear"), strict=True):
        assert call["arguments"][:3] == ["--pto-arch=a5", "--pto-backend=vpto", "--pto-level=level3"]
        assert [Path(word).name for word in call["arguments"][3:]] == [f"{kernel}.pto", "-o", f"{kernel}.o"]
    cube, vector, link = (call["arguments"] for call in fake.calls("bisheng"))
    assert "--cce-aicore-arch=dav-c310-cube" in cube
    assert "--cce-aicore-arch=dav-c310-vec" in vector
    assert f"-I{fake.folder / 'cann' / 'include'}" in vector
    assert "--cce-fatobj-link" in link
    objects = sorted(Path(word).name for word in link if word.endswith(".o"))
    assert objects == ["bump.o", "clear.o", "launch_cube.o", "launch_vector.o"]


def test_the_architecture_can_be_overridden(fake, built):
    fake.set(TILELANG_PTO_ARCH="dav-c350")
    built()
    assert "--cce-aicore-arch=dav-c350-vec" in fake.calls("bisheng")[1]["arguments"]
    fake.set(TILELANG_PTO_ARCH="a5; rm -rf /")
    with pytest.raises(ConfigurationError, match="is no architecture family"):
        built()


def test_nothing_of_a_build_stays(fake, built, tmp_path):
    built()
    fake.set(FAKE_PTOAS="fail")
    with pytest.raises(ToolchainError) as caught:
        built()
    Path(caught.value.log).unlink()
    assert not list(tmp_path.glob("tilelang-pto-build-*"))


def test_files_of_a_failed_build_are_kept_when_asked(fake, built, tmp_path):
    fake.set(FAKE_PTOAS="fail", TILELANG_PTO_KEEP="1")
    with pytest.raises(ToolchainError) as caught:
        built()
    (kept,) = tmp_path.glob("tilelang-pto-build-*")
    assert {"kernel.py", "bump.pto", "trace.json", "ptoas-bump.log"} <= {path.name for path in kept.iterdir()}
    assert caught.value.log == str(kept / "ptoas-bump.log")


def test_ptoas_points_at_the_line_of_the_text(fake, built):
    fake.set(FAKE_PTOAS="fail")
    with pytest.raises(ToolchainError) as caught:
        built()
    text = str(caught.value)
    assert "ptoas refuses its input: 'pto.store' op has a mask of the wrong width" in text
    assert "kernel bump" in text
    assert "kernel.py:10" in text
    assert "pto.store(pto.load(x, 2), x, 3)" in text
    assert "TileLang source bump.py:14" in text
    log = Path(caught.value.log)
    try:
        assert "VPTO emission pipeline failed" in log.read_text()
        assert "exit status 1" in log.read_text()
        assert f"the log {log}" in text
    finally:
        log.unlink()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"FAKE_PTODSL": "raise"}, r"PTODSL refuses the emitted text \(trace\): TypeError: store\(\) takes 3 positional arguments"),
        ({"FAKE_PTODSL": "verify"}, r"PTODSL refuses the emitted text \(verify\): ValueError: operand #0 does not dominate this use"),
        ({"FAKE_PTODSL": "crash"}, r"PTODSL ended without a result: ended by signal 11"),
        ({"FAKE_PTOAS": "crash"}, r"ptoas crashed: ended by signal 11; PLEASE submit a bug report"),
        ({"FAKE_PTOAS": "silent"}, r"ptoas gave no output"),
        ({"FAKE_BISHENG": "fail"}, r"bisheng refuses its input: unknown type name 'bfloat'"),
        ({"FAKE_BISHENG": "silent"}, r"bisheng gave no output"),
        ({"FAKE_BISHENG": "link-fail"}, r"the linker refuses its input: undefined symbol: rtKernelLaunch"),
        ({"FAKE_BISHENG": "link-silent"}, r"the linker gave no output"),
        ({"FAKE_BISHENG": "link-crash"}, r"the linker crashed: ended by signal 11"),
    ],
    ids=lambda value: "-".join(f"{k}-{v}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_failures_are_told_in_the_words_of_the_tool(fake, built, variables, message):
    fake.set(**variables)
    with pytest.raises(ToolchainError, match=message) as caught:
        built()
    assert "kernel bump" in str(caught.value)
    log = Path(caught.value.log)
    assert log.is_file()
    log.unlink()


def test_ptodsl_points_at_the_line_of_the_text(fake, built):
    fake.set(FAKE_PTODSL="raise")
    with pytest.raises(ToolchainError) as caught:
        built()
    assert "kernel.py:8" in caught.value.where
    assert "TileLang source bump.py:12" in caught.value.where
    Path(caught.value.log).unlink()


@pytest.mark.parametrize(("tool", "name"), [("FAKE_PTODSL", "PTODSL"), ("FAKE_PTOAS", "ptoas"), ("FAKE_BISHENG", "bisheng")])
def test_a_hanging_tool_is_ended_with_its_children(fake, built, tool, name):
    fake.set(**{tool: "hang", "TILELANG_PTO_TOOL_TIMEOUT": "2"})
    with pytest.raises(ToolchainError, match=f"{name} did not end within 2 s") as caught:
        built()
    Path(caught.value.log).unlink()
    if tool != "FAKE_PTODSL":
        assert "starting pass pipeline" in str(caught.value)
        child, deadline = fake.child_of_hanging_tool(), time.monotonic() + 10
        while is_running(child) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not is_running(child)


def test_another_api_state_is_refused_before_anything_runs(fake, built):
    fake.set(FAKE_PTODSL="august")
    with pytest.raises(
        RuntimeModuleError, match=r"written for the PTODSL API of 2026-09, the PTODSL at hand has that of 2026-08"
    ) as caught:
        built()
    assert "TILELANG_PTO_SURFACE=2026-08" in caught.value.advice
    assert fake.calls("ptoas") == []


def test_versions_are_asked_for(fake):
    assert (find_ptoas().version, find_ptoas().source) == ("0.60", "PTOAS_BIN")
    assert (find_bisheng().version, find_bisheng().source) == ("2026.07.30", "ASCEND_HOME_PATH")
    ptodsl = find_ptodsl()
    assert (ptodsl.surface, ptodsl.source) == ("2026-09", "TILELANG_PTO_PYTHON")
    before = find_toolchain().versions()
    fake.set(FAKE_PTOAS="other")
    assert {name for name, version in find_toolchain().versions().items() if version != before[name]} == {"ptoas"}


def test_a_ptoas_that_is_too_old_is_refused(fake, built):
    fake.set(FAKE_PTOAS="ancient")
    with pytest.raises(ConfigurationError, match=r"ptoas 0\.59 \(.*, from PTOAS_BIN\) is too old") as caught:
        built()
    assert "ptoas 0.60 or newer" in caught.value.advice
    assert fake.calls("ptoas") == []
    fake.set(FAKE_PTOAS="nameless")  # a build of one's own may tell none
    assert find_ptoas().version == "unknown"


def test_a_tool_that_does_not_tell_its_version(fake, monkeypatch):
    monkeypatch.setattr(tools, "PROBE_SECONDS", 0.5)
    fake.set(FAKE_PTOAS="mute")
    with pytest.raises(ConfigurationError, match=r"ptoas cannot be asked for its version: ptoas did not end within 0\.5 s"):
        find_ptoas()


def test_a_program_that_cannot_be_run(fake):
    (fake.folder / "ptoas").write_text("no program")
    with pytest.raises(ConfigurationError, match=r"ptoas cannot be asked for its version: ptoas cannot be started"):
        find_ptoas()


def test_where_tools_are_looked_for(fake, monkeypatch, tmp_path):
    monkeypatch.delenv("PTOAS_BIN")
    monkeypatch.setenv("PATH", str(fake.folder), prepend=":")
    assert find_ptoas().source == "PATH"
    home = tmp_path / "bisheng" / "bin"
    home.mkdir(parents=True)
    (home / "bisheng").symlink_to(fake.folder / "cann" / "bin" / "bisheng")
    fake.set(BISHENG_HOME=str(tmp_path / "bisheng"))
    assert find_bisheng().source == "BISHENG_HOME"


def test_all_missing_tools_are_named_at_once(fake, monkeypatch):
    fake.set(PTOAS_BIN="/nowhere/ptoas", BISHENG_HOME="/nowhere", TILELANG_PTO_PYTHON="/nowhere/python")
    with pytest.raises(ConfigurationError) as caught:
        find_toolchain()
    for part in (
        "TILELANG_PTO_PYTHON=/nowhere/python is no program",
        "PTOAS_BIN=/nowhere/ptoas leads to no program ptoas",
        "BISHENG_HOME=/nowhere",
    ):
        assert part in str(caught.value)
    fake.set(TILELANG_PTO_PYTHON=sys.executable)
    monkeypatch.delenv("PTOAS_BIN")
    monkeypatch.delenv("BISHENG_HOME")
    monkeypatch.delenv("ASCEND_HOME_PATH")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigurationError, match=r"no usable PTODSL: ModuleNotFoundError.*ptoas was not found.*bisheng was not found"):
        find_toolchain()


def test_the_tracing_script_needs_nothing_but_ptodsl(fake, tmp_path):
    text = tmp_path / "kernel.py"
    text.write_text("this is no Python\n")
    command = [str(fake.folder / "python-with-ptodsl"), trace_child.__file__, str(text), str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == 1
    outcome = (tmp_path / "trace.json").read_text()
    assert '"type": "SyntaxError"' in outcome
    assert '"line": 1' in outcome
    assert '"modules": []' in outcome
