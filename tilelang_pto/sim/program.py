"""The program form: what the stand-in ``ptodsl`` records and the native engine executes.

One module text gives one :class:`Program`. ``docs/program-form.md`` describes the bytes and the operations.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tilelang_pto.errors import SimulationError

__all__ = ["DTYPES", "KINDS", "SPACES", "Function", "Operation", "Parameter", "Program", "Region", "Type", "parse"]

MAGIC = b"PTOP"
VERSION = 1

#: Kinds of values by code.
KINDS = ("scalar", "pointer", "vreg", "mask", "vector", "align")

#: Element types by code.
DTYPES = (
    "none", "i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64", "index", "f16", "bf16", "f32",
    "f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1x2", "f4e1m2x2",
)  # fmt: skip

#: Memory spaces by code.
SPACES = ("none", "gm", "ub", "mat", "left", "right", "acc", "bias", "scaling", "stack")

_KIND_CODE = {name: code for code, name in enumerate(KINDS)}
_DTYPE_CODE = {name: code for code, name in enumerate(DTYPES)}
_SPACE_CODE = {name: code for code, name in enumerate(SPACES)}

_U32 = struct.Struct("<I")
_TYPE = struct.Struct("<BBBI")
_INTEGER = struct.Struct("<q")
_INDEX = struct.Struct("<Q")
_FLOAT = struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class Type:
    """The type of one value."""

    kind: str
    dtype: str = "none"
    space: str = "none"
    lanes: int = 0

    def __str__(self) -> str:
        if self.kind == "scalar":
            return self.dtype
        if self.kind == "pointer":
            return f"ptr<{self.dtype}, {self.space}>"
        if self.kind == "vreg":
            return f"vreg<{self.lanes} x {self.dtype}>"
        if self.kind == "mask":
            return f"mask<b{256 // self.lanes * 8 if self.lanes else 0}>"
        if self.kind == "vector":
            return f"vec<{self.lanes} x {self.dtype}>"
        return self.kind


@dataclass(slots=True)
class Region:
    """Straight-line operations with arguments (loop index and carried values)."""

    arguments: list[int] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


@dataclass(slots=True)
class Operation:
    """One recorded call."""

    opcode: str
    line: int
    operands: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    attributes: dict[str, int | str | float] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)

    def walk(self) -> Iterator[Operation]:
        """This operation and all operations inside it, in text order."""
        yield self
        for region in self.regions:
            for operation in region.operations:
                yield from operation.walk()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel: its name and the value it defines."""

    name: str
    value: int


@dataclass(slots=True)
class Function:
    """One kernel."""

    name: str
    kind: str
    line: int
    parameters: list[Parameter] = field(default_factory=list)
    types: list[Type] = field(default_factory=list)
    body: Region = field(default_factory=Region)

    def signature(self) -> tuple[tuple[str, Type], ...]:
        """Parameter names with their types, in order."""
        return tuple((parameter.name, self.types[parameter.value]) for parameter in self.parameters)

    def walk(self) -> Iterator[Operation]:
        """All operations, in text order."""
        for operation in self.body.operations:
            yield from operation.walk()


@dataclass(slots=True)
class Program:
    """All kernels of one module text."""

    source: str
    functions: list[Function] = field(default_factory=list)
    text: str = field(default="", repr=False, compare=False)  # for messages; not part of the bytes

    def function(self, name: str) -> Function:
        """The kernel called ``name``.

        Raises:
            SimulationError: there is no such kernel.
        """
        for function in self.functions:
            if function.name == name:
                return function
        names = ", ".join(function.name for function in self.functions) or "none"
        raise SimulationError(f"no kernel {name!r} in the program", where=(self.source,), advice=f"one of: {names}")

    def opcodes(self) -> frozenset[str]:
        """Every opcode that occurs."""
        return frozenset(operation.opcode for function in self.functions for operation in function.walk())

    def serialize(self) -> bytes:
        """The bytes that the engine reads."""
        return _Writer(self).bytes()

    def dump(self) -> str:
        """A readable listing. Line numbers of the module text stand behind ``;``."""
        out = [f"program {self.source!r}"]
        for function in self.functions:
            parameters = ", ".join(f"%{p.value} {p.name}: {function.types[p.value]}" for p in function.parameters)
            out.append(f"kernel {function.name}({parameters}) {function.kind or 'any'} ; {function.line}")
            _dump_region(function, function.body, 1, out)
        return "\n".join(out) + "\n"


def _dump_region(function: Function, region: Region, depth: int, out: list[str]) -> None:
    pad = "  " * depth
    for operation in region.operations:
        text = ""
        if operation.results:
            text = ", ".join(f"%{value}" for value in operation.results) + " = "
        text += operation.opcode
        if operation.operands:
            text += " " + ", ".join(f"%{value}" for value in operation.operands)
        if operation.attributes:
            text += " {" + ", ".join(f"{key}={value!r}" for key, value in operation.attributes.items()) + "}"
        if operation.results:
            text += " : " + ", ".join(str(function.types[value]) for value in operation.results)
        out.append(f"{pad}{text} ; {operation.line}")
        for inner in operation.regions:
            arguments = ", ".join(f"%{value}: {function.types[value]}" for value in inner.arguments)
            out.append(f"{pad}  ({arguments})" if arguments else f"{pad}  ()")
            _dump_region(function, inner, depth + 2, out)


class _Writer:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._strings: dict[str, int] = {}
        self._body = bytearray()

    def bytes(self) -> bytes:
        program = self._program
        self._string(program.source)
        self._u32(len(program.functions))
        for function in program.functions:
            self._function(function)
        head = bytearray(MAGIC)
        head += _U32.pack(VERSION)
        head += _U32.pack(len(self._strings))
        for text in self._strings:
            raw = text.encode("utf-8")
            head += _U32.pack(len(raw))
            head += raw
        return bytes(head + self._body)

    def _u32(self, number: int) -> None:
        self._body += _U32.pack(number)

    def _intern(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _string(self, text: str) -> None:
        self._body += _U32.pack(self._intern(text))

    def _ids(self, values: tuple[int, ...] | list[int]) -> None:
        count = len(values)
        self._body += struct.pack(f"<{count + 1}I", count, *values)

    def _function(self, function: Function) -> None:
        self._string(function.name)
        self._string(function.kind)
        self._u32(function.line)
        self._u32(len(function.parameters))
        for parameter in function.parameters:
            self._string(parameter.name)
            self._u32(parameter.value)
        self._u32(len(function.types))
        for kind in function.types:
            self._body += _TYPE.pack(_KIND_CODE[kind.kind], _DTYPE_CODE[kind.dtype], _SPACE_CODE[kind.space], kind.lanes)
        self._region(function.body)

    def _region(self, region: Region) -> None:
        self._ids(region.arguments)
        self._u32(len(region.operations))
        for operation in region.operations:
            self._operation(operation)

    def _operation(self, operation: Operation) -> None:
        self._string(operation.opcode)
        self._u32(operation.line)
        self._ids(operation.operands)
        self._ids(operation.results)
        self._u32(len(operation.attributes))
        for key, value in operation.attributes.items():
            self._string(key)
            if isinstance(value, str):
                self._body += b"\x01" + _INDEX.pack(self._intern(value))
            elif isinstance(value, float):
                self._body += b"\x02" + _FLOAT.pack(value)
            else:
                self._body += b"\x00" + _INTEGER.pack(value)
        self._u32(len(operation.regions))
        for region in operation.regions:
            self._region(region)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._strings: list[str] = []

    def program(self) -> Program:
        if self._take(4) != MAGIC:
            raise ValueError("not a program: wrong first bytes")
        version = self._u32()
        if version != VERSION:
            raise ValueError(f"program version {version}, this package reads {VERSION}")
        self._strings = self._list(lambda: self._take(self._u32()).decode("utf-8"))
        source = self._string()
        functions = self._list(self._function)
        if self._at != len(self._data):
            raise ValueError(f"{len(self._data) - self._at} bytes after the end of the program")
        return Program(source, functions)

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise ValueError(f"program ends at byte {len(self._data)}, {count} bytes needed at {self._at}")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def _unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack(self._take(layout.size))

    def _u32(self) -> int:
        return int(self._unpack(_U32)[0])

    def _list(self, item: Callable[[], Any]) -> list[Any]:
        count = self._u32()
        if count > len(self._data) - self._at:
            raise ValueError(f"a list of {count} items at byte {self._at} does not fit into the program")
        return [item() for _ in range(count)]

    def _string(self) -> str:
        return self._name(self._u32())

    def _name(self, number: int) -> str:
        if number >= len(self._strings):
            raise ValueError(f"string {number} of {len(self._strings)}")
        return self._strings[number]

    def _type(self) -> Type:
        kind, dtype, space, lanes = self._unpack(_TYPE)
        if kind >= len(KINDS) or dtype >= len(DTYPES) or space >= len(SPACES):
            raise ValueError(f"unknown type code {kind}/{dtype}/{space}")
        return Type(KINDS[kind], DTYPES[dtype], SPACES[space], lanes)

    def _function(self) -> Function:
        name, kind, line = self._string(), self._string(), self._u32()
        parameters = self._list(lambda: Parameter(self._string(), self._u32()))
        types = self._list(self._type)
        return Function(name, kind, line, parameters, types, self._region())

    def _region(self) -> Region:
        return Region(self._list(self._u32), self._list(self._operation))

    def _operation(self) -> Operation:
        opcode, line = self._string(), self._u32()
        operands, results = tuple(self._list(self._u32)), tuple(self._list(self._u32))
        attributes = dict(self._list(self._attribute))
        return Operation(opcode, line, operands, results, attributes, self._list(self._region))

    def _attribute(self) -> tuple[str, int | str | float]:
        key, tag = self._string(), self._take(1)[0]
        if tag == 0:
            return key, int(self._unpack(_INTEGER)[0])
        if tag == 1:
            return key, self._name(int(self._unpack(_INDEX)[0]))
        if tag == 2:
            return key, float(self._unpack(_FLOAT)[0])
        raise ValueError(f"unknown attribute tag {tag}")


def parse(data: bytes) -> Program:
    """Read a program back from its bytes.

    Raises:
        ValueError: the bytes are not a program.
    """
    return _Reader(data).program()
