"""Sizes and limits of the A5 that the code generator checks against."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CROSS_CORE_EVENTS",
    "EVENTS",
    "INTRA_BLOCK_EVENTS",
    "MAX_THREADS",
    "MEMORIES",
    "TOKENS",
    "UB_BYTES",
    "UB_KEPT",
    "VECTOR_CORES",
    "WARP",
    "Memory",
    "memory_name",
]

UB_KEPT = 8 * 1024
"""Bytes at the top of UB that vector function calls and the runtime keep."""

UB_BYTES = 256 * 1024 - UB_KEPT
"""UB a kernel may use."""

MAX_THREADS = 2048
"""Threads of one SIMT vector function."""

WARP = 32
"""Threads whose registers a shuffle reaches."""

EVENTS = 8
"""Event ids of each pair of pipes."""

CROSS_CORE_EVENTS = 16
"""Event ids between cores."""

VECTOR_CORES = 2
"""Vector cores beside one cube core."""

INTRA_BLOCK_EVENTS = VECTOR_CORES * CROSS_CORE_EVENTS
"""Event ids between the cube core and its vector cores: those of the second vector core follow those of the first."""

TOKENS = 32
"""Buffer tokens of a core."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory of a core.

    Attributes:
        name: what the documentation calls it.
        space: PTODSL's name of its pointers.
        size: bytes a kernel may use.
        alignment: bytes a buffer in it starts at a multiple of.
        kept: bytes it has that a kernel may not use.
        keeper: what for.
    """

    name: str
    space: str
    size: int
    alignment: int
    kept: int = 0
    keeper: str = ""


MEMORIES = {
    memory.space: memory
    for memory in (
        Memory("UB", "ub", UB_BYTES, 32, UB_KEPT, "for calls of vector functions and the runtime"),
        Memory("L1", "mat", 512 * 1024, 32),
        Memory("L0A", "left", 64 * 1024, 512),
        Memory("L0B", "right", 64 * 1024, 512),
        Memory("L0C", "acc", 256 * 1024, 1024),
    )
}
"""Memories with buffers, by the space of their pointers."""


def memory_name(space: str) -> str:
    """What the documentation calls the memory of a pointer's space."""
    return MEMORIES[space].name if space in MEMORIES else "GM" if space == "gm" else f"a {space}"
