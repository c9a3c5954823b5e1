"""Recording of control flow: loops, branches, vector and SIMT functions, sections, several kernels."""

from __future__ import annotations

import textwrap

import pytest

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module

HEAD = """\
from ptodsl import pto, scalar

@pto.jit(name="k", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def k(x: pto.ptr(pto.f32, "gm"), n: pto.i32):
"""


def record(body: str, head: str = HEAD):
    return record_module(head + textwrap.indent(textwrap.dedent(body), "    "), "k.py")


def refused(body: str, head: str = HEAD) -> str:
    with pytest.raises(SimulationError) as info:
        record(body, head)
    return str(info.value)


def test_loop_with_carries():
    program = record("""\
        loop = pto.for_(0, n, step=2).carry(total=pto.const(0, dtype=pto.i32))
        with loop:
            loop.update(total=loop.total + scalar.cast(loop.iv, pto.i32))
        after = loop.final("total") + 1
        """)
    assert program.dump() == textwrap.dedent("""\
        program 'k.py'
        kernel k(%0 x: ptr<f32, gm>, %1 n: i32) vector ; 3
          %2 = const {value=0} : index ; 5
          %3 = cast %1 : index ; 5
          %4 = const {value=2} : index ; 5
          %5 = const {value=0} : i32 ; 5
          %6 = for %2, %3, %4, %5 : i32 ; 5
            (%7: index, %8: i32)
              %9 = cast %7 : i32 ; 7
              %10 = add %8, %9 : i32 ; 7
              yield %10 ; 6
          %11 = const {value=1} : i32 ; 8
          %12 = add %6, %11 : i32 ; 8
        """)


def test_branch_merges():
    program = record("""\
        with pto.if_(n < 7) as br:
            with br.then_:
                br.assign(a=n + 1, b=2.0)
            with br.else_:
                br.assign(b=pto.const(1.0, dtype=pto.f32), a=n)
        c = br.a + 1
        d = br.b * 3.0
        """)
    assert program.dump() == textwrap.dedent("""\
        program 'k.py'
        kernel k(%0 x: ptr<f32, gm>, %1 n: i32) vector ; 3
          %2 = const {value=7} : i32 ; 5
          %3 = cmp %1, %2 {pred='lt'} : i1 ; 5
          %8, %9 = if %3 : i32, f32 ; 5
            ()
              %4 = const {value=1} : i32 ; 7
              %5 = add %1, %4 : i32 ; 7
              %7 = const {value=2.0} : f32 ; 5
              yield %5, %7 ; 5
            ()
              %6 = const {value=1.0} : f32 ; 9
              yield %1, %6 ; 5
          %10 = const {value=1} : i32 ; 10
          %11 = add %8, %10 : i32 ; 10
          %12 = const {value=3.0} : f32 ; 11
          %13 = mul %9, %12 : f32 ; 11
        """)


def test_one_sided_branch_and_integer_condition():
    program = record("""\
        with pto.if_(n) as br:
            with br.then_:
                pto.pipe_barrier("ALL")
        """)
    (branch,) = [op for op in program.functions[0].walk() if op.opcode == "if"]
    assert [[op.opcode for op in region.operations] for region in branch.regions] == [["pipe_barrier", "yield"], ["yield"]]
    assert [op.attributes for op in program.functions[0].walk() if op.opcode == "cmp"] == [{"pred": "ne"}]


def test_merges_of_unequal_integers():
    program = record("""\
        with pto.if_(n < 7) as br:
            with br.then_:
                br.assign(a=n < 2, b=pto.const(3))
            with br.else_:
                br.assign(a=n, b=n)
        flag = br.a & (n < 3)
        place = br.b + 1
        """)
    (branch,) = [op for op in program.functions[0].walk() if op.opcode == "if"]
    types = program.functions[0].types
    assert [str(types[value]) for value in branch.results] == ["i1", "index"]
    assert [op.opcode for op in branch.regions[1].operations] == ["const", "cmp", "cast", "yield"]


def test_nested_loops_carry_registers():
    program = record("""\
        ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
        with pto.vecscope():
            m = pto.pset_b32("PAT_ALL")
            rows = pto.for_(0, 4, step=1).carry(acc=pto.vbr(pto.const(0.0, dtype=pto.f32)))
            with rows:
                cols = pto.for_(0, 2, step=1).carry(acc=rows.acc)
                with cols:
                    cols.update(acc=pto.vadd(cols.acc, pto.vlds(ub, cols.iv * 64), m))
                rows.update(acc=cols.final("acc"))
            pto.vsts(rows.final("acc"), ub, 0, m)
        """)
    opcodes = [op.opcode for op in program.functions[0].walk()]
    assert opcodes.count("for") == 2 and opcodes[-1] == "vsts"


def test_simt_dimensions_and_queries():
    program = record("""\
        with pto.simt(8, 4, 2):
            tx, ty, tz = pto.get_tid()
            scalar.store(scalar.load(x, tx) * 2.0, x, tx + ty * 8)
        with pto.simt():
            pto.syncthreads()
        """)
    shells = [op for op in program.functions[0].walk() if op.opcode == "simt"]
    assert [op.attributes for op in shells] == [{"x": 8, "y": 4, "z": 2}, {"x": 1, "y": 1, "z": 1}]
    assert [op.opcode for op in shells[0].regions[0].operations][:3] == ["get_tid_x", "get_tid_y", "get_tid_z"]


def test_two_kernels_and_const_expr():
    program = record_module(
        textwrap.dedent("""\
        from ptodsl import pto

        def twice(value):
            return helper(value, 2)

        @pto.jit(name="first", mode="explicit", kernel_kind="vector")
        def a(n: pto.i32, *, FACTOR: pto.const_expr = 5):
            twice(n + FACTOR)

        @pto.jit(mode="explicit")
        def second(p: pto.gm_ptr(pto.bf16), s: pto.f32):
            with pto.section("vector"):
                pto.pipe_barrier("V")

        def helper(value, factor):
            return value * factor
        """)
    )
    assert [(f.name, f.kind) for f in program.functions] == [("first", "vector"), ("second", "")]
    assert [(n, str(t)) for n, t in program.function("second").signature()] == [("p", "ptr<bf16, gm>"), ("s", "f32")]
    assert [op.opcode for op in program.function("first").walk()] == ["const", "add", "const", "mul"]
    with pytest.raises(SimulationError, match="one of: first, second"):
        program.function("third")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("with pto.for_(0, 4, step=1) as i:\n    j = i + 1\nj + 1", "inside a loop body that has ended"),
        (
            "with pto.vecscope():\n    m = pto.pset_b32('ALL')\nwith pto.vecscope():\n    pto.pnot(m, m)",
            "inside a vector function that has ended",
        ),
        (
            "with pto.if_(n < 1) as br:\n    with br.then_:\n        y = n + 1\n    with br.else_:\n        y + 2",
            "inside a branch that has ended",
        ),
        ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    pass", "no loop.update"),
        ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    loop.update(a=n)\n    loop.update(a=n)", "already called"),
        ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    loop.update(b=n)", "lacks a and has unknown b"),
        ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    loop.update(a=loop.iv)", "carried as i32 and updated with index"),
        ("loop = pto.for_(0, 4, step=1).carry(a=0)", r"pto.const\(0, dtype=...\)"),
        ("loop = pto.for_(0, 4, step=1).carry(_a=n)", "leading underscore"),
        (
            "loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    with pto.if_(n < 2) as br:\n"
            "        with br.then_:\n            loop.update(a=n)",
            "inside a nested region",
        ),
        ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    loop.final('a')", "before the end of the loop"),
        ("loop = pto.for_(0, 4, step=1).carry(a=n)\nwith loop:\n    loop.update(a=n)\nloop.a", r"loop.final\('a'\)"),
        ("pto.for_(0, 4, step=0)", "positive step"),
        ("pto.for_(0, 4)", r"pto.for_\(start, stop, \*, step\)"),
        ("pto.for_(0, 4.0, step=1)", "stop is float 4.0"),
        ("with pto.if_(n < 1) as br:\n    n + 1", "directly in the body of pto.if_"),
        ("with pto.if_(n < 1) as br:\n    with br.then_:\n        br.assign(a=n)", "assigned in one branch only"),
        (
            "with pto.if_(n < 1) as br:\n    with br.then_:\n        br.assign(a=n)\n    with br.else_:\n        br.assign(a=n, b=n)",
            "b assigned in one branch only",
        ),
        (
            "with pto.if_(n < 1) as br:\n    with br.then_:\n        br.assign(a=1)\n    with br.else_:\n        br.assign(a=2)",
            "both branches",
        ),
        (
            "with pto.if_(n < 1) as br:\n    with br.then_:\n        br.assign(a=n)\n"
            "    with br.else_:\n        br.assign(a=pto.const(1, dtype=pto.i64))",
            "a is i32 in one branch and i64 in the other",
        ),
        ("with pto.if_(n < 1) as br:\n    with br.then_:\n        pass\n    with br.then_:\n        pass", "already entered"),
        ("with pto.if_(n < 1) as br:\n    with br.then_:\n        br.assign(a=n)\n        br.assign(b=n)", "already called in this branch"),
        ("with pto.if_(n < 1) as br:\n    br.a", "before the end of the pto.if_"),
        ("with pto.if_(n < 1) as br:\n    pass\nbr.q", "assign no 'q'"),
        ("with pto.if_(n < 1) as br:\n    pass\nbr._q", "leading underscore"),
        ("with pto.if_(n < 1) as br:\n    pass\nbr.get('q')", "has no get"),
        ("pto.if_(True)", "Python `if`"),
        ("pto.if_(scalar.cast(n, pto.f32))", "a comparison"),
        ("with pto.simt(64, 1, 1):\n    pto.vbr(scalar.cast(n, pto.f32))", "pto.vbr may not stand in a SIMT function"),
        ("with pto.simt(2049, 1, 1):\n    pass", "1 to 2048"),
        ("with pto.simt(64, 64, 1):\n    pass", "at most 2048"),
        ("with pto.simt(64):\n    pass", "three Python ints"),
        ("with pto.simt(n, 1, 1):\n    pass", "a Python int is needed"),
        ("with pto.vecscope():\n    with pto.vecscope():\n        pass", "may not stand in a vector function"),
        ("with pto.vecscope():\n    pto.set_flag('V', 'MTE3', event_id=0)", "pto.set_flag may not stand in a vector function"),
        ("pto.get_tid_x()", r"use it in `with pto.simt\(...\)`"),
        ("pto.pset_b32('PAT_ALL')", r"use it in `with pto.vecscope\(\)`"),
        ("with pto.section('vector'):\n    pass", "kernel_kind"),
        ("with pto.section('cube'):\n    pass", "kernel_kind"),
        ("for i in range(n):\n    pass", "Python index"),
        ("if n < 3:\n    pass", "Python truth value"),
        ("a = 1 if n else 2", "Python truth value"),
        ("0 < n < 4", "chained comparison"),
        ("not n", "Python truth value"),
        ("int(n)", r"int\(\) of a runtime scalar"),
        ("list(n)", "iteration over of a runtime scalar|len"),
        ("{n: 1}", "hashing"),
        ("return n", "returns"),
        ("pto.for_(0, 4, step=1).__enter__()", "entered and not left"),
        ("pto.while_(3, a=n)", "the condition of pto.while_ is not a function"),
    ],
)
def test_planted_faults(body: str, message: str):
    with pytest.raises(SimulationError, match=message) as info:
        record(body)
    assert info.value.where[0] == "kernel k"
    assert info.value.where[1].startswith("k.py:")


def test_fault_names_line_and_source():
    with pytest.raises(SimulationError) as info:
        record("a = n + 1\nb = a / 2\n")
    assert info.value.where == ("kernel k", "k.py:6", "b = a / 2")
    assert info.value.advice == "// for integers"


def test_rewriting_modules_get_a_hint():
    head = HEAD.replace(", ast_rewrite=False", "")
    assert "emit with ast_rewrite=False" in refused("if n < 3:\n    pass", head)
    assert [op.opcode for op in record("for i in range(2):\n    n + i", head).functions[0].walk()] == ["const", "add", "const", "add"]


def test_auto_mode_has_no_explicit_calls():
    head = HEAD.replace(', mode="explicit"', "")
    assert "explicit-mode kernel" in refused("with pto.vecscope():\n    pass", head)
    assert "explicit-mode kernel" in refused("pto.set_flag('V', 'MTE3')", head)


def test_section_values_do_not_leak():
    head = HEAD.replace('kernel_kind="vector", ', "")
    assert "a section that has ended" in refused("with pto.section('vector'):\n    a = n + 1\na + 1", head)
    assert "a second vector section" in refused("with pto.section('vector'):\n    pass\nwith pto.section('vector'):\n    pass", head)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from ptodsl import pto\n", "no kernel"),
        ("from ptodsl import pto\n@pto.jit\ndef k():\n    pass\n", "without parentheses"),
        ("from ptodsl import pto\n@pto.jit(name=64)\ndef k():\n    pass\n", "an identifier"),
        ("from ptodsl import pto\n@pto.jit(mode='fast')\ndef k():\n    pass\n", "auto or explicit"),
        ("from ptodsl import pto\n@pto.jit(kernel_kind='mixed')\ndef k():\n    pass\n", "vector or cube"),
        ("from ptodsl import pto\n@pto.jit(kernel_kind='mixed')\ndef k():\n    pass\n", "vector or cube, or leave it out"),
        ("from ptodsl import pto\n@pto.jit(colour='red')\ndef k():\n    pass\n", r"pto.jit\(name=None, \*, target='a5'"),
        ("from ptodsl import pto\n@pto.jit()\ndef k(a):\n    pass\n", "annotation None"),
        ("from ptodsl import pto\n@pto.jit()\ndef k(a: pto.ptr(pto.f32)):\n    pass\n", "points to 'ub'"),
        ("from ptodsl import pto\n@pto.jit()\ndef k(*a):\n    pass\n", r"\*args"),
        ("from ptodsl import pto\n@pto.jit()\ndef k(*, a=1):\n    pass\n", "const_expr"),
        ("from ptodsl import pto\n@pto.jit()\ndef k():\n    pass\n@pto.jit()\ndef k():\n    pass\n", "two kernels are called 'k'"),
        ("from ptodsl import pto\n@pto.jit()\ndef k():\n    pass\nk()\n", "called in the module text"),
        ("from ptodsl import pto\n@pto.jit()\ndef k():\n    pass\nk[1, None]\n", "launched in the module text"),
        ("from ptodsl import pto\npto.const(1)\n", "may not stand in module level"),
        ("from ptodsl import pto\n@pto.simt(32, 1, 1)\ndef f():\n    pass\n", "no decorated pto.simt"),
    ],
)
def test_module_faults(text: str, message: str):
    with pytest.raises(SimulationError, match=message):
        record_module(text)
