"""GEMM of operands in L1: a loop over slices of K that fit into L0, in the file, with its figures in a comment.

Tile A is M x K and tile B is N x K in L1. Each slice goes to L0A and L0B, is multiplied, and adds to L0C. Two stages of L0 alternate, so
the loads of one slice overlap the multiplication of the one before; buffer tokens, one per stage, order the two pipes, also across GEMMs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ..caps import MEMORIES, TOKENS
from ..emit import call, constant
from ..registry import CONSTANT, TEXT, op
from ..types import BOOL, DTYPES, INDEX, DType
from ..values import Value
from ..visitor import MemorySpace, Storage, Visitor, operation_name
from .control import device_loop
from .cube_load import emit_scales, load_tile
from .cube_mad import LARGEST_EXTENT, Flag, choice, lowered, multiply, unit_flag
from .memory import access_pointer, allocate, at, describe_view, memory_pointer
from .operands import field, operand

ROWS = 16
"""Rows of a fractal."""

COLUMN_BYTES = 32
"""Bytes of a row of a fractal."""

SCALED_K = 64
"""Values of K that one pair of scale factors covers."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Figures of one GEMM.

    Attributes:
        m, n, k: extents of the tiles in L1.
        slice: values of K multiplied at a time.
        dtype: element type of both operands.
    """

    m: int
    n: int
    k: int
    slice: int
    dtype: DType

    @property
    def steps(self) -> int:
        return self.k // self.slice

    @property
    def stages(self) -> int:
        return min(2, self.steps)

    @property
    def c0(self) -> int:
        """Values in a row of a fractal."""
        return COLUMN_BYTES // self.dtype.bytes * self.per_byte

    @property
    def per_byte(self) -> int:
        """Values an element of memory holds."""
        return 2 if self.dtype == DTYPES["float4_e2m1fnx2"] else 1

    def stage_bytes(self, rows: int) -> int:
        """Bytes of one slice of ``rows`` rows."""
        return rows * self.slice // self.per_byte * self.dtype.bytes


_FIGURES = {"m": CONSTANT, "k": CONSTANT, "n": CONSTANT, "slice": CONSTANT, "ctype": TEXT, "token": CONSTANT}


@op(
    "tl.ascend_gemm_l1",
    arity=12,
    regions="scalar",
    core="cube",
    literals={**_FIGURES, "by_rows": (0, 1)},
    spaces={"dst": "acc", "left": "mat", "right": "mat"},
    dtypes=("bf16", "f16", "f32", "f8e4m3", "f8e5m2", "i8"),
    emits=("mte_l1_l0a", "mte_l1_l0b", "mad", "mad_acc", "get_buf", "rls_buf"),
)
def ascend_gemm_l1(
    v: Visitor,
    node: Any,
    dst: Any,
    left: Any,
    right: Any,
    m: Any,
    k: Any,
    n: Any,
    slice: Any,
    by_rows: Any,
    clear: Any,
    ctype: Any,
    token: Any,
    flag: Any,
) -> None:
    """``C (+)= A @ B.T`` of tiles in L1; if not ``by_rows``, B is K x N in L1 and turned on its way to L0."""
    shape = _shape(v, left, m, n, k, slice)
    pipeline = _Pipeline(v, shape, dst, left, right, _first_token(v, token, shape), turn=not int(by_rows))
    pipeline.emit("mad", v.arith.cast(v.expr(clear), BOOL), unit_flag(v, flag))


@op(
    "tl.ascend_blockscaled_gemm_l1",
    arity=18,
    regions="scalar",
    core="cube",
    literals={**_FIGURES, "by_rows": (1,), "scale_ctype": TEXT, "result_ctype": ("float",), "scale_stride": CONSTANT},
    spaces={"dst": "acc", "left": "mat", "right": "mat", "left_scales": "mat", "right_scales": "mat"},
    dtypes=("f8e4m3", "f8e5m2", "f4e2m1x2"),
    emits=("mte_l1_l0a", "mte_l1_l0b", "mte_l1_l0a_mx", "mte_l1_l0b_mx", "mad_mx", "mad_mx_acc", "get_buf", "rls_buf"),
)
def ascend_blockscaled_gemm_l1(
    v: Visitor,
    node: Any,
    dst: Any,
    left: Any,
    right: Any,
    left_scales: Any,
    right_scales: Any,
    m: Any,
    k: Any,
    n: Any,
    slice: Any,
    by_rows: Any,
    clear: Any,
    ctype: Any,
    scale_ctype: Any,
    result_ctype: Any,
    token: Any,
    scale_start: Any,
    scale_stride: Any,
    flag: Any,
) -> None:
    """The same with a scale factor for every 32 values of K, as pairs in L1 beside the operands."""
    shape = _shape(v, left, m, n, k, slice)
    if shape.slice % SCALED_K:
        v.unsupported(f"a block-scaled GEMM in slices of {shape.slice} of K", f"let K of the tiles be a multiple of {SCALED_K}")
    pipeline = _Pipeline(v, shape, dst, left, right, _first_token(v, token, shape))
    scales = tuple(operand(v, pointer, "scale factors", DTYPES["float8_e8m0fnu"]) for pointer in (left_scales, right_scales))
    pipeline.scales = _Scales(
        scales,
        v.arith.cast(field(v, scale_start, "the first pair of scale factors", 65535), INDEX),
        int(scale_stride),
    )
    pipeline.emit("mad_mx", v.arith.cast(v.expr(clear), BOOL), unit_flag(v, flag))


def _shape(v: Visitor, left: Any, m: Any, n: Any, k: Any, slice: Any) -> Shape:
    rows, columns, depth, part = (
        v.integer(value, f"{name} of a GEMM") for name, value in (("M", m), ("N", n), ("K", k), ("the slice of K", slice))
    )
    shape = Shape(rows, columns, depth, part, v.element(access_pointer(v, left, "A").dtype))
    advice = "choose the tile so that M and N are multiples of 16 and K one of a row of 32 bytes"
    if shape.m % ROWS or shape.n % ROWS or shape.k % shape.slice or shape.slice % shape.c0:
        v.unsupported(f"a GEMM of {shape.m} x {shape.n} x {shape.k} in slices of {shape.slice} of {shape.dtype.tir}", advice)
    if max(shape.m, shape.n, shape.slice) > LARGEST_EXTENT:
        v.unsupported(f"a GEMM of {shape.m} x {shape.n} in slices of {shape.slice}", f"multiply at most {LARGEST_EXTENT} at a time")
    return shape


def _first_token(v: Visitor, node: Any, shape: Shape) -> int:
    number = v.integer(node, "the buffer token of a GEMM")
    if not 0 <= number <= TOKENS - shape.stages:
        v.unsupported(f"buffer tokens from {number}", f"buffer ids are 0 to {TOKENS - 1}")
    return number


@dataclass(slots=True)
class _Scales:
    """Scale factors in L1: pointers, first pair, pairs in a row of 16 x 2 fragments."""

    pointers: tuple[Value, ...]
    start: Value
    stride: int


class _Pipeline:
    """Emits one GEMM."""

    def __init__(self, v: Visitor, shape: Shape, dst: Any, left: Any, right: Any, token: int, *, turn: bool = False) -> None:
        self.v, self.shape, self.token, self.turn = v, shape, token, turn
        self.accumulator = operand(v, dst, "accumulator")
        self.sources = (operand(v, left, "A"), operand(v, right, "B"))
        self.names = tuple(str(access_pointer(v, node, "operand").data.name) for node in (dst, left, right))
        if self.sources[0].dtype != self.sources[1].dtype:
            v.unsupported(
                f"a GEMM of {self.sources[0].dtype.tir} and {self.sources[1].dtype.tir} in L1", "use one dtype, or T.gemm on L0 tiles"
            )
        if turn and (shape.slice % max(16, shape.c0) or (shape.dtype.bits == 32 and shape.n % 16)):
            v.unsupported(
                f"a GEMM of a {shape.dtype.tir} B that is K x N in L1", "copy B to L1 with transpose=True and use transpose_B=True"
            )
        self.stages = {space: _stages(v, space) for space in ("left", "right")}
        self.scales: _Scales | None = None

    def emit(self, family: Any, clear: Value, flag: Flag) -> None:
        """The comment and the loop."""
        v, shape = self.v, self.shape
        v.b.comment(self._figures())
        with self._steps() as step:
            first = v.arith.compare("==", step, v.index(0))
            last = v.arith.compare("==", step, v.index(shape.steps - 1))
            stage = v.arith.floor_modulo(step, v.index(2))
            stage.hint = "stage"
            token = v.arith.add(stage, v.index(self.token))
            if self.token:
                token.hint = "token"
            tiles = [
                at(v, memory_pointer(v, self.stages[space], shape.dtype), self._stage_offset(stage, rows))
                for space, rows in (("left", shape.m), ("right", shape.n))
            ]
            self._claim("get_buf", "MTE1", token)
            self._load(step, tiles)
            self._claim("rls_buf", "MTE1", token)
            self._claim("get_buf", "M", token)
            extents = tuple(v.index(extent) for extent in (shape.m, shape.n, shape.slice))
            multiply(
                v,
                family,
                (tiles[0], tiles[1], self.accumulator),
                extents,
                clear=v.arith.logical("&", clear, first),
                flag=choice(v, last, flag, lowered(v, flag)),
                flag_of_clear=lowered(v, flag) if shape.steps > 1 else flag,
            )
            self._claim("rls_buf", "M", token)

    def _figures(self) -> str:
        shape = self.shape
        sizes = " and ".join(
            f"{shape.stages} x {shape.stage_bytes(rows)} B of {MEMORIES[space].name}"
            for space, rows in (("left", shape.m), ("right", shape.n))
        )
        count = f"{shape.steps} slices" if shape.steps > 1 else "1 slice"
        tokens = f"tokens {self.token} and {self.token + 1}" if shape.stages > 1 else f"token {self.token}"
        return (
            f"{self.names[0]}: GEMM of {shape.m} x {shape.n} x {shape.k} {shape.dtype.tir} from L1, {count} of K = {shape.slice}, "
            f"{sizes}, {tokens}"
        )

    @contextmanager
    def _steps(self) -> Iterator[Value]:
        """The loop over slices; a single slice needs none."""
        if self.shape.steps == 1:
            yield self.v.index(0)
            return
        with device_loop(self.v, "k_slice", self.shape.steps) as step:
            yield step

    def _stage_offset(self, stage: Value, rows: int) -> Value:
        offset = self.v.arith.mul(stage, self.v.index(self.shape.stage_bytes(rows) // self.shape.dtype.bytes))
        offset.hint = "stage_offset"
        return offset

    def _claim(self, function: str, pipe: str, token: Value) -> None:
        self.v.b.effect(lambda e: call(f"pto.{function}", constant(pipe), e[0]), [token])

    def _load(self, step: Value, tiles: Sequence[Value]) -> None:
        v, shape = self.v, self.shape
        zero, rows, columns = v.index(0), shape.m // ROWS, shape.slice // shape.c0
        column = v.arith.mul(step, v.index(columns))
        column.hint = "first_column"
        a, b = self.sources
        pitch = v.index(rows)
        load_tile(v, "pto.mte_l1_l0a", a, tiles[0], (zero, column), (v.index(rows), v.index(columns)), (pitch, pitch))
        rows = shape.n // ROWS
        pitch = v.index(rows)
        if self.turn:
            group = v.arith.mul(step, v.index(shape.slice // ROWS))
            group.hint = "first_row"
            steps = (v.index(shape.slice // ROWS), v.index(shape.n // shape.c0))
            load_tile(v, "pto.mte_l1_l0b", b, tiles[1], (group, zero), steps, (v.index(shape.k // ROWS), pitch), transpose=True)
        else:
            load_tile(v, "pto.mte_l1_l0b", b, tiles[1], (zero, column), (v.index(rows), v.index(columns)), (pitch, pitch))
        if self.scales is not None:
            pairs = shape.slice // SCALED_K
            start = v.arith.add(self.scales.start, v.arith.mul(step, v.index(pairs)))
            start.hint = "first_pair"
            for function, source, tile, extent in zip(
                ("pto.mte_l1_l0a_mx", "pto.mte_l1_l0b_mx"), self.scales.pointers, tiles, (shape.m, shape.n), strict=True
            ):
                values = [zero, start, v.index(extent // ROWS), v.index(pairs), v.index(self.scales.stride), v.index(pairs)]
                emit_scales(v, function, source, tile, values)


def _stages(v: Visitor, space: MemorySpace) -> Storage:
    """The stages of L0 that all GEMMs of the kernel share, behind the tiles the kernel allocates itself."""
    key = ("GEMM stages", space)
    if key not in v.storage:
        sizes = [_shape_of_call(v, node) for node in _gemms(v.body)]
        size = max(shape.stages * shape.stage_bytes(shape.m if space == "left" else shape.n) for shape in sizes)
        v.storage[key] = allocate(v, space, "GEMM stages", "uint8", size)
        describe_view(v, v.storage[key], v.storage[key].name)
    return v.storage[key]


def _gemms(body: Any) -> list[Any]:
    found: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, tirx.Call) and operation_name(node) in ("tl.ascend_gemm_l1", "tl.ascend_blockscaled_gemm_l1"):
            found.append(node)

    tirx.stmt_functor.post_order_visit(body, visit)
    return found


def _shape_of_call(v: Visitor, node: Any) -> Shape:
    start = 3 if operation_name(node) == "tl.ascend_gemm_l1" else 5
    m, k, n, slice = node.args[start : start + 4]
    return _shape(v, node.args[1], m, n, k, slice)
