"""The C++ file that launches the kernels of a module from the host.

One exported function per kernel, ``tilelang_pto_launch_<kernel>(packed, bytes, grid, stream)``: ``packed`` are the arguments as
:func:`~tilelang_pto.runtime.abi.c_layout` lays them out. The vendor's compiler builds the file for a board. With
``TILELANG_PTO_STUB_CHECK`` defined any C++17 compiler does, and a launch becomes a call through ``tilelang_pto_check_<kernel>``, so
that order, size and alignment of the arguments can be executed where there is no board.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tilelang_pto.errors import AbiError
from tilelang_pto.runtime.abi import CField, KernelAbi, c_layout
from tilelang_pto.runtime.templates import render
from tilelang_pto.version import __version__

__all__ = ["CODES", "MAX_GRID", "STATUSES", "launch_symbol", "render_stub"]

#: What a launch function returns, by the name the template uses.
CODES = {"ok": 0, "no_arguments": 1, "size": 2, "grid": 3, "no_kernel": 4}
STATUSES = {
    0: "the kernel is launched, or there was nothing to do (no blocks)",
    1: "no arguments were given",
    2: "the packed arguments have another size than the kernel's: the caller has another signature",
    3: "the number of blocks is negative or too large",
    4: "check build only: no function to call is set",
}
#: Most blocks of one launch that AscendC documents.
MAX_GRID = 65535

_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def launch_symbol(kernel: str) -> str:
    """Name of the exported function that launches ``kernel``."""
    return f"tilelang_pto_launch_{kernel}"


def render_stub(kernels: Sequence[KernelAbi]) -> str:
    """The C++ text for all kernels of a module.

    Raises:
        AbiError: a name no C++ function can have, or a scalar that cannot be passed.
    """
    statuses = [{"code": code, "meaning": meaning} for code, meaning in STATUSES.items()]
    described = [_kernel(abi) for abi in kernels]
    return render("launch_stub.cc.j2", kernels=described, statuses=statuses, codes=CODES, max_grid=MAX_GRID, version=__version__)


def _kernel(abi: KernelAbi) -> dict[str, Any]:
    if not _C_IDENTIFIER.match(abi.name):
        raise AbiError(
            f"{abi.name!r} is no name a C++ function can have",
            where=(f"kernel {abi.name}",),
            advice="name the Python function with ASCII letters, digits and underscores",
        )
    fields, size = c_layout(abi)
    pairs = list(zip(fields, abi.parameters, strict=True))
    return {
        "name": abi.name,
        "fields": [_field(field, str(parameter)) for field, parameter in pairs],
        "size": size,
        "host_types": "".join(f", {field.type}" for field in fields),
        "host_arguments": "".join(f", args.{field.name}" for field in fields),
        "device_parameters": ", ".join(f"{_device_type(field)} {field.name}" for field in fields),
        "device_arguments": ", ".join(f"{_cast(field)}args.{field.name}" for field in fields),
    }


def _field(field: CField, comment: str) -> dict[str, Any]:
    return {"name": field.name, "type": field.type, "offset": field.offset, "size": field.size, "comment": comment}


def _is_pointer(field: CField) -> bool:
    return field.type.endswith("*")


def _cast(field: CField) -> str:
    return f"({_device_type(field)})" if _is_pointer(field) else ""


def _device_type(field: CField) -> str:
    """The type in the declaration of the kernel: GM is an address space there, and opaque elements are bytes."""
    return f"__gm__ {field.type.replace('void', 'uint8_t')}" if _is_pointer(field) else field.type
