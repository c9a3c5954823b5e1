"""Builds small device functions in TIR, the way TileLang's pipeline leaves them, for tests of single rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tilelang  # noqa: F401  (makes tvm importable)
import tvm
from tvm import tirx
from tvm.ir import PointerType, PrimType

MAX_THREADS = 1024


def pointer(name: str, dtype: str) -> tirx.Var:
    """A kernel argument: a pointer to GM."""
    return tirx.Var(name, PointerType(PrimType(dtype), "global"))


def view(data: tirx.Var, dtype: str, count: int = 1, scope: str = "global") -> tirx.Buffer:
    """A one-dimensional view of memory."""
    return tirx.decl_buffer((count,), dtype, data=data, scope=scope, name=data.name)


def block(name: str, body: Any) -> Any:
    """An SBlock as TileLang leaves them: no iteration variables, no regions."""
    return tirx.SBlock([], [], [], name, body)


def thread_extent(tag: str, name: str, extent: Any, body: Callable[[tirx.Var], Any]) -> Any:
    """``thread_extent`` around the body made from the launch variable."""
    var = tirx.Var(name, "int32")
    iteration = tirx.IterVar(tvm.ir.Range(0, extent), var, tirx.IterVar.ThreadIndex, tag)
    return tirx.AttrStmt(iteration, "thread_extent", extent if not isinstance(extent, int) else tirx.IntImm("int32", extent), body(var))


def sequence(*statements: Any) -> Any:
    """Statements one after the other."""
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))


def op(name: str, dtype: str, *arguments: Any) -> Any:
    """A call of a TIR operation; Python numbers and strings become immediates."""
    return tirx.call_intrin(dtype, tvm.ir.Op.get(name), *[immediate(argument) for argument in arguments])


def immediate(value: Any) -> Any:
    """``value`` as a TIR expression."""
    if isinstance(value, str):
        return tirx.StringImm(value)
    return tirx.IntImm("int32", value) if isinstance(value, int) else value


def access(data: tirx.Var, dtype: str, offset: Any, extent: int, mask: int = 3) -> Any:
    """``tvm_access_ptr``."""
    return op("tirx.tvm_access_ptr", "handle", tirx.type_annotation(dtype), data, offset, extent, mask)


def module(name: str, params: Sequence[tirx.Var], body: Any) -> Any:
    """An IRModule of one device function."""
    return tvm.IRModule({name: tirx.PrimFunc(list(params), body).with_attr("global_symbol", name)})


def vector_kernel(name: str, params: Sequence[tirx.Var], body: Callable[[tirx.Var], Any], cores: int = 1) -> Any:
    """A kernel of the vector cores; ``body`` gets the block index."""
    return module(name, params, thread_extent("blockIdx.x", "bx", cores, lambda bx: block("VECTOR", body(bx))))


def cube_kernel(name: str, params: Sequence[tirx.Var], *statements: Any) -> Any:
    """A kernel of the cube core."""
    return module(name, params, thread_extent("blockIdx.x", "bx", 1, lambda _: block("CUBE", sequence(*statements))))


def mixed_kernel(
    name: str, params: Sequence[tirx.Var], head: Sequence[Any], cube: Any, vector: Callable[[tirx.Var], Any], vectors: int = 2
) -> Any:
    """A kernel of a cube core with its vector cores; ``vector`` gets the number of the vector core, ``head`` belongs to both."""
    code = thread_extent("cthread", "sid", vectors, vector)
    section = tirx.SBlock([], [], [], "VECTOR", code, annotations={"vector_count": immediate(vectors)})
    return module(name, params, thread_extent("blockIdx.x", "bx", 1, lambda _: sequence(*head, block("CUBE", cube), section)))


def simt_block(threads: int, body: Callable[[tirx.Var], Any]) -> Any:
    """A SIMT vector function; ``body`` gets the thread number."""

    def inner(tx: tirx.Var) -> Any:
        scoped = tirx.AttrStmt(tirx.StringImm("simtvf"), "tl.simtvf_scope", tirx.IntImm("int32", 1), body(tx))
        return thread_extent("threadIdx.y", "ty", 1, lambda _: thread_extent("threadIdx.z", "tz", 1, lambda _: scoped))

    return block("SIMT_VF", thread_extent("threadIdx.x", "tx", threads, inner))


def simd_block(*statements: Any) -> Any:
    """A SIMD vector function."""
    scoped = tirx.AttrStmt(tirx.StringImm("simdvf"), "tl.simdvf_scope", tirx.IntImm("int32", 1), sequence(*statements))
    return block("SIMD_VF", scoped)


def elementwise(inputs: Mapping[str, str], output: str, count: int, function: Callable[..., Any]) -> Any:
    """A SIMT kernel ``map``: ``out[i] = function(in_0[i], ...)`` for ``i < count``, one thread per element.

    Args:
        inputs: name to TIR dtype.
        output: TIR dtype of ``out``.
        function: makes the TIR expression from one load of each input.
    """
    assert count <= MAX_THREADS
    arguments = {name: pointer(name, dtype) for name, dtype in inputs.items()}
    out = pointer("out", output)

    def body(tx: tirx.Var) -> Any:
        loads = [tirx.BufferLoad(view(data, inputs[name], count), [tx]) for name, data in arguments.items()]
        return tirx.BufferStore(view(out, output, count), function(*loads), [tx])

    return vector_kernel("map", [*arguments.values(), out], lambda _: simt_block(count, body))


def elementwise_body(inputs: Mapping[str, str], output: str, count: int, body: Callable[..., Any]) -> Any:
    """A SIMT kernel ``map`` with a body of statements: ``body(thread, loads, out view)``."""
    arguments = {name: pointer(name, dtype) for name, dtype in inputs.items()}
    out = pointer("out", output)

    def inner(tx: tirx.Var) -> Any:
        loads = [tirx.BufferLoad(view(data, inputs[name], count), [tx]) for name, data in arguments.items()]
        return body(tx, loads, view(out, output, count))

    return vector_kernel("map", [*arguments.values(), out], lambda _: simt_block(count, inner))


def registers(
    inputs: Mapping[str, str], output: str, function: Callable[..., Any], store: str | None = None, lanes: int | None = None
) -> Any:
    """A SIMD kernel ``map``: one 256-byte register of each input goes through ``function``, the result to ``out``.

    Args:
        inputs: name to TIR element dtype; each argument holds 256 bytes.
        output: element dtype of the result register and of ``out``.
        function: makes the TIR expression of the result register from one loaded register each.
        store: distribution of the store, NORM of the element width by default.
        lanes: elements written to ``out``, all of the register by default.
    """
    arena = tirx.decl_buffer((4096,), "uint8", name="arena", scope="shared.dyn")
    arguments = {name: pointer(name, dtype) for name, dtype in inputs.items()}
    out = pointer("out", output)
    bits, dtype_bytes = tvm.DataType(output).bits, tvm.DataType(output).bits // 8
    count = lanes or 256 // dtype_bytes

    def ub(slot: int, dtype: str, extent: int, mask: int) -> Any:
        return access(arena.data, dtype, slot * 256 // (tvm.DataType(dtype).bits // 8), extent, mask)

    def flag(verb: str, event: str) -> Any:
        return tirx.Evaluate(op(f"tl.ascend_{verb}_flag", "handle", event, 0))

    copies = [
        tirx.Evaluate(
            op(
                "tl.ascend_copy_gm_to_ubuf",
                "handle",
                ub(slot, dtype, 64, 2),
                access(arguments[name], dtype, 0, 64, 1),
                0,
                1,
                256,
                0,
                0,
                0,
                0,
                256,
                256,
            )
        )
        for slot, (name, dtype) in enumerate(inputs.items())
    ]
    loads, bound = [], []
    for slot, (name, dtype) in enumerate(inputs.items()):
        width = 256 // (tvm.DataType(dtype).bits // 8)
        register = tirx.Var(f"{name}_register", f"{dtype}x{width}")
        loads.append(tirx.Bind(register, op("tl.simd.vld", f"{dtype}x{width}", ub(slot, dtype, width, 1), "NORM")))
        bound.append(register)
    result = function(*bound)
    mask = op("tl.simd.pset", "boolx256", bits, "PAT_ALL")
    written = tirx.Evaluate(op("tl.simd.vsts", "handle", ub(8, output, count, 2), result, mask, store or f"NORM_B{bits}"))
    size = count * dtype_bytes
    back = op("tl.ascend_copy_ubuf_to_gm", "handle", access(out, output, 0, count, 2), ub(8, output, count, 1), 0, 1, size, 4, size, size)
    body = sequence(
        tirx.AllocBuffer(arena),
        *copies,
        flag("set", "MTE2_V"),
        flag("wait", "MTE2_V"),
        simd_block(*loads, written),
        flag("set", "V_MTE3"),
        flag("wait", "V_MTE3"),
        tirx.Evaluate(back),
    )
    return vector_kernel("map", [*arguments.values(), out], lambda _: body)
