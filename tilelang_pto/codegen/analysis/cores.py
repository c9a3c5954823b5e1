"""Which cores a kernel runs on: a cube core, vector cores, or a cube core with its vector cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tvm import tirx

from ..registry import OP_RULES

__all__ = ["Cores", "cores_of"]


@dataclass(frozen=True, slots=True)
class Cores:
    """Cores of one kernel.

    Attributes:
        kind: what a launch starts; a mixed block is one cube core and its vector cores.
        vectors: vector cores beside the cube core that run the vector code (mixed kernels).
    """

    kind: Literal["vector", "cube", "mixed"]
    vectors: int = 0


def cores_of(body: Any) -> Cores:
    """Cores of a kernel: by its ``CUBE`` and ``VECTOR`` blocks, and if it has neither by the operations in it."""
    blocks: dict[str, Any] = {}
    used: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, tirx.SBlock):
            blocks.setdefault(str(node.name_hint), node)
        elif isinstance(node, tirx.Call):
            rule = OP_RULES.get(str(getattr(node.op, "name", "")))
            if rule is not None and rule.core is not None:
                used.add(rule.core)

    tirx.stmt_functor.post_order_visit(body, visit)
    if "CUBE" in blocks and "VECTOR" in blocks:
        count = (blocks["VECTOR"].annotations or {}).get("vector_count", 2)
        return Cores("mixed", int(count))
    if "CUBE" in blocks or ("VECTOR" not in blocks and "cube" in used):
        return Cores("cube")
    return Cores("vector")
