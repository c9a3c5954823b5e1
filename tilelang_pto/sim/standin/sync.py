"""Flags, barriers, buffer tokens and core set-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.control import require_explicit
from tilelang_pto.sim.standin.registry import KERNEL, SIMT, VECSCOPE, entry
from tilelang_pto.sim.standin.values import SurfaceScalar

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "MTE4", "MTE5", "V2", "FIX", "ALL")
CROSS_PIPES = ("FIX", "MTE1", "MTE2", "MTE3", "V")
BARRIERS = (
    "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST", "SV_ALL", "ST_VLD", "LD_VST", "ST_VST",
    "SS_ALL", "ST_LD", "LD_ST", "ST_ST",
)  # fmt: skip


def _event(rec: Recorder, name: str, value: Any, high: int) -> SurfaceScalar:
    if not isinstance(value, SurfaceScalar):
        scalar.static_int(rec, name, value, 0, high)
    event = scalar.integral(rec, name, value)
    if isinstance(event.known, int) and not 0 <= event.known <= high:
        rec.refuse(f"{name}={event.known} is out of range", f"0 to {high}")
    return event


def _register_flags() -> None:
    for name in ("set_flag", "wait_flag"):

        def flag(rec: Recorder, src: Any, dst: Any, *, event_id: Any = 0, _opcode: str = name) -> None:
            require_explicit(rec, f"pto.{_opcode}")
            source = scalar.token(rec, "src", src, PIPES, "PIPE_")
            destination = scalar.token(rec, "dst", dst, PIPES, "PIPE_")
            if source == destination:
                rec.refuse(f"{_opcode} from pipe {source} to itself", "two different pipes, or pto.pipe_barrier")
            if "ALL" in (source, destination):
                rec.refuse(f"{_opcode} with pipe ALL", "one pipe on each side")
            rec.emit(_opcode, (_event(rec, "event_id", event_id, 7),), (), {"src": source, "dst": destination})

        entry(name, places=KERNEL)(flag)
    for name in ("get_buf", "rls_buf"):

        def buffer(rec: Recorder, pipe: Any, buf_id: Any, mode: Any = 0, _opcode: str = name) -> None:
            require_explicit(rec, f"pto.{_opcode}")
            attributes: dict[str, int | str | float] = {
                "pipe": scalar.token(rec, "pipe", pipe, PIPES, "PIPE_"),
                "mode": scalar.static_int(rec, "mode", mode, 0, 1),
            }
            rec.emit(_opcode, (_event(rec, "buf_id", buf_id, 31),), (), attributes)

        entry(name, places=KERNEL)(buffer)
    for name, largest in (("set_cross_block", 15), ("wait_cross_block", 15), ("set_intra_block", 31), ("wait_intra_block", 31)):

        def between_cores(rec: Recorder, pipe: Any, event_id: Any, _opcode: str = name, _largest: int = largest) -> None:
            attributes: dict[str, int | str | float] = {"pipe": scalar.token(rec, "pipe", pipe, CROSS_PIPES, "PIPE_")}
            wanted = ("index",) if rec.surface == "2026-08" else ("i32", "i64")
            if isinstance(event_id, SurfaceScalar) and event_id.dtype.name not in wanted:
                rec.refuse(f"event_id is a runtime {event_id.dtype.name}", f"a Python int, or a runtime {' or '.join(wanted)}")
            rec.emit(_opcode, (_event(rec, "event_id", event_id, _largest),), (), attributes)

        entry(name, places=KERNEL)(between_cores)
    for name in ("syncthreads", "threadfence", "threadfence_block"):

        def fence(rec: Recorder, _opcode: str = name) -> None:
            rec.emit(_opcode)

        entry(name, places=SIMT)(fence)


_register_flags()


@entry("pipe_barrier", places=KERNEL)
def pipe_barrier(rec: Recorder, pipe: Any) -> None:
    """``pto.pipe_barrier("ALL")``."""
    require_explicit(rec, "pto.pipe_barrier")
    word = scalar.token(rec, "pipe", pipe, PIPES, "PIPE_")
    if word == "S":
        rec.refuse("pipe_barrier of pipe S", "another pipe, or ALL")
    rec.emit("pipe_barrier", (), (), {"pipe": word})


@entry("mem_bar", places=VECSCOPE)
def mem_bar(rec: Recorder, barrier_type: Any) -> None:
    """``pto.mem_bar("VST_VLD")``: order UB accesses inside a vector function."""
    rec.emit("mem_bar", (), (), {"kind": scalar.token(rec, "barrier_type", barrier_type, BARRIERS)})


@entry("init_core", aug=None, opcodes=(), places=KERNEL)
def init_core(rec: Recorder) -> None:
    """``pto.init_core()``: the simulator starts every core in that state, so nothing is recorded."""
    require_explicit(rec, "pto.init_core")
