"""Launch stubs built with the system's compiler in their check mode, and launches that record what the kernel gets."""

from __future__ import annotations

import ctypes
import random
import shutil
import struct
import subprocess
from pathlib import Path

from tilelang_pto.runtime.abi import AbiParameter, KernelAbi, c_layout
from tilelang_pto.runtime.stub import launch_symbol

__all__ = ["CTYPES", "Launcher", "build_stub", "values_for"]

CTYPES = {
    "bool": ctypes.c_uint8, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32, "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float, "float16": ctypes.c_uint16, "bfloat16": ctypes.c_uint16,
}  # fmt: skip


def build_stub(source: Path, library: Path) -> ctypes.CDLL:
    """Compile a launch stub, without a single warning, and load it."""
    compiler = shutil.which("c++") or shutil.which("g++")
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-DTILELANG_PTO_STUB_CHECK", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(library))


def ctype(parameter: AbiParameter) -> type:
    return ctypes.c_void_p if parameter.kind == "pointer" else CTYPES[parameter.dtype]


class Launcher:
    """Calls the exported function of one kernel and records what the kernel gets: grid, stream, and its arguments."""

    def __init__(self, library: ctypes.CDLL, kernel: KernelAbi) -> None:
        self.kernel, self.got = kernel, []
        types = [ctype(parameter) for parameter in kernel.parameters]
        self._callback = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_void_p, *types)(lambda *values: self.got.append(values))
        ctypes.c_void_p.in_dll(library, f"tilelang_pto_check_{kernel.name}").value = ctypes.cast(self._callback, ctypes.c_void_p).value
        self.launch = getattr(library, launch_symbol(kernel.name))
        self.launch.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_void_p]

    def pack(self, values) -> bytes:
        """The arguments as :func:`c_layout` lays them out."""
        fields, size = c_layout(self.kernel)
        data = bytearray(size)
        for field, parameter, value in zip(fields, self.kernel.parameters, values, strict=True):
            raw = bytes(ctype(parameter)(value))
            data[field.offset : field.offset + len(raw)] = raw
        return bytes(data)


def values_for(kernel: KernelAbi, r: random.Random) -> tuple[int | float, ...]:
    """A random value for every parameter, which its type holds exactly."""
    return tuple(_value(parameter, r) for parameter in kernel.parameters)


def _value(parameter: AbiParameter, r: random.Random) -> int | float:
    if parameter.kind == "pointer":
        return r.randrange(1, 2**47)
    if parameter.dtype == "float32":
        return struct.unpack("f", struct.pack("f", r.uniform(-1e30, 1e30)))[0]
    if parameter.dtype == "bool":
        return r.randrange(2)
    bits = 8 * ctypes.sizeof(CTYPES[parameter.dtype])
    signed = parameter.dtype.startswith("int")
    return r.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else r.randrange(2**bits)
