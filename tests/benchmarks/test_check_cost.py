"""The measurement of what checks cost: its loops are clean and do what their names say, and the table has a row for each."""

from __future__ import annotations

import check_cost
import cost_loops
import numpy as np
import pytest

import tilelang_pto.sim as sim
from tilelang_pto import _native


@pytest.mark.parametrize("loop", cost_loops.LOOPS, ids=lambda loop: loop.name)
def test_loops_are_clean_under_every_mode(loop):
    subject = check_cost.Subject(loop.name, loop.program(1e-6).serialize(), "k", loop.arguments())
    for mode in check_cost.MODES.values():
        assert check_cost.seconds(subject, mode) > 0


def test_a_loop_with_a_race_is_refused():
    body = cost_loops.SCATTER.replace("{index}", cost_loops.IN_ORDER).replace('pto.mem_bar("VST_VST")', "")
    loop = cost_loops.Loop("stores without an order", body, 1)
    subject = check_cost.Subject(loop.name, loop.program().serialize(), "k", loop.arguments())
    with pytest.raises(AssertionError, match="stores without an order is not clean"):
        check_cost.seconds(subject, check_cost.MODES["full"])


def test_table(capsys):
    check_cost.main(["--group", "loops", "--only", "atomics", "--repeat", "1", "--scale", "0.001"])
    rows = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("| atomics")]
    assert rows == [loop.name for loop in cost_loops.LOOPS if loop.name.startswith("atomics")]


def test_results_do_not_depend_on_the_check():
    results = []
    for mode in check_cost.MODES.values():
        loop = next(loop for loop in cost_loops.LOOPS if loop.name == "atomics in GM, places 148 bytes apart")
        x, n = loop.arguments()
        with sim.session(race="report", **mode):
            _native.sim_launch(loop.program(0.01).serialize(), "k", [x, n], grid=2, host_threads=1)
        results.append(x)
    assert results[0].sum() > results[0].size
    assert all(np.array_equal(results[0], other) for other in results[1:])
