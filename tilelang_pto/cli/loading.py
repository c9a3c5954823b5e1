"""Finding the kernel a command line names."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from tvm import tirx
from tvm.target import Target

__all__ = ["load_kernel", "parse_argument"]

_TENSOR = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[([0-9, ]*)\]")


def parse_argument(text: str) -> tuple[str, Any]:
    """``name=value`` as a name and a Python value."""
    name, separator, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not separator or not name.isidentifier() or not value:
        raise click.ClickException(f"--arg {text!r} is not NAME=VALUE")
    tensor = _TENSOR.fullmatch(value)
    if tensor is not None:
        return name, _tensor(text, tensor[1], tensor[2])
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _tensor(text: str, dtype: str, extents: str) -> Any:
    import torch

    torch_dtype = getattr(torch, dtype, None)
    if not isinstance(torch_dtype, torch.dtype):
        raise click.ClickException(f"--arg {text!r}: torch has no dtype {dtype!r}")
    return torch.empty([int(extent) for extent in extents.split(",") if extent.strip()], dtype=torch_dtype)


def load_kernel(name: str, arguments: tuple[str, ...], target: Target) -> tuple[tirx.PrimFunc, dict[str, Any] | None]:
    """The TIR of ``MODULE:KERNEL`` and the pass configuration it asks for."""
    module_name, separator, kernel_name = name.rpartition(":")
    if not separator or not module_name or not kernel_name:
        raise click.ClickException(f"{name!r} is not MODULE:KERNEL")
    module = _load_module(module_name)
    kernel: Any = module
    for part in kernel_name.split("."):
        if not hasattr(kernel, part):
            found = ", ".join(sorted(key for key, value in vars(module).items() if _is_kernel(value))) or "none"
            raise click.ClickException(f"{module_name} has no {kernel_name!r}; kernels there: {found}")
        kernel = getattr(kernel, part)
    values = dict(parse_argument(text) for text in arguments)
    if isinstance(kernel, tirx.PrimFunc):
        if values:
            raise click.ClickException(f"{kernel_name} is a T.prim_func and takes no --arg")
        return kernel, None
    if not hasattr(kernel, "get_tir"):
        raise click.ClickException(f"{kernel_name} is a {type(kernel).__name__}, neither a T.prim_func nor a tilelang.jit function")
    try:
        kernel.signature.bind(**values)
    except TypeError as error:
        raise click.ClickException(f"{kernel_name}{kernel.signature}: {error}; give arguments with --arg NAME=VALUE") from error
    try:
        with target:
            return kernel.get_tir(**values), kernel.pass_configs
    except Exception as error:
        raise click.ClickException(f"{kernel_name} cannot be traced: {type(error).__name__}: {_first_line(error)}") from error


def _is_kernel(value: object) -> bool:
    return isinstance(value, tirx.PrimFunc) or hasattr(value, "get_tir")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _load_module(name: str) -> ModuleType:
    try:
        if not name.endswith(".py"):
            sys.path.insert(0, "")
            return importlib.import_module(name)
        path = Path(name)
        if not path.is_file():
            raise click.ClickException(f"there is no file {name}")
        sys.path.insert(0, str(path.resolve().parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module
    except click.ClickException:
        raise
    except Exception as error:
        raise click.ClickException(f"{name} cannot be imported: {type(error).__name__}: {_first_line(error)}") from error
