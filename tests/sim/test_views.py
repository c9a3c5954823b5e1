"""Accesses that leave the buffer their pointer comes from, and values that a buffer loses to another one on the same bytes."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from hazard_harness import VECTOR, findings_of, launch, marked, text_of

from tilelang_pto.errors import FindingError
from tilelang_pto.sim import record_module, session

WAIT = 'pto.pipe_barrier("ALL")\n'
TWO = """\
# UB view a: 64 float32, bytes 256 to 511
# UB view b: 64 float32, bytes 512 to 767
# UB view c: 3 float32, bytes 768 to 779
a = at("ub", pto.f32, 256)  # UB view a
b = at("ub", pto.f32, 512)  # UB view b
c = at("ub", pto.f32, 768)  # UB view c
pto.mte_gm_ub(x, a, 0, 256, nburst=(1, 256, 256))
pto.mte_gm_ub(x, b, 0, 256, nburst=(1, 256, 256))
pto.mte_gm_ub(x, c, 0, 12, nburst=(1, 12, 12))
pto.pipe_barrier("ALL")
"""


def vector(*lines: str) -> str:
    head = ["with pto.vecscope():", '    m = pto.pset_b32("ALL")', '    few = pto.pset_b32("VL8")']
    return "\n".join([*head, *(f"    {line}" for line in lines)]) + "\n"


def threads(*lines: str, count: int = 64) -> str:
    return "\n".join([f"with pto.simt({count}, 1, 1):", "    t = pto.get_tid_x()", *(f"    {line}" for line in lines)]) + "\n"


# Body, view whose bytes are left, first byte and the one behind the last, of the access, the views they lie in
BEYOND = {
    "vector store behind the end": (vector("pto.vsts(pto.vlds(a, 0), a, 64, m)  # 1"), "a", (512, 768), "write", "b"),
    "vector store across the end": (vector("pto.vsts(pto.vlds(a, 0), a, 8, m)  # 1"), "a", (512, 544), "write", "b"),
    "vector store in front": (vector("pto.vsts(pto.vlds(a, 0), b, -64, m)  # 1"), "b", (256, 512), "write", "a"),
    "masked vector store": (vector("pto.vsts(pto.vlds(a, 0), a, 64, few)  # 1"), "a", (512, 544), "write", "b"),
    "vector load behind the end": (vector("pto.vsts(pto.vlds(a, 64), b, 0, m)  # 1"), "a", (512, 513), "read", "b"),
    "vector load in front": (vector("pto.vsts(pto.vlds(b, -64), b, 0, m)  # 1"), "b", (256, 257), "read", "a"),
    "gather": (vector("pto.vsts(pto.vgather2(a, pto.vbr(pto.i32(64)), m), b, 0, m)  # 1"), "a", (512, 516), "read", "b"),
    "a loop with one round too many": (
        vector("with pto.for_(0, 9, step=1) as i:", "    pto.vsts(pto.vbr(pto.f32(1.0)), a, i * 8, few)  # 1"),
        "a", (512, 544), "write", "b",
    ),
    "copy in": ("pto.mte_gm_ub(x, a, 0, 512, nburst=(1, 512, 512))  # 1\n", "a", (512, 768), "write", "b"),
    "row of a copy in": ("pto.mte_gm_ub(x, a, 0, 128, nburst=(3, 128, 128))  # 1\n", "a", (512, 640), "write", "b"),
    "copy out": ("pto.mte_ub_gm(pto.addptr(b, -32), y, 256, nburst=(1, 256, 256))  # 1\n", "b", (384, 512), "read", "a"),
    "source of a copy inside UB": ("pto.mte_ub_ub(pto.addptr(b, -8), c, 1, nburst=(1, 0, 0))  # 1\n", "b", (480, 512), "read", "a"),
    "destination of a copy inside UB": ("pto.mte_ub_ub(b, pto.addptr(a, 64), 2, nburst=(1, 0, 0))  # 1\n", "a", (512, 576), "write", "b"),
    "scalar store": ("pto.store(1.0, a, 64)  # 1\n", "a", (512, 516), "write", "b"),
    "scalar load": ("pto.store(pto.load(a, -1), y, 0)  # 1\n", "a", (252, 256), "read", ""),
    "threads that store": (threads("pto.store(1.0, a, t)  # 1", count=80), "a", (512, 576), "write", "b"),
    "threads that load": (threads("pto.store(pto.load(b, t - 16), y, t)  # 1"), "b", (448, 512), "read", "a"),
    "pointer to other elements": (
        vector('pto.vsts(pto.vbr(pto.i32(1)), pto.castptr(a, pto.ptr(pto.i32, "ub")), 64, m)  # 1'), "a", (512, 768), "write", "b",
    ),
    "pointer that moves on": (
        'with pto.for_(0, 2, step=1).carry(p=a) as loop:\n    pto.store(1.0, loop.p, 0)  # 1\n    loop.update(p=pto.addptr(loop.p, 64))\n',
        "a", (512, 516), "write", "b",
    ),
}  # fmt: skip


def body_of(case: str) -> str:
    return TWO + BEYOND[case][0] + WAIT


@pytest.mark.parametrize("level", ["full", "bounds"])
@pytest.mark.parametrize("case", BEYOND)
def test_accesses_outside_of_their_buffer(case: str, level: str) -> None:
    _, view, extent, access, others = BEYOND[case]
    text = text_of(body_of(case), VECTOR, "vector")
    with session(check=level, race="report") as s:
        launch(text, VECTOR)
    (f,) = [f for f in s.report.kernels[0].findings if f.kind != "uninitialised"]
    assert (f.kind, f.memory, (f.begin, f.end), f.views) == ("bounds", "UB", extent, others), f.message
    place = f.first
    assert place is not None and (place.line, place.access) == (marked(text, "1"), access)
    limits = {"a": "256 to 511", "b": "512 to 767"}[view]
    assert f.message == (f"the {access} by {place.op} (line {place.line}) through view {view} of UB goes outside of its bytes {limits}")


@pytest.mark.parametrize("case", BEYOND)
def test_the_same_text_without_places_knows_the_memory_only(case: str) -> None:
    text = "\n".join(line.split("# UB view")[0] for line in text_of(body_of(case), VECTOR, "vector").splitlines())
    assert [f.kind for f in findings_of(text, VECTOR)[0] if f.kind != "uninitialised"] == []


INSIDE = {
    "all of a buffer": vector("pto.vsts(pto.vlds(a, 0), b, 0, m)"),
    "vector load that reaches beyond": vector("pto.vsts(pto.vlds(a, 56), b, 56, few)"),
    "vector load of a short buffer": vector("pto.vsts(pto.vlds(c, 0), b, 0, few)"),
    "last block of a short buffer": vector("pto.vsts(pto.vlds(a, 0), c, 0, few)"),
    "copy in that fills the last block": "pto.mte_gm_ub(x, c, 0, 4, nburst=(1, 4, 4))\n",
    "no rows": "pto.mte_gm_ub(x, pto.addptr(a, 64), 0, 128, nburst=(0, 128, 128))\n",
    "inactive lanes": vector("pto.vsts(pto.vlds(a, 0), a, 56, few)"),
    "idle threads": threads("with pto.if_(t < 64) as br:", "    with br.then_:", "        pto.store(1.0, a, t)", count=80),
    "pointer that may be of either": (
        "with pto.if_(pto.get_block_idx() == 0) as br:\n    with br.then_:\n        br.assign(p=a)\n"
        "    with br.else_:\n        br.assign(p=b)\n"
        "pto.store(1.0, br.p, 64)\n"
    ),
    "pointer without a view": 'pto.store(1.0, at("ub", pto.f32, 1024), 0)\n',
}  # fmt: skip


@pytest.mark.parametrize("case", INSIDE)
def test_accesses_inside(case: str) -> None:
    findings, _ = findings_of(text_of(TWO + INSIDE[case] + WAIT, VECTOR, "vector"), VECTOR)
    assert [f.message for f in findings if f.kind != "uninitialised"] == []


OVERLAP = """\
# UB view a: 64 float32, bytes 0 to 255
# UB view b: 64 float32, bytes 128 to 383
# UB view out: 64 float32, bytes 512 to 767
a = at("ub", pto.f32)  # UB view a
b = at("ub", pto.f32, 128)  # UB view b
out = at("ub", pto.f32, 512)  # UB view out
"""
FILL_A = "pto.mte_gm_ub(x, a, 0, 256, nburst=(1, 256, 256))\n" + WAIT
FILL_B = "pto.mte_gm_ub(x, b, 0, 256, nburst=(1, 256, 256))  # 1\n" + WAIT
READ_A = vector("pto.vsts(pto.vlds(a, 32), out, 0, m)  # 2") + WAIT
SEND_A = "pto.mte_ub_gm(a, y, 256, nburst=(1, 256, 256))  # 2\n" + WAIT
SEND_B = "pto.mte_ub_gm(b, y, 256, nburst=(1, 256, 256))\n" + WAIT

# Body, bytes
LOST = {
    "vector load": (FILL_A + FILL_B + READ_A, (128, 129)),
    "copy out": (FILL_A + FILL_B + SEND_A, (128, 256)),
    "threads": (FILL_A + FILL_B + threads("pto.store(pto.load(a, t), y, t)  # 2") + WAIT, (128, 256)),
    "vector store": (
        FILL_A + vector("pto.vsts(pto.vbr(pto.f32(1.0)), b, 0, few)  # 1") + WAIT + SEND_A, (128, 160),
    ),
    "third buffer in between": (
        "# UB view d: 8 float32, bytes 128 to 159\n" + FILL_A
        + 'pto.mte_gm_ub(x, at("ub", pto.f32, 128), 0, 32, nburst=(1, 32, 32))  # UB view d\n' + WAIT + FILL_B + READ_A, (128, 129),
    ),
    "after it was read": (FILL_A + SEND_A.replace("  # 2", "") + FILL_B + SEND_A, (128, 256)),
}  # fmt: skip


@pytest.mark.parametrize("level", ["full", "bounds"])
@pytest.mark.parametrize("case", LOST)
def test_values_lost_to_an_overlapping_buffer(case: str, level: str) -> None:
    body, extent = LOST[case]
    text = text_of(OVERLAP + body, VECTOR, "vector")
    with session(check=level, race="report") as s:
        launch(text, VECTOR)
    (f,) = s.report.kernels[0].findings
    assert (f.kind, f.memory, (f.begin, f.end)) == ("overlap", "UB", extent), f.message
    assert f.first is not None and f.second is not None
    assert (f.first.line, f.first.access) == (marked(text, "1"), "write")
    assert (f.second.line, f.second.access) == (marked(text, "2"), "read")
    assert f.message == (
        f"views a and b of UB overlap: what a held is read by {f.second.op} (line {f.second.line}) "
        f"after it was overwritten through b by {f.first.op} (line {f.first.line})"
    )
    with session(check=level, race="report") as s:
        launch(text, VECTOR)
    with pytest.raises(FindingError, match="views a and b of UB overlap"):
        s.report.raise_if_findings()


KEPT = {
    "one after the other": FILL_A + SEND_A + FILL_B + SEND_B + FILL_A + SEND_A,
    "other bytes": FILL_A + FILL_B + "pto.mte_ub_gm(a, y, 128, nburst=(1, 128, 128))\n" + WAIT,
    "filled again": FILL_A + FILL_B + FILL_A + SEND_A,
    "filled again in part": FILL_A + FILL_B + "pto.mte_gm_ub(x, a, 0, 64, nburst=(1, 64, 64))\n" + WAIT + READ_A,
    "filled again with nothing": FILL_A + FILL_B + "pto.mte_gm_ub(x, a, 0, 64, nburst=(0, 64, 64))\n" + WAIT + READ_A,
    "never filled": FILL_B + READ_A,
    "vector load that reaches beyond": FILL_A + FILL_B + vector("pto.vsts(pto.vlds(a, 24), out, 0, few)") + WAIT,
    "rounds of a loop": "with pto.for_(0, 3, step=1) as i:\n" + textwrap.indent(FILL_A + SEND_A + FILL_B + SEND_B, "    "),
    "blocks": FILL_A + SEND_A,
}


@pytest.mark.parametrize("case", KEPT)
def test_buffers_that_take_turns(case: str) -> None:
    findings, _ = findings_of(text_of(OVERLAP + KEPT[case], VECTOR, "vector"), VECTOR, grid=2)
    assert [f.message for f in findings if f.memory != "GM"] == []


EITHER = (
    "with pto.if_(pto.get_block_idx() == 0) as br:\n    with br.then_:\n        br.assign(p=a)\n"
    "    with br.else_:\n        br.assign(p=b)\n"
)
UNKNOWN = {"of either": "br.p", "of no view": 'at("ub", pto.f32)'}
REFILLS = {
    "copy in": "pto.mte_gm_ub(x, POINTER, 0, 256, nburst=(1, 256, 256))\n",
    "copy in of a part": "pto.mte_gm_ub(x, POINTER, 0, 32, nburst=(1, 32, 32))\n",
    "vector store": vector("pto.vsts(pto.vbr(pto.f32(1.0)), POINTER, 0, m)"),
    "scatter": vector("pto.vscatter(pto.vbr(pto.f32(1.0)), POINTER, pto.vci(pto.i32(0)), m)"),
    "threads": threads("pto.store(1.0, POINTER, t)"),
    "scalar store": "pto.store(1.0, POINTER, 0)\n",
}


@pytest.mark.parametrize("pointer", UNKNOWN)
@pytest.mark.parametrize("case", REFILLS)
def test_pointers_that_may_be_into_any_buffer_fill_it(case: str, pointer: str) -> None:
    body = OVERLAP + EITHER + FILL_A + FILL_B + REFILLS[case].replace("POINTER", UNKNOWN[pointer]) + WAIT + SEND_A
    findings, _ = findings_of(text_of(body, VECTOR, "vector"), VECTOR)
    assert [f.message for f in findings] == []


FILLS_NOTHING = {
    "a loop without rounds": "with pto.for_(0, pto.get_block_idx(), step=1) as i:\n    pto.vsts(pto.vbr(pto.f32(1.0)), a, 0, m)",
    "a mask without lanes": "none, _ = pto.plt_b32(pto.i32(0))\npto.vsts(pto.vbr(pto.f32(1.0)), a, 0, none)",
}


@pytest.mark.parametrize("case", FILLS_NOTHING)
def test_a_vector_function_that_fills_a_buffer_with_nothing(case: str) -> None:
    body = OVERLAP + FILL_A + FILL_B + vector(*FILLS_NOTHING[case].splitlines()) + WAIT + SEND_A
    findings, _ = findings_of(text_of(body, VECTOR, "vector"), VECTOR)
    assert [f.message for f in findings] == []


IN_PLACE = {
    "vector function": vector("pto.vsts(pto.vlds(a, 32), a, 32, m)  # 2").replace("m)  # 2", "few)  # 2"),
    "threads": threads("pto.store(pto.load(a, t + 32), a, t + 32)  # 2", count=32),
    "copy": "pto.mte_ub_ub(pto.addptr(a, 32), a, 1, nburst=(4, 0, 0))  # 2\n",
}


@pytest.mark.parametrize("case", IN_PLACE)
def test_what_is_lost_is_found_by_who_writes_it_anew_from_there(case: str) -> None:
    text = text_of(OVERLAP + FILL_A + FILL_B + IN_PLACE[case] + WAIT, VECTOR, "vector")
    found = [f for f in findings_of(text, VECTOR)[0] if f.kind == "overlap"]
    assert [(f.first.line, f.second.line) for f in found if f.first and f.second] == [(marked(text, "1"), marked(text, "2"))]


CUBE = """\
# L1 view a: 256 bfloat16, bytes 0 to 511
# L1 view b: 256 bfloat16, bytes 512 to 1023
# L0A view la: bytes 0 to 511
# L0B view lb: bytes 0 to 511
# L0C view c: 256 float32, bytes 0 to 1023
a = at("mat", pto.bf16)  # L1 view a
b = at("mat", pto.bf16, 512)  # L1 view b
la = at("left", pto.bf16)  # L0A view la
lb = at("right", pto.bf16)  # L0B view lb
c = at("acc", pto.f32)  # L0C view c
pto.mte_gm_l1(x, a, 512, nburst=(1, 512, 512))
pto.mte_gm_l1(x, b, 512, nburst=(1, 512, 512))
pto.pipe_barrier("ALL")
pto.mte_l1_l0a(a, la, 16, 16)
pto.mte_l1_l0b(b, lb, 16, 16)
pto.pipe_barrier("ALL")
pto.mad(la, lb, c, 16, 16, 16)
pto.pipe_barrier("ALL")
"""
MATRICES = {"x": ("bf16", np.ones(1024)), "y": ("f32", np.zeros(1024))}

OTHER_MEMORIES = {
    "L1": ("pto.mte_gm_l1(x, a, 1024, nburst=(1, 1024, 1024))  # 1\n", "a of L1", "0 to 511", (512, 1024)),
    "L0A": ('pto.mte_l1_l0a(at("mat", pto.bf16), la, 16, 32)  # 1\n', "la of L0A", "0 to 511", (512, 1024)),
    "L0C": ("pto.mad(at('left', pto.bf16), at('right', pto.bf16), c, 16, 32, 16)  # 1\n", "c of L0C", "0 to 1023", (1024, 2048)),
}


@pytest.mark.parametrize("memory", OTHER_MEMORIES)
def test_buffers_of_a_cube_core(memory: str) -> None:
    line, view, limits, extent = OTHER_MEMORIES[memory]
    filled = 'pto.mte_gm_l1(x, at("mat", pto.bf16), 2048, nburst=(1, 2048, 2048))\npto.pipe_barrier("ALL")\n'
    filled += 'pto.mte_l1_l0b(at("mat", pto.bf16), at("right", pto.bf16), 16, 32)\npto.pipe_barrier("ALL")\n'
    text = text_of(CUBE + filled + line + WAIT, MATRICES, "cube")
    (f,) = [f for f in findings_of(text, MATRICES)[0] if f.kind == "bounds"]
    assert (f.memory, (f.begin, f.end)) == (memory, extent)
    assert f.first is not None and f.first.line == marked(text, "1")
    assert f"through view {view} goes outside of its bytes {limits}" in f.message


def test_a_gemm_inside_its_buffers() -> None:
    text = text_of(CUBE + "pto.mte_l0c_gm(c, y, 16, 16, 16, 16, 0, 0)\n", MATRICES, "cube")
    assert [f.message for f in findings_of(text, MATRICES)[0]] == []


def test_races_name_the_buffers() -> None:
    body = TWO.replace('pto.pipe_barrier("ALL")\n', "") + vector("pto.vsts(pto.vlds(a, 0), b, 0, m)")
    races = [f for f in findings_of(text_of(body, VECTOR, "vector"), VECTOR)[0] if f.kind == "race"]
    assert {f.views for f in races} == {"a", "b"}
    read = next(f for f in races if f.views == "a")
    assert read.range_label == "UB (view a) bytes 256 to 511"
    assert read.message.startswith("RAW race on UB (a) bytes 256 to 511: ")


def test_helpers_that_make_pointers() -> None:
    """The line that calls them names the view."""
    text = text_of(TWO, VECTOR, "vector")
    casts = [operation for operation in record_module(text).function("k").walk() if operation.opcode == "castptr"]
    assert [operation.attributes for operation in casts] == [
        {"view": "a", "begin": 256, "end": 512},
        {"view": "b", "begin": 512, "end": 768},
        {"view": "c", "begin": 768, "end": 780},
    ]
