"""Compiled kernels of this process, and calls of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import tilelang

import tilelang_pto  # noqa: F401  (registers target="pto")

__all__ = ["TARGETS", "compiled", "default_target", "launch"]

TARGETS = ("pto", "ascend")

_kernels: dict[Hashable, Any] = {}


def default_target() -> str:
    """``TILELANG_DEFAULT_TARGET``, or ``pto`` where it is not set."""
    return os.environ.get("TILELANG_DEFAULT_TARGET") or "pto"


def compiled(
    kernel: str,
    specialisation: tuple[Any, ...],
    program: Callable[[], Any],
    target: str | None = None,
    pass_configs: Mapping[str, Any] | None = None,
) -> Any:
    """A kernel compiled once per process.

    Args:
        kernel: its name, which stands for the code that makes the program.
        specialisation: the values the program depends on.
        program: makes the ``tirx.PrimFunc`` if it is needed.
        target: ``pto`` or ``ascend``; by default that of :func:`default_target`.
        pass_configs: for ``tilelang.compile``.
    """
    target = target or default_target()
    configs = dict(pass_configs or {})
    key = (kernel, specialisation, target, tuple(sorted((str(name), value) for name, value in configs.items())))
    if key not in _kernels:
        _kernels[key] = tilelang.compile(program(), target=target, pass_configs=configs)
    return _kernels[key]


def launch(program: Callable[..., Any], specialisation: tuple[Any, ...], *arguments: Any) -> None:
    """Run the kernel ``program(*specialisation)`` makes, for the default target, on tensors of the CPU (simulator) or an NPU."""
    compiled(program.__name__, specialisation, lambda: program(*specialisation))(*arguments)
