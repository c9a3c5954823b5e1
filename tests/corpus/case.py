"""A case of the corpus: a call that ends in one Ascend kernel of tile_kernels, and how that kernel is got at without running it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

import torch
from tile_kernels_support import pto
from tilelang.jit import JITImpl
from tvm import tirx

from tilelang_pto.lowering import pass_configs_of

__all__ = ["TOKENS", "Case", "JitCall", "empty", "reached_kernel"]

TOKENS = 8192


@dataclasses.dataclass(frozen=True)
class Case:
    """One kernel variant.

    Attributes:
        name: family, function and variant, separated by dots.
        call: calls the package's public function, or the JIT kernel where that function wants tensors of a real device.
    """

    name: str
    call: Callable[[], object]

    @property
    def function(self) -> str:
        """Family and function, without the variant."""
        return ".".join(self.name.split(".")[:2])


@dataclasses.dataclass(frozen=True)
class JitCall:
    """A call of a JIT kernel, stopped before anything is traced."""

    kernel: JITImpl
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.kernel.func.orig_func.__name__)

    def trace(self) -> tuple[tirx.PrimFunc, dict[str, Any]]:
        """The traced function and the pass configurations it is to be lowered with."""
        with pto():
            function = self.kernel.get_tir(*self.arguments, **self.options)
        return function, pass_configs_of(function, self.kernel.pass_configs)

    def describe(self) -> list[str]:
        """The call in words that are the same in every process: what the traced function depends on."""
        named = [f"{name}={_describe(value)}" for name, value in self.options.items()]
        return [_describe(value) for value in self.arguments] + named


class _ReachedError(BaseException):
    """Ends the host code at its first JIT kernel; no ``Exception``, so that host code does not catch it."""

    def __init__(self, call: JitCall) -> None:
        super().__init__(call.name)
        self.call = call


def reached_kernel(case: Case) -> JitCall:
    """The kernel call in which a case ends; the host code is stopped there."""

    def stop(kernel: JITImpl, *arguments: Any, **options: Any) -> None:
        raise _ReachedError(JitCall(kernel, arguments, options))

    with mock.patch.object(JITImpl, "__call__", stop):
        try:
            case.call()
        except _ReachedError as reached:
            return reached.call
    raise AssertionError(f"{case.name} calls no kernel")


def empty(dtype: torch.dtype) -> Callable[..., torch.Tensor]:
    """A function that makes uninitialised tensors of ``dtype``: only their types and shapes matter."""
    return lambda *shape: torch.empty(shape, dtype=dtype)


def _describe(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{list(value.shape)}/{list(value.stride())}"
    text = repr(value)
    assert " at 0x" not in text, f"{text} is not the same in every process"
    return text
