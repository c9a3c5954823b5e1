"""Modelled time: of all launches of a call, or none where the simulator has no timing model."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import tilelang
import torch
from tilelang.ascend import language as T

from tilelang_pto.compare.case import Case, Tolerance
from tilelang_pto.compare.modelled import ModelledTime, modelled_time
from tilelang_pto.errors import ConfigurationError, SimulationError
from tilelang_pto.sim.report.model import CoreTiming, PipeTiming, Rates, Timing, Traffic

ROWS, WIDTH = 64, 1024
CASE = Case("k", {"n": 1}, 1, object, (), lambda seed: [seed], (0,), lambda given: given, (Tolerance(),))


def copied():
    """Each core takes a row into UB and back."""

    @T.prim_func
    def copied(x: T.Tensor((ROWS, WIDTH), "float32"), out: T.Tensor((ROWS, WIDTH), "float32")):
        with T.Kernel(ROWS) as core:
            row = T.alloc_shared((WIDTH,), "float32")
            T.copy(x[core, 0], row)
            T.copy(row, out[core, 0])

    return copied


def sessions(monkeypatch, timings, error=None):
    """Sessions whose launches have these timings; what they were asked for, and what the kernel was called with."""
    seen = []

    @contextmanager
    def session(**options):
        if error is not None:
            raise error
        seen.append(options)
        yield SimpleNamespace(report=SimpleNamespace(kernels=[SimpleNamespace(timing=timing) for timing in timings]))

    monkeypatch.setattr("tilelang_pto.sim.session", session)
    return seen


def core(name: str, **busy: float) -> CoreTiming:
    return CoreTiming(0, name, sum(busy.values()), {pipe: PipeTiming(cycles, 1) for pipe, cycles in busy.items()})


def timing(cycles: float, *cores: CoreTiming, moved: int = 0, bound_by: str = "") -> Timing:
    """At one cycle a microsecond, with a GM of two bytes a cycle."""
    rates = Rates(moved / cycles * 1e6, 0.0), Rates(2e6, 0.0)
    return Timing(cycles, cycles, 0.001, bound_by, cores, Traffic(moved, 0), *rates, (), ())


def test_launches_of_a_call_are_added(monkeypatch):
    first = timing(100.0, core("", MTE2=30.0, V=80.0), core("", MTE2=40.0, V=10.0), moved=150, bound_by="vector functions")
    seen = sessions(monkeypatch, [first, timing(50.0, core("", MTE2=5.0), bound_by="flags")])
    called = []
    found = modelled_time(CASE, lambda *arguments: called.append(arguments), seed=7)
    assert found == ModelledTime(150.0, 150.0, 0.5, {"MTE2": 45 / 150, "V": 80 / 150}, "vector functions")
    assert called == [(7,)] and (seen[0]["timing"], seen[0]["check"]) == (True, "off")


def test_pipes_of_cube_and_vector_cores_are_told_apart(monkeypatch):
    cores = core("AIC", MTE2=10.0, M=90.0), core("AIV0", MTE2=20.0, V=5.0), core("AIV1", MTE2=1.0, V=50.0)
    sessions(monkeypatch, [timing(100.0, *cores)])
    found = modelled_time(CASE, lambda *arguments: None)
    assert found is not None
    assert found.busy == {"AIC MTE2": 0.1, "AIC M": 0.9, "AIV MTE2": 0.2, "AIV V": 0.5}


def test_a_kernel_on_the_simulator():
    """Rows of 4 KB to and fro: the model has a time for them, pipes that are busy, and what bounds them."""
    kernel = tilelang.compile(copied(), target="pto")
    case = dataclasses.replace(CASE, inputs=lambda seed: [torch.ones(ROWS, WIDTH), torch.zeros(ROWS, WIDTH)])
    found = modelled_time(case, kernel)
    assert found is not None
    assert 0 < found.cycles < 1e6 and found.microseconds == pytest.approx(found.cycles / 1650)
    least = 2 * ROWS * WIDTH * 4 / 988 / found.cycles  # bytes over those of GM in a cycle
    assert found.gm_share == pytest.approx(least, rel=0.01)
    assert {"S", "MTE2", "MTE3"} <= set(found.busy) and all(0 <= share <= 1 for share in found.busy.values())
    assert found.bound_by


@pytest.mark.parametrize("timings", [[], [None], [timing(1.0), None]], ids=["no launch", "no model", "only some"])
def test_no_time_without_a_model(monkeypatch, timings):
    sessions(monkeypatch, timings)
    assert modelled_time(CASE, lambda *arguments: None) is None


def test_a_library_without_sessions(monkeypatch):
    sessions(monkeypatch, [], ConfigurationError("the native library has no sim_session_begin"))
    assert modelled_time(CASE, lambda *arguments: None) is None


def test_an_error_of_the_kernel_is_not_hidden(monkeypatch):
    sessions(monkeypatch, [timing(1.0)])

    def kernel(*arguments):
        raise SimulationError("a deadlock")

    with pytest.raises(SimulationError, match="deadlock"):
        modelled_time(CASE, kernel)
