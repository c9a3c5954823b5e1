"""Recording of scalars: types, operators of both API states, casts, constants, memory."""

from __future__ import annotations

import textwrap

import pytest

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module

PARAMETERS = (
    'g: pto.ptr(pto.f32, "gm"), gi: pto.ptr(pto.i32, "gm"), gb: pto.ptr(pto.bf16, "gm"), i: pto.i32, l: pto.i64, u: pto.ui32, s: pto.i16, '
    "f: pto.f32, h: pto.f16, b: pto.i1, w: pto.ui8"
)
IMPORTS = {"2026-08": "from ptodsl import pto, scalar", "2026-09": "from ptodsl import pto"}


def record(body: str, surface: str):
    text = f'{IMPORTS[surface]}\n@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)\ndef k({PARAMETERS}):\n'
    return record_module(text + textwrap.indent(textwrap.dedent(body), "    "), "k.py").functions[0]


def last(body: str, surface: str) -> tuple[str, str]:
    """Opcode and result type of the last operation."""
    function = record(body, surface)
    operation = list(function.walk())[-1]
    return operation.opcode, ", ".join(str(function.types[value]) for value in operation.results)


AUG, SEP = "2026-08", "2026-09"
BOTH = (AUG, SEP)


@pytest.mark.parametrize("surface", BOTH)
@pytest.mark.parametrize(
    ("expression", "opcode", "dtype"),
    [
        ("i + 1", "add", "i32"),
        ("1 - i", "sub", "i32"),
        ("2 * f", "mul", "f32"),
        ("f / 3", "div", "f32"),
        ("1.0 / h", "div", "f16"),
        ("i // 4", "floordiv", "i32"),
        ("100 // u", "floordiv", "ui32"),
        ("i % 7", "rem", "i32"),
        ("i & 3", "and", "i32"),
        ("i | s", "or", "i32"),
        ("b ^ b", "xor", "i1"),
        ("i ^ -1", "xor", "i32"),
        ("u ^ 0xFFFFFFFF", "xor", "ui32"),
        ("i + l", "add", "i64"),
        ("pto.const(3) * i", "mul", "index"),
        ("i < l", "cmp", "i1"),
        ("f >= 0.5", "cmp", "i1"),
        ("3 == i", "cmp", "i1"),
        ("u != 3", "cmp", "i1"),
        ("(i < 3) & (l < 4)", "and", "i1"),
    ],
)
def test_operators(surface: str, expression: str, opcode: str, dtype: str):
    assert last(expression, surface) == (opcode, dtype)


@pytest.mark.parametrize(
    ("expression", "opcode", "dtype"),
    [
        ("-f", "neg", "f32"),
        ("i << 2", "shl", "i32"),
        ("1 << i", "shl", "i32"),
        ("u >> 3", "shr", "ui32"),
        ("i / 2", "div", "i32"),
        ("f % 2.0", "rem", "f32"),
        ("pto.add(i, 1, overflow='nsw')", "add", "i32"),
        ("pto.ceildiv(i, 64)", "sub", "i32"),
        ("pto.neg(h)", "neg", "f16"),
        ("pto.bitcast(f, pto.i32)", "bitcast", "i32"),
        ("pto.cast(f, pto.i32, rounding='toward_zero', saturation='sat')", "cast", "i32"),
        ("pto.maximum(f, 0.0)", "maximum", "f32"),
        ("pto.min(i, 4)", "min", "i32"),
        ("pto.cmp(i, 3, 'le')", "cmp", "i1"),
        ("pto.select(b, f, 0.0)", "select", "f32"),
        ("pto.select(i < 3, 1, i)", "select", "i32"),
        ("pto.abs(i)", "abs", "i32"),
        ("pto.exp(f)", "exp", "f32"),
        ("pto.fma(f, 2.0, f)", "fma", "f32"),
        ("pto.load(g, i)", "load", "f32"),
        ("pto.ld_dev(gi, 4)", "load", "i32"),
    ],
)
def test_september_only(expression: str, opcode: str, dtype: str):
    assert last(expression, SEP) == (opcode, dtype)
    with pytest.raises(SimulationError):
        record(expression, AUG)


@pytest.mark.parametrize(
    ("expression", "opcode", "dtype"),
    [
        ("scalar.cast(pto.get_block_idx(), pto.i32)", "cast", "i32"),
        ("scalar.muli(i, 3)", "mul", "i32"),
        ("scalar.index_cast(i)", "cast", "index"),
        ("scalar.index_cast(pto.i32, pto.const(1) + 1)", "cast", "i32"),
        ("scalar.select(b, f, 0.0)", "select", "f32"),
        ("scalar.max(f, 0.0)", "max", "f32"),
        ("scalar.sqrt(f)", "sqrt", "f32"),
        ("scalar.load(g, 3)", "load", "f32"),
        ("pto.load_scalar(gi, i, bypass_l1=True)", "load", "i32"),
    ],
)
def test_august_only(expression: str, opcode: str, dtype: str):
    assert last(expression, AUG) == (opcode, dtype)
    with pytest.raises(SimulationError):
        record(expression, SEP)


@pytest.mark.parametrize("surface", BOTH)
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("~i", r"x \^ -1"),
        ("f + i", "cast one side"),
        ("f + h", "cast one side"),
        ("i + 1.5", "the float 1.5"),
        ("i + True", "bool True"),
        ("i + u", "mixes signedness"),
        ("f // 2.0", "integers or index"),
        ("f & 1", "integers or index"),
        ("i + 'a'", "str 'a'"),
        ("i + 0x1FFFFFFFF", "does not fit into i32"),
        ("w + 256", "does not fit into ui8"),
        ("pto.const(True)", "not a constant"),
        ("pto.const(1.5, dtype=pto.i32)", "not a constant of type i32"),
        ("pto.const(1, dtype=pto.f8e4m3)", "no constants of type f8e4m3"),
        ("pto.f32('0x1FFFFFFFF')", "wider than f32"),
        ("pto.f32('many')", "not a float constant"),
        ("pto.castptr(0, pto.ptr(pto.f32, 'ub'))", r"pto.const\(0, dtype=pto.i64\)"),
        ("pto.castptr(g, pto.ptr(pto.f32, 'ub'))", "of the same space"),
        ("pto.castptr(f, pto.ptr(pto.f32, 'ub'))", "byte address"),
        ("pto.addptr(g, 1.0)", "a Python int"),
        ("pto.addptr(i, 1)", "a pointer is needed"),
        ("g + 1", "pto.addptr"),
        ("pto.ptr(pto.f32, 'moon')", "memory space 'moon'"),
        ("pto.ptr(pto.i1, 'gm')", "a pointer to i1"),
        ("pto.ptr(3, 'gm')", "element type"),
        ("pto.alloc_buffer((n for n in ()), pto.f32)", "Python int is needed"),
    ],
)
def test_refused_everywhere(surface: str, expression: str, message: str):
    with pytest.raises(SimulationError, match=message):
        record(expression, surface)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("-i", "0 - x"),
        ("i << 1", "no operator <<"),
        ("i / 2", "// for integers"),
        ("f % 2.0", "floats"),
        ("pto.load(g, 0)", r"scalar.load in the 2026-08 API or pto.load in the 2026-09 API"),
        ("scalar.neg(i)", "pto.neg in the 2026-09 API"),
        ("pto.sqrt(f)", r"use it in `with pto.simt"),
    ],
)
def test_refused_by_august(expression: str, message: str):
    with pytest.raises(SimulationError, match=message):
        record(expression, AUG)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("u % l", "mixes signedness"),
        ("pto.select(b, i, l)", "both arms"),
        ("pto.cast(i, pto.i32, rounding='r')", "same type"),
        ("pto.cast(i, pto.ui32, saturation='sat')", "only changes signedness"),
        ("pto.cast(f, pto.i32, rounding='up')", "rounding='up' is not legal"),
        ("pto.bitcast(f, pto.i64)", "same width"),
        ("pto.cmp(i, 1, 'slt')", "one of eq"),
        ("pto.add(i, 1, overflow='wrap')", "nsw, nuw"),
        ("pto.ld_dev(g, 0)", "integer type of the same width"),
        ("pto.store(i, g, 0)", "f32 is needed"),
        ("pto.scalar", "has no pto.scalar"),
    ],
)
def test_refused_by_september(expression: str, message: str):
    with pytest.raises(SimulationError, match=message):
        record(expression, SEP)


def test_constants():
    function = record(
        """\
        pto.const(255, dtype=pto.i8)
        pto.const((1 << 64) - 1, dtype=pto.ui64)
        pto.f32(1.5)
        pto.f32("0x7F800000")
        pto.bf16("-inf")
        pto.f16(float.fromhex("0x1.8p1"))
        pto.i32(7)
        pto.const(7, dtype=pto.i32)
        """,
        SEP,
    )
    assert [op.attributes for op in function.walk()] == [
        {"value": -1},
        {"value": -1},
        {"value": 1.5},
        {"bits": 0x7F800000},
        {"value": float("-inf")},
        {"value": 3.0},
        {"value": 7},
    ]


def test_constants_are_cast_by_their_value():
    function = record("pto.cast(pto.const(255, dtype=pto.i8), pto.i32)\npto.cast(pto.const(-1, dtype=pto.ui16), pto.i64)", SEP)
    assert [(str(function.types[op.results[0]]), op.attributes["value"]) for op in function.walk()] == [
        ("i8", -1),
        ("i32", -1),
        ("ui16", 65535),
        ("i64", 65535),
    ]


def test_signedness_is_kept_until_recording():
    function = record("a = pto.cast(u, pto.i32)\na + i\nc = pto.cast(i, pto.si32)\nc + 1", SEP)
    assert [op.opcode for op in function.walk()] == ["cast", "add", "const", "add"]


def test_constants_are_shared_within_a_region_only():
    function = record(
        """\
        i + 5
        i * 5
        with pto.simt(1, 1, 1):
            i + 5
            with pto.if_(i < 5) as br:
                with br.then_:
                    i * 5
        """,
        AUG,
    )
    assert [op.line for op in function.walk() if op.opcode == "const"] == [4, 7]


def test_memory_access():
    function = record(
        """\
        scalar.store(2, g, i)
        scalar.store(scalar.load(gi, 0), gi, 1)
        with pto.simt(4, 1, 1):
            acc = pto.alloc_buffer((2, 4), pto.f32)
            pair = scalar.load(g, pto.get_tid_x() * 2, contiguous=2)
            scalar.store(pair * pair + pto.Vec(pto.f32, 2, init=1.0), acc, 2)
            scalar.store(scalar.load(acc, 3), g, 0)
        """,
        AUG,
    )
    operations = list(function.walk())
    assert [op.attributes for op in operations if op.opcode == "alloc_buffer"] == [{"count": 8}, {"count": 2}]
    stores = [[str(function.types[v]) for v in op.operands] for op in operations if op.opcode == "store"]
    assert stores == [
        ["f32", "ptr<f32, gm>", "i32"],
        ["i32", "ptr<i32, gm>", "index"],
        ["f32", "ptr<f32, stack>", "index"],
        ["f32", "ptr<f32, stack>", "index"],
        ["vec<2 x f32>", "ptr<f32, stack>", "index"],
        ["f32", "ptr<f32, gm>", "index"],
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("acc = pto.alloc_buffer((4,), pto.f32)\nscalar.load(acc, 0)", "outside of pto.simt"),
        ("acc = pto.alloc_buffer((4,), pto.f32)\nwith pto.simt(4, 1, 1):\n    scalar.load(acc, i)", "persistent buffer"),
        ("with pto.simt(4, 1, 1):\n    pto.alloc_buffer((4,), pto.i1)", "whole bytes"),
        ("with pto.simt(4, 1, 1):\n    pto.alloc_buffer((0,), pto.f32)", "out of range"),
        ("with pto.simt(4, 1, 1):\n    pto.alloc_buffer((i,), pto.f32)", "Python int"),
        ("with pto.simt(4, 1, 1):\n    scalar.store(f, g, 0, contiguous=2)", "a short vector"),
        ("with pto.simt(4, 1, 1):\n    scalar.store(scalar.load(g, 0, contiguous=4), g, 0, contiguous=2)", "contiguous=4"),
        ("with pto.simt(4, 1, 1):\n    scalar.store(scalar.load(g, 0, contiguous=2), gb, 0)", "element type of the pointer"),
        ("with pto.simt(4, 1, 1):\n    pto.load_scalar(g, 0)", "the kernel body"),
        ("with pto.simt(4, 1, 1):\n    scalar.load(pto.castptr(gb, pto.ptr(pto.f8e4m3, 'gm')), 0)", "no scalars of that type"),
        ("scalar.load(g)", "offset in elements"),
    ],
)
def test_memory_faults(body: str, message: str):
    with pytest.raises(SimulationError, match=message):
        record(body, AUG)


def test_struct_is_recorded_as_stack_slots():
    function = record(
        """\
        s = pto.declare_struct(pto.struct_type(pto.i32, pto.f32))
        pto.struct_set(s, [0], i)
        pto.struct_set(s, [1], 2.5)
        pto.struct_get(s, [0]) + 1
        """,
        AUG,
    )
    opcodes = [op.opcode for op in function.walk()]
    assert [code for code in opcodes if code != "const"] == ["alloc_buffer", "alloc_buffer", "store", "store", "load", "add"]


def test_collectives_and_atomics():
    function = record(
        """\
        with pto.simt(64, 1, 1):
            lane = pto.get_laneid()
            total = pto.redux_add(f)
            top = pto.redux_max(i, signedness="signed")
            other = pto.shuffle_bfly(f, 1)
            scalar.store(total + other, g, lane)
            pto.vote_ballot(i < 3)
            pto.atomic_add(g, total)
            pto.atomic_max(gi, top, signedness="signed")
            pto.atomic_cas(gi, 0, i)
        """,
        AUG,
    )
    opcodes = [op.opcode for op in function.walk()]
    assert opcodes[1:] == [
        "get_laneid", "redux_add", "redux_max", "const", "shuffle_bfly", "add", "store", "const", "cmp", "vote_ballot", "atomic_add",
        "atomic_max", "const", "atomic_cas",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pto.redux_max(i)", "without signedness"),
        ("pto.redux_max(f, signedness='signed')", "leave it out for floats"),
        ("pto.redux_add(u)", "one of i32"),
        ("pto.shuffle_idx(f, 0, width=8)", "16 or 32"),
        ("pto.vote_any(i)", "one of i1"),
        ("pto.atomic_max(gi, i)", "without signedness"),
        ("pto.atomic_and(g, f)", "an integer pointer"),
        ("pto.atomic_add(g, f, l2cache='warm')", "one of"),
        ("pto.fma(f, i, f)", "f32 is needed"),
        ("pto.sin(i)", "a float scalar"),
        ("pto.simt_allreduce_sum(f, threads=64)", "pto.redux_add"),
    ],
)
def test_collective_faults(call: str, message: str):
    with pytest.raises(SimulationError, match=message):
        record(f"with pto.simt(64, 1, 1):\n    {call}", AUG)
