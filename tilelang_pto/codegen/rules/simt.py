"""Operations of SIMT vector functions beyond plain scalar code: reductions over threads."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..caps import WARP
from ..emit import call
from ..registry import op
from ..types import I32
from ..values import Value
from ..visitor import Visitor
from .control import only_if, repeat_indexed
from .memory import full_pointer, load_from_ub, store_to_ub
from .simt_warp import REDUCED, reduce_warp

_TEMPLATE = re.compile(r"tl::AscendAllReduce<tl::(\w+)Op, (\d+), (\d+), (-?\d+)>::run$")
_COMBINED = ("f32", "i32", "ui32", "i64", "f16")
Combine = Callable[[Value, Value], Value]


@op(
    "extern:tl::AscendAllReduce",
    arity=(1, 2),
    regions="simt",
    dtypes=_COMBINED,
    emits=("shuffle_bfly", "redux_add", "syncthreads", "store", "load", "for_"),
)
def all_reduce(v: Visitor, node: Any, operand: Any, workspace: Any = None) -> Value:
    """Combine one value per thread; every thread gets the result of its class.

    The threads form groups of ``threads``; within a group those with the same number modulo ``scale`` are combined. Values meet in two
    levels: inside a warp by butterfly shuffles or a reduction of the hardware, between warps through the workspace in UB.
    """
    name = v.string(node.args[0], "the name of an external function")
    match = _TEMPLATE.match(name)
    if v.region != "simt" or match is None:
        v.unsupported(f"{name} outside a SIMT vector function or of an unknown form", "reduce inside T.SimtVF")
    kind, threads, scale, offset = match.group(1), int(match.group(2)), int(match.group(3)), int(match.group(4))
    combine = _combiner(v, kind)
    if offset != 0:
        v.unsupported(f"an all-reduce over threads from number {offset} on", "let the reduction start at thread 0")
    if v.threads[1:] != (1, 1) or v.threads[0] % threads:
        v.unsupported(
            f"an all-reduce in groups of {threads} of {v.threads} threads", "use threads in x only, a multiple of the group's size"
        )
    if threads % scale:
        v.unsupported(f"an all-reduce of {threads} threads with scale {scale}", "make the scale a divisor of the number of threads")
    value = v.expr(operand)
    if value.dtype.pto not in _COMBINED:
        v.unsupported(f"an all-reduce of {value.type} values", "reduce in float32, int32 or int64")
    if threads == scale:
        return value
    if _power_of_two(threads) and _power_of_two(scale):
        inside = min(threads, WARP)
        value = _within_warp(v, value, inside, scale, kind)
        if threads <= WARP:
            return value
        return _between_warps(v, value, threads, scale, kind, _workspace(v, workspace, value))
    return _through_memory(v, value, threads, scale, combine, _workspace(v, workspace, value))


def _combiner(v: Visitor, kind: str) -> Combine:
    combiners: dict[str, Combine] = {"Sum": v.arith.add, "Max": v.arith.maximum, "Min": v.arith.minimum}
    combine = combiners.get(kind)
    if combine is None:
        v.unsupported(f"an all-reduce with {kind}", f"use {', '.join(combiners)}")
    return combine


def _within_warp(v: Visitor, value: Value, threads: int, scale: int, kind: str) -> Value:
    """Combine the values of ``threads`` neighbours of a warp.

    Threads whose numbers differ in one bit exchange values, for each bit from ``threads / 2`` down to ``scale``; where a whole warp is
    summed, one instruction does it.
    """
    if kind == "Sum" and (threads, scale) == (WARP, 1) and value.dtype.pto in REDUCED:
        return reduce_warp(v, "add", value)
    combine = _combiner(v, kind)
    distance = threads // 2
    while distance >= scale:
        value = combine(value, _shuffle(v, value, distance))
        distance //= 2
    return value


def _shuffle(v: Visitor, value: Value, distance: int) -> Value:
    """The value of the thread whose number differs in one bit. Shuffles carry signless integers."""
    carrier = I32 if value.dtype.pto == "ui32" else value.type
    return v.arith.cast(_exchange(v, v.arith.cast(value, carrier), distance), value.type)


def _exchange(v: Visitor, value: Value, distance: int) -> Value:
    lane = v.arith.typed(v.arith.number(distance, I32))
    return v.b.pure(
        "shuffle_bfly",
        lambda e: call("pto.shuffle_bfly", *e),
        (v.arith.typed(value), lane),
        value.type,
        hint="other",
        memory="threads",
        pinned=True,
    )


def _between_warps(v: Visitor, value: Value, threads: int, scale: int, kind: str, workspace: Value) -> Value:
    """One value per warp and class goes through UB.

    Then every warp combines them all, each thread starting with one of its class; what does not fit a warp, each thread reads alone.
    """
    combine = _combiner(v, kind)
    if scale > WARP:
        return _through_memory(v, value, threads, scale, combine, workspace)
    warps = threads // WARP
    total = warps * scale
    thread = _thread(v)
    number = v.arith.number
    lane, warp = v.arith.remainder(thread, number(WARP, I32)), v.arith.floor_divide(thread, number(WARP, I32))
    slot = warp if scale == 1 else v.arith.add(v.arith.mul(warp, number(scale, I32)), lane)
    with only_if(v, v.arith.compare("<", lane, number(scale, I32))):
        store_to_ub(v, value, workspace, slot)
    _barrier(v)
    group = v.arith.mul(v.arith.floor_divide(thread, number(threads, I32)), number(total, I32))
    if total > WARP:
        return _collect(v, workspace, v.arith.add(group, v.arith.remainder(thread, number(scale, I32))), warps, scale, combine)
    read = load_from_ub(v, workspace, v.arith.add(group, v.arith.remainder(thread, number(total, I32))))
    _barrier(v)
    return _within_warp(v, read, total, scale, kind)


def _through_memory(v: Visitor, value: Value, threads: int, scale: int, combine: Combine, workspace: Value) -> Value:
    """Any number of threads: all values go through UB."""
    thread = _thread(v)
    number = v.arith.number
    store_to_ub(v, value, workspace, thread)
    _barrier(v)
    within = v.arith.remainder(thread, number(threads, I32))
    first = v.arith.add(v.arith.sub(thread, within), v.arith.remainder(within, number(scale, I32)))
    return _collect(v, workspace, first, threads // scale, scale, combine)


def _collect(v: Visitor, workspace: Value, first: Value, count: int, stride: int, combine: Combine) -> Value:
    """Combine ``count`` values ``stride`` apart; a barrier then frees the workspace."""
    start = load_from_ub(v, workspace, first)

    def step(index: Value, so_far: Value) -> Value:
        where = v.arith.add(first, v.arith.mul(index, v.arith.number(stride, I32)))
        return combine(so_far, load_from_ub(v, workspace, where))

    result = repeat_indexed(v, start, 1, count, step)
    _barrier(v)
    return result


def _workspace(v: Visitor, node: Any, value: Value) -> Value:
    if node is None:
        v.unsupported("an all-reduce over more than a warp without a workspace")
    return full_pointer(v, node, "workspace", value.dtype)


def _thread(v: Visitor) -> Value:
    interval = (0, v.threads[0] - 1)
    return v.b.pure("pto.get_tid_x", lambda _: call("pto.get_tid_x"), (), I32, interval=interval, pinned=True, hint="tx")


def _barrier(v: Visitor) -> None:
    v.b.effect(lambda _: call("pto.syncthreads"))


def _power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
