"""Printing and stopping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar as scalars
from tilelang_pto.sim.standin.registry import NOT_SIMD, entry

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder


@entry("print", places=NOT_SIMD)
def print_(rec: Recorder, fmt: Any, scalar: Any) -> None:
    """``pto.print(format, scalar)``."""
    if not isinstance(fmt, str):
        rec.refuse("the format of pto.print is not a string", 'pto.print("x = %d", x)')
    rec.emit("print", (scalars.as_scalar(rec, "the value of pto.print", scalar),), (), {"fmt": fmt})


@entry("trap", places=NOT_SIMD)
def trap(rec: Recorder) -> None:
    """``pto.trap()``: stop the kernel with an error, whose message is the comment in front of the call."""
    message = rec.comment_above(rec.line())
    rec.emit("trap", (), (), {"message": message} if message else None)
