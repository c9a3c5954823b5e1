"""Emitted texts through the real PTODSL and ptoas, where both are installed: golden texts, examples, and the kernels of other tests.

The kernels of the corpus are in ``corpus/test_compile_all.py``, those of cube cores in ``kernels/test_gemm.py`` and
``kernels/test_flash_attention.py``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import assert_kernels
import pytest
import simple_kernels
import torch
from real_toolchain import SURFACE, assert_accepted, real_toolchain

from tilelang_pto.lowering import emit_function
from tilelang_pto.target import pto_target

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden" / SURFACE


@real_toolchain
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.py")), ids=lambda path: path.stem)
def test_golden_texts(path, tmp_path):
    assert_accepted(path, tmp_path)


def example(file: str, kernel: str, *shapes: tuple[int, ...], dtype: torch.dtype = torch.bfloat16, results: int = 0, **options):
    """The TIR of a kernel of an example; the last ``results`` tensors are float32."""
    spec = importlib.util.spec_from_file_location(f"example_{file}", ROOT / "examples" / f"{file}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    dtypes = [dtype] * (len(shapes) - results) + [torch.float32] * results
    return getattr(module, kernel).get_tir(*(torch.empty(s, dtype=d) for s, d in zip(shapes, dtypes, strict=True)), **options)


KERNELS = {
    "example vector_add": lambda: example("vector_add", "vector_add", (1000,), (1000,), (1000,), dtype=torch.float32),
    "example gemm": lambda: example("gemm", "gemm", (512, 384), (256, 384), (512, 256), results=1),
    "example flash_attention": lambda: example("flash_attention", "flash_attention", *[(128, 64)] * 4, scale=0.125),
    "vector_add": simple_kernels.vector_add,
    "strided_scale": simple_kernels.strided_scale,
    "related_extents": simple_kernels.related_extents,
    "add_numbers": simple_kernels.add_numbers,
    "fill": simple_kernels.fill,
    "copy_twice": simple_kernels.copy_twice,
    "checked_copy": lambda: assert_kernels.checked_copy.get_tir(*[torch.empty(64, dtype=torch.int32)] * 2),
}


def accepted(make, directory: Path, pass_configs=None) -> None:
    target = pto_target(device="sim", surface=SURFACE)
    with target:
        function = make()
    directory.mkdir(exist_ok=True)
    path = directory / "kernel.py"
    path.write_text(emit_function(function, target=target, pass_configs=pass_configs).text)
    assert_accepted(path, directory)


@real_toolchain
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name, tmp_path):
    accepted(KERNELS[name], tmp_path)


@real_toolchain
@pytest.mark.slow
def test_every_text_of_the_mhc_suite(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    cases = importlib.import_module("ascend_mhc.cases").CASES
    first = {case.compiled_as: case for case in reversed(cases)}
    assert {case.kernel for case in first.values()} == {case.kernel for case in cases}
    for case in first.values():
        accepted(case.program, tmp_path / case.name, case.pass_configs)
    for module in [module for module in sys.modules if module.partition(".")[0] == "ascend_mhc"]:
        monkeypatch.delitem(sys.modules, module)
