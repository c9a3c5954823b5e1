"""Whether what a mutant removes was needed: an argument from the trace of a launch alone, without the simulator's engine.

All that is issued becomes a graph whose edges say what waits for what; whether one command is done before another one begins is found
by search. A removal is redundant when every two commands that touch a common byte, one of them writing, are ordered without it if they
were with it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from command_trace import Event, Step
from sync_mutants import Mutant, channel_of

__all__ = ["Verdict", "judge"]

IN_ORDER = ("S", "V", "M")
"""Pipes on which one command is done before the next begins."""


@dataclass(frozen=True)
class Verdict:
    """Whether a removal was shown to be redundant, and why (not)."""

    redundant: bool
    reason: str


def judge(mutant: Mutant, blocks: Sequence[Mapping[str, Sequence[Event]]]) -> Verdict:
    """Argue about one mutant.

    Args:
        mutant: what is removed.
        blocks: traces with accesses of all blocks of the unmodified launch.
    """
    first = mutant.removed[0].opcode
    if first in ("mem_bar", "syncthreads"):
        steps = [event.steps for cores in blocks for events in cores.values() for event in events if event.steps]
        return (_judge_mem_bar if first == "mem_bar" else _judge_threads)(mutant, steps)
    if first in ("set_cross_block", "wait_cross_block"):
        return Verdict(False, "flags among blocks are not argued about")
    ordered: list[tuple[str, str]] = []
    for cores in blocks:
        before, after = _Order(cores, None), _Order(cores, mutant)
        for one, other in _conflicts(cores):
            if not before.has(one, other):
                continue
            if not after.has(one, other):
                return Verdict(False, f"{_name(one)} and {_name(other)} are no longer ordered")
        ordered += _guarded(mutant, cores, after)
    if not ordered:
        return Verdict(True, "protects nothing: what runs before it and what runs behind it have no byte in common")
    pair, chain = ordered[0]
    return Verdict(True, f"{pair}: ordered by {chain}")


# -- order of commands ---------------------------------------------------------------------------------------------------


@dataclass
class _Graph:
    edges: list[list[int]] = field(default_factory=list)  # to the predecessors
    owners: list[Event | None] = field(default_factory=list)

    def node(self, owner: Event | None, *before: int | None) -> int:
        self.edges.append([each for each in before if each is not None])
        self.owners.append(owner)
        return len(self.edges) - 1

    def edge(self, before: int, after: int) -> None:
        self.edges[after].append(before)

    def ancestors(self) -> list[int]:
        """Of each node the set of those before it, as bits. The order of the nodes need not be topological."""
        followers: list[list[int]] = [[] for _ in self.edges]
        missing = [len(before) for before in self.edges]
        for node, before in enumerate(self.edges):
            for each in before:
                followers[each].append(node)
        sets = [0] * len(self.edges)
        ready = deque(node for node, count in enumerate(missing) if not count)
        done = 0
        while ready:
            node = ready.popleft()
            done += 1
            for before in self.edges[node]:
                sets[node] |= sets[before] | 1 << before
            for after in followers[node]:
                missing[after] -= 1
                if not missing[after]:
                    ready.append(after)
        if done != len(self.edges):
            raise AssertionError("the trace waits for itself")
        return sets


class _Order:
    """Which commands of a block are done before which others begin."""

    def __init__(self, cores: Mapping[str, Sequence[Event]], mutant: Mutant | None) -> None:
        self.graph = _Graph()
        self.begin: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self._sets: dict[tuple[object, ...], list[int]] = defaultdict(list)
        self._waits: dict[tuple[object, ...], list[int]] = defaultdict(list)
        self._units: dict[int, dict[int, int]] = defaultdict(dict)  # value: node that left it
        for core, events in cores.items():
            self._core(core, [event for event in events if mutant is None or mutant.keeps(event.operation)], mutant)
        for key, waits in self._waits.items():
            for before, after in zip(self._sets[key], waits, strict=False):
                self.graph.edge(before, after)
        self.ancestors = self.graph.ancestors()

    def has(self, one: Event, other: Event) -> bool:
        """One of them is done before the other one begins."""
        return self.before(one, other) or self.before(other, one)

    def before(self, one: Event, other: Event) -> bool:
        return bool(self.ancestors[self.begin[id(other)]] >> self.end[id(one)] & 1)

    def chain(self, one: Event, other: Event) -> list[Event]:
        """The operations that order two commands, on one shortest way."""
        start, goal = self.begin[id(other)], self.end[id(one)]
        came: dict[int, int] = {start: start}
        waiting = deque([start])
        while waiting and goal not in came:
            node = waiting.popleft()
            for before in self.graph.edges[node]:
                if before not in came:
                    came[before] = node
                    waiting.append(before)
        path, node = [], goal
        while node != start:
            owner = self.graph.owners[node]
            if owner is not None and owner.orders:
                path.append(owner)
            node = came[node]
        return path

    def _core(self, core: str, events: Sequence[Event], mutant: Mutant | None) -> None:
        graph = self.graph
        issue: int | None = None  # the scalar unit
        accessed: int | None = None  # all it has accessed itself
        started: dict[str, int | None] = {}  # what a pipe began last, or waited for
        done: dict[str, int | None] = {}  # all a pipe was given before
        released: dict[object, dict[str, int]] = defaultdict(dict)
        for event in events:
            opcode, pipe = event.operation.opcode, event.pipe
            issue = graph.node(event, issue)
            if opcode in ("set_flag", "set_intra_block", "set_cross_block"):
                last = accessed if pipe == "S" else done.get(pipe)
                node = graph.node(event, issue, started.get(pipe), last)
                self._sets[channel_of(core, event)].append(node)
            elif opcode in ("wait_flag", "wait_intra_block", "wait_cross_block"):
                node = graph.node(event, issue, started.get(pipe))
                self._waits[channel_of(core, event)].append(node)
                if pipe == "S" or opcode == "wait_cross_block":
                    issue = graph.node(None, node)
                else:
                    started[pipe] = node
            elif opcode == "pipe_barrier":
                if pipe == "ALL":
                    issue = graph.node(event, issue, accessed, *done.values(), *started.values())
                else:
                    started[pipe] = graph.node(event, issue, started.get(pipe), done.get(pipe))
            elif opcode == "get_buf":
                if not event.operation.attributes.get("mode"):
                    node = graph.node(event, issue, started.get(pipe), *(n for p, n in released[event.ident].items() if p != pipe))
                    if pipe == "S":
                        issue = node
                    else:
                        started[pipe] = node
            elif opcode == "rls_buf":
                before = [n for p, n in released[event.ident].items() if p != pipe] if event.operation.attributes.get("mode") else []
                last = accessed if pipe == "S" else done.get(pipe)
                node = graph.node(event, issue, started.get(pipe), last, released[event.ident].get(pipe), *before)
                released[event.ident][pipe] = node
            elif pipe == "S":
                accessed = graph.node(event, issue, accessed)
                self.begin[id(event)] = self.end[id(event)] = accessed
            else:
                begin = graph.node(event, issue, started.get(pipe), done.get(pipe) if pipe in IN_ORDER else None)
                end = graph.node(event, begin)
                self._unit_flags(event, begin, end, mutant)
                self.begin[id(event)], self.end[id(event)] = begin, end
                started[pipe] = begin
                done[pipe] = graph.node(None, end, done.get(pipe))

    def _unit_flags(self, event: Event, begin: int, end: int, mutant: Mutant | None) -> None:
        if event.units is None or (mutant is not None and mutant.unit_flags and any(event.operation is op for op in mutant.removed)):
            return
        for first, last in event.units.ranges:
            for unit in range(first, last):
                if event.units.wait in self._units[unit]:
                    self.graph.edge(self._units[unit][event.units.wait], begin)
                if event.units.leave is not None:
                    self._units[unit][event.units.leave] = end


def _conflicts(cores: Mapping[str, Sequence[Event]]) -> Iterator[tuple[Event, Event]]:
    """Commands of different pipes, or of one that overlaps its own, that have a byte in common which one of them writes."""
    by_memory: dict[str, list[tuple[int, int, bool, Event]]] = defaultdict(list)
    for events in cores.values():
        for event in events:
            for access in event.accesses:
                by_memory[access.memory].append((access.begin, access.end, access.write, event))
    told: set[tuple[int, int]] = set()
    for (first, one_writes, one), (second, other_writes, other) in _overlaps(by_memory.values()):
        if first is second or not (one_writes or other_writes):
            continue
        if (one.core, one.pipe) == (other.core, other.pipe) and one.pipe in IN_ORDER:
            continue
        key = (id(one), id(other))
        if key not in told and key[::-1] not in told:
            told.add(key)
            yield one, other


def _overlaps(
    groups: Iterable[list[tuple[int, int, bool, Event]]],
) -> Iterator[tuple[tuple[object, bool, Event], tuple[object, bool, Event]]]:
    for group in groups:
        group.sort(key=lambda item: item[0])
        active: list[tuple[int, int, bool, Event]] = []
        for item in group:
            active = [each for each in active if each[1] > item[0]]
            for each in active:
                yield (each[3], each[2], each[3]), (item[3], item[2], item[3])
            active.append(item)


def _guarded(mutant: Mutant, cores: Mapping[str, Sequence[Event]], after: _Order) -> list[tuple[str, str]]:
    """A pair of commands around what is removed that has a byte in common, and what orders it now."""
    position = {id(event): i for events in cores.values() for i, event in enumerate(events)}
    removed = [event for events in cores.values() for event in events if any(event.operation is op for op in mutant.removed)]
    pipes = {(event.core, event.pipe) for event in removed}
    places = {event.core: [position[id(each)] for each in removed if each.core == event.core] for event in removed}
    for one, other in _conflicts(cores):
        if (one.core, one.pipe) not in pipes or (other.core, other.pipe) not in pipes:
            continue
        if one.core == other.core:
            low, high = sorted((position[id(one)], position[id(other)]))
            if not any(low < place < high for place in places.get(one.core, [])):
                continue
        first, second = (one, other) if after.before(one, other) else (other, one)
        if not after.before(first, second):
            continue  # was not ordered before either
        chain = [f"{event.operation.opcode} in line {event.operation.line}" for event in after.chain(first, second)]
        return [(f"{_name(first)} and {_name(second)}", ", ".join(dict.fromkeys(chain)) or "the order of issue")]
    return []


def _name(event: Event) -> str:
    return f"{event.operation.opcode} in line {event.operation.line} ({event.core} {event.pipe})"


# -- inside a vector function --------------------------------------------------------------------------------------------

_CLASSES = {"VLD": (0,), "VST": (1,), "LD": (2,), "ST": (3,), "VV": (0, 1), "SS": (2, 3), "V": (0, 1), "S": (2, 3)}


def barrier_classes(kind: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Classes of accesses that a mem_bar has before and behind it: vector loads, vector stores, scalar loads, scalar stores."""
    first, second = kind.split("_")
    if second == "ALL":
        first, second = first[0], first[1]
    return _CLASSES[first], _CLASSES[second]


def _class_of(step: Step) -> int:
    assert step.access is not None
    return (2 if step.kind == "scalar" else 0) + int(step.access.write)


def _judge_mem_bar(mutant: Mutant, functions: Iterable[Sequence[Step]]) -> Verdict:
    reasons: list[str] = []
    for steps in functions:
        if not any(step.operation is mutant.removed[0] for step in steps):
            continue
        before, after = _order_of_steps(steps, None), _order_of_steps(steps, mutant)
        places = [i for i, step in enumerate(steps) if step.operation is mutant.removed[0]]
        for one, other in _conflicting_steps(steps):
            if not before[other] >> one & 1:
                continue
            if not after[other] >> one & 1:
                lines = f"lines {steps[one].operation.line} and {steps[other].operation.line}"
                return Verdict(False, f"{steps[one].operation.opcode} and {steps[other].operation.opcode} in {lines} are no longer ordered")
            if not reasons and any(one < place < other for place in places):
                how = "registers" if steps[other].uses >> one & 1 else "another mem_bar"
                reasons.append(f"lines {steps[one].operation.line} and {steps[other].operation.line}: ordered by {how}")
    return Verdict(True, reasons[0] if reasons else "protects nothing: no access before it has a byte in common with one behind it")


def _order_of_steps(steps: Sequence[Step], mutant: Mutant | None) -> list[int]:
    """Of each step the set of those that are done before it."""
    order: list[int] = []
    so_far, required = [0] * 4, [0] * 4
    for number, step in enumerate(steps):
        if step.access is None:
            order.append(0)
            if mutant is None or mutant.keeps(step.operation):
                first, second = barrier_classes(str(step.operation.attributes["kind"]))
                before = 0
                for each in first:
                    before |= so_far[each]
                for each in second:
                    required[each] |= before
            continue
        mine = required[_class_of(step)] | step.uses
        uses = step.uses
        while uses:
            lowest = uses & -uses
            mine |= order[lowest.bit_length() - 1]
            uses ^= lowest
        order.append(mine)
        so_far[_class_of(step)] |= mine | 1 << number
    return order


def _conflicting_steps(steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    groups: dict[str, list[tuple[int, int, bool, int]]] = defaultdict(list)
    for number, step in enumerate(steps):
        if step.access is not None:
            groups[step.access.memory].append((step.access.begin, step.access.end, step.access.write, number))
    for group in groups.values():
        group.sort()
        active: list[tuple[int, int, bool, int]] = []
        for item in group:
            active = [each for each in active if each[1] > item[0]]
            for each in active:
                if (each[2] or item[2]) and _bytes_in_common(steps[each[3]], steps[item[3]]):
                    yield min(each[3], item[3]), max(each[3], item[3])
            active.append(item)


def _bytes_in_common(one: Step, other: Step) -> bool:
    """Whether two steps whose ranges meet have a byte in common."""
    if one.lanes is not None and other.lanes is not None:
        return bool(np.intersect1d(_owners(one.lanes)[0], _owners(other.lanes)[0]).size)
    scattered, whole = (one, other) if one.lanes is not None else (other, one)
    if scattered.lanes is None:
        return True
    assert whole.access is not None
    touched, _ = _owners(scattered.lanes)
    return bool(((touched >= whole.access.begin) & (touched < whole.access.end)).any())


def _judge_threads(mutant: Mutant, functions: Iterable[Sequence[Step]]) -> Verdict:
    for steps in functions:
        barriers = [-1, *(i for i, step in enumerate(steps) if step.access is None), len(steps)]
        kept = [i for i in barriers if i in (-1, len(steps)) or mutant.keeps(steps[i].operation)]
        for low, high in pairwise(kept):
            inside = [i for i in barriers if low < i < high]
            # What the removed barriers had kept apart.
            for place in inside:
                first = [step for step in steps[low + 1 : place] if step.kind == "thread"]
                second = [step for step in steps[place + 1 : high] if step.kind == "thread"]
                problem = _meet(first, second)
                if problem:
                    return Verdict(False, problem)
    return Verdict(True, "protects nothing: from the syncthreads before it to the one behind it no two threads meet across it")


def _meet(first: Sequence[Step], second: Sequence[Step]) -> str:
    for one in first:
        for other in second:
            assert one.access is not None and other.access is not None
            if one.access.memory != other.access.memory or not (one.access.write or other.access.write):
                continue
            if one.lanes is None or other.lanes is None or _share(one.lanes, other.lanes):
                return f"threads meet in lines {one.operation.line} and {other.operation.line}"
    return ""


_Lanes = tuple[np.ndarray, np.ndarray, int]


def _share(one: _Lanes, other: _Lanes) -> bool:
    """Two different threads have a byte in common."""
    (bytes_one, threads_one), (bytes_other, threads_other) = _owners(one), _owners(other)
    common = np.intersect1d(bytes_one, bytes_other)
    if not common.size:
        return False
    low_one, high_one = _extremes(common, bytes_one, threads_one)
    low_other, high_other = _extremes(common, bytes_other, threads_other)
    return bool(((low_one != high_other) | (high_one != low_other)).any())


def _owners(lanes: _Lanes) -> tuple[np.ndarray, np.ndarray]:
    """Every byte with the thread that accesses it."""
    begins, threads, size = lanes
    return (begins[:, None] + np.arange(size)).ravel(), np.repeat(threads, size)


def _extremes(common: np.ndarray, numbers: np.ndarray, threads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest thread at each byte of ``common``."""
    at = np.searchsorted(common, numbers)
    inside = (at < common.size) & (common[np.minimum(at, common.size - 1)] == numbers)
    low, high = np.full(common.size, np.iinfo(np.int64).max), np.full(common.size, -1)
    np.minimum.at(low, at[inside], threads[inside])
    np.maximum.at(high, at[inside], threads[inside])
    return low, high
