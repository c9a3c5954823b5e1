"""Defects that in-tree generators of PTODSL have or had, one test each, so that none of them comes back here.

D1   signed division printed as PTODSL's ``//``           test_truncating_division_*, test_floor_division_*
D2   shifts by the sign bit, dynamic shifts               test_shift_left_reaches_the_sign_bit, test_shifts_by_a_runtime_amount
D3   nd2nz scatter takes bytes for halves                 test_changes_of_layout_know_the_width_of_elements
D4   nd2nz masks that do not exist, unrolled passes       test_changes_of_layout_are_loops
D5   device assert evaluated while tracing                test_an_assert_statement_is_never_decided_while_tracing
D6   ``~`` and unknown externs die while tracing          test_bitwise_not_is_emitted, test_an_unknown_extern_is_refused
D7   misaligned dynamic UB offsets reach the device       test_a_dynamic_misaligned_offset_is_reported
D8   pad value of a setter that is not on the path        test_a_padding_value_set_elsewhere_is_not_used
D9   precise division loses subnormal quotients           test_precise_division_keeps_subnormal_quotients
D10  helpers use names that are not reserved              test_arguments_may_have_the_names_of_helpers
-    constructs without a rule (grid in y, float64, ...)  test_what_has_no_rule_is_refused_with_advice
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import tvm
from simd_registers import evaluate, full, run_kernel, store
from simt_kernels import SURFACES, emitted, mapped
from tir_builder import access, elementwise, immediate, op, pointer, registers, sequence, thread_extent, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import SimulationError, UnsupportedError
from tilelang_pto.sim import run, session

NUMBERS = np.array([-(2**31) + 1, -100, -7, -6, -3, -2, -1, 0, 1, 2, 3, 6, 7, 100, 2**31 - 1], np.int64)
DIVISORS = (3, 7, 10, -3, -7)


def scalar_results(surface: str, dtype: str, values: np.ndarray, function) -> np.ndarray:
    """``function`` in the kernel body, on the scalar unit: element by element in a loop."""
    a, out, i = pointer("a", dtype), pointer("out", dtype), tirx.Var("i", "int32")
    body = tirx.BufferStore(view(out, dtype, len(values)), function(tirx.BufferLoad(view(a, dtype, len(values)), [i])), [i])
    loop = tirx.For(i, immediate(0), immediate(len(values)), tirx.ForKind.SERIAL, body)
    result = np.zeros(len(values), dtype)
    run(emitted(vector_kernel("k", [a, out], lambda _: loop), surface), "k", values.astype(dtype), result)
    return result


def everywhere(surface: str, dtype: str, function) -> list[np.ndarray]:
    """On the scalar unit, and in SIMT code."""
    return [scalar_results(surface, dtype, NUMBERS, function), mapped(surface, {"a": NUMBERS.astype(dtype)}, dtype, function)]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_truncating_division_of_negative_numbers(surface, dtype, divisor):
    quotients = [math.trunc(int(n) / divisor) for n in NUMBERS]
    for got in everywhere(surface, dtype, lambda x: tirx.Div(x, tirx.IntImm(dtype, divisor))):
        np.testing.assert_array_equal(got, quotients)
    for got in everywhere(surface, dtype, lambda x: tirx.Mod(x, tirx.IntImm(dtype, divisor))):
        np.testing.assert_array_equal(got, [int(n) - q * divisor for n, q in zip(NUMBERS, quotients, strict=True)])


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_floor_division_is_corrected_once(surface, dtype, divisor):
    """As TIR has it, and as its lowering spells it: a truncating division and a correction by the sign of the remainder."""

    def lowered(x):
        d = tirx.IntImm(dtype, divisor)
        wrong_side = tirx.And(tirx.NE(tirx.Mod(x, d), tirx.IntImm(dtype, 0)), tirx.LT(tirx.Mod(x, d) * d, tirx.IntImm(dtype, 0)))
        return tirx.Div(x, d) - tirx.Cast(dtype, wrong_side)

    for make in (lambda x: tirx.FloorDiv(x, tirx.IntImm(dtype, divisor)), lowered):
        for got in everywhere(surface, dtype, make):
            np.testing.assert_array_equal(got, [int(n) // divisor for n in NUMBERS])
    for got in everywhere(surface, dtype, lambda x: tirx.FloorMod(x, tirx.IntImm(dtype, divisor))):
        np.testing.assert_array_equal(got, [int(n) % divisor for n in NUMBERS])


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("dtype", "amount"), [("int32", 31), ("uint32", 31), ("int64", 63), ("int32", 30)])
def test_shift_left_reaches_the_sign_bit(surface, dtype, amount):
    for got in everywhere(surface, dtype, lambda x: op("tirx.shift_left", dtype, x, tirx.IntImm(dtype, amount))):
        np.testing.assert_array_equal(got, NUMBERS.astype(dtype) << np.array(amount, dtype))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_shifts_by_a_runtime_amount(surface, dtype):
    amount = tirx.IntImm(dtype, 31)
    for name, model in (("shift_left", np.left_shift), ("shift_right", np.right_shift)):
        for got in everywhere(surface, dtype, lambda x, name=name: op(f"tirx.{name}", dtype, x, op("tirx.bitwise_and", dtype, x, amount))):
            values = NUMBERS.astype(dtype)
            np.testing.assert_array_equal(got, model(values, values & np.array(31, dtype)))


def change_of_layout(at, rows, columns, ctype):
    return tirx.Evaluate(op("tl.ascend_nd2nz_scatter", "handle", at(0, "uint8"), at(1, "uint8"), rows, columns, ctype, ctype))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("ctype", "size", "columns"),
    [("int8_t", 1, 96), ("uint8_t", 1, 32), ("float8_e4m3_t", 1, 64), ("half", 2, 48), ("bfloat16_t", 2, 16), ("float", 4, 24)],
)
def test_changes_of_layout_know_the_width_of_elements(surface, ctype, size, columns):
    """Columns of 32 bytes one below the other, a block of padding behind each; widths that fill no register included."""
    rows, blocks = 7, columns * size // 32
    values = np.random.default_rng(columns).integers(0, 256, rows * columns * size).astype(np.uint8)
    (got,) = run_kernel(surface, [values], [("uint8", blocks * (rows + 1) * 32)], lambda at: [change_of_layout(at, rows, columns, ctype)])
    expected = values.reshape(rows, blocks, 32).transpose(1, 0, 2)
    np.testing.assert_array_equal(got.reshape(blocks, rows + 1, 32)[:, :rows], expected)


@pytest.mark.parametrize("surface", SURFACES)
def test_changes_of_layout_are_loops(surface):
    """The text does not grow with the rows and columns, and has legal predicates only (the checker knows them)."""
    sizes = set()
    for rows, columns in ((4, 272), (128, 1040)):
        ub = tirx.decl_buffer((200_000,), "uint8", name="ub", scope="shared.dyn")
        at = lambda number, dtype, ub=ub: access(ub.data, dtype, number * 100_000 // 32 * 32, 64)  # noqa: E731
        body = sequence(tirx.AllocBuffer(ub), change_of_layout(at, rows, columns, "bfloat16_t"))
        sizes.add(len(emitted(vector_kernel("k", [], lambda _, body=body: body), surface).splitlines()))
    assert max(sizes) < 60 and max(sizes) - min(sizes) <= 4


def test_an_assert_statement_is_never_decided_while_tracing():
    """A Python ``assert`` in the text would be true for every traced value."""
    n, out = tirx.Var("n", "int32"), pointer("out", "int32")
    check = tirx.AssertStmt(n < 5, tirx.StringImm("RuntimeError"), [tirx.StringImm("too large")])
    body = sequence(check, tirx.BufferStore(view(out, "int32"), n, [immediate(0)]))
    with pytest.raises(UnsupportedError, match="AssertStmt"):
        emit_module(vector_kernel("k", [out, n], lambda _: body), surface=surface_of("2026-09"))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_bitwise_not_is_emitted(surface, dtype):
    for got in everywhere(surface, dtype, lambda x: op("tirx.bitwise_not", dtype, x)):
        np.testing.assert_array_equal(got, ~NUMBERS.astype(dtype))


@pytest.mark.parametrize("call", [tirx.call_extern, tirx.call_pure_extern])
def test_an_unknown_extern_is_refused(call):
    mod = elementwise({"a": "float32"}, "float32", 32, lambda a: call("float32", "frobnicatef", a))
    with pytest.raises(UnsupportedError, match="external function frobnicatef"):
        emit_module(mod, surface=surface_of("2026-09"))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("which", ["load", "store"])
def test_a_dynamic_misaligned_offset_is_reported(surface, which):
    """Nothing is known about ``n`` when the text is written; the simulator sees the address."""
    n, out = tirx.Var("n", "int32"), pointer("out", "float32")
    ub = tirx.decl_buffer((512,), "float32", name="ub", scope="shared.dyn")
    offsets = {"load": (n, 256), "store": (0, n + 256)}[which]
    loaded = op("tl.simd.vld", "float32x64", access(ub.data, "float32", offsets[0], 64), "NORM")
    put = op("tl.simd.vsts", "handle", access(ub.data, "float32", offsets[1], 64), loaded, full("float32"), "NORM_B32")
    scoped = tirx.AttrStmt(tirx.StringImm("simdvf"), "tl.simdvf_scope", tirx.IntImm("int32", 1), tirx.Evaluate(put))
    vector = tirx.SBlock([], [], [], "SIMD_VF", scoped)
    text = emitted(vector_kernel("k", [out, n], lambda _: sequence(tirx.AllocBuffer(ub), vector)), surface)
    with session(check="off"):  # nothing has written what is loaded
        run(text, "k", np.zeros(64, np.float32), 8)
    with session(check="off"), pytest.raises(SimulationError, match=r"misaligned access: address (16|1040) is not a multiple of 32"):
        run(text, "k", np.zeros(64, np.float32), 4)


def test_a_padding_value_set_elsewhere_is_not_used():
    """All setters of the function agree, but none is on every path to the copy."""
    a, n = pointer("a", "int32"), tirx.Var("n", "int32")
    ub = tirx.decl_buffer((64,), "int32", name="ub", scope="shared.dyn")
    setter = tirx.Evaluate(op("tl.ascend_set_copy_pad_value", "handle", immediate(3)))
    source, target = access(a, "int32", 0, 64, 1), access(ub.data, "int32", 0, 64, 2)
    copy = tirx.Evaluate(op("tl.ascend_copy_gm_to_ubuf", "handle", target, source, 0, 1, 20, 0, 3, 1, 0, 24, 32))
    for body in (
        sequence(tirx.AllocBuffer(ub), tirx.IfThenElse(n > 0, setter, None), copy),
        sequence(tirx.AllocBuffer(ub), tirx.IfThenElse(n > 0, setter, copy)),
        sequence(tirx.AllocBuffer(ub), copy, setter),
    ):
        with pytest.raises(UnsupportedError, match=r"padding value"):
            emit_module(vector_kernel("k", [a, n], lambda _, body=body: body), surface=surface_of("2026-09"))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("ulp", ["exact", "perturb:1", "perturb:2"])
def test_precise_division_keeps_subnormal_quotients(surface, ulp, monkeypatch):
    """Quotients below the smallest normal number, from normal and from subnormal operands; the raw operation gives zero for them."""
    monkeypatch.setenv("TILELANG_PTO_ULP", ulp)
    rng = np.random.default_rng(1)
    for low, high in ((-126, -100), (-149, -127)):
        a = (rng.uniform(1, 2, 64) * np.exp2(rng.integers(low, high, 64))).astype(np.float32)
        b = (rng.choice([-1, 1], 64) * rng.uniform(1, 2, 64) * np.exp2(rng.integers(0, 22, 64))).astype(np.float32)
        quotient = lambda x, y: op("tl.simd.vdiv", "float32x64", x, y, full("float32"), "MODE_ZEROING")  # noqa: E731
        got = evaluate(surface, {"a": a, "b": b}, "float32", quotient)
        np.testing.assert_array_equal(got.view(np.int32), (a / b).view(np.int32))
        assert (np.abs(got) < 2.0**-126).sum() > 20


NAMES = ["pto", "scalar", "range", "lambda", "_tl_if_result_0", "a_l0_0", "zero_addr", "vdiv_exact", "k", "__cond_0", "print", "ub", "i32"]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", NAMES)
def test_arguments_may_have_the_names_of_helpers(surface, name):
    a, b = np.arange(1, 65, dtype=np.float32), np.arange(64, 0, -1).astype(np.float32)
    mod = registers({name: "float32", "b": "float32"}, "float32", lambda x, y: op("tl.simd.vdiv", "float32x64", x, y, full("float32"),
                    "MODE_ZEROING"))  # fmt: skip
    text = emitted(mod, surface)
    out = np.zeros(64, np.float32)
    run(text, "map", a, b, out)
    np.testing.assert_array_equal(out, a / b)


CASES = {
    "grid in y": (lambda: vector_kernel("k", [], lambda _: thread_extent("blockIdx.y", "by", 2, tirx.Evaluate)), "blockIdx.y"),
    "float64": (lambda: elementwise({"a": "float64"}, "float64", 32, lambda a: a), "float64"),
    "asynchronous copies": (
        lambda: vector_kernel("k", [], lambda _: tirx.Evaluate(op("tirx.ptx_commit_group", "handle"))),
        "ptx_commit_group",
    ),
    "inverse cosine": (lambda: elementwise({"a": "float32"}, "float32", 32, lambda a: op("tirx.acos", "float32", a)), "tirx.acos"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_has_no_rule_is_refused_with_advice(case):
    make, name = CASES[case]
    with pytest.raises(UnsupportedError) as caught:
        emit_module(make(), surface=surface_of("2026-09"))
    assert name in str(caught.value) and caught.value.advice


@pytest.mark.parametrize("surface", SURFACES)
def test_registers_keep_the_sign_in_reductions_and_shifts(surface):
    """Signedness of vector elements follows the TIR type, not the storage."""
    signed = np.arange(-32, 32, dtype=np.int32)

    def body(at):
        loaded = op("tl.simd.vld", "int32x64", at(0, "int32"), "NORM")
        unsigned = op("tirx.reinterpret", "uint32x64", loaded)
        shift = lambda x, kind: op("tl.simd.vshrs", f"{kind}x64", x, immediate(1), full("int32"), "MODE_ZEROING")  # noqa: E731
        return [
            store(at, 1, "int32", shift(loaded, "int32")),
            store(at, 2, "uint32", shift(unsigned, "uint32")),
            store(at, 3, "int32", tirx.call_intrin("int32x64", tvm.ir.Op.get("tl.simd.vcmax"), loaded, full("int32"), "MODE_ZEROING")),
            store(at, 4, "uint32", tirx.call_intrin("uint32x64", tvm.ir.Op.get("tl.simd.vcmax"), unsigned, full("int32"), "MODE_ZEROING")),
        ]

    outputs = [("int32", 64), ("uint32", 64), ("int32", 64), ("uint32", 64)]
    arithmetic, logical, largest, largest_unsigned = run_kernel(surface, [signed], outputs, body)
    np.testing.assert_array_equal(arithmetic, signed >> 1)
    np.testing.assert_array_equal(logical, signed.view(np.uint32) >> 1)
    assert largest[:2].tolist() == [31, 63] and largest_unsigned[:2].tolist() == [2**32 - 1, 31]
