"""The check against brute force: random programs, their order as an explicit graph, and a search through it for every pair of accesses.

No clocks here. Nodes are the beginning and the end of each executed command, flags, tokens, barriers and positions of the scalar unit; an
edge says that one comes before the other on any hardware. Two accesses race when neither end leads to the beginning of the other one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from hazard_harness import findings_of, text_of
from hypothesis import given
from hypothesis import strategies as st
from property_inputs import examples

BLOCK = 32
BLOCKS = 6
IN_ORDER = ("S", "V")
PIPES = ("S", "V", "MTE2", "MTE3")
QUEUED = PIPES[1:]
ARRAYS = {"y": ("f32", np.zeros(512)), "z": ("f32", np.zeros(8))}


@dataclass(frozen=True)
class Statement:
    """One statement of a program; which fields count depends on ``kind``."""

    kind: str  # load, store, vector, scalar load, scalar store, set, wait, barrier, get, rls
    pipe: str = ""
    other: str = ""
    number: int = 0  # event or token
    places: tuple[int, int] = (0, 0)  # 32-byte blocks: UB and GM, or source and target
    size: int = 1
    step: int = 0  # blocks that places move by in each round of a loop


# -- programs ----------------------------------------------------------------------------------------------------------

spots = st.integers(0, BLOCKS - 1)
accesses = st.builds(
    Statement,
    st.sampled_from(("load", "store", "vector", "scalar load", "scalar store")),
    places=st.tuples(spots, spots),
    size=st.integers(1, 2),
    step=st.integers(0, 1),
)
USER = {"load": "MTE2", "store": "MTE3", "vector": "V", "scalar load": "S", "scalar store": "S"}


@st.composite
def programs(draw) -> list[list[Statement]]:
    """Parts of a program; those with odd numbers are loops of two rounds."""
    used: dict[tuple[str, str], int] = {}
    parts = []
    for part in range(draw(st.integers(1, 3))):
        rounds = 1 + part % 2
        body: list[Statement] = []
        for access in draw(st.lists(accesses, min_size=1, max_size=5)):
            token = draw(st.integers(0, 5))
            pipe = USER[access.kind]
            if token < 2 and pipe != "S":
                body += [Statement("get", pipe, number=token), access, Statement("rls", pipe, number=token)]
            else:
                body.append(access)
        for _ in range(draw(st.integers(0, 4))):
            pair = draw(st.sampled_from([(a, b) for a in PIPES for b in PIPES if a != b]))
            event = used.get(pair, 0)
            if event + rounds > 8:
                continue
            used[pair] = event + rounds
            first, second = sorted((draw(st.integers(0, len(body))), draw(st.integers(0, len(body)))))
            body.insert(second, Statement("wait", *pair, number=event))
            body.insert(first, Statement("set", *pair, number=event))
        if draw(st.booleans()):
            body.insert(draw(st.integers(0, len(body))), Statement("barrier", draw(st.sampled_from(("MTE2", "MTE3", "V", "ALL")))))
        parts.append(body)
    return parts


def lines_of(statement: Statement, round_: str) -> list[str]:
    """PTODSL of a statement; ``round_`` is added to its places and events."""
    a, b = (f"({place}{f' + {round_}' if statement.step and round_ else ''}) * 8" for place in statement.places)
    event = f"{statement.number}{f' + {round_}' if round_ else ''}"
    size = statement.size * BLOCK
    return {
        "load": [f"pto.mte_gm_ub(pto.addptr(y, {b}), pto.addptr(u, {a}), 0, {size}, nburst=(1, {size}, {size}))"],
        "store": [f"pto.mte_ub_gm(pto.addptr(u, {a}), pto.addptr(y, {b}), {size}, nburst=(1, {size}, {size}))"],
        "vector": [
            "with pto.vecscope():",
            f'    v = pto.vlds(pto.addptr(u, {a}), 0, dist="BRC_BLK")',
            f'    pto.vsts(v, pto.addptr(u, {b}), 0, pto.pset_b32("VL8"))',
        ],
        "scalar load": [f"pto.store(pto.load(u, {a} + 3), z, 0)"],
        "scalar store": [f"pto.store(1.0, u, {a} + 2)"],
        "set": [f'pto.set_flag("{statement.pipe}", "{statement.other}", event_id={event})'],
        "wait": [f'pto.wait_flag("{statement.pipe}", "{statement.other}", event_id={event})'],
        "barrier": [f'pto.pipe_barrier("{statement.pipe}")'],
        "get": [f'pto.get_buf("{statement.pipe}", {statement.number})'],
        "rls": [f'pto.rls_buf("{statement.pipe}", {statement.number})'],
    }[statement.kind]


def write_text(program: list[list[Statement]]) -> tuple[str, dict[tuple[int, int], int]]:
    """The text, and the first line of every statement by part and position."""
    lines, at = ['u = at("ub", pto.f32)'], {}
    for number, body in enumerate(program):
        loop = number % 2 == 1
        if loop:
            lines += ["with pto.for_(0, 2, step=1) as i:", "    j = pto.cast(i, pto.i64)"]
        for position, statement in enumerate(body):
            at[number, position] = len(lines)
            lines += [f"{'    ' * loop}{line}" for line in lines_of(statement, "j" if loop else "")]
    text = text_of("\n".join(lines) + "\n", ARRAYS, "vector")
    first = next(number for number, line in enumerate(text.splitlines(), 1) if "u = at" in line)
    return text, {key: first + line for key, line in at.items()}


# -- order by search ---------------------------------------------------------------------------------------------------


@dataclass
class Access:
    """What an executed command does to some bytes of ``UB`` or ``GM``."""

    line: int
    memory: str
    bytes: range
    write: bool


@dataclass
class Command:
    pipe: str
    begin: int
    end: int
    accesses: list[Access] = field(default_factory=list)


class Order:
    """The graph of one program, built by going through it once."""

    def __init__(self, program: list[list[Statement]], lines: dict[tuple[int, int], int]) -> None:
        self.edges: list[list[int]] = []
        self.commands: list[Command] = []
        self.scalar = self.node()
        self.gate = {pipe: self.node() for pipe in QUEUED}  # what the next command of a queue comes after
        self.sets: dict[tuple[str, str, int], int] = {}
        self.releases: list[tuple[str, int, int]] = []
        for number, body in enumerate(program):
            for round_ in range(1 + number % 2):
                for position, statement in enumerate(body):
                    self.scalar = self.node(self.scalar)
                    self.execute(statement, round_, lines[number, position])

    def node(self, *before: int) -> int:
        self.edges.append([])
        for other in before:
            self.edges[other].append(len(self.edges) - 1)
        return len(self.edges) - 1

    def ends(self, *pipes: str) -> list[int]:
        return [command.end for command in self.commands if command.pipe in pipes]

    def after_queue(self, pipe: str) -> list[int]:
        """What a flag or a token that goes through the queue of a pipe comes after."""
        return [self.scalar, *([self.gate[pipe]] if pipe in self.gate else []), *self.ends(pipe)]

    def execute(self, s: Statement, round_: int, line: int) -> None:
        if s.kind in USER:
            self.access(s, round_, line)
        elif s.kind == "set":
            self.sets[s.pipe, s.other, s.number + round_] = self.node(*self.after_queue(s.pipe))
        elif s.kind == "rls":
            self.releases.append((s.pipe, s.number, self.node(*self.after_queue(s.pipe))))
        elif s.kind == "wait":
            before = self.sets[s.pipe, s.other, s.number + round_]
            if s.other == "S":
                self.scalar = self.node(self.scalar, before)
            else:
                self.gate[s.other] = self.node(self.scalar, self.gate[s.other], before)
        elif s.kind == "get":
            before = [release for pipe, number, release in self.releases if number == s.number and pipe != s.pipe]
            self.gate[s.pipe] = self.node(self.scalar, self.gate[s.pipe], *before)
        elif s.pipe == "ALL":
            self.scalar = self.node(self.scalar, *self.gate.values(), *self.ends(*PIPES))
        else:
            self.gate[s.pipe] = self.node(*self.after_queue(s.pipe))

    def access(self, s: Statement, round_: int, line: int) -> None:
        pipe = USER[s.kind]
        earlier = self.ends(pipe) if pipe in IN_ORDER else []
        begin = self.node(self.scalar, *([self.gate[pipe]] if pipe in self.gate else []), *earlier)
        if pipe in self.gate:
            self.gate[pipe] = begin
        command = Command(pipe, begin, self.node(begin))
        first, second = ((place + s.step * round_) * BLOCK for place in s.places)
        size = s.size * BLOCK
        if s.kind == "load":
            command.accesses = [
                Access(line, "GM", range(second, second + size), False),
                Access(line, "UB", range(first, first + size), True),
            ]
        elif s.kind == "store":
            command.accesses = [
                Access(line, "UB", range(first, first + size), False),
                Access(line, "GM", range(second, second + size), True),
            ]
        elif s.kind == "vector":
            command.accesses = [Access(line + 1, "UB", range(first, first + BLOCK), False),
                                Access(line + 2, "UB", range(second, second + BLOCK), True)]  # fmt: skip
        elif s.kind == "scalar load":
            command.accesses = [Access(line, "UB", range(first + 12, first + 16), False)]
        else:
            command.accesses = [Access(line, "UB", range(first + 8, first + 12), True)]
        self.commands.append(command)

    def leads(self, start: int, end: int) -> bool:
        seen, stack = {start}, [start]
        while stack:
            for node in self.edges[stack.pop()]:
                if node == end:
                    return True
                if node not in seen:
                    seen.add(node)
                    stack.append(node)
        return False

    def unordered(self, a: Command, b: Command) -> bool:
        return not self.leads(a.end, b.begin) and not self.leads(b.end, a.begin)


Race = tuple[int, int, str, str]


def race(a: Access, b: Access) -> Race | None:
    """The finding for two accesses in the order of the program, if one of them writes what the other one uses."""
    if a.memory != b.memory or not (a.write or b.write) or max(a.bytes.start, b.bytes.start) >= min(a.bytes.stop, b.bytes.stop):
        return None
    return a.line, b.line, "WAW" if a.write and b.write else "RAW" if a.write else "WAR", a.memory


def all_races(order: Order) -> tuple[set[Race], dict[tuple[str, int, str, str], set[Race]]]:
    """All pairs, and those of each byte and two pipes."""
    races: set[Race] = set()
    by_byte: dict[tuple[str, int, str, str], set[Race]] = {}
    for first, second in itertools.combinations(order.commands, 2):
        pairs = [(a, b, found) for a in first.accesses for b in second.accesses if (found := race(a, b))]
        if not pairs or not order.unordered(first, second):
            continue
        for a, b, found in pairs:
            races.add(found)
            for byte in range(max(a.bytes.start, b.bytes.start), min(a.bytes.stop, b.bytes.stop)):
                by_byte.setdefault((a.memory, byte, *sorted((first.pipe, second.pipe))), set()).add(found)
    return races, by_byte


def last_races(order: Order) -> set[Race]:
    """The pairs of UB in which the earlier access is the last of its pipe to a byte, commands taken in the order of the program.

    A later access of the same pipe stands for the earlier ones: whoever comes after it comes after them.
    """
    races: set[Race] = set()
    writes: dict[tuple[str, int], tuple[Command, Access]] = {}
    reads: dict[tuple[str, int], tuple[Command, Access]] = {}
    for command in order.commands:
        known: dict[int, bool] = {}
        for access in command.accesses:
            if access.memory != "UB":
                continue
            for pipe, byte in itertools.product(PIPES, access.bytes):
                for table in (writes, reads):
                    earlier = table.get((pipe, byte))
                    found = race(earlier[1], access) if earlier else None
                    if not earlier or not found:
                        continue
                    if id(earlier[0]) not in known:
                        known[id(earlier[0])] = order.unordered(earlier[0], command)
                    if known[id(earlier[0])]:
                        races.add(found)
        for write in (False, True):
            for access in command.accesses:
                if access.memory != "UB" or access.write != write:
                    continue
                for byte in access.bytes:
                    (writes if write else reads)[command.pipe, byte] = (command, access)
                    if write:
                        reads.pop((command.pipe, byte), None)
    return races


def reported(text: str, policy: str) -> set[Race]:
    findings, _ = findings_of(text, ARRAYS, policy)
    return {(f.first.line, f.second.line, str(f.hazard), f.memory) for f in findings if f.kind == "race" and f.tensor != "z"}


@examples(40)
@given(programs(), st.integers(0, 1000))
def test_the_check_agrees_with_a_search_through_all_orders(program: list[list[Statement]], seed: int) -> None:
    text, lines = write_text(program)
    order = Order(program, lines)
    races, by_byte = all_races(order)
    in_gm = {found for found in races if found[3] == "GM"}
    # Where nothing waits for something later in the program, the eager policy executes it in its order.
    assert reported(text, "eager") == last_races(order) | in_gm
    for policy in ("late", f"random:{seed}"):
        found = reported(text, policy)
        assert found <= races
        assert {race for race in found if race[3] == "GM"} == in_gm
        for pairs in by_byte.values():
            assert found & pairs


def test_the_search_itself() -> None:
    """A load, a vector function that waits for it, and one more load that does not."""
    load, vector = Statement("load", places=(0, 0)), Statement("vector", places=(0, 1))
    flag = [Statement("set", "MTE2", "V"), Statement("wait", "MTE2", "V")]
    for body, expected in (
        ([load, *flag, vector], set()),
        ([load, vector], {"RAW"}),
        ([load, *flag, vector, load], {"WAR", "WAW"}),
        ([load, *flag, vector, Statement("set", "V", "MTE2"), Statement("wait", "V", "MTE2"), load], set()),
        ([load, Statement("barrier", "MTE2"), load], set()),
    ):
        text, lines = write_text([body])
        races, _ = all_races(Order([body], lines))
        assert {hazard for _, _, hazard, _ in races} == expected
        assert reported(text, "eager") == races
