"""Finding the kernel a command line names."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from tvm import tirx
from tvm.target import Target

from tilelang_pto.errors import PtoError
from tilelang_pto.settings import debugging

__all__ = ["explain", "is_ours", "load_kernel", "load_module", "parse_argument", "user_place"]

_TENSOR = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[([0-9, ]*)\]")
_TENSOR_LIKE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[.*")
_SHORT = {
    "bf16": "bfloat16",
    "f16": "float16",
    "fp16": "float16",
    "f32": "float32",
    "fp32": "float32",
    "f64": "float64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"{u}{bits}": f"uint{bits}" for bits in (8, 16, 32, 64) for u in ("u", "ui")},
}
# Packages whose frames are not the user's.
_MACHINERY = ("tilelang", "tvm", "tvm_ffi", "tilelang_pto", "torch", "click")
_LINES = 4


def parse_argument(text: str) -> tuple[str, Any]:
    """``name=value`` as a name and a Python value."""
    name, separator, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not separator or not name.isidentifier() or not value:
        raise click.ClickException(f"--arg {text!r} is not NAME=VALUE")
    tensor = _TENSOR.fullmatch(value)
    if tensor is not None:
        return name, _tensor(text, tensor[1], tensor[2])
    if _TENSOR_LIKE.fullmatch(value):
        raise click.ClickException(f"--arg {text!r}: a tensor is written dtype[extent,...] with numbers as extents, as in float32[128,64]")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _tensor(text: str, dtype: str, extents: str) -> Any:
    import torch

    torch_dtype = getattr(torch, _SHORT.get(dtype, dtype), None)
    if not isinstance(torch_dtype, torch.dtype):
        short = ", ".join(f"{name} for {full}" for name, full in list(_SHORT.items())[:4])
        raise click.ClickException(
            f"--arg {text!r}: torch has no dtype {dtype!r}; use its names (float32, bfloat16, ...) or short ones ({short}, ...)"
        )
    return torch.empty([int(extent) for extent in extents.split(",") if extent.strip()], dtype=torch_dtype)


def load_kernel(name: str, arguments: tuple[str, ...], target: Target) -> tuple[tirx.PrimFunc, dict[str, Any] | None]:
    """The TIR of ``MODULE:KERNEL`` and the pass configuration it asks for."""
    module_name, separator, kernel_name = name.rpartition(":")
    if not separator or not module_name or not kernel_name:
        raise click.ClickException(f"{name!r} is not MODULE:KERNEL")
    module = load_module(module_name)
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
            function = kernel.get_tir(**values)
    except PtoError:
        raise
    except Exception as error:
        if debugging():
            raise
        raise click.ClickException(explain(error, f"{kernel_name} cannot be traced")) from error
    _check_tensors(kernel_name, function, values)
    return function, kernel.pass_configs


def _check_tensors(kernel: str, function: tirx.PrimFunc, values: dict[str, Any]) -> None:
    """Refuse tensors that a call of the kernel would refuse for their type or shape."""
    import torch

    extents: dict[Any, tuple[int, str]] = {}
    for parameter in function.params:
        buffer = function.buffer_map.get(parameter)
        value = values.get(str(buffer.name)) if buffer is not None else None
        if buffer is None or not isinstance(value, torch.Tensor):
            continue
        given, wanted = str(value.dtype).removeprefix("torch."), str(buffer.dtype)
        place = f"--arg {buffer.name}"
        exact = not wanted.startswith(("float8", "float4", "bool", "int4", "uint4"))  # a call takes storage types for these
        if exact and given != wanted:
            raise click.ClickException(f"{place} has dtype {given}, {kernel} expects {wanted}")
        if len(buffer.shape) != value.ndim:
            raise click.ClickException(f"{place} has {value.ndim} dimensions, {kernel} expects {len(buffer.shape)}")
        for axis, (extent, size) in enumerate(zip(buffer.shape, value.shape, strict=True)):
            if not exact or not isinstance(extent, (tirx.IntImm, tirx.Var)):
                continue
            known = (
                (int(extent), "")
                if isinstance(extent, tirx.IntImm)
                else extents.setdefault(extent, (size, f" ({buffer.name}.shape[{axis}])"))
            )
            if known[0] != size:
                raise click.ClickException(f"{place} has extent {size} at shape[{axis}], {kernel} expects {known[0]}{known[1]}")


def explain(error: BaseException, what: str) -> str:
    """One line: the user's file and line where the error came from, ``what``, and the error's last sentences."""
    place = user_place(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for number, line in enumerate(lines):
        # A traceback as text inside the message: only what it ends with.
        if re.match(r"([A-Za-z_.]*(Error|Exception)|TVMError): ", line):
            lines[: number + 1] = [line.split(": ", 1)[1]]
            break
    text = " ".join(lines[-_LINES:])
    name = type(error).__name__
    return f"{place}{what}: {name}: {text}" if text else f"{place}{what}: {name}"


def is_ours(error: BaseException) -> bool:
    """Whether an error was raised by code of this package."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and Path(frames[-1].filename).is_relative_to(Path(__file__).resolve().parent.parent)


def user_place(error: BaseException) -> str:
    """``file:line: `` of the innermost frame that is the user's, empty when there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: "
    machinery = [Path(str(spec.origin)).parent for spec in map(importlib.util.find_spec, _MACHINERY) if spec is not None and spec.origin]
    paths = sysconfig.get_paths()
    installed = [Path(paths[key]) for key in ("purelib", "platlib")]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        of_python = file.is_relative_to(paths["stdlib"]) and not any(file.is_relative_to(path) for path in installed)
        if file.is_file() and not of_python and not any(file.is_relative_to(path) for path in machinery):
            return f"{frame.filename}:{frame.lineno}: "
    return ""


def _is_kernel(value: object) -> bool:
    return isinstance(value, tirx.PrimFunc) or hasattr(value, "get_tir")


def load_module(name: str) -> ModuleType:
    """Import a module by its name or the path of its file.

    Raises:
        ClickException: in one line, with the place of the mistake.
    """
    try:
        if not name.endswith(".py"):
            sys.path.insert(0, "")
            return importlib.import_module(name)
        path = Path(name)
        if not path.is_file():
            raise click.ClickException(f"there is no file {name}")
        root, dotted = _import_name(path.resolve())
        sys.path.insert(0, str(root))
        if "." in dotted:
            return importlib.import_module(dotted)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module
    except click.ClickException:
        raise
    except Exception as error:
        if debugging():
            raise
        raise click.ClickException(explain(error, f"{name} cannot be imported")) from error


def _import_name(path: Path) -> tuple[Path, str]:
    """The directory to import a file from, and its name there: with the packages (directories with an ``__init__.py``) it lies in."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file() and root.name.isidentifier():
        parts.insert(0, root.name)
        root = root.parent
    return root, ".".join(parts)
