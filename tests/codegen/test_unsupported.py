"""What has no rule is refused with one exception that says what, where and what instead. Nothing is emitted."""

from __future__ import annotations

import pytest
from tir_builder import (
    access,
    elementwise,
    immediate,
    op,
    pointer,
    sequence,
    simd_block,
    simt_block,
    thread_extent,
    vector_kernel,
    view,
)
from tvm import tirx

import tilelang_pto
from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of


def ub(name: str = "ub", dtype: str = "float32", count: int = 256) -> tirx.Buffer:
    return tirx.decl_buffer((count,), dtype, name=name, scope="shared.dyn")


def scalar_statement(*statements, params=()):
    return vector_kernel("kernel", params, lambda _: sequence(*statements))


def evaluate(call) -> tirx.Evaluate:
    return tirx.Evaluate(call)


def store_register(buffer, value, mask_bits=32):
    mask = op("tl.simd.pset", "boolx256", mask_bits, "PAT_ALL")
    target = access(buffer.data, "float32", 0, 64)
    return evaluate(op("tl.simd.vsts", "handle", target, value, mask, "NORM_B32"))


def register_kernel(value):
    buffer = ub()
    return scalar_statement(tirx.AllocBuffer(buffer), simd_block(store_register(buffer, value)))


def load(dist="NORM", dtype="float32x64"):
    buffer = ub("source")
    return buffer, op("tl.simd.vld", dtype, access(buffer.data, "float32", 0, 64), dist)


def with_loaded(make):
    buffer, loaded = load()
    target = ub("target")
    return scalar_statement(tirx.AllocBuffer(buffer), tirx.AllocBuffer(target), simd_block(store_register(target, make(loaded))))


def full_mask(bits=32):
    return op("tl.simd.pset", "boolx256", bits, "PAT_ALL")


N = tirx.Var("n", "int32")


def annotated(call, **annotations):
    return tirx.Call(call.dtype, call.op, list(call.args), {key: immediate(value) for key, value in annotations.items()})


def offset_kernel(**layout):
    out = pointer("out", "int32")
    buffer = tirx.decl_buffer((8,), "int32", data=out, name="shifted", **layout)
    return scalar_statement(tirx.BufferStore(buffer, immediate(1), [immediate(0)]), params=[out])


def loop(kind):
    return tirx.For(tirx.Var("i", "int32"), immediate(0), immediate(4), kind, evaluate(immediate(0)))


def nested_branches(depth: int):
    body = evaluate(op("tl.ascend_set_flag", "handle", "V_MTE3", 0))
    for level in range(depth):
        body = tirx.IfThenElse(level < N, body, None)
    return body


def chain(value, length: int):
    for number in range(length):
        value = tirx.Add(value, tirx.IntImm("int32", number + 1))
    return value


def two_dimensional_reduce():
    out = pointer("out", "float32")
    reduced = tirx.call_extern("float32", "tl::AscendAllReduce<tl::SumOp, 32, 1, 0>::run", tirx.FloatImm("float32", 1.0))
    store = tirx.BufferStore(view(out, "float32"), reduced, [immediate(0)])
    inner = thread_extent("threadIdx.y", "ty", 2, lambda _: thread_extent("threadIdx.z", "tz", 1, lambda _: store))
    block = tirx.SBlock([], [], [], "SIMT_VF", thread_extent("threadIdx.x", "tx", 32, lambda _: inner))
    return vector_kernel("kernel", [out], lambda _: block)


CASES = {
    "unknown operation": (
        lambda: scalar_statement(evaluate(op("tl.tma_load", "handle"))),
        ["operation tl.tma_load has no rule", "coverage"],
    ),
    "unknown external function": (
        lambda: elementwise({"a": "float32"}, "float32", 4, lambda a: tirx.call_pure_extern("float32", "erfcinvf", a)),
        ["external function erfcinvf"],
    ),
    "wrong number of arguments": (
        lambda: scalar_statement(evaluate(op("tl.ascend_pipe_barrier", "handle", "PIPE_ALL", 1))),
        ["has 2 arguments; the rule knows 1"],
    ),
    "dtype": (
        lambda: elementwise({"a": "float64"}, "float64", 4, lambda a: a),
        ["parameter a: elements of dtype float64", "float32"],
    ),
    "scope shared.weird": (
        lambda: scalar_statement(tirx.AllocBuffer(tirx.decl_buffer((64,), "float32", name="tile", scope="shared.weird"))),
        ["memory scope shared.weird has no rule", "T.alloc_shared", "T.alloc_l1"],
    ),
    "static shared memory": (
        lambda: scalar_statement(tirx.AllocBuffer(tirx.decl_buffer((64,), "float32", name="tile", scope="shared"))),
        ["memory scope shared has no rule"],
    ),
    "event pipes": (
        lambda: scalar_statement(evaluate(op("tl.ascend_set_flag", "handle", "V_V", 0))),
        ["event V_V", "two different pipes"],
    ),
    "event id": (
        lambda: scalar_statement(evaluate(op("tl.ascend_set_flag", "handle", "V_MTE3", 8))),
        ["event id 8", "0 to 7"],
    ),
    "threads outside a vector function": (
        lambda: vector_kernel("kernel", (), lambda _: thread_extent("threadIdx.x", "tx", 32, lambda tx: evaluate(tx))),
        ["threadIdx.x is used outside", "T.SimtVF"],
    ),
    "launch dimension": (
        lambda: vector_kernel("kernel", (), lambda _: thread_extent("blockIdx.y", "by", 2, lambda by: evaluate(by))),
        ["launch dimension blockIdx.y"],
    ),
    "too many threads": (
        lambda: vector_kernel("kernel", (), lambda _: simt_block(4096, evaluate)),
        ["4096", "2048"],
    ),
    "merging mode": (
        lambda: with_loaded(lambda x: op("tl.simd.vadds", "float32x64", x, tirx.FloatImm("float32", 1.0), full_mask(), "MODE_MERGING")),
        ["MODE_MERGING", "vsel"],
    ),
    "lane type": (
        lambda: with_loaded(lambda x: op("tl.simd.vexp", "int32x64", op("tirx.reinterpret", "int32x64", x), full_mask(), "MODE_ZEROING")),
        ["vexp on vreg(64 x i32)", "f32"],
    ),
    "conversion": (
        lambda: with_loaded(lambda x: op("tl.simd.vcvt", "uint8x256", x, full_mask(), "ROUND_R", "RS_ENABLE", "PART_P0", "MODE_ZEROING")),
        ["vcvt from f32 to ui8"],
    ),
    "load distribution": (
        lambda: register_kernel(load("SPLT4CHN")[1]),
        ["SPLT4CHN as argument dist of tl.simd.vld", "NORM"],
    ),
    "register that is none": (
        lambda: register_kernel(load("NORM", "float32x16")[1]),
        ["float32x16", "256-byte"],
    ),
    "predicate pattern": (
        lambda: with_loaded(lambda x: op("tl.simd.vabs", "float32x64", x, op("tl.simd.pset", "boolx256", 32, "PAT_VL7"), "MODE_ZEROING")),
        ["PAT_VL7 as argument pattern of tl.simd.pset", "PAT_VL8"],
    ),
    "shift": (
        lambda: elementwise({"a": "int32"}, "int32", 4, lambda a: op("tirx.shift_right", "int32", a, 32)),
        ["shift of a 32-bit value by 32", "0 to 31"],
    ),
    "integer math": (
        lambda: elementwise({"a": "int32"}, "int32", 4, lambda a: op("tirx.exp", "int32", a)),
        ["exp of a i32 value", "float32"],
    ),
    "short vectors in a SIMD vector function": (
        lambda: scalar_statement(simd_block(tirx.Bind(tirx.Var("v", "float32x4"), tirx.Broadcast(tirx.FloatImm("float32", 1.0), 4)))),
        ["Broadcast of float32x4", "T.simd"],
    ),
    "vector operation in the kernel body": (
        lambda: scalar_statement(evaluate(full_mask())),
        ["tl.simd.pset outside a vector function", "inside T.SimdVF"],
    ),
    "flag in a vector function": (
        lambda: scalar_statement(simd_block(evaluate(op("tl.ascend_set_flag", "handle", "V_MTE3", 0)))),
        ["inside a SIMD vector function", "in front of or behind"],
    ),
    "vector operation among threads": (
        lambda: vector_kernel("kernel", (), lambda _: simt_block(32, lambda tx: evaluate(full_mask()))),
        ["inside a SIMT vector function", "inside T.SimdVF"],
    ),
    "nested vector functions": (
        lambda: scalar_statement(simd_block(simd_block(evaluate(immediate(0))))),
        ["a vector function inside a vector function"],
    ),
    "memory barrier": (
        lambda: scalar_statement(simd_block(evaluate(op("tl.simd.mem_bar", "handle", "VLD_VLD")))),
        ["VLD_VLD as argument kind of tl.simd.mem_bar", "VST_VLD"],
    ),
    "precision": (
        lambda: with_loaded(lambda x: annotated(op("tl.simd.vexp", "float32x64", x, full_mask(), "MODE_ZEROING"), precision=1)),
        ["precision 1 of vexp"],
    ),
    "unknown annotation": (
        lambda: with_loaded(lambda x: annotated(op("tl.simd.vabs", "float32x64", x, full_mask(), "MODE_ZEROING"), flavour=1)),
        ["annotation flavour of operation tl.simd.vabs"],
    ),
    "registers of different types": (
        lambda: with_loaded(
            lambda x: op("tl.simd.vadd", "float32x64", x, op("tirx.reinterpret", "int32x64", x), full_mask(), "MODE_ZEROING")
        ),
        ["vadd of vreg(64 x f32) and vreg(64 x i32)"],
    ),
    "distribution of another width": (
        lambda: register_kernel(load("BRC_B16")[1]),
        ["BRC_B16 into vreg(64 x f32)"],
    ),
    "UB capacity": (
        lambda: scalar_statement(tirx.AllocBuffer(ub("big", "uint8", 300_000))),
        [
            "300000 bytes of UB are required and 253952 are available, 8192 more are kept for calls of vector functions and the runtime",
            "(big 300000)",
            "smaller tiles or fewer buffer versions; big takes most",
        ],
    ),
    "offset of a view": (
        lambda: offset_kernel(elem_offset=4),
        ["element offset 4"],
    ),
    "strides of a view": (
        lambda: offset_kernel(strides=[2]),
        ["strides 2"],
    ),
    "loop kind": (
        lambda: scalar_statement(loop(tirx.ForKind.VECTORIZED)),
        ["loop of kind VECTORIZED", "T.serial"],
    ),
    "deep nesting": (
        lambda: vector_kernel("kernel", (N,), lambda _: nested_branches(12)),
        ["nested", "blocks deep", "merge nested conditions"],
    ),
    "long expression": (
        lambda: elementwise({"a": "int32"}, "int32", 4, lambda a: chain(a, 1200)),
        ["nested too deeply"],
    ),
    "threads in y": (
        two_dimensional_reduce,
        ["all-reduce in groups of 32 of (32, 2, 1) threads"],
    ),
    "call of another function": (
        lambda: scalar_statement(evaluate(tirx.Call("int32", __import__("tvm").ir.GlobalVar("helper"), []))),
        ["operation helper has no rule"],
    ),
    "all-reduce kind": (
        lambda: elementwise(
            {"a": "float32"}, "float32", 32, lambda a: tirx.call_extern("float32", "tl::AscendAllReduce<tl::BitOrOp, 32, 1, 0>::run", a)
        ),
        ["all-reduce with BitOr", "Sum"],
    ),
    "all-reduce without workspace": (
        lambda: elementwise(
            {"a": "float32"}, "float32", 64, lambda a: tirx.call_extern("float32", "tl::AscendAllReduce<tl::SumOp, 64, 1, 0>::run", a)
        ),
        ["without a workspace"],
    ),
}


@pytest.mark.parametrize("surface", ["2026-08", "2026-09"])
@pytest.mark.parametrize("name", CASES)
def test_refused(name, surface):
    make, fragments = CASES[name]
    with pytest.raises(tilelang_pto.UnsupportedError) as caught:
        emit_module(make(), surface=surface_of(surface))
    message = str(caught.value)
    for fragment in fragments:
        assert fragment in message
    assert "kernel " in message


def test_conversion_in_the_kernel_body_of_august():
    """PTODSL of August 2026 converts between integers and floats in SIMT code only."""
    n, out = tirx.Var("n", "int32"), pointer("out", "float32")
    store = tirx.BufferStore(view(out, "float32"), tirx.Cast("float32", n), [immediate(0)])
    mod = vector_kernel("kernel", [out, n], lambda _: store)
    with pytest.raises(tilelang_pto.UnsupportedError, match=r"conversion from int32 to float32 in the kernel body[\s\S]*T\.SimtVF"):
        emit_module(mod, surface=surface_of("2026-08"))
    assert "pto.cast(n, pto.f32)" in emit_module(mod, surface=surface_of("2026-09")).text


def test_message_names_kernel_and_tir_line():
    mod = elementwise({"a": "int32"}, "int32", 4, lambda a: op("tirx.shift_left", "int32", a, 40))
    with pytest.raises(tilelang_pto.UnsupportedError) as caught:
        emit_module(mod, surface=surface_of("2026-09"))
    assert caught.value.where[0] == "kernel map"
    assert caught.value.where[1].startswith("TIR: out")
    assert "shift_left" in caught.value.where[1]


def test_reading_an_unwritten_register():
    buffer = ub()
    register = tirx.decl_buffer((1,), "float32x64", name="acc", scope="local.var")
    body = simd_block(tirx.AllocBuffer(register), store_register(buffer, tirx.BufferLoad(register, [immediate(0)])))
    with pytest.raises(tilelang_pto.UnsupportedError, match=r"acc.* is read before it is written"):
        emit_module(scalar_statement(tirx.AllocBuffer(buffer), body), surface=surface_of("2026-09"))


def test_register_that_leaves_a_vector_function():
    counter = tirx.decl_buffer((1,), "int32", name="counter", scope="local.var")
    out = pointer("out", "int32")
    body = sequence(
        tirx.AllocBuffer(counter),
        simd_block(tirx.BufferStore(counter, immediate(5), [immediate(0)])),
        tirx.BufferStore(view(out, "int32"), tirx.BufferLoad(counter, [immediate(0)]), [immediate(0)]),
    )
    with pytest.raises(tilelang_pto.UnsupportedError, match="counter is written inside a vector function and read after it"):
        emit_module(scalar_statement(body, params=[out]), surface=surface_of("2026-09"))
