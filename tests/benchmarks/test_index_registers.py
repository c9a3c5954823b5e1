"""Integer registers that the trace of a vector function knows, against the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from command_trace import trace_block
from mutation_launches import LOAD, launch

HEAD = """
    to = pto.castptr(pto.const(65536, dtype=pto.i64), pto.ptr(pto.i32, "ub"))
    with pto.vecscope():
        all = pto.pset_b32("PAT_ALL")
        some = pto.pset_b32("PAT_VL8")
        i = pto.vci(pto.const(0, dtype=pto.i32))
"""
MASKS = {
    "all": ("all", np.ones(64, bool)),
    "first": ("some", np.arange(64) < 8),
    "compared": ('pto.vcmps(i, pto.const(5, dtype=pto.i32), all, "ge")', np.arange(64) >= 5),
    "of those": ('pto.vcmp(i, pto.vdup(pto.const(2, dtype=pto.i32), all), some, "ne")', (np.arange(64) < 8) & (np.arange(64) != 2)),
}
LANES = np.arange(64)
INDICES = {
    "lanes": ("i", LANES),
    "descending": ('pto.vci(pto.const(63, dtype=pto.i32), order="DESC")', LANES[::-1]),
    "every third": ("pto.vmuls(i, pto.const(3, dtype=pto.i32), all)", LANES * 3),
    "columns": (
        "pto.vadd(pto.vshls(pto.vshrs(i, pto.const(2, dtype=pto.i16), all), pto.const(4, dtype=pto.i16), all),"
        " pto.vand(i, pto.vdup(pto.const(3, dtype=pto.i32), all), all), all)",
        LANES // 4 * 16 + LANES % 4,
    ),
    "chosen": ("pto.vsel(pto.vadds(i, pto.const(200, dtype=pto.i32), all), i, some)", LANES + 200 * (LANES < 8)),
    "of active lanes": (
        "pto.vadd(i, pto.vadds(i, pto.const(100, dtype=pto.i32), some), all)",
        LANES + (LANES + 100) * (LANES < 8),
    ),
}


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("mask", MASKS)
def test_places_of_a_scatter(index, mask):
    (index_text, places), (mask_text, active) = INDICES[index], MASKS[mask]
    body = f"{HEAD}        pto.vscatter(i, to, pto.vbitcast({index_text}, pto.ui32), {mask_text})\n"
    body += 4 * " " + 'pto.set_flag("V", "MTE3", event_id=0)\n    pto.wait_flag("V", "MTE3", event_id=0)\n'
    made = launch(body)
    (function,) = [event for event in trace_block(made.program, "k", made.arguments, 1, 0)["AIV"] if event.steps]
    (step,) = function.steps
    begins, lanes, size = step.lanes
    assert size == 4
    np.testing.assert_array_equal(lanes, np.flatnonzero(active))
    np.testing.assert_array_equal(begins, 65536 + 4 * places[active])
    assert (step.access.begin, step.access.end) == (begins.min(), begins.max() + 4)


def test_the_simulator_writes_the_same_places():
    """The scatter of every index and mask, as the engine executes it."""
    for index_text, places in INDICES.values():
        for mask_text, active in MASKS.values():
            body = (
                LOAD
                + f"""
    with pto.vecscope():
        all = pto.pset_b32("PAT_ALL")
        some = pto.pset_b32("PAT_VL8")
        i = pto.vci(pto.const(0, dtype=pto.i32))
        for at in range(8):
            pto.vsts(pto.vdup(pto.const(0.0, dtype=pto.f32), all), b, at * 64, all)
        pto.mem_bar("VST_VST")
        pto.vscatter(pto.vdup(pto.const(1.0, dtype=pto.f32), all), b, pto.vbitcast({index_text}, pto.ui32), {mask_text})
    pto.set_flag("V", "MTE3", event_id=0)
    pto.wait_flag("V", "MTE3", event_id=0)
    pto.mte_ub_gm(b, Y, 2048, nburst=(1, 2048, 2048))
"""
            )
            written = np.flatnonzero(launch(body).after[1].view(np.float32))
            np.testing.assert_array_equal(written, np.unique(places[active]))


@pytest.mark.parametrize(
    "index",
    ["pto.vlds(to, 0, pto.vreg_type(64, pto.i32))", "pto.vadd(i, pto.vlds(to, 0, pto.vreg_type(64, pto.i32)), all)"],
)
def test_what_comes_from_memory_is_not_known(index):
    body = f"{HEAD}        pto.vsts(i, to, 0, all)\n        pto.mem_bar('VST_VLD')\n        pto.mem_bar('VST_VST')\n"
    body += f"        pto.vscatter(i, to, pto.vbitcast({index}, pto.ui32), some)\n"
    made = launch(body)
    (function,) = [event for event in trace_block(made.program, "k", made.arguments, 1, 0)["AIV"] if event.steps]
    assert function.steps[-1].lanes is None
    assert function.steps[-1].access.end > 1 << 60
