"""Transfers into L1: GM to L1 with a change of layout, filling, UB to L1. Operands are (destination, source)."""

from __future__ import annotations

import ast
from typing import Any

from ..emit import call, constant
from ..registry import CONSTANT, op
from ..types import DTYPES
from ..values import Value
from ..visitor import Visitor
from .memory import full_pointer
from .operands import field, operand

PHYSICAL_TYPES = {"": None, "int8_t": "int8", "uint8_t": "uint8", "int16_t": "int16", "uint16_t": "uint16"}
"""C types a copy into L1 may count its elements in instead of the buffers' own."""


@op(
    "tl.ascend_copy_gm_to_cbuf",
    arity=12,
    regions="scalar",
    core="cube",
    literals={"sid": (0,), "outer_stride": (0,), "small_c0": (0,), "transpose": (0, 1), "physical": tuple(PHYSICAL_TYPES)},
    spaces={"dst": "mat", "src": "gm"},
    emits="mte_gm_l1_frac",
)
def ascend_copy_gm_to_cbuf(
    v: Visitor,
    node: Any,
    dst: Any,
    src: Any,
    sid: Any,
    src_stride: Any,
    cache: Any,
    rows: Any,
    columns: Any,
    outer_stride: Any,
    small_c0: Any,
    transpose: Any,
    pitch: Any,
    physical: Any,
) -> None:
    """A matrix from GM in rows, to L1 in columns of 32 bytes; ``pitch`` rows lie between two columns."""
    override = PHYSICAL_TYPES[str(physical.value)]
    dtype = DTYPES[override] if override else None
    source, destination = full_pointer(v, src, "source", dtype), operand(v, dst, "destination", dtype)
    if source.dtype.bytes != destination.dtype.bytes:
        v.unsupported(f"copy from {source.dtype.pto} to {destination.dtype.pto}", "a copy to L1 cannot convert")
    mode = "dn2nz" if int(transpose) else "nd2nz"
    operands = [
        source,
        destination,
        field(v, rows, "the number of rows of a copy to L1", 65535),
        field(v, columns, "the number of columns of a copy to L1", (1 << 21) - 1),
        field(v, src_stride, "the row stride in bytes of a copy to L1", (1 << 40) - 1),
        field(v, pitch, "the padded number of rows of a copy to L1", 65535),
        field(v, cache, "the L2 hint of a load", 15),
    ]
    v.b.effect(
        lambda e: call(
            "pto.mte_gm_l1_frac",
            *e[:2],
            constant(mode),
            shape=tuple_of(*e[2:4]),
            src_layout=tuple_of(e[4]),
            dst_group=tuple_of(constant(1), constant(1), e[5], constant(0)),
            ctrl=tuple_of(e[6], constant(False)),
        ),
        operands,
    )


def tuple_of(*items: ast.expr) -> ast.expr:
    """``(a, b, ...)``."""
    return ast.Tuple(list(items), ast.Load())


LONGEST_FILL = 32767
"""Fields of 15 bits: repeats, blocks and gap of a fill."""


@op("tl.ascend_fill_l1", arity=7, regions="scalar", core="cube", literals={"width": (16, 32)}, spaces={"dst": "mat"}, emits="raw_fill_l1")
def ascend_fill_l1(v: Visitor, node: Any, dst: Any, offset: Any, pattern: Any, repeats: Any, blocks: Any, gap: Any, width: Any) -> None:
    """Fill blocks of 32 bytes with a bit pattern."""
    operands = [
        operand(v, dst, "destination"),
        v.expr(offset),
        v.expr(pattern),
        field(v, repeats, "the number of columns of a fill of L1", LONGEST_FILL),
        field(v, blocks, "the number of rows of a fill of L1", LONGEST_FILL),
        field(v, gap, "the gap between columns of a fill of L1", LONGEST_FILL),
    ]

    v.b.effect(
        lambda e: call(
            "pto.raw_fill_l1", *e[:3], repeat_times=e[3], block_num_32b=e[4], dst_gap_32b=e[5], fill_word_bits=constant(int(width))
        ),
        operands,
    )


@op("tl.ascend_copy_ubuf_to_cbuf", arity=7, regions="scalar", core="vector", literals={"sub_block": (0,)},
    spaces={"dst": "mat", "src": "ub"}, emits="mte_ub_l1")  # fmt: skip
def ascend_copy_ubuf_to_cbuf(
    v: Visitor, node: Any, dst: Any, src: Any, sub_block: Any, bursts: Any, length: Any, src_gap: Any, dst_gap: Any
) -> None:
    """Blocks of 32 bytes from UB to the L1 of the same block; gaps lie between the end of a burst and the start of the next."""
    source, destination = operand(v, src, "source"), operand(v, dst, "destination")
    to_l1(v, source, destination, v.expr(length), v.expr(bursts), v.expr(src_gap), v.expr(dst_gap))


def to_l1(v: Visitor, source: Value, destination: Value, length: Value, bursts: Value, src_gap: Value, dst_gap: Value) -> None:
    """One UB to L1 copy; everything counts blocks of 32 bytes."""
    for value, what, most in (
        (length, "the burst length of a copy from UB to L1", 65535),
        (bursts, "the number of bursts of a copy from UB to L1", 4095),
        (src_gap, "the source gap of a copy from UB to L1", 65535),
        (dst_gap, "the destination gap of a copy from UB to L1", 65535),
    ):
        if value.low > most:
            v.unsupported(f"{what} is {value.low} blocks of 32 bytes, but the instruction takes at most {most}", "use a smaller tile")
    operands = [source, destination, length, bursts, src_gap, dst_gap]
    v.b.effect(lambda e: call("pto.mte_ub_l1", *e[:3], nburst=tuple_of(*e[3:])), operands)


ELEMENT_TYPES = {
    "float": "float32",
    "half": "float16",
    "bfloat16_t": "bfloat16",
    "int8_t": "int8",
    "uint8_t": "uint8",
    "int16_t": "int16",
    "uint16_t": "uint16",
    "int32_t": "int32",
    "uint32_t": "uint32",
    "float8_e4m3_t": "float8_e4m3fn",
    "float8_e5m2_t": "float8_e5m2",
}
"""Element types of layout changes, by their C names."""


CTYPE = tuple(ELEMENT_TYPES)


@op("tl.ascend_nd2nz_post_copy", arity=6, regions="scalar", core="vector",
    literals={"rows": CONSTANT, "columns": CONSTANT, "full_rows": CONSTANT, "ctype": CTYPE}, spaces={"dst": "mat", "src": "ub"},
    emits="mte_ub_l1")  # fmt: skip
def ascend_nd2nz_post_copy(v: Visitor, node: Any, dst: Any, src: Any, rows: Any, columns: Any, full_rows: Any, ctype: Any) -> None:
    """A tile that lies in UB in columns of 32 bytes, each followed by one block of padding, into an L1 tile of more rows."""
    dtype = v.element(ELEMENT_TYPES[str(ctype.value)])
    count, width, pitch = int(rows), int(columns), int(full_rows)
    if width * dtype.bytes % 32:
        v.unsupported(f"a tile of {width} {dtype.tir} columns in L1", "let its rows be a multiple of 32 bytes")
    source, destination = operand(v, src, "source"), operand(v, dst, "destination")
    to_l1(v, source, destination, v.index(count), v.index(width * dtype.bytes // 32), v.index(1), v.index(pitch - count))
