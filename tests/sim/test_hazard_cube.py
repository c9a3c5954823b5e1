"""Missing orders on a cube core and between it and its vector cores."""

from __future__ import annotations

import numpy as np
import pytest
from cube_harness import flags, numbers
from hazard_harness import Hazard, check_hazard, findings_of, marked, text_of

A, B = numbers("bf16", 32, 32, seed=1), numbers("bf16", 32, 32, seed=2)
ARRAYS = {"a": ("bf16", A), "b": ("bf16", B), "c": ("f32", np.zeros((2, 32, 32)))}
PLACES = """\
l1a, l1b = at("mat", pto.bf16), at("mat", pto.bf16, 65536)
la, lb, lc = at("left", pto.bf16), at("right", pto.bf16), at("acc", pto.f32)
"""
LOAD = 'pto.mte_gm_l1_frac({0}, l1{0}, "nd2nz", shape=(32, 32), src_layout=(64,), dst_group=(1, 1, 32, 0), ctrl=(0, False))'

# One product, twice. An event is used once, so that no missing order lets a flag be set twice.
ROUNDS = (
    PLACES
    + f"""\
with pto.for_(0, 2, step=1) as i:
    j = pto.cast(i, pto.i64)
    {LOAD.format("a")}  # load a
    {LOAD.format("b")}  # load b
    [MTE2-MTE1]
    pto.mte_l1_l0a(l1a, la, 32, 32)  # l0a
    pto.mte_l1_l0b(l1b, lb, 32, 32)  # l0b
    [MTE1-M]
    pto.mad(la, lb, lc, 32, 32, 32)  # mad
    [M-FIX]
    pto.mte_l0c_gm(lc, pto.addptr(c, j * 1024), 32, 32, 32, 32, 0, 0, layout="nz2nd")  # out
    [FIX-M]
    [M-MTE1]
    [MTE1-MTE2]
"""
)

# Races without the flag: two marks, hazard, memory, executions.
WITHOUT = {
    "MTE2-MTE1": {("load a", "l0a", "RAW", "L1", 1, 1), ("load b", "l0b", "RAW", "L1", 1, 1)},
    "MTE1-M": {("l0a", "mad", "RAW", "L0A", 1, 1), ("l0b", "mad", "RAW", "L0B", 1, 1)},
    "M-FIX": {("mad", "out", "RAW", "L0C", 1, 1)},
    "FIX-M": {("out", "mad", "WAR", "L0C", 1, 2)},
    "M-MTE1": {("mad", "l0a", "WAR", "L0A", 1, 2), ("mad", "l0b", "WAR", "L0B", 1, 2)},
    "MTE1-MTE2": {("l0a", "load a", "WAR", "L1", 1, 2), ("l0b", "load b", "WAR", "L1", 1, 2)},
}  # fmt: skip


def rounds(without: str) -> str:
    lines = []
    for line in ROUNDS.splitlines():
        pair = line.strip()[1:-1]
        if not line.strip().startswith("["):
            lines.append(line)
        elif pair != without:
            lines += [f'    pto.{verb}_flag("{pair.split("-")[0]}", "{pair.split("-")[1]}", event_id=j)' for verb in ("set", "wait")]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("policy", ["late", "eager", "random:3"])
@pytest.mark.parametrize("without", WITHOUT)
def test_each_flag_of_a_product(without: str, policy: str) -> None:
    text = text_of(rounds(without), ARRAYS, "cube")
    findings, _ = findings_of(text, ARRAYS, policy)
    source, target = without.split("-")
    lines = {marked(text, mark): mark for mark in ("load a", "load b", "l0a", "l0b", "mad", "out")}
    found = set()
    for f in findings:
        if f.kind != "race":
            continue
        # Without the flag back, two writes of one pipe in two rounds are not ordered either.
        if f.first.pipe == f.second.pipe:
            assert f.hazard == "WAW"
            continue
        assert f.missing == f"no {source}->{target} flag, token or barrier between them"
        assert (f.first.pipe, f.second.pipe) == (source, target)
        found.add((lines[f.first.line], lines[f.second.line], f.hazard, f.memory, f.first.execution, f.second.execution))
    expected = WITHOUT[without]
    if policy.startswith("random"):  # which round is found first depends on it
        found, expected = ({finding[:4] for finding in some} for some in (found, expected))
    assert found == expected


def test_a_product_with_all_flags_is_clean() -> None:
    results = []
    for policy in ("late", "eager", "random:3"):
        findings, found = findings_of(text_of(rounds("none"), ARRAYS, "cube"), ARRAYS, policy)
        assert findings == ()
        results.append(found["c"])
    assert all((result == results[0]).all() for result in results)


def once(after: str, store: str = 'pto.mte_l0c_gm(lc, c, 32, 32, 32, 32, 0, 0, layout="nz2nd")') -> str:
    """A product up to the mad (mark 1), then ``after`` and the store (mark 2)."""
    return (
        PLACES + "\n".join(LOAD.format(x) for x in "ab") + "\n" + flags("MTE2-MTE1")
        + "pto.mte_l1_l0a(l1a, la, 32, 32)\npto.mte_l1_l0b(l1b, lb, 32, 32)\n" + flags("MTE1-M") + after + store + "  # 2\n"
    )  # fmt: skip


CLEAR = 'pto.mte_l0c_gm(lc, c, 32, 32, 32, 32, 0, 0, layout="nz2nd"{})'
CUBE = {
    "unit flags": Hazard(
        once(
            '-pto.mad(la, lb, lc, 32, 32, 32)  # 1\n+pto.mad(la, lb, lc, 32, 32, 32, unit_flag="check_and_set")\n'
            f"+{CLEAR.format(', unit_flag=' + repr('check_and_clear'))}\n-",
            CLEAR.format(""),
        ),
        "RAW", ("M", "FIX"), "no M->FIX flag, token or barrier between them", memory="L0C", bytes=(0, 4096), kind="cube", arrays=ARRAYS,
    ),
    "parameters of the store": Hazard(
        PLACES + LOAD.format("a") + "\n" + LOAD.format("b") + "\n" + flags("MTE2-MTE1")
        + "pto.mte_l1_l0a(l1a, la, 32, 32)\npto.mte_l1_l0b(l1b, lb, 32, 32)\n" + flags("MTE1-M") + "pto.mad(la, lb, lc, 32, 32, 32)\n"
        + flags("M-FIX", "MTE2-FIX") + """\
fb = at("scaling", pto.f32)
pto.mte_l1_fb(at("mat", pto.ui8), fb, 2, nburst=(1, 0, 0))  # 1
+pto.pipe_barrier("FIX")
pto.mte_l0c_gm(lc, c, 32, 32, 32, 32, 0, 0, layout="nz2nd", pre_relu=("vector_relu", fb, None))  # 2
""",
        "RAW", ("FIX", "FIX"), 'no pipe_barrier("FIX") between them, and commands of this pipe may overlap',
        memory="FB", bytes=(0, 128), kind="cube", arrays=ARRAYS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CUBE)
def test_the_end_of_a_product(name: str) -> None:
    check_hazard(CUBE[name])


# -- between the cores of a block --------------------------------------------------------------------------------------


def sections(cube: str, vector: str) -> str:
    def inside(text: str) -> str:
        return "".join(f"{line[0]}    {line[1:]}\n" if line[0] in "+-" else f"    {line}\n" for line in text.splitlines())

    return "with pto.section('cube'):\n" + inside(cube) + "with pto.section('vector'):\n" + inside(vector)


HANDED = """\
pto.set_intra_block("FIX", 0)
pto.set_intra_block("FIX", 16)
"""

MIXED = {
    "L0C to UB, then vector": Hazard(
        sections(
            once("pto.mad(la, lb, lc, 32, 32, 32)\n" + flags("M-FIX"), 'pto.mte_l0c_ub(lc, at("ub", pto.f32), 32, 32, 32, 32, split="M")')
            .replace("# 2", "# 1") + HANDED,
            """\
-pto.wait_intra_block("MTE2", 0)
+pto.wait_intra_block("V", 0)
with pto.vecscope():
    m = pto.pset_b32("ALL")
    v = pto.vlds(at("ub", pto.f32), 0)  # 2
    pto.vsts(v, at("ub", pto.f32, 65536), 0, m)
""",
        ),
        "RAW", ("FIX", "V"), "no flag from FIX of AIC to V of AIV0 between them", cores=("AIC", "AIV0"), kind=None, arrays=ARRAYS,
    ),
    "UB is free again": Hazard(
        sections(
            once(f'pto.mad(la, lb, lc, 32, 32, 32)\n{flags("M-FIX")}+pto.wait_intra_block("FIX", 1)\n+pto.wait_intra_block("FIX", 17)\n',
                 'pto.mte_l0c_ub(lc, at("ub", pto.f32), 32, 32, 32, 32, split="M")'),
            """\
with pto.vecscope():
    m = pto.pset_b32("ALL")
    pto.vsts(pto.vdup(pto.const(2.0, dtype=pto.f32), m), at("ub", pto.f32), 0, m)  # 1
+pto.set_intra_block("V", 1)
""",
        ),
        "WAW", ("V", "FIX"), "no flag from V of AIV0 to FIX of AIC between them", cores=("AIV0", "AIC"), kind=None, arrays=ARRAYS,
    ),
    "UB to L1, then L0A": Hazard(
        sections(
            PLACES + """\
-pto.wait_intra_block("MTE2", 2)
-pto.wait_intra_block("MTE2", 18)
+pto.wait_intra_block("MTE1", 2)
+pto.wait_intra_block("MTE1", 18)
pto.mte_l1_l0a(l1a, la, 8, 16)  # 2
""",
            """\
s = pto.get_subblock_idx()
u = at("ub", pto.bf16)
with pto.vecscope():
    m = pto.pset_b16("ALL")
    pto.vsts(pto.vdup(pto.const(2.0, dtype=pto.bf16), m), u, 0, m)
pto.set_flag("V", "MTE3")
pto.wait_flag("V", "MTE3")
with pto.if_(pto.cmp(s, 0, "eq")) as br:
    with br.then_:
        pto.mte_ub_l1(u, at("mat", pto.bf16), 8, nburst=(1, 0, 0))  # 1
pto.set_intra_block("MTE3", 2)
""",
        ),
        "RAW", ("MTE3", "MTE1"), "no flag from MTE3 of AIV0 to MTE1 of AIC between them", memory="L1", cores=("AIV0", "AIC"), kind=None,
        arrays=ARRAYS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
def test_between_the_cores_of_a_block(name: str) -> None:
    check_hazard(MIXED[name])
