"""Numbers of flags between cores that are only known at run time: what each API state takes."""

from __future__ import annotations

import pytest

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module

CALLS = ("set_cross_block", "wait_cross_block", "set_intra_block", "wait_intra_block")
CASES = [("2026-08", "scalar.cast", "index", "i32"), ("2026-09", "pto.cast", "i32", "index"), ("2026-09", "pto.cast", "i64", "index")]


def text_of(surface: str, call: str, number: str) -> str:
    names = "pto, scalar" if surface == "2026-08" else "pto"
    return f"""\
from ptodsl import {names}

@pto.jit(name="k", target="a5", mode="explicit", ast_rewrite=False)
def k(n: pto.i64):
    with pto.section("cube"):
        pto.{call}("FIX", {number})
    with pto.section("vector"):
        pto.pipe_barrier("ALL")
"""


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("surface", "cast", "taken", "refused"), CASES)
def test_type_of_the_number(surface, cast, taken, refused, call):
    record_module(text_of(surface, call, f"{cast}(n, pto.{taken})"), "k", surface)
    with pytest.raises(SimulationError, match=f"event_id is a runtime {refused}"):
        record_module(text_of(surface, call, f"{cast}(n, pto.{refused})"), "k", surface)
