"""The bytes of the program form."""

from __future__ import annotations

import math
import struct

import pytest

from tilelang_pto.sim import record_module
from tilelang_pto.sim.program import DTYPES, KINDS, SPACES, Function, Operation, Parameter, Program, Region, Type, parse

TEXT = '''\
from ptodsl import pto, scalar

@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)
def first(x: pto.ptr(pto.bf16, "gm"), n: pto.i32, e: pto.f32):
    """Grüße"""
    ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.bf16, "ub"))
    loop = pto.for_(0, n, step=1).carry(a=e)
    with loop:
        with pto.if_(n < 3) as br:
            with br.then_:
                br.assign(a=loop.a + float("inf"))
            with br.else_:
                br.assign(a=-1.5)
        loop.update(a=br.a)
    with pto.vecscope():
        m, rest = pto.plt_b16(n)
        pto.vsts(pto.vlds(ub, 0), ub, 128, m)
    with pto.simt(32, 1, 1):
        scalar.store(pto.Vec(pto.f32, 2, init=(e, 2.0)), pto.alloc_buffer((2,), pto.f32), 0)

@pto.jit(kernel_kind="vector")
def second():
    pass
'''


def test_round_trip():
    program = record_module(TEXT, "grüße.py")
    data = program.serialize()
    assert parse(data) == program
    assert parse(data).serialize() == data
    assert record_module(TEXT, "grüße.py").serialize() == data
    assert parse(data).dump() == program.dump()


def test_every_type_goes_round():
    types = [Type(kind, dtype, space, lanes) for kind in KINDS for dtype in DTYPES for space in SPACES for lanes in (0, 64)]
    program = Program("t", [Function("f", "", 1, [Parameter("p", 0)], types)])
    assert parse(program.serialize()) == program


def test_every_attribute_goes_round():
    attributes: dict[str, int | str | float] = {
        "a": -(1 << 63), "b": (1 << 63) - 1, "c": "", "d": "text", "e": 0.1, "f": math.inf, "g": -0.0, "h": 5e-324,
    }  # fmt: skip
    program = Program("t", [Function("f", "vector", 1, body=Region([], [Operation("o", 7, (), (), attributes, [Region(), Region()])]))])
    again = parse(program.serialize())
    assert again == program
    assert math.copysign(1, float(again.functions[0].body.operations[0].attributes["g"])) == -1
    not_a_number = Program("t", [Function("f", "", 1, body=Region([], [Operation("o", 1, attributes={"x": math.nan})]))])
    assert math.isnan(float(parse(not_a_number.serialize()).functions[0].body.operations[0].attributes["x"]))


def test_the_bytes_themselves():
    kind = Type("pointer", "f32", "gm")
    program = Program(
        "s", [Function("f", "vector", 3, [Parameter("p", 0)], [kind], Region([], [Operation("trap", 4, (0,), (), {"k": "vector"})]))]
    )
    strings = [b"s", b"f", b"vector", b"p", b"trap", b"k"]
    expected = b"PTOP" + struct.pack("<II", 1, len(strings)) + b"".join(struct.pack("<I", len(s)) + s for s in strings)
    expected += struct.pack("<II", 0, 1)  # source file, functions
    expected += struct.pack("<IIIIII", 1, 2, 3, 1, 3, 0)  # name, kind, line, parameters, name, value
    expected += struct.pack("<IBBBI", 1, 1, 13, 1, 0)  # types
    expected += struct.pack("<II", 0, 1)  # region
    expected += struct.pack("<IIII", 4, 4, 1, 0) + struct.pack("<I", 0)  # opcode, line, operands, results
    expected += struct.pack("<IIBQ", 1, 5, 1, 2) + struct.pack("<I", 0)  # attributes, regions
    assert program.serialize() == expected


def test_broken_bytes_are_refused():
    data = record_module(TEXT).serialize()
    with pytest.raises(ValueError, match="wrong first bytes"):
        parse(b"NOPE" + data[4:])
    with pytest.raises(ValueError, match="version 9"):
        parse(data[:4] + struct.pack("<I", 9) + data[8:])
    with pytest.raises(ValueError, match="after the end"):
        parse(data + b"\0")
    for end in range(0, len(data), 7):
        with pytest.raises((ValueError, UnicodeDecodeError)):
            parse(data[:end])


def test_values_are_defined_once_and_before_use():
    for function in record_module(TEXT).functions:
        defined = {parameter.value for parameter in function.parameters}

        def walk(region: Region, defined: set[int]) -> None:
            for argument in region.arguments:
                assert argument not in defined
                defined.add(argument)
            for operation in region.operations:
                assert set(operation.operands) <= defined
                for inner in operation.regions:
                    walk(inner, set(defined))
                assert not set(operation.results) & defined
                defined |= set(operation.results)

        walk(function.body, defined)
