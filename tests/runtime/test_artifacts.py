"""The files for a machine with a board: complete, and the script among them builds a library that launches."""

from __future__ import annotations

import ctypes
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from fake_toolchain import FakeToolchain

from tilelang_pto import AbiError, ConfigurationError
from tilelang_pto.cli import cli
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.runtime.abi import KernelAbi
from tilelang_pto.runtime.artifacts import write_artifacts

THREE = """
import tilelang
from tilelang.ascend import language as T

@tilelang.jit(target="pto")
def two(scale: T.float32, x, y, count: T.int64):
    n = T.dynamic("n")
    x: T.Tensor[(n,), T.bfloat16]
    y: T.Tensor[(n,), T.float32]
    with T.Kernel(T.ceildiv(n, 512)) as b:
        with T.SimtVF(threads=128):
            for i in T.Parallel(512):
                if b * 512 + i < n:
                    y[b * 512 + i] = T.cast(x[b * 512 + i], "float32") * scale
    with T.Kernel(1) as b:
        with T.SimtVF(threads=32):
            for i in T.Parallel(32):
                y[i] = y[i] + T.cast(count, "float32")
"""


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("artifacts")
    (folder / "three.py").write_text(THREE)
    arguments = ["--arg", "scale=0.5", "--arg", "x=bf16[64]", "--arg", "y=f32[64]", "--arg", "count=3"]
    done = CliRunner().invoke(cli, ["build", f"{folder}/three.py:two", *arguments, "--surface", "2026-08", "--out", str(folder / "out")])
    assert done.exit_code == 0, done.output
    listed = [Path(line) for line in done.output.splitlines()]
    assert sorted(listed) == sorted((folder / "out").iterdir())
    return folder / "out"


def test_every_file_is_there(artifacts):
    assert {path.name for path in artifacts.iterdir()} == {
        "README.md",
        "build.sh",
        "kernel.py",
        "launch_vector.cc",
        "manifest.json",
        "trace.py",
    }
    require_clean((artifacts / "kernel.py").read_text(), surface_of("2026-08"))
    assert len((artifacts / "README.md").read_text().splitlines()) == 3


def test_the_manifest_tells_every_launch(artifacts):
    told = json.loads((artifacts / "manifest.json").read_text())
    assert told["surface"] == "2026-08"
    first, second = told["kernels"]
    assert [(p["name"], p["c_type"], p["offset"]) for p in first["parameters"]] == [
        ("x", "const void*", 0),
        ("y", "float*", 8),
        ("n", "int32_t", 16),
        ("scale", "float", 20),
    ]
    assert first["pack_bytes"] == 24
    assert {p["name"] for p in second["parameters"]} == {"y", "count", "n"}
    assert [call["kernel"] for call in told["calls"]] == [first["name"], second["name"]]
    assert told["calls"][0]["launch"]["blockIdx.x"] == "(n + 511) // 512"
    assert told["calls"][1]["launch"]["blockIdx.x"] == "1"


def test_the_script_builds_a_library_that_launches(artifacts, tmp_path, monkeypatch):
    folder = tmp_path / "tools"
    folder.mkdir()
    fake = FakeToolchain(folder, monkeypatch)
    fake.set(PYTHON=str(fake.folder / "python-with-ptodsl"), PATH=f"{fake.folder}/cann/bin:/usr/bin:/bin")
    board = tmp_path / "a board"
    board.mkdir()
    for path in artifacts.iterdir():
        (board / path.name).write_bytes(path.read_bytes())
    done = subprocess.run(["sh", "build.sh"], cwd=board, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"built {board}/kernels.so"
    library = ctypes.CDLL(str(board / "kernels.so"))
    kernels = json.loads((board / "manifest.json").read_text())["kernels"]
    for kernel in kernels:
        launch = getattr(library, kernel["launch"])
        launch.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_void_p]
        assert launch(bytes(kernel["pack_bytes"]), kernel["pack_bytes"], 1, None) == 4  # reached the launch: no kernel behind it here
        assert launch(bytes(8), 8, 1, None) == 2
    assert len(fake.calls("ptoas")) == len(kernels)


def test_the_script_says_what_is_missing(artifacts, tmp_path):
    done = subprocess.run(["sh", str(artifacts / "build.sh")], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "source set_env.sh of the CANN toolkit first" in done.stderr


@pytest.mark.parametrize("name", ["täg", "a b", "x;rm", "../x"])
def test_a_name_that_no_tool_takes_is_refused_before_anything_is_written(tmp_path, name):
    emitted = SimpleNamespace(text="", kernels=(SimpleNamespace(name=name, kind="vector"),), surface="2026-09")
    with pytest.raises(AbiError, match="is no name a C") as caught:
        write_artifacts(emitted, {name: KernelAbi(name, (), ())}, (), tmp_path / "out")
    assert "ASCII letters, digits and underscores" in caught.value.advice
    assert not (tmp_path / "out").exists()


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    emitted = SimpleNamespace(text="", kernels=(), surface="2026-09")
    with pytest.raises(ConfigurationError, match="the files cannot be written"):
        write_artifacts(emitted, {}, (), tmp_path / "file" / "out")
