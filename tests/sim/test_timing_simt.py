"""SIMT functions under the timing model."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from timing_harness import FIGURES, gm, timed

SHELL = FIGURES["kVectorLaunch"] + FIGURES["kVectorDrain"]


def region(body: str, threads: int = 32, arrays: dict | None = None) -> float:
    text = f"""
    u = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
    with pto.simt({threads}, 1, 1):
        t = pto.get_tid_x()
""" + textwrap.indent(textwrap.dedent(body), "        ")
    return timed(text, arrays or {}).timing.cores[0].pipes["V"].busy


def more(body: str, threads: int = 32, arrays: dict | None = None, times: int = 100, before: str = "") -> float:
    """Cycles of one more ``body``."""
    return (region(before + body * (times + 1), threads, arrays) - region(before + body, threads, arrays)) / times


def test_loads_of_one_warp() -> None:
    assert more("pto.load(u, t)\n") == FIGURES["kSimtUb"]


@pytest.mark.parametrize(("stride", "conflicts"), [(1, 1), (2, 1), (4, 2), (16, 8), (64, 32)])
def test_loads_from_one_sub_bank_come_one_after_the_other(stride: int, conflicts: int) -> None:
    """32 sub-banks of 8 bytes: with a stride of 64 floats all threads of a warp have the same one."""
    found = more("pto.load(u, o)\n", before=f"o = t * {stride}\n")
    assert found == pytest.approx(max(11, 5.6 + conflicts))


def test_the_same_place_is_loaded_once() -> None:
    assert more("pto.load(u, o)\n", before="o = t * 0 + 5\n") == FIGURES["kSimtUb"]


def test_warps_hide_each_others_latency() -> None:
    """Up to the four schedulers: 1024 threads are 8 warps for each."""
    body = "x = pto.mul(x, x)\n"
    before = "x = pto.load(u, t)\n"
    assert more(body, 32, before=before) == FIGURES["kSimtInstruction"]
    assert more(body, 512, before=before) == FIGURES["kSimtInstruction"]
    assert more(body, 1024, before=before) == pytest.approx(1024 / 32 / FIGURES["kSimtSchedulers"], rel=0.02)
    assert more(body, 2048, before=before) == pytest.approx(2048 / 32 / FIGURES["kSimtSchedulers"], rel=0.02)


def test_the_port_to_ub_is_shared_by_all_warps() -> None:
    found = more("pto.load(u, o)\n", 1024, before="o = t % 32 * 64\n")
    assert found == pytest.approx(32 * 32, rel=0.02)


def branch(condition: str, products: int) -> str:
    lines = "".join(["        pto.mul(x, x)\n"] * products)
    return f"with pto.if_({condition}) as br:\n    with br.then_:\n{lines}"


def test_threads_that_take_no_part_cost_nothing() -> None:
    """A branch that 32 of 2048 threads take is the work of one warp."""
    one, all_of_them = (region("x = pto.load(u, t)\n" + branch(f"t < {limit}", 200), 2048) for limit in (32, 2048))
    assert one == pytest.approx(200 * FIGURES["kSimtInstruction"], rel=0.1)
    assert all_of_them == pytest.approx(200 * 2048 / 32 / FIGURES["kSimtSchedulers"], rel=0.1)


def test_gm_moves_in_sectors() -> None:
    for stride, sectors in ((1, 1), (32, 32)):
        text = f"""
        with pto.simt(32, 1, 1):
            t = pto.get_tid_x()
            o = t * {stride}
            pto.load(x, o)
        """
        timing = timed(text, {"x": gm(1024, np.float32)}).timing
        assert timing.bytes.gm_read == sectors * 128
        assert timing.cores[0].pipes["V"].busy >= SHELL + FIGURES["kSimtGm"]


def test_a_warp_waits_for_a_value_from_gm_where_it_uses_it() -> None:
    """Loads overlap; a load whose address is another one's value does not."""
    arrays = {"x": gm(1024, np.float32)}
    assert more("pto.load(x, t)\n", arrays=arrays) == pytest.approx(FIGURES["kSimtUb"])
    used = more("pto.mul(pto.load(x, t), pto.load(x, t))\n", arrays=arrays)
    assert used == pytest.approx(FIGURES["kSimtUb"] + FIGURES["kSimtGm"] + FIGURES["kSimtInstruction"])
    chain = more("o = pto.cast(pto.load(x, o), pto.i32)\n", arrays=arrays, before="o = t\n")
    assert chain == pytest.approx(FIGURES["kSimtGm"] + FIGURES["kSimtInstruction"])


def test_a_value_that_a_loop_carries_is_waited_for() -> None:
    def loop(rounds: int) -> float:
        body = f"""
        with pto.for_(0, {rounds}, step=1).carry(v=pto.load(x, t)) as lp:
            lp.update(v=pto.load(x, pto.cast(lp.v, pto.i32) + t))
        pto.store(lp.final("v"), u, t)
        """
        return region(body, 32, {"x": gm(1024, np.float32)})

    assert (loop(30) - loop(10)) / 20 >= FIGURES["kSimtGm"]


@pytest.mark.parametrize(("used", "each"), [(False, "kSimtGmAtomic"), (True, "kSimtGmAtomicReturn")])
def test_atomics_on_one_sector_come_one_after_the_other(used: bool, each: str) -> None:
    add = "pto.atomic_add(p, pto.const(1.0, dtype=pto.f32))"
    body = f"p = pto.addptr(x, o)\n{f'pto.store({add}, u, t)' if used else add}\n"
    one = region("o = t * 0\n" + body, 1024, {"x": gm(32768, np.float32)})
    many = region("o = t * 32\n" + body, 1024, {"x": gm(32768, np.float32)})
    assert one == pytest.approx(SHELL + 1024 * FIGURES[each], rel=0.01)
    assert many < one / 4


def test_atomics_of_several_cores_on_one_sector_come_one_after_the_other() -> None:
    body = """
    with pto.simt(1024, 1, 1):
        t = pto.get_tid_x()
        pto.atomic_add(pto.addptr(x, b * {apart} + t * 0), pto.const(1.0, dtype=pto.f32))
    """
    one, same, apart = (
        timed(body.format(apart=step), {"x": gm(1024, np.float32)}, grid=grid).timing.cycles for grid, step in ((1, 0), (8, 0), (8, 32))
    )
    assert same == pytest.approx(8 * one, rel=0.02)
    assert apart == pytest.approx(one, rel=0.02)


def test_a_barrier_waits_for_the_slowest_warp() -> None:
    """Two warps with a branch each: together they take the time of one, with a barrier in between that of both."""
    first, second = branch("t < 32", 40), branch("t >= 32", 40)
    with_barrier, without = (region(f"x = pto.load(u, t)\n{first}{barrier}{second}", 64) for barrier in ("pto.syncthreads()\n", ""))
    assert with_barrier - without == pytest.approx(40 * FIGURES["kSimtInstruction"], rel=0.2)
