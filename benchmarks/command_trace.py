"""What the cores of a launch issue, in order: a small interpreter of recorded programs.

It computes the scalar part of a kernel, and of the data only what it can read from the arguments; everything else is unknown (None)
and may decide about no loop and no synchronisation. The result says of every command which bytes it may touch, so that what must be
ordered can be told without the simulator's engine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from command_accesses import PIPES, WHOLE, Access, TraceError, Units, command_accesses, units_of, vector_range
from index_registers import active_lanes, index_register

from tilelang_pto.sim.program import Function, Operation, Program, Region
from tilelang_pto.sim.run import element_bytes

__all__ = ["Event", "Step", "TraceError", "trace_block"]

#: Operations of the scalar unit that order something, with the attribute that names the pipe they run on.
SYNCHRONISATION = {
    "set_flag": "src", "wait_flag": "dst", "get_buf": "pipe", "rls_buf": "pipe", "pipe_barrier": "pipe", "set_intra_block": "pipe",
    "wait_intra_block": "pipe", "set_cross_block": "pipe", "wait_cross_block": "pipe",
}  # fmt: skip
LARGEST_TRACE = 2_000_000


_Lanes = tuple[np.ndarray, np.ndarray, int]


class Step(NamedTuple):
    """An access inside a vector function, or a barrier there (without bytes).

    Attributes:
        operation: the instruction.
        kind: ``vector``, ``scalar`` or ``thread``: what kind of instruction accesses; ``more bytes``: of the threads of the step before;
            ``barrier``.
        access: the bytes; of all threads together.
        lanes: of threads, of gathers and of scatters: first byte of each lane, its number, bytes of a lane; None where it is not known.
        uses: set of numbers of the loads whose values the instruction uses, as bits.
    """

    operation: Operation
    kind: str
    access: Access | None
    lanes: _Lanes | None
    uses: int


@dataclass(slots=True)
class Event:
    """Something the scalar unit issues, or accesses itself.

    Attributes:
        operation: the operation.
        core: ``AIV``, ``AIC``, ``AIV0`` or ``AIV1``.
        pipe: where it runs.
        ident: event, buffer or flag number of an operation that orders.
        accesses: bytes it touches.
        units: what a command does with unit flags.
        steps: of a vector function.
    """

    operation: Operation
    core: str
    pipe: str
    ident: int | None = None
    accesses: list[Access] = field(default_factory=list)
    units: Units | None = None
    steps: list[Step] | None = None

    @property
    def orders(self) -> bool:
        """It is a synchronisation operation."""
        return self.operation.opcode in SYNCHRONISATION


def trace_block(
    program: Program, kernel: str, arguments: Sequence[Any], grid: int, block: int, *, accesses: bool = True, limit: int = LARGEST_TRACE
) -> dict[str, list[Event]]:
    """What each core of one block issues.

    Args:
        program: a recorded program.
        kernel: name of the kernel.
        arguments: one per parameter: bytes of tensors (``uint8``, as before the launch), numbers.
        grid: blocks of the launch.
        block: which of them.
        accesses: find out what is accessed; without, vector functions are left out and the trace is of synchronisation only.
        limit: operations interpreted before it is given up.

    Raises:
        TraceError: control flow, or what synchronises, depends on data that is computed.
    """
    function = program.function(kernel)
    sections = {op.attributes["kind"] for op in function.body.operations if op.opcode == "section"}
    opcodes = {op.opcode for op in function.walk()}
    if function.kind or not sections:
        cube = function.kind == "cube" or (not function.kind and any(PIPES.get(name) in ("M", "FIX", "MTE1") for name in opcodes))
        cores = {"AIC" if cube else "AIV": (cube, 0)}
    else:
        cores = {"AIC": (True, 0)} if "cube" in sections else {}
        if "vector" in sections:
            cores |= {"AIV0": (False, 0), "AIV1": (False, 1)}
    return {
        name: _Core(function, arguments, grid, block, name, cube, number, accesses, limit).run() for name, (cube, number) in cores.items()
    }


class _Somewhere(NamedTuple):
    """A pointer moved by an unknown distance from ``base``."""

    base: Any


class _Stack:
    """A buffer of an alloc_buffer."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: dict[int, Any] = {}


class _StackPointer(NamedTuple):
    buffer: _Stack
    offset: Any


class _Core:
    def __init__(
        self,
        function: Function,
        arguments: Sequence[Any],
        grid: int,
        block: int,
        name: str,
        cube: bool,
        number: int,
        accesses: bool,
        limit: int,
    ) -> None:
        self.function, self.types = function, function.types
        self.grid, self.block, self.name, self.cube, self.number = grid, block, name, cube, number
        self.with_accesses, self.left = accesses, limit
        self.ub = f"UB{number}"
        self.values: dict[int, Any] = {}
        self.uses: dict[int, int] = {}
        self.tensors: list[np.ndarray] = []
        for parameter, value in zip(function.parameters, arguments, strict=True):
            if isinstance(value, np.ndarray):
                self.tensors.append(value)
                value = int(value.ctypes.data)
            self.values[parameter.value] = value
        self.events: list[Event] = []
        self.written: list[Access] = []
        self.vector: _Vector | None = None

    def run(self) -> list[Event]:
        self.region(self.function.body)
        return self.events

    # -- control flow ----------------------------------------------------------------------------------------------------

    def region(self, region: Region) -> tuple[int, ...]:
        """Executes a region; the values it yields."""
        for op in region.operations:
            if op.opcode == "yield":
                return op.operands
            self.operation(op)
        return ()

    def operation(self, op: Operation) -> None:
        self.left -= 1
        if self.left < 0:
            raise TraceError("the trace is too long")
        code = op.opcode
        if code in _CONTROL:
            _CONTROL[code](self, op)
        elif self.vector is not None and self.vector.operation(op):
            pass
        elif code in _PURE or code in _QUERIES or code in ("const", "castptr", "addptr", "alloc_buffer", "load", "store"):
            self.scalar(op)
        elif self.vector is None:
            self.issue(op)
        else:
            self.define(op, *[None] * len(op.results))

    def define(self, op: Operation, *values: Any) -> None:
        if self.vector is not None:
            uses = 0
            for operand in op.operands:
                uses |= self.uses.get(operand, 0)
            for result in op.results:
                self.uses[result] = uses
        for result, value in zip(op.results, values, strict=True):
            self.values[result] = value

    def move(self, targets: Sequence[int], sources: Sequence[int]) -> None:
        moved = [(self.values[source], self.uses.get(source, 0)) for source in sources]
        for target, (value, uses) in zip(targets, moved, strict=True):
            self.values[target], self.uses[target] = value, uses

    def loop(self, op: Operation) -> None:
        low, high, step = (self.values[value] for value in op.operands[:3])
        body = op.regions[0]
        carried = body.arguments[1:]
        self.move(carried, op.operands[3:])
        if self.vector is not None and self.vector.varies(low, high, step):
            self.vector.loop(op, low, high, step)
            return
        if low is None or high is None or step is None:
            raise TraceError(f"the bounds of the loop in line {op.line} depend on data")
        if step <= 0:
            raise TraceError(f"the loop in line {op.line} has step {step}")
        for index in range(int(low), int(high), int(step)):
            self.values[body.arguments[0]] = index
            self.uses[body.arguments[0]] = 0
            self.move(carried, self.region(body))
        self.move(op.results, carried)

    def while_loop(self, op: Operation) -> None:
        test, body = op.regions
        self.move(test.arguments, op.operands)
        if self.vector is not None and self.vector.while_loop(op):
            return
        while True:
            (condition,) = self.region(test)
            known = self.values[condition]
            if known is None or isinstance(known, np.ndarray):
                raise TraceError(f"the condition of the loop in line {op.line} depends on data")
            self.move(body.arguments, test.arguments)
            if not known:
                break
            self.move(test.arguments, self.region(body))
        self.move(op.results, test.arguments)

    def branch(self, op: Operation) -> None:
        condition = self.values[op.operands[0]]
        if condition is not None and not isinstance(condition, np.ndarray):
            self.move(op.results, self.region(op.regions[0] if condition else op.regions[1]))
            return
        if self.vector is None:
            self.either(op)
            return
        self.vector.branch(op, condition)

    def either(self, op: Operation) -> None:
        """A branch of the scalar unit that depends on data: both sides count, and nothing in them may order."""
        for region in op.regions:
            for inner in region.operations:
                if any(each.opcode in SYNCHRONISATION or each.opcode == "store" for each in inner.walk()):
                    raise TraceError(f"what is ordered in line {inner.line} depends on data")
            self.region(region)
        for result in op.results:
            self.values[result], self.uses[result] = None, 0

    def section(self, op: Operation) -> None:
        if (op.attributes["kind"] == "cube") == self.cube:
            self.region(op.regions[0])

    def vector_function(self, op: Operation) -> None:
        event = Event(op, self.name, "V")
        if self.with_accesses:
            self.vector = _Threads(self, op) if op.opcode == "simt" else _Vector(self, op)
            self.vector.run()
            event.steps, self.vector = self.vector.steps, None
            event.accesses = merged([step.access for step in event.steps if step.access])
            self.note_written(event.accesses)
        self.events.append(event)

    # -- the scalar unit -------------------------------------------------------------------------------------------------

    def issue(self, op: Operation) -> None:
        code = op.opcode
        if code in SYNCHRONISATION:
            pipe = str(op.attributes[SYNCHRONISATION[code]]).removeprefix("PIPE_")
            ident = self.values[op.operands[0]] if op.operands else None
            if op.operands and ident is None:
                raise TraceError(f"the number of {code} in line {op.line} depends on data")
            self.events.append(Event(op, self.name, pipe, None if ident is None else int(ident)))
        elif code in PIPES:
            values = [self.values[value] for value in op.operands]
            event = Event(op, self.name, PIPES[code], units=units_of(op, values))
            if self.with_accesses:
                event.accesses = merged(command_accesses(op, values, [self.types[value] for value in op.operands], self.ub))
                self.note_written(event.accesses)
            self.events.append(event)
        elif op.results:
            raise TraceError(f"{code} is not described")

    def note_written(self, accesses: Sequence[Access]) -> None:
        self.written += [access for access in accesses if access.write and access.memory == "GM"]

    def scalar(self, op: Operation) -> None:
        code = op.opcode
        values = [self.values[value] for value in op.operands]
        if code == "const":
            self.define(op, op.attributes.get("value", op.attributes.get("bits")))
        elif code in _QUERIES:
            self.define(op, _QUERIES[code](self))
        elif code == "alloc_buffer":
            self.define(op, _StackPointer(_Stack(int(op.attributes["count"])), 0))
        elif code == "castptr":
            self.define(op, values[0])
        elif code == "addptr":
            self.define(op, self.moved(values[0], values[1], element_bytes(self.types[op.results[0]].dtype)))
        elif code == "load":
            self.load(op, values)
        elif code == "store":
            self.store(op, values)
        else:
            self.define(op, self.pure(op, values))

    def pure(self, op: Operation, values: Sequence[Any]) -> Any:
        if any(value is None or isinstance(value, (_Somewhere, _StackPointer)) for value in values):
            return None
        if op.opcode == "select":
            condition, first, second = values
            return np.where(condition, first, second) if isinstance(condition, np.ndarray) else first if condition else second
        kind = self.types[op.results[0]]
        if kind.kind != "scalar" or any(self.types[value].dtype in _FLOATS for value in op.operands):
            return None
        if kind.dtype in _FLOATS:
            return None
        result = _PURE[op.opcode](op, *values)
        return _wrapped(result, kind.dtype)

    @staticmethod
    def moved(pointer: Any, elements: Any, unit: int) -> Any:
        if isinstance(pointer, _StackPointer):
            return _StackPointer(pointer.buffer, None if elements is None or pointer.offset is None else pointer.offset + elements)
        if pointer is None or isinstance(pointer, _Somewhere):
            return pointer
        return _Somewhere(pointer) if elements is None else pointer + elements * unit

    def load(self, op: Operation, values: Sequence[Any]) -> None:
        pointer, offset = values
        kind = self.types[op.operands[0]]
        if isinstance(pointer, _StackPointer):
            at = None if offset is None or pointer.offset is None else pointer.offset + offset
            known = at is not None and not isinstance(at, np.ndarray)
            self.define(op, pointer.buffer.values.get(int(at)) if known else None)
            return
        access = self.place(kind.space, self.moved(pointer, offset, element_bytes(kind.dtype)), self.bytes_of(op.results[0]), False)
        self.events.append(Event(op, self.name, "S", accesses=[access]))
        self.define(op, self.read(access, self.types[op.results[0]].dtype) if self.types[op.results[0]].kind == "scalar" else None)

    def store(self, op: Operation, values: Sequence[Any]) -> None:
        value, pointer, offset = values
        kind = self.types[op.operands[1]]
        if isinstance(pointer, _StackPointer):
            self.store_stack(pointer, offset, value)
            return
        access = self.place(kind.space, self.moved(pointer, offset, element_bytes(kind.dtype)), self.bytes_of(op.operands[0]), True)
        self.note_written([access])
        self.events.append(Event(op, self.name, "S", accesses=[access]))

    @staticmethod
    def store_stack(pointer: _StackPointer, offset: Any, value: Any) -> None:
        at = None if offset is None or pointer.offset is None else pointer.offset + offset
        if at is None or isinstance(at, np.ndarray):
            pointer.buffer.values.clear()
        else:
            pointer.buffer.values[int(at)] = value

    def bytes_of(self, value: int) -> int:
        kind = self.types[value]
        return element_bytes(kind.dtype) * max(1, kind.lanes if kind.kind == "vector" else 1)

    def place(self, space: str, pointer: Any, size: int, write: bool) -> Access:
        """The access of ``size`` bytes at a pointer; all that may be meant where it is not known."""
        memory = "GM" if space == "gm" else self.ub
        if pointer is None:
            return Access(memory, 0, WHOLE, write)
        if isinstance(pointer, _Somewhere):
            if memory != "GM":
                return Access(memory, 0, WHOLE, write)
            for tensor in self.tensors:
                begin = tensor.ctypes.data
                if begin <= pointer.base < begin + tensor.nbytes:
                    return Access(memory, begin, begin + tensor.nbytes, write)
            return Access(memory, 0, WHOLE, write)
        return Access(memory, int(pointer), int(pointer) + size, write)

    def read(self, access: Access, dtype: str) -> Any:
        """An integer of an argument that nothing has written yet; None otherwise."""
        if access.memory != "GM" or dtype in _FLOATS:
            return None
        if any(other.begin < access.end and access.begin < other.end for other in self.written):
            return None
        for tensor in self.tensors:
            begin = tensor.ctypes.data
            if begin <= access.begin and access.end <= begin + tensor.nbytes:
                raw = tensor[access.begin - begin : access.end - begin].tobytes()
                return int.from_bytes(raw, "little", signed=not dtype.startswith("ui"))
        return None


class _Vector:
    """A vecscope. Of registers those are known that indices are computed in (:mod:`index_registers`)."""

    def __init__(self, core: _Core, op: Operation) -> None:
        self.core, self.op = core, op
        self.steps: list[Step] = []
        self.loads = 0

    def run(self) -> None:
        self.core.region(self.op.regions[0])

    def varies(self, *values: Any) -> bool:
        return False

    def loop(self, op: Operation, low: Any, high: Any, step: Any) -> None:
        raise AssertionError("no loop of a vecscope varies")

    def while_loop(self, op: Operation) -> bool:
        return False

    def branch(self, op: Operation, condition: Any) -> None:
        for region in op.regions:
            if any(each.opcode == "mem_bar" for inner in region.operations for each in inner.walk()):
                raise TraceError(f"whether there is a mem_bar in line {op.line} depends on data")
        yielded = [self.core.region(region) for region in op.regions]
        for result, first, second in zip(op.results, *yielded, strict=True):
            self.core.values[result] = None
            self.core.uses[result] = self.core.uses.get(first, 0) | self.core.uses.get(second, 0)

    def operation(self, op: Operation) -> bool:
        """Executes an operation of vector functions; False when it is not one."""
        core, code = self.core, op.opcode
        values = [core.values[value] for value in op.operands]
        if code == "mem_bar":
            self.steps.append(Step(op, "barrier", None, None, 0))
        elif code in ("pset", "pge"):
            core.define(op, _pattern(str(op.attributes["pattern"]), core.types[op.results[0]].lanes))
        elif code == "plt":
            lanes, count = core.types[op.results[0]].lanes, values[0]
            core.define(op, *((None, None) if count is None else (max(0, min(int(count), lanes)), max(int(count) - lanes, 0))))
        elif code in ("load", "store") and not isinstance(values[0 if code == "load" else 1], _StackPointer):
            pointer, offset = values[:2] if code == "load" else values[1:]
            kind = core.types[op.operands[0 if code == "load" else 1]]
            size = core.bytes_of(op.results[0] if code == "load" else op.operands[0])
            access = core.place(kind.space, core.moved(pointer, offset, element_bytes(kind.dtype)), size, code == "store")
            self.access(op, "scalar", access)
        elif code.startswith(("vld", "vst", "plds", "pst", "vgather", "vscatter", "vsldb", "vsstb")) and code != "vstar":
            lanes = self.lanes_of(op, values)
            self.access(op, "vector", self.range_of(op, values) if lanes is None else self.around(op, lanes), lanes)
        elif code.startswith("v") and len(op.results) == 1:
            types = core.types
            core.define(op, index_register(op, values, [types[value] for value in op.operands], types[op.results[0]]))
        else:
            return False
        return True

    def lanes_of(self, op: Operation, values: Sequence[Any]) -> _Lanes | None:
        """Places of the active lanes of a gather or scatter."""
        if op.opcode not in ("vgather2", "vscatter") or any(value is None for value in values[-3:]):
            return None
        pointer, index, mask = values[-3:]
        kind = self.core.types[op.operands[-3]]
        active = active_lanes(mask, len(index))
        size = element_bytes(kind.dtype)
        return pointer + index[active] * size, np.flatnonzero(active), size

    def around(self, op: Operation, lanes: _Lanes) -> Access:
        begins, _, size = lanes
        ends = (int(begins.min()), int(begins.max()) + size) if begins.size else (0, 0)
        return Access(self.core.ub, *ends, op.opcode == "vscatter")

    def access(self, op: Operation, kind: str, access: Access, lanes: _Lanes | None = None) -> None:
        uses = 0
        for operand in op.operands:
            uses |= self.core.uses.get(operand, 0)
        self.steps.append(Step(op, kind, access, lanes, uses))
        self.core.define(op, *[None] * len(op.results))
        if not access.write:
            for result in op.results:
                self.core.uses[result] = uses | 1 << (len(self.steps) - 1)

    def range_of(self, op: Operation, values: Sequence[Any]) -> Access:
        core = self.core
        write = op.opcode.startswith(("vst", "pst", "vscatter", "vsst"))
        at = next(i for i, value in enumerate(op.operands) if core.types[value].kind == "pointer")
        pointer, kind = values[at], core.types[op.operands[at]]
        offset: Any = 0
        if op.opcode in ("vlds", "vsts", "vldsx2", "vstsx2", "plds", "psts"):
            offset = values[at + 1]
        known = isinstance(pointer, int) and offset is not None
        if not known or op.opcode.startswith(("vgather", "vscatter", "vsldb", "vsstb")):
            return Access(core.ub, 0, WHOLE, write)
        mask = values[-1] if core.types[op.operands[-1]].kind == "mask" else None
        lanes = mask if isinstance(mask, int) else None
        return Access(core.ub, *vector_range(op, pointer, int(offset), element_bytes(kind.dtype), lanes), write)


class _Threads(_Vector):
    """A simt region: values of threads are arrays; ``active`` are those that execute."""

    def __init__(self, core: _Core, op: Operation) -> None:
        super().__init__(core, op)
        self.shape = tuple(int(op.attributes.get(key, 1)) for key in "xyz")
        self.count = int(np.prod(self.shape))
        self.threads = np.arange(self.count)
        self.active = np.ones(self.count, bool)

    def varies(self, *values: Any) -> bool:
        return any(isinstance(value, np.ndarray) for value in values)

    def loop(self, op: Operation, low: Any, high: Any, step: Any) -> None:
        if low is None or high is None or step is None:
            raise TraceError(f"the bounds of the loop in line {op.line} depend on data")
        core, body, before = self.core, op.regions[0], self.active
        carried, index = body.arguments[1:], np.broadcast_to(low, self.count).astype(np.int64)
        while True:
            self.active = before & (index < high)
            if not self.active.any():
                break
            core.values[body.arguments[0]], core.uses[body.arguments[0]] = index, 0
            self.merge(carried, core.region(body))
            index = index + step
        self.active = before
        core.move(op.results, carried)

    def merge(self, targets: Sequence[int], sources: Sequence[int]) -> None:
        """Moves values of the active threads only."""
        core = self.core
        moved = [core.values[source] for source in sources]
        for target, value in zip(targets, moved, strict=True):
            core.values[target] = self.chosen(self.active, value, core.values.get(target))

    @staticmethod
    def chosen(mask: np.ndarray, first: Any, second: Any) -> Any:
        if mask.all():
            return first
        if first is None or second is None or isinstance(first, (_Somewhere, _StackPointer)):
            return None
        return np.where(mask, first, second)

    def while_loop(self, op: Operation) -> bool:
        core, (test, body), before = self.core, op.regions, self.active
        while True:
            (condition,) = core.region(test)
            known = core.values[condition]
            if known is None:
                raise TraceError(f"the condition of the loop in line {op.line} depends on data")
            core.move(body.arguments, test.arguments)
            self.active = self.active & np.broadcast_to(known, self.count).astype(bool)
            if not self.active.any():
                break
            self.merge(test.arguments, core.region(body))
        self.active = before
        core.move(op.results, test.arguments)
        return True

    def branch(self, op: Operation, condition: Any) -> None:
        core, before = self.core, self.active
        yielded = []
        for region, wanted in zip(op.regions, (True, False), strict=True):
            if condition is None and any(each.opcode == "syncthreads" for inner in region.operations for each in inner.walk()):
                raise TraceError(f"whether there is a syncthreads in line {op.line} depends on data")
            self.active = before if condition is None else before & (condition.astype(bool) == wanted)
            values = core.region(region) if self.active.any() else ()
            yielded.append([core.values[value] for value in values] or [None] * len(op.results))
        self.active = before
        for result, first, second in zip(op.results, *yielded, strict=True):
            mask = None if condition is None else condition.astype(bool)
            core.values[result] = None if mask is None or first is None or second is None else np.where(mask, first, second)

    def operation(self, op: Operation) -> bool:
        core, code = self.core, op.opcode
        values = [core.values[value] for value in op.operands]
        if code == "syncthreads":
            self.steps.append(Step(op, "barrier", None, None, 0))
        elif code.startswith("get_tid_"):
            x, y, _ = self.shape
            core.define(op, {"x": self.threads % x, "y": self.threads // x % y, "z": self.threads // (x * y)}[code[-1]])
        elif code.startswith("get_block_dim_"):
            core.define(op, self.shape["xyz".index(code[-1])])
        elif code == "get_laneid":
            core.define(op, self.threads % 32)
        elif code in ("load", "store") and not isinstance(values[0 if code == "load" else 1], _StackPointer):
            pointer, offset = values[:2] if code == "load" else values[1:]
            kind = core.types[op.operands[0 if code == "load" else 1]]
            size = core.bytes_of(op.results[0] if code == "load" else op.operands[0])
            self.lanes(op, kind.space, core.moved(pointer, offset, element_bytes(kind.dtype)), size, code == "store")
        elif code.startswith("atomic_"):
            kind = core.types[op.operands[0]]
            self.lanes(op, kind.space, values[0], element_bytes(kind.dtype), True)
        elif code == "store":
            self.store_stack(values)
        else:
            return False
        return True

    def store_stack(self, values: Sequence[Any]) -> None:
        value, pointer, offset = values
        at = None if offset is None or pointer.offset is None else pointer.offset + offset
        if at is not None and not isinstance(at, np.ndarray):
            value = self.chosen(self.active, value, pointer.buffer.values.get(int(at)))
        self.core.store_stack(pointer, offset, value)

    def lanes(self, op: Operation, space: str, pointer: Any, size: int, write: bool) -> None:
        core = self.core
        known = isinstance(pointer, (int, np.integer, np.ndarray))
        if known and self.active.any():
            begins = np.broadcast_to(pointer, self.count)[self.active].astype(np.int64)
            memory = "GM" if space == "gm" else core.ub
            lanes = (begins, self.threads[self.active], size)
            for number, (begin, end) in enumerate(_runs(begins, size)):
                access = Access(memory, begin, end, write)
                self.steps.append(Step(op, "more bytes" if number else "thread", access, None if number else lanes, 0))
        elif not known:
            self.steps.append(Step(op, "thread", core.place(space, pointer, size, write), None, 0))
        core.define(op, *[None] * len(op.results))


def _runs(begins: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """The bytes of accesses of ``size`` bytes, as ranges that do not touch."""
    ordered = np.unique(begins)
    cuts = np.flatnonzero(np.diff(ordered) > size) + 1
    for run in np.split(ordered, cuts):
        yield int(run[0]), int(run[-1]) + size


def merged(accesses: Sequence[Access]) -> list[Access]:
    """The same bytes in as few ranges as possible."""
    result: list[Access] = []
    for access in sorted(accesses, key=lambda each: (each.memory, each.write, each.begin)):
        if access.end <= access.begin:
            continue
        last = result[-1] if result else None
        if last and last.memory == access.memory and last.write == access.write and access.begin <= last.end:
            result[-1] = last._replace(end=max(last.end, access.end))
        else:
            result.append(access)
    return result


def _pattern(name: str, lanes: int) -> int | None:
    word = name.removeprefix("PAT_")
    if word == "ALL":
        return lanes
    if word == "ALLF":
        return 0
    return min(int(word[2:]), lanes) if word.startswith("VL") and word[2:].isdigit() else None


_FLOATS = ("f16", "bf16", "f32", "f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1x2", "f4e1m2x2")


def _wrapped(value: Any, dtype: str) -> Any:
    if dtype == "i1":
        return value.astype(bool) if isinstance(value, np.ndarray) else bool(value)
    bits = 64 if dtype == "index" else 8 * element_bytes(dtype)
    if isinstance(value, np.ndarray):
        value = value.astype(np.int64)
        if bits == 64:
            return value
    else:
        value = int(value)
    if dtype.startswith("ui"):
        return value & ((1 << bits) - 1)
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def _quotient(op: Operation, a: Any, b: Any) -> Any:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        b = np.where(b == 0, 1, b)
        return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _floor_quotient(op: Operation, a: Any, b: Any) -> Any:
    return a // (np.where(b == 0, 1, b) if isinstance(b, np.ndarray) else b)


def _shift_right(op: Operation, a: Any, b: Any) -> Any:
    return a >> b


def _compare(op: Operation, a: Any, b: Any) -> Any:
    names: dict[str, Callable[[Any, Any], Any]] = {
        "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge
    }  # fmt: skip
    return names[str(op.attributes["pred"])](a, b)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda op, *values: function(*values)


_PURE: dict[str, Callable[..., Any]] = {
    "add": _plain(operator.add),
    "sub": _plain(operator.sub),
    "mul": _plain(operator.mul),
    "and": _plain(operator.and_),
    "or": _plain(operator.or_),
    "xor": _plain(operator.xor),
    "shl": _plain(operator.lshift),
    "shr": _shift_right,
    "div": _quotient,
    "floordiv": _floor_quotient,
    "rem": lambda op, a, b: a - b * _quotient(op, a, b),
    "min": _plain(np.minimum),
    "max": _plain(np.maximum),
    "minimum": _plain(np.minimum),
    "maximum": _plain(np.maximum),
    "neg": _plain(operator.neg),
    "abs": _plain(abs),
    "cmp": _compare,
    "select": _compare,
    "cast": _plain(lambda value: value),
    "bitcast": _plain(lambda value: value),
    **{name: _plain(lambda *values: None) for name in ("exp", "log", "sqrt", "sin", "cos", "floor", "ceil", "rint", "round", "fma", "pow")},
}

_QUERIES: dict[str, Callable[[_Core], int]] = {
    "get_block_idx": lambda core: core.block,
    "get_block_num": lambda core: core.grid,
    "get_subblock_idx": lambda core: core.number,
    "get_subblock_num": lambda core: 2 if core.name in ("AIV0", "AIV1") else 1,
}

_CONTROL: dict[str, Callable[[_Core, Operation], None]] = {
    "for": _Core.loop,
    "while": _Core.while_loop,
    "if": _Core.branch,
    "section": _Core.section,
    "vecscope": _Core.vector_function,
    "simt": _Core.vector_function,
}
