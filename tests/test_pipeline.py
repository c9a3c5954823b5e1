"""The pipeline: device functions kept whole, extents on device calls, host checks fitted to the device."""

from __future__ import annotations

import pytest
import tvm
from simple_kernels import copy_twice, strided_scale, vector_add
from tilelang.backend.module import create_backend_context
from tilelang.engine.lower import _prepare_device_codegen_mod, lower_to_host_device_ir
from tilelang.jit.abi import prepare_tvm_ffi_callee_allocated_outputs
from tvm import tirx

from tilelang_pto import UnsupportedError, host, pipeline, pto_target
from tilelang_pto.lowering import lower_function
from tilelang_pto.target import FEATURE


def device_calls(mod) -> list[tirx.Call]:
    calls = []

    def visit(node):
        if isinstance(node, tirx.Call) and getattr(node.op, "name", "") == "tirx.tvm_call_packed" and "_kernel" in node.args[0].value:
            calls.append(node)

    for func in mod.functions.values():
        tirx.stmt_functor.post_order_visit(func.body, visit)
    return sorted(calls, key=lambda call: call.args[0].value)


def evaluate(expr, **values) -> int:
    """The value of a host expression for given values of its variables."""
    bound = {}

    def visit(node):
        if isinstance(node, tirx.Var):
            bound[node] = tirx.const(values[node.name], node.dtype)

    tirx.stmt_functor.post_order_visit(expr, visit)
    return int(tvm.arith.Analyzer().simplify(tirx.stmt_functor.substitute(expr, bound)))


def test_device_functions_survive_unchanged():
    lowered = lower_function(vector_add())
    kept = pipeline.stashed_functions(lowered.device)
    assert list(kept) == ["add_kernel"]
    later = _prepare_device_codegen_mod(lowered.device)
    again = pipeline.stashed_functions(later)["add_kernel"]
    assert tvm.ir.structural_equal(kept["add_kernel"], again)
    assert "//" in again.script(), "floor division is still there"
    without = lowered.device["add_kernel"].without_attr(pipeline.DEVICE_TIR)
    assert tvm.ir.structural_equal(kept["add_kernel"], without)


def test_same_device_code_as_ascend():
    """The passes are TileLang's: apart from the target the device function is that of ``target="ascend"``."""
    context = create_backend_context("ascend", "c")
    with tvm.transform.PassContext(opt_level=3), context.target:
        _, ascend, *_ = lower_to_host_device_ir(vector_add(), context)
    ours = pipeline.stashed_module(lower_function(vector_add()).device)
    assert tvm.ir.structural_equal(ascend["add_kernel"].body, ours["add_kernel"].body, map_free_vars=True)


def test_stash_prints_and_round_trips():
    device = lower_function(vector_add()).device
    assert device.script()
    assert tvm.ir.structural_equal(tvm.ir.load_json(tvm.ir.save_json(device)), device)


def test_a_function_of_another_pipeline_is_refused():
    context = create_backend_context("ascend", "c")
    with tvm.transform.PassContext(opt_level=3), context.target:
        _, device, *_ = lower_to_host_device_ir(vector_add(), context)
    with pytest.raises(UnsupportedError, match="add_kernel"):
        pipeline.stashed_module(device)


@pytest.mark.parametrize("rows", [0, 1, 7, 1 << 26])
@pytest.mark.parametrize(("dtype", "row_bytes"), [("float32", 256), ("bfloat16", 128), ("int8", 64)])
def test_extents_of_compact_tensors(rows, dtype, row_bytes):
    (call,) = device_calls(lower_function(vector_add(dtype=dtype)).host)
    extents = call.args[-3:]
    assert [extent.dtype for extent in extents] == ["int64"] * 3
    assert [evaluate(extent, rows=rows) for extent in extents] == [rows * row_bytes] * 3


def test_extents_follow_launch_parameters():
    lowered = lower_function(strided_scale())
    (call,) = device_calls(lowered.host)
    parameters = [parameter.name for parameter in lowered.device["scale_kernel"].params]
    assert parameters == ["b", "c", "factor", "rows", "stride"]
    assert pipeline.signatures(lowered.device)["scale_kernel"].launch == ("blockIdx.x",)
    assert len(call.args) == 1 + len(parameters) + 1 + 2
    assert int(call.args[1 + len(parameters)]) == 4


@pytest.mark.parametrize(("rows", "stride", "elements"), [(0, 70, 0), (1, 70, 64), (3, 70, 204), (3, 64, 192)])
def test_extents_of_strided_tensors(rows, stride, elements):
    (call,) = device_calls(lower_function(strided_scale()).host)
    assert evaluate(call.args[-2], rows=rows, stride=stride) == elements * 4
    assert evaluate(call.args[-1], rows=rows, stride=stride) == rows * 64 * 4


def buffer(shape, dtype="float32", strides=None, elem_offset=0):
    return tirx.decl_buffer(shape, dtype, strides=strides, elem_offset=elem_offset)


@pytest.mark.parametrize(
    ("declared", "size"),
    [
        (buffer((4, 6)), 96),
        (buffer((), "int32"), 4),
        (buffer((3, 5), "float4_e2m1fn"), 8),
        (buffer((4, 6), "bool"), 24),
        (buffer((4, 6), strides=(10, 1)), (3 * 10 + 5 + 1) * 4),
        (buffer((4, 0), strides=(10, 1)), 0),
        (buffer((4, 6), strides=(1, 4)), 96),
        (buffer((4, 6), elem_offset=tirx.Var("offset", "int32")), -1),
    ],
)
def test_extent_bytes(declared, size):
    assert int(host.extent_bytes(declared)) == size


def test_several_device_functions_and_workspace():
    lowered = lower_function(copy_twice())
    assert list(pipeline.stashed_functions(lowered.device)) == ["two_kernel", "two_kernel_1"]
    for call in device_calls(lowered.host):
        assert [int(extent) for extent in call.args[-2:]] == [1024, 1024]


def with_outputs(func, device: str):
    func, _ = prepare_tvm_ffi_callee_allocated_outputs(func, [2], supports_callee_allocated_outputs=True)
    return lower_function(func, target=pto_target_for(device)).host


def pto_target_for(device: str):
    return tvm.target.Target({"kind": "ascend", "keys": ["pto", "ascend"], FEATURE: f"device={device}"})


def test_the_simulator_takes_cpu_tensors():
    text = with_outputs(vector_add(), "sim").script()
    assert "ext_dev" not in text
    assert "expected cpu" in text
    assert "__tvm_set_device" not in text
    assert ', 0, 10, "int32") == 12' not in text
    assert "0, 10, 12)" not in text
    assert '"device_type", 12' not in text


def test_an_npu_takes_its_own_tensors_only():
    text = with_outputs(vector_add(), "npu").script()
    assert "is on the wrong device: expected ext_dev, got {device}" in text
    assert "__tvm_set_device" not in text
    assert 'T.call_packed("tilelang_pto.npu_enter", "add", T.Cast("int64", dev_id))' in text
    assert text.count("tilelang_pto.npu_leave") == 1
    assert ', 0, 10, "int32") == 1)' not in text
    assert "0, 10, 12)" in text


def test_workspaces_of_an_npu_are_not_tvms():
    on_npu = lower_function(copy_twice(), target=pto_target_for("npu")).host.script()
    on_simulator = lower_function(copy_twice(), target=pto_target_for("sim")).host.script()
    assert on_npu.count('T.call_packed("tilelang_pto.npu_workspace", T.int64(1024), ') == 1
    assert "alloc_buffer" not in on_npu
    assert "npu_" not in on_simulator
    assert on_simulator.count("alloc_buffer") == 1


def test_checks_say_what_is_expected():
    text = lower_function(vector_add()).host.script()
    assert "violates packed ABI constraint" not in text
    assert "kernel add: argument a has shape[1] = {number}, expected 64" in text
    assert "kernel add: argument b has shape[0] = {number}, expected {number} (a.shape[0])" in text
    assert "kernel add: argument c has strides[0] = {number}, expected 64" in text


@pytest.mark.parametrize("device", ["sim", "npu"])
@pytest.mark.parametrize("make", [vector_add, strided_scale, copy_twice, lambda: with_outputs(vector_add(), "sim")])
def test_no_check_prints_swapped_or_garbage_numbers(make, device):
    """TileLang's C code adds two numbers to the message of every equality that is still an assertion."""
    made = make()
    host_module = made if isinstance(made, tvm.IRModule) else lower_function(made, target=pto_target_for(device)).host
    left = []

    def visit(node):
        if isinstance(node, tirx.AssertStmt) and isinstance(node.condition, tirx.EQ):
            left.append(node)

    for func in host_module.functions.values():
        tirx.stmt_functor.post_order_visit(func.body, visit)
    assert left == []


def test_a_pto_target_is_what_the_default_lowering_uses():
    assert str(lower_function(vector_add()).target.attrs[FEATURE]) == str(pto_target().attrs[FEATURE])
