"""Integer sums are computed once: other widths, other spellings, quotients with their remainders, and what a guard says of them."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tir_builder import access, elementwise, elementwise_body, immediate, op, pointer, sequence, simd_block, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.attributes import EXTENT_PARAMETERS
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

CORES = 64


def emitted(body, *parameters, extents=(), surface="2026-09") -> str:
    """Text of the body of a kernel over 64 cores, without the header."""
    module = vector_kernel("k", parameters, body, cores=CORES)
    if extents:
        module.update_func(module.get_global_var("k"), module["k"].with_attr(EXTENT_PARAMETERS, list(extents)))
    text = emit_module(module, surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    return text.split("):\n", 1)[1]


def int64(value):
    return tirx.Cast("int64", value) if not isinstance(value, int) else tirx.IntImm("int64", value)


def loop(extent, make):
    var = tirx.Var("w", "int32")
    return tirx.For(var, immediate(0), immediate(extent) if isinstance(extent, int) else extent, tirx.ForKind.SERIAL, make(var))


def store(out, index, value):
    return tirx.BufferStore(out, value, [index])


def tokens():
    return tirx.Var("n", "int32"), view(pointer("out", "int64"), "int64", 1 << 20)


def test_a_sum_is_not_computed_again_in_64_bits():
    n, out = tokens()

    def body(bx):
        def tile(w):
            wide = (int64(w) * int64(64) + int64(bx)) * int64(7168)
            return tirx.IfThenElse(w * 64 + bx < n, store(out, w * 64 + bx, wide), None)

        return loop(10, tile)

    text = emitted(body, out.data, n)
    assert text.count("* 64") == 1
    assert "pto.cast(index, pto.i64) * 7168" in text


def test_a_multiple_of_a_sum_is_one_product():
    n, out = tokens()
    text = emitted(
        lambda bx: loop(
            10,
            lambda w: sequence(store(out, w * 64 + bx, int64(1)), store(out, w * 16384 + bx * 256, int64(2))),
        ),
        out.data,
        n,
    )
    assert "* 256" in text
    assert "16384" not in text


def test_quotient_and_remainder_make_the_dividend():
    n, out = tokens()

    def body(bx):
        def tile(w):
            index = w * 64 + bx
            row = tirx.Div(index, n) * n * 4 + tirx.Mod(index, n) * 4
            return store(out, row, int64(1))

        return loop(10, tile)

    text = emitted(body, out.data, n, extents=["n"])
    assert "//" not in text
    assert "%" not in text
    assert "* 4" in text


def test_quotient_and_remainder_of_negative_numbers_stay():
    """``//`` rounds down and ``%`` takes the sign of the dividend: they only belong together from zero on."""
    a, n, out = tirx.Var("a", "int32"), *tokens()
    text = emitted(lambda _: store(out, immediate(0), int64(tirx.FloorDiv(a, n) * n + tirx.Mod(a, n))), out.data, a, n)
    assert "//" in text
    assert "%" in text


def guarded(condition, otherwise=None):
    """``x % n`` and ``x / n`` of a tile index under a condition made of index and n."""
    n, out = tokens()

    def body(bx):
        def tile(w):
            index = w * 64 + bx
            wide = int64(index)
            inside = store(out, tirx.Mod(index, n), tirx.Mod(wide, int64(n)) * int64(512) + tirx.Div(wide, int64(n)))
            return tirx.IfThenElse(condition(index, n), inside, otherwise(out, index, n) if otherwise else None)

        return loop(10, tile)

    return emitted(body, out.data, n, extents=["n"])


GUARDS = {
    "less": lambda x, n: tirx.LT(x, n),
    "greater": lambda x, n: tirx.GT(n, x),
    "at most": lambda x, n: tirx.LE(x, n - 1),
    "not at least": lambda x, n: tirx.Not(tirx.GE(x, n)),
    "and": lambda x, n: tirx.And(tirx.LT(x, 500), tirx.LT(x, n)),
    "stronger": lambda x, n: tirx.LT(x + 1, n),
    "multiple": lambda x, n: tirx.LT(x * 4, n * 4),
    "quotient": lambda x, n: tirx.LT(tirx.Div(x, n), 1),
    "quotient is zero": lambda x, n: tirx.EQ(tirx.FloorDiv(x, n), 0),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_makes_the_remainder_the_number_itself(guard):
    text = guarded(GUARDS[guard])
    assert "%" not in text
    assert "//" not in text


def assumed(condition, behind=None):
    """``bx % n`` under an assumption of bx and n, and perhaps once more behind it."""
    n, out = tokens()

    def body(bx):
        inside = tirx.AttrStmt(condition(bx, n), "tl.assume", tirx.StringImm("promised"), store(out, bx, int64(tirx.Mod(bx, n))))
        return sequence(inside, behind(out, bx, n)) if behind else inside

    return emitted(body, out.data, n, extents=["n"])


@pytest.mark.parametrize("promise", [name for name in GUARDS if "quotient" not in name])  # a division could trap: it is not evaluated
def test_an_assumption_is_as_good_as_a_guard(promise):
    text = assumed(GUARDS[promise])
    assert "%" not in text
    assert "if_" not in text


def test_an_assumption_that_says_nothing_and_one_that_has_ended():
    for condition in (lambda *_: tirx.const(True, "bool"), GUARDS["quotient"], lambda x, n: tirx.LE(x, n)):
        assert assumed(condition).count("%") == 1
    behind = lambda out, bx, n: store(out, immediate(0), int64(tirx.Mod(bx, n)))  # noqa: E731
    assert assumed(GUARDS["less"], behind).count("%") == 1


@pytest.mark.parametrize(
    "guard",
    [
        lambda x, n: tirx.LE(x, n),
        lambda x, n: tirx.LT(x, n + 1),
        lambda x, n: tirx.Or(tirx.LT(x, 500), tirx.LT(x, n)),
        lambda x, n: tirx.GE(x, n),
        lambda x, n: tirx.LT(tirx.Div(x, n), 2),
    ],
)
def test_a_weaker_guard_leaves_the_remainder(guard):
    assert "%" in guarded(guard)


def test_the_other_branch_and_what_follows_know_nothing():
    text = guarded(GUARDS["less"], otherwise=lambda out, index, n: store(out, index, int64(tirx.Mod(index, n))))
    assert text.count("%") == 1
    n, out = tokens()
    after = emitted(
        lambda bx: sequence(tirx.IfThenElse(bx < n, store(out, bx, int64(1)), None), store(out, immediate(0), int64(tirx.Mod(bx, n)))),
        out.data,
        n,
        extents=["n"],
    )
    assert "% n" in after


def test_a_negated_guard_holds_in_the_else_branch():
    text = guarded(lambda x, n: tirx.LT(n, 1), otherwise=lambda out, index, n: store(out, index, int64(0)))
    assert "%" in text
    n, out = tokens()
    body = lambda bx: tirx.IfThenElse(  # noqa: E731
        bx >= n, store(out, immediate(0), int64(0)), store(out, tirx.Mod(bx, n), int64(1))
    )
    assert "%" not in emitted(body, out.data, n, extents=["n"])


@pytest.mark.parametrize("surface", ["2026-08", "2026-09"])
@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 5])
@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparing_a_quotient(surface, name, limit):
    compare = getattr(tirx, name.upper())
    values = np.array([0, 1, 2, 3, 5, 6, 8, 9, 14, 15, 17, 18, 100, -1, -2, -3, -4, -100], "int32")
    for rounding, model in ((tirx.FloorDiv, lambda x: x // 3), (tirx.Div, lambda x: int(x / 3))):
        text = emit_module(
            elementwise({"a": "int32"}, "bool", len(values), lambda x, r=rounding: compare(r(x, 3), immediate(limit))),
            surface=surface_of(surface),
        ).text
        out = np.zeros(len(values), bool)
        run(text, "map", values, out)
        expected = [getattr(operator, name)(model(int(x)), limit) for x in values]
        np.testing.assert_array_equal(out, expected)


def test_comparing_a_quotient_needs_no_division():
    n, out = tokens()
    text = emitted(lambda bx: tirx.IfThenElse(tirx.LT(tirx.FloorDiv(bx, 16), 3), store(out, bx, int64(1)), None), out.data, n)
    assert "< 48" in text
    assert "//" not in text


@pytest.mark.parametrize("surface", ["2026-08", "2026-09"])
def test_left_shifts_may_wrap_and_are_no_products(surface):
    values = np.array([1, 2**29, -(2**30), 2**31 - 1], "int32")

    def both(x):
        shifted = int64(op("tirx.shift_left", "int32", x, 3))
        return shifted * int64(2) + int64(x) * int64(8)

    text = emit_module(elementwise({"a": "int32"}, "int64", len(values), both), surface=surface_of(surface)).text
    out = np.zeros(len(values), "int64")
    run(text, "map", values, out)
    wide = values.astype("int64")
    np.testing.assert_array_equal(out, (values << 3).astype("int64") * 2 + wide * 8)


@pytest.mark.parametrize("surface", ["2026-08", "2026-09"])
def test_what_the_source_might_not_evaluate_says_nothing_of_later_values(surface):
    """``x < 100 && x * 30000000 < 7``: the product overflows where the left side does not hold, and TIR does not compute it there."""
    values = np.array([1, 71, 100, 5000], "int32")

    def body(thread, loads, out):
        x = tirx.Var("x", "int32")
        condition = tirx.And(x < 100, x * 30000000 < 7)
        value = tirx.Select(condition, int64(1), int64(0)) + int64(x) * int64(30000000)
        return sequence(tirx.Bind(x, loads[0]), tirx.BufferStore(out, value, [thread]))

    text = emit_module(elementwise_body({"a": "int32"}, "int64", len(values), body), surface=surface_of(surface)).text
    out = np.zeros(len(values), "int64")
    run(text, "map", values, out)
    np.testing.assert_array_equal(out, values.astype("int64") * 30000000)


def test_constants_of_ub_offsets_belong_to_the_pointer():
    """An address in UB is a constant plus what varies, so each takes one addition; the constant pointers are computed once, in front."""
    n, out = tokens()
    ub = tirx.decl_buffer((4096,), "float32", name="ub", scope="shared.dyn")

    def body(bx):
        def copy(w):
            target, source = access(ub.data, "float32", (w + bx) * 16 + 256, 32, 2), access(out.data, "float32", 0, 32, 1)
            return tirx.Evaluate(op("tl.ascend_copy_gm_to_ubuf", "handle", target, source, 0, 1, 128, 0, 0, 0, 0, 128, 128))

        return sequence(tirx.AllocBuffer(ub), loop(4, copy))

    text = emitted(body, out.data, n)
    assert "ub_256 = pto.addptr(ub, 256)" in text.split("pto.for_")[0]
    assert "+ 256" not in text


@pytest.mark.parametrize("surface", ["2026-08", "2026-09"])
def test_a_fixed_offset_needs_no_pointer_of_its_own(surface):
    """An access adds its offset by itself."""
    a, out = view(pointer("a", "int32"), "int32", 256), view(pointer("out", "int32"), "int32", 256)

    def body(bx):
        def thread(_):
            total = tirx.BufferLoad(a, [immediate(5)]) + tirx.BufferLoad(a, [bx * 3 + 1])
            return tirx.BufferStore(out, total, [bx])

        return simt_block(1, thread)

    module = vector_kernel("k", [a.data, out.data], body, cores=CORES)
    text = emit_module(module, surface=surface_of(surface)).text
    assert "addptr" not in text
    values, result = np.arange(256, dtype="int32"), np.zeros(256, "int32")
    run(text, "k", values, result, grid=CORES)
    np.testing.assert_array_equal(result[:CORES], 5 + np.arange(CORES) * 3 + 1)


def test_offsets_of_loop_variables_are_not_converted():
    n, out = tokens()
    ub = tirx.decl_buffer((4096,), "float32", name="ub", scope="shared.dyn")

    def body(bx):
        def move(w):
            loaded = op("tl.simd.vld", "float32x64", access(ub.data, "float32", w * 64 + bx * 16, 64, 1), "NORM")
            target, mask = access(ub.data, "float32", w * 64 + 2048, 64, 2), op("tl.simd.pset", "boolx256", 32, "PAT_ALL")
            return tirx.Evaluate(op("tl.simd.vsts", "handle", target, loaded, mask, "NORM_B32"))

        return sequence(tirx.AllocBuffer(ub), simd_block(loop(4, move)))

    text = emitted(body, out.data, n)
    assert text.count("w * 64") == 1
    assert "pto.cast(w" not in text


_LEAVES = st.sampled_from(["a", "b", "core", 1, 2, 3, 7, 64])
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*"]), inner, inner),
        st.tuples(st.sampled_from(["//", "%", "*"]), inner, st.sampled_from([2, 3, 16, 64])),
    ),
    max_leaves=8,
)


def _tir(tree, leaves, wide):
    if not isinstance(tree, tuple):
        value = leaves.get(tree, immediate(tree) if isinstance(tree, int) else None)
        return int64(value) if wide else value
    operator, first, second = tree
    a, b = _tir(first, leaves, wide), _tir(second, leaves, wide)
    make = {"+": tirx.Add, "-": tirx.Sub, "*": tirx.Mul, "//": tirx.FloorDiv, "%": tirx.FloorMod}[operator]
    return make(a, b)


def _model(tree, leaves):
    if not isinstance(tree, tuple):
        return leaves.get(tree, tree)
    operator, first, second = tree
    a, b = _model(first, leaves), _model(second, leaves)
    value = {"+": a.__add__, "-": a.__sub__, "*": a.__mul__, "//": a.__floordiv__, "%": a.__mod__}[operator](b)
    return value if value is not None and abs(value) < 2**31 else None


@settings(max_examples=60, deadline=None)
@given(st.lists(_TREES, min_size=2, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4))
def test_random_sums_in_both_widths(trees, widths):
    """Several expressions of the same numbers, in 32 and 64 bits, under a guard; small enough never to overflow."""
    a = np.array([-9, -4, 0, 1, 2, 5, 13, 200], "int32")
    b = np.array([3, 7, 64, 1, 20, 6, 100, 15], "int32")
    try:
        rows = [[_model(tree, {"a": int(x), "b": int(y), "core": 0}) for tree in trees] for x, y in zip(a, b, strict=True)]
    except TypeError:
        return  # overflows somewhere
    if any(value is None for row in rows for value in row):
        return

    def total(x, y):
        leaves = {"a": x, "b": y, "core": x - x}
        terms = [_tir(tree, leaves, wide) for tree, wide in zip(trees, widths, strict=False)]
        value = tirx.IntImm("int64", 0)
        for term in terms:
            value = value * tirx.IntImm("int64", 3) + int64(term)
        return tirx.if_then_else(x < y, value, tirx.IntImm("int64", -1) * value)

    expected = []
    for x, y, row in zip(a, b, rows, strict=True):
        value = 0
        for term in row:
            value = value * 3 + term
        expected.append(value if x < y else -value)
    text = emit_module(elementwise({"a": "int32", "b": "int32"}, "int64", len(a), total), surface=surface_of("2026-09")).text
    out = np.zeros(len(a), "int64")
    run(text, "map", a, b, out)
    np.testing.assert_array_equal(out, expected)
