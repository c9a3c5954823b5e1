"""The files of ``tilelang-pto build`` for the mHC kernels: complete, in agreement with each other, and the launch code executed.

By default one variant of each kernel is looked at; ``make test-all`` looks at every one.
"""

from __future__ import annotations

import ast
import json
import random
import subprocess
from pathlib import Path

import pytest
from corpus.cases import all_cases
from corpus.kept_tir import kept_tir
from corpus.quick import QUICK
from stub_library import Launcher, build_stub, values_for

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.runtime.abi import AbiParameter, KernelAbi, kernel_abi
from tilelang_pto.runtime.artifacts import write_artifacts
from tilelang_pto.runtime.stub import CODES
from tilelang_pto.sim import record_module

SURFACES = ("2026-08", "2026-09")
CASES = [
    pytest.param(case, id=name, marks=() if name in QUICK else pytest.mark.slow)
    for name, case in all_cases().items()
    if name.startswith("mhc.")
]

#: TIR dtypes as the recorder names them.
RECORDED = {
    "float32": "f32", "bfloat16": "bf16", "float16": "f16", "bool": "i1",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)}, **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_artifacts_are_complete(case, tmp_path):
    kept = kept_tir(case)
    module = kept.module()
    for surface in SURFACES:
        folder = tmp_path / surface
        emitted = emit_module(module, surface=surface_of(surface), fast_math=kept.fast_math)
        abis = {str(var.name_hint): kernel_abi(str(var.name_hint), function) for var, function in module.functions.items()}
        written = write_artifacts(emitted, abis, (), folder)
        assert sorted(written) == sorted(folder.iterdir())
        told = json.loads((folder / "manifest.json").read_text())
        check_files(folder, told, surface)
        check_text(folder / "kernel.py", told, surface)
        check_script(folder / "build.sh", told)
        if surface == SURFACES[0]:  # the launch code is the same for both
            stubs = folder
            check_launches(folder, told)
        assert sorted(path.read_text() for path in folder.glob("launch_*.cc")) == sorted(path.read_text() for path in stubs.glob("*.cc"))


def check_files(folder: Path, told: dict, surface: str) -> None:
    kinds = {kernel["kind"] for kernel in told["kernels"]}
    names = {"README.md", "build.sh", "kernel.py", "manifest.json", "trace.py", *(f"launch_{kind}.cc" for kind in kinds)}
    assert {path.name for path in folder.iterdir()} == names
    assert told["surface"] == surface
    readme = (folder / "README.md").read_text().splitlines()
    assert len(readme) == 3
    assert all(line.strip() and kernel["launch"] in readme[1] for line in readme for kernel in told["kernels"])


def check_text(path: Path, told: dict, surface: str) -> None:
    """The text needs nothing but PTODSL, uses public names of it only, and has the parameters of the manifest."""
    text = path.read_text()
    require_clean(text, surface_of(surface))
    tree = ast.parse(text)
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert imports
    for node in imports:
        assert isinstance(node, ast.ImportFrom)
        assert node.module in ("ptodsl", "__future__")
        assert not any(alias.name.startswith("_") for alias in node.names)
    assert not [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith("_")]
    recorded = {function.name: function.signature() for function in record_module(text, path.name, surface).functions}
    wanted = {
        kernel["name"]: [(p["kind"], RECORDED[p["dtype"]], "gm" if p["kind"] == "pointer" else "none") for p in kernel["parameters"]]
        for kernel in told["kernels"]
    }
    assert {name: [(t.kind, t.dtype, t.space) for _, t in signature] for name, signature in recorded.items()} == wanted


def check_script(script: Path, told: dict) -> None:
    """The script is valid shell, executable, and names every file that the tools make or take."""
    subprocess.run(["sh", "-n", str(script)], check=True)
    assert script.stat().st_mode & 0o111
    text = script.read_text()
    for kernel in told["kernels"]:
        assert f"{kernel['name']}.pto -o {kernel['name']}.o" in text
        assert f" launch_{kernel['kind']}.cc -o launch_{kernel['kind']}.o" in text
    link = text[text.index("-o kernels.so") :]
    assert all(f" {kernel['name']}.o" in link and f" launch_{kernel['kind']}.o" in link for kernel in told["kernels"])


def check_launches(folder: Path, told: dict) -> None:
    """The launch code compiles, and what is packed as the manifest says arrives argument by argument."""
    r = random.Random(3)
    libraries = {path.stem: build_stub(path, path.with_suffix(".so")) for path in folder.glob("launch_*.cc")}
    for kernel in told["kernels"]:
        parameters = tuple(AbiParameter(p["name"], p["kind"], p["dtype"], p["constant"]) for p in kernel["parameters"])
        launcher = Launcher(libraries[f"launch_{kernel['kind']}"], KernelAbi(kernel["name"], parameters, ()))
        values = values_for(launcher.kernel, r)
        packed = launcher.pack(values)
        assert len(packed) == kernel["pack_bytes"]
        assert launcher.launch(packed, len(packed), 64, 5) == CODES["ok"]
        assert launcher.got == [(64, 5, *values)]
    for path in folder.glob("launch_*.so"):
        path.unlink()
