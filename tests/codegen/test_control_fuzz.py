"""Random structured programs over mutable scalars: for and while loops, branches, shared statements, in every nesting; on the scalar
unit, in threads that diverge, and over registers of a SIMD vector function.

Each program is interpreted by a few lines of Python and, independently, emitted and run on the simulator.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from simd_registers import full, run_kernel, store
from tir_builder import immediate, op, pointer, sequence, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")
MODULUS = 101


class Program:
    """A random program over four variables; ``build`` gives TIR, ``interpret`` the expected values."""

    WHILES = 0.0
    """How often a statement is a while loop."""

    DTYPE, NAMES = "int32", ("a", "b", "_in", "lambda")

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.counters: list[tirx.Buffer] = []
        self.buffers = [tirx.decl_buffer((1,), self.DTYPE, name=name, scope="local.var") for name in self.NAMES]
        self.loops: list[tirx.Var] = []
        self.shared: list = []
        self.body = self.block(depth=3, length=4)

    # Statements and expressions are pairs: (TIR, function of the environment).

    def block(self, depth: int, length: int):
        parts = [self.statement(depth) for _ in range(self.random.randint(1, length))]

        def execute(env):
            for _, step in parts:
                step(env)

        return sequence(*[tir for tir, _ in parts]), execute

    def statement(self, depth: int):
        choice = self.random.random()
        if depth > 0 and choice < 0.25:
            return self.loop(depth)
        if depth > 0 and choice < 0.45:
            return self.branch(depth)
        if depth > 0 and choice < 0.45 + self.WHILES:
            return self.while_loop(depth)
        if choice < 0.6 and self.shared:
            return self.random.choice(self.shared)  # the very same TIR object a second time
        made = self.assignment()
        if self.random.random() < 0.2 and not self.loops:
            self.shared.append(made)
        return made

    def assignment(self):
        target = self.random.randrange(len(self.buffers))
        tir, value = self.expression(2)
        store = tirx.BufferStore(self.buffers[target], tirx.FloorMod(tir, immediate(MODULUS)), [immediate(0)])

        def execute(env):
            env[target] = value(env) % MODULUS

        return store, execute

    def loop(self, depth: int):
        var, low, extent = tirx.Var("i", "int32"), self.random.randint(0, 2), self.random.randint(0, 4)
        self.loops.append(var)
        tir, execute_body = self.block(depth - 1, 3)
        self.loops.pop()
        kind = self.random.choice([tirx.ForKind.SERIAL, tirx.ForKind.UNROLLED])

        def execute(env):
            for value in range(low, low + extent):
                env[var.name, id(var)] = value
                execute_body(env)

        loop = tirx.For(var, immediate(low), immediate(extent), kind, tir), execute
        if not self.loops:
            self.shared.append(loop)
        return loop

    def while_loop(self, depth: int):
        """``while count < limit and condition``: it ends whatever the body does to the variables."""
        counter = tirx.decl_buffer((1,), "int32", name="count", scope="local.var")
        self.counters.append(counter)
        limit, zero = self.random.randint(0, 4), [immediate(0)]
        condition, test = self.condition()
        tir, execute_body = self.block(depth - 1, 3)
        count = tirx.BufferLoad(counter, zero)

        def execute(env):
            rounds = 0
            while rounds < limit and test(env):
                rounds += 1
                execute_body(env)

        loop = tirx.While(tirx.And(count < limit, condition), sequence(tirx.BufferStore(counter, count + 1, zero), tir))
        return sequence(tirx.BufferStore(counter, immediate(0), zero), loop), execute

    def branch(self, depth: int):
        condition, test = self.condition()
        then, then_body = self.block(depth - 1, 2)
        other = self.block(depth - 1, 2) if self.random.random() < 0.6 else None

        def execute(env):
            if test(env):
                then_body(env)
            elif other is not None:
                other[1](env)

        return tirx.IfThenElse(condition, then, other[0] if other else None), execute

    def condition(self):
        a, va = self.expression(1)
        b, vb = self.expression(1)
        node, compare = self.random.choice([(tirx.LT, lambda x, y: x < y), (tirx.GE, lambda x, y: x >= y), (tirx.EQ, lambda x, y: x == y)])
        return node(a, b), lambda env: compare(va(env), vb(env))

    def expression(self, depth: int):
        choice = self.random.random()
        if depth == 0 or choice < 0.4:
            return self.leaf()
        (a, va), (b, vb) = self.expression(depth - 1), self.expression(depth - 1)
        divisor = self.random.choice([2, 3, 7, -5])
        options = [
            (tirx.Add(a, b), lambda env: va(env) + vb(env)),
            (tirx.Sub(a, b), lambda env: va(env) - vb(env)),
            (tirx.Mul(a, b), lambda env: va(env) * vb(env)),
            (tirx.Min(a, b), lambda env: min(va(env), vb(env))),
            (tirx.Max(a, b), lambda env: max(va(env), vb(env))),
            (tirx.FloorDiv(a, immediate(divisor)), lambda env: va(env) // divisor),
            (tirx.FloorMod(a, immediate(divisor)), lambda env: va(env) % divisor),
            (op("tirx.shift_right", "int32", a, 1), lambda env: va(env) >> 1),
            (op("tirx.shift_left", "int32", a, 3), lambda env: va(env) << 3),
        ]
        return self.random.choice(options)

    def leaf(self):
        choice = self.random.random()
        if choice < 0.3:
            number = self.random.randint(-9, 9)
            return immediate(number), lambda env: number
        if choice < 0.5 and self.loops:
            var = self.random.choice(self.loops)
            return var, lambda env: env[var.name, id(var)]
        index = self.random.randrange(len(self.buffers))
        return tirx.BufferLoad(self.buffers[index], [immediate(0)]), lambda env: env[index]

    def build(self):
        out = pointer("out", "int32")
        allocations = [tirx.AllocBuffer(buffer) for buffer in (*self.buffers, *self.counters)]
        stores = [
            tirx.BufferStore(view(out, "int32", len(self.buffers)), tirx.BufferLoad(buffer, [immediate(0)]), [immediate(index)])
            for index, buffer in enumerate(self.buffers)
        ]
        return vector_kernel("program", [out], lambda _: sequence(*allocations, self.body[0], *stores))

    def interpret(self) -> list[int]:
        env: dict = dict.fromkeys(range(len(self.buffers)), 0)
        self.body[1](env)
        return [env[index] for index in range(len(self.buffers))]


def run_and_compare(program: Program, surface: str) -> None:
    """The emitted program leaves in every variable what the interpreter says."""
    text = emit_module(program.build(), surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    expected = program.interpret()
    out = np.full(len(expected), -12345, np.int32)
    run(text, "program", out)
    assert out.tolist() == expected, text


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed, surface):
    run_and_compare(Program(seed), surface)


class WhileProgram(Program):
    """With while loops."""

    WHILES = 0.2


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("seed", range(30))
def test_random_program_with_while_loops(seed, surface):
    run_and_compare(WhileProgram(seed), surface)


THREADS = 40


class ThreadProgram(WhileProgram):
    """Of one thread each: conditions and values depend on its number, so that threads take different ways."""

    def __init__(self, seed: int) -> None:
        self.unbound = tirx.Var("tx", "int32")
        super().__init__(seed)

    def leaf(self):
        if self.random.random() < 0.25:
            return self.unbound, lambda env: env["thread"]
        return super().leaf()

    def build(self):
        out, count = pointer("out", "int32"), len(self.buffers)

        def body(tx):
            allocations = [tirx.AllocBuffer(buffer) for buffer in (*self.buffers, *self.counters)]
            stores = [
                tirx.BufferStore(view(out, "int32", count * THREADS), tirx.BufferLoad(buffer, [immediate(0)]), [tx * count + index])
                for index, buffer in enumerate(self.buffers)
            ]
            return sequence(*allocations, tirx.Bind(self.unbound, tx), self.body[0], *stores)

        return vector_kernel("program", [out], lambda _: simt_block(THREADS, body))

    def interpret(self) -> list[int]:
        results = []
        for thread in range(THREADS):
            env: dict = {**dict.fromkeys(range(len(self.buffers)), 0), "thread": thread}
            self.body[1](env)
            results += [env[index] for index in range(len(self.buffers))]
        return results


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("seed", range(30))
def test_random_program_of_threads_that_diverge(seed, surface):
    run_and_compare(ThreadProgram(seed), surface)


KIND = "int32x64"


class RegisterProgram(Program):
    """Over registers: values are vectors, loops and branches are those of the scalars in the vector function."""

    DTYPE, NAMES = KIND, ("a", "_in", "lambda")

    def register(self, depth: int):
        choice = self.random.random()
        if depth == 0 or choice < 0.3:
            index = self.random.randrange(len(self.buffers))
            return tirx.BufferLoad(self.buffers[index], [immediate(0)]), lambda env: env[index]
        (a, va), (s, vs) = self.register(depth - 1), self.scalar()
        mask, zeroing = full("int32"), "MODE_ZEROING"
        if choice < 0.5:
            return op("tl.simd.vadds", KIND, a, s, mask, zeroing), lambda env: va(env) + np.int32(vs(env))
        (b, vb) = self.register(depth - 1)
        name, model = self.random.choice(
            [("vadd", np.add), ("vsub", np.subtract), ("vmul", np.multiply), ("vmax", np.maximum), ("vmin", np.minimum)]
        )
        return op(f"tl.simd.{name}", KIND, a, b, mask, zeroing), lambda env: model(va(env), vb(env))

    def scalar(self):
        if self.loops and self.random.random() < 0.7:
            var = self.random.choice(self.loops)
            return var, lambda env: env[var.name, id(var)]
        number = self.random.randint(-9, 9)
        return immediate(number), lambda env: number

    def condition(self):
        (a, va), (b, vb) = self.scalar(), self.scalar()
        return tirx.LT(a + b, immediate(3)), lambda env: va(env) + vb(env) < 3

    def assignment(self):
        target = self.random.randrange(len(self.buffers))
        tir, value = self.register(2)

        def execute(env):
            env[target] = value(env)

        return tirx.BufferStore(self.buffers[target], tir, [immediate(0)]), execute

    def statements(self, at):
        loads = [op("tl.simd.vld", KIND, at(0, "int32", index * 64), "NORM") for index in range(3)]
        starts = [tirx.BufferStore(buffer, load, [immediate(0)]) for buffer, load in zip(self.buffers, loads, strict=True)]
        stores = [store(at, 1, "int32", tirx.BufferLoad(buffer, [immediate(0)]), index * 64) for index, buffer in enumerate(self.buffers)]
        return [*(tirx.AllocBuffer(buffer) for buffer in self.buffers), *starts, self.body[0], *stores]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("seed", range(40))
def test_random_program_over_registers(seed, surface):
    program = RegisterProgram(seed)
    start = np.random.default_rng(seed).integers(-50, 50, 192).astype(np.int32)
    (got,) = run_kernel(surface, [start], [("int32", 192)], program.statements)
    env: dict = dict(enumerate(start.reshape(3, 64)))
    with np.errstate(over="ignore"):
        program.body[1](env)
    np.testing.assert_array_equal(got, np.concatenate([env[index] for index in range(3)]))
