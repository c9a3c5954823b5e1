"""Emitted text against readable golden files; ``TILELANG_PTO_UPDATE_GOLDEN=1`` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import cube_kernels
import golden_kernels
import pytest
import torch

from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.demo.kernels import expand_backward, expand_forward
from tilelang_pto.lowering import emit_function
from tilelang_pto.sim import record_module
from tilelang_pto.target import pto_target
from tilelang_pto.version import __version__

GOLDEN = Path(__file__).parent / "golden"
SURFACES = ("2026-08", "2026-09")


def _expand_forward():
    return expand_forward.get_tir(torch.empty(1, 1280, dtype=torch.bfloat16), torch.empty(1, 2, 1280, dtype=torch.bfloat16))


def _expand_backward():
    return expand_backward.get_tir(torch.empty(1, 4, 2560, dtype=torch.bfloat16), torch.empty(1, 2560, dtype=torch.bfloat16))


KERNELS = {
    "guarded_copy": golden_kernels.guarded_copy,
    "scale_rows": golden_kernels.scale_rows,
    "running_maximum": golden_kernels.running_maximum,
    "count_even": golden_kernels.count_even,
    "expand_forward": _expand_forward,
    "expand_backward": _expand_backward,
    "gemm": lambda: cube_kernels.gemm(256, 128, 512, tile=(128, 128, 256), unit_flag=True),
    "gemm_relu": lambda: cube_kernels.gemm_relu(128, 128, 128),
}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", KERNELS)
def test_emitted_text(name, surface):
    target = pto_target(surface=surface)
    with target:
        function = KERNELS[name]()
    text = emit_function(function, target=target).text
    require_clean(text, surface_of(surface))
    record_module(text, name, surface)
    path = GOLDEN / surface / f"{name}.py"
    neutral = text.replace(f"tilelang-pto {__version__}", "tilelang-pto VERSION")
    if os.environ.get("TILELANG_PTO_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(neutral)
    assert neutral == path.read_text(), f"{name} for {surface} changed; look at the difference, then TILELANG_PTO_UPDATE_GOLDEN=1"


def test_no_golden_file_is_left_over():
    kept = {(path.parent.name, path.stem) for path in GOLDEN.rglob("*.py")}
    assert kept == {(surface, name) for surface in SURFACES for name in KERNELS}


@pytest.mark.parametrize("name", KERNELS)
def test_emission_is_deterministic(name):
    target = pto_target(surface="2026-09")
    with target:
        function = KERNELS[name]()
    assert emit_function(function, target=target).text == emit_function(function, target=target).text
