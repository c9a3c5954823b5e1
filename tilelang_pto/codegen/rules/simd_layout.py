"""A tile in UB from rows to the layout of L1: columns of 32 bytes, one below the other, each with a block of padding behind it.

The padding keeps the eight blocks of a store in different banks; the copy to L1 leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..emit import call
from ..registry import CONSTANT, op
from ..types import DTYPES, REGISTER_BYTES, DType, Type, mask_type, register_type
from ..values import Value
from ..visitor import Visitor
from .control import device_loop, vector_function
from .cube_memory import CTYPE, ELEMENT_TYPES
from .memory import UB, at
from .operands import operand
from .simd_arith import bitcast
from .simd_convert import convert
from .simd_mask import full_mask
from .simd_pairs import pair, register_shape
from .simd_permute import pack

BLOCK_BYTES = 32
BLOCKS = REGISTER_BYTES // BLOCK_BYTES
"""Blocks of one register, which a strided store sends to as many columns."""

_NARROWING = ("float16", "bfloat16")
_LONGEST_STRIDE = 32767


@op(
    "tl.ascend_nd2nz_scatter",
    arity=6,
    regions=("scalar", "simd"),
    core="vector",
    literals={"rows": CONSTANT, "columns": CONSTANT, "ctype": CTYPE, "source_ctype": CTYPE},
    spaces={"src": "ub", "dst": "ub"},
    emits=("vlds", "vsstb", "vcvt", "vpack", "vintlv", "vbitcast", "plt_b8", "plt_b16", "plt_b32", "vecscope"),
)
def ascend_nd2nz_scatter(v: Visitor, node: Any, src: Any, dst: Any, rows: Any, columns: Any, ctype: Any, source_ctype: Any) -> None:
    """``rows`` x ``columns`` from rows to columns of 32 bytes; it may convert between float32 and 16-bit floats."""
    target, origin = (v.element(ELEMENT_TYPES[str(name.value)]) for name in (ctype, source_ctype))
    height, width = int(rows), int(columns)
    split = _STEPS.get(_kind(v, origin, target))
    if split is None:
        v.unsupported(
            f"a change of layout that converts {origin.tir} to {target.tir}",
            "convert between float32 and float16 or bfloat16, or not at all",
        )
    if width * target.bytes % BLOCK_BYTES or width * origin.bytes % BLOCK_BYTES:
        v.unsupported(
            f"a change of layout of rows of {width} {origin.tir} to {target.tir}", f"let a row be a multiple of {BLOCK_BYTES} bytes"
        )
    if height + 1 > _LONGEST_STRIDE:
        v.unsupported(f"a change of layout of {height} rows", f"use less than {_LONGEST_STRIDE} rows")
    moved = (_moved(origin), _moved(target)) if origin == target else (origin, target)
    source, destination = (
        operand(v, pointer, name, dtype) for pointer, name, dtype in zip((src, dst), ("source", "destination"), moved, strict=True)
    )
    with _vector_code(v):
        _scatter(v, source, destination, height, width, split)


def _moved(dtype: DType) -> DType:
    """The type that carries elements nothing is computed with."""
    return DTYPES[f"uint{dtype.bits}"] if dtype.category in ("storage", "int") and dtype.bits == 8 else dtype


def _kind(v: Visitor, origin: DType, target: DType) -> str:
    if origin == target:
        return "same"
    if origin.tir == "float32" and target.tir in _NARROWING:
        return "narrow"
    return "widen" if origin.tir in _NARROWING and target.tir == "float32" else ""


@contextmanager
def _vector_code(v: Visitor) -> Iterator[None]:
    """Code of a vector function: the one it stands in, or one of its own."""
    if v.region == "simd":
        yield
        return
    with vector_function(v, "simd", call("pto.vecscope")):
        yield


Parts = Callable[[Visitor, Value, DType], Sequence[Value]]


def _scatter(v: Visitor, source: Value, destination: Value, rows: int, columns: int, split: tuple[Parts, int]) -> None:
    """Full registers of every row in a loop, then what is left of the rows."""
    parts, lanes = split[0], split[1] or REGISTER_BYTES // source.dtype.bytes
    stored_lanes = min(lanes, REGISTER_BYTES // destination.dtype.bytes)
    stride = v.b.literal(rows + 1, _STRIDE)

    def chunk(first_column: Value, columns_left: int) -> None:
        """One register of every row, ``columns_left`` lanes of it."""
        widths = [min(max(columns_left - start, 0), stored_lanes) for start in range(0, lanes, stored_lanes)]
        masks = [_first_lanes(v, width, destination.dtype.bits) if width else None for width in widths]
        below = v.arith.mul(first_column, v.index(rows + 1))
        targets = [at(v, destination, v.arith.add(below, v.index(start * (rows + 1)))) for start in range(0, lanes, stored_lanes)]
        with device_loop(v, "row", rows) as row:
            register = Type("register", source.dtype, REGISTER_BYTES // source.dtype.bytes)
            place = v.arith.add(v.arith.mul(row, v.index(columns)), first_column)
            loaded = v.b.pure(
                ("vlds", "NORM"), lambda e: call("pto.vlds", *e, register_shape(register)), (source, place), register,
                hint="values", memory=UB, pinned=True, weight=44,
            )  # fmt: skip
            below_row = v.arith.cast(row, _STRIDE)
            for part, mask, target in zip(parts(v, loaded, destination.dtype), masks, targets, strict=True):
                if mask is not None:
                    v.b.effect(lambda e: call("pto.vsstb", *e), (part, target, stride, below_row, mask), writes=UB)

    full, rest = divmod(columns, lanes)
    if full > 1:
        with device_loop(v, "chunk", full) as number:
            chunk(v.arith.mul(number, v.index(lanes)), lanes)
    elif full:
        chunk(v.index(0), lanes)
    if rest:
        chunk(v.index(full * lanes), rest)


_STRIDE = Type("scalar", DTYPES["int16"])


def _first_lanes(v: Visitor, count: int, bits: int) -> Value:
    """A predicate of the first lanes."""
    if count * bits // 8 == REGISTER_BYTES:
        return full_mask(v, bits)
    function = f"pto.plt_b{bits}"
    number = v.b.literal(count, Type("scalar", DTYPES["int32"]))
    mask, _ = v.b.unpack(lambda e: call(function, *e), (v.arith.typed(number),), (mask_type(bits), number.type), ("mask", "rest"))
    return mask


def _same(v: Visitor, loaded: Value, target: DType) -> list[Value]:
    return [loaded]


def _narrow(v: Visitor, loaded: Value, target: DType) -> list[Value]:
    """Rounded to nearest even; the results of the 64 lanes together in the lower half."""
    half = register_type(f"{target.tir}x128")
    assert half is not None
    rounded = convert(v, loaded, half, full_mask(v, 32), rnd="R", sat="NOSAT", part="EVEN")
    bits = register_type("uint32x64")
    assert bits is not None
    return [bitcast(v, pack(v, bitcast(v, rounded, bits), "LOWER"), half)]


def _widen(v: Visitor, loaded: Value, target: DType) -> list[Value]:
    """Exact; even and odd lanes back in order, in two registers."""
    wide = register_type("float32x64")
    assert wide is not None
    halves = [convert(v, loaded, wide, full_mask(v, 16), part=part) for part in ("EVEN", "ODD")]
    return list(pair(v, lambda e: call("pto.vintlv", *e), halves, (wide, wide), ("low", "high")).components)


_STEPS: dict[str, tuple[Parts, int]] = {"same": (_same, 0), "narrow": (_narrow, 64), "widen": (_widen, 128)}
"""What is stored of a loaded register, and columns of one step (0: as many as a register holds)."""
