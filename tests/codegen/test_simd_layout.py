"""A tile in UB from rows to columns of 32 bytes, in numbers, against the element formula of the layout."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tir_builder import access, op, pointer, sequence, simd_block, vector_kernel
from tvm import tirx

import tilelang_pto
from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")
CTYPES = {
    "float32": "float", "float16": "half", "bfloat16": "bfloat16_t", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t",
    "int32": "int32_t", "float8_e4m3fn": "float8_e4m3_t",
}  # fmt: skip
BYTES = {"float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "int8": 1, "uint8": 1, "float8_e4m3fn": 1}


def evaluate(name, *arguments):
    return tirx.Evaluate(op(f"tl.ascend_{name}", "handle", *arguments))


def kernel(rows, columns, origin, target, inside=False):
    """Rows of ``origin`` to UB, the change of layout, all blocks with their padding back as ``target``."""
    x, y = pointer("x", origin), pointer("y", target)
    size_in, size_out = rows * columns * BYTES[origin], (rows + 1) * columns * BYTES[target]
    source = tirx.decl_buffer(
        (size_in // BYTES[origin] + 256,), origin, name="source", scope="shared.dyn"
    )  # a load may read beyond the last row
    result = tirx.decl_buffer((size_out // BYTES[target],), target, name="result", scope="shared.dyn")
    ends = access(source.data, origin, 0, rows * columns), access(result.data, target, 0, (rows + 1) * columns)
    change = evaluate("nd2nz_scatter", *ends, rows, columns, CTYPES[target], CTYPES[origin])
    body = sequence(
        tirx.AllocBuffer(source),
        tirx.AllocBuffer(result),
        evaluate("copy_gm_to_ubuf", ends[0], access(x, origin, 0, rows * columns), 0, 1, size_in, 0, 0, 0, 0, size_in, size_in),
        evaluate("copy_gm_to_ubuf", ends[1], access(y, target, 0, columns), 0, 1, size_out, 0, 0, 0, 0, size_out, size_out),
        evaluate("set_flag", "MTE2_V", 0),
        evaluate("wait_flag", "MTE2_V", 0),
        simd_block(change) if inside else change,
        evaluate("set_flag", "V_MTE3", 0),
        evaluate("wait_flag", "V_MTE3", 0),
        evaluate("copy_ubuf_to_gm", access(y, target, 0, columns), ends[1], 0, 1, size_out, 4, size_out, size_out),
    )
    return vector_kernel("change", [x, y], lambda _: body)


def text_of(mod, surface):
    text = emit_module(mod, surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    return text


def torch_type(name):
    return getattr(torch, name)


def values(rows, columns, dtype):
    generator = torch.Generator().manual_seed(rows * 1000 + columns)
    if dtype.startswith(("int", "uint")):
        low, high = (0, 200) if dtype == "uint8" else (-100, 100)
        return torch.randint(low, high, (rows, columns), generator=generator).to(torch_type(dtype))
    return torch.randn(rows, columns, generator=generator).to(torch_type(dtype))


def rows_of(stored, rows, columns, size):
    """The tile read back by the formula: element (r, c) lies in column c // C0, block r, place c % C0; and the padding blocks."""
    c0 = 32 // size
    blocks = stored.reshape(columns // c0, rows + 1, c0)
    return blocks[:, :rows].permute(1, 0, 2).reshape(rows, columns), blocks[:, rows]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("float32", (16, 64)), ("float32", (32, 200)), ("float32", (5, 8)), ("int32", (16, 72)),
        ("bfloat16", (16, 128)), ("bfloat16", (32, 48)), ("float16", (17, 144)), ("int16", (1, 384)),
        ("int8", (16, 256)), ("uint8", (32, 32)), ("int8", (3, 608)), ("float8_e4m3fn", (16, 96)),
    ],
)  # fmt: skip
def test_every_element_finds_its_place(dtype, shape, surface):
    rows, columns = shape
    tile, result = values(*shape, dtype), torch.zeros((rows + 1) * columns, dtype=torch_type(dtype))
    run(text_of(kernel(rows, columns, dtype, dtype), surface), "change", tile, result)
    moved, padding = rows_of(result, rows, columns, BYTES[dtype])
    assert torch.equal(moved.view(torch.uint8), tile.view(torch.uint8))
    assert not padding.contiguous().view(torch.uint8).any(), "the padding is nobody's"


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("origin", "target", "shape"),
    [
        ("float32", "bfloat16", (16, 64)), ("float32", "bfloat16", (32, 208)), ("float32", "float16", (3, 128)),
        ("bfloat16", "float32", (16, 128)), ("bfloat16", "float32", (5, 176)), ("float16", "float32", (16, 256)),
        ("float16", "float32", (2, 48)),
    ],
)  # fmt: skip
def test_conversion_on_the_way(origin, target, shape, surface):
    rows, columns = shape
    tile, result = values(*shape, origin), torch.zeros((rows + 1) * columns, dtype=torch_type(target))
    run(text_of(kernel(rows, columns, origin, target), surface), "change", tile, result)
    moved, padding = rows_of(result, rows, columns, BYTES[target])
    assert torch.equal(moved, tile.to(torch_type(target)))
    assert not padding.float().any()


def test_inside_a_vector_function():
    tile, result = values(16, 48, "bfloat16"), torch.zeros(17 * 48, dtype=torch.bfloat16)
    text = text_of(kernel(16, 48, "bfloat16", "bfloat16", inside=True), "2026-09")
    assert text.count("with pto.vecscope()") == 1
    run(text, "change", tile, result)
    assert torch.equal(rows_of(result, 16, 48, 2)[0], tile)


def test_text_does_not_grow_with_the_tile():
    lines = {text_of(kernel(rows, columns, "float32", "bfloat16"), "2026-08").count("\n") for rows, columns in ((16, 128), (32, 256))}
    assert len(lines) == 1
    assert np.max(list(lines)) < 40


@pytest.mark.parametrize(
    ("rows", "columns", "origin", "target", "words"),
    [
        (16, 12, "bfloat16", "bfloat16", ["rows of 12 bfloat16", "multiple of 32 bytes"]),
        (16, 8, "float32", "bfloat16", ["rows of 8 float32 to bfloat16", "multiple of 32 bytes"]),
        (16, 64, "bfloat16", "float16", ["converts bfloat16 to float16", "float32"]),
        (16, 64, "int32", "float32", ["converts int32 to float32"]),
    ],
)
def test_changes_of_layout_that_cannot_be(rows, columns, origin, target, words):
    with pytest.raises(tilelang_pto.UnsupportedError) as caught:
        emit_module(kernel(rows, columns, origin, target), surface=surface_of("2026-09"))
    for word in words:
        assert word in str(caught.value)


def test_too_many_rows():
    tile = tirx.decl_buffer((64,), "float32", name="tile", scope="shared.dyn")
    ends = [access(tile.data, "float32", 0, 64)] * 2
    change = sequence(tirx.AllocBuffer(tile), evaluate("nd2nz_scatter", *ends, 32767, 8, "float", "float"))
    with pytest.raises(tilelang_pto.UnsupportedError, match="32767 rows"):
        emit_module(vector_kernel("k", (), lambda _: change), surface=surface_of("2026-09"))
