"""The mutation score: every synchronisation is a mutant, the check reports those that matter, and an argument of its own agrees with it."""

from __future__ import annotations

import pytest
from command_trace import trace_block
from mutation_launches import LOAD, PIPELINE, STORE, launch
from mutation_score import Score, findings_of, row, score_launch
from redundancy import judge
from sync_mutants import mutants, without

VECSCOPE = """
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
"""


def traces(made, accesses=True):
    return [trace_block(made.program, made.kernel, made.arguments, made.grid, block, accesses=accesses) for block in range(made.grid)]


def labels(entries):
    return [mutant.label for mutant, _ in entries]


def test_a_pipeline_has_pairs_and_channels():
    made = launch(PIPELINE)
    found = [mutant.label.split(",")[0] for mutant in mutants(made.program, "k", traces(made, accesses=False))]
    # Forward flags have one pair each; flags back meet in three pairs: from before the loop, within it, after it.
    back = ["flag MTE3->V", "flag V->MTE2"] * 3
    assert sorted(found) == sorted(["flag MTE2->V", "flag V->MTE3", *back, "channel of flags V->MTE2", "channel of flags MTE3->V"])


def test_all_mutants_of_a_pipeline_are_found():
    score = score_launch("pipeline", launch(PIPELINE))
    assert score.findings == [] and score.redundant == [] and score.unexplained == []
    assert score.total == score.needed == 10
    assert score.killed["race"] >= 2
    assert "100.0 %" in row(score)


def test_too_few_rounds_leave_the_way_back_unused():
    """With as many rounds as versions nothing is used twice: the flags back protect nothing, and that is what is said."""
    score = score_launch("two rounds", launch(PIPELINE, n=2))
    assert not score.unexplained
    assert sorted(label.split(",")[0] for label in labels(score.redundant)) == ["flag MTE3->V"] * 2 + ["flag V->MTE2"] * 2
    assert all(reason.startswith("protects nothing") for _, reason in score.redundant)


def test_the_argument_agrees_with_the_check():
    """What the check calls a race, the argument calls needed, although neither knows of the other."""
    made = launch(PIPELINE)
    blocks = traces(made)
    races = 0
    for mutant in mutants(made.program, "k", blocks):
        if findings_of(made, without(made.program, "k", mutant))[0].kind == "race":
            races += 1
            assert not judge(mutant, blocks).redundant, mutant.label
    assert races


@pytest.mark.parametrize(
    ("body", "label", "reason"),
    [
        (LOAD + '    pto.pipe_barrier("V")\n', "pipe barrier V", "protects nothing"),
        (LOAD + '    pto.pipe_barrier("ALL")\n', "pipe barrier ALL", "protects nothing"),
        (
            LOAD + '    pto.set_flag("MTE2", "V", event_id=1)\n    pto.wait_flag("MTE2", "V", event_id=1)\n',
            "flag MTE2->V",
            "ordered by set_flag",
        ),
    ],
    ids=["barrier of a pipe in order", "barrier of all", "a second flag"],
)
def test_redundant_synchronisation_is_shown_to_be(body, label, reason):
    body += VECSCOPE + "        pto.vsts(pto.vlds(a, 0, pto.vreg_type(64, pto.f32)), b, 0, m)\n"
    score = score_launch("redundant", launch(body))
    assert not score.findings and not score.unexplained
    found = [text for mutant, text in score.redundant if mutant.label.startswith(label)]
    assert found and all(reason in text for text in found)


def test_a_barrier_between_overlapping_transfers_is_needed():
    body = "    pto.mte_gm_ub(X, a, 0, 2048, nburst=(1, 2048, 2048))\n"
    body += '    pto.pipe_barrier("MTE2")\n    pto.mte_gm_ub(X, a, 0, 256, nburst=(1, 256, 256))\n'
    score = score_launch("barrier", launch(body))
    assert score.killed == {"race": 1} and not score.findings


FROM_A, FROM_B = "pto.vlds(a, {}, pto.vreg_type(64, pto.f32))", "pto.vlds(b, {}, pto.vreg_type(64, pto.f32))"
COPY = f"pto.vsts({FROM_A.format(0)}, b, 0, m)"


@pytest.mark.parametrize(
    ("lines", "redundant"),
    [
        ([COPY, 'pto.mem_bar("VST_VLD")', f"pto.vsts({FROM_B.format(0)}, a, 64, m)"], ""),
        ([COPY, 'pto.mem_bar("VST_VLD")', f"pto.vsts({FROM_A.format(64)}, b, 64, m)"], "protects nothing"),
        ([f"x = {FROM_A.format(0)}", 'pto.mem_bar("VLD_VST")', "pto.vsts(x, a, 0, m)"], "ordered by registers"),
        ([COPY, 'pto.mem_bar("VST_VLD")', 'pto.mem_bar("VV_ALL")', f"x = {FROM_B.format(0)}"], "ordered by another mem_bar"),
    ],
    ids=["needed", "other bytes", "through registers", "two barriers"],
)
def test_mem_bar(lines, redundant):
    body = LOAD + VECSCOPE + "".join(f"        {line}\n" for line in lines)
    score = score_launch("mem_bar", launch(body))
    assert not score.findings and not score.unexplained
    bars = [(mutant, reason) for mutant, reason in score.redundant if mutant.kind == "mem_bar"]
    if redundant:
        assert bars and all(redundant in reason for _, reason in bars)
    else:
        assert not bars and score.killed["race"] == 2  # the flag and the mem_bar


SIMT = """
    with pto.simt(64, 1, 1):
        t = pto.get_tid_x()
        pto.store(pto.load(a, t), b, t)
        pto.syncthreads()
        pto.store(pto.load(b, {}), a, t)
"""


@pytest.mark.parametrize(("place", "needed"), [("t ^ 1", True), ("t", False)], ids=["of another thread", "of its own"])
def test_syncthreads(place, needed):
    score = score_launch("simt", launch(LOAD + SIMT.format(place)))
    assert not score.findings and not score.unexplained
    assert [mutant.kind for mutant, _ in score.redundant] == ([] if needed else ["syncthreads"])


TOKENS = """
    pto.get_buf("MTE2", 3)
    pto.mte_gm_ub(X, a, 0, 256, nburst=(1, 256, 256))
    pto.rls_buf("MTE2", 3)
    pto.get_buf("V", 3)
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        pto.vsts(pto.vlds(a, 0, pto.vreg_type(64, pto.f32)), b, 0, m)
    pto.rls_buf("V", 3)
"""


def test_buffer_tokens():
    score = score_launch("tokens", launch(TOKENS))
    assert not score.findings and not score.redundant and not score.unexplained
    assert score.killed == {"race": 2}


def test_an_original_that_races_or_computes_something_else_is_reported():
    racing = launch(LOAD + VECSCOPE + "        pto.vsts(pto.vlds(a, 0, pto.vreg_type(64, pto.f32)), b, 0, m)\n" + STORE)
    assert findings_of(racing, racing.program, same_result=True)[0].kind == "uninitialised"  # of b only 256 bytes were written
    changed = launch(PIPELINE)
    changed.after[1][5] ^= 1
    assert [found.kind for found in findings_of(changed, changed.program, same_result=True)] == ["wrong result"]


def test_an_unexplained_survivor_lowers_the_score():
    score = Score("made up", [], killed=score_launch("pipeline", launch(PIPELINE)).killed)
    made = launch(PIPELINE)
    score.unexplained.append((mutants(made.program, "k", traces(made, accesses=False))[0], "no longer ordered"))
    assert score.needed == 11 and "90.9 %" in row(score)


def test_removal_leaves_the_program_as_it_was():
    made = launch(PIPELINE)
    before = made.program.serialize()
    for mutant in mutants(made.program, "k", traces(made, accesses=False)):
        rest = without(made.program, "k", mutant)
        gone = set(map(id, made.program.function("k").walk())) - {id(op) for op in rest.function("k").walk() if not op.regions}
        assert {id(op) for op in mutant.removed} <= gone
        assert rest.serialize() != before
    assert made.program.serialize() == before


def test_what_the_original_has_does_not_count_for_a_mutant():
    """All is read before it is written; a barrier more or less makes no difference to that."""
    body = '    pto.pipe_barrier("MTE3")\n    pto.mte_ub_gm(b, Y, 256, nburst=(1, 256, 256))\n'
    score = score_launch("unwritten", launch(body))
    assert [found.kind for found in score.findings] == ["uninitialised"]
    assert not score.killed and [mutant.kind for mutant, _ in score.redundant] == ["pipe barrier"]
