"""How the host calls a device function: one parameter list per kernel, matched by TIR variable.

TileLang splits a kernel into a host function and device functions. A device function keeps only the variables its body uses, in
an order of its own, so a launcher that counts arguments or goes by the user's signature passes the wrong ones. Here the
list is read off the device function, every host call is matched to it variable by variable, and a difference is an
:class:`~tilelang_pto.errors.AbiError` that shows the three sides beside each other.

What a host call passes, in this order: the arguments of the kernel (a variable, or a constant or expression folded on the host side), the
launch parameters (grid, dynamic UB bytes), and the extent in bytes of every pointer argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tvm import tirx
from tvm.ir import PointerType

from tilelang_pto.errors import AbiError
from tilelang_pto.host import packed_name

__all__ = [
    "AbiParameter",
    "CField",
    "HostArgument",
    "HostCall",
    "KernelAbi",
    "c_layout",
    "c_type",
    "host_calls",
    "kernel_abi",
    "reconcile",
    "require_called",
    "require_same",
]

LAUNCH_PARAMS = "tirx.kernel_launch_params"
READ_ONLY = "tl.readonly_param_indices"
POINTER_BYTES = 8


@dataclass(frozen=True, slots=True)
class AbiParameter:
    """One parameter of a device function.

    Attributes:
        name: TIR variable name; unique within a kernel.
        kind: a GM pointer or a runtime scalar.
        dtype: TIR dtype of the scalar, or of the pointer's elements.
        constant: the kernel never writes through the pointer.
    """

    name: str
    kind: Literal["pointer", "scalar"]
    dtype: str
    constant: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {'const ' if self.constant else ''}{self.dtype}{'*' if self.kind == 'pointer' else ''}"


@dataclass(frozen=True, slots=True)
class KernelAbi:
    """The canonical signature of a device function.

    Attributes:
        name: exported symbol.
        parameters: in device order.
        launch: names of the launch parameters that follow them in a host call.
    """

    name: str
    parameters: tuple[AbiParameter, ...]
    launch: tuple[str, ...]

    @property
    def pointers(self) -> tuple[AbiParameter, ...]:
        """The pointer parameters, in device order."""
        return tuple(parameter for parameter in self.parameters if parameter.kind == "pointer")


@dataclass(frozen=True, slots=True)
class HostArgument:
    """What the host passes in one place.

    Attributes:
        text: the expression as TIR prints it.
        dtype: its dtype; ``handle`` for pointers.
        variable: name of the variable, empty for a constant or an expression.
    """

    text: str
    dtype: str
    variable: str = ""


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call of a device function, in the order the host makes them.

    Attributes:
        kernel: name of the device function.
        bindings: each parameter with what it gets.
        launch: each launch parameter with what it gets.
    """

    kernel: str
    bindings: tuple[tuple[AbiParameter, HostArgument], ...]
    launch: tuple[tuple[str, HostArgument], ...]


def kernel_abi(name: str, function: tirx.PrimFunc) -> KernelAbi:
    """Signature of one device function."""
    attrs = function.attrs or {}
    constant = {int(index) for index in attrs.get(READ_ONLY, ()) or ()}
    parameters = []
    for index, var in enumerate(function.params):
        annotation = var.type_annotation
        if isinstance(annotation, PointerType):
            parameters.append(AbiParameter(str(var.name), "pointer", str(annotation.element_type.dtype), index in constant))
        elif str(var.dtype) == "handle":
            raise AbiError(f"parameter {var.name} is a pointer to elements of no known dtype", where=(f"kernel {name}",))
        else:
            parameters.append(AbiParameter(str(var.name), "scalar", str(var.dtype)))
    twice = sorted({p.name for p in parameters if sum(q.name == p.name for q in parameters) > 1})
    if twice:
        raise AbiError(f"several parameters have the name {', '.join(twice)}", where=(f"kernel {name}",), advice="rename the tensors")
    return KernelAbi(name, tuple(parameters), tuple(str(item) for item in attrs.get(LAUNCH_PARAMS, ()) or ()))


def host_calls(host: tirx.PrimFunc, kernels: Iterable[str]) -> Iterator[tuple[str, tuple[HostArgument, ...]]]:
    """The calls of device functions in ``host``, in program order, with all their arguments."""
    wanted = frozenset(kernels)
    found: list[tuple[str, tirx.Call]] = []

    def collect(node: object) -> None:
        name = packed_name(node) if isinstance(node, tirx.Call) else None
        if name is not None and name in wanted:
            found.append((name, node))

    tirx.stmt_functor.post_order_visit(host.body, collect)
    for name, call in found:
        yield name, tuple(_argument(item) for item in call.args[1:])


def reconcile(source: tirx.PrimFunc | None, host: tirx.PrimFunc, kernels: Mapping[str, KernelAbi]) -> tuple[HostCall, ...]:
    """Match every call of a device function in ``host`` to the signature of the function.

    Args:
        source: the kernel as the user wrote it, for the first column of a message; None where it is not at hand.
        host: the host function.
        kernels: signatures of all device functions, by name.

    Returns:
        The calls in the order the host makes them; several of one function where it is launched repeatedly.

    Raises:
        AbiError: a call passes too much or too little, or another variable or type than the parameter has.
    """
    return tuple(_bind(source, kernels[name], arguments) for name, arguments in host_calls(host, kernels))


def require_called(kernels: Iterable[str], called: Iterable[str]) -> None:
    """Refuse device functions that no host function launches.

    Raises:
        AbiError: there is one.
    """
    missing = sorted(set(kernels) - set(called))
    if missing:
        raise AbiError(f"the host never launches {', '.join(missing)}", advice="this is a defect of the pipeline: please report it")


def _bind(source: tirx.PrimFunc | None, abi: KernelAbi, arguments: Sequence[HostArgument]) -> HostCall:
    wanted = len(abi.parameters) + len(abi.launch) + len(abi.pointers)
    given = arguments[: len(abi.parameters)]
    if len(arguments) != wanted:
        extra = len(abi.launch) + len(abi.pointers)
        given = arguments[: max(len(arguments) - extra, 0)]
        raise _mismatch(source, abi, given, f"the host passes {len(given)} arguments, the kernel has {len(abi.parameters)} parameters")
    variables = {argument.variable for argument in given if argument.variable}
    names = {parameter.name for parameter in abi.parameters}
    for parameter, argument in zip(abi.parameters, given, strict=True):
        problem = ""
        if (argument.dtype == "handle") != (parameter.kind == "pointer"):
            problem = f"parameter {parameter.name} is a {parameter.kind}, the host passes {argument.text} of type {argument.dtype}"
        elif parameter.kind == "scalar" and argument.dtype != parameter.dtype:
            problem = f"parameter {parameter.name} is {parameter.dtype}, the host passes {argument.text} of type {argument.dtype}"
        elif argument.variable and argument.variable != parameter.name and (argument.variable in names or parameter.name in variables):
            problem = f"parameter {parameter.name} gets the host's {argument.variable}"
        if problem:
            raise _mismatch(source, abi, given, problem)
    launch = arguments[len(abi.parameters) : len(abi.parameters) + len(abi.launch)]
    return HostCall(abi.name, tuple(zip(abi.parameters, given, strict=True)), tuple(zip(abi.launch, launch, strict=True)))


def _mismatch(source: tirx.PrimFunc | None, abi: KernelAbi, given: Sequence[HostArgument], problem: str) -> AbiError:
    """The error with the three lists, one line per variable."""
    written = _source_parameters(source)
    passed = {argument.variable or f"({argument.text})": f"{argument.text}: {argument.dtype}" for argument in given}
    device = {parameter.name: str(parameter) for parameter in abi.parameters}
    rows = list(dict.fromkeys([*written, *passed, *device]))
    table = [("kernel as written", "host call", "device function")]
    table += [(written.get(row, "-"), passed.get(row, "-"), device.get(row, "-")) for row in rows]
    order = ", ".join(argument.text for argument in given), ", ".join(parameter.name for parameter in abi.parameters)
    widths = [max(len(line[column]) for line in table) for column in range(3)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    text = "\n".join(f"    {line}" for line in lines)
    absent = sorted(set(device) - set(passed))
    unknown = sorted(name for name in set(passed) - set(device) if not name.startswith("("))
    notes = [f"the host does not pass {', '.join(absent)}"] if absent else []
    notes += [f"the device function has no {', '.join(unknown)}"] if unknown else []
    details = "".join(f"\n    {note}" for note in [*notes, f"host order: {order[0]}", f"device order: {order[1]}"])
    return AbiError(
        f"host and device disagree about the arguments of {abi.name}: {problem}\n{text}{details}",
        where=(f"kernel {abi.name}",),
        advice="this is a defect of the pipeline, or of a pass that ran after it: please report it with this table",
    )


def _source_parameters(source: tirx.PrimFunc | None) -> dict[str, str]:
    if source is None:
        return {}
    shown = {}
    for var in source.params:
        buffer = source.buffer_map.get(var, None)
        if buffer is None:
            shown[str(var.name)] = f"{var.name}: {var.dtype}"
            continue
        shape = ", ".join(str(extent) for extent in buffer.shape)
        shown[str(buffer.data.name)] = f"{var.name}: {buffer.dtype}[{shape}]"
        for extent in [*buffer.shape, *buffer.strides]:
            if isinstance(extent, tirx.Var):
                shown.setdefault(str(extent.name), f"{extent.name}: extent of {var.name}")
    return shown


def _argument(node: Any) -> HostArgument:
    return HostArgument(str(node), str(node.dtype), str(node.name) if isinstance(node, tirx.Var) else "")


# -- the C side ----------------------------------------------------------------------------------------------------------

_C_SCALARS: dict[str, tuple[str, int]] = {
    "bool": ("uint8_t", 1),
    "int8": ("int8_t", 1),
    "int16": ("int16_t", 2),
    "int32": ("int32_t", 4),
    "int64": ("int64_t", 8),
    "uint8": ("uint8_t", 1),
    "uint16": ("uint16_t", 2),
    "uint32": ("uint32_t", 4),
    "uint64": ("uint64_t", 8),
    "float32": ("float", 4),
    # No C++ type of the host compiler holds these; an integer of the same size carries the bits.
    "float16": ("uint16_t", 2),
    "bfloat16": ("uint16_t", 2),
}


def c_type(parameter: AbiParameter) -> tuple[str, int]:
    """C++ type of a parameter in host code, and its size in bytes.

    Pointers to elements that standard C++ has no type for (bf16, fp8, fp4, bool and vectors of them) are opaque.

    Raises:
        AbiError: a scalar dtype that cannot be passed.
    """
    if parameter.kind == "pointer":
        element = _C_SCALARS.get(parameter.dtype)
        plain = element is not None and parameter.dtype not in ("bool", "float16", "bfloat16")
        name = element[0] if plain and element is not None else "void"
        return f"{'const ' if parameter.constant else ''}{name}*", POINTER_BYTES
    if parameter.dtype not in _C_SCALARS:
        raise AbiError(
            f"scalar parameter {parameter.name} of dtype {parameter.dtype} cannot be passed",
            advice=f"use one of {', '.join(_C_SCALARS)}",
        )
    return _C_SCALARS[parameter.dtype]


@dataclass(frozen=True, slots=True)
class CField:
    """One field of the argument pack.

    Attributes:
        name: C++ identifier.
        type: C++ type.
        offset: position in the pack, bytes.
        size: bytes.
    """

    name: str
    type: str
    offset: int
    size: int


def c_layout(abi: KernelAbi) -> tuple[tuple[CField, ...], int]:
    """Fields of the argument pack of a kernel, naturally aligned, and its size (a multiple of 8 bytes).

    Names that C++ does not allow are replaced; the order is that of the device function.
    """
    fields: list[CField] = []
    offset = 0
    for name, parameter in zip(_c_names(abi.parameters), abi.parameters, strict=True):
        type, size = c_type(parameter)
        offset = -(-offset // size) * size
        fields.append(CField(name, type, offset, size))
        offset += size
    return tuple(fields), -(-offset // 8) * 8


def _c_names(parameters: Sequence[AbiParameter]) -> list[str]:
    """C++ member names: with an underscore behind them, which no keyword has; without the underscores that C++ reserves."""
    names: list[str] = []
    for parameter in parameters:
        base = "_".join(filter(None, re.sub(r"[^0-9A-Za-z]", "_", parameter.name).split("_")))
        base = f"{'p' if base[:1].isdigit() else ''}{base or 'p'}_"
        name, number = base, 2
        while name in names:
            name, number = f"{base}{number}", number + 1
        names.append(name)
    return names


def require_same(abi: KernelAbi, emitted: Sequence[tuple[str, str, str]]) -> None:
    """Refuse emitted text whose parameters are not those of the device function.

    Args:
        abi: signature of the device function.
        emitted: name, kind and dtype of every parameter of the text, in its order.

    Raises:
        AbiError: they differ.
    """
    wanted = [(parameter.kind, parameter.dtype) for parameter in abi.parameters]
    if wanted == [(kind, dtype) for _, kind, dtype in emitted]:
        return
    shown = ", ".join(f"{name}: {dtype}{'*' if kind == 'pointer' else ''}" for name, kind, dtype in emitted)
    raise AbiError(
        f"the emitted text and the device function disagree about the parameters of {abi.name}: the text has ({shown}), "
        f"the function ({', '.join(map(str, abi.parameters))})",
        where=(f"kernel {abi.name}",),
        advice="this is a defect of the code generator: please report it",
    )
