"""Loop forms PTODSL cannot express are rewritten before emission.

* ``break``: PTODSL loops run to their condition. A variable ``running`` says whether the loop goes on; what follows a break is guarded
  by it.
* Loops that index registers with their variable: registers are SSA values with constant numbers, so such loops are expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tvm import tirx
from tvm.arith import Analyzer

__all__ = ["Normalised", "constant_index", "normalise_loops"]

_BREAK = "tl.loop_break"
LARGEST_EXPANSION = 1024
"""Rounds of a loop over registers that are expanded at the most."""


class Normalised:
    """A body with the loop forms PTODSL knows.

    Attributes:
        body: the statement.
        running: data variables of the ``running`` flags; they are SSA values even inside SIMT code.
    """

    def __init__(self, body: Any, register_variables: Iterable[Any]) -> None:
        self._registers = set(register_variables)
        self.running: list[Any] = []
        self.body = self._rewrite(body)

    def _rewrite(self, stmt: Any) -> Any:
        if isinstance(stmt, tirx.For):
            body = self._rewrite(stmt.body)
            if _breaks(body):
                return self._breaking_for(stmt, body)
            loop = stmt if body.same_as(stmt.body) else _with_body(stmt, body)
            return self._expanded(loop) if self._indexes_registers(loop) else loop
        if isinstance(stmt, tirx.While):
            return self._breaking_while(stmt, self._rewrite(stmt.body))
        return _map_children(stmt, self._rewrite)

    # -- break -----------------------------------------------------------------------------------------------------------

    def _flag(self) -> Any:
        running = tirx.decl_buffer((1,), "bool", name="running", scope="local.var")
        self.running.append(running.data)
        return running

    def _breaking_for(self, loop: Any, body: Any) -> Any:
        """``for``: rounds after the break do nothing."""
        running = self._flag()
        guarded = tirx.IfThenElse(_load(running), _guard(body, running), None)
        return tirx.SeqStmt([tirx.AllocBuffer(running), _store(running, True), _with_body(loop, guarded)])

    def _breaking_while(self, loop: Any, body: Any) -> Any:
        """``while condition``: the flag is the only condition, computed at the start of each round."""
        running = self._flag()
        guarded = _guard(body, running)
        if not (isinstance(loop.condition, tirx.IntImm) and bool(loop.condition.value)):
            test = tirx.BufferStore(running, loop.condition, [tirx.IntImm("int32", 0)])
            guarded = tirx.SeqStmt([test, tirx.IfThenElse(_load(running), guarded, None)])
        return tirx.SeqStmt([tirx.AllocBuffer(running), _store(running, True), tirx.While(_load(running), guarded)])

    # -- registers -------------------------------------------------------------------------------------------------------

    def _indexes_registers(self, loop: Any) -> bool:
        found = False

        def visit(node: Any) -> None:
            nonlocal found
            if isinstance(node, (tirx.BufferLoad, tirx.BufferStore)) and node.buffer.data in self._registers:
                found = found or _uses(node.indices[0], loop.loop_var)
            elif isinstance(node, tirx.Call) and getattr(node.op, "name", "") == "tirx.tvm_access_ptr" and node.args[1] in self._registers:
                found = found or _uses(node.args[2], loop.loop_var)

        tirx.stmt_functor.post_order_visit(loop.body, visit)
        return found

    def _expanded(self, loop: Any) -> Any:
        low, extent = constant_index(loop.min), constant_index(loop.extent)
        if low is None or extent is None or not 0 < extent <= LARGEST_EXPANSION:
            return loop  # the index is reported where it is used
        rounds = []
        for number in range(low, low + extent):
            value = tirx.IntImm(str(loop.loop_var.dtype), number)
            rounds.append(self._rewrite(tirx.stmt_functor.substitute(loop.body, {loop.loop_var: value})))
        return rounds[0] if len(rounds) == 1 else tirx.SeqStmt(rounds)


def normalise_loops(body: Any, register_variables: Iterable[Any]) -> Normalised:
    """Rewrite the loops of a device function body."""
    return Normalised(body, register_variables)


def constant_index(expression: Any) -> int | None:
    """Value of an index expression without variables."""
    if not isinstance(expression, tirx.IntImm):
        expression = Analyzer().simplify(expression)
    return int(expression) if isinstance(expression, tirx.IntImm) else None


def _guard(stmt: Any, running: Any) -> Any:
    """``stmt`` with breaks turned into ``running = False`` and what follows them guarded."""
    if isinstance(stmt, tirx.SeqStmt):
        parts = list(stmt.seq)
        for position, part in enumerate(parts):
            if _breaks(part):
                rest = parts[position + 1 :]
                done = [*parts[:position], _guard(part, running)]
                if rest:
                    after = rest[0] if len(rest) == 1 else tirx.SeqStmt(rest)
                    done.append(tirx.IfThenElse(_load(running), _guard(after, running), None))
                return done[0] if len(done) == 1 else tirx.SeqStmt(done)
        return stmt
    if _is_break(stmt):
        return _store(running, False)
    if isinstance(stmt, (tirx.For, tirx.While)):
        return stmt  # a break inside belongs to that loop
    return _map_children(stmt, lambda inner: _guard(inner, running))


def _breaks(stmt: Any) -> bool:
    """Whether a statement may leave the loop it stands in."""
    if isinstance(stmt, tirx.SeqStmt):
        return any(_breaks(part) for part in stmt.seq)
    if isinstance(stmt, tirx.IfThenElse):
        return _breaks(stmt.then_case) or (stmt.else_case is not None and _breaks(stmt.else_case))
    if isinstance(stmt, (tirx.AttrStmt, tirx.SBlock)):
        return _breaks(stmt.body)
    return _is_break(stmt)


def _is_break(stmt: Any) -> bool:
    return isinstance(stmt, tirx.Evaluate) and isinstance(stmt.value, tirx.Call) and getattr(stmt.value.op, "name", "") == _BREAK


def _map_children(stmt: Any, change: Callable[[Any], Any]) -> Any:
    """``stmt`` with its inner statements changed; the same object if none changes."""
    if isinstance(stmt, tirx.SeqStmt):
        parts = list(stmt.seq)
        changed = [change(part) for part in parts]
        same = all(new.same_as(old) for new, old in zip(changed, parts, strict=True))
        return stmt if same else tirx.SeqStmt(changed)
    if isinstance(stmt, tirx.IfThenElse):
        then_case = change(stmt.then_case)
        else_case = change(stmt.else_case) if stmt.else_case is not None else None
        same = then_case.same_as(stmt.then_case) and (else_case is None or else_case.same_as(stmt.else_case))
        return stmt if same else tirx.IfThenElse(stmt.condition, then_case, else_case)
    if isinstance(stmt, (tirx.AttrStmt, tirx.SBlock, tirx.For, tirx.While)):
        body = change(stmt.body)
        return stmt if body.same_as(stmt.body) else _with_body(stmt, body)
    return stmt


def _with_body(stmt: Any, body: Any) -> Any:
    if isinstance(stmt, tirx.AttrStmt):
        return tirx.AttrStmt(stmt.node, stmt.attr_key, stmt.value, body)
    if isinstance(stmt, tirx.While):
        return tirx.While(stmt.condition, body)
    if isinstance(stmt, tirx.For):
        return tirx.For(stmt.loop_var, stmt.min, stmt.extent, stmt.kind, body, stmt.thread_binding, stmt.annotations, stmt.step)
    return tirx.SBlock(
        stmt.iter_vars,
        stmt.reads,
        stmt.writes,
        stmt.name_hint,
        body,
        stmt.init,
        stmt.alloc_buffers,
        stmt.match_buffers,
        stmt.annotations,
    )


def _load(running: Any) -> Any:
    return tirx.BufferLoad(running, [tirx.IntImm("int32", 0)])


def _store(running: Any, value: bool) -> Any:
    return tirx.BufferStore(running, tirx.const(value, "bool"), [tirx.IntImm("int32", 0)])


def _uses(expression: Any, variable: Any) -> bool:
    found = False

    def visit(node: Any) -> None:
        nonlocal found
        found = found or (isinstance(node, tirx.Var) and node.same_as(variable))

    tirx.stmt_functor.post_order_visit(expression, visit)
    return found
