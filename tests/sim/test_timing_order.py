"""What orders commands under the timing model, and that nothing of the host does."""

from __future__ import annotations

import pytest
from timing_harness import FIGURES, events, gm, timed

from tilelang_pto.sim.report.model import KernelReport

PIPELINE = """
ub = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
for i in range(2):
    pto.set_flag("V", "MTE2", event_id=i)
    pto.set_flag("MTE3", "V", event_id=i)
with pto.for_(0, 6, step=1) as i:
    half = i % 2
    src, dst = pto.addptr(ub, half * 4096), pto.addptr(ub, 16384 + half * 4096)
    pto.wait_flag("V", "MTE2", event_id=half)
    pto.mte_gm_ub(pto.castptr(x, pto.ptr(pto.f32, "gm")), src, 0, 16384, nburst=(1, 16384, 16384))
    pto.set_flag("MTE2", "V", event_id=half)
    pto.wait_flag("MTE2", "V", event_id=half)
    pto.wait_flag("MTE3", "V", event_id=half)
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        with pto.for_(0, 64, step=1) as j:
            pto.vsts(pto.vexp(pto.vlds(src, j * 64), m), dst, j * 64, m)
    pto.set_flag("V", "MTE2", event_id=half)
    pto.set_flag("V", "MTE3", event_id=half)
    pto.wait_flag("V", "MTE3", event_id=half)
    pto.mte_ub_gm(dst, pto.castptr(y, pto.ptr(pto.f32, "gm")), 16384, nburst=(1, 16384, 16384))
    pto.set_flag("MTE3", "V", event_id=half)
for i in range(2):
    pto.wait_flag("V", "MTE2", event_id=i)
    pto.wait_flag("MTE3", "V", event_id=i)
"""


def pipeline(**options) -> KernelReport:
    return timed(PIPELINE, {"x": gm(16384), "y": gm(16384)}, **options)


def test_flags_order_the_pipes() -> None:
    report = pipeline()
    loads, functions, stores = (events(report, pipe) for pipe in ("MTE2", "V", "MTE3"))
    assert len(loads) == len(functions) == len(stores) == 6
    for i in range(6):
        # What is shown of a transfer ends where the next one begins; its latency goes on.
        loaded = loads[i].start + 90 + 163.84
        stored = stores[i].start + 180 + 16384 / 115
        assert functions[i].start >= loaded - 0.5
        assert stores[i].start >= functions[i].end
        if i + 2 < 6:
            assert loads[i + 2].start >= functions[i].end
            assert functions[i + 2].start >= stored - 0.5
    assert functions[0].start == pytest.approx(loads[0].start + 90 + 163.84, abs=0.5)
    assert loads[1].start < functions[0].start  # double buffering


@pytest.mark.parametrize("policy", ["eager", "random:1", "random:2"])
def test_times_do_not_depend_on_the_order_on_the_host(policy: str) -> None:
    late, other = pipeline(policy="late"), pipeline(policy=policy)
    assert late.timing == other.timing
    assert late.timeline == other.timeline


@pytest.mark.parametrize("check", ["off", "bounds", "full"])
def test_times_do_not_depend_on_what_else_is_checked(check: str) -> None:
    assert pipeline(check=check, race="report").timing == pipeline().timing


def test_times_do_not_depend_on_host_threads() -> None:
    body = PIPELINE.replace("pto.castptr(x", "pto.castptr(pto.addptr(x, b * 16384)").replace("range(0, 6", "range(0, 1 + b % 5")
    arrays = {"x": gm(16384 * 70), "y": gm(16384)}
    reports = [timed(body, arrays, grid=70, host_threads=threads, max_events=900) for threads in (1, 2, 5)]
    assert reports[0].timing == reports[1].timing == reports[2].timing
    assert reports[0].timeline == reports[1].timeline == reports[2].timeline
    assert reports[0].memory == reports[1].memory == reports[2].memory


@pytest.mark.parametrize("policy", ["late", "eager", "random:7"])
def test_the_scalar_unit_goes_on_while_a_pipe_waits(policy: str) -> None:
    body = """
    pto.wait_flag("S", "MTE2")
    with pto.for_(0, 4, step=1) as i:
        pto.load(x, i * 64)
    pto.set_flag("S", "MTE2")
    pto.mte_gm_ub(x, pto.castptr(zero, pto.ptr(pto.ui8, "ub")), 0, 512, nburst=(1, 512, 512))
    """
    report = timed(body, {"x": gm(512)}, policy=policy)
    assert report.timing.bytes.gm_read == 4 * 64 + 512
    (load,) = events(report, "MTE2")
    assert load.start == pytest.approx(4 * FIGURES["kScalarGmMiss"] + FIGURES["kScalarDmaIssue"], abs=30)


def test_a_barrier_of_a_pipe_waits_for_completion() -> None:
    body = """
    ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
    pto.mte_gm_ub(x, ub, 0, 8192, nburst=(1, 8192, 8192))
    {barrier}
    pto.mte_gm_ub(x, ub, 0, 8192, nburst=(1, 8192, 8192))
    """
    distance = {}
    for barrier in ("", 'pto.pipe_barrier("MTE2")', 'pto.pipe_barrier("ALL")'):
        first, second = events(timed(body.format(barrier=barrier), {"x": gm(8192)}), "MTE2")
        distance[barrier] = second.start - first.start
    free, one, everything = distance.values()
    assert free == pytest.approx(81.92, rel=2e-3)
    assert one == pytest.approx(81.92 + 90, rel=2e-3)
    # The scalar unit goes on once all is complete, and issues the next one.
    assert everything == pytest.approx(81.92 + 90 + FIGURES["kScalarDmaIssue"] + 1, rel=2e-3)


def test_tokens_order_the_pipes() -> None:
    body = """
    ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
    with pto.for_(0, 3, step=1):
        pto.get_buf("MTE2", 4)
        pto.mte_gm_ub(x, ub, 0, 8192, nburst=(1, 8192, 8192))
        pto.rls_buf("MTE2", 4)
        pto.get_buf("MTE3", 4)
        pto.mte_ub_gm(ub, y, 8192, nburst=(1, 8192, 8192))
        pto.rls_buf("MTE3", 4)
    """
    report = timed(body, {"x": gm(8192), "y": gm(8192)})
    loads, stores = events(report, "MTE2"), events(report, "MTE3")
    for load, store in zip(loads, stores, strict=True):
        assert store.start == pytest.approx(load.start + 90 + 81.92, abs=0.1)
    for store, load in zip(stores, loads[1:], strict=False):
        assert load.start == pytest.approx(store.start + 180 + 8192 / 115, abs=0.1)


def test_the_scalar_unit_waits_for_a_flag() -> None:
    body = """
    ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
    pto.mte_gm_ub(x, ub, 0, 8192, nburst=(1, 8192, 8192))
    pto.set_flag("MTE2", "S")
    pto.wait_flag("MTE2", "S")
    pto.mte_ub_gm(ub, y, 8192, nburst=(1, 8192, 8192))
    """
    report = timed(body, {"x": gm(8192), "y": gm(8192)})
    (load,), (store,) = events(report, "MTE2"), events(report, "MTE3")
    assert store.start == pytest.approx(load.end + FIGURES["kScalarDmaIssue"] + 1, abs=0.1)


def test_the_scalar_unit_is_at_most_a_queue_ahead() -> None:
    """Many long commands of one pipe hold up what comes behind them for another one."""

    def begin(loads: int) -> float:
        body = f"""
        ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
        with pto.for_(0, {loads}, step=1):
            pto.mte_gm_ub(x, ub, 0, 32768, nburst=(1, 32768, 32768))
        pto.mte_ub_gm(ub, y, 32, nburst=(1, 32, 32))
        """
        return events(timed(body, {"x": gm(32768), "y": gm(32)}), "MTE3")[0].start

    depth = int(FIGURES["kQueueDepth"])
    assert begin(depth) < 32768 / 100 * (depth / 2)
    assert begin(3 * depth) > 32768 / 100 * (2 * depth - 2)


ACROSS = """
ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
with pto.for_(0, 1 + b * 4, step=1):
    pto.mte_gm_ub(x, ub, 0, 16384, nburst=(1, 16384, 16384))
pto.set_cross_block("MTE2", 3)
pto.wait_cross_block("MTE3", 3)
pto.mte_ub_gm(ub, pto.addptr(y, b * 32), 32, nburst=(1, 32, 32))
"""


def test_a_flag_among_blocks_waits_for_the_last_one() -> None:
    report = timed(ACROSS, {"x": gm(16384), "y": gm(128)}, grid=4)
    last = max(events(report, "MTE2", block)[-1].end for block in range(4))
    assert last == events(report, "MTE2", 3)[-1].end
    starts = {events(report, "MTE3", block)[0].start for block in range(4)}
    assert max(starts) - min(starts) < 3
    assert min(starts) >= last + FIGURES["kCrossLatency"]
    path = [(step.op, step.block) for step in report.timing.critical_path]
    assert ("mte_gm_ub", 3) in path


def test_more_blocks_than_cores_come_in_waves() -> None:
    body = """
    ub = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        with pto.for_(0, 100, step=1) as i:
            pto.vsts(pto.vexp(pto.vlds(ub, i * 64), m), ub, i * 64, m)
    """
    one = timed(body).timing.cycles
    for grid, waves in ((64, 1), (65, 2), (128, 2), (200, 4)):
        report = timed(body, grid=grid)
        assert report.timing.cycles == pytest.approx(waves * one)
        assert events(report, "V", grid - 1)[0].start == pytest.approx((waves - 1) * one + events(report, "V", 0)[0].start)
        assert sum(step.cycles for step in report.timing.critical_path) == pytest.approx(report.timing.cycles)


def test_the_scalar_unit_pays_for_what_its_cache_does_not_hold() -> None:
    body = """
    with pto.for_(0, 64, step=1) as i:
        pto.load(p, i * {step})
    """
    near, far = (timed(body.format(step=step).replace("p,", "x,"), {"x": gm(4096)}).timing.cycles for step in (1, 64))
    assert near == pytest.approx(FIGURES["kScalarGmMiss"] + 64 * 3, rel=0.3)
    assert far - near == pytest.approx(63 * FIGURES["kScalarGmMiss"], rel=0.01)
