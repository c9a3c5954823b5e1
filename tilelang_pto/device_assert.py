"""Keeps ``T.device_assert`` alive on the ``pto`` target.

TileLang's frontend drops device asserts in silence when no NPU is present, by a module flag read while a kernel is traced. The simulator
can check them, so the flag becomes an object that is also true while a kernel is traced for ``pto``.
"""

from __future__ import annotations

from typing import Any

__all__ = ["AssertSwitch", "register"]

_FLAG = "_IS_ASCEND_AVAILABLE"


class AssertSwitch:
    """Truth of TileLang's flag: as before, or true while the current target is ``pto``."""

    def __init__(self, available: bool) -> None:
        self.available = available

    def __bool__(self) -> bool:
        return self.available or _tracing_for_pto()


def _tracing_for_pto() -> bool:
    from tilelang import env
    from tvm.target import Target

    from tilelang_pto.target import KEY, is_pto_target

    current = Target.current(allow_none=True)
    if current is not None:
        return is_pto_target(current)
    default: Any = env.get_default_target()
    return isinstance(default, str) and default.strip() == KEY


def register() -> None:
    """Put the switch in place; does nothing when TileLang has no such flag or already has the switch."""
    from tilelang.ascend import debug

    flag = getattr(debug, _FLAG, None)
    if isinstance(flag, bool):
        setattr(debug, _FLAG, AssertSwitch(flag))
