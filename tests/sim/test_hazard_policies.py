"""Policies: a missing wait gives wrong data, a correct kernel always the same bits, and a finding is the same on every host."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hazard_harness import VECTOR, findings_of, text_of

TILES = 8
# Double buffering over a loop, all flags in place; `wait` is the one that a test takes away.
PIPELINE = f"""\
block = pto.get_block_idx()
pto.set_flag("V", "MTE2", event_id=0)
pto.set_flag("V", "MTE2", event_id=1)
pto.set_flag("MTE3", "V", event_id=0)
pto.set_flag("MTE3", "V", event_id=1)
with pto.for_(0, {TILES}, step=1) as i:
    j = pto.cast(i, pto.i64)
    u, w = pto.addptr(at("ub", pto.f32), (j & 1) * 64), pto.addptr(at("ub", pto.f32, 1024), (j & 1) * 64)
    here = (block * {TILES} + j) * 64
    pto.wait_flag("V", "MTE2", event_id=j & 1)
    pto.mte_gm_ub(pto.addptr(x, here), u, 0, 256, nburst=(1, 256, 256))
    pto.set_flag("MTE2", "V", event_id=j & 1)
    pto.wait_flag("MTE2", "V", event_id=j & 1)
    pto.wait_flag("MTE3", "V", event_id=j & 1)
    with pto.vecscope():
        m = pto.pset_b32("ALL")
        v = pto.vlds(u, 0)
        pto.vsts(pto.vadds(v, 1.0, m), w, 0, m)
    pto.set_flag("V", "MTE2", event_id=j & 1)
    pto.set_flag("V", "MTE3", event_id=j & 1)
    pto.wait_flag("V", "MTE3", event_id=j & 1)
    pto.mte_ub_gm(w, pto.addptr(y, here), 256, nburst=(1, 256, 256))
    pto.set_flag("MTE3", "V", event_id=j & 1)
pto.wait_flag("V", "MTE2", event_id=0)
pto.wait_flag("V", "MTE2", event_id=1)
pto.wait_flag("MTE3", "V", event_id=0)
pto.wait_flag("MTE3", "V", event_id=1)
"""
GRID = 5
SIZE = GRID * TILES * 64
ARRAYS = {"x": ("f32", np.random.default_rng(0).normal(size=SIZE)), "y": ("f32", np.zeros(SIZE))}
EVERY_POLICY = ("late", "eager", *(f"random:{seed}" for seed in range(20)))


def test_a_correct_kernel_gives_the_same_bits_under_every_policy() -> None:
    text = text_of(PIPELINE, ARRAYS, "vector")
    expected = ARRAYS["x"][1].astype(np.float32) + np.float32(1)
    for number, policy in enumerate(EVERY_POLICY):
        findings, found = findings_of(text, ARRAYS, policy, grid=GRID, host_threads=1 + number % 3)
        assert [f.message for f in findings] == []
        np.testing.assert_array_equal(found["y"].view(np.uint32), expected.view(np.uint32))


# Both lines of a pair go; its source and target.
PAIRS = (("MTE2", "V"), ("V", "MTE3"))


@pytest.mark.parametrize("pair", PAIRS)
def test_a_missing_flag_gives_wrong_data_when_transfers_are_late(pair: tuple[str, str]) -> None:
    """One tile: load, add, copy out, each on its own pipe."""
    lines = """\
u, w = at("ub", pto.f32), at("ub", pto.f32, 1024)
pto.mte_gm_ub(x, u, 0, 256, nburst=(1, 256, 256))
pto.set_flag("MTE2", "V")
pto.wait_flag("MTE2", "V")
with pto.vecscope():
    m = pto.pset_b32("ALL")
    v = pto.vlds(u, 0)
    pto.vsts(pto.vadds(v, 1.0, m), w, 0, m)
pto.set_flag("V", "MTE3")
pto.wait_flag("V", "MTE3")
pto.mte_ub_gm(w, y, 256, nburst=(1, 256, 256))
""".splitlines()
    gone = f'_flag("{pair[0]}", "{pair[1]}")'
    text = text_of("\n".join(line for line in lines if gone not in line) + "\n", VECTOR, "vector")
    right = VECTOR["x"][1][:64] + 1
    results = {}
    for policy in EVERY_POLICY:
        findings, found = findings_of(text, VECTOR, policy)
        (race,) = [f for f in findings if f.kind == "race"]
        assert (race.hazard, race.first.pipe, race.second.pipe) == ("RAW", *pair)
        results[policy] = bool((found["y"][:64] == right).all())
    # The effects of computation are never put off, so only a transfer that is not waited for comes too late.
    assert results["late"] == (pair[0] == "V")
    assert results["eager"]
    assert pair[0] == "V" or not all(results[policy] for policy in EVERY_POLICY[2:])


@pytest.mark.parametrize("policy", ["late", "eager", "random:5"])
@pytest.mark.parametrize("gone", [("V", "MTE2"), ("MTE3", "V"), None])
def test_findings_do_not_depend_on_host_threads(gone: tuple[str, str] | None, policy: str) -> None:
    """All of them, their counts and their order. Blocks also race with each other here."""
    body = PIPELINE.replace("here = (block * 8 + j) * 64", "here = (block * 7 + j) * 64")
    if gone:  # other events, so that no flag is set twice
        source, target = gone
        lines = [line for line in body.splitlines() if f'_flag("{source}", "{target}"' not in line]
        body = "\n".join(lines).replace("event_id=j & 1", "event_id=j") + "\n"
        kept = ("MTE3", "V") if gone == ("V", "MTE2") else ("V", "MTE2")
        body = body.replace(f'wait_flag("{kept[0]}", "{kept[1]}", event_id=j)', f'wait_flag("{kept[0]}", "{kept[1]}", event_id=j)')
        body = "\n".join(line for line in body.splitlines() if line.startswith("    ") or "event_id" not in line) + "\n"
        body = "\n".join(line for line in body.splitlines() if f'_flag("{kept[0]}", "{kept[1]}"' not in line) + "\n"
    text = text_of(body, ARRAYS, "vector")
    everything = [
        [dataclasses.asdict(f) for f in findings_of(text, ARRAYS, policy, grid=GRID, host_threads=threads)[0]] for threads in (1, 2, 3, 7)
    ]
    assert any(f["first"]["block"] != f["second"]["block"] for f in everything[0])
    assert gone is None or any(f["memory"] == "UB" for f in everything[0])
    for other in everything[1:]:
        assert other == everything[0]
