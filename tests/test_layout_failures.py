"""Fragments whose loops cannot agree on a layout: what the user is told."""

from __future__ import annotations

import pytest
import tilelang
import tvm
from tilelang.ascend import language as T

from tilelang_pto.errors import LayoutError, PtoError
from tilelang_pto.lowering import lower_function

ROWS, COLUMNS = 4, 1280


def sums_of_rows():
    """The columns of a row are no power of two times the threads: the reduction's result is spread otherwise than the loop after it."""

    @T.prim_func
    def sums_of_rows(x: T.Tensor((ROWS, COLUMNS), T.float32), out: T.Tensor((ROWS,), T.float32)):
        with T.Kernel(1), T.SimtVF(threads=256):
            terms = T.alloc_fragment((ROWS, COLUMNS), T.float32)
            sums = T.alloc_fragment((ROWS,), T.float32)
            for row, column in T.Parallel(ROWS, COLUMNS):
                terms[row, column] = x[row, column]
            T.reduce_sum(terms, sums, dim=1)
            for row in T.Parallel(ROWS):
                out[row] = sums[row]

    return sums_of_rows


def weighted_gradients():
    """Gradients of a weighted sum, with the whole row in fragments."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def weighted_gradients(
        out_grad: T.Tensor((tokens, COLUMNS), T.bfloat16),
        x: T.Tensor((tokens, ROWS, COLUMNS), T.bfloat16),
        mix_grad: T.Tensor((tokens, ROWS), T.float32),
    ):
        with T.Kernel(8) as core:
            x_ub = T.alloc_shared((ROWS, COLUMNS), T.bfloat16)
            out_grad_ub = T.alloc_shared((COLUMNS,), T.bfloat16)
            mix_grad_ub = T.alloc_shared((ROWS,), T.float32)
            for token in T.Persistent([tokens], 8, core, group_size=1):
                T.copy(out_grad[token, 0], out_grad_ub)
                T.copy(x[token, 0, 0], x_ub)
                with T.SimtVF(threads=256):
                    products = T.alloc_fragment((ROWS, COLUMNS), T.float32)
                    sums = T.alloc_fragment((ROWS,), T.float32)
                    for stream, column in T.Parallel(ROWS, COLUMNS):
                        products[stream, column] = x_ub[stream, column] * T.cast(out_grad_ub[column], T.float32)
                    T.reduce_sum(products, sums, dim=1)
                    for stream in T.Parallel(ROWS):
                        mix_grad_ub[stream] = sums[stream]
                T.copy(mix_grad_ub, mix_grad[token, 0])

    return weighted_gradients


def three_shapes():
    """A fragment in loops of three shapes, one of which takes two of its elements at once."""

    @T.prim_func
    def three_shapes(
        x: T.Tensor((ROWS, COLUMNS), T.float32),
        y: T.Tensor((COLUMNS,), T.float32),
        out: T.Tensor((ROWS, COLUMNS), T.float32),
        pairs: T.Tensor((COLUMNS // 2,), T.float32),
    ):
        with T.Kernel(1), T.SimtVF(threads=256):
            grad = T.alloc_fragment((COLUMNS,), T.float32)
            for column in T.Parallel(COLUMNS):
                grad[column] = y[column]
            for row, column in T.Parallel(ROWS, COLUMNS):
                out[row, column] = x[row, column] * grad[column]
            for pair in T.Parallel(COLUMNS // 2):
                pairs[pair] = grad[2 * pair] + grad[2 * pair + 1]

    return three_shapes


def reducer_of_columns():
    """Where sums of a reducer are placed, not where fragments are laid out."""

    @T.prim_func
    def reducer_of_columns(x: T.Tensor((32, 24), T.float32), out: T.Tensor((24,), T.float32)):
        with T.Kernel(1), T.SimtVF(threads=256):
            values = T.alloc_fragment((32, 24), T.float32)
            total = T.alloc_reducer((24,), T.float32, op="sum")
            result = T.alloc_fragment((24,), T.float32)
            T.reducer_init(total)
            for row, column in T.Parallel(32, 24):
                values[row, column] = x[row, column]
            for row, column in T.Parallel(32, 24):
                T.reducer_update(total[column], values[row, column])
            T.finalize_reducer(total, result)
            for column in T.Parallel(24):
                out[column] = result[column]

    return reducer_of_columns


def sums_of_both():
    """Loops that cannot agree on several fragments."""

    @T.prim_func
    def sums_of_both(x: T.Tensor((24, 40), T.float32), rows: T.Tensor((24,), T.float32), columns: T.Tensor((40,), T.float32)):
        with T.Kernel(1), T.SimtVF(threads=128):
            values = T.alloc_fragment((24, 40), T.float32)
            row_sums = T.alloc_fragment((24,), T.float32)
            column_sums = T.alloc_fragment((40,), T.float32)
            for row, column in T.Parallel(24, 40):
                values[row, column] = x[row, column]
            T.reduce_sum(values, row_sums, dim=1)
            T.reduce_sum(values, column_sums, dim=0)
            for row in T.Parallel(24):
                rows[row] = row_sums[row]
            for column in T.Parallel(40):
                columns[column] = column_sums[column]

    return sums_of_both


@pytest.mark.parametrize(
    ("make", "fragments", "told"),
    [
        (sums_of_rows, ("sums",), ["sums (4, float32)", "sums: T.Parallel(4): out[row] = sums[row]", "sums: T.reduce("]),
        (weighted_gradients, ("sums",), ["sums: T.Parallel(4): mix_grad_ub[stream] = sums[stream]", "sums: T.reduce("]),
        (
            three_shapes,
            ("grad",),
            [
                "grad (1280, float32)",
                "grad: T.Parallel(1280): grad[column] = y[column]",
                "grad: T.Parallel(4, 1280): out[row, column] = x[row, column] * grad[column]",
                "grad: T.Parallel(640): pairs[pair] = grad[",
            ],
        ),
        (
            reducer_of_columns,
            ("values", "total", "result"),
            ["total (24, float32)", "total: T.Parallel(32, 24): T.reducer_update(total[column]", "result: T.Parallel(24): out[column]"],
        ),
        (
            sums_of_both,
            ("values", "row_sums", "column_sums"),
            ["row_sums (24, float32)", "column_sums: T.Parallel(40)"],
        ),
    ],
)
def test_the_fragment_and_its_loops_are_named(make, fragments, told):
    function = make()
    with pytest.raises(LayoutError) as caught:
        tilelang.compile(function, target="pto")
    error = caught.value
    assert error.fragments == fragments
    assert f"kernel {function.attrs['global_symbol']}" in error.where
    assert isinstance(error, PtoError) and "T.alloc_shared" in error.advice
    for part in told:
        assert part in str(error)


def test_frames_of_tilelang_are_shown_on_demand(monkeypatch):
    for setting, shown in (("0", False), ("1", True)):
        monkeypatch.setenv("TILELANG_PTO_DEBUG", setting)
        with pytest.raises(LayoutError) as caught:
            lower_function(three_shapes())
        assert isinstance(caught.value.__cause__, tvm.error.InternalError) is shown
        assert caught.value.__suppress_context__


def test_other_errors_stay_as_they_are():
    """An error of a later pass in a kernel with fragments."""

    @T.prim_func
    def two_reductions(x: T.Tensor((24, 40), T.float32), rows: T.Tensor((24,), T.float32), columns: T.Tensor((40,), T.float32)):
        with T.Kernel(1), T.SimtVF(threads=128):
            values = T.alloc_fragment((24, 40), T.float32)
            row_sums = T.alloc_fragment((24,), T.float32)
            column_sums = T.alloc_fragment((40,), T.float32)
            for row, column in T.Parallel(24, 40):
                values[row, column] = x[row, column]
            T.reduce_sum(values, row_sums, dim=1)
            T.reduce_sum(values, column_sums, dim=0)
            for row, column in T.Parallel(24, 40):
                values[row, column] = values[row, column] * row_sums[row] + column_sums[column]
            for row in T.Parallel(24):
                rows[row] = row_sums[row]
            for column in T.Parallel(40):
                columns[column] = column_sums[column]

    with pytest.raises(tvm.error.InternalError, match="warp-uniform") as caught:
        lower_function(two_reductions)
    assert not isinstance(caught.value, PtoError)
