"""Tensors made from addresses in memory (``T.make_tensor``): emitted text, results, refusals."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from simt_kernels import SURFACES
from simt_kernels import emitted as text_of
from tir_builder import op, pointer, sequence, simt_block, vector_kernel, view
from tvm import tirx
from tvm.ir import PointerType, PrimType

from tilelang_pto.errors import UnsupportedError
from tilelang_pto.sim import run


def i32(value: int):
    return tirx.IntImm("int32", value)


def tensor(name: str, dtype: str, address, scope: str = "global"):
    """``T.make_tensor(address, ...)``: the variable, and the statement that binds it."""
    data = tirx.Var(name, PointerType(PrimType(dtype), scope))
    return data, tirx.Bind(data, op("tirx.reinterpret", "handle", address))


def load(data, dtype: str, index=0, count: int = 64):
    return tirx.BufferLoad(view(data, dtype, count), [i32(index) if isinstance(index, int) else index])


def store(data, dtype: str, value, index=0, count: int = 64):
    return tirx.BufferStore(view(data, dtype, count), value, [i32(index) if isinstance(index, int) else index])


def emitted(surface: str, parameters, body) -> str:
    return text_of(vector_kernel("k", parameters, lambda bx: body), surface)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("table_dtype", ["int64", "uint64"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint16", "int64"])
def test_scalars_through_a_table(surface, table_dtype, dtype):
    table, out = pointer("table", table_dtype), pointer("out", "int32")
    source, bind_source = tensor("source", dtype, load(table, table_dtype, 0))
    target, bind_target = tensor("target", dtype, load(table, table_dtype, 1))
    body = sequence(bind_source, bind_target, store(target, dtype, load(source, dtype, 3), 5), store(out, "int32", i32(1)))
    text = emitted(surface, [table, out], body)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    a, b, done = np.arange(8).astype(kind), np.zeros(8, kind), np.zeros(1, np.int32)
    run(text, "k", np.array([a.ctypes.data, b.ctypes.data], table_dtype), done)
    assert list(b.astype(int)) == [0, 0, 0, 0, 0, 3, 0, 0]
    assert done[0] == 1


@pytest.mark.parametrize("surface", SURFACES)
def test_threads_use_a_tensor_of_a_table(surface):
    table, out = pointer("table", "int64"), pointer("out", "float32")
    source, bind = tensor("source", "float32", load(table, "int64", 1))
    body = sequence(bind, simt_block(64, lambda tx: store(out, "float32", load(source, "float32", tx), tx)))
    data, result = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run(emitted(surface, [table, out], body), "k", np.array([0, data.ctypes.data]), result)
    np.testing.assert_array_equal(result, data)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_guarded_entry_may_be_null(surface):
    """The address is only read under its guard, and the null is never used."""
    table, out, n = pointer("table", "int64"), pointer("out", "float32"), tirx.Var("n", "int32")
    chosen = op("tirx.if_then_else", "int64", n > 0, tirx.BufferLoad(view(table, "int64", 1), [n - 1]), tirx.IntImm("int64", 0))
    source, bind = tensor("source", "float32", chosen)
    body = sequence(bind, tirx.IfThenElse(n > 0, store(out, "float32", load(source, "float32", 2)), None))
    text = emitted(surface, [out, table, n], body)
    data, result = np.arange(8, dtype=np.float32), np.full(1, -1, np.float32)
    run(text, "k", result, np.array([data.ctypes.data]), 0)
    assert result[0] == -1
    run(text, "k", result, np.array([data.ctypes.data]), 1)
    assert result[0] == 2


@pytest.mark.parametrize("surface", SURFACES)
def test_a_table_may_name_an_argument(surface):
    """Even where TileLang promises that arguments do not alias, a store through an address may change one."""
    table, x, out = pointer("table", "int64"), pointer("x", "float32"), pointer("out", "float32")
    target, bind = tensor("target", "float32", load(table, "int64"))
    before, after = tirx.Var("before", "float32"), tirx.Var("after", "float32")
    body = sequence(
        bind,
        tirx.Bind(before, load(x, "float32")),
        store(target, "float32", tirx.FloatImm("float32", 7.0)),
        tirx.Bind(after, load(x, "float32")),
        store(out, "float32", before, 0),
        store(out, "float32", after, 1),
    )
    module = vector_kernel("k", [out, table, x], lambda bx: body)
    ((name, function),) = module.functions.items()
    module.update_func(name, function.with_attr("tirx.noalias", tirx.IntImm("bool", 1)))
    text = text_of(module, surface)
    argument, result = np.full(1, 3, np.float32), np.zeros(2, np.float32)
    run(text, "k", result, np.array([argument.ctypes.data]), argument)
    assert list(result) == [3, 7]


@pytest.mark.parametrize("surface", SURFACES)
def test_a_tensor_of_booleans(surface):
    table, out = pointer("table", "int64"), pointer("out", "int32")
    flags, bind = tensor("flags", "bool", load(table, "int64"))
    body = sequence(bind, store(out, "int32", tirx.Select(load(flags, "bool", 1), i32(5), i32(6))))
    result, data = np.zeros(1, np.int32), np.array([False, True])
    run(emitted(surface, [table, out], body), "k", np.array([data.ctypes.data]), result)
    assert result[0] == 5


def refused(body, parameters) -> str:
    with pytest.raises(UnsupportedError) as caught:
        emitted("2026-08", parameters, body)
    return str(caught.value)


def test_refusals():
    small, table = pointer("small", "int32"), pointer("table", "int64")
    narrow, bind_narrow = tensor("narrow", "float32", load(small, "int32"))
    assert "address narrow made from int32" in refused(sequence(bind_narrow, store(narrow, "float32", load(narrow, "float32"), 1)), [small])
    _, bind_local = tensor("local", "float32", load(table, "int64"), "shared")
    assert "address local of memory scope shared" in refused(bind_local, [table])
    untyped = tirx.Var("untyped", "handle")
    bind_untyped = tirx.Bind(untyped, op("tirx.reinterpret", "handle", load(table, "int64")))
    assert "address untyped without the type it points to" in refused(bind_untyped, [table])
    _, bind_odd = tensor("odd", "float64", load(table, "int64"))
    assert "elements of dtype float64" in refused(bind_odd, [table])
    assert "an address used as a pointer without a name" in refused(
        tirx.Evaluate(op("tirx.reinterpret", "handle", load(table, "int64"))), [table]
    )
