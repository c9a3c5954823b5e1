"""Races between the threads of a SIMT function, in UB and in GM."""

from __future__ import annotations

import numpy as np
import pytest
from hazard_harness import findings_of, launch, marked, text_of, variant

from tilelang_pto.sim import session

ARRAYS = {"x": ("i32", np.arange(64)), "y": ("i32", np.zeros(64))}
HEAD = 'u = at("ub", pto.i32)\npto.mte_gm_ub(x, u, 0, 256, nburst=(1, 256, 256))\npto.set_flag("MTE2", "V")\npto.wait_flag("MTE2", "V")\n'
MISSING = "no syncthreads between them, and not both are atomic"


def text(lines: str, repaired: bool = False) -> str:
    body = []
    for line in lines.strip().splitlines():
        sign = line[0] if line[0] in "+-" else ""
        body.append(f"{sign}    {line.removeprefix(sign)}")
    scope = "with pto.simt(64, 1, 1):\n    t = pto.get_tid_x()\n"
    return text_of(variant(HEAD + scope + "\n".join(body) + "\n", repaired), ARRAYS, "vector")


# Lines, hazard, whether each place writes, threads
RACES = {
    "write and read": ("""
pto.store(t, {p}, t)  # 1
+pto.syncthreads()
pto.store(pto.load({p}, (t + 1) & 63), {q}, t)  # 2
""", {"RAW", "WAR"}),
    "read and write": ("""
v = pto.load({p}, (t + 1) & 63)  # 1
+pto.syncthreads()
pto.store(v, {p}, t)  # 2
""", {"RAW", "WAR"}),
    "different values to one place": ("""
-pto.store(t, {p}, t >> 1)  # 1 # 2
+pto.store(t >> 1, {p}, t >> 1)
""", {"WAW"}),
    "an atomic and a plain write": ("""
pto.atomic_add({p}, 1)  # 1
-pto.store(5, {p}, 0)  # 2
+pto.atomic_add({p}, t)
""", {"WAW"}),
    "an atomic and a plain read": ("""
pto.atomic_add({p}, 1)  # 1
+pto.syncthreads()
pto.store(pto.load({p}, t & 1), {q}, t)  # 2
""", {"RAW", "WAR"}),
    "neighbours in a word": ("""
+pto.syncthreads()
pto.store(t, {p}, t)  # 1
-pto.store(t, {p}, (t + 1) & 63)  # 2
""", {"WAW"}),
}  # fmt: skip


@pytest.mark.parametrize("space", ["UB", "GM"])
@pytest.mark.parametrize("name", RACES)
def test_threads_that_race(name: str, space: str) -> None:
    lines, hazards = RACES[name]
    lines = lines.replace("{p}", "u" if space == "UB" else "y").replace("{q}", "pto.addptr(u, 64)" if space == "UB" else "x")
    racy = text(lines)
    findings, _ = findings_of(racy, ARRAYS)
    assert findings
    for f in findings:
        assert (f.kind, f.memory) == ("race", space)
        assert f.tensor == (None if space == "UB" else "y")
        assert f.hazard in hazards
        assert {f.first.line, f.second.line} == {marked(racy, "1"), marked(racy, "2")}
        assert f.first.thread is not None and f.second.thread is not None and f.first.thread != f.second.thread
        assert f.missing == MISSING
        assert f"thread {f.first.thread}" in f.message and f"thread {f.second.thread}" in f.message
        assert 0 <= f.begin < f.end <= 256
    findings, _ = findings_of(text(lines, True), ARRAYS)
    assert [f.message for f in findings] == []


@pytest.mark.parametrize("space", ["u", "y"])
def test_equal_values_do_not_race(space: str) -> None:
    findings, found = findings_of(text(f"pto.store(7, {space}, t >> 3)"), ARRAYS)
    assert findings == ()
    assert space == "u" or (found["y"][:8] == 7).all()


def test_a_place_is_written_and_read_by_its_own_thread() -> None:
    findings, found = findings_of(text("pto.store(t, y, t)\npto.store(pto.load(y, t) + 1, y, t)"), ARRAYS)
    assert findings == ()
    assert (found["y"] == np.arange(64) + 1).all()


def test_the_order_among_functions() -> None:
    """Nothing of one SIMT function runs at the same time as the next one."""
    body = (
        text("pto.store(t, u, t)")
        + "    with pto.simt(64, 1, 1):\n        t = pto.get_tid_x()\n        pto.store(pto.load(u, 63 - t), y, t)\n"
    )
    findings, found = findings_of(body, ARRAYS)
    assert findings == ()
    assert (found["y"] == 63 - np.arange(64)).all()


def test_atomics_of_many_threads_are_counted() -> None:
    with session(check="full"):
        assert launch(text("pto.atomic_add(y, t)"), ARRAYS)["y"][0] == 63 * 32


# Lines over a warp or all 64 threads, and whether threads race.
FENCED = {
    "write and read in a warp": ("pto.store(t, {p}, t)\n{fence}\npto.store(pto.load({p}, t ^ 1), {q}, t)", False),
    "write and read in different warps": ("pto.store(t, {p}, t)\n{fence}\npto.store(pto.load({p}, 63 - t), {q}, t)", True),
    "read and write in a warp": ("v = pto.load({p}, t ^ 1)\n{fence}\npto.store(v, {p}, t)", False),
    "read and write in different warps": ("v = pto.load({p}, 63 - t)\n{fence}\npto.store(v, {p}, t)", True),
    "readers of two warps, a writer of one": (
        "v = pto.load({p}, t & 31)\n{fence}\nwith pto.if_(t < 32) as br:\n    with br.then_:\n        pto.store(v, {p}, t)", True,
    ),
    "two writers in a warp": ("pto.store(t, {p}, t)\n{fence}\npto.store(t, {p}, t ^ 3)", False),
    "an atomic and a read in a warp": (
        "pto.atomic_add(pto.addptr({p}, t >> 5), 1)\n{fence}\npto.store(pto.load({p}, t >> 5), {q}, t)", False,
    ),
    "half a warp reaches the fence": (
        "pto.store(t, {p}, t)\nwith pto.if_((t & 1) < 1) as br:\n    with br.then_:\n        {fence}\n"
        "pto.store(pto.load({p}, t ^ 1), {q}, t)", True,
    ),
    "fences in a loop": (
        "with pto.for_(0, 3, step=1) as i:\n    {fence}\n    v = pto.load({p}, t ^ 1)\n    {fence}\n    pto.store(v + 1, {p}, t)", False,
    ),
    "one fence in a loop": (
        "with pto.for_(0, 3, step=1) as i:\n    {fence}\n    v = pto.load({p}, t ^ 1)\n    pto.store(v + 1, {p}, t)", True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("fence", ["threadfence", "threadfence_block"])
@pytest.mark.parametrize("space", ["UB", "GM"])
@pytest.mark.parametrize("name", FENCED)
def test_a_fence_orders_the_threads_of_a_warp(name: str, space: str, fence: str) -> None:
    lines, races = FENCED[name]
    names = {"p": "u", "q": "pto.addptr(u, 64)"} if space == "UB" else {"p": "y", "q": "x"}
    findings, _ = findings_of(text(lines.format(**names, fence=f"pto.{fence}()")), ARRAYS)
    assert bool(findings) == races
    unfenced, _ = findings_of(text(lines.format(**names, fence="pass")), ARRAYS)
    assert unfenced
