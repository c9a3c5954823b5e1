"""Every synchronisation of a recorded program, and the program without it.

What is removed keeps the rest consistent where it can: a set goes with the wait that takes it. Sets and waits in loops may meet several
partners (the first round is released before the loop); then each pair of operations is a mutant, and so are all together, the channel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from command_trace import Event

from tilelang_pto.sim.program import Function, Operation, Program, Region

__all__ = ["Mutant", "matched", "mutants", "without"]

_ALONE = {"pipe_barrier": "pipe barrier", "mem_bar": "mem_bar", "syncthreads": "syncthreads"}
_FLAGS = {"set_flag": "wait_flag", "set_intra_block": "wait_intra_block", "set_cross_block": "wait_cross_block"}
_NAMES = {"set_flag": "flag", "set_intra_block": "flag within a block", "set_cross_block": "flag among blocks", "get_buf": "buffer token"}
INTRA_IDS = 16


@dataclass(frozen=True)
class Mutant:
    """Operations that are removed together.

    Attributes:
        kind: what they are, in words.
        removed: the operations themselves, of the program the mutant is made from.
        unit_flags: unit flags of these operations are switched off instead of removing the operations.
    """

    kind: str
    removed: tuple[Operation, ...]
    unit_flags: bool = False

    @property
    def label(self) -> str:
        """``flag V->MTE3, lines 12, 15``."""
        first = self.removed[0]
        pipes = "{src}->{dst}".format(**first.attributes) if "src" in first.attributes else str(first.attributes.get("pipe", ""))
        what = pipes or str(first.attributes.get("kind", ""))
        lines = ", ".join(str(op.line) for op in sorted(self.removed, key=lambda op: op.line))
        return f"{self.kind}{' ' + what if what else ''}, line{'s' if len(self.removed) > 1 else ''} {lines}"

    def keeps(self, operation: Operation) -> bool:
        """``operation`` is still there."""
        return self.unit_flags or all(operation is not other for other in self.removed)


def mutants(program: Program, kernel: str, blocks: Iterable[Mapping[str, Sequence[Event]]]) -> list[Mutant]:
    """All mutants of a kernel.

    Args:
        program: the recorded program.
        kernel: name of the kernel.
        blocks: traces of the blocks that run.
    """
    function = program.function(kernel)
    found = [Mutant(_ALONE[op.opcode], (op,)) for op in function.walk() if op.opcode in _ALONE]
    graph: dict[int, set[int]] = defaultdict(set)
    edges: dict[tuple[int, int], tuple[Operation, Operation]] = {}
    for cores in blocks:
        for one, other in matched(cores):
            edges.setdefault((id(one.operation), id(other.operation)), (one.operation, other.operation))
    for one, other in edges:
        graph[one].add(other)
        graph[other].add(one)
    channels: set[frozenset[int]] = set()
    operations = {id(op): op for pair in edges.values() for op in pair}
    for pair in edges.values():
        channel = _component(graph, id(pair[0]))
        pair_kind = _NAMES[pair[0].opcode]
        found.append(Mutant(pair_kind, pair))
        if len(channel) > 2 and channel not in channels:
            channels.add(channel)
            found.append(Mutant(f"channel of {pair_kind}s", tuple(sorted((operations[each] for each in channel), key=lambda op: op.line))))
    units = [op for op in function.walk() if op.attributes.get("unit_flag") or op.attributes.get("runtime_unit_flag")]
    if units:
        found.append(Mutant("unit flags", tuple(units), unit_flags=True))
    return found


def matched(cores: Mapping[str, Sequence[Event]]) -> Iterator[tuple[Event, Event]]:
    """Set and wait, take and release of one block that belong together when it runs: the n-th wait takes the n-th set."""
    sets: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    waits: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    for core, events in cores.items():
        taken: dict[object, Event] = {}
        for event in events:
            opcode = event.operation.opcode
            if opcode in _FLAGS:
                sets[channel_of(core, event)].append(event)
            elif opcode in _FLAGS.values():
                waits[channel_of(core, event)].append(event)
            elif opcode == "get_buf":
                taken[event.ident] = event
            elif opcode == "rls_buf" and event.ident in taken:
                yield taken.pop(event.ident), event
    for key, events in sets.items():
        yield from zip(events, waits[key], strict=False)


def channel_of(core: str, event: Event) -> tuple[object, ...]:
    """What a set and the wait for it have in common."""
    opcode, ident = event.operation.opcode, int(event.ident or 0)
    if opcode in ("set_flag", "wait_flag"):
        attributes = event.operation.attributes
        return "flag", core, attributes["src"], attributes["dst"], ident
    if opcode in ("set_cross_block", "wait_cross_block"):
        return "cross", core, ident
    from_cube = (core == "AIC") == (opcode == "set_intra_block")
    vector_core = f"AIV{ident // INTRA_IDS}" if core == "AIC" else core
    return "intra", from_cube, vector_core, ident % INTRA_IDS


def without(program: Program, kernel: str, mutant: Mutant) -> Program:
    """The program without what the mutant removes; operations that do not change are shared."""
    functions = [
        Function(f.name, f.kind, f.line, f.parameters, f.types, _region(f.body, mutant)) if f.name == kernel else f
        for f in program.functions
    ]
    return replace(program, functions=functions)


def _region(region: Region, mutant: Mutant) -> Region:
    operations = []
    for op in region.operations:
        if any(op is other for other in mutant.removed):
            if not mutant.unit_flags:
                continue
            attributes = {key: value for key, value in op.attributes.items() if "unit_flag" not in key}
            operands = op.operands
            if op.attributes.get("runtime_unit_flag"):  # the first operand behind the extents
                at = 7 if op.opcode.endswith("bias") else 6
                operands = operands[:at] + operands[at + 1 :]
            op = Operation(op.opcode, op.line, operands, op.results, attributes, op.regions)
        elif op.regions:
            op = Operation(op.opcode, op.line, op.operands, op.results, op.attributes, [_region(inner, mutant) for inner in op.regions])
        operations.append(op)
    return Region(region.arguments, operations)


def _component(graph: Mapping[int, set[int]], start: int) -> frozenset[int]:
    seen, waiting = {start}, [start]
    while waiting:
        for other in graph[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return frozenset(seen)
