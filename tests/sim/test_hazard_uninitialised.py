"""Reads of memory that nothing has written, where bytes leave the core or become scalars.

Vector functions read whole registers and tiles and use a part of them, so what they read is not reported.
"""

from __future__ import annotations

import pytest
from hazard_harness import VECTOR, findings_of, launch, marked, text_of

from tilelang_pto.sim import session

SLOTS = 'a, b = at("ub", pto.f32), at("ub", pto.f32, 4096)\n'
SOME = """\
pto.mte_gm_ub(x, a, 0, 128, nburst=(1, 128, 128))
pto.pipe_barrier("ALL")
"""
VECTOR_LOAD = """\
with pto.vecscope():
    m = pto.pset_b32("ALL")
    v = pto.vlds({0}, 0)  # 1
    pto.vsts(v, b, 0, m)
"""
COPY_OUT = "pto.mte_ub_gm({0}, y, 256, nburst=(1, 256, 256))  # 1\n"
PARTLY = "not all of them have been written"

# Body, pipe, bytes, what is said
READS = {
    "copy out": (SLOTS + COPY_OUT.format("a"), "MTE3", (0, 256), PARTLY),
    "copy out of partly written bytes": (SLOTS + SOME + COPY_OUT.format("a"), "MTE3", (0, 256), PARTLY),
    "scalar load": (SLOTS + SOME + "pto.store(pto.load(a, 32), y, 0)  # 1\n", "S", (128, 132), PARTLY),
    "the rest of a padded row": (
        SLOTS + 'pto.mte_gm_ub(x, a, 0, 4, nburst=(8, 4, 32))\npto.pipe_barrier("ALL")\n' + COPY_OUT.format("a"), "MTE3", (0, 256), PARTLY,
    ),
}  # fmt: skip


@pytest.mark.parametrize("level", ["full", "bounds"])
@pytest.mark.parametrize("name", READS)
def test_reads_of_what_nothing_has_written(name: str, level: str) -> None:
    body, pipe, extent, message = READS[name]
    text = text_of(body, VECTOR, "vector")
    with session(check=level, race="report") as s:
        launch(text, VECTOR)
    (f,) = s.report.kernels[0].findings
    assert (f.kind, f.hazard, f.memory, (f.begin, f.end)) == ("uninitialised", None, "UB", extent), f.message
    assert (f.first.line, f.first.pipe, f.first.access) == (marked(text, "1"), pipe, "read")
    assert f.message == f"{extent[1] - extent[0]} bytes of UB from byte {extent[0]} on are read, and {message}"
    assert f.missing == "nothing has written them before"


CLEAN = {
    "a vector load of a register that is partly written": SLOTS + SOME + VECTOR_LOAD.format("a"),
    "a vector load": SLOTS + VECTOR_LOAD.format("a"),
    "a vector load behind the end": SLOTS + SOME + VECTOR_LOAD.format("pto.addptr(a, 32)"),
    "a scalar load in a vector function": SLOTS
    + 'with pto.vecscope():\n    m = pto.pset_b32("ALL")\n    s = pto.load(a, 1)\n    pto.vsts(pto.vdup(s, m), b, 0, m)\n',
    "threads": SLOTS + SOME + "with pto.simt(64, 1, 1):\n    t = pto.get_tid_x()\n    pto.store(pto.load(a, t), y, t)\n",
    "a copy out of what a copy in wrote": SLOTS + SOME + "pto.mte_ub_gm(a, y, 128, nburst=(1, 128, 128))\n",
    "a row padded with a value": (
        SLOTS + 'pto.mte_gm_ub(x, a, 0, 4, nburst=(8, 4, 32), pad=(pto.f32(1.0),))\npto.pipe_barrier("ALL")\n' + COPY_OUT.format("a")
    ),
    "a scalar store": SLOTS + 'pto.store(1.0, a, 5)\npto.pipe_barrier("ALL")\npto.store(pto.load(a, 5), y, 0)\n',
    "threads that read what they wrote": SLOTS
    + "with pto.simt(64, 1, 1):\n    t = pto.get_tid_x()\n    pto.store(t, pto.castptr(pto.const(0, "
    'dtype=pto.i64), pto.ptr(pto.i32, "ub")), t)\n    pto.store(pto.load(a, t), y, t)\n',
}


@pytest.mark.parametrize("name", CLEAN)
def test_what_has_been_written(name: str) -> None:
    findings, _ = findings_of(text_of(CLEAN[name], VECTOR, "vector"), VECTOR)
    assert [f.message for f in findings] == []


def test_memory_is_forgotten_between_blocks_and_launches() -> None:
    """The first block writes, the second one reads at the same place of its own UB."""
    body = SLOTS + 'with pto.if_(pto.cmp(pto.get_block_idx(), 0, "eq")) as br:\n    with br.then_:\n        ' + SOME.splitlines()[0]
    text = text_of(body + '\npto.pipe_barrier("ALL")\n' + COPY_OUT.format("a").replace("y,", "pto.addptr(y, pto.get_block_idx() * 64),")
                   .replace("256", "128"), VECTOR, "vector")  # fmt: skip
    findings, _ = findings_of(text, VECTOR, grid=2, host_threads=1)
    (f,) = findings
    assert (f.kind, f.first.block, f.count) == ("uninitialised", 1, 1)
