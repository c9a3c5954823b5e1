"""Where values are computed and which get names: the printed form of small hand-made kernels."""

from __future__ import annotations

import re

import pytest
from tir_builder import access, immediate, op, pointer, sequence, simd_block, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of


def body_of(mod) -> list[str]:
    """Lines of the kernel body, without the header."""
    text = emit_module(mod, surface=surface_of("2026-09")).text
    return [line.strip() for line in text.split("):\n", 1)[1].splitlines() if line.strip()]


def copy_flag(value):
    return tirx.Evaluate(op("tl.ascend_set_flag", "handle", "V_MTE3", value))


def loop(name, extent, make, kind=tirx.ForKind.SERIAL):
    var = tirx.Var(name, "int32")
    return tirx.For(var, immediate(0), immediate(extent) if isinstance(extent, int) else extent, kind, make(var))


def test_value_used_once_is_printed_in_place():
    lines = body_of(vector_kernel("k", (), lambda bx: copy_flag(bx % 4), cores=64))
    assert lines[-1] == 'pto.set_flag("V", "MTE3", event_id=core_id % 4)' or "pto.cast(pto.get_block_idx(), pto.i32) % 4" in lines[-1]


def test_value_used_twice_gets_one_name():
    lines = body_of(vector_kernel("k", (), lambda bx: sequence(copy_flag(bx % 4), copy_flag(bx % 4)), cores=64))
    (definition,) = [line for line in lines if "% 4" in line]
    used = definition.split(" = ")[0]
    assert sum(f"event_id={used})" in line for line in lines) == 2


def test_loop_invariant_is_computed_in_front_of_the_loop():
    lines = body_of(vector_kernel("k", (), lambda bx: loop("i", 10, lambda i: copy_flag((bx % 3 + i) % 8)), cores=64))
    position = next(n for n, line in enumerate(lines) if "% 3" in line)
    assert position < next(n for n, line in enumerate(lines) if line.startswith("with pto.for_"))


def test_division_that_may_trap_stays_in_its_branch():
    n = tirx.Var("n", "int32")
    guarded = tirx.IfThenElse(n > 0, copy_flag(tirx.FloorMod(immediate(5), n)), None)
    lines = body_of(vector_kernel("k", [n], lambda _: guarded))
    assert next(i for i, line in enumerate(lines) if "%" in line or "//" in line) > next(
        i for i, line in enumerate(lines) if "pto.if_" in line
    )


def test_loads_are_not_moved_over_stores_to_the_same_array():
    a, out = pointer("a", "int32"), pointer("out", "int32")

    def body(tx):
        first = tirx.Var("first", "int32")
        return sequence(
            tirx.Bind(first, tirx.BufferLoad(view(a, "int32", 8), [tx])),
            tirx.BufferStore(view(a, "int32", 8), immediate(7), [tx]),
            tirx.BufferStore(view(out, "int32", 8), first, [tx]),
        )

    lines = body_of(vector_kernel("k", [a, out], lambda _: simt_block(8, body)))
    load, store_a, store_out = (
        next(i for i, line in enumerate(lines) if re.search(p, line)) for p in (r"pto\.load\(a", r"store\(.*, a,", r"store\(.*, out,")
    )
    assert load < store_a < store_out
    assert "pto.load" not in lines[store_out]


def test_load_is_repeated_after_a_store():
    a, out = pointer("a", "int32"), pointer("out", "int32")

    def body(tx):
        cell = view(a, "int32", 8)
        bump = tirx.BufferStore(cell, tirx.BufferLoad(cell, [tx]) + 1, [tx])
        return sequence(bump, tirx.BufferStore(view(out, "int32", 8), tirx.BufferLoad(cell, [tx]), [tx]))

    lines = body_of(vector_kernel("k", [a, out], lambda _: simt_block(8, body)))
    assert sum("pto.load(a" in line for line in lines) == 2


def test_carry_only_what_is_needed_later():
    """A counter read in the next round is carried; a register written before it is read is not."""
    counter = tirx.decl_buffer((1,), "int32", name="counter", scope="local.var")
    scratch = tirx.decl_buffer((1,), "int32", name="scratch", scope="local.var")

    def at(buffer):
        return tirx.BufferLoad(buffer, [immediate(0)])

    def put(buffer, value):
        return tirx.BufferStore(buffer, value, [immediate(0)])

    inner = lambda i: sequence(put(scratch, i + at(counter)), copy_flag(at(scratch) % 8), put(counter, at(counter) + 1))  # noqa: E731
    whole = sequence(tirx.AllocBuffer(counter), tirx.AllocBuffer(scratch), put(counter, immediate(0)), loop("i", 5, inner))
    text = "\n".join(body_of(vector_kernel("k", (), lambda _: whole)))
    assert ".carry(counter=pto.const(0, dtype=pto.i32))" in text
    assert "scratch" not in text


@pytest.mark.parametrize("taken", [True, False])
def test_branch_on_a_constant_is_decided(taken):
    guarded = tirx.IfThenElse(tirx.const(taken, "bool"), copy_flag(1), copy_flag(2))
    assert body_of(vector_kernel("k", (), lambda _: guarded)) == [f'pto.set_flag("V", "MTE3", event_id={1 if taken else 2})']


def test_merge_keeps_the_old_value_on_the_other_path():
    counter = tirx.decl_buffer((1,), "int32", name="counter", scope="local.var")
    n = tirx.Var("n", "int32")
    here = lambda: tirx.BufferLoad(counter, [immediate(0)])  # noqa: E731
    whole = sequence(
        tirx.AllocBuffer(counter),
        tirx.BufferStore(counter, immediate(3), [immediate(0)]),
        tirx.IfThenElse(n > 4, tirx.BufferStore(counter, here() + n, [immediate(0)]), None),
        copy_flag(here() % 8),
    )
    text = "\n".join(body_of(vector_kernel("k", [n], lambda _: whole)))
    assert "br.assign(counter=n + 3)" in text
    assert "br.assign(counter=pto.const(3, dtype=pto.i32))" in text


def test_same_register_arithmetic_is_done_once():
    buffer = tirx.decl_buffer((256,), "float32", name="ub", scope="shared.dyn")
    mask = op("tl.simd.pset", "boolx256", 32, "PAT_ALL")
    row = lambda i: access(buffer.data, "float32", i * 64, 64)  # noqa: E731
    doubled = lambda: op("tl.simd.vadd", "float32x64", *[op("tl.simd.vld", "float32x64", row(0), "NORM")] * 2, mask, "MODE_ZEROING")  # noqa: E731
    total = op("tl.simd.vmul", "float32x64", doubled(), doubled(), mask, "MODE_ZEROING")
    body = simd_block(tirx.Evaluate(op("tl.simd.vsts", "handle", row(1), total, mask, "NORM_B32")))
    text = "\n".join(body_of(vector_kernel("k", (), lambda _: sequence(tirx.AllocBuffer(buffer), body))))
    assert text.count("pto.vlds(") == 1
    assert text.count("pto.vadd(") == 1


def test_source_positions_become_comments():
    """TIR expressions may carry spans; the first statement of a source line gets a comment."""
    import tvm

    def flag(line, number):
        span = tvm.ir.Span(tvm.ir.SourceName("kernels.py"), line, line, 1, 2)
        plain = op("tl.ascend_set_flag", "handle", "V_MTE3", number)
        return tirx.Evaluate(tirx.Call("handle", plain.op, list(plain.args), span=span))

    mod = vector_kernel("k", (), lambda _: sequence(flag(7, 0), flag(7, 1), flag(9, 2)))
    lines = body_of(mod)
    assert [line for line in lines if line.startswith("#")] == ["# kernels.py:7", "# kernels.py:9"]
    assert lines.index("# kernels.py:9") == lines.index('pto.set_flag("V", "MTE3", event_id=2)') - 1
