"""Which mutable variables a loop must carry and a branch must merge.

TIR keeps mutable values in one-element ``local.var`` buffers and in arrays of vector registers; PTODSL wants SSA values with
explicit carries. This analysis walks a kernel backwards once and records, for every loop and conditional, the slots
(buffer variable, constant index) that are written inside and still needed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm import tirx

from .loops import constant_index

__all__ = ["Liveness", "Slot", "register_index"]

Slot = tuple[Any, int]


class Liveness:
    """Carried and merged slots of one kernel body.

    Args:
        body: statement to analyse.
        slot_variables: data variables of the buffers kept as SSA values.
    """

    def __init__(self, body: Any, slot_variables: Iterable[Any]) -> None:
        self._variables = set(slot_variables)
        self._carried: dict[Any, list[Slot]] = {}
        self._merged: dict[Any, list[Slot]] = {}
        self._reads: dict[Any, frozenset[Slot]] = {}
        self._behind_sections: frozenset[Slot] | None = None
        if self._variables:
            self._live(body, frozenset())

    def carried(self, loop: Any) -> list[Slot]:
        """Slots a loop has to carry, in a stable order."""
        return self._carried.get(loop, [])

    def merged(self, branch: Any) -> list[Slot]:
        """Slots a conditional has to merge (of a block: slots that are needed after it), in a stable order."""
        return self._merged.get(branch, [])

    # -- expressions -----------------------------------------------------------------------------------------------------

    def _uses(self, expression: Any) -> frozenset[Slot]:
        found = self._reads.get(expression)
        if found is None:
            slots: set[Slot] = set()

            def visit(node: Any) -> None:
                if isinstance(node, tirx.BufferLoad) and node.buffer.data in self._variables:
                    slots.add(_slot(node))
                elif (
                    isinstance(node, tirx.Call)
                    and getattr(node.op, "name", "") == "tirx.tvm_access_ptr"
                    and node.args[1] in self._variables
                ):
                    slots.add((node.args[1], register_index(node)))

            tirx.stmt_functor.post_order_visit(expression, visit)
            found = self._reads[expression] = frozenset(slots)
        return found

    # -- statements, backwards -------------------------------------------------------------------------------------------

    def _live(self, stmt: Any, after: frozenset[Slot]) -> frozenset[Slot]:
        if isinstance(stmt, tirx.SeqStmt):
            for inner in reversed(list(stmt.seq)):
                after = self._live(inner, after)
            return after
        if isinstance(stmt, tirx.BufferStore):
            if stmt.buffer.data in self._variables:
                after = after - {_slot(stmt)}
            uses = self._uses(stmt.value)
            for index in stmt.indices:
                uses |= self._uses(index)
            return after | uses
        if isinstance(stmt, (tirx.Evaluate, tirx.Bind)):
            return after | self._uses(stmt.value)
        if isinstance(stmt, tirx.AllocBuffer):
            initial = (stmt.annotations or {}).get("tl.local_var_init")
            uses = self._uses(initial) if initial is not None else frozenset()
            return frozenset(slot for slot in after if not slot[0].same_as(stmt.buffer.data)) | uses
        if isinstance(stmt, tirx.For):
            bounds = self._uses(stmt.min) | self._uses(stmt.extent)
            at_start = self._fixpoint(stmt.body, after)
            self._record(self._carried, stmt, _written(stmt.body, self._variables), after | at_start)
            return after | at_start | bounds
        if isinstance(stmt, tirx.While):
            condition = self._uses(stmt.condition)
            at_start = self._fixpoint(stmt.body, after | condition)
            self._record(self._carried, stmt, _written(stmt.body, self._variables), after | at_start | condition)
            return after | at_start | condition
        if isinstance(stmt, tirx.IfThenElse):
            before = self._live(stmt.then_case, after)
            before |= self._live(stmt.else_case, after) if stmt.else_case is not None else after
            self._record(self._merged, stmt, _written(stmt, self._variables), after)
            return before | self._uses(stmt.condition)
        if isinstance(stmt, tirx.AttrStmt):
            return self._live(stmt.body, after) | self._uses(stmt.value)
        if isinstance(stmt, tirx.SBlock) and stmt.name_hint in ("CUBE", "VECTOR"):
            # Each core has its own copies: what one writes, the other does not see.
            if self._behind_sections is None:
                self._behind_sections = after
            self._record(self._merged, stmt, _written(stmt.body, self._variables), self._behind_sections)
            return after | self._live(stmt.body, self._behind_sections)
        if isinstance(stmt, tirx.SBlock):
            self._record(self._merged, stmt, _written(stmt.body, self._variables), after)
            return self._live(stmt.body, after)
        return after

    def _fixpoint(self, body: Any, after: frozenset[Slot]) -> frozenset[Slot]:
        at_start: frozenset[Slot] = frozenset()
        while True:
            grown = at_start | self._live(body, after | at_start)
            if grown == at_start:
                return at_start
            at_start = grown

    def _record(self, table: dict[Any, list[Slot]], stmt: Any, written: list[Slot], needed: frozenset[Slot]) -> None:
        # TVM shares statements: the same object may occur in several places, and what any of them needs counts.
        known = table.get(stmt, [])
        table[stmt] = [slot for slot in written if slot in needed or slot in known]


def _slot(access: Any) -> Slot:
    number = constant_index(access.indices[0])
    return access.buffer.data, -1 if number is None else number


def register_index(pointer: Any) -> int:
    """Register a ``tvm_access_ptr`` into a register array points to (its offset counts elements)."""
    offset, extent = constant_index(pointer.args[2]), constant_index(pointer.args[3])
    return offset // extent if offset is not None and extent else -1


def _written(stmt: Any, variables: set[Any]) -> list[Slot]:
    """Slots stored anywhere in ``stmt``, in order of appearance."""
    slots: dict[Slot, None] = {}

    def visit(node: Any) -> None:
        if isinstance(node, tirx.BufferStore) and node.buffer.data in variables:
            slots.setdefault(_slot(node))
        elif isinstance(node, tirx.Call) and getattr(node.op, "name", "") == "tirx.tvm_access_ptr" and node.args[1] in variables:
            slots.setdefault((node.args[1], register_index(node)))

    tirx.stmt_functor.post_order_visit(stmt, visit)
    return list(slots)
