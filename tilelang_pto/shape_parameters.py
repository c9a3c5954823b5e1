"""Which scalar parameters of a device function are extents of tensors, and so never negative.

Device code gets a dynamic extent as a plain integer. The host function shows where it comes from: a variable bound to an element of a
DLTensor's shape. Knowing that it is not negative lets the code generator use one remainder where it would need a floor modulo.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import tirx

from tilelang_pto.host import packed_name

__all__ = ["extent_parameters"]

_SHAPE_FIELD = 2
"""Field of ``tvm_struct_get`` that gives the shape array of a DLTensor."""


def extent_parameters(host: tirx.PrimFunc, devices: Mapping[str, tirx.PrimFunc]) -> dict[str, set[str]]:
    """For each device function the names of the parameters that the host fills with a tensor extent in every call.

    Args:
        host: host function as TileLang's pipeline leaves it.
        devices: device functions by name.
    """
    bound: dict[Any, Any] = {}
    calls: list[tuple[str, Any]] = []

    def collect(node: Any) -> None:
        if isinstance(node, tirx.Bind):
            bound[node.var] = node.value
        elif isinstance(node, tirx.Call):
            name = packed_name(node)
            if name is not None and name in devices:
                calls.append((name, node))

    tirx.stmt_functor.post_order_visit(host.body, collect)
    found: dict[str, set[str]] = {}
    for name, call in calls:
        arguments = zip(devices[name].params, list(call.args)[1:], strict=False)
        names = {str(parameter.name) for parameter, argument in arguments if _is_extent(argument, bound)}
        found[name] = names if name not in found else found[name] & names
    return found


def _is_extent(argument: Any, bound: Mapping[Any, Any]) -> bool:
    """Whether a host expression is a variable bound to an element of a shape array."""
    if not isinstance(argument, tirx.Var) or argument not in bound:
        return False
    value = bound[argument]
    while isinstance(value, tirx.Cast):
        value = value.value
    if not isinstance(value, tirx.BufferLoad) or value.buffer.data not in bound:
        return False
    origin = bound[value.buffer.data]
    is_field = isinstance(origin, tirx.Call) and str(origin.op.name) == "tirx.tvm_struct_get"
    return is_field and isinstance(origin.args[2], tirx.IntImm) and int(origin.args[2]) == _SHAPE_FIELD
