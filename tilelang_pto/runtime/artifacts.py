"""Everything a machine with a board needs to build a module, as files: for people who have no toolchain where they write kernels."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilelang_pto.errors import ConfigurationError
from tilelang_pto.runtime import trace_child
from tilelang_pto.runtime.abi import HostCall, KernelAbi, c_layout
from tilelang_pto.runtime.build import CANN_INCLUDES, KERNEL_FLAGS, LINK_FLAGS, PTOAS_FLAGS, TEXT, architecture
from tilelang_pto.runtime.stub import STATUSES, launch_symbol, render_stub
from tilelang_pto.runtime.templates import render
from tilelang_pto.version import __version__

if TYPE_CHECKING:
    from tilelang_pto.codegen import EmittedModule

__all__ = ["manifest", "write_artifacts"]


def manifest(emitted: EmittedModule, abis: Mapping[str, KernelAbi], calls: tuple[HostCall, ...]) -> dict[str, Any]:
    """The signatures of a module as JSON values.

    ``kernels``: for each its exported launch function, core kind, and fields of the argument pack (offsets and sizes in bytes).
    ``calls``: what the host passes in each launch, in its order; ``source`` names a variable of the host, or is a constant or expression.
    """
    kernels = []
    for kernel in emitted.kernels:
        abi = abis[kernel.name]
        fields, size = c_layout(abi)
        described = [
            {"name": p.name, "kind": p.kind, "dtype": p.dtype, "constant": p.constant, "c_type": f.type, "offset": f.offset, "size": f.size}
            for p, f in zip(abi.parameters, fields, strict=True)
        ]
        kernels.append(
            {"name": kernel.name, "kind": kernel.kind, "launch": launch_symbol(kernel.name), "pack_bytes": size, "parameters": described}
        )
    launches = [
        {
            "kernel": call.kernel,
            "arguments": [{"parameter": parameter.name, "source": argument.text} for parameter, argument in call.bindings],
            "launch": {name: argument.text for name, argument in call.launch},
        }
        for call in calls
    ]
    return {
        "format": 1,
        "package": __version__,
        "surface": emitted.surface,
        "kernels": kernels,
        "calls": launches,
        "status": {str(code): meaning for code, meaning in STATUSES.items()},
    }


def write_artifacts(emitted: EmittedModule, abis: Mapping[str, KernelAbi], calls: tuple[HostCall, ...], directory: Path) -> list[Path]:
    """Write the files of a module to ``directory``, which is made if it is not there.

    Returns:
        The paths, in a stable order.

    Raises:
        ConfigurationError: the directory cannot be written.
        AbiError: a parameter or name that C++ cannot have.
    """
    kinds = sorted({kernel.kind for kernel in emitted.kernels})
    names = [kernel.name for kernel in emitted.kernels]
    files = {TEXT: emitted.text}
    for kind in kinds:
        files[f"launch_{kind}.cc"] = render_stub([abis[kernel.name] for kernel in emitted.kernels if kernel.kind == kind])
    files["manifest.json"] = json.dumps(manifest(emitted, abis, calls), indent=1) + "\n"
    files["build.sh"] = render(
        "build_on_board.sh.j2",
        surface=emitted.surface,
        kernels=names,
        stubs=[{"name": f"launch_{kind}", "arch": architecture(kind)} for kind in kinds],
        includes=CANN_INCLUDES,
        ptoas_flags=" ".join(PTOAS_FLAGS),
        kernel_flags=" ".join(KERNEL_FLAGS),
        link_flags=" ".join(LINK_FLAGS),
    )
    files["README.md"] = render(
        "artifact_readme.md.j2", kernels=names, version=__version__, symbols=[launch_symbol(name) for name in names]
    )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text, encoding="utf-8")
        shutil.copyfile(trace_child.__file__, directory / "trace.py")
        (directory / "build.sh").chmod(0o755)
    except OSError as error:
        raise ConfigurationError(
            f"the files cannot be written: {error.strerror or error}",
            where=(str(error.filename or directory),),
            advice="name another directory with --out",
        ) from error
    return sorted([*(directory / name for name in files), directory / "trace.py"])
