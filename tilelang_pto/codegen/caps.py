"""Sizes and limits of the A5 that the code generator checks against."""

from __future__ import annotations

__all__ = ["CROSS_CORE_EVENTS", "EVENTS", "MAX_THREADS", "TOKENS", "UB_BYTES", "WARP"]

UB_BYTES = 248 * 1024
"""UB a kernel may use: 256 KiB less the 8 KiB at the top that vector function calls and the runtime keep."""

MAX_THREADS = 2048
"""Threads of one SIMT vector function."""

WARP = 32
"""Threads whose registers a shuffle reaches."""

EVENTS = 8
"""Event ids of each pair of pipes."""

CROSS_CORE_EVENTS = 16
"""Event ids between cores."""

TOKENS = 32
"""Buffer tokens of a core."""
