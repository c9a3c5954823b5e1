"""Copies between GM and UB: padding, long rows, accumulating stores, scalar reads in vector functions, asserts."""

from __future__ import annotations

import numpy as np
import pytest
from tir_builder import access, immediate, op, pointer, sequence, simd_block, simt_block, vector_kernel, view
from tvm import tirx

import tilelang_pto
from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")


def text_of(mod, surface):
    text = emit_module(mod, surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    return text


def flag(verb, event):
    return tirx.Evaluate(op(f"tl.ascend_{verb}_flag", "handle", event, 0))


def load(ub, gm, dtype, rows, size, pad=(0, 0, 0), strides=(0, 0)):
    left, right, select = pad
    source, target = access(gm, dtype, 0, 64, 1), access(ub.data, dtype, 0, 64, 2)
    return tirx.Evaluate(op("tl.ascend_copy_gm_to_ubuf", "handle", target, source, 0, rows, size, left, right, select, 0, *strides))


def store(gm, ub, dtype, rows, size, strides):
    return tirx.Evaluate(
        op("tl.ascend_copy_ubuf_to_gm", "handle", access(gm, dtype, 0, 64), access(ub.data, dtype, 0, 64), 0, rows, size, 4, *strides)
    )


def pad_value(value):
    return tirx.Evaluate(op("tl.ascend_set_copy_pad_value", "handle", value))


def pass_through(ub, *statements):
    return sequence(tirx.AllocBuffer(ub), statements[0], flag("set", "MTE2_MTE3"), flag("wait", "MTE2_MTE3"), *statements[1:])


@pytest.mark.parametrize("surface", SURFACES)
def test_rows_are_padded_to_blocks_with_a_value(surface):
    """Rows of five elements become rows of eight in UB; three come from the padding value."""
    a, out = pointer("a", "int32"), pointer("out", "int32")
    ub = tirx.decl_buffer((64,), "int32", name="ub", scope="shared.dyn")
    copy = sequence(pad_value(immediate(-7)), load(ub, a, "int32", 4, 20, pad=(0, 3, 1), strides=(24, 32)))
    text = text_of(vector_kernel("k", [a, out], lambda _: pass_through(ub, copy, store(out, ub, "int32", 1, 128, (128, 128)))), surface)
    values, result = np.arange(24, dtype=np.int32), np.zeros(32, np.int32)
    run(text, "k", values, result)
    expected = np.full((4, 8), -7, np.int32)
    expected[:, :5] = values.reshape(4, 6)[:, :5]
    np.testing.assert_array_equal(result.reshape(4, 8), expected)


def test_padding_without_a_known_value_is_refused():
    a, n = pointer("a", "int32"), tirx.Var("n", "int32")
    ub = tirx.decl_buffer((64,), "int32", name="ub", scope="shared.dyn")
    maybe = tirx.IfThenElse(n > 0, pad_value(immediate(1)), None)
    body = sequence(tirx.AllocBuffer(ub), pad_value(immediate(2)), maybe, load(ub, a, "int32", 1, 20, pad=(0, 3, 1)))
    with pytest.raises(tilelang_pto.UnsupportedError, match="no single T\\.copy padding value reaches"):
        emit_module(vector_kernel("k", [a, n], lambda _: body), surface=surface_of("2026-09"))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("count", [16383, 16384, 20000, 40000])
def test_rows_longer_than_a_burst(surface, count):
    a, out = pointer("a", "float32"), pointer("out", "float32")
    ub = tirx.decl_buffer((count,), "float32", name="ub", scope="shared.dyn")
    size = count * 4
    copies = (load(ub, a, "float32", 1, size, strides=(size, size)), store(out, ub, "float32", 1, size, (size, size)))
    text = text_of(vector_kernel("k", [a, out], lambda _: pass_through(ub, *copies)), surface)
    values, result = np.random.default_rng(0).normal(size=count).astype(np.float32), np.zeros(count, np.float32)
    run(text, "k", values, result)
    np.testing.assert_array_equal(result, values)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("kind", "model"), [("add", np.add), ("max", np.maximum), ("min", np.minimum)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_accumulating_stores(surface, kind, model, dtype):
    a, out = pointer("a", dtype), pointer("out", dtype)
    ub = tirx.decl_buffer((64,), dtype, name="ub", scope="shared.dyn")
    size = 64 * np.dtype(dtype).itemsize
    zero = tirx.const(0, dtype)
    accumulate = sequence(
        tirx.Evaluate(op("tl.ascend_set_atomic", "handle", kind, zero)),
        store(out, ub, dtype, 1, size, (size, size)),
        tirx.Evaluate(op("tl.ascend_set_atomic_none", "handle")),
    )
    copies = (load(ub, a, dtype, 1, size, strides=(size, size)), accumulate)
    text = text_of(vector_kernel("k", [a, out], lambda _: pass_through(ub, *copies)), surface)
    values, before = np.arange(64).astype(dtype) - np.array(20, dtype), (np.arange(64)[::-1] * 2).astype(dtype)
    result = before.copy()
    run(text, "k", values, result)
    np.testing.assert_array_equal(result, model(before, values))


@pytest.mark.parametrize("surface", SURFACES)
def test_scalar_read_inside_a_vector_function(surface):
    """A scalar from UB as operand of a vector operation, another one each round."""
    a, out = pointer("a", "float32"), pointer("out", "float32")
    ub = tirx.decl_buffer((320,), "float32", name="ub", scope="shared.dyn")
    mask = op("tl.simd.pset", "boolx256", 32, "PAT_ALL")
    i = tirx.Var("i", "int32")
    row = op("tl.simd.vld", "float32x64", access(ub.data, "float32", 64, 64), "NORM")
    scaled = op("tl.simd.vmuls", "float32x64", row, tirx.BufferLoad(ub, [i]), mask, "MODE_ZEROING")
    put = tirx.Evaluate(op("tl.simd.vsts", "handle", access(ub.data, "float32", i * 64 + 128, 64), scaled, mask, "NORM_B32"))
    vector = simd_block(tirx.For(i, immediate(0), immediate(3), tirx.ForKind.SERIAL, put))
    body = sequence(
        tirx.AllocBuffer(ub),
        load(ub, a, "float32", 1, 512, strides=(512, 512)),
        flag("set", "MTE2_V"),
        flag("wait", "MTE2_V"),
        vector,
        flag("set", "V_MTE3"),
        flag("wait", "V_MTE3"),
        tirx.Evaluate(
            op(
                "tl.ascend_copy_ubuf_to_gm",
                "handle",
                access(out, "float32", 0, 192),
                access(ub.data, "float32", 128, 192),
                0,
                1,
                768,
                4,
                768,
                768,
            )
        ),
    )
    values, result = np.arange(128, dtype=np.float32) - 3, np.zeros(192, np.float32)
    run(text_of(vector_kernel("k", [a, out], lambda _: body), surface), "k", values, result)
    np.testing.assert_array_equal(result.reshape(3, 64), values[:3, None] * values[None, 64:])


@pytest.mark.parametrize("surface", SURFACES)
def test_device_assert_names_its_message(surface):
    a = pointer("a", "int32")

    def body(tx):
        value = tirx.BufferLoad(view(a, "int32", 32), [tx])
        return tirx.Evaluate(op("tl.device_assert_with_msg", "handle", value < 100, "kernels.py:7 value too large\nfor the table"))

    text = text_of(vector_kernel("k", [a], lambda _: simt_block(32, body)), surface)
    values = np.arange(32, dtype=np.int32)
    run(text, "k", values)
    values[17] = 100
    with pytest.raises(tilelang_pto.SimulationError) as caught:
        run(text, "k", values)
    message = str(caught.value)
    assert "kernels.py:7 value too large" in message
    assert "17" in message


def test_an_assert_that_always_holds_is_no_code():
    body = tirx.Evaluate(op("tl.device_assert_with_msg", "handle", tirx.const(True, "bool"), "never"))
    assert "trap" not in text_of(vector_kernel("k", (), lambda _: body), "2026-09")
