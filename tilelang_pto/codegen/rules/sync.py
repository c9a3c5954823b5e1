"""Synchronisation inside a core: flags between pipes, barriers, barriers of threads."""

from __future__ import annotations

from typing import Any

from ..caps import CROSS_CORE_EVENTS, EVENTS, INTRA_BLOCK_EVENTS, TOKENS
from ..emit import call, constant
from ..registry import CONSTANT, TEXT, op
from ..types import I32, INDEX
from ..visitor import Core, Visitor

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
_CORE_OF_PIPE: dict[str, Core] = {"V": "vector", "MTE3": "vector", "M": "cube", "MTE1": "cube", "FIX": "cube"}
MEMORY_BARRIERS = (
    "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST",
    "SV_ALL", "ST_VLD", "LD_VST", "ST_VST", "SS_ALL", "ST_LD", "LD_ST", "ST_ST",
)  # fmt: skip
"""Pairs of accesses a barrier inside a vector function can order."""


def _pipe(v: Visitor, pipe: Any, *also: str) -> str:
    """Name of a pipe argument without its prefix; ``also`` are words that stand for several pipes."""
    which = v.string(pipe, "the pipe").removeprefix("PIPE_")
    if which not in (*PIPES, *also):
        v.unsupported(f"pipe {which}", " or ".join([f"name one of {', '.join(PIPES)}", *also]))
    return which


@op("tl.ascend_set_flag", arity=2, regions="scalar", literals={"event": TEXT}, emits="set_flag")
def ascend_set_flag(v: Visitor, node: Any, event: Any, number: Any) -> None:
    _flag(v, "pto.set_flag", event, number)


@op("tl.ascend_wait_flag", arity=2, regions="scalar", literals={"event": TEXT}, emits="wait_flag")
def ascend_wait_flag(v: Visitor, node: Any, event: Any, number: Any) -> None:
    _flag(v, "pto.wait_flag", event, number)


def _flag(v: Visitor, function: str, event: Any, number: Any) -> None:
    """Flag operation; ``event`` is ``SRC_DST``."""
    source, _, destination = v.string(event, "the event").partition("_")
    if source not in PIPES or destination not in PIPES or source == destination:
        v.unsupported(f"event {source}_{destination}", f"name two different pipes of {', '.join(PIPES)}")
    for pipe in (source, destination):
        if pipe in _CORE_OF_PIPE and v.core is not None and v.core != _CORE_OF_PIPE[pipe]:
            v.unsupported(f"event {source}_{destination} on a {v.core} core", f"a {v.core} core has no pipe {pipe}")
    value = v.expr(number)
    if value.low >= EVENTS or value.high < 0:
        v.unsupported(f"event id {value.low} of {source}_{destination}", f"event ids are 0 to {EVENTS - 1}: use fewer buffer versions")
    v.b.effect(lambda e: call(function, constant(source), constant(destination), event_id=e[0]), [value])


@op("tl.ascend_pipe_barrier", arity=1, regions="scalar", literals={"pipe": TEXT}, emits="pipe_barrier")
def ascend_pipe_barrier(v: Visitor, node: Any, pipe: Any) -> None:
    """Drain a pipe. Vector functions are ordered by hardware, so a barrier of V alone is not needed; S stands for all."""
    which = _pipe(v, pipe, "ALL")
    if which == "V":
        return
    if which in _CORE_OF_PIPE and v.core is not None and v.core != _CORE_OF_PIPE[which]:
        v.unsupported(f"a barrier of pipe {which} on a {v.core} core", f"a {v.core} core has no pipe {which}")
    if which == "S":
        which = "ALL"
    v.b.effect(lambda _: call("pto.pipe_barrier", constant(which)))


@op("tl.ascend_cross_core_set_flag", arity=3, regions="scalar", literals={"mode": CONSTANT, "pipe": TEXT},
    emits=("set_cross_block", "set_intra_block"))  # fmt: skip
def ascend_cross_core_set_flag(v: Visitor, node: Any, mode: Any, pipe: Any, number: Any) -> None:
    _cross_core(v, "set", mode, pipe, number)


@op("tl.ascend_cross_core_wait_flag", arity=3, regions="scalar", literals={"mode": CONSTANT, "pipe": TEXT},
    emits=("wait_cross_block", "wait_intra_block"))  # fmt: skip
def ascend_cross_core_wait_flag(v: Visitor, node: Any, mode: Any, pipe: Any, number: Any) -> None:
    _cross_core(v, "wait", mode, pipe, number)


ALL_CORES, ONE_PAIR = 0, 4
"""Modes: all cores of one kind; the cube core and one of its vector cores."""

CROSS_CORE_PIPES = ("FIX", "MTE1", "MTE2", "MTE3", "V")


def _cross_core(v: Visitor, verb: str, mode: Any, pipe: Any, number: Any) -> None:
    """Flags between cores. The cube core sees the ids of its second vector core behind those of the first."""
    value, which_mode = v.expr(number), v.integer(mode, "the mode")
    which = _pipe(v, pipe)
    if which not in CROSS_CORE_PIPES:
        v.unsupported(f"a cross-core flag of pipe {which}", f"use one of {', '.join(CROSS_CORE_PIPES)}")
    if which_mode == ALL_CORES:
        function, count = "cross_block", CROSS_CORE_EVENTS
    elif which_mode == ONE_PAIR:
        function, count = "intra_block", INTRA_BLOCK_EVENTS if v.core == "cube" else CROSS_CORE_EVENTS
        if v.cores.kind != "mixed":
            v.unsupported(f"a flag between cube and vector core in a {v.cores.kind} kernel", "write the code of the other core too")
    else:
        v.unsupported(
            f"cross-core flags of mode {which_mode}", f"PTODSL has modes {ALL_CORES} (all cores) and {ONE_PAIR} (cube core and vector core)"
        )
    if value.low >= count or value.high < 0:
        v.unsupported(f"cross-core event id {value.low}", f"event ids are 0 to {count - 1}")
    number_type = INDEX if v.surface.name == "2026-08" else I32  # what the surface takes at run time
    v.b.effect(lambda e: call(f"pto.{verb}_{function}", constant(which), e[0]), [v.arith.cast(value, number_type)])


@op("tl.ascend_get_buf", arity=3, regions="scalar", literals={"pipe": TEXT, "mode": (0, 1)}, emits="get_buf")
def ascend_get_buf(v: Visitor, node: Any, pipe: Any, number: Any, mode: Any) -> None:
    _token(v, "pto.get_buf", pipe, number, mode)


@op("tl.ascend_rls_buf", arity=3, regions="scalar", literals={"pipe": TEXT, "mode": (0, 1)}, emits="rls_buf")
def ascend_rls_buf(v: Visitor, node: Any, pipe: Any, number: Any, mode: Any) -> None:
    _token(v, "pto.rls_buf", pipe, number, mode)


def _token(v: Visitor, function: str, pipe: Any, number: Any, mode: Any) -> None:
    """Buffer tokens."""
    value, how = v.expr(number), int(mode)
    which = _pipe(v, pipe)
    if value.low >= TOKENS or value.high < 0:
        v.unsupported(f"buffer id {value.low}", f"buffer ids are 0 to {TOKENS - 1}")
    v.b.effect(lambda e: call(function, constant(which), e[0], constant(how)), [value])


@op("tl.ascend_threadfence", arity=0, regions="simt", emits="threadfence")
def ascend_threadfence(v: Visitor, node: Any) -> None:
    """Memory fence of a thread."""
    v.b.effect(lambda _: call("pto.threadfence"))


@op("tirx.tvm_storage_sync", arity=(1, 2, 3), regions=("scalar", "simt"), literals={"scope": ("shared", "shared.dyn", "warp")},
    emits=("syncthreads", "pipe_barrier"))  # fmt: skip
def tvm_storage_sync(v: Visitor, node: Any, scope: Any, *_: Any) -> None:
    """Barrier of the threads of a SIMT vector function; outside of one, of all pipes."""
    if scope.value == "warp":
        return
    if v.region == "simt":
        v.b.effect(lambda _: call("pto.syncthreads"))
    else:
        v.b.effect(lambda _: call("pto.pipe_barrier", constant("ALL")))


@op("tl.simd.mem_bar", arity=1, regions="simd", literals={"kind": MEMORY_BARRIERS}, emits="mem_bar")
def mem_bar(v: Visitor, node: Any, kind: Any) -> None:
    spelled = str(kind.value)
    first, _, second = spelled.partition("_")
    kinds = {"VST": (True,), "VLD": (False,)}
    barrier = v.b.effect(lambda _: call("pto.mem_bar", constant(spelled)))
    both = (True, False)
    barrier.orders = (both, both) if spelled == "VV_ALL" else (kinds.get(first, ()), kinds.get(second, ()))
