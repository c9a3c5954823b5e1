"""FIXPIPE: results from L0C to UB and GM, with quantisation, ReLU and changes of layout. Operands are (destination, source)."""

from __future__ import annotations

import ast
from typing import Any

from ..caps import VECTOR_CORES
from ..emit import call, constant, path
from ..registry import CONSTANT, OneOf, op
from ..types import DTYPES
from ..values import Value
from ..visitor import Visitor
from .cube_mad import fork_flag, unit_flag
from .cube_memory import tuple_of
from .memory import full_pointer
from .operands import field, operand, require_multiple

_TO_FLOAT8 = 13

QUANTISATION = {
    0: (None, None, {"float32": "float32", "int32": "int32"}),
    1: ("f32_f16", "float16", {"float32": "float16"}),
    16: ("f32_bf16", "bfloat16", {"float32": "bfloat16"}),
    _TO_FLOAT8: ("qf322fp8_pre_scalar", "float32", {"float32": "float8_e4m3fn"}),
}
"""Conversions on the way out, by AscendC's number: PTODSL's mode, type of the factor (one), result by accumulator.

The other modes take factors from registers or tables that no TileLang operation sets.
"""

STORE_FLAGS = {0: None, 2: "check_only", 3: "check_and_clear"}

SPLITS = {0: None, 1: "M", 2: "N"}

_UB_ALIGNMENT = 32


_ON_THE_WAY: dict[str, OneOf | tuple[int, ...]] = {
    "sid": (0,),
    "clip": (0,),
    "quantisation": CONSTANT,
    "relu": (0, 1),
    "channel_split": (0, 1),
    "to_rows": (0, 1),
    "rest": (0, 1),
}
_OUTPUTS = ("f32", "i32", "f16", "bf16", "f8e4m3")


@op(
    "tl.ascend_copy_matrix_cc_to_ub",
    arity=26,
    regions="scalar",
    core="cube",
    literals={**_ON_THE_WAY, "dual": tuple(SPLITS)},
    spaces={"dst": "ub", "src": "acc"},
    dtypes=_OUTPUTS,
    emits="mte_l0c_ub",
)
def ascend_copy_matrix_cc_to_ub(
    v: Visitor,
    node: Any,
    dst: Any,
    src: Any,
    sid: Any,
    columns: Any,
    rows: Any,
    dst_stride: Any,
    src_stride: Any,
    dual: Any,
    sub_block: Any,
    clip: Any,
    flag: Any,
    quantisation: Any,
    relu: Any,
    channel_split: Any,
    to_rows: Any,
    *rest: Any,
) -> None:
    """A tile into the UB of one vector core, or half of it to each."""
    split = SPLITS[int(dual)]
    if v.cores.kind != "mixed":
        v.unsupported("a copy from L0C to UB in a kernel without vector code", "copy to GM, or add a T.Vector() block")
    source, destination = operand(v, src, "source", alignment=64), operand(v, dst, "destination")
    options = _options(v, source, destination, quantisation, relu, channel_split, to_rows, rest)
    core: list[Value] = []
    if split:
        if "pre_quant" in options or "pre_relu" in options:
            v.unsupported("a conversion on the way to two vector cores", "convert inside a vector function, or copy to each core by itself")
        if split == "M":
            require_multiple(v, rows, 2, "the number of rows of a copy to two vector cores", "split columns, or use an even number of rows")
        else:
            require_multiple(v, columns, 32, "the number of columns of a copy to two vector cores", "split rows, or use a multiple of 32")
        options["split"] = constant(split)
    else:
        core = [field(v, sub_block, "the vector core of a copy from L0C", VECTOR_CORES - 1)]
    if split != "N":
        require_multiple(
            v, columns * destination.dtype.bytes, _UB_ALIGNMENT, "the length in bytes of a row in UB", "let rows be a multiple of 32 bytes"
        )
    operands = [source, destination, *_geometry(v, rows, columns, src_stride, dst_stride), *core]

    def store(token: str | None) -> None:
        unit = {"unit_flag": constant(token)} if token else {}
        v.b.effect(lambda e: call("pto.mte_l0c_ub", *e, **unit, **options), operands)

    fork_flag(v, unit_flag(v, flag), store, STORE_FLAGS)


@op(
    "tl.ascend_copy_matrix_cc_to_gm",
    arity=25,
    regions="scalar",
    core="cube",
    literals=_ON_THE_WAY,
    spaces={"dst": "gm", "src": "acc"},
    dtypes=_OUTPUTS,
    emits="mte_l0c_gm",
)
def ascend_copy_matrix_cc_to_gm(
    v: Visitor,
    node: Any,
    dst: Any,
    src: Any,
    sid: Any,
    columns: Any,
    rows: Any,
    dst_stride: Any,
    src_stride: Any,
    cache: Any,
    clip: Any,
    flag: Any,
    quantisation: Any,
    relu: Any,
    channel_split: Any,
    to_rows: Any,
    *rest: Any,
) -> None:
    """A tile to GM."""
    source, destination = operand(v, src, "source", alignment=64), full_pointer(v, dst, "destination")
    options = _options(v, source, destination, quantisation, relu, channel_split, to_rows, rest)
    hint = field(v, cache, "the L2 hint of a store", 15)
    operands = [source, destination, *_geometry(v, rows, columns, src_stride, dst_stride), v.index(0), hint]

    def store(token: str | None) -> None:
        unit = {"unit_flag": constant(token)} if token else {}
        v.b.effect(lambda e: call("pto.mte_l0c_gm", *e, **unit, **options), operands)

    fork_flag(v, unit_flag(v, flag), store, STORE_FLAGS)


def _geometry(v: Visitor, rows: Any, columns: Any, src_stride: Any, dst_stride: Any) -> list[Value]:
    return [
        field(v, rows, "the number of rows of a copy from L0C", 65535),
        field(v, columns, "the number of columns of a copy from L0C", 4095),
        field(v, src_stride, "the padded number of rows of a copy from L0C", 65535),
        field(v, dst_stride, "the row stride in elements of a copy from L0C", (1 << 32) - 1),
    ]


def _options(
    v: Visitor,
    source: Value,
    destination: Value,
    quantisation: Any,
    relu: Any,
    channel_split: Any,
    to_rows: Any,
    rest: tuple[Any, ...],
) -> dict[str, ast.expr]:
    """Keywords for what happens on the way."""
    *unused, to_columns = rest
    if any(int(value) for value in unused):
        v.unsupported("a mode of a copy from L0C that has no PTODSL form", "leave the operands behind the NZ to ND mode 0")
    options: dict[str, ast.expr] = {}
    number = int(quantisation)
    if not number and destination.dtype == DTYPES["float8_e4m3fn"]:
        number = _TO_FLOAT8  # TileLang's copy means to say so: its question for 8-bit floats is not true of float8 types
    if number not in QUANTISATION:
        v.unsupported(
            f"quantisation mode {number} on the way out of L0C ({source.dtype.tir} to {destination.dtype.tir})",
            "copy float32, float16, bfloat16 or float8_e4m3fn out of L0C and convert in a vector function",
        )
    mode, factor, results = QUANTISATION[number]
    if results.get(source.dtype.tir) != destination.dtype.tir:
        v.unsupported(
            f"a copy of {source.dtype.tir} from L0C to {destination.dtype.tir}",
            "copy float32 accumulators as float32, float16, bfloat16 or float8_e4m3fn and int32 ones as int32",
        )
    if mode and factor:
        one = call("pto.const", constant(1.0), dtype=path(f"pto.{DTYPES[factor].pto}"))
        options["pre_quant"] = tuple_of(one, constant(mode))
    if int(relu):
        options["pre_relu"] = tuple_of(constant("normal_relu"), constant(None), constant(None))
    rows, columns = int(to_rows), int(to_columns)
    if rows and columns:
        v.unsupported("a copy from L0C to rows and to columns at once")
    if rows:
        options["layout"] = constant("nz2nd")
    elif columns:
        options["layout"] = tuple_of(constant("nz2dn"), constant(1))
    if int(channel_split):
        if rows or columns or destination.dtype != DTYPES["float32"]:
            v.unsupported("a channel split of a copy from L0C to rows or columns", "it belongs to copies of float32 that keep the layout")
        options["layout"] = tuple_of(constant("nz2nz"), constant(1))
    return options
