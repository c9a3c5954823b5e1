"""Operations of SIMT vector functions beyond plain scalar code."""

from __future__ import annotations

from typing import Any

from ..registry import op
from ..visitor import Visitor


@op("extern:tl::AscendAllReduce", arity=())
def all_reduce(v: Visitor, node: Any, *_: Any) -> None:
    v.unsupported("reductions over the threads of a SIMT vector function have no rule yet", "reduce in a SIMD vector function")
