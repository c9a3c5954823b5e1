"""Synchronisation inside a core: flags between pipes, barriers, barriers of threads."""

from __future__ import annotations

from typing import Any

from ..caps import EVENTS
from ..emit import call, constant
from ..registry import op
from ..visitor import Visitor

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
MEMORY_BARRIERS = (
    "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST",
    "SV_ALL", "ST_VLD", "LD_VST", "ST_VST", "SS_ALL", "ST_LD", "LD_ST", "ST_ST",
)  # fmt: skip
"""Pairs of accesses a barrier inside a vector function can order."""


@op("tl.ascend_set_flag", arity=2, regions="scalar", emits="set_flag")
def ascend_set_flag(v: Visitor, node: Any, event: Any, number: Any) -> None:
    _flag(v, "pto.set_flag", event, number)


@op("tl.ascend_wait_flag", arity=2, regions="scalar", emits="wait_flag")
def ascend_wait_flag(v: Visitor, node: Any, event: Any, number: Any) -> None:
    _flag(v, "pto.wait_flag", event, number)


def _flag(v: Visitor, function: str, event: Any, number: Any) -> None:
    """Flag operation; ``event`` is ``SRC_DST``."""
    source, _, destination = v.string(event, "the event").partition("_")
    if source not in PIPES or destination not in PIPES or source == destination:
        v.unsupported(f"event {source}_{destination}", f"name two different pipes of {', '.join(PIPES)}")
    value = v.expr(number)
    if value.low >= EVENTS or value.high < 0:
        v.unsupported(f"event id {value.low} of {source}_{destination}", f"event ids are 0 to {EVENTS - 1}: use fewer buffer versions")
    v.b.effect(lambda e: call(function, constant(source), constant(destination), event_id=e[0]), [value])


@op("tl.ascend_pipe_barrier", arity=1, regions="scalar", emits="pipe_barrier")
def ascend_pipe_barrier(v: Visitor, node: Any, pipe: Any) -> None:
    """Drain a pipe. Vector functions are ordered by hardware, so a barrier of V alone is not needed; S stands for all."""
    which = v.string(pipe, "the pipe").removeprefix("PIPE_")
    if which == "V":
        return
    if which == "S":
        which = "ALL"
    if which != "ALL" and which not in PIPES:
        v.unsupported(f"pipe {which}", f"name one of {', '.join(PIPES)} or ALL")
    v.b.effect(lambda _: call("pto.pipe_barrier", constant(which)))


@op("tirx.tvm_storage_sync", arity=(1, 2, 3), regions=("scalar", "simt"), emits=("syncthreads", "pipe_barrier"))
def tvm_storage_sync(v: Visitor, node: Any, scope: Any, *_: Any) -> None:
    """Barrier of the threads of a SIMT vector function; outside of one, of all pipes."""
    which = v.string(scope, "the scope")
    if which == "warp":
        return
    if which not in ("shared", "shared.dyn"):
        v.unsupported(f"barrier over scope {which}")
    if v.region == "simt":
        v.b.effect(lambda _: call("pto.syncthreads"))
    else:
        v.b.effect(lambda _: call("pto.pipe_barrier", constant("ALL")))


@op("tl.simd.mem_bar", arity=1, regions="simd", emits="mem_bar")
def mem_bar(v: Visitor, node: Any, kind: Any) -> None:
    which = v.string(kind, "the barrier kind")
    if which not in MEMORY_BARRIERS:
        v.unsupported(f"memory barrier {which}", f"use one of {', '.join(MEMORY_BARRIERS)}")
    v.b.effect(lambda _: call("pto.mem_bar", constant(which)))
