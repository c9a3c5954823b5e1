"""The interpreter of recorded programs: what is issued, in which order, and which bytes each command touches."""

from __future__ import annotations

import pytest
import torch
from captured_launches import capture
from command_accesses import Access
from command_trace import TraceError, trace_block
from mutation_launches import PIPELINE, launch
from simple_kernels import vector_add
from sync_mutants import matched

import tilelang_pto.sim as sim
from tilelang_pto import _native


def events(body: str, n: int = 6, **options):
    made = launch(body, n)
    return made, trace_block(made.program, "k", made.arguments, 1, 0, **options)["AIV"]


def test_loops_and_flags():
    _, found = events(PIPELINE, n=3)
    commands = [event.operation.opcode for event in found if not event.orders]
    assert commands == ["mte_gm_ub", "vecscope", "mte_ub_gm"] * 3
    waits = [event.ident for event in found if event.operation.opcode == "wait_flag" and event.operation.attributes["src"] == "MTE2"]
    assert waits == [0, 1, 0]


def test_the_nth_wait_takes_the_nth_set():
    made, found = events(PIPELINE, n=3, accesses=False)
    pairs = [(one.ident, other.ident) for one, other in matched({"AIV": found}) if one.operation.attributes["src"] == "MTE3"]
    assert all(one == other for one, other in pairs)
    assert len(pairs) == 5  # two from before the loop, three of its rounds; five waits
    assert made.grid == 1


def test_bytes_of_commands():
    made, found = events(PIPELINE, n=3)
    gm_in, gm_out = (made.arguments[i].ctypes.data for i in (0, 1))
    load, vector, store = [event for event in found if not event.orders][3:6]
    assert load.accesses == [Access("GM", gm_in + 256, gm_in + 512, False), Access("UB0", 256, 512, True)]
    assert vector.accesses == [Access("UB0", 256, 512, False), Access("UB0", 16384 + 256, 16384 + 512, True)]
    assert store.accesses == [Access("GM", gm_out + 256, gm_out + 512, True), Access("UB0", 16384 + 256, 16384 + 512, False)]


@pytest.mark.parametrize(
    ("transfer", "expected"),
    [
        ("pto.mte_gm_ub(X, a, 0, 64, nburst=(3, 128, 96))", [(0, 64), (96, 160), (192, 256)]),
        ("pto.mte_gm_ub(X, a, 0, 40, nburst=(2, 128, 64))", [(0, 128)]),  # blocks of 32 bytes are written as a whole
        ("pto.mte_gm_ub(X, a, 0, 32, nburst=(2, 32, 64), loops=[(2, 256, 512)])", [(0, 32), (64, 96), (512, 544), (576, 608)]),
    ],
)
def test_rows_of_a_transfer(transfer, expected):
    _, found = events(f"    {transfer}\n")
    assert [(each.begin, each.end) for each in found[0].accesses if each.memory == "UB0"] == expected


VECTOR = """
    pto.mte_gm_ub(X, a, 0, 2048, nburst=(1, 2048, 2048))
    pto.pipe_barrier("ALL")
    with pto.vecscope():
        m, rest = pto.plt_b32(n)
        one = pto.pset_b32("PAT_VL1")
        with pto.for_(0, 2, step=1) as i:
            x = pto.vlds(a, i * 64, pto.vreg_type(64, pto.f32), dist="BRC_B32")
            pto.vsts(x, b, i * 64, m)
            pto.vsts(x, b, 512 + i * 8, one, dist="1PT_B32")
"""


def test_steps_of_a_vector_function():
    _, found = events(VECTOR, n=5)
    (function,) = [event for event in found if event.steps]
    ranges = [(step.access.begin, step.access.end, step.access.write) for step in function.steps]
    base = 16384
    assert ranges == [
        (0, 4, False), (base, base + 20, True), (base + 2048, base + 2052, True),
        (256, 260, False), (base + 256, base + 276, True), (base + 2080, base + 2084, True),
    ]  # fmt: skip
    assert function.steps[4].uses == 1 << 3


def test_control_that_depends_on_data_is_refused():
    body = """
    x = pto.cast(pto.load(X, 0), pto.i32)
    with pto.if_(pto.cmp(x, 0, "gt")) as br:
        with br.then_:
            pto.set_flag("MTE2", "V", event_id=0)
            pto.wait_flag("MTE2", "V", event_id=0)
        with br.else_:
            pto.pipe_barrier("ALL")
"""
    with pytest.raises(TraceError, match="depends on data"):
        events(body)


def test_an_endless_loop_is_given_up():
    made = launch(PIPELINE, n=3)
    with pytest.raises(TraceError, match="too long"):
        trace_block(made.program, "k", made.arguments, 1, 0, limit=20)


def test_a_call_of_a_compiled_kernel_is_caught():
    tilelang = pytest.importorskip("tilelang")
    a, b, c = torch.randn(9, 64), torch.randn(9, 64), torch.zeros(9, 64)
    with capture() as launches:
        tilelang.compile(vector_add(), target="pto")(a, b, c)
    assert torch.equal(c, a + b)
    (found,) = launches
    assert found.grid == 4
    tensors = [value for value in found.arguments if not isinstance(value, int)]
    results = [value for value in found.after if not isinstance(value, int)]
    written = [i for i, (one, other) in enumerate(zip(tensors, results, strict=True)) if one.tobytes() != other.tobytes()]
    assert [results[i].tobytes() for i in written] == [c.numpy().tobytes()]
    again = [value.copy() if not isinstance(value, int) else value for value in found.arguments]
    with sim.session(check="full"):
        _native.sim_launch(found.program.serialize(), found.kernel, again, grid=found.grid)
    assert again[[i for i, value in enumerate(found.arguments) if not isinstance(value, int)][written[0]]].tobytes() == c.numpy().tobytes()
