"""Operations that update a register in place. TIR names the register by an access pointer into a register array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx

from ..analysis.liveness import Slot, register_index
from ..emit import Expressions, call
from ..registry import OpRule, op
from ..types import DTYPES, I32, Type, register_type
from ..values import Value
from ..visitor import Visitor
from .memory import storage_of
from .simd_arith import LANE_TYPES, check_lanes, lane_scalar

_MODES = {"mode": ("MODE_ZEROING", "MODE_MERGING")}


@op("tl.simd.vmula", "tl.simd.vmadd", arity=5, regions="simd", literals=_MODES, dtypes=LANE_TYPES, emits=("vmula", "vmadd", "vsel"))
def multiply_add(v: Visitor, node: Any, destination: Any, a: Any, b: Any, m: Any, mode: Any) -> None:
    """``vmula``: d + a * b; ``vmadd``: d * a + b; one rounding."""
    slot, old = register_operand(v, destination, node)
    left, right = v.expr(a), v.expr(b)
    name = str(node.op.name).rpartition(".")[2]
    check_lanes(v, name, old.type)
    _one_type(v, name, old, left, right)
    mask = v.mask(m, old.dtype.bits)
    _update(v, slot, old, mask, mode, lambda e: call(f"pto.{name}", *e), (old, left, right, mask), name)


@op("tl.simd.vaxpy", arity=5, regions="simd", literals=_MODES, dtypes=LANE_TYPES, emits=("vaxpy", "vsel"))
def vaxpy(v: Visitor, node: Any, destination: Any, a: Any, scalar: Any, m: Any, mode: Any) -> None:
    """d + a * scalar, one rounding."""
    slot, old = register_operand(v, destination, node)
    value = v.expr(a)
    check_lanes(v, "vaxpy", old.type)
    _one_type(v, "vaxpy", old, value)
    factor = v.arith.typed(lane_scalar(v, scalar, old.type))
    mask = v.mask(m, old.dtype.bits)
    _update(v, slot, old, mask, mode, lambda e: call("pto.vaxpy", *e), (factor, value, old, mask), "vaxpy")


@op("tl.simd.chistv2", "tl.simd.dhistv2", arity=4, regions="simd", literals={"half": (0, 1)}, dtypes=("ui8",),
    emits=("chistv2", "dhistv2", "const"))  # fmt: skip
def histogram(v: Visitor, node: Any, destination: Any, values: Any, m: Any, half: Any) -> None:
    """Counts of byte values 0 to 127 (half 0) or 128 to 255 (half 1), added to 128 16-bit counters; ``c``: of all values up to that."""
    name = str(node.op.name).rpartition(".")[2]
    slot, old = register_operand(v, destination, node)
    source = v.expr(values)
    number = int(half)
    if str(old.type) != "vreg(128 x ui16)" or str(source.type) != "vreg(256 x ui8)":
        v.unsupported(f"{name} of {source.type} into {old.type}", "count uint8 lanes into a uint16 register")
    if v.surface.lookup(f"pto.{name}") is None:
        v.unsupported(f"PTODSL {v.surface.name} has no {name}", "compile for the 2026-09 surface")
    operands = (old, source, v.mask(m, 8), v.arith.typed(v.b.literal(number, I32)))
    v.slots[slot] = v.b.pure(name, lambda e: call(f"pto.{name}", *e), operands, old.type, hint="counts", pinned=True, weight=16)


def merge(v: Visitor, node: Any, rule: OpRule, arguments: Sequence[Any]) -> None:
    """The ``MODE_MERGING`` form of an operation: lanes that are not active keep what the destination register held."""
    assert rule.merges is not None
    if not _is_pointer(arguments[0]):
        v.unsupported(
            f"MODE_MERGING of {rule.name} without a destination register", "assign the result to a T.simd.alloc_var, or use T.simd.vsel"
        )
    own = [*arguments[1:-1], tirx.StringImm("MODE_ZEROING")]
    slot, old = register_operand(v, arguments[0], node)
    source = v.storage[slot[0]].element
    plain = tirx.call_intrin(source, node.op, *own, annotations=dict(node.annotations or {}) or None)
    result = v.expr(plain)
    if result.type != old.type:
        v.unsupported(f"{rule.name} merges {result.type} into {old.type}", "use a destination register of the result's type")
    v.slots[slot] = keep_inactive(v, result, old, v.mask(own[rule.merges], old.dtype.bits))


def keep_inactive(v: Visitor, value: Value, old: Value, mask: Value) -> Value:
    """``value`` in active lanes, ``old`` in the others; registers that ``vsel`` does not take are chosen as bits."""
    if value.dtype.category == "storage":
        from .simd_arith import bitcast

        bits = Type("register", DTYPES["uint8"], value.type.lanes)
        chosen = keep_inactive(v, bitcast(v, value, bits), bitcast(v, old, bits), mask)
        return bitcast(v, chosen, value.type)
    return v.b.pure("vsel", lambda e: call("pto.vsel", *e), (value, old, mask), value.type, hint="merged", pinned=True, weight=10)


def register_operand(v: Visitor, pointer: Any, node: Any) -> tuple[Slot, Value]:
    """Register a destination pointer names, and its value."""
    name = str(node.op.name)
    if not _is_pointer(pointer):
        v.unsupported(f"the destination of {name} must be an access pointer to a register", "use T.simd.alloc_local or T.simd.alloc_var")
    storage = storage_of(v, pointer.args[1])
    if storage.kind != "slot" or register_type(storage.element) is None:
        v.unsupported(f"the destination of {name}, {storage.name}, is no register", "use T.simd.alloc_local or T.simd.alloc_var")
    number = register_index(pointer)
    if number < 0:
        v.unsupported(f"{name} updates register {pointer.args[2]} of {storage.name}", "index registers by constants or unrolled loops")
    slot = (pointer.args[1], number)
    return slot, v.read_slot(slot)


def _is_pointer(node: Any) -> bool:
    return isinstance(node, tirx.Call) and str(getattr(node.op, "name", "")) == "tirx.tvm_access_ptr"


def _one_type(v: Visitor, name: str, old: Value, *operands: Value) -> None:
    for operand in operands:
        if operand.type != old.type:
            v.unsupported(f"{name} of {operand.type} into {old.type}", "bring all registers to one element type")


def _update(
    v: Visitor,
    slot: Slot,
    old: Value,
    mask: Value,
    mode: Any,
    build: Callable[[Expressions], Any],
    operands: tuple[Value, ...],
    name: str,
) -> None:
    result = v.b.pure(name, build, operands, old.type, hint=str(slot[0].name), pinned=True, weight=10)
    v.slots[slot] = keep_inactive(v, result, old, mask) if mode.value == "MODE_MERGING" else result
