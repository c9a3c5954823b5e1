"""Operations over the 32 threads of a warp: reductions, shuffles, votes, ordering.

Reductions and shuffles carry signless integers; the sign is given where it matters.
"""

from __future__ import annotations

from typing import Any

from ..caps import WARP
from ..emit import call, constant
from ..registry import op
from ..types import BOOL, DTYPES, I32, Type
from ..values import Value
from ..visitor import Visitor

I64, U32 = Type("scalar", DTYPES["int64"]), Type("scalar", DTYPES["uint32"])
REDUCED = ("f16", "f32", "i32", "ui32")
_SHUFFLED = ("f16", "f32", "i32", "ui32", "i64", "ui64")
_GROUPS = {"width": (WARP // 2, WARP)}


def _carried(v: Visitor, value: Value) -> Value:
    """A value in the signless type of its width, which exists at run time."""
    carriers = {"ui32": "int32", "ui64": "int64"}
    carrier = carriers.get(value.dtype.pto)
    return v.arith.typed(v.arith.cast(value, Type("scalar", DTYPES[carrier])) if carrier else value)


def _collective(v: Visitor, function: str, operands: tuple[Value, ...], type: Type, **keywords: Any) -> Value:
    """A call whose result depends on other threads: it stays where it is."""
    key = (function, *sorted(keywords.items()))
    words = {word: constant(value) for word, value in keywords.items()}
    return v.b.pure(key, lambda e: call(function, *e, **words), operands, type, hint=function[4:], memory="threads", pinned=True)


# -- reductions ----------------------------------------------------------------------------------------------------------


@op("tl.warp_reduce_sum", arity=1, regions="simt", dtypes=REDUCED, emits="redux_add")
def warp_reduce_sum(v: Visitor, node: Any, operand: Any) -> Value:
    """Sum over the active threads of a warp, for each of them; the order of float additions is the hardware's."""
    return _reduce(v, "add", operand)


@op("tl.warp_reduce_max", arity=1, regions="simt", dtypes=REDUCED, emits="redux_max")
def warp_reduce_max(v: Visitor, node: Any, operand: Any) -> Value:
    return _reduce(v, "max", operand)


@op("tl.warp_reduce_min", arity=1, regions="simt", dtypes=REDUCED, emits="redux_min")
def warp_reduce_min(v: Visitor, node: Any, operand: Any) -> Value:
    return _reduce(v, "min", operand)


def _reduce(v: Visitor, verb: str, operand: Any) -> Value:
    value = v.expr(operand)
    if value.dtype.pto not in REDUCED:
        v.unsupported(f"a warp reduction of {value.type} values", "reduce float16, float32, int32 or uint32 values")
    return reduce_warp(v, verb, value)


def reduce_warp(v: Visitor, verb: str, value: Value) -> Value:
    """``add``, ``max`` or ``min`` over the active threads of a warp, of a value of a type in ``REDUCED``."""
    keywords = {}
    if verb != "add" and value.dtype.is_integer:
        keywords["signedness"] = "unsigned" if value.dtype.category == "uint" else "signed"
    carried = _carried(v, value)
    return v.arith.cast(_collective(v, f"pto.redux_{verb}", (carried,), carried.type, **keywords), value.type)


# -- shuffles ------------------------------------------------------------------------------------------------------------


@op("tl.shfl_sync", arity=4, regions="simt", literals=_GROUPS, dtypes=_SHUFFLED, emits="shuffle_idx")
def shfl_sync(v: Visitor, node: Any, mask: Any, value: Any, lane: Any, width: Any) -> Value:
    """The value of the thread with a number within its group of ``width``."""
    return _shuffle(v, "idx", mask, value, lane, width)


@op("tl.shfl_xor_sync", arity=4, regions="simt", literals=_GROUPS, dtypes=_SHUFFLED, emits="shuffle_bfly")
def shfl_xor_sync(v: Visitor, node: Any, mask: Any, value: Any, lanes: Any, width: Any) -> Value:
    return _shuffle(v, "bfly", mask, value, lanes, width)


@op("tl.shfl_up_sync", arity=4, regions="simt", literals=_GROUPS, dtypes=_SHUFFLED, emits="shuffle_up")
def shfl_up_sync(v: Visitor, node: Any, mask: Any, value: Any, distance: Any, width: Any) -> Value:
    """The value of a thread with a lower number; the first ones of a group keep their own."""
    return _shuffle(v, "up", mask, value, distance, width)


@op("tl.shfl_down_sync", arity=4, regions="simt", literals=_GROUPS, dtypes=_SHUFFLED, emits="shuffle_down")
def shfl_down_sync(v: Visitor, node: Any, mask: Any, value: Any, distance: Any, width: Any) -> Value:
    return _shuffle(v, "down", mask, value, distance, width)


@op("tirx.tvm_warp_shuffle", arity=5, regions="simt", literals=_GROUPS, dtypes=_SHUFFLED, emits="shuffle_idx")
def tvm_warp_shuffle(v: Visitor, node: Any, mask: Any, value: Any, lane: Any, width: Any, size: Any) -> Value:
    return _shuffle(v, "idx", mask, value, lane, width)


@op("tirx.tvm_warp_shuffle_up", arity=5, regions="simt", literals=_GROUPS, dtypes=_SHUFFLED, emits="shuffle_up")
def tvm_warp_shuffle_up(v: Visitor, node: Any, mask: Any, value: Any, distance: Any, width: Any, size: Any) -> Value:
    return _shuffle(v, "up", mask, value, distance, width)


@op("tirx.tvm_warp_shuffle_down", arity=5, regions="simt", literals=_GROUPS, dtypes=_SHUFFLED, emits="shuffle_down")
def tvm_warp_shuffle_down(v: Visitor, node: Any, mask: Any, value: Any, distance: Any, width: Any, size: Any) -> Value:
    return _shuffle(v, "down", mask, value, distance, width)


def _shuffle(v: Visitor, how: str, mask: Any, operand: Any, place: Any, width: Any) -> Value:
    """The mask names the threads that take part, which are those that come here."""
    group = int(width)
    value = v.expr(operand)
    if value.dtype.pto not in _SHUFFLED:
        v.unsupported(f"a shuffle of {value.type} values", "shuffle 32- or 64-bit integers, float32 or float16 values")
    carried = _carried(v, value)
    where = v.arith.typed(v.arith.cast(v.expr(place), I32))
    return v.arith.cast(_collective(v, f"pto.shuffle_{how}", (carried, where), carried.type, width=group), value.type)


# -- votes ---------------------------------------------------------------------------------------------------------------


@op("tl.ballot", "tl.ballot_sync", arity=(1, 2), regions="simt", emits="vote_ballot")
def ballot(v: Visitor, node: Any, *arguments: Any) -> Value:
    """One bit per thread of the warp for which a condition holds, as an unsigned number; only those of the mask, if there is one."""
    votes = v.arith.cast(_collective(v, "pto.vote_ballot", (_condition(v, arguments[-1]),), I32), U32)
    if len(arguments) == 2:
        mask = v.arith.cast(v.expr(arguments[0]), U32)
        if mask.literal != U32.dtype.maximum:
            votes = v.arith.binary("&", votes, mask)
    return v.arith.cast(votes, v.scalar_type(node.dtype))


@op("tl.activemask", "tirx.tvm_warp_activemask", arity=0, regions="simt", emits="vote_ballot")
def activemask(v: Visitor, node: Any) -> Value:
    """One bit per thread of the warp that comes here."""
    everyone = v.arith.typed(v.b.literal(True, BOOL))
    votes = v.arith.cast(_collective(v, "pto.vote_ballot", (everyone,), I32), U32)
    return v.arith.cast(votes, v.scalar_type(node.dtype))


@op("tl.any_sync", arity=2, regions="simt", emits="vote_any")
def any_sync(v: Visitor, node: Any, mask: Any, condition: Any) -> Value:
    return _vote(v, node, "any", mask, condition)


@op("tl.all_sync", arity=2, regions="simt", emits="vote_all")
def all_sync(v: Visitor, node: Any, mask: Any, condition: Any) -> Value:
    return _vote(v, node, "all", mask, condition)


def _vote(v: Visitor, node: Any, how: str, mask: Any, condition: Any) -> Value:
    """Whether a condition holds for any or all active threads of the warp."""
    everyone = v.expr(mask)
    if everyone.literal not in (0xFFFFFFFF, -1):
        v.unsupported("a vote of some threads of a warp", "leave the mask out: the threads that come here vote")
    vote = _collective(v, f"pto.vote_{how}", (_condition(v, condition),), BOOL)
    return v.arith.cast(vote, v.scalar_type(node.dtype))


def _condition(v: Visitor, node: Any) -> Value:
    return v.arith.typed(v.arith.cast(v.expr(node), BOOL))


# -- order ---------------------------------------------------------------------------------------------------------------


@op("tl.sync_warp", arity=(0, 1), regions="simt", emits="threadfence_block")
def sync_warp(v: Visitor, node: Any, mask: Any = None) -> None:
    """Threads of a warp run in step; what has to be ordered is their memory, and that for all of them, whatever the mask."""
    v.b.effect(lambda _: call("pto.threadfence_block"))


@op("tl.get_lane_idx", arity=(0, 1), regions="simt", literals={"size": (WARP,)}, emits="get_laneid")
def get_lane_idx(v: Visitor, node: Any, size: Any = None) -> Value:
    """Number of the thread in its warp."""
    lane = v.b.pure("get_laneid", lambda _: call("pto.get_laneid"), (), I32, interval=(0, WARP - 1), hint="lane", pinned=True)
    return v.arith.cast(lane, v.scalar_type(node.dtype))
