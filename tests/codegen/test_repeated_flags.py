"""Pipelined loops inside other loops: a round may not set its first flags before the last waits of the round before it are over."""

from __future__ import annotations

import numpy as np
import pytest
from tir_builder import access, block, op, pointer, sequence, vector_kernel
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run, session

SURFACES = ("2026-08", "2026-09")
ROUNDS, TILES, WIDTH = 3, 4, 64
BARRIER = 'pto.pipe_barrier("ALL")'


def call(name, *arguments):
    return tirx.Evaluate(op(f"tl.ascend_{name}", "handle", *arguments))


def flag(verb, event, number=0):
    return call(f"{verb}_flag", event, number)


def pair(event, number=0):
    return sequence(flag("set", event, number), flag("wait", event, number))


def loop(name, extent, body, kind=tirx.ForKind.SERIAL):
    variable = tirx.Var(name, "int32")
    return tirx.For(variable, 0, extent, kind, body(variable))


def kernel(*, before=(), after=(), around=lambda tile, body: body, kind=tirx.ForKind.SERIAL):
    """``out = in`` tile by tile through two buffers, the pipeline started and drained in each round.

    Args:
        before, after: statements at the start and at the end of a round.
        around: puts the round of a tile into another statement.
        kind: of the outer loop.
    """
    given, out = pointer("given", "float32"), pointer("out", "float32")
    ub = tirx.decl_buffer((2 * WIDTH,), "float32", name="ub", scope="shared.dyn")

    def copy(tile, i):
        buffer = access(ub.data, "float32", i % 2 * WIDTH, WIDTH)
        place = (tile * TILES + i) * WIDTH
        return sequence(
            flag("wait", "MTE3_MTE2", i % 2),
            call("copy_gm_to_ubuf", buffer, access(given, "float32", place, WIDTH), 0, 1, 256, 0, 0, 0, 0, 256, 256),
            flag("set", "MTE2_MTE3", i % 2),
            flag("wait", "MTE2_MTE3", i % 2),
            call("copy_ubuf_to_gm", access(out, "float32", place, WIDTH), buffer, 0, 1, 256, 4, 256, 256),
            flag("set", "MTE3_MTE2", i % 2),
        )

    def round_(tile):
        flags = [[flag(verb, "MTE3_MTE2", number) for number in (0, 1)] for verb in ("set", "wait")]
        body = sequence(*before, *flags[0], loop("i", TILES, lambda i: copy(tile, i)), *flags[1], *after)
        return around(tile, body)

    rounds = loop("tile", ROUNDS, round_, kind)
    return vector_kernel("k", [given, out], lambda _: sequence(tirx.AllocBuffer(ub), rounds))


def text_of(mod, surface):
    text = emit_module(mod, surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    return text


def findings(text, policy):
    given, out = np.arange(ROUNDS * TILES * WIDTH, dtype=np.float32), np.zeros(ROUNDS * TILES * WIDTH, np.float32)
    with session(check="full", race="report", policy=policy) as s:
        run(text, "k", given, out)
    return s.report.kernels[-1].findings, np.array_equal(given, out)


def guarded(tile, body):
    return tirx.IfThenElse(tile < ROUNDS - 1, body, body)


AHEAD = {
    "a plain loop": {},
    "an unrolled loop": {"kind": tirx.ForKind.UNROLLED},
    "a round that a condition guards": {"around": guarded},
    "a block of the vector core in the loop": {"around": lambda tile, body: block("VECTOR", body)},
    "an order the other way round": {"after": [pair("MTE3_MTE2", 5)]},
    "a wait for a flag that was set before": {"before": [flag("set", "MTE2_MTE3", 5)], "after": [flag("wait", "MTE2_MTE3", 5)]},
}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("case", AHEAD)
def test_a_barrier_ends_the_round(case, surface):
    text = text_of(kernel(**AHEAD[case]), surface)
    assert text.count(BARRIER) == 1
    for policy in ("late", "eager", "random:1", "random:2", "random:3"):
        assert findings(text, policy) == ((), True)


@pytest.mark.parametrize("surface", SURFACES)
def test_without_the_barrier_a_flag_may_be_set_twice(surface):
    text = text_of(kernel(), surface)
    found, _ = findings(text.replace(BARRIER, "pass"), "late")
    assert [(one.kind, one.memory, one.missing) for one in found] == [
        ("flag", f"MTE3->MTE2 {number}", "no MTE2->MTE3 flag, token or barrier between them") for number in (0, 1)
    ]
    assert all((one.first.op, one.second.op, one.second.execution) == ("wait_flag", "set_flag", 2) for one in found)


def one_branch_in_order(ordered_case):
    """A round whose condition chooses between two pipelines; only one of them ends with a barrier."""

    def around(tile, body):
        cases = [body, body]
        cases[ordered_case] = sequence(body, call("pipe_barrier", "PIPE_ALL"))
        return tirx.IfThenElse(tile % 2 == 0, *cases)

    return around


def nested_branches(tile, body):
    inner = tirx.IfThenElse(tile < 2, sequence(body, call("pipe_barrier", "PIPE_ALL")), body)
    return tirx.IfThenElse(tile % 3 < 2, inner, sequence(body, call("pipe_barrier", "PIPE_ALL")))


# How a round is put into branches, how many barriers its own text has
BRANCHES = {
    "only the first is in order": (one_branch_in_order(0), 1),
    "only the second is in order": (one_branch_in_order(1), 1),
    "a branch in a branch": (nested_branches, 2),
    "a barrier that need not be reached": (
        lambda tile, body: sequence(body, tirx.IfThenElse(tile > 1, call("pipe_barrier", "PIPE_ALL"), None)),
        1,
    ),
}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("case", BRANCHES)
def test_every_branch_has_to_be_in_order(case, surface):
    around, given = BRANCHES[case]
    text = text_of(kernel(around=around), surface)
    assert text.count(BARRIER) == given + 1
    for policy in ("late", "random:1"):
        assert findings(text, policy) == ((), True)


@pytest.mark.parametrize("surface", SURFACES)
def test_branches_that_are_all_in_order_get_no_barrier(surface):
    def around(tile, body):
        ordered = sequence(body, call("pipe_barrier", "PIPE_ALL"))
        return tirx.IfThenElse(tile % 2 == 0, ordered, ordered)

    text = text_of(kernel(around=around), surface)
    assert text.count(BARRIER) == 2
    assert findings(text, "late") == ((), True)


ORDERED = {
    "a flag the other way": {"after": [pair("MTE2_MTE3", 5)]},
    "a flag the other way at the start": {"before": [pair("MTE2_MTE3", 5)]},
    "a flag over two rounds": {"after": [flag("set", "MTE2_MTE3", 5)], "before": [flag("wait", "MTE2_MTE3", 5)]},
    "by a third pipe": {"after": [pair("MTE2_V", 0), pair("V_MTE3", 0)]},
    "the scalar unit waits": {"after": [pair("MTE2_S", 0)]},
    "a barrier of all pipes": {"after": [call("pipe_barrier", "PIPE_ALL")]},
}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("case", ORDERED)
def test_what_is_in_order_already_gets_no_barrier(case, surface):
    text = text_of(kernel(**ORDERED[case]), surface)
    assert text.count(BARRIER) == ("barrier" in case)
    if case != "a flag over two rounds":  # its first wait has no set
        assert findings(text, "late") == ((), True)


def test_flags_that_hand_data_over_need_no_barrier():
    """Sets and waits in turn, the buffer guarded by flags that live across the rounds."""
    given, out = pointer("given", "float32"), pointer("out", "float32")
    ub = tirx.decl_buffer((WIDTH,), "float32", name="ub", scope="shared.dyn")

    def round_(tile):
        buffer, place = access(ub.data, "float32", 0, WIDTH), tile * WIDTH
        return sequence(
            flag("wait", "MTE3_MTE2"),
            call("copy_gm_to_ubuf", buffer, access(given, "float32", place, WIDTH), 0, 1, 256, 0, 0, 0, 0, 256, 256),
            pair("MTE2_MTE3"),
            call("copy_ubuf_to_gm", access(out, "float32", place, WIDTH), buffer, 0, 1, 256, 4, 256, 256),
            flag("set", "MTE3_MTE2"),
        )

    body = [tirx.AllocBuffer(ub), flag("set", "MTE3_MTE2"), loop("tile", ROUNDS * TILES, round_), flag("wait", "MTE3_MTE2")]
    text = text_of(vector_kernel("k", [given, out], lambda _: sequence(*body)), "2026-09")
    assert BARRIER not in text
    assert findings(text, "late") == ((), True)
