"""Every case of the corpus is emitted for both API states, passes the checker, is recorded and taken by the engine.

By default one variant of each kernel is compiled, the quickest to lower; ``make test-all`` compiles every variant.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from corpus.case import reached_kernel
from corpus.cases import all_cases, ascend_kernels
from corpus.kept_tir import KeptTir, kept_tir
from corpus.quick import QUICK, usual_seconds
from real_toolchain import SURFACE as REAL_SURFACE
from real_toolchain import assert_accepted, real_toolchain

from tilelang_pto import _native
from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import Program, record_module, run
from tilelang_pto.sim.run import element_bytes

SURFACES = ("2026-08", "2026-09")
CASES = all_cases()
#: Those that take long to lower first, so that none of them is the last of a parallel run.
PARAMETERS = [
    pytest.param(case, id=name, marks=() if name in QUICK else pytest.mark.slow)
    for name, case in sorted(CASES.items(), key=lambda item: -usual_seconds(item[1]))
]


def emitted(kept: KeptTir, surface: str) -> str:
    return emit_module(kept.module(), surface=surface_of(surface), fast_math=kept.fast_math).text


def engine_takes(program: Program) -> None:
    """Have the engine compile all functions: a launch of no blocks."""
    assert program.opcodes() <= set(_native.sim_ops())
    for function in program.functions:
        kinds = [kind for _, kind in function.signature()]
        arguments = [np.zeros(1, f"u{element_bytes(kind.dtype)}") if kind.kind == "pointer" else 0 for kind in kinds]
        run(program, function.name, *arguments, grid=0)


@pytest.mark.parametrize("case", PARAMETERS)
def test_compiles(case):
    kept = kept_tir(case)
    for surface in SURFACES:
        text = emitted(kept, surface)
        require_clean(text, surface_of(surface))
        engine_takes(record_module(text, case.name, surface))
        assert emitted(kept, surface) == text, "emitted a second time, the text is another"


@real_toolchain
@pytest.mark.parametrize("case", PARAMETERS)
def test_the_real_toolchain_accepts(case, tmp_path):
    path = tmp_path / "emitted.py"
    path.write_text(emitted(kept_tir(case), REAL_SURFACE))
    assert_accepted(path, tmp_path)


def test_every_kernel_has_one_quick_case():
    kernels = {name: reached_kernel(case).name for name, case in CASES.items()}
    assert set(kernels.values()) == ascend_kernels()
    assert sorted(kernels[name] for name in QUICK) == sorted(ascend_kernels())


def test_every_case_is_another_kernel():
    calls = [(call.name, *call.describe()) for call in map(reached_kernel, CASES.values())]
    assert len(calls) == len(set(calls)) == 197


EMIT = """
import hashlib, sys
import tvm
import tilelang_pto
from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
for path in sys.argv[1:]:
    module = tvm.ir.load_json(open(path).read())
    print(hashlib.sha256(emit_module(module, surface=surface_of("2026-09")).text.encode()).hexdigest())
"""


def test_emission_does_not_depend_on_hash_seeds(tmp_path, monkeypatch):
    paths = []
    for family in ("mhc", "engram", "moe", "quant", "transform", "rand"):
        name = min((name for name in QUICK if name.startswith(f"{family}.")), key=QUICK.get)
        paths.append(tmp_path / name)
        paths[-1].write_text(kept_tir(CASES[name]).text)

    def digests(seed: str) -> str:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        command = [sys.executable, "-c", EMIT, *map(str, paths)]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]).stdout

    assert digests("1") == digests("2")
