"""SIMD functions under the timing model. Expected cycles are added up by hand from the figures of docs/timing.md."""

from __future__ import annotations

import numpy as np
import pytest
from timing_harness import FIGURES, gm, timed

from tilelang_pto.sim.timing_figures import vector_costs

SHELL = FIGURES["kVectorLaunch"] + FIGURES["kVectorDrain"]
FORWARD = FIGURES["kVectorForwarding"]


def latency(op: str, types: str = "any") -> float:
    return next(c.latency for c in vector_costs() if c.op == op and c.types == types)


def function(body: str, dtype: str = "f32", n: int = 1, z: int = 131072) -> float:
    """Cycles of a function; ``x``, ``y`` and ``z`` point into UB, the banks of ``y`` are not those of ``x``."""
    bits, lanes = (32, 64) if dtype in ("f32", "i32") else (16, 128)
    text = f"""
    x = pto.castptr(zero, pto.ptr(pto.{dtype}, "ub"))
    y = pto.castptr(pto.const(65536 + 256, dtype=pto.i64), pto.ptr(pto.{dtype}, "ub"))
    z = pto.castptr(pto.const({z}, dtype=pto.i64), pto.ptr(pto.{dtype}, "ub"))
    with pto.vecscope():
        m = pto.pset_b{bits}("PAT_ALL")
        with pto.for_(0, {n}, step=1) as i:
            o = i * {lanes}
            {body}
    """
    return timed(text).timing.cores[0].pipes["V"].busy


def per_vector(body: str, dtype: str = "f32", rounds: int = 64, **options) -> float:
    """Cycles for one more round, where many rounds follow each other."""
    return (function(body, dtype, 3 * rounds, **options) - function(body, dtype, rounds, **options)) / (2 * rounds)


def test_one_vector_goes_through_load_sum_and_store() -> None:
    found = function("pto.vsts(pto.vadd(pto.vlds(x, o), pto.vlds(y, o), m), z, o, m)")
    chain = latency("vlds") - FORWARD + latency("vadd", "floats") - FORWARD + latency("vsts")
    # Set-up of the loop and the instructions before the loads: a few cycles.
    assert SHELL + chain <= found <= SHELL + chain + 4


@pytest.mark.parametrize("n", [1, 4, 16])
def test_a_chain_of_operations_takes_their_latencies(n: int) -> None:
    def chain(op: str, count: int) -> float:
        value = "v0 = pto.vlds(x, o)"
        steps = [f"v{i + 1} = pto.{op}(v{i}, v{i}, m)" for i in range(count)]
        return function("; ".join([value, *steps, f"pto.vsts(v{count}, z, o, m)"]))

    assert chain("vadd", 2 * n) - chain("vadd", n) == n * (latency("vadd", "floats") - FORWARD)
    assert chain("vmul", 2 * n) - chain("vmul", n) == n * (latency("vmul", "floats") - FORWARD)


def carrying(registers: int, rounds: int, body: str = "pass") -> float:
    """Cycles of a loop that carries registers and doubles each of them in every round."""
    names = [f"a{i}" for i in range(registers)]
    text = f"""
    x = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        loop = pto.for_(0, {rounds}, step=1).carry({", ".join(f"{name}=pto.vlds(x, {64 * i})" for i, name in enumerate(names))})
        with loop:
            {body}
            loop.update({", ".join(f"{name}=pto.vadd(loop.{name}, loop.{name}, m)" for name in names)})
        {"; ".join(f'pto.vsts(loop.final("{name}"), x, {64 * i}, m)' for i, name in enumerate(names))}
    """
    return timed(text).timing.cores[0].pipes["V"].busy


@pytest.mark.parametrize("rounds", [4, 32])
def test_a_register_that_a_loop_carries_is_a_chain(rounds: int) -> None:
    assert carrying(1, 2 * rounds) - carrying(1, rounds) == rounds * (latency("vadd", "floats") - FORWARD)


@pytest.mark.parametrize("body", ["pass", "o = loop.iv * 64", 'pto.mem_bar("VST_VLD")'], ids=["nothing", "an address", "a barrier"])
@pytest.mark.parametrize("registers", [8, 16])
def test_what_stands_in_a_loop_that_carries_registers_does_not_write_them(registers: int, body: str) -> None:
    """The sums are bound by the two ports, whatever else there is."""
    assert (carrying(registers, 48, body) - carrying(registers, 16, body)) / 32 == pytest.approx(registers / 2, rel=0.15)


@pytest.mark.parametrize(("dtype", "cycles"), [("f32", 2), ("f16", 4)])
def test_exp_keeps_both_ports_busy(dtype: str, cycles: float) -> None:
    """4 cycles a vector of f32 and 8 of f16, on two ports."""
    assert per_vector("pto.vsts(pto.vexp(pto.vlds(x, o), m), z, o, m)", dtype) == pytest.approx(cycles, rel=0.1)


def test_reductions_have_one_port() -> None:
    both = per_vector("v = pto.vlds(x, o); pto.vsts(pto.vabs(pto.vabs(pto.vabs(v, m), m), m), z, o, m)")
    first = per_vector("v = pto.vlds(x, o); pto.vcmax(v, m); pto.vcmax(v, m); pto.vsts(pto.vcmax(v, m), z, o, m)")
    assert first == pytest.approx(3, rel=0.1)
    assert both < 2.1


def test_integer_sums_take_twice_as_long() -> None:
    sums = "v = pto.vlds(x, o); " + "; ".join(["w = pto.vadd(v, v, m)"] * 8) + "; pto.vsts(w, z, o, m)"
    assert per_vector(sums, "i32") == pytest.approx(8, rel=0.1)
    assert per_vector(sums, "f32") == pytest.approx(4.5, rel=0.15)  # two registers are written a cycle, the load's is one


def test_two_accesses_to_ub_a_cycle() -> None:
    assert per_vector("pto.vsts(pto.vlds(x, o), z, o, m)", z=131072 + 256) < 1.5
    loads = "pto.vlds(x, o); pto.vlds(y, o); pto.vlds(x, o); pto.vlds(y, o); pto.vsts(pto.vlds(x, o), z, o, m)"
    assert per_vector(loads) == pytest.approx(3, rel=0.15)


def test_operands_in_the_same_banks_take_longer() -> None:
    """Eight loads a round, 256 or 512 bytes apart; two loads from the same place are one access."""
    apart = per_vector("q = i * 512; " + "; ".join(f"pto.vlds(x, q + {64 * j})" for j in range(8)), rounds=32)
    same = per_vector("q = i * 1024; " + "; ".join(f"pto.vlds(x, q + {128 * j})" for j in range(8)), rounds=16)
    merged = per_vector("q = i * 1024; " + "; ".join(f"pto.vlds(x, q + {128 * (j // 2)})" for j in range(8)), rounds=16)
    assert same == pytest.approx(8, rel=0.05)
    assert apart == pytest.approx(4, rel=0.1)
    assert merged == pytest.approx(4, rel=0.1)


def test_blocks_in_one_group_of_banks_come_one_after_the_other() -> None:
    """Blocks 256 bytes apart are all in one group: 8 cycles a load, 2 when they follow each other."""
    assert per_vector("pto.vsldb(pto.addptr(x, o), 8, 0, m)") == pytest.approx(8, rel=0.05)
    assert per_vector("pto.vsldb(pto.addptr(x, o), 1, 0, m)") == pytest.approx(2, rel=0.05)


def test_a_gather_from_one_sub_bank_takes_a_cycle_for_each_element() -> None:
    """64 elements 256 bytes apart have one sub-bank; 64 that follow each other, two in each 8 bytes, all of them."""
    far, near = (
        per_vector(
            f"w = pto.vmuls(pto.vci(pto.const(0, dtype=pto.i32)), pto.const({step}, dtype=pto.i32), m); "
            "pto.vgather2(pto.addptr(x, o), pto.vbitcast(w, pto.ui32), m)"
        )
        for step in (64, 1)
    )
    assert far == pytest.approx(64, rel=0.05)
    assert near < 8


def test_a_barrier_waits_for_the_stores_before_it() -> None:
    store, load = "pto.vsts(pto.vlds(x, o), z, o, m)", "pto.vsts(pto.vlds(z, o), y, o, m)"
    free = function(f"{store}; {load}")
    ordered = function(f'{store}; pto.mem_bar("VST_VLD"); {load}')
    unrelated = function(f'{store}; pto.mem_bar("VLD_VST"); {load}')
    assert ordered - free == pytest.approx(latency("vlds") - FORWARD + latency("vsts"), abs=2)
    assert unrelated - free < ordered - free


def test_a_loop_that_runs_again_has_a_gap() -> None:
    def nested(n: int) -> float:
        text = f"""
        x = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
        with pto.vecscope():
            with pto.for_(0, {n}, step=1):
                with pto.for_(0, 2, step=1) as i:
                    pto.vlds(x, 0)
        """
        return timed(text).timing.cores[0].pipes["V"].busy

    gap = (nested(20) - nested(10)) / 10
    assert FIGURES["kVectorLoopAgain"] <= gap <= FIGURES["kVectorLoopAgain"] + 3


def test_a_function_called_again_takes_as_long() -> None:
    """Its time is kept; with other operands it is found out anew."""
    body = """
    x = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
    with pto.for_(0, 12, step=1) as r:
        n = 1 + r % 3
        with pto.vecscope():
            m = pto.pset_b32("PAT_ALL")
            with pto.for_(0, n * 16, step=1) as i:
                pto.vsts(pto.vexp(pto.vlds(x, i * 64), m), x, i * 64, m)
    """
    report = timed(body)
    lengths = [e.end - e.start for e in report.timeline.events if e.op == "vecscope" and e.kind == "run"]
    assert len(lengths) == 12
    assert lengths == lengths[:3] * 4
    assert len(set(lengths[:3])) == 3
    line = next(row for row in report.timing.lines if row.op == "vexp")
    assert line.executions == 16 * (1 + 2 + 3) * 4


def test_operations_are_counted() -> None:
    body = """
    x = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        v = pto.vlds(x, 0)
        pto.vsts(pto.vadd(pto.vmula(v, v, v, m), v, m), x, 0, m)
    """
    timing = timed(body).timing
    assert timing.achieved.flops * timing.cycles / 1.65e9 == pytest.approx(3 * 64)


def test_times_do_not_depend_on_data_without_gathers() -> None:
    def with_data(value: float) -> float:
        body = """
        u = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
        pto.mte_gm_ub(x, u, 0, 1024, nburst=(1, 1024, 1024))
        pto.set_flag("MTE2", "V")
        pto.wait_flag("MTE2", "V")
        with pto.vecscope():
            m = pto.pset_b32("PAT_ALL")
            pto.vsts(pto.vexp(pto.vlds(u, 0), m), u, 0, m)
        """
        name, data = gm(256, np.float32)
        data[:] = value
        return timed(body, {"x": (name, data)}).timing.cycles

    assert with_data(0.0) == with_data(50.0)
