"""Races in GM: between blocks, with and without flags among them, and inside a block."""

from __future__ import annotations

import numpy as np
import pytest
from engine_harness import serialized
from hazard_harness import POLICIES, VECTOR, Hazard, check_hazard, findings_of, marked, text_of, variant

from tilelang_pto import _native
from tilelang_pto.sim import session

FILLED = """\
a, b = at("ub", pto.f32), at("ub", pto.f32, 256)
block = pto.get_block_idx()
with pto.vecscope():
    m = pto.pset_b32("ALL")
    pto.vsts(pto.vdup(pto.cast(block, pto.f32), m), a, 0, m)
pto.set_flag("V", "MTE3")
pto.wait_flag("V", "MTE3")
"""
OWN = "pto.addptr(y, block * 64)"
NEXT = "pto.addptr(y, ((block + 1) & 3) * 64)"


def out(target: str) -> str:
    return f"pto.mte_ub_gm(a, {target}, 256, nburst=(1, 256, 256))"


def back(source: str) -> str:
    return f"pto.mte_gm_ub({source}, b, 0, 256, nburst=(1, 256, 256))"


BARRIER = 'pto.set_cross_block("MTE3", 1)\npto.wait_cross_block("MTE3", 1)\n'

# Body, hazards, pipes of the two places
BLOCKS = {
    "two write one place": (FILLED + f"-{out('y')}  # 1 # 2\n+{out(OWN)}\n", {"WAW"}),
    "one reads what another one writes": (
        FILLED + f"{out(OWN)}  # 1\n" + "".join(f"+{line}\n" for line in BARRIER.splitlines()) + f"{back(NEXT)}  # 2\n", {"RAW", "WAR"},
    ),
    "the barrier comes too late": (
        FILLED + f"{out(OWN)}  # 1\n" + "".join(f"+{line}\n" for line in BARRIER.splitlines()) + f"{back(NEXT)}  # 2\n"
        + "".join(f"-{line}\n" for line in BARRIER.splitlines()), {"RAW", "WAR"},
    ),
    "the flag is set by a pipe that did not write": (
        FILLED + f'{out(OWN)}  # 1\n-pto.set_cross_block("V", 1)\n+pto.set_cross_block("MTE3", 1)\n'
        f'pto.wait_cross_block("MTE3", 1)\n{back(NEXT)}  # 2\n',
        {"RAW", "WAR"},
    ),
    "atomic and plain": (
        FILLED + f"""\
pto.set_atomic_f32()
pto.set_atomic_add()
with pto.if_(pto.cmp(block, 3, "lt")) as br:
    with br.then_:
        {out("y")}  # 1
pto.set_atomic_none()
with pto.if_(pto.cmp(block, 3, "eq")) as br:
    with br.then_:
-        {out("y")}  # 2
+        {out("pto.addptr(y, 64)")}
""", {"WAW"},
    ),
    "scalar stores": (FILLED + "-pto.store(1.0, y, 9)  # 1 # 2\n+pto.store(1.0, y, 9 + block)\n", {"WAW"}),
    "a partial overlap": (FILLED + f"-{out('pto.addptr(y, block * 62)')}  # 1 # 2\n+{out(OWN)}\n", {"WAW"}),
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str, threads: int) -> None:
    body, hazards = BLOCKS[name]
    racy = text_of(variant(body, False), VECTOR, "vector")
    for policy in POLICIES[:2]:
        findings, _ = findings_of(racy, VECTOR, policy, grid=4, host_threads=threads)
        races = [f for f in findings if f.kind == "race"]
        assert races
        for f in races:
            assert (f.memory, f.tensor) == ("GM", "y")
            assert f.hazard in hazards
            assert {f.first.line, f.second.line} == {marked(racy, "1"), marked(racy, "2")}
            assert f.first.block < f.second.block
            assert f.missing == f"nothing orders block {f.first.block} and block {f.second.block} here"
            assert f"block {f.first.block}" in f.message and f"block {f.second.block}" in f.message
        findings, _ = findings_of(text_of(variant(body, True), VECTOR, "vector"), VECTOR, policy, grid=4, host_threads=threads)
        assert [f.message for f in findings] == []


def test_the_bytes_of_a_partial_overlap() -> None:
    findings, _ = findings_of(text_of(variant(BLOCKS["a partial overlap"][0], False), VECTOR, "vector"), VECTOR, grid=4)
    (f,) = findings
    assert (f.begin, f.end) == (62 * 4, 256)
    assert (f.first.block, f.second.block, f.count) == (0, 1, 3)


def test_atomic_additions_of_all_blocks_are_clean() -> None:
    body = FILLED + f"pto.set_atomic_f32()\npto.set_atomic_add()\n{out('y')}\npto.set_atomic_none()\n"
    findings, found = findings_of(text_of(body, VECTOR, "vector"), VECTOR, grid=4)
    assert findings == ()
    assert (found["y"][:64] == 0 + 1 + 2 + 3).all()


def test_a_barrier_orders_what_comes_before_another_barrier() -> None:
    """Block 0 writes, all meet twice under different flags; then another block reads."""
    body = FILLED + f"{out(OWN)}\n{BARRIER}{BARRIER.replace('1)', '2)')}{back(NEXT)}\n"
    findings, _ = findings_of(text_of(body, VECTOR, "vector"), VECTOR, grid=4)
    assert [f.message for f in findings] == []


def order(first: str, second: str) -> str:
    return f'+pto.set_flag("{first}", "{second}")\n+pto.wait_flag("{first}", "{second}")\n'


INSIDE = {
    "copied out and loaded again": Hazard(
        FILLED + f"{out('y')}  # 1\n{order('MTE3', 'MTE2')}{back('y')}  # 2\n",
        "RAW", ("MTE3", "MTE2"), "no MTE3->MTE2 order between them", memory="GM", tensor="y",
    ),
    "loaded and copied out": Hazard(
        FILLED + f"{back('y')}  # 1\n{order('MTE2', 'MTE3')}{out('y')}  # 2\n",
        "WAR", ("MTE2", "MTE3"), "no MTE2->MTE3 order between them", memory="GM", tensor="y",
    ),
    "a scalar store and a load": Hazard(
        FILLED + f"pto.store(1.0, y, 3)  # 1\n{order('S', 'MTE2')}{back('y')}  # 2\n",
        "RAW", ("S", "MTE2"), "no S->MTE2 order between them", memory="GM", tensor="y", bytes=(12, 16),
    ),
    "a copy out and a scalar load": Hazard(
        FILLED + f"{out('y')}  # 1\n{order('MTE3', 'S')}pto.store(pto.load(y, 3), x, 0)  # 2\n",
        "RAW", ("MTE3", "S"), "no MTE3->S order between them", memory="GM", tensor="y", bytes=(12, 16),
    ),
    "a scalar load and a copy out": Hazard(
        FILLED + f"pto.store(pto.load(y, 3), x, 0)  # 1\n{order('S', 'MTE3')}{out('y')}  # 2\n",
        "WAR", ("S", "MTE3"), "no S->MTE3 order between them", memory="GM", tensor="y", bytes=(12, 16),
    ),
    "threads and a load": Hazard(
        FILLED + f"with pto.simt(64, 1, 1):\n    pto.store(1.0, y, pto.get_tid_x())  # 1\n{order('V', 'MTE2')}{back('y')}  # 2\n",
        "RAW", ("V", "MTE2"), "no V->MTE2 order between them", memory="GM", tensor="y",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_inside_a_block(name: str) -> None:
    check_hazard(INSIDE[name])


def test_one_tensor_under_two_names() -> None:
    """Bytes count, not arguments."""
    text = text_of(FILLED + f"{out('x')}\n{back('y')}\n", VECTOR, "vector")
    one = np.zeros(512, np.float32)
    with session(check="full", race="report") as s:
        _native.sim_launch(serialized(text, "2026-09"), "k", [one, one])
    (f,) = s.report.kernels[0].findings
    assert (f.hazard, f.first.op, f.second.op) == ("RAW", "mte_ub_gm", "mte_gm_ub")
