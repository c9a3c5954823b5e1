"""Scalar accesses of GM past the data cache: the right call, the right bits, and never moved.

No ``from __future__ import annotations`` here: TileLang evaluates the annotations of a kernel.
"""

import ml_dtypes  # noqa: F401  (registers the dtypes with NumPy)
import numpy as np
import pytest
import tilelang
import torch
from simt_kernels import SURFACES, emitted
from tilelang.ascend import language as T
from tir_builder import immediate, op, pointer, sequence, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.errors import UnsupportedError
from tilelang_pto.sim import run

CALLS = {"2026-08": ("bypass_l1=True", "bypass_l1=True"), "2026-09": ("pto.ld_dev(", "pto.st_dev(")}
DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32"]


def scalar_loop(count, make):
    index = tirx.Var("i", "int32")
    return tirx.For(index, immediate(0), immediate(count), tirx.ForKind.SERIAL, make(index))


def element(data, dtype, index, count=64):
    return op("tirx.address_of", "handle", tirx.BufferLoad(view(data, dtype, count), [index]))


def read(data, dtype, index):
    return op("tl.ascend_read_gm_bypass_dcache", dtype, element(data, dtype, index))


def write(data, dtype, index, value):
    return tirx.Evaluate(op("tl.ascend_write_gm_bypass_dcache", "void", element(data, dtype, index), value))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_keep_their_bits(surface, dtype):
    a, b = pointer("a", dtype), pointer("b", dtype)
    body = scalar_loop(64, lambda i: write(b, dtype, i, read(a, dtype, 63 - i)))
    text = emitted(vector_kernel("turn", [a, b], lambda _: body), surface)
    assert all(call in text for call in CALLS[surface])
    given = np.random.default_rng(3).integers(0, 256, 64 * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    if np.dtype(dtype).kind not in "iu":
        given = np.where(np.isnan(given.astype(np.float32)), 1, given.astype(np.float32)).astype(dtype)
    got = np.zeros_like(given)
    run(text, "turn", given, got)
    np.testing.assert_array_equal(got.view(np.uint8), given[::-1].copy().view(np.uint8))


@pytest.mark.parametrize("surface", SURFACES)
def test_reads_stay_in_their_loop(surface):
    a, b = pointer("a", "int32"), pointer("b", "int32")
    counted = scalar_loop(10, lambda i: sequence(write(a, "int32", 0, read(a, "int32", 0) + 1), write(b, "int32", i, read(a, "int32", 0))))
    numbers, seen = np.array([5], np.int32), np.zeros(10, np.int32)
    run(emitted(vector_kernel("count", [a, b], lambda _: counted), surface), "count", numbers, seen)
    assert numbers[0] == 15
    np.testing.assert_array_equal(seen, np.arange(6, 16))


@pytest.mark.parametrize("surface", SURFACES)
def test_not_in_vector_functions(surface):
    a = pointer("a", "int32")
    with pytest.raises(UnsupportedError, match=r"tl\.ascend_write_gm_bypass_dcache inside a SIMT"):
        emitted(vector_kernel("threads", [a], lambda _: simt_block(32, lambda tx: write(a, "int32", tx, 1))), surface)


def test_of_something_that_is_no_element():
    a = pointer("a", "int32")
    body = tirx.Evaluate(op("tl.ascend_write_gm_bypass_dcache", "void", a, 1))
    with pytest.raises(UnsupportedError, match="no element"):
        emitted(vector_kernel("wrong", [a], lambda _: body), "2026-09")


@tilelang.jit(target="pto")
def running_total(numbers, totals):
    n = T.dynamic("n")
    numbers: T.Tensor[(n,), T.float32]
    totals: T.Tensor[(n,), T.float32]

    with T.Kernel(1):
        for i in T.serial(1, n):
            totals[i] = totals[i - 1] + numbers[i]


def test_a_tensor_the_scalar_unit_reads_and_writes():
    numbers = torch.arange(9, dtype=torch.float32)
    totals = numbers.clone()
    kernel = running_total.compile(numbers, totals)
    kernel(numbers, totals)
    torch.testing.assert_close(totals, torch.cumsum(numbers, 0))
    assert "st_dev" in kernel.get_kernel_source()
