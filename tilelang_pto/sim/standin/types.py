"""Type descriptors of the stand-in: element types, pointers, registers, masks, short vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tilelang_pto.sim.program import Type

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

__all__ = [
    "ALIGN",
    "DTYPE_ALIASES",
    "DTYPE_NAMES",
    "MASKS",
    "PLAIN",
    "AlignType",
    "DType",
    "MaskType",
    "PtrType",
    "StructType",
    "SurfaceType",
    "VRegType",
    "VecType",
    "mask_for",
]  # fmt: skip


class DType:
    """An element type. Calling it makes a constant: ``pto.f32(1.5)``."""

    __slots__ = ("_recorder", "bits", "family", "name", "record", "signed")

    def __init__(self, name: str, bits: int, family: str, signed: bool, recorder: Recorder | None = None) -> None:
        self.name = name
        self.bits = bits
        self.family = family  # "float", "int", "index", "storage"
        self.signed = signed
        self.record = Type("scalar", name[1:] if name[:2] == "si" else name)
        self._recorder = recorder

    def bind(self, recorder: Recorder) -> DType:
        """The same type, able to make constants in ``recorder``."""
        return DType(self.name, self.bits, self.family, self.signed, recorder)

    def __call__(self, value: Any) -> Any:
        from tilelang_pto.sim.standin import scalar

        assert self._recorder is not None
        return scalar.constant(self._recorder, value, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DType) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"pto.{self.name}"

    @property
    def is_float(self) -> bool:
        return self.family == "float"

    @property
    def is_integer(self) -> bool:
        """An integer of fixed width (not ``index``)."""
        return self.family == "int"

    @property
    def is_integral(self) -> bool:
        """An integer or ``index``."""
        return self.family == "int" or self.family == "index"

    @property
    def unsigned(self) -> bool:
        return self.family == "int" and not self.signed

    @property
    def bytes(self) -> int:
        return max(self.bits // 8, 1)


def _plain() -> dict[str, DType]:
    table = {}
    for bits in (8, 16, 32, 64):
        table[f"i{bits}"] = DType(f"i{bits}", bits, "int", True)
        table[f"si{bits}"] = DType(f"si{bits}", bits, "int", True)
        table[f"ui{bits}"] = DType(f"ui{bits}", bits, "int", False)
    table["i1"] = DType("i1", 1, "int", False)
    table["index"] = DType("index", 64, "index", True)
    for name, bits in (("f32", 32), ("f16", 16), ("bf16", 16)):
        table[name] = DType(name, bits, "float", True)
    for name in ("f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e1m2x2", "f4e2m1x2"):
        table[name] = DType(name, 8, "storage", True)
    return table


#: Unbound element types by name.
PLAIN: dict[str, DType] = _plain()
DTYPE_ALIASES = {
    "float32": "f32", "float16": "f16", "int1": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
}  # fmt: skip
DTYPE_NAMES = frozenset(PLAIN) | frozenset(DTYPE_ALIASES)


@dataclass(frozen=True)
class PtrType:
    """A pointer into one memory space."""

    element: DType
    space: str
    record: Type = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "record", Type("pointer", self.element.record.dtype, self.space))

    def __str__(self) -> str:
        return f"ptr({self.element.name}, {self.space!r})"


@dataclass(frozen=True)
class VRegType:
    """A 256-byte vector register."""

    lanes: int
    element: DType
    record: Type = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "record", Type("vreg", self.element.record.dtype, "none", self.lanes))

    def __str__(self) -> str:
        return f"vreg({self.lanes}, {self.element.name})"


@dataclass(frozen=True)
class MaskType:
    """A predicate; ``bits`` is the element width it fits."""

    bits: int
    record: Type = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "record", Type("mask", "none", "none", 2048 // self.bits))

    def __str__(self) -> str:
        return f"mask b{self.bits}"


@dataclass(frozen=True)
class VecType:
    """A short vector of one SIMT work-item."""

    element: DType
    lanes: int
    record: Type = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "record", Type("vector", self.element.record.dtype, "none", self.lanes))

    def __str__(self) -> str:
        return f"Vec({self.element.name}, {self.lanes})"


@dataclass(frozen=True)
class AlignType:
    """The state of an unaligned load or store stream."""

    record: Type = field(default=Type("align"), repr=False, compare=False)

    def __str__(self) -> str:
        return "AlignType"


@dataclass(frozen=True)
class StructType:
    """A stack struct of scalars."""

    fields: tuple[DType, ...]


SurfaceType: TypeAlias = DType | PtrType | VRegType | MaskType | VecType | AlignType

ALIGN = AlignType()
MASKS = {8: MaskType(8), 16: MaskType(16), 32: MaskType(32)}


def mask_for(element: DType) -> MaskType:
    """The mask type whose granularity fits ``element`` (64-bit lanes use ``b32``)."""
    return MASKS[min(max(element.bits, 8), 32)]
