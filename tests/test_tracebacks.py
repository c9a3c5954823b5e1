"""Errors of the code generator and the recorder reach the user without the frames in which they came about."""

from __future__ import annotations

import traceback

import pytest
import tilelang
from simple_kernels import vector_add

import tilelang_pto
from tilelang_pto import codegen
from tilelang_pto.lowering import emit_function

INNER = ("codegen/", "sim/", "runtime/")


def frames(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__) if "tilelang_pto/" in frame.filename]


def deep(*args, **kwargs):
    raise tilelang_pto.UnsupportedError("no rule", where=("kernel add_kernel",), advice="another one")


@pytest.fixture(params=["emission", "check", "record"])
def failing(request, monkeypatch, cache_dir):
    """A build that fails deep inside the package."""
    if request.param == "emission":
        monkeypatch.setattr(codegen.module, "emit_function", deep)
    elif request.param == "check":
        monkeypatch.setattr("tilelang_pto.codegen.surface.require_clean", deep)
    else:
        monkeypatch.setattr("tilelang_pto.sim.record.record_module", deep)
    return lambda: tilelang.compile(vector_add(cores=13), target="pto")


def test_frames_are_cut(failing):
    with pytest.raises(tilelang_pto.UnsupportedError) as caught:
        failing()
    assert not [name for name in frames(caught.value) if any(part in name for part in INNER)]
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert caught.value.where == ("kernel add_kernel",)


def test_frames_are_kept_for_debugging(failing, monkeypatch):
    monkeypatch.setenv("TILELANG_PTO_DEBUG", "1")
    with pytest.raises(tilelang_pto.UnsupportedError) as caught:
        failing()
    assert any(entry.name == "deep" for entry in traceback.extract_tb(caught.value.__traceback__))


def test_emission_alone(monkeypatch):
    monkeypatch.setattr(codegen.module, "emit_function", deep)
    with pytest.raises(tilelang_pto.UnsupportedError) as caught:
        emit_function(vector_add())
    assert not [name for name in frames(caught.value) if any(part in name for part in INNER)]
