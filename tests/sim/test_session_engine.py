"""Sessions on the engine: kernels with a planted race, and without."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import sync_kernels
import torch
from sync_kernels import CLEAN, LOAD, RACY, READ

from tilelang_pto import FindingError, RaceError, SimulationError, sim
from tilelang_pto.runtime.abi import AbiParameter, KernelAbi
from tilelang_pto.runtime.module import create_module
from tilelang_pto.sim import SessionReport
from tilelang_pto.sim.report import Traffic

UNWRITTEN = CLEAN.replace("pto.mte_ub_gm(out, ", "pto.mte_ub_gm(pto.addptr(out, 16384), ")
EXPECTED = np.arange(4096, dtype=np.float32) * 2


def module(text: str):
    """The kernel as TileLang's host code calls it."""
    parameters = tuple(SimpleNamespace(name=name, kind="pointer", dtype="float32") for name in "ac")
    emitted = SimpleNamespace(text=text, kernels=(SimpleNamespace(name="double", kernel_kind="vector", parameters=parameters),))
    signature = tuple(AbiParameter(item.name, item.kind, item.dtype) for item in parameters)
    made = create_module(emitted, {"double": KernelAbi("double", signature, ("blockIdx.x",))}, device="sim", surface="2026-09")

    def call() -> np.ndarray:
        a, c = torch.arange(4096, dtype=torch.float32), torch.zeros(4096)
        made["double"](a, c, 2, a.nbytes, c.nbytes)
        return c.numpy()

    return call


CALLS = {"module": module, "run": lambda text: lambda: sync_kernels.run(text)}


@pytest.fixture(params=CALLS, ids=str)
def make(request):
    """A function from a text to a function that launches it: both ways into the engine."""
    return CALLS[request.param]


@pytest.mark.parametrize("policy", ["late", "eager", "random:3"])
def test_a_kernel_without_fault(make, policy):
    call = make(CLEAN)
    with sim.session(policy=policy) as s:
        np.testing.assert_array_equal(call(), EXPECTED)
        np.testing.assert_array_equal(call(), EXPECTED)
    first, second = s.report.kernels
    assert first == second
    assert (first.kernel, first.grid, first.text, first.error, first.findings) == ("double", 2, CLEAN, None, ())
    assert first.options == sim.SimOptions(policy=policy)
    assert first.stats["dma_bytes"] == 2 * 4096 * 4
    s.report.raise_if_findings()


@pytest.mark.parametrize("policy", ["late", "eager", "random:3"])
def test_a_race_is_reported_with_both_places(make, policy):
    call = make(RACY)
    with sim.session(race="report", policy=policy) as s:
        call()
    (kernel,) = s.report.kernels
    (finding,) = kernel.findings
    assert (finding.kind, finding.hazard, finding.memory, finding.begin, finding.end) == ("race", "WAR", "UB", 0, 4096)
    assert "V->MTE2" in finding.missing
    first, second = finding.first, finding.second
    assert first is not None and second is not None
    assert (first.line, first.op, first.pipe, first.access) == (READ, "vlds", "V", "read")
    assert (second.line, second.op, second.pipe, second.access) == (LOAD, "mte_gm_ub", "MTE2", "write")
    assert kernel.error is None


def test_a_race_raises(make):
    call = make(RACY)
    with pytest.raises(RaceError) as caught, sim.session() as s:
        call()
    text = str(caught.value)
    lines = RACY.splitlines()
    for part in ("race, write after read: no V->MTE2", f":{READ}: vlds on pipe V of block 0 reads", lines[READ - 1].strip()):
        assert part in text
    for part in (f":{LOAD}: mte_gm_ub on pipe MTE2 of block 0 writes", lines[LOAD - 1].strip(), "UB bytes 0 to 4095", "V_MTE2"):
        assert part in text
    assert isinstance(caught.value, SimulationError)
    assert len(s.report.findings) == 1


def test_a_race_raises_the_same_without_a_session(make):
    call = make(RACY)
    with pytest.raises(RaceError) as inside, sim.session():
        call()
    for _ in range(2):
        with pytest.raises(RaceError) as outside:
            call()
        assert str(outside.value) == str(inside.value)


def test_each_thread_gets_the_error_of_its_own_launch(make):
    calls = [make(RACY), make(UNWRITTEN)]

    def error(number: int) -> str:
        with pytest.raises(FindingError) as caught:
            calls[number % 2]()
        return str(caught.value)

    with ThreadPoolExecutor(4) as pool:
        errors = list(pool.map(error, range(16)))
    assert len(set(errors)) == 2
    for number, text in enumerate(errors):
        assert text.startswith("uninitialised" if number % 2 else "race, write after read: no V->MTE2")


def test_other_errors_stay_what_they_are(make):
    call = make(RACY.replace('pto.wait_flag("MTE2", "V", event_id=step)', 'pto.wait_flag("MTE2", "V", event_id=step + 2)'))
    with pytest.raises(SimulationError) as caught, sim.session() as s:
        call()
    assert not isinstance(caught.value, RaceError)
    assert s.report.kernels[0].error is not None
    assert "double" in s.report.kernels[0].error


def test_nothing_is_left_of_a_session(make):
    clean, racy = make(CLEAN), make(RACY)
    with pytest.raises(ZeroDivisionError), sim.session(), sim.session(check="bounds"):
        racy()
        raise ZeroDivisionError
    with pytest.raises(RaceError), sim.session():
        racy()
    with sim.session(check="off") as s:
        racy()
    assert s.report.findings == ()
    np.testing.assert_array_equal(clean(), EXPECTED)


def test_storing_what_nobody_has_written():
    store = 1 + next(n for n, line in enumerate(UNWRITTEN.split("\n")) if "mte_ub_gm" in line)
    with sim.session(race="report") as s:
        sync_kernels.run(UNWRITTEN)
    (finding,) = s.report.findings
    assert finding.kind == "uninitialised"
    places = [place for place in (finding.first, finding.second) if place is not None]
    assert [(place.line, place.access) for place in places] == [(store, "read")]
    assert f"place   <pto>:{store}: mte_ub_gm" in s.report.summary()


def test_vector_functions_may_load_registers_that_they_use_in_part():
    text = CLEAN.replace("pto.vlds(row, k * 64)", "pto.vadd(pto.vlds(row, k * 64), pto.vlds(row, k * 64 + 16384), mask)")
    with sim.session(race="report") as s:
        sync_kernels.run(text)
    assert s.report.findings == ()


def test_time_and_timeline():
    with sim.session(race="report", timing=True, timeline=True) as s:
        sync_kernels.run(RACY)
    (kernel,) = s.report.kernels
    timing, timeline, memory = kernel.timing, kernel.timeline, kernel.memory
    assert timing is not None and timeline is not None and memory is not None
    assert timing.bytes == Traffic(gm_read=16384, gm_written=16384)
    assert timing.cycles == pytest.approx(timing.microseconds * timing.clock_ghz * 1000)
    assert [(core.block, core.core) for core in timing.cores] == [(0, ""), (1, "")]
    assert all(0 <= event.start < event.end <= timing.cycles for event in timeline.events)
    assert {event.line for event in timeline.events if event.op == "mte_gm_ub"} == {LOAD}
    assert {event.kind for event in timeline.events} == {"run", "wait"}
    assert sum(step.cycles for step in timing.critical_path) <= timing.cycles * 1.001
    assert {extent.line for extent in memory if extent.begin == 0 and extent.access == "write"} == {LOAD}
    assert {extent.memory for extent in memory} == {"UB"}
    assert SessionReport.from_json(s.report.to_json()) == s.report


def test_a_long_timeline_is_sampled_and_says_so():
    with sim.session(timing=True, timeline=True, max_events=40) as s:
        sync_kernels.run(CLEAN, blocks=8)
    (kernel,) = s.report.kernels
    assert kernel.timeline is not None and kernel.timeline.sampled
    assert 0 < len(kernel.timeline.events) <= 40
    assert any("the timeline holds" in note for note in kernel.notes)
    assert "note " in s.report.summary()


def test_a_session_without_timing_has_none():
    with sim.session() as s:
        sync_kernels.run(CLEAN)
    kernel = s.report.kernels[0]
    assert kernel.timing is kernel.timeline is kernel.memory is None
