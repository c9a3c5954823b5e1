"""Emits a PTODSL module for the device functions of an IRModule."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tilelang_pto.errors import UnsupportedError
from tilelang_pto.version import __version__

from . import rules as _rules  # noqa: F401  (fills the tables)
from .analysis.views import restore_views
from .attributes import EXTENT_PARAMETERS
from .emit import NestingError, call, constant, path
from .naming import NameSupply
from .printer import print_module
from .rules.addresses import has_addresses
from .surface import Surface
from .types import DTYPES, Type, pointer_type
from .values import Interval
from .visitor import Storage, Visitor

__all__ = ["EmittedModule", "Kernel", "Parameter", "emit_module"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a device function, in device order.

    Attributes:
        name: name in the emitted text.
        kind: a GM pointer or a runtime scalar.
        dtype: TIR dtype of the scalar or of the pointer's elements.
    """

    name: str
    kind: Literal["pointer", "scalar"]
    dtype: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """One emitted device function."""

    name: str
    kind: Literal["vector", "cube", "mixed"]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class EmittedModule:
    """PTODSL text and what is in it."""

    text: str
    surface: str
    kernels: tuple[Kernel, ...] = field(default_factory=tuple)


def emit_module(device_mod: Any, *, surface: Surface, fast_math: bool = False) -> EmittedModule:
    """Emit all device functions of ``device_mod``.

    Args:
        device_mod: IRModule of device PrimFuncs as TileLang's Ascend pipeline leaves them.
        surface: API state to write for.
        fast_math: divisions that ask for no precision may have the hardware's.

    Raises:
        UnsupportedError: something in a function has no rule; nothing is emitted.
    """
    functions = sorted(((str(gv.name_hint), func) for gv, func in device_mod.functions.items()), key=lambda item: item[0])
    if not functions:
        raise UnsupportedError("the module has no device function", advice="launch a kernel with T.Kernel")
    kernels: list[Kernel] = []
    helpers: dict[str, str] = {}
    definitions: list[ast.stmt] = []
    for name, func in functions:
        definition, kernel, needed = emit_function(func, name, surface, fast_math)
        definitions.append(definition)
        kernels.append(kernel)
        helpers.update(needed)
    definitions[:0] = [statement for text in helpers.values() for statement in ast.parse(text).body]
    text = print_module(_header(kernels, surface), _imports(surface), definitions)
    return EmittedModule(text, surface.name, tuple(kernels))


def emit_function(func: Any, kernel_name: str, surface: Surface, fast_math: bool = False) -> tuple[ast.FunctionDef, Kernel, dict[str, str]]:
    """AST and description of one device function, and the helper functions it calls."""
    visitor = Visitor(kernel_name, surface, fast_math)
    attrs = func.attrs or {}
    restricted = attrs.get("tirx.noalias", False) and len(attrs.get("tl.non_restrict_params", ())) == 0
    visitor.arguments_alias = not restricted or has_addresses(func.body)
    extents = frozenset(str(name) for name in attrs.get(EXTENT_PARAMETERS, ()))
    parameters, arguments = _parameters(visitor, func, extents)
    body_of_views, visitor.arenas = restore_views(func)
    prepared = visitor.prepare(body_of_views)
    try:
        visitor.stmt(prepared)
        body: list[ast.stmt] = visitor.b.finish() or [ast.Pass()]
    except NestingError as error:
        visitor.unsupported(str(error), "merge nested conditions with `and`, or move a part into another kernel")
    except RecursionError:
        visitor.unsupported("an expression is nested too deeply", "give parts of it names, with `value = ...`")
    kind = visitor.cores.kind
    kernel_kind = {} if kind == "mixed" else {"kernel_kind": constant(kind)}  # of a mixed kernel the sections tell
    decorator = call(
        "pto.jit", name=constant(kernel_name), **kernel_kind, target=constant("a5"), mode=constant("explicit"), ast_rewrite=constant(False)
    )
    signature = ast.arguments(posonlyargs=[], args=arguments, kwonlyargs=[], kw_defaults=[], defaults=[])
    definition = ast.FunctionDef(name=NameSupply().claim(kernel_name), args=signature, body=body, decorator_list=[decorator], returns=None)
    return definition, Kernel(kernel_name, kind, tuple(parameters)), visitor.helpers


def _parameters(v: Visitor, func: Any, extents: frozenset[str]) -> tuple[list[Parameter], list[ast.arg]]:
    parameters: list[Parameter] = []
    arguments: list[ast.arg] = []
    for var in func.params:
        tir_name = str(var.name)
        name = v.b.names.claim(tir_name)
        if str(var.dtype) == "handle":
            element = str(var.type_annotation.element_type.dtype)
            dtype = DTYPES["int8"] if element == "bool" else DTYPES.get(element)
            if dtype is None:
                v.unsupported(f"parameter {tir_name}: elements of dtype {element} have no PTODSL type", f"use one of {', '.join(DTYPES)}")
            v.storage[var] = Storage("gm", tir_name, element, v.b.named(name, pointer_type(dtype, "gm")))
            annotation: ast.expr = call("pto.ptr", path(f"pto.{dtype.pto}"), constant("gm"))
            parameters.append(Parameter(name, "pointer", element))
        else:
            type: Type = v.scalar_type(var.dtype)
            interval: Interval | None = (0, type.dtype.maximum) if tir_name in extents and type.dtype.is_integer else None
            v.variables[var] = v.b.named(name, type, interval=interval)
            annotation = path(f"pto.{type.dtype.pto}")
            parameters.append(Parameter(name, "scalar", str(var.dtype)))
        arguments.append(ast.arg(name, annotation))
    return parameters, arguments


def _header(kernels: Sequence[Kernel], surface: Surface) -> list[str]:
    names = ", ".join(kernel.name for kernel in kernels)
    return [
        f"PTODSL for {names} (Ascend A5).",
        "",
        f"Generated by tilelang-pto {__version__} from TileLang's device TIR for the {surface.name} API; do not edit.",
    ]


def _imports(surface: Surface) -> list[str]:
    return ["from ptodsl import pto, scalar" if surface.has_scalar_namespace else "from ptodsl import pto"]
