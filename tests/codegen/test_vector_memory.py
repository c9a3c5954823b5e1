"""Where barriers between accesses to UB go inside a vector function."""

from __future__ import annotations

import ast
import contextlib

import pytest

from tilelang_pto.codegen.analysis.vector_memory import place_barriers
from tilelang_pto.codegen.emit import Builder, name
from tilelang_pto.codegen.forms import Form, Forms
from tilelang_pto.codegen.types import DTYPES, INDEX, Type, pointer_type
from tilelang_pto.codegen.values import VectorAccess

F32 = DTYPES["float32"]
REGISTER = Type("register", F32, 64)


class Sketch:
    """A vector function of loads and stores of f32 registers, whose addresses are given in elements as forms."""

    def __init__(self):
        self.b, self.forms = Builder(), Forms()
        self.base = self.b.pure(("ub", 0), lambda _: name("ub"), (), pointer_type(F32, "ub"))
        self.count = 0

    @contextlib.contextmanager
    def function(self):
        with self.b.nest(["vector_function"], lambda _, bodies: bodies[0]) as nest, self.b.inside(nest.blocks[0]):
            yield
        place_barriers(nest.blocks[0], self.forms, self.b.handed)
        module = ast.fix_missing_locations(ast.Module(self.b.finish(), []))
        self.lines = ast.unparse(module).splitlines()

    @contextlib.contextmanager
    def loop(self, rounds):
        def build(_, bodies):
            return [ast.With([ast.withitem(name("loop"))], bodies[0])]

        with self.b.nest(["loop"], build) as nest, self.b.inside(nest.blocks[0]):
            self.count += 1
            variable = nest.blocks[0].variable = self.b.named(f"i{self.count}", INDEX, interval=(0, rounds - 1))
            yield self.forms.of(variable)

    @contextlib.contextmanager
    def branches(self):
        def build(_, bodies):
            return [ast.If(name("c"), bodies[0] or [ast.Pass()], bodies[1])]

        with self.b.nest(["branch", "branch"], build) as nest:
            yield [self.b.inside(block) for block in nest.blocks]

    def unknown(self, low=0, high=1 << 20):
        """A value computed where it is asked for, of which the interval is known."""
        self.count += 1
        value = self.b.named(f"u{self.count}", INDEX, interval=(low, high))
        return self.forms.of(value)

    def at(self, form):
        self.count += 1
        value = self.b.named(f"at{self.count}", INDEX)
        self.forms.define(value, form if isinstance(form, Form) else Form((), form))
        return value

    def load(self, form, width=256):
        offset = self.at(form)
        self.count += 1
        key = ("vlds", self.count)
        value = self.b.pure(key, lambda e: ast.Call(name("load"), list(e), []), (offset,), REGISTER, memory="ub", pinned=True)
        value.access, value.keep_name = VectorAccess(self.base, offset, width, writes=False), True
        return value

    def store(self, form, *values, width=256):
        offset = self.at(form)
        statement = self.b.effect(lambda e: ast.Call(name("store"), list(e), []), (offset, *values), writes="ub")
        statement.access = VectorAccess(self.base, offset, width, writes=True)

    def barriers(self):
        """In program order, with what they stand in front of."""
        return [
            (line.split("'")[1], self.lines[i + 1].strip().split("(")[0].split(" = ")[-1])
            for i, line in enumerate(self.lines)
            if "mem_bar" in line
        ]


def scaled(form, factor, constant=0):
    return form.times(factor).plus(Form((), constant))


def test_load_behind_a_store_to_the_same_bytes():
    k = Sketch()
    with k.function():
        k.store(0)
        k.store(64, k.load(0))
    assert k.barriers() == [("VST_VLD", "load")]


@pytest.mark.parametrize(("start", "needed"), [(63, True), (64, False), (-63, True), (-64, False)])
def test_bytes_decide(start, needed):
    k = Sketch()
    with k.function():
        k.store(128)
        k.store(1024, k.load(128 + start))
    assert bool(k.barriers()) == needed


def test_one_barrier_serves_all_loads_behind_it():
    k = Sketch()
    with k.function():
        k.store(0)
        k.store(64)
        k.store(1024, k.load(0), k.load(64))
    assert k.barriers() == [("VST_VLD", "load")]


def test_updates_in_place_need_none():
    k = Sketch()
    with k.function(), k.loop(28) as i:
        k.store(scaled(i, 64), k.load(scaled(i, 64)))
    assert k.barriers() == []


def test_sums_in_memory_need_one_in_each_round():
    k = Sketch()
    with k.function(), k.loop(28) as i:
        k.store(4096, k.load(scaled(i, 64)), k.load(4096))
    assert k.barriers() == [("VST_VLD", "load")]


def test_a_store_that_needs_what_was_loaded_comes_behind_the_older_store():
    """Store, barrier, load, store: no second barrier between the stores."""
    k = Sketch()
    with k.function():
        k.store(0)
        k.store(0, k.load(0))
    assert k.barriers() == [("VST_VLD", "load")]


def test_two_stores_to_the_same_bytes():
    k = Sketch()
    with k.function():
        k.store(0)
        k.store(32)
    assert k.barriers() == [("VST_VST", "store")]


def test_a_store_behind_a_load_it_does_not_need():
    k = Sketch()
    with k.function():
        loaded = k.load(0)
        other = k.load(512)
        k.store(0, other)
        k.store(1024, loaded)
    assert k.barriers() == [("VLD_VST", "store")]


def test_neighbours_of_the_last_round_are_read():
    """x[i + 1] is written in one round and read as x[i] in the next."""
    k = Sketch()
    with k.function(), k.loop(8) as i:
        k.store(scaled(i, 64, 64), k.load(scaled(i, 64)))
    assert k.barriers() == [("VST_VLD", "load")]


def test_neighbours_of_the_next_round_are_not():
    """x[i] is written, x[i + 1] was read before: only the order of that load and the store of the next round matters."""
    k = Sketch()
    with k.function(), k.loop(8) as i:
        k.store(scaled(i, 64), k.load(scaled(i, 64, 64)))
    assert k.barriers() == [("VLD_VST", "store")]


@pytest.mark.parametrize(("rounds", "needed"), [(8, False), (9, True), (1000, True)])
def test_the_number_of_rounds_decides(rounds, needed):
    """A buffer behind another one: the loop reaches it or not."""
    k = Sketch()
    with k.function(), k.loop(rounds) as i:
        k.store(scaled(i, 64, 8 * 64), k.load(scaled(i, 64)))
    assert bool(k.barriers()) == needed


def test_rows_and_columns_of_two_loops_do_not_meet():
    k = Sketch()
    with k.function(), k.loop(2) as column, k.loop(24) as row:
        where = scaled(row, 256).plus(scaled(column, 128))
        k.store(where.plus(Form((), 18432)), k.load(where))
        k.store(where.plus(Form((), 18432 + 64)), k.load(where.plus(Form((), 64))))
    assert k.barriers() == []


def test_rows_of_different_lengths_meet_only_within_their_rounds():
    """Results of one element a row in front of rows of 32: the last row's end is not the first result."""
    k = Sketch()
    with k.function(), k.loop(32) as r:
        k.store(scaled(r, 32, 7232), k.load(scaled(r, 1, 8256), width=4), width=128)
    assert k.barriers() == []


def test_a_loop_inside_does_not_end_the_round():
    """A sum over rows, stored for each column behind the inner loop."""
    k = Sketch()
    with k.function(), k.loop(20) as column:
        with k.loop(3) as row:
            value = k.load(scaled(row, 2560).plus(scaled(column, 64)))
        k.store(scaled(column, 64, 1 << 20), value)
    assert k.barriers() == []


def test_a_version_of_a_buffer_is_the_same_all_the_time():
    """The same unknown slot of two buffers of seven versions: the intervals keep them apart."""
    k = Sketch()
    slot = k.unknown(0, 6)
    with k.function(), k.loop(28) as c:
        x = scaled(slot, 3584).plus(scaled(c, 64)).plus(Form((), 7 * 3584))
        k.store(scaled(slot, 3584).plus(scaled(c, 64)), k.load(x))
    assert k.barriers() == []


@pytest.mark.parametrize(("columns", "needed"), [(112, False), (113, True)])
@pytest.mark.parametrize("value", ["slot", "remainder"])
def test_the_other_one_of_two_versions(columns, needed, value):
    """Rows of 112 registers: what is read in version ``slot`` is written in version ``1 - slot``."""
    k = Sketch()
    slot = k.unknown(0, 1)
    if value == "remainder":
        layer = k.unknown(0, 5)
        operands = k.at(layer), k.b.literal(2, INDEX)
        slot = k.forms.of(k.b.pure("%", lambda e: ast.BinOp(e[0], ast.Mod(), e[1]), operands, INDEX))
    with k.function(), k.loop(columns) as c:
        row = scaled(c, 64)
        k.store(slot.times(-7168).plus(row).plus(Form((), 7168)), k.load(slot.times(7168).plus(row)))
    assert bool(k.barriers()) == needed


def test_unknown_places_may_be_the_same():
    k = Sketch()
    a, b = k.unknown(), k.unknown()
    with k.function():
        k.store(a)
        k.store(1 << 22, k.load(b))
    assert k.barriers() == [("VST_VLD", "load")]


def test_values_of_a_round_are_other_values_in_the_next():
    """A place computed in the loop: the load in the next round has another one."""
    k = Sketch()
    with k.function(), k.loop(4) as i:
        place = k.unknown(0, 4096)
        other = k.load(place)
        k.store(place, other)
        assert i.terms
    assert ("VST_VLD", "load") in k.barriers()


def test_either_branch_counts():
    k = Sketch()
    with k.function():
        with k.branches() as (then, otherwise):
            with then:
                k.store(0)
            with otherwise:
                k.store(64)
        k.store(1024, k.load(64))
    assert k.barriers() == [("VST_VLD", "load")]


def test_stores_of_a_loop_are_seen_behind_it():
    k = Sketch()
    with k.function():
        with k.loop(8) as i:
            k.store(scaled(i, 64))
        k.store(4096, k.load(7 * 64))
        k.store(8192, k.load(8 * 64))
    assert k.barriers() == [("VST_VLD", "load")]


def test_barriers_of_the_source_are_enough():
    k = Sketch()
    with k.function():
        k.store(0)
        k.b.effect(lambda _: ast.Call(name("written"), [], [])).orders = ((True,), (False,))
        k.store(512, k.load(0))
    assert k.barriers() == []
