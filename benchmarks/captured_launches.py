"""Launches of compiled kernels, caught with the program and the arguments before they run.

While :func:`capture` is active, kernels are compiled into host code without a device module behind it, so that TileLang's runtime looks
for the device functions among the global functions of TVM-FFI. There they are found, keep what they are called with, and run the program.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn
from unittest import mock

import numpy as np
import tilelang
import tvm_ffi

from tilelang_pto import _native
from tilelang_pto.codegen import EmittedModule
from tilelang_pto.runtime import module as runtime_module
from tilelang_pto.runtime.abi import KernelAbi
from tilelang_pto.sim.program import Program
from tilelang_pto.sim.record import record_module

__all__ = ["Launch", "capture", "leave"]


@dataclass(slots=True)
class Launch:
    """One launch of a device function.

    Attributes:
        program: the recorded text.
        kernel: name of the device function.
        arguments: in device order, as they were before the launch: bytes of a tensor, or a number.
        after: the same after it.
        grid: number of blocks.
    """

    program: Program
    kernel: str
    arguments: list[np.ndarray | int | float]
    after: list[np.ndarray | int | float]
    grid: int


@contextmanager
def capture() -> Iterator[list[Launch]]:
    """A list that all launches of kernels compiled inside are added to.

    Such kernels can be called inside only. Their arguments are host memory, and tables of addresses keep pointing there.
    """
    launches: list[Launch] = []
    cached = tilelang.is_cache_enabled()
    tilelang.disable_cache()  # such a kernel must not be found by others
    try:
        with mock.patch.object(runtime_module, "create_module", lambda *args, **options: _module(launches, *args, **options)):
            yield launches
    finally:
        if cached:
            tilelang.enable_cache()


def leave(code: int = 0) -> NoReturn:
    """Ends a program that has captured launches: host code keeps functions of Python, and must not release them after the interpreter."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _module(launches: list[Launch], emitted: EmittedModule, abis: Mapping[str, KernelAbi], *, device: str, surface: str) -> Any:
    program = record_module(emitted.text, f"{emitted.kernels[0].name}.pto.py", surface)
    for kernel in emitted.kernels:
        _register(launches, program, abis[kernel.name])
    description = json.loads(runtime_module.describe_abi(emitted, abis, device))
    description["kernels"] = []
    return tvm_ffi.get_global_func(runtime_module.CREATE)(emitted.text, program.serialize(), json.dumps(description), b"")


def _register(launches: list[Launch], program: Program, abi: KernelAbi) -> None:
    count, pointers = len(abi.parameters), len(abi.pointers)

    def called(*values: Any) -> None:
        launch = dict(zip(abi.launch, values[count : count + len(abi.launch)], strict=True))
        extents = iter(values[len(values) - pointers :])
        arguments: list[Any] = []
        for parameter, value in zip(abi.parameters, values[:count], strict=True):
            arguments.append(_bytes_at(value, next(extents)) if parameter.kind == "pointer" else value)
        before = [_copy(value) for value in arguments]
        grid = int(launch.get("blockIdx.x", 1)) * int(launch.get("blockIdx.y", 1)) * int(launch.get("blockIdx.z", 1))
        _native.sim_launch(program.serialize(), abi.name, arguments, grid=grid, text=program.text)
        launches.append(Launch(program, abi.name, before, [_copy(value) for value in arguments], grid))

    tvm_ffi.register_global_func(abi.name, called, override=True)


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _bytes_at(pointer: Any, extent: int) -> np.ndarray:
    address = pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer
    if not extent or not address:
        return np.zeros(0, np.uint8)
    return np.frombuffer((ctypes.c_uint8 * extent).from_address(int(address)), np.uint8)
