"""Flags, waits and deadlocks under every policy, bounded in steps; and that an error leaves nothing behind."""

from __future__ import annotations

import numpy as np
import pytest
from hazard_harness import POLICIES, VECTOR, findings_of, launch, stopped, text_of

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import session

LOOP = "with pto.for_(0, 3, step=1) as i:\n    j = pto.cast(i, pto.i64)\n"
BRANCH = '    with pto.if_(pto.cmp(j, 1, "ne")) as br:\n        with br.then_:\n            '

# Body, and what is said under every policy. Whether a flag is set twice or is left set in the end depends on the policy.
STATES = {
    "a set in a loop, its wait missing in one round": (
        LOOP + '    pto.set_flag("MTE2", "V")\n' + BRANCH + 'pto.wait_flag("MTE2", "V")\n', "MTE2->V 0",
    ),
    "a wait in a loop, its set missing in one round": (
        LOOP + BRANCH + 'pto.set_flag("MTE2", "V")\n    pto.wait_flag("MTE2", "V")\n', "MTE2->V 0",
    ),
    "left set behind a loop": (
        LOOP + '    pto.set_flag("MTE2", "V", event_id=j)\n' + BRANCH + 'pto.wait_flag("MTE2", "V", event_id=j)\n',
        "flag left set at the end of the kernel (it leaks into the next one): MTE2->V 1",
    ),
    "another id": (
        'pto.set_flag("MTE2", "V", event_id=1)\npto.wait_flag("MTE2", "V", event_id=2)\n', "V waits for flag MTE2->V 2 (line 9)",
    ),
    "the id runs out of its range": (
        "with pto.for_(6, 10, step=1) as i:\n    j = pto.cast(i, pto.i64)\n"
        '    pto.set_flag("MTE2", "V", event_id=j)\n    pto.wait_flag("MTE2", "V", event_id=j)\n', "event id 8 is not in 0..7",
    ),
    "a negative id": (LOOP + '    pto.set_flag("MTE2", "V", event_id=j - 1)\n', "event id -1 is not in 0..7"),
    "two pipes wait for each other": (
        'pto.wait_flag("V", "MTE3")\npto.set_flag("MTE3", "V")\npto.wait_flag("MTE3", "V", event_id=1)\npto.set_flag("V", "MTE3")\n',
        "MTE3 waits for flag V->MTE3 0 (line 8), 1 commands behind it",
    ),
    "an endless loop": ("with pto.for_(0, 1 << 40, step=1) as i:\n    pto.store(1.0, y, 0)\n", "step limit"),
    "an endless loop of commands": (
        'with pto.for_(0, 1 << 40, step=1) as i:\n    pto.mte_gm_ub(x, at("ub", pto.f32), 0, 256, nburst=(1, 256, 256))\n'
        '    pto.pipe_barrier("MTE2")\n', "step limit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", STATES)
def test_what_stops_a_launch(name: str, policy: str) -> None:
    body, message = STATES[name]
    error = stopped(body, VECTOR, policy=policy, max_steps=50_000)
    assert message in error.what
    assert error.where[0] == "kernel k"


def test_flags_out_of_step_under_the_eager_policy() -> None:
    names = ("a set in a loop, its wait missing in one round", "a wait in a loop, its set missing in one round")
    messages = [stopped(STATES[name][0], VECTOR, policy="eager").what for name in names]
    assert messages == ["flag MTE2->V 0 is set again before any wait for it", "deadlock: V waits for flag MTE2->V 0 (line 13)"]


ROUNDS = """\
with pto.for_(0, 3, step=1) as i:
    pto.set_flag("{0}", "{1}")
    pto.wait_flag("{0}", "{1}")
"""
BACK = '    pto.set_flag("{1}", "{0}")\n    pto.wait_flag("{1}", "{0}")\n'


def flags_of_rounds(body: str, source: str, destination: str):
    text = text_of(body.format(source, destination), VECTOR, "vector")
    try:
        return findings_of(text, VECTOR, "eager")[0]
    except SimulationError as error:
        return error.what


@pytest.mark.parametrize(("source", "destination"), [("MTE2", "V"), ("V", "MTE3"), ("MTE3", "MTE2"), ("S", "MTE3"), ("S", "V")])
def test_a_flag_that_may_be_set_again_before_its_wait(source: str, destination: str) -> None:
    """Although each set is executed after the wait before it; a flag the other way tells the source that the wait is over."""
    found = flags_of_rounds(ROUNDS, source, destination)
    assert [(one.kind, one.memory) for one in found] == [("flag", f"{source}->{destination} 0")]
    assert found[0].missing == f"no {destination}->{source} flag, token or barrier between them"
    assert flags_of_rounds(ROUNDS + BACK, source, destination) == ()


def test_the_scalar_unit_issues_a_set_behind_its_own_wait() -> None:
    assert flags_of_rounds(ROUNDS, "V", "S") == ()


def test_every_waiting_pipe_is_part_of_the_wait_graph() -> None:
    body = """\
pto.wait_flag("MTE3", "MTE2")
pto.mte_gm_ub(x, at("ub", pto.f32), 0, 256, nburst=(1, 256, 256))
pto.set_flag("MTE2", "V")
pto.wait_flag("MTE2", "V")
pto.set_flag("V", "MTE3", event_id=4)
pto.wait_flag("V", "MTE3", event_id=4)
pto.set_flag("MTE3", "MTE2")
pto.get_buf("V", 9)
pto.rls_buf("V", 9)
pto.get_buf("S", 9)
pto.rls_buf("S", 9)
"""
    error = stopped(body, VECTOR)
    assert error.what == (
        "deadlock: S waits for the releases of buffer 9 (line 17); V waits for flag MTE2->V 0 (line 11), 3 commands behind it; "
        "MTE2 waits for flag MTE3->MTE2 0 (line 8), 2 commands behind it; MTE3 waits for flag V->MTE3 4 (line 13), 1 commands behind it"
    )


COPY = """\
a = at("ub", pto.f32)
pto.mte_gm_ub(x, a, 0, 256, nburst=(1, 256, 256))
pto.set_flag("MTE2", "MTE3")
pto.wait_flag("MTE2", "MTE3")
pto.mte_ub_gm(a, y, 256, nburst=(1, 256, 256))
"""

FAILURES = {
    "a flag left set": 'pto.set_flag("MTE2", "MTE3")\n',
    "a deadlock with commands in the queues": 'pto.wait_flag("MTE2", "MTE3")\n' + COPY.splitlines()[0] + "\n" + COPY.splitlines()[4] + "\n",
    "out of bounds": "pto.store(1.0, y, 1 << 20)\n",
    "a token that is held": 'pto.get_buf("MTE2", 0)\n',
    "a race": COPY.replace('pto.wait_flag("MTE2", "MTE3")\n', "").replace('pto.set_flag("MTE2", "MTE3")\n', ""),
    "an atomic mode": "pto.set_atomic_f32()\npto.set_atomic_add()\npto.store(1.0, y, 1 << 20)\n",
}


@pytest.mark.parametrize("policy", POLICIES[:2])
@pytest.mark.parametrize("name", FAILURES)
def test_a_launch_after_an_error_knows_nothing_of_it(name: str, policy: str) -> None:
    bad, good = text_of(FAILURES[name], VECTOR, "vector"), text_of(COPY, VECTOR, "vector")
    for _ in range(2):
        with session(check="full", policy=policy) as s, pytest.raises(SimulationError):
            launch(bad, VECTOR, host_threads=1)
        findings, found = findings_of(good, VECTOR, policy, host_threads=1)
        assert findings == ()
        assert (found["y"][:64] == np.arange(1, 65)).all()
        assert [kernel.kernel for kernel in s.report.kernels] == ["k"]  # the one that failed


def test_sessions_end_with_the_error() -> None:
    bad = text_of(FAILURES["a race"], VECTOR, "vector")
    with session(check="off") as outer:
        with pytest.raises(SimulationError), session(check="full"), session(check="full"):
            launch(bad, VECTOR)
        launch(bad, VECTOR)  # is not checked any more
    assert [kernel.findings for kernel in outer.report.kernels] == [()]


def test_findings_before_an_error_are_kept() -> None:
    body = FAILURES["a race"] + 'pto.pipe_barrier("ALL")\npto.store(1.0, y, 1 << 20)\n'
    with session(check="full", race="report") as s, pytest.raises(SimulationError, match="tensor y"):
        launch(text_of(body, VECTOR, "vector"), VECTOR)
    (kernel,) = s.report.kernels
    assert "tensor y" in kernel.error
    assert [f.hazard for f in kernel.findings if f.kind == "race"] == ["RAW"]
