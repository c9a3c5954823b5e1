"""L1 to L0A and L0B: tiles, and the scale factors that belong to them. Operands are (destination, source)."""

from __future__ import annotations

from typing import Any

from ..emit import call, constant
from ..registry import op
from ..types import DTYPES, DType
from ..values import Value
from ..visitor import Visitor
from .memory import at
from .operands import field, operand, require_multiple

FRACTAL_BYTES = 512
"""16 rows of 32 bytes; starts, steps and strides of loads count these."""

OPERAND_TYPES = ("int8", "float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fnx2")
"""Element types of what the cube core multiplies."""


def _load(v: Visitor, function: str, dst: Any, src: Any, numbers: tuple[Any, ...], transpose: Any, scales: tuple[Any, ...]) -> None:
    m_start, k_start, m_step, k_step, src_stride, dst_stride = numbers
    turned = bool(int(transpose))
    source, destination = operand(v, src, "source"), operand(v, dst, "destination")
    if source.dtype != destination.dtype:
        v.unsupported(f"a load of {source.dtype.tir} into a {destination.dtype.tir} tile", "the tile in L1 and that in L0 have one dtype")
    if source.dtype not in [DTYPES[name] for name in OPERAND_TYPES]:
        v.unsupported(f"a load of {source.dtype.tir} for the cube core", f"use one of {', '.join(OPERAND_TYPES)}")
    if turned:
        _check_transpose(v, source.dtype, m_step, k_step)
    start = (field(v, m_start, "the first row of a load from L1", 65535), field(v, k_start, "the first column of a load from L1", 65535))
    step = (
        field(v, m_step, "the number of row groups of a load", 255, 1),
        field(v, k_step, "the number of column groups of a load", 255, 1),
    )
    strides = (field(v, src_stride, "the source stride of a load", 65535), field(v, dst_stride, "the destination stride of a load", 65535))
    load_tile(v, function, source, destination, start, step, strides, transpose=turned)
    if scales:
        load_scales(v, function + "_mx", destination, *scales)


def load_tile(
    v: Visitor,
    function: str,
    source: Value,
    destination: Value,
    start: tuple[Value, Value],
    step: tuple[Value, Value],
    strides: tuple[Value, Value],
    *,
    transpose: bool = False,
) -> None:
    """One load; ``start`` and ``step`` are groups of 16 rows and of 32 bytes, strides the groups of rows from one column to the next."""
    if source.dtype == DTYPES["float4_e2m1fnx2"]:  # its start has another unit; the address says it without doubt
        blocks = v.arith.add(v.arith.mul(start[1], v.arith.cast(strides[0], start[1].type)), v.arith.cast(start[0], start[1].type))
        source = at(v, source, v.arith.mul(blocks, v.arith.number(FRACTAL_BYTES, blocks.type)))
        start = (v.index(0), v.index(0))
    names = ("m_start", "k_start", "m_step", "k_step", "src_stride", "dst_stride")
    turned = {"transpose": constant(True)} if transpose else {}
    v.b.effect(
        lambda e: call(function, *e[:2], **dict(zip(names, e[2:], strict=True)), **turned),
        [source, destination, *start, *step, *strides],
    )


def _check_transpose(v: Visitor, dtype: DType, m_step: Any, k_step: Any) -> None:
    """A transposing load turns whole squares."""
    advice = "copy a source region that covers whole squares, and give the effective extents to T.gemm"
    if dtype == DTYPES["float4_e2m1fnx2"]:
        require_multiple(v, m_step, 4, "the number of row groups of a transposing float4 load", advice)
    elif dtype.bits == 8:
        require_multiple(v, m_step, 2, f"the number of row groups of a transposing {dtype.tir} load", advice)
    elif dtype.bits == 32:
        require_multiple(v, k_step, 2, f"the number of column groups of a transposing {dtype.tir} load", advice)


_SCALE_CONTROLS = ("x_start", "y_start", "x_step", "y_step", "src_stride", "dst_stride")


def load_scales(
    v: Visitor,
    function: str,
    tile: Value,
    scales: Any,
    x_start: Any,
    y_start: Any,
    x_step: Any,
    y_step: Any,
    src_stride: Any,
    dst_stride: Any,
) -> None:
    """The scale factors of a tile in L0: groups of 16 rows (x) and of two scale factors (y)."""
    source = operand(v, scales, "scale factors", DTYPES["float8_e8m0fnu"])
    values = [
        field(v, value, f"{name} of a load of scale factors", 255 if name.endswith("step") else 65535)
        for name, value in zip(_SCALE_CONTROLS, (x_start, y_start, x_step, y_step, src_stride, dst_stride), strict=True)
    ]
    emit_scales(v, function, source, tile, values)


def emit_scales(v: Visitor, function: str, source: Value, tile: Value, values: list[Value]) -> None:
    """One load of scale factors; ``values`` are starts, steps and strides."""
    v.b.effect(lambda e: call(function, *e[:2], **dict(zip(_SCALE_CONTROLS, e[2:], strict=True))), [source, tile, *values])


PTO_OPERANDS = tuple(DTYPES[name].pto for name in OPERAND_TYPES)


def _register_loads(side: str, space: str) -> None:
    function = f"pto.mte_l1_l0{side}"

    @op(
        f"tl.ascend_load_cbuf_to_c{side}",
        arity=(9, 16),
        regions="scalar",
        core="cube",
        literals={"transpose": (0, 1)},
        spaces={"dst": space, "src": "mat"},
        dtypes=PTO_OPERANDS,
        emits=(f"mte_l1_l0{side}", f"mte_l1_l0{side}_mx"),
    )
    def load(
        v: Visitor,
        node: Any,
        dst: Any,
        src: Any,
        m_start: Any,
        k_start: Any,
        m_step: Any,
        k_step: Any,
        src_stride: Any,
        dst_stride: Any,
        transpose: Any,
        *scales: Any,
    ) -> None:
        """A tile, and if asked for its scale factors."""
        _load(v, function, dst, src, (m_start, k_start, m_step, k_step, src_stride, dst_stride), transpose, scales)

    @op(f"tl.ascend_load_c{side}_sf", arity=8, regions="scalar", core="cube", spaces={"tile": space, "scales": "mat"},
        emits=f"mte_l1_l0{side}_mx")  # fmt: skip
    def scales_alone(
        v: Visitor,
        node: Any,
        tile: Any,
        scales: Any,
        x_start: Any,
        y_start: Any,
        x_step: Any,
        y_step: Any,
        src_stride: Any,
        dst_stride: Any,
    ) -> None:
        """The scale factors of a tile."""
        load_scales(v, function + "_mx", operand(v, tile, "tile"), scales, x_start, y_start, x_step, y_step, src_stride, dst_stride)


_register_loads("a", "left")
_register_loads("b", "right")
