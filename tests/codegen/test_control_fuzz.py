"""Random structured programs over mutable scalars: loops, branches, allocations inside loops, shared statements.

Each program is interpreted by a few lines of Python and, independently, emitted and run on the simulator.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from tir_builder import immediate, op, pointer, sequence, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")
MODULUS = 101


class Program:
    """A random program over ``count`` variables; ``build`` gives TIR, ``interpret`` the expected values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.buffers = [tirx.decl_buffer((1,), "int32", name=name, scope="local.var") for name in ("a", "b", "_in", "lambda")]
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
        if depth > 0 and choice < 0.5:
            return self.branch(depth)
        if choice < 0.55 and self.shared:
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
        allocations = [tirx.AllocBuffer(buffer) for buffer in self.buffers]
        stores = [
            tirx.BufferStore(view(out, "int32", len(self.buffers)), tirx.BufferLoad(buffer, [immediate(0)]), [immediate(index)])
            for index, buffer in enumerate(self.buffers)
        ]
        return vector_kernel("program", [out], lambda _: sequence(*allocations, self.body[0], *stores))

    def interpret(self) -> list[int]:
        env: dict = dict.fromkeys(range(len(self.buffers)), 0)
        self.body[1](env)
        return [env[index] for index in range(len(self.buffers))]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed, surface):
    program = Program(seed)
    text = emit_module(program.build(), surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    out = np.full(len(program.buffers), -12345, np.int32)
    run(text, "program", out)
    assert out.tolist() == program.interpret(), text
