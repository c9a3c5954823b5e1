"""Unit flags: the order between mad and the stores from L0C without flags between the pipes."""

from __future__ import annotations

import numpy as np
import pytest
from cube_harness import flags, numbers, run
from engine_harness import same

from tilelang_pto.errors import SimulationError

A, B = numbers("bf16", 32, 32, seed=1), numbers("bf16", 32, 32, seed=2)


def product(rounds: int = 1, terms: int = 32) -> np.ndarray:
    a, b = A.astype(np.float32), B.astype(np.float32)
    out = np.zeros((32, 32), np.float32)
    for _ in range(rounds):
        for k in range(terms):
            out += a[:, k : k + 1] * b[:, k][None]
    return out


LOAD = f"""\
l1a, l1b = at("mat", pto.bf16), at("mat", pto.bf16, 65536)
la, lb, lc = at("left", pto.bf16), at("right", pto.bf16), at("acc", pto.f32)
pto.mte_gm_l1_frac(a, l1a, "nd2nz", shape=(32, 32), src_layout=(64,), dst_group=(1, 1, 32, 0), ctrl=(0, False))
pto.mte_gm_l1_frac(b, l1b, "nd2nz", shape=(32, 32), src_layout=(64,), dst_group=(1, 1, 32, 0), ctrl=(0, False))
{flags("MTE2-MTE1")}pto.mte_l1_l0a(l1a, la, 32, 32)
pto.mte_l1_l0b(l1b, lb, 32, 32)
{flags("MTE1-M")}"""


def kernel(body: str, shape: tuple[int, ...] = (32, 32), **options) -> np.ndarray:
    arrays = {"a": ("bf16", A), "b": ("bf16", B), "c": ("f32", np.zeros(shape))}
    return run(LOAD + body, arrays, **options)["c"]


def stopped(body: str, **options) -> SimulationError:
    with pytest.raises(SimulationError) as info:
        kernel(body, **options)
    return info.value


STORE = 'pto.mte_l0c_gm(lc, {to}, 32, 32, 32, 32, 0, 0, layout="nz2nd", unit_flag="{flag}")\n'


def test_a_store_before_its_product_waits() -> None:
    # In the program the store comes first; only the unit flags make it wait.
    body = STORE.format(to="c", flag="check_and_clear") + 'pto.mad(la, lb, lc, 32, 32, 32, unit_flag="check_and_set")\n'
    same(kernel(body), product())


def test_products_of_a_k_loop_check_and_the_last_one_sets() -> None:
    body = """\
pto.mad(la, lb, lc, 32, 32, 32, unit_flag="check_only")
pto.mad_acc(la, lb, lc, 32, 32, 32, unit_flag="check_only")
pto.mad_acc(la, lb, lc, 32, 32, 32, unit_flag="check_and_set")
"""
    same(kernel(body + STORE.format(to="c", flag="check_and_clear")), product(rounds=3))


def test_the_next_product_waits_for_the_store() -> None:
    body = """\
pto.mad(la, lb, lc, 32, 32, 32, unit_flag="check_and_set")
pto.mad_acc(la, lb, lc, 32, 32, 32, unit_flag="check_and_set")
"""
    body += STORE.format(to="c", flag="check_and_clear") + STORE.format(to="pto.addptr(c, 1024)", flag="check_and_clear")
    found = kernel(body, (2, 32, 32))
    same(found[0], product())
    same(found[1], product(rounds=2))


def test_two_stores_of_one_result() -> None:
    body = 'pto.mad(la, lb, lc, 32, 32, 32, unit_flag="check_and_set")\n'
    body += STORE.format(to="c", flag="check_only") + STORE.format(to="pto.addptr(c, 1024)", flag="check_and_clear")
    found = kernel(body, (2, 32, 32))
    same(found[0], product())
    same(found[1], product())


def test_a_store_of_a_part_waits_for_its_units_only() -> None:
    # The lower half of the rows is made by another product, after the store of the upper half.
    body = """\
with pto.for_(0, 2, step=1) as i:
    half = pto.cast(i, pto.i64)
    pto.mad(pto.addptr(la, half * 256), lb, pto.addptr(lc, half * 512), 16, 32, 16, unit_flag="check_and_set", disable_gemv=True)
    pto.mte_l0c_gm(pto.addptr(lc, half * 512), pto.addptr(c, half * 512), 16, 32, 16, 32, 0, 0, unit_flag="check_and_clear")
"""
    same(kernel(body), product(terms=16))


@pytest.mark.parametrize("value", [0, 2, 3])
def test_flags_chosen_at_run_time(value: int) -> None:
    body = "pto.mad(la, lb, lc, 32, 32, 32, unit_flag=n)\n"
    body += STORE.format(to="c", flag="check_and_clear") if value == 3 else flags("M-FIX") + STORE.format(to="c", flag="none")
    body = body.replace(', unit_flag="none"', "")
    arrays = {"a": ("bf16", A), "b": ("bf16", B), "c": ("f32", np.zeros((32, 32)))}
    same(run(LOAD + body, arrays, {"n": ("si32", value)})["c"], product())


def test_an_unknown_flag_at_run_time() -> None:
    arrays = {"a": ("bf16", A), "b": ("bf16", B), "c": ("f32", np.zeros((32, 32)))}
    with pytest.raises(SimulationError, match="unit_flag is 1, not 0, 2"):
        run(LOAD + "pto.mad(la, lb, lc, 32, 32, 32, unit_flag=n)\n", arrays, {"n": ("si32", 1)})


def test_a_store_that_nobody_feeds() -> None:
    error = stopped(STORE.format(to="c", flag="check_and_clear"))
    assert "FIX waits for the unit flags of L0C from byte 0 on to be set by a mad" in error.what
    assert error.where[1] == "k.py:18"


def test_a_product_whose_units_are_never_cleared() -> None:
    error = stopped('pto.mad(la, lb, lc, 32, 32, 32, unit_flag="check_and_set")\n' * 2)
    assert "M waits for the unit flags of L0C from byte 0 on to be cleared" in error.what


def test_units_left_set() -> None:
    error = stopped('pto.mad(la, lb, lc, 32, 32, 32, unit_flag="check_and_set")\n')
    assert "the unit flag of L0C bytes 0 to 511 is left set at the end of the kernel" in error.what
    # A store of fewer columns leaves the units of the others.
    body = 'pto.mad(la, lb, lc, 32, 32, 32, unit_flag="check_and_set")\n'
    body += 'pto.mte_l0c_gm(lc, c, 32, 16, 32, 32, 0, 0, unit_flag="check_and_clear")\n'
    assert "L0C bytes 2048 to 2559 is left set" in stopped(body).what


def test_a_mismatch_of_both_sides() -> None:
    body = flags("M-FIX").join(["pto.mad(la, lb, lc, 32, 32, 32)\n", STORE.format(to="c", flag="check_only")])
    assert "FIX waits for the unit flags" in stopped(body).what
