"""Types of emitted values, and what they are called in PTODSL.

A :class:`Type` is the type of one PTODSL value: a scalar, a pointer, a 256-byte vector register or a predicate. TIR dtypes
are translated once, by :func:`scalar_type` and :func:`register_type`; the names in the tables are PTODSL's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

__all__ = [
    "BOOL",
    "DTYPES",
    "I32",
    "I64",
    "INDEX",
    "DType",
    "Type",
    "mask_type",
    "pointer_type",
    "register_type",
    "scalar_type",
    "split_lanes",
]

REGISTER_BYTES = 256

Category = Literal["bool", "int", "uint", "float", "index", "storage"]


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    Attributes:
        tir: TIR's name (``"bfloat16"``).
        pto: attribute of the ``pto`` namespace that names it (``"bf16"``).
        bits: storage width.
        category: decides shift, division, comparison and extension; ``storage`` types are only loaded, stored and converted.
    """

    tir: str
    pto: str
    bits: int
    category: Category

    @property
    def is_integer(self) -> bool:
        return self.category in ("int", "uint", "index")

    @property
    def is_float(self) -> bool:
        return self.category == "float"

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def minimum(self) -> int:
        """Smallest integer value."""
        return 0 if self.category in ("uint", "bool") else -(1 << (self.bits - 1))

    @property
    def maximum(self) -> int:
        """Largest integer value."""
        if self.category == "bool":
            return 1
        return (1 << self.bits) - 1 if self.category == "uint" else (1 << (self.bits - 1)) - 1


_ROWS: tuple[tuple[str, str, int, Category], ...] = (
    ("bool", "i1", 1, "bool"),
    ("int8", "i8", 8, "int"),
    ("int16", "i16", 16, "int"),
    ("int32", "i32", 32, "int"),
    ("int64", "i64", 64, "int"),
    ("uint8", "ui8", 8, "uint"),
    ("uint16", "ui16", 16, "uint"),
    ("uint32", "ui32", 32, "uint"),
    ("uint64", "ui64", 64, "uint"),
    ("float16", "f16", 16, "float"),
    ("bfloat16", "bf16", 16, "float"),
    ("float32", "f32", 32, "float"),
    ("index", "index", 64, "index"),
    ("float8_e4m3fn", "f8e4m3", 8, "storage"),
    ("float8_e5m2", "f8e5m2", 8, "storage"),
    ("float8_e8m0fnu", "f8e8m0", 8, "storage"),
    ("float4_e2m1fnx2", "f4e2m1x2", 8, "storage"),
)
DTYPES: dict[str, DType] = {row[0]: DType(*row) for row in _ROWS}

_FP4, _FP4_PAIR = "float4_e2m1fn", "float4_e2m1fnx2"
DTYPES[_FP4] = DTYPES[_FP4_PAIR]  # memory of fp4 is counted in bytes, each of two values


@dataclass(frozen=True, slots=True)
class Type:
    """Type of one PTODSL value.

    Attributes:
        kind: what sort of value it is; a ``vector`` is a short one of a SIMT thread.
        dtype: element type; of a mask, the unsigned integer type whose width is the mask's granularity.
        lanes: lanes of a register, mask or short vector, 1 otherwise.
        space: memory space of a pointer (``gm``, ``ub``, ``stack``), empty otherwise.
    """

    kind: Literal["scalar", "pointer", "register", "mask", "vector", "pair"]
    dtype: DType
    lanes: int = 1
    space: str = ""

    def __str__(self) -> str:
        if self.kind == "scalar":
            return self.dtype.pto
        if self.kind == "pointer":
            return f"ptr({self.dtype.pto}, {self.space})"
        if self.kind == "mask":
            return f"mask_b{self.dtype.bits}"
        if self.kind == "pair":
            return "a pair of values"
        if self.kind == "vector":
            return f"vec({self.lanes} x {self.dtype.pto})"
        return f"vreg({self.lanes} x {self.dtype.pto})"


BOOL = Type("scalar", DTYPES["bool"])
I32 = Type("scalar", DTYPES["int32"])
I64 = Type("scalar", DTYPES["int64"])
INDEX = Type("scalar", DTYPES["index"])

_LANES = re.compile(r"(.*?)x(\d+)$")


@cache
def split_lanes(tir_dtype: str) -> tuple[str, int]:
    """``"float32x64"`` -> ``("float32", 64)``; a scalar dtype has one lane. Two fp4 values are one element."""
    match = _LANES.match(tir_dtype)
    if match is None:
        return tir_dtype, 1
    name, lanes = match.group(1), int(match.group(2))
    return (_FP4_PAIR, lanes // 2) if name == _FP4 else (name, lanes)


@cache
def scalar_type(tir_dtype: str) -> Type | None:
    """Scalar type of a TIR dtype, None if PTODSL has none."""
    dtype = DTYPES.get(tir_dtype)
    return Type("scalar", dtype) if dtype and dtype.category != "storage" else None


@cache
def register_type(tir_dtype: str) -> Type | None:
    """Vector register type of a TIR dtype such as ``float32x64``; None unless it fills a register of 256 bytes."""
    name, lanes = split_lanes(tir_dtype)
    dtype = DTYPES.get(name)
    if dtype is None or dtype.bits < 8 or lanes * dtype.bytes != REGISTER_BYTES:
        return None
    return Type("register", dtype, lanes)


@cache
def mask_type(bits: int) -> Type:
    """Predicate type for elements of ``bits`` bits (8, 16 or 32)."""
    return Type("mask", DTYPES[f"uint{bits}"], REGISTER_BYTES * 8 // bits)


@cache
def pointer_type(dtype: DType, space: str) -> Type:
    """Pointer to elements of ``dtype`` in ``space``."""
    return Type("pointer", dtype, 1, space)
