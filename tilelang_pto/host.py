"""Changes to the host function TileLang generates: tensor extents for the device calls, device type.

The host function unpacks and checks the arguments, then calls each device function by name. Three things are missing
there for us: the device functions are not told how large their tensors are (the simulator checks bounds per tensor), the checks
insist on an external device (the simulator takes CPU tensors), and on an NPU nothing selects the device of the tensors or allocates
workspaces. The messages of the checks are the matter of ``argument_checks.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from tvm import tirx
from tvm.arith import Analyzer
from tvm.ir import PointerType

__all__ = ["add_extents", "allow_cpu_tensors", "extent_bytes", "launch_on_npu", "packed_name"]

# Fields of tvm_struct_get and tvm_struct_set: DLTensor.device.device_type, and the value of a TVMFFIAny.
_DEVICE_TYPE_FIELD = 10
_ANY_VALUE = 15
_EXT_DEV = 12
_CPU = 1
_SET_DEVICE = "__tvm_set_device"
_COMPUTE = "compute_scope"


def extent_bytes(buffer: tirx.Buffer) -> tirx.PrimExpr:
    """The bytes a buffer spans, as an int64 expression over the variables of its shape and strides."""

    def i64(value: tirx.PrimExpr | int) -> tirx.PrimExpr:
        return tirx.const(value, "int64") if isinstance(value, int) else value.astype("int64")

    if not _is_const(buffer.elem_offset, 0):
        return i64(-1)
    one = i64(1)
    shape = [i64(extent) for extent in buffer.shape]
    compact = functools.reduce(lambda product, extent: product * extent, shape, one)
    elements = compact
    if buffer.strides:
        span = one
        for extent, stride in zip(shape, buffer.strides, strict=True):
            span = span + (extent - one) * i64(stride)
        if not Analyzer().can_prove_equal(span, compact):
            elements = tirx.Select(compact == i64(0), i64(0), span)
    bits = buffer.dtype.bits * buffer.dtype.lanes
    size = elements * i64(bits // 8) if bits % 8 == 0 else tirx.floordiv(elements * i64(bits) + i64(7), i64(8))
    return Analyzer().simplify(size)


def add_extents(host: tirx.PrimFunc, devices: Mapping[str, tirx.PrimFunc]) -> tirx.PrimFunc:
    """Append to every call of a device function the extent in bytes of each of its pointer arguments (-1: not known)."""
    buffers: dict[tirx.Var, tirx.Buffer] = {}

    def collect(node: object) -> None:
        # The first declaration is the tensor itself; later ones of the same variable are views of it.
        if isinstance(node, (tirx.DeclBuffer, tirx.AllocBuffer)):
            buffers.setdefault(node.buffer.data, node.buffer)

    tirx.stmt_functor.post_order_visit(host.body, collect)

    def rewrite(call: tirx.Call) -> tirx.Call | None:
        name = packed_name(call)
        if name is None or name not in devices:
            return None
        extents = []
        # args[0] is the name; launch parameters follow those of the function.
        for parameter, argument in zip(devices[name].params, call.args[1:], strict=False):
            if isinstance(parameter.type_annotation, PointerType):
                buffer = buffers.get(argument) if isinstance(argument, tirx.Var) else None
                extents.append(tirx.const(-1, "int64") if buffer is None else extent_bytes(buffer))
        return tirx.Call(call.dtype, call.op, [*call.args, *extents])

    return _transform(host, {tirx.Call: rewrite})


def allow_cpu_tensors(host: tirx.PrimFunc) -> tirx.PrimFunc:
    """Make the host function take CPU tensors, allocate its outputs there, and leave the device alone."""
    cpu = tirx.const(_CPU, "int32")

    def compare(node: tirx.EQ) -> tirx.EQ | None:
        given = node.a
        if isinstance(given, tirx.Call) and getattr(given.op, "name", "") == "tirx.if_then_else":
            given = given.args[1]  # a tensor the kernel does not use may be absent
        field = _struct_field(given, "tirx.tvm_struct_get")
        return tirx.EQ(node.a, cpu) if field == _DEVICE_TYPE_FIELD and _is_const(node.b, _EXT_DEV) else None

    def assign(call: tirx.Call) -> tirx.Call | None:
        if _struct_field(call, "tirx.tvm_struct_set") != _DEVICE_TYPE_FIELD or not _is_const(call.args[3], _EXT_DEV):
            return None
        return tirx.Call(call.dtype, call.op, [*call.args[:3], cpu])

    def attribute(node: tirx.AttrStmt) -> tirx.AttrStmt | None:
        if node.attr_key != "device_type" or not _is_const(node.value, _EXT_DEV):
            return None
        return tirx.AttrStmt(node.node, node.attr_key, cpu, node.body)

    def select_device(node: tirx.Evaluate) -> tirx.Evaluate | None:
        is_call = isinstance(node.value, tirx.Call) and packed_name(node.value) == _SET_DEVICE
        return tirx.Evaluate(tirx.const(0, "int32")) if is_call else None

    def message(node: tirx.AssertStmt) -> tirx.AssertStmt | None:
        parts = [part.value.replace("expected ext_dev", "expected cpu (the kernel is compiled for the simulator)") for part in _texts(node)]
        return _assertion(node, parts)

    return _transform(
        host,
        {
            tirx.EQ: compare,
            tirx.Call: assign,
            tirx.AttrStmt: attribute,
            tirx.Evaluate: select_device,
            tirx.AssertStmt: message,
        },
    )


def launch_on_npu(host: tirx.PrimFunc, kernel: str) -> tirx.PrimFunc:
    """Make the launches of the host function go to the device of its tensors, and have its workspaces allocated there.

    The native library keeps both between two calls around the launches (``csrc/ffi/npu_call.h``). TileLang's own functions for the
    purpose do nothing (the device) or fail (the workspaces).
    """

    def select_device(node: tirx.Evaluate) -> tirx.Evaluate | None:
        if not isinstance(node.value, tirx.Call) or packed_name(node.value) != _SET_DEVICE:
            return None
        return tirx.Evaluate(tirx.call_packed("tilelang_pto.npu_enter", kernel, node.value.args[2].astype("int64")))

    def workspace(node: tirx.AllocBuffer) -> tirx.SeqStmt | None:
        if node.buffer.scope() != "global":
            return None
        # The C code of TileLang drops what a packed function returns, so the pointer comes back in a cell of the stack.
        cell = tirx.Var(f"{node.buffer.data.name}_cell", "handle")
        return tirx.SeqStmt(
            [
                tirx.Bind(cell, tirx.call_intrin("handle", "tirx.tvm_stack_alloca", "tvm_ffi_any", 1)),
                tirx.Evaluate(tirx.call_packed("tilelang_pto.npu_workspace", extent_bytes(node.buffer), cell)),
                tirx.Bind(node.buffer.data, tirx.call_intrin("handle", "tirx.tvm_struct_get", cell, 0, _ANY_VALUE)),
            ]
        )

    def compute(node: tirx.AttrStmt) -> tirx.AttrStmt | None:
        if node.attr_key != _COMPUTE:
            return None
        body = tirx.stmt_functor.ir_transform(node.body, None, workspace, ["tirx.AllocBuffer"])
        leave = tirx.Evaluate(tirx.call_packed("tilelang_pto.npu_leave"))
        return tirx.AttrStmt(node.node, node.attr_key, node.value, tirx.SeqStmt([body, leave]))

    return _transform(host, {tirx.Evaluate: select_device, tirx.AttrStmt: compute})


def _transform(host: tirx.PrimFunc, rules: Mapping[type, Callable[..., object | None]]) -> tirx.PrimFunc:
    """Rebuild the body with ``rules`` applied to the nodes of the given types, innermost first; ``None`` keeps a node."""
    type_keys = [f"tirx.{node_type.__name__}" for node_type in rules]
    body = tirx.stmt_functor.ir_transform(host.body, None, lambda node: rules[type(node)](node), type_keys)
    return host.with_body(body)


def _is_const(value: object, number: int) -> bool:
    return isinstance(value, tirx.IntImm) and int(value) == number


def _texts(node: tirx.AssertStmt) -> list[tirx.StringImm]:
    return [part for part in node.message_parts if isinstance(part, tirx.StringImm)]


def _assertion(node: tirx.AssertStmt, parts: list[str]) -> tirx.AssertStmt:
    # The Python class names its first two arguments the other way round than the constructor behind it takes them.
    return tirx.AssertStmt(node.condition, node.error_kind, [tirx.StringImm(part) for part in parts])


def packed_name(call: tirx.Call) -> str | None:
    """The function a packed call names, None for other calls."""
    if getattr(call.op, "name", "") != "tirx.tvm_call_packed" or not call.args or not isinstance(call.args[0], tirx.StringImm):
        return None
    return str(call.args[0].value)


def _struct_field(value: object, op: str) -> int | None:
    if not isinstance(value, tirx.Call) or getattr(value.op, "name", "") != op or not isinstance(value.args[2], tirx.IntImm):
        return None
    return int(value.args[2])
