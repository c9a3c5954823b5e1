"""The report of the timing model: shares, lines, the critical path, what bounds a kernel, timeline and memory map."""

from __future__ import annotations

from itertools import pairwise

import pytest
from timing_harness import CLOCK, FIGURES, events, gm, timed

KERNEL = """
ub = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
with pto.for_(0, 4, step=1) as i:
    pto.mte_gm_ub(pto.castptr(x, pto.ptr(pto.f32, "gm")), ub, 0, 4096, nburst=(1, 4096, 4096))
    pto.set_flag("MTE2", "V")
    pto.wait_flag("MTE2", "V")
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        with pto.for_(0, 16, step=1) as j:
            pto.vsts(pto.vexp(pto.vlds(ub, j * 64), m), pto.addptr(ub, 2048), j * 64, m)
    pto.set_flag("V", "MTE3")
    pto.wait_flag("V", "MTE3")
    pto.mte_ub_gm(pto.addptr(ub, 2048), pto.castptr(y, pto.ptr(pto.f32, "gm")), 4096, nburst=(1, 4096, 4096))
    pto.set_flag("MTE3", "MTE2")
    pto.wait_flag("MTE3", "MTE2")
"""


def report(**options):
    return timed(KERNEL, {"x": gm(4096), "y": gm(4096)}, **options)


def test_cycles_time_and_rates_belong_together() -> None:
    timing = report(grid=3).timing
    assert timing.clock_ghz == 1.65
    assert timing.microseconds == pytest.approx(timing.cycles / 1650)
    assert timing.bytes.gm_read == timing.bytes.gm_written == 3 * 4 * 4096
    assert timing.achieved.gm_bytes_per_second == pytest.approx(3 * 8 * 4096 / (timing.cycles / CLOCK))
    assert timing.achieved.flops == pytest.approx(3 * 4 * 16 * 64 / (timing.cycles / CLOCK))
    assert timing.peak.gm_bytes_per_second == pytest.approx(FIGURES["kGmBytesPerCycle"] * CLOCK)
    assert max(core.cycles for core in timing.cores) == timing.cycles


def test_busy_is_the_time_in_which_a_pipe_does_something() -> None:
    found = report()
    (core,) = found.timing.cores
    assert set(core.pipes) == {"S", "MTE2", "V", "MTE3"}
    for name in ("MTE2", "V", "MTE3"):
        assert core.pipes[name].busy == pytest.approx(sum(e.end - e.start for e in events(found, name)))
        assert core.pipes[name].busy < core.cycles
    assert core.pipes["MTE2"].commands == 3 * 4  # loads, set_flag, wait_flag
    assert core.pipes["MTE2"].busy == pytest.approx(4 * (90 + 40.96), rel=2e-3)


def test_lines_say_where_the_time_goes() -> None:
    timing = report().timing
    lines = {row.op: row for row in timing.lines}
    assert lines["mte_gm_ub"].executions == lines["vecscope"].executions == 4
    assert lines["vlds"].executions == lines["vexp"].executions == lines["vsts"].executions == 4 * 16
    inside = sum(row.cycles for row in timing.lines if row.pipe == "V")
    assert inside == pytest.approx(timing.cores[0].pipes["V"].busy, abs=4)
    assert [row.cycles for row in timing.lines] == sorted((row.cycles for row in timing.lines), reverse=True)


@pytest.mark.parametrize("grid", [1, 64, 70])
def test_the_critical_path_is_as_long_as_the_launch(grid: int) -> None:
    timing = report(grid=grid).timing
    assert sum(step.cycles for step in timing.critical_path) == pytest.approx(timing.cycles)
    cycles = {(step.op, step.pipe): step.cycles for step in timing.critical_path}
    # One buffer: everything waits for everything, so all of it is on the path.
    assert cycles["vecscope", "V"] * max(1, grid // 64) == pytest.approx(timing.cores[0].pipes["V"].busy, rel=1.2)
    assert {("mte_gm_ub", "MTE2"), ("mte_ub_gm", "MTE3"), ("vecscope", "V")} <= set(cycles)


def test_what_bounds_a_kernel() -> None:
    assert report().timing.bound_by.startswith("latency: commands wait for each other, of the longest chain ")
    vector = """
    ub = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        with pto.for_(0, 400, step=1) as j:
            pto.vsts(pto.vexp(pto.vlds(ub, j * 64), m), ub, j * 64, m)
    """
    assert timed(vector).timing.bound_by == "V of block 0 is busy for 99 % of its time: vector functions"
    scalar = """
    with pto.for_(0, 100, step=1):
        pto.get_block_num()
    """
    found = timed(scalar).timing
    assert found.bound_by.startswith("S of block 0 is busy for 100 %")
    assert [step.op for step in found.critical_path] == ["scalar code"]


def test_the_timeline_shows_waits_and_runs_of_each_pipe_in_order() -> None:
    found = report()
    assert not found.timeline.sampled
    for pipe in ("MTE2", "V", "MTE3"):
        shown = [e for e in found.timeline.events if e.pipe == pipe]
        assert {e.kind for e in shown} == {"run", "wait"}
        for before, after in pairwise(shown):
            assert before.start < before.end <= after.start + 1e-6
    waits = events(found, "V", kind="wait")
    assert waits[0].op == "wait_flag"
    assert waits[0].end == pytest.approx(events(found, "MTE2")[0].end, abs=0.1)


def test_a_timeline_that_is_too_long_holds_whole_blocks_and_says_so() -> None:
    whole = report(grid=8)
    each = len(whole.timeline.events) // 8
    sampled = report(grid=8, max_events=3 * each + 1)
    assert sampled.timeline.sampled
    blocks = {e.block for e in sampled.timeline.events}
    assert 1 <= len(blocks) <= 3
    for block in blocks:
        assert [e for e in sampled.timeline.events if e.block == block] == [e for e in whole.timeline.events if e.block == block]
    assert f"the timeline holds {len(blocks)} of 8 blocks" in sampled.notes
    assert sampled.timing == whole.timing
    tiny = report(max_events=5)
    assert len(tiny.timeline.events) <= 5
    assert any("only the first 5 events" in note for note in tiny.notes)


def test_the_memory_map_says_what_is_accessed_when() -> None:
    found = report()
    rows = [(m.memory, m.begin, m.end, m.access) for m in found.memory]
    assert rows[:4] == [("UB", 0, 4096, "write"), ("UB", 0, 4096, "read"), ("UB", 8192, 12288, "write"), ("UB", 8192, 12288, "read")]
    assert len(rows) == 4 * 4
    (load, *_), (function, *_), (store, *_) = events(found, "MTE2"), events(found, "V"), events(found, "MTE3")
    times = [(m.first_cycle, m.last_cycle) for m in found.memory[:4]]
    assert times == [(load.start, load.end), (function.start, function.end), (function.start, function.end), (store.start, store.end)]
    assert found.memory[0].line == events(found, "MTE2")[0].line


def test_without_a_timeline_there_are_only_times() -> None:
    found = report(timeline=False)
    assert found.timing.cycles == report().timing.cycles
    assert found.timeline is None
    assert found.memory is None


def test_a_launch_of_very_many_blocks_lists_some_of_their_cores() -> None:
    body = """
    ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
    pto.mte_gm_ub(x, ub, 0, 32, nburst=(1, 32, 32))
    """
    found = timed(body, {"x": gm(32)}, grid=5000, max_events=100)
    assert [core.block for core in found.timing.cores] == list(range(4096))
    assert "the times of cores are those of the first 4096 of 5000" in found.notes
    assert found.timing.bytes.gm_read == 5000 * 32
    assert len(found.timeline.events) <= 100


def test_a_launch_that_fails_has_no_times() -> None:
    from tilelang_pto.errors import SimulationError
    from tilelang_pto.sim import run, session

    text = (
        'from ptodsl import pto\n\n@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)\n'
        'def k():\n    pto.wait_flag("MTE2", "V")\n    pto.pipe_barrier("ALL")\n'
    )
    with session(check="off", timing=True) as s, pytest.raises(SimulationError, match="deadlock"):
        run(text, "k")
    assert s.report.kernels[0].timing is None
    assert "deadlock" in s.report.kernels[0].error
