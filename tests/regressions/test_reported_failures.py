"""Failures that users of this hardware and of sibling backends have met, where they concern vectors, threads or scalars.

``ROWS`` says for every one which tests keep it away: those of this file, or the tests of the family it belongs to.
"""

from __future__ import annotations

import ast
from pathlib import Path

import ml_dtypes  # noqa: F401  (registers bfloat16 with NumPy)
import numpy as np
import pytest
from simd_registers import evaluate, full, load, run_kernel, sample, store
from simt_kernels import SURFACES, emitted, mapped
from tir_builder import access, elementwise_body, immediate, op, pointer, sequence, simd_block, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import SimulationError, UnsupportedError
from tilelang_pto.sim import run, session

TESTS = Path(__file__).resolve().parents[1]
HERE = "regressions/test_reported_failures.py"
ELSEWHERE = "TileLang's own front end and passes"

ROWS: dict[str, tuple[str, ...]] = {
    # kernels of the mHC family
    "A: shift_right has no rule": (f"{HERE}::test_shift_right_is_arithmetic_or_logical_by_type",),
    "B: T.Kernel(threads=) refused by the front end": (ELSEWHERE,),
    "C: local.var of a thread lost after a branch or loop": (f"{HERE}::test_thread_private_scalars_survive_branches_and_loops",),
    "A': bf16 pointers in host code": ("runtime/test_jit.py::test_other_types",),
    "B': expf as an external function": (f"{HERE}::test_sigmoid_written_with_c_names",),
    "C': shared.l1 and other cube scopes": ("codegen/test_cube_rules.py",),
    "D': bf16 values taken for f32": (f"{HERE}::test_element_types_are_tracked_per_value",),
    "C'': cthread, the number of a sub-block": ("codegen/test_cube_rules.py",),
    "D'': a fragment of several layouts": (ELSEWHERE,),
    "G': copies GM to L1": ("codegen/test_cube_rules.py",),
    "H': storage_sync of buffer versions": ("codegen/test_sync.py",),
    "A' numeric: pipelined without flags": ("sim/test_engine_sync.py", "kernels/test_mhc_expand.py"),
    "ABI: one scalar more on the device": (f"{HERE}::test_runtime_scalars_arrive_wherever_they_stand", "test_shape_parameters.py"),
    "nd2nz= keyword": (ELSEWHERE, "regressions/test_generator_defects.py::test_changes_of_layout_know_the_width_of_elements"),
    "bf16 local buffers": ("codegen/test_simt_vectors.py::test_private_arrays_of_every_dtype",),
    "all-reduce: only sum": ("codegen/test_all_reduce.py",),
    "environment: wrong or old target variables": ("test_target.py", "test_backend.py"),
    "environment: launch arguments not checked": ("runtime/test_jit.py::test_wrong_arguments_are_refused_by_name",),
    # sibling backends
    "scalar-indexed local pointer": (f"{HERE}::test_address_of_an_element_is_the_element",),
    "shared-memory atomics missing": ("codegen/test_simt_atomics.py::test_on_ub",),
    "index depends on a dynamic loop variable": (f"{HERE}::test_private_arrays_take_dynamic_indices",),
    "scratch overlaps": ("codegen/test_unsupported.py::test_refused",),
    "layout-sensitive pass or fail": ("codegen/test_control_fuzz.py",),
    "masked load ignores its other value": (f"{HERE}::test_guarded_loads_keep_the_false_value",),
    "capacity": ("codegen/test_unsupported.py::test_refused",),
    "second runtime scalar lost": (f"{HERE}::test_runtime_scalars_arrive_wherever_they_stand",),
    "arithmetic on packed carriers of bf16": ("codegen/test_simt_vectors.py::test_arithmetic",),
    "zero or negative count before a modulo": ("codegen/test_scalar_arithmetic.py::test_divisions_of_runtime_values",),
    "float64 absent": ("codegen/test_unsupported.py::test_refused",),
    # the older PTO target
    "vector of an arithmetic progression ignores its step": (f"{HERE}::test_progressions_are_honoured_or_refused",),
    "guarded load and dynamic slice of a tail": (f"{HERE}::test_a_dynamic_tail_is_neither_read_nor_written",),
    "UB reused before pipes have finished, event id 9": ("codegen/test_unsupported.py::test_refused", "sim/test_engine_sync.py"),
    "sync state of a branch used after it": (f"{HERE}::test_a_flag_set_in_a_branch_not_taken_is_a_deadlock",),
    "rows narrower than 32 bytes": ("codegen/test_transfers.py::test_rows_are_padded_to_blocks_with_a_value",),
    "atomic add from UB to GM": ("codegen/test_transfers.py::test_accumulating_stores",),
    "axpy with mixed element types": (f"{HERE}::test_operands_of_mixed_types_are_refused",),
    "half of the operations lose arguments": ("codegen/test_coverage.py", "codegen/test_unsupported.py::test_refused"),
    # PTOAS and PTODSL
    "names born in a loop around a vecscope": (f"{HERE}::test_values_born_in_a_loop_around_a_vector_function",),
    "section-local names carried by a loop": ("codegen/test_simd_gather.py::test_strided_stores_through_a_handle_in_a_loop",),
    "while-carried name assigned in a branch before": (f"{HERE}::test_a_variable_assigned_in_a_branch_and_carried_by_a_while",),
    "pointers as loop carries": (f"{HERE}::test_no_pointer_is_carried_by_a_loop",),
    "kernel kind ambiguous": (f"{HERE}::test_the_kind_of_a_kernel_is_always_stated",),
    "UB read out of bounds seen as a wrong result": (f"{HERE}::test_a_load_past_the_end_of_ub_is_reported",),
    "mask granularity of 8 and 16 bits": (f"{HERE}::test_masks_have_the_granularity_of_their_elements",),
    "operand order of multiply-add": ("codegen/test_simd_fused.py",),
    "vabs loses its mask": (f"{HERE}::test_inactive_lanes_are_zero",),
    "strided block loads": ("codegen/test_simd_gather.py", "sim/test_run_gather.py"),
    "alloc_buffer outside SIMT": (f"{HERE}::test_private_arrays_of_the_scalar_unit_are_refused_with_advice",),
    "conversions ignore the rounding asked for": ("codegen/test_simd_conversions.py", "sim/test_run_conversions.py"),
    # others
    "unsigned bytes are sign-extended": (f"{HERE}::test_narrow_unsigned_values_are_not_sign_extended",),
    "bf16 missing in a simulator": ("sim/test_run_ops.py",),
    "a carried register loses its value": (f"{HERE}::test_a_register_carried_by_nested_loops_keeps_its_value",),
}


def test_every_row_has_tests_that_exist():
    for row, targets in ROWS.items():
        for target in targets:
            if target == ELSEWHERE:
                continue
            file, _, name = target.partition("::")
            assert (TESTS / file).is_file(), row
            functions = {node.name for node in ast.parse((TESTS / file).read_text()).body if isinstance(node, ast.FunctionDef)}
            assert name in functions if name else any(function.startswith("test_") for function in functions), row


def test_every_test_belongs_to_a_row():
    named = {target.partition("::")[2] for targets in ROWS.values() for target in targets if target.startswith(HERE)}
    own = {node.name for node in ast.parse(Path(__file__).read_text()).body if isinstance(node, ast.FunctionDef)}
    assert {name for name in own if name.startswith("test_") and not name.startswith("test_every_")} == named


def var(name: str, dtype: str = "int32") -> tirx.Buffer:
    return tirx.decl_buffer((1,), dtype, name=name, scope="local.var")


def get(buffer, index=0):
    return tirx.BufferLoad(buffer, [immediate(index)])


def put(buffer, value, index=0):
    return tirx.BufferStore(buffer, immediate(value), [immediate(index)])


def loop(extent, make, kind=tirx.ForKind.SERIAL):
    index = tirx.Var("i", "int32")
    return tirx.For(index, immediate(0), immediate(extent), kind, make(index))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_shift_right_is_arithmetic_or_logical_by_type(surface, dtype):
    info = np.iinfo(dtype)
    a = np.array([info.min, info.max, 1, 5, info.max - 7, info.min + 3], dtype)
    amounts = np.array([0, 1, 3, info.bits - 1, 2, info.bits - 2], dtype)
    got = mapped(surface, {"a": a, "n": amounts}, dtype, lambda x, n: op("tirx.shift_right", dtype, x, n))
    np.testing.assert_array_equal(got, a >> amounts)
    got = mapped(surface, {"a": a}, dtype, lambda x: op("tirx.shift_right", dtype, x, tirx.IntImm(dtype, 3)))
    np.testing.assert_array_equal(got, a >> np.array(3, dtype))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16", "int64"])
def test_thread_private_scalars_survive_branches_and_loops(surface, dtype):
    a = np.arange(64, dtype=np.int32)
    sums, last = var("sums", dtype), var("last", dtype)

    def body(tx, loads, out):
        (x,) = loads
        one = tirx.const(1, dtype)
        step = tirx.IfThenElse(
            tirx.FloorMod(x, immediate(3)).equal(immediate(0)),
            sequence(put(sums, get(sums) + one + one), put(last, get(sums))),
            put(sums, get(sums) + one),
        )
        rounds = loop(4, lambda i: tirx.IfThenElse(i < tirx.FloorMod(x, immediate(5)), step, None))
        zero = tirx.const(0, dtype)
        return sequence(
            tirx.AllocBuffer(sums), tirx.AllocBuffer(last), put(sums, zero), put(last, zero), rounds,
            tirx.BufferStore(out, get(sums) * tirx.const(16, dtype) + get(last), [tx]),
        )  # fmt: skip

    text = emitted(elementwise_body({"a": "int32"}, dtype, 64, body), surface)
    out = np.zeros(64, dtype)
    run(text, "map", a, out)
    rounds = np.minimum(a % 5, 4)
    sums_model = rounds * np.where(a % 3 == 0, 2, 1)
    expected = sums_model * 16 + np.where(a % 3 == 0, sums_model, 0)
    np.testing.assert_array_equal(out.astype(np.float64), expected)


@pytest.mark.parametrize("surface", SURFACES)
def test_sigmoid_written_with_c_names(surface):
    a = np.linspace(-20, 20, 200, dtype=np.float32)
    one = tirx.FloatImm("float32", 1.0)
    got = mapped(surface, {"a": a}, "float32", lambda x: one / (one + tirx.call_pure_extern("float32", "expf", -x)))
    np.testing.assert_allclose(got, 1 / (1 + np.exp(-a.astype(np.float64))), rtol=5e-7)


@pytest.mark.parametrize("surface", SURFACES)
def test_element_types_are_tracked_per_value(surface):
    """bf16 operands of f32 arithmetic are converted, in threads and in registers; results are rounded once, at the store."""
    kind = np.dtype("bfloat16")
    a, b = (np.random.default_rng(k).normal(size=64).astype(np.float32) for k in (1, 2))
    a16 = a.astype(kind)
    wide = mapped(surface, {"a": a16, "b": b}, "bfloat16", lambda x, y: tirx.Cast("bfloat16", tirx.Cast("float32", x) * y + y))
    np.testing.assert_array_equal(wide.astype(np.float32), (a16.astype(np.float32) * b + b).astype(kind).astype(np.float32))
    registers = np.tile(a16, 2)
    convert = lambda x: op("tl.simd.vcvt", "float32x64", x, full("bfloat16"), "PART_EVEN", "MODE_ZEROING")  # noqa: E731
    got = evaluate(surface, {"a": registers, "b": b}, "float32", lambda x, y: op("tl.simd.vmul", "float32x64", convert(x), y,
                   full("float32"), "MODE_ZEROING"))  # fmt: skip
    np.testing.assert_array_equal(got, registers[::2].astype(np.float32) * b)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("order", ["scalars first", "between", "scalars last", "mixed"])
def test_runtime_scalars_arrive_wherever_they_stand(surface, order):
    a, out = pointer("a", "float32"), pointer("out", "float32")
    n, m, s = tirx.Var("n", "int32"), tirx.Var("m", "int64"), tirx.Var("s", "float32")
    params = {
        "scalars first": [n, m, s, a, out],
        "between": [a, n, m, s, out],
        "scalars last": [a, out, n, m, s],
        "mixed": [n, a, s, out, m],
    }
    values = {"n": 7, "m": 2**33 + 5, "s": 0.75, "a": np.arange(64, dtype=np.float32), "out": np.zeros(64, np.float32)}

    def body(tx):
        value = tirx.BufferLoad(view(a, "float32", 64), [tx]) * s
        count = tirx.Cast("float32", tirx.Cast("int32", tirx.FloorDiv(m, tirx.IntImm("int64", 2**30))))
        return tirx.BufferStore(view(out, "float32", 64), tirx.Select(tx < n, value, count), [tx])

    mod = vector_kernel("k", params[order], lambda _: simt_block(64, body))
    run(emitted(mod, surface), "k", *(values[p.name] for p in params[order]))
    np.testing.assert_array_equal(values["out"], np.where(np.arange(64) < 7, np.arange(64) * 0.75, 8).astype(np.float32))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("base", ["constant", "scalar", "thread"])
def test_address_of_an_element_is_the_element(surface, base):
    """A pointer to ``b[k + offset]`` is that element, whatever ``k`` is: for an atomic on UB."""
    a, out, k = pointer("a", "int32"), pointer("out", "int32"), tirx.Var("k", "int32")
    ub = tirx.decl_buffer((256,), "int32", name="ub", scope="shared.dyn")
    start = {"constant": lambda tx: immediate(3), "scalar": lambda tx: k, "thread": lambda tx: tirx.FloorMod(tx, immediate(8))}[base]

    def body(tx):
        zero = tirx.BufferStore(ub, immediate(0), [tx])
        address = access(ub.data, "int32", start(tx) + tirx.FloorDiv(tx, immediate(16)), 1)
        value = tirx.BufferLoad(view(a, "int32", 64), [tx])
        add = tirx.Evaluate(op("tl.atomic_add_elem_op", "int32", address, value, 0))
        sync = tirx.Evaluate(op("tirx.tvm_storage_sync", "int32", "shared"))
        return sequence(zero, sync, add, sync, tirx.BufferStore(view(out, "int32", 64), tirx.BufferLoad(ub, [tx]), [tx]))

    mod = vector_kernel("k", [a, k, out], lambda _: sequence(tirx.AllocBuffer(ub), simt_block(64, body)))
    values, result = np.arange(1, 65, dtype=np.int32), np.zeros(64, np.int32)
    run(emitted(mod, surface), "k", values, 5, result)
    tx = np.arange(64)
    expected = np.zeros(64, np.int64)
    np.add.at(expected, {"constant": 3, "scalar": 5, "thread": tx % 8}[base] + tx // 16, values)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_private_arrays_take_dynamic_indices(surface, dtype):
    local = tirx.decl_buffer((8,), dtype, name="local", scope="local")

    def body(tx, loads, out):
        (x,) = loads
        fill = loop(8, lambda i: tirx.BufferStore(local, tirx.Cast(dtype, i * 2), [tirx.FloorMod(i + x, immediate(8))]))
        return sequence(
            tirx.AllocBuffer(local), fill, tirx.BufferStore(out, tirx.BufferLoad(local, [tirx.FloorMod(x, immediate(5))]), [tx])
        )

    a, out = np.arange(64, dtype=np.int32), np.zeros(64, dtype)
    run(emitted(elementwise_body({"a": "int32"}, dtype, 64, body), surface), "map", a, out)
    np.testing.assert_array_equal(out.astype(np.int64), (a % 5 - a) % 8 * 2)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
def test_guarded_loads_keep_the_false_value(surface, dtype):
    """Where the guard is false nothing is read: the argument ends there."""
    a, out, n = pointer("a", dtype), pointer("out", dtype), tirx.Var("n", "int32")

    def body(tx):
        value = tirx.if_then_else(tx < n, tirx.BufferLoad(view(a, dtype, 64), [tx]), tirx.const(9, dtype))
        return tirx.BufferStore(view(out, dtype, 64), value, [tx])

    text = emitted(vector_kernel("k", [a, out, n], lambda _: simt_block(64, body)), surface)
    for count in (0, 1, 33, 64):
        values, result = np.arange(1, count + 1).astype(dtype), np.zeros(64, dtype)
        run(text, "k", values, result, count)
        np.testing.assert_array_equal(result.astype(np.float32), np.r_[np.arange(1, count + 1), np.full(64 - count, 9)].astype(np.float32))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "int16", "int8"])
def test_progressions_are_honoured_or_refused(surface, dtype):
    count = 256 // np.dtype(dtype).itemsize

    def progression(order):
        make = lambda at: [store(at, 0, dtype, op("tl.simd.vci", f"{dtype}x{count}", immediate(-5), order))]  # noqa: E731
        return run_kernel(surface, [], [(dtype, count)], make)[0]

    np.testing.assert_array_equal(progression("INC_ORDER"), (np.arange(count) - 5).astype(dtype))
    with pytest.raises(UnsupportedError, match=r"INC_BY_2 as argument order of tl\.simd\.vci"):
        progression("INC_BY_2")


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("count", [1, 7, 63, 64, 65, 100])
def test_a_dynamic_tail_is_neither_read_nor_written(surface, count):
    a, out, n = pointer("a", "float32"), pointer("out", "float32"), tirx.Var("n", "int32")

    def body(tx):
        def step(i):
            place = i * 64 + tx
            moved = tirx.BufferStore(view(out, "float32", 128), tirx.BufferLoad(view(a, "float32", 128), [place]) + 1.0, [place])
            return tirx.IfThenElse(place < n, moved, None)

        return loop(2, step)

    text = emitted(vector_kernel("k", [a, out, n], lambda _: simt_block(64, body)), surface)
    values, result = np.arange(count, dtype=np.float32), np.full(count, -1, np.float32)
    run(text, "k", values, result, count)
    np.testing.assert_array_equal(result, values + 1)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_flag_set_in_a_branch_not_taken_is_a_deadlock(surface):
    """And one set in a branch that is taken, but waited for only in another, is left over."""
    n = tirx.Var("n", "int32")
    flag = lambda verb: tirx.Evaluate(op(f"tl.ascend_{verb}_flag", "handle", "MTE2_V", 0))  # noqa: E731
    text = emitted(vector_kernel("k", [n], lambda _: sequence(tirx.IfThenElse(n > 0, flag("set"), None), flag("wait"))), surface)
    run(text, "k", 1)
    with pytest.raises(SimulationError, match="deadlock"):
        run(text, "k", 0)
    text = emitted(vector_kernel("k", [n], lambda _: sequence(flag("set"), tirx.IfThenElse(n > 0, flag("wait"), None))), surface)
    run(text, "k", 1)
    with pytest.raises(SimulationError, match="left set"):
        run(text, "k", 0)


@pytest.mark.parametrize("names", [("float32", "float16"), ("float16", "float32"), ("int32", "uint32")])
def test_operands_of_mixed_types_are_refused(names):
    with pytest.raises(UnsupportedError, match="vadd of"):
        run_kernel("2026-09", [sample(name) for name in names], [("float32", 64)], lambda at: [
            store(at, 2, names[0], op("tl.simd.vadd", load(at, 0, names[0]).dtype, load(at, 0, names[0]), load(at, 1, names[1]),
                  full(names[0]), "MODE_ZEROING"))])  # fmt: skip


@pytest.mark.parametrize("surface", SURFACES)
def test_values_born_in_a_loop_around_a_vector_function(surface):
    """Each round has its own bound values, offsets and registers; nothing of them is carried."""
    a, out = pointer("a", "float32"), pointer("out", "float32")
    ub = tirx.decl_buffer((256,), "float32", name="ub", scope="shared.dyn")

    def flag(verb, event):
        return tirx.Evaluate(op(f"tl.ascend_{verb}_flag", "handle", event, 0))

    def copy(name, target, source, size, *strides):
        return tirx.Evaluate(op(f"tl.ascend_copy_{name}", "handle", target, source, 0, 1, size, *strides))

    def round_(i):
        row, register = tirx.Var("row", "int32"), tirx.Var("register", "float32x64")
        part = access(ub.data, "float32", row, 64)
        gm = lambda data: access(data, "float32", row, 64)  # noqa: E731
        twice = op("tl.simd.vadd", "float32x64", register, register, full("float32"), "MODE_ZEROING")
        kept = tirx.Evaluate(op("tl.simd.vsts", "handle", part, twice, full("float32"), "NORM_B32"))
        return sequence(
            tirx.Bind(row, i * 64),
            copy("gm_to_ubuf", part, gm(a), 256, 0, 0, 0, 0, 256, 256),
            flag("set", "MTE2_V"),
            flag("wait", "MTE2_V"),
            simd_block(tirx.Bind(register, op("tl.simd.vld", "float32x64", part, "NORM")), kept),
            flag("set", "V_MTE3"),
            flag("wait", "V_MTE3"),
            copy("ubuf_to_gm", gm(out), part, 256, 4, 256, 256),
            flag("set", "MTE3_MTE2"),
            flag("wait", "MTE3_MTE2"),
        )

    text = emitted(vector_kernel("k", [a, out], lambda _: sequence(tirx.AllocBuffer(ub), loop(4, round_))), surface)
    values, result = np.random.default_rng(0).normal(size=256).astype(np.float32), np.zeros(256, np.float32)
    run(text, "k", values, result)
    np.testing.assert_array_equal(result, values * 2)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_variable_assigned_in_a_branch_and_carried_by_a_while(surface):
    n, out = tirx.Var("n", "int32"), pointer("out", "int32")
    x, dead = var("x"), var("dead")
    body = sequence(
        tirx.AllocBuffer(x),
        tirx.AllocBuffer(dead),
        tirx.IfThenElse(n > 3, sequence(put(x, 100), put(dead, 5)), None),
        tirx.While(tirx.And(get(x) < 120, get(dead) < 12), sequence(put(x, get(x) + 7), put(dead, get(dead) + 1))),
        tirx.BufferStore(view(out, "int32"), get(x), [immediate(0)]),
    )
    text = emitted(vector_kernel("k", [out, n], lambda _: body), surface)
    for count, expected in ((0, 84), (4, 121)):
        result = np.zeros(1, np.int32)
        run(text, "k", result, count)
        assert result[0] == expected


def carrying_kernel():
    """A vector function with nested loops that carry a register and move through UB."""
    acc = tirx.decl_buffer((1,), "float32x64", name="acc", scope="local.var")
    one = tirx.FloatImm("float32", 1.0)

    def body(at):
        def row(i):
            def add(j):
                loaded = op("tl.simd.vld", "float32x64", at(0, "float32", (i * 2 + j) * 64), "NORM")
                return put(acc, op("tl.simd.vadd", "float32x64", get(acc), loaded, full("float32"), "MODE_ZEROING"))

            return sequence(loop(2, add), store(at, 1, "float32", get(acc), i * 64))

        start = put(acc, op("tl.simd.vdup", "float32x64", one, full("float32"), "MODE_ZEROING"))
        return [tirx.AllocBuffer(acc), start, loop(2, row)]

    return body


@pytest.mark.parametrize("surface", SURFACES)
def test_a_register_carried_by_nested_loops_keeps_its_value(surface):
    values = np.random.default_rng(4).normal(size=256).astype(np.float32)
    (got,) = run_kernel(surface, [values], [("float32", 128)], carrying_kernel())
    rows = values.reshape(4, 64)
    first = (np.float32(1) + rows[0]) + rows[1]
    np.testing.assert_array_equal(got, np.r_[first, (first + rows[2]) + rows[3]])


@pytest.mark.parametrize("surface", SURFACES)
def test_no_pointer_is_carried_by_a_loop(surface, monkeypatch):
    from tilelang_pto.sim import record_module

    texts = []
    monkeypatch.setattr("simd_registers.run", lambda text, *rest: texts.append(text))
    run_kernel(surface, [np.zeros(256, np.float32)], [("float32", 128)], carrying_kernel())

    (function,) = record_module(texts[0], "k.py", surface).functions
    loops = [inner for outer in function.body.operations for inner in outer.walk() if inner.opcode in ("for", "while")]
    carried = [function.types[value] for loop in loops for value in loop.results]
    assert len(loops) == 2 and [kind.kind for kind in carried] == ["vreg"] * 2, carried


@pytest.mark.parametrize("surface", SURFACES)
def test_the_kind_of_a_kernel_is_always_stated(surface):
    flag = lambda verb: tirx.Evaluate(op(f"tl.ascend_{verb}_flag", "handle", "S_MTE2", 0))  # noqa: E731
    text = emitted(vector_kernel("k", [], lambda _: sequence(flag("set"), flag("wait"))), surface)
    assert 'kernel_kind="vector"' in text.replace("'", '"')


@pytest.mark.parametrize("surface", SURFACES)
def test_a_load_past_the_end_of_ub_is_reported(surface):
    n = tirx.Var("n", "int32")
    ub = tirx.decl_buffer((256,), "float32", name="ub", scope="shared.dyn")
    loaded = op("tl.simd.vld", "float32x64", access(ub.data, "float32", n * 64, 64), "NORM")
    kept = tirx.Evaluate(op("tl.simd.vsts", "handle", access(ub.data, "float32", 0, 64), loaded, full("float32"), "NORM_B32"))
    text = emitted(vector_kernel("k", [n], lambda _: sequence(tirx.AllocBuffer(ub), simd_block(kept))), surface)
    with session(check="off"):  # nothing has written what is loaded
        run(text, "k", 3)
    with pytest.raises(SimulationError, match="UB access out of bounds"):
        run(text, "k", 256 * 1024 // 256)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "float16", "int32", "float32"])
def test_masks_have_the_granularity_of_their_elements(surface, dtype):
    """Compare, select, masked arithmetic and masked stores of every width."""
    a, b = sample(dtype, 1), sample(dtype, 2)
    count, kind = a.size, f"{dtype}x{a.size}"

    def body(at):
        x, y = load(at, 0, dtype), load(at, 1, dtype)
        less = op("tl.simd.vcmp", "boolx256", x, y, full(dtype), "lt")
        pick = op("tl.simd.vsel", kind, x, y, less)
        return [
            store(at, 2, dtype, pick),
            store(at, 3, dtype, op("tl.simd.vmax", kind, x, y, less, "MODE_ZEROING")),
            store(at, 4, dtype, x, mask=less),
        ]

    pick, masked, kept = run_kernel(surface, [a, b], [(dtype, count)] * 3, body)
    np.testing.assert_array_equal(pick, np.where(a < b, a, b))
    np.testing.assert_array_equal(masked, np.where(a < b, b, 0))
    np.testing.assert_array_equal(kept, np.where(a < b, a, 0))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", ["vabs", "vneg"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "float16", "float32"])
def test_inactive_lanes_are_zero(surface, name, dtype):
    a = sample(dtype)
    odd = np.arange(a.size) % 3 == 0
    selector = np.where(odd, 1, 0).astype(dtype)

    def body(at):
        mask = op("tl.simd.vcmps", "boolx256", load(at, 1, dtype), tirx.const(0, dtype), full(dtype), "ne")
        return [store(at, 2, dtype, op(f"tl.simd.{name}", f"{dtype}x{a.size}", load(at, 0, dtype), mask, "MODE_ZEROING"))]

    (got,) = run_kernel(surface, [a, selector], [(dtype, a.size)], body)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, np.where(odd, np.abs(a) if name == "vabs" else -a, 0).astype(dtype))


@pytest.mark.parametrize("surface", SURFACES)
def test_private_arrays_of_the_scalar_unit_are_refused_with_advice(surface):
    local = tirx.decl_buffer((4,), "int32", name="local", scope="local")
    mod = vector_kernel("k", [], lambda _: sequence(tirx.AllocBuffer(local), put(local, 1, 2)))
    with pytest.raises(UnsupportedError, match="scalar array local outside a SIMT vector function") as caught:
        emit_module(mod, surface=surface_of(surface))
    assert "T.SimtVF" in caught.value.advice


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int8", "int16"])
def test_narrow_unsigned_values_are_not_sign_extended(surface, dtype):
    """Loads, comparisons, minima, widening casts and quotients, among threads and on the scalar unit."""
    info = np.iinfo(dtype)
    values = [0, 1, info.max // 2, info.max // 2 + 1, info.max - 1, info.max, info.min]
    a, b = (np.array(column, dtype) for column in zip(*[(x, y) for x in values for y in values], strict=True))
    safe = np.where(b == 0, 3, b).astype(dtype)
    if info.min < 0:
        safe[safe == -1] = 3
    wide = mapped(surface, {"a": a}, "int64", lambda x: tirx.Cast("int64", x))
    np.testing.assert_array_equal(wide, a.astype(np.int64))
    less = mapped(surface, {"a": a, "b": b}, "int32", lambda x, y: tirx.Cast("int32", x < y))
    np.testing.assert_array_equal(less.astype(bool), a < b)
    for node, model in ((tirx.Min, np.minimum), (tirx.Max, np.maximum)):
        np.testing.assert_array_equal(mapped(surface, {"a": a, "b": b}, dtype, node), model(a, b))
    np.testing.assert_array_equal(mapped(surface, {"a": a, "b": safe}, dtype, tirx.FloorDiv), a // safe)
    source, out, i = pointer("source", dtype), pointer("out", "int64"), tirx.Var("i", "int32")
    widened = tirx.Cast("int64", tirx.BufferLoad(view(source, dtype, a.size), [i]))
    body = tirx.For(i, immediate(0), immediate(a.size), tirx.ForKind.SERIAL, tirx.BufferStore(view(out, "int64", a.size), widened, [i]))
    result = np.zeros(a.size, np.int64)
    run(emit_module(vector_kernel("k", [source, out], lambda _: body), surface=surface_of(surface)).text, "k", a, result)
    np.testing.assert_array_equal(result, a.astype(np.int64))
