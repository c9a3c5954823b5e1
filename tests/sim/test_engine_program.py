"""The engine and the bytes it is given: damaged ones are refused, never executed, never a crash."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module
from tilelang_pto.sim.program import Operation, Type

_native = pytest.importorskip("tilelang_pto._native")

TEXT = """\
from ptodsl import pto
@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)
def k(x: pto.ptr(pto.f32, "gm"), n: pto.i32):
    a = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
    pto.mte_gm_ub(x, a, 0, 256, nburst=(1, 256, 256))
    pto.pipe_barrier("ALL")
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        with pto.for_(0, 1, step=1) as i:
            v = pto.vlds(a, i, pto.vreg_type(64, pto.f32))
            pto.vsts(pto.vadds(v, 1.0, m), a, i, m, dist="NORM_B32")
    with pto.simt(32, 1, 1):
        t = pto.get_tid_x()
        pto.store(pto.load(a, t) + 1.0, a, t)
    pto.pipe_barrier("ALL")
    pto.mte_ub_gm(a, x, 256, nburst=(1, 256, 256))
"""


def run(data: bytes) -> np.ndarray:
    x = np.zeros(64, np.float32)
    _native.sim_launch(data, "k", [x, 3], max_steps=100_000)
    return x


def test_good_bytes() -> None:
    assert run(record_module(TEXT).serialize()).tolist() == [2.0] * 32 + [1.0] * 32


def test_truncated_bytes() -> None:
    data = record_module(TEXT).serialize()
    for size in range(0, len(data), 7):
        with pytest.raises(SimulationError, match="not a valid program"):
            run(data[:size])


def test_damaged_bytes_never_crash() -> None:
    data = record_module(TEXT).serialize()
    generator = random.Random(1)
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(generator.randint(1, 3)):
            damaged[generator.randrange(len(damaged))] = generator.choice([0, 1, 255, generator.randrange(256)])
        with contextlib.suppress(SimulationError, UnicodeDecodeError):
            run(bytes(damaged))


def test_unknown_operation_is_named() -> None:
    program = record_module(TEXT, "k.py")
    program.functions[0].body.operations.append(Operation("frobnicate", 42))
    with pytest.raises(SimulationError, match="unknown operation frobnicate") as info:
        run(program.serialize())
    assert info.value.where == ("kernel k", "k.py:42", "frobnicate")


def test_operation_out_of_place() -> None:
    program = record_module(TEXT, "k.py")
    function = program.functions[0]
    function.types.append(Type("mask", lanes=64))
    function.body.operations.append(Operation("pset", 42, (), (len(function.types) - 1,), {"pattern": "PAT_ALL"}))
    with pytest.raises(SimulationError, match="outside a vector function"):
        run(program.serialize())


def test_value_used_before_its_definition() -> None:
    program = record_module(TEXT, "k.py")
    function = program.functions[0]
    function.types += [Type("scalar", "i32")] * 2
    new = len(function.types) - 1
    function.body.operations.append(Operation("add", 42, (new, new), (new - 1,)))
    with pytest.raises(SimulationError, match="before it is defined"):
        run(program.serialize())


def test_operations_of_the_documented_table_are_known() -> None:
    ops = set(_native.sim_ops())
    assert {"mte_gm_ub", "vlds", "vcvt", "syncthreads", "for"} <= ops
    assert sorted(ops) == _native.sim_ops()
