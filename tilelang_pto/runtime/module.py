"""From emitted text to the runtime module that TileLang's host code calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import tvm_ffi

from tilelang_pto.errors import RuntimeModuleError
from tilelang_pto.runtime import native
from tilelang_pto.runtime.abi import KernelAbi, c_layout, require_same
from tilelang_pto.runtime.stub import MAX_GRID, STATUSES

if TYPE_CHECKING:
    from tilelang_pto.codegen import EmittedModule
    from tilelang_pto.sim.program import Program

__all__ = ["create_module", "describe_abi"]

CREATE = "tilelang_pto.module_create"


def describe_abi(emitted: EmittedModule, abis: Mapping[str, KernelAbi], device: str) -> str:
    """How each kernel is called, as the JSON text the native module reads.

    Raises:
        RuntimeModuleError: the text holds a kernel that is no device function.
        AbiError: their parameters differ.
    """
    kernels = []
    for kernel in emitted.kernels:
        abi = abis.get(kernel.name)
        if abi is None:
            raise RuntimeModuleError(f"the emitted kernel {kernel.name} is not a device function of the module")
        require_same(abi, [(item.name, item.kind, str(item.dtype)) for item in kernel.parameters])
        fields, pack_bytes = c_layout(abi)
        pairs = zip(abi.parameters, fields, strict=True)
        parameters = [{"name": p.name, "kind": p.kind, "dtype": p.dtype, "constant": p.constant, "offset": f.offset} for p, f in pairs]
        kernels.append({"name": kernel.name, "parameters": parameters, "pack_bytes": pack_bytes, "launch": list(abi.launch)})
    statuses = {str(code): meaning for code, meaning in STATUSES.items()}
    return json.dumps({"device": device, "max_grid": MAX_GRID, "status": statuses, "kernels": kernels})


def create_module(emitted: EmittedModule, abis: Mapping[str, KernelAbi], *, device: str, surface: str) -> tvm_ffi.Module:
    """Record the text and wrap the program into a module of kind ``pto``.

    Args:
        emitted: the checked PTODSL text and the parameters of its kernels.
        abis: the signatures of the device functions, by name.
        device: ``sim`` or ``npu``; for an NPU the kernels are built with the vendor's tools, or taken from the cache.
        surface: the name of the PTODSL API the text is written for.

    Raises:
        SimulationError: the text cannot be recorded.
        AbiError: the text has other parameters than the device functions.
        ToolchainError: a tool of the vendor failed (NPU only).
        ConfigurationError: such a tool is missing, or the cache cannot be used (NPU only).
    """
    from tilelang_pto.sim.record import record_module

    native.load()
    filename = f"{emitted.kernels[0].name if emitted.kernels else 'module'}.pto.py"
    program = record_module(emitted.text, filename, surface)
    description = describe_abi(emitted, abis, device)
    library = b"" if device == "sim" else _library(emitted, program, abis)
    create = tvm_ffi.get_global_func(CREATE)
    module: tvm_ffi.Module = create(emitted.text, program.serialize(), description, library)
    return module


def _library(emitted: EmittedModule, program: Program, abis: Mapping[str, KernelAbi]) -> bytes:
    """The compiled kernels, from the cache where they were built before."""
    from tilelang_pto.runtime.build import LIBRARY, Source, build_cached

    source = Source(emitted, program, {kernel.name: abis[kernel.name] for kernel in emitted.kernels})
    return (build_cached(source) / LIBRARY).read_bytes()
