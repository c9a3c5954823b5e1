"""Buffer tokens between the pipes of a core, barriers among cores."""

from __future__ import annotations

import numpy as np
import pytest
from engine_harness import in_gm, same

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import session

HEAD = """\
u = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
b = pto.get_block_idx()
"""


def stopped(body: str, **options) -> SimulationError:
    with pytest.raises(SimulationError) as info:
        in_gm(HEAD + body, {"x": ("f32", np.arange(256)), "y": ("f32", np.zeros(256))}, {}, **options)
    return info.value


# -- buffer tokens -------------------------------------------------------------------------------------------------------


def test_one_token_orders_both_directions() -> None:
    body = (
        HEAD
        + """\
with pto.for_(0, 4, step=1) as i:
    pto.get_buf("MTE2", 3)
    pto.mte_gm_ub(pto.addptr(x, i * 64), u, 0, 256, nburst=(1, 256, 256))
    pto.rls_buf("MTE2", 3)
    pto.get_buf("V", 3)
    with pto.vecscope():
        m = pto.pset_b32("ALL")
        pto.vsts(pto.vadds(pto.vlds(u, 0), 1.0, m), u, 0, m)
    pto.rls_buf("V", 3)
    pto.get_buf("MTE3", 3)
    pto.mte_ub_gm(u, pto.addptr(y, i * 64), 256, nburst=(1, 256, 256))
    pto.rls_buf("MTE3", 3)
"""
    )
    found = in_gm(body, {"x": ("f32", np.arange(256)), "y": ("f32", np.zeros(256))}, {})["y"]
    same(found, np.arange(256) + 1)


def test_a_get_waits_for_earlier_releases_only() -> None:
    # The vector function comes first in the program but waits for a flag; the load behind it must wait for its release.
    body = (
        HEAD
        + """\
pto.mte_gm_ub(x, u, 0, 256, nburst=(1, 256, 256))
pto.set_flag("MTE2", "MTE3")
pto.wait_flag("MTE2", "MTE3")
pto.get_buf("MTE3", 1)
pto.wait_flag("V", "MTE3")
pto.mte_ub_gm(u, y, 256, nburst=(1, 256, 256))
pto.rls_buf("MTE3", 1)
pto.get_buf("MTE2", 1)
pto.mte_gm_ub(pto.addptr(x, 64), u, 0, 256, nburst=(1, 256, 256))
pto.rls_buf("MTE2", 1)
pto.set_flag("V", "MTE3")
"""
    )
    found = in_gm(body, {"x": ("f32", np.arange(256)), "y": ("f32", np.zeros(256))}, {})["y"]
    same(found[:64], np.arange(64))
    # With mode 1 the load does not wait.
    loose = body.replace('get_buf("MTE2", 1)', 'get_buf("MTE2", 1, 1)').replace('rls_buf("MTE2", 1)', 'rls_buf("MTE2", 1, 1)')
    with session(check="off"):  # so nothing orders the two loads
        found = in_gm(loose, {"x": ("f32", np.arange(256)), "y": ("f32", np.zeros(256))}, {})["y"]
    same(found[:64], np.arange(64) + 64)


def test_the_scalar_unit_takes_tokens() -> None:
    body = (
        HEAD
        + """\
pto.get_buf("MTE2", 0)
pto.mte_gm_ub(x, u, 0, 256, nburst=(1, 256, 256))
pto.rls_buf("MTE2", 0)
pto.get_buf("S", 0)
pto.store(pto.load(u, 5), y, 0)
pto.rls_buf("S", 0)
pto.get_buf("MTE2", 0)
pto.rls_buf("MTE2", 0)
"""
    )
    assert in_gm(body, {"x": ("f32", np.arange(64)), "y": ("f32", np.zeros(1))}, {})["y"][0] == 5


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('pto.get_buf("V", 1)\npto.get_buf("MTE2", 1)', "buffer 1 is taken again before its release"),
        ('pto.rls_buf("V", 1)', "buffer 1 is released without having been taken"),
        ('pto.get_buf("V", 1)\npto.rls_buf("MTE2", 1)', "taken with another pipe or mode (line 6)"),
        ('pto.get_buf("V", 1)\npto.rls_buf("V", 1, 1)', "taken with another pipe or mode"),
        ('pto.get_buf("V", 1)', "buffer 1 is not released at the end"),
        ('pto.get_buf("V", b + 32)\npto.rls_buf("V", b + 32)', "buffer id 32 is not in 0..31"),
        (
            'pto.get_buf("V", 7)\npto.wait_flag("MTE2", "V")\npto.rls_buf("V", 7)\npto.get_buf("MTE3", 7)\npto.rls_buf("MTE3", 7)',
            "MTE3 waits for the releases of buffer 7 (line 9), 1 commands behind it",
        ),
        (
            'pto.get_buf("V", 7)\npto.wait_flag("MTE2", "V")\npto.rls_buf("V", 7)\npto.get_buf("S", 7)',
            "S waits for the releases of buffer 7 (line 9)",
        ),
    ],
)
def test_misuse_of_tokens(body: str, message: str) -> None:
    error = stopped(body)
    assert message in error.what
    assert any(place.startswith("k.py:") for place in error.where)


# -- barriers among cores ------------------------------------------------------------------------------------------------

BARRIER = 'pto.set_cross_block("MTE3", 0)\npto.wait_cross_block("MTE2", 0)\n'


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("grid", [1, 5, 64])
def test_data_passes_round_the_cores(grid: int, threads: int) -> None:
    """Every core writes its row, waits for all, and reads its right neighbour's, three times."""
    body = (
        HEAD
        + f"""\
n = pto.const({grid}, dtype=pto.i64)
with pto.for_(0, 3, step=1) as i:
    pto.mte_gm_ub(pto.addptr(x, pto.rem(b + 1, n) * 8), u, 0, 32, nburst=(1, 32, 32))
    pto.set_flag("MTE2", "V")
    pto.wait_flag("MTE2", "V")
    with pto.vecscope():
        m = pto.pset_b32("VL8")
        pto.vsts(pto.vadds(pto.vlds(u, 0), 1.0, m), u, 0, m)
    pto.set_flag("V", "MTE3")
    pto.wait_flag("V", "MTE3")
    pto.set_cross_block("MTE2", 1)
    pto.wait_cross_block("MTE2", 1)
    pto.mte_ub_gm(u, pto.addptr(x, b * 8), 32, nburst=(1, 32, 32))
    pto.set_cross_block("MTE3", 2)
    pto.wait_cross_block("MTE3", 2)
"""
    )
    start = np.arange(grid * 8, dtype=np.float32).reshape(grid, 8)
    found = in_gm(body, {"x": ("f32", start.ravel())}, {}, grid=grid, host_threads=threads)["x"]
    same(found.reshape(grid, 8), np.roll(start, -3, 0) + 3)


def test_atomics_between_barriers_go_in_block_order() -> None:
    body = "b = pto.cast(pto.get_block_idx(), pto.i32)\n"
    for phase in range(3):
        body += f"with pto.simt(1, 1, 1):\n    pto.store(pto.atomic_add(m, 1), o, b + {20 * phase})\n{BARRIER}"
    for threads in (1, 2, 8):
        found = in_gm(body, {"m": ("i32", np.zeros(1)), "o": ("i32", np.zeros(60))}, {}, grid=20, host_threads=threads)
        same(found["o"], np.arange(60))


def test_a_deadlock_lists_who_waits() -> None:
    body = """\
c = pto.cast(b, pto.i32)
with pto.if_(pto.cmp(c, 2, "ne")) as br:
    with br.then_:
        pto.set_cross_block("V", 4)
        pto.wait_cross_block("V", 4)
    with br.else_:
        pto.set_cross_block("V", 5)
"""
    error = stopped(body, grid=6, host_threads=2)
    assert error.what == "deadlock among the cores: blocks 0-1, 3-5: S waits for cross-core flag 4 (line 10); block 2: has ended"


def test_more_blocks_than_cores() -> None:
    error = stopped(BARRIER, grid=65)
    assert "needs all 65 blocks at once, there are 64 vector cores" in error.what
    assert "k.py:6" in error.where


def test_flags_left_and_flags_ahead() -> None:
    assert "cross-core flag 9 of block 0 is left set" in stopped('pto.set_cross_block("V", 9)', grid=3).what
    error = stopped('with pto.for_(0, 16, step=1) as i:\n    pto.set_cross_block("V", 9)', grid=3)
    assert "flag 9 is set more than 15 times" in error.what and any("block 0" in place for place in error.where)


def test_a_failing_block_is_named() -> None:
    body = (
        "c = pto.cast(b, pto.i32)\n"
        + BARRIER
        + 'with pto.if_(pto.cmp(c, 3, "ge")) as br:\n    with br.then_:\n        pto.trap()\n'
        + BARRIER
    )
    for threads in (1, 2, 7):
        assert any("block 3" in place for place in stopped(body, grid=8, host_threads=threads).where)


def test_printing_with_barriers(capfd) -> None:
    body = 'pto.print("a%d ", b)\n' + BARRIER + 'pto.print("b%d ", b)\n'
    in_gm(HEAD + body, {"x": ("f32", np.zeros(1))}, {}, grid=3, host_threads=2)
    assert capfd.readouterr().out == "a0 b0 a1 b1 a2 b2 "
