"""One parameter list per kernel: host calls are matched to device functions by variable."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import tirx
from tvm.ir import PointerType, PrimType

from tilelang_pto import AbiError
from tilelang_pto.runtime.abi import AbiParameter, KernelAbi, c_layout, c_type, kernel_abi, reconcile, require_called, require_same

SCALARS = ("int32", "int64", "float32", "uint32", "int8", "bfloat16")
ELEMENTS = ("float32", "bfloat16", "int8", "int64", "float8_e4m3fn", "bool", "float4_e2m1fnx2")


def variable(parameter: AbiParameter) -> tirx.Var:
    if parameter.kind == "pointer":
        return tirx.Var(parameter.name, PointerType(PrimType(parameter.dtype), "global"))
    return tirx.Var(parameter.name, parameter.dtype)


def device(abi: KernelAbi) -> tirx.PrimFunc:
    function = tirx.PrimFunc([variable(parameter) for parameter in abi.parameters], tirx.Evaluate(0))
    constant = [i for i, parameter in enumerate(abi.parameters) if parameter.constant]
    return function.with_attr({"tirx.kernel_launch_params": list(abi.launch), "tl.readonly_param_indices": constant})


def host(*calls: tuple[str, list]) -> tirx.PrimFunc:
    made = [tirx.Evaluate(tirx.call_packed(name, *arguments)) for name, arguments in calls]
    return tirx.PrimFunc([], made[0] if len(made) == 1 else tirx.SeqStmt(made))


def passed(abi: KernelAbi) -> list:
    """Variables of the host by the same names, a grid, and extents."""
    extents = [tirx.const(64, "int64")] * len(abi.pointers)
    return [*(variable(parameter) for parameter in abi.parameters), *(tirx.const(4, "int32") for _ in abi.launch), *extents]


def pointer(name: str, dtype: str = "float32", constant: bool = False) -> AbiParameter:
    return AbiParameter(name, "pointer", dtype, constant)


def scalar(name: str, dtype: str = "int32") -> AbiParameter:
    return AbiParameter(name, "scalar", dtype)


ABI = KernelAbi("k", (pointer("x", constant=True), pointer("y"), scalar("m"), scalar("n"), scalar("f", "float32")), ("blockIdx.x",))


@st.composite
def signatures(draw, name: str = "k") -> KernelAbi:
    """Parameters of every kind in any order: a scalar may lead, stand in the middle or come last."""
    kinds = draw(st.lists(st.sampled_from([*(("scalar", d) for d in SCALARS), *(("pointer", d) for d in ELEMENTS)]), max_size=8))
    parameters = [AbiParameter(f"v{i}", kind, dtype, kind == "pointer" and draw(st.booleans())) for i, (kind, dtype) in enumerate(kinds)]
    return KernelAbi(name, tuple(draw(st.permutations(parameters))), draw(st.sampled_from([(), ("blockIdx.x",), ("blockIdx.x", "ub")])))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.tuples(signatures("a"), signatures("b"), signatures("c")), st.lists(st.sampled_from("abc"), max_size=4), st.randoms())
def test_calls_are_matched_in_host_order(abis, again, rng):
    kernels = {abi.name: abi for abi in abis}
    order = [*rng.sample("abc", 3), *again]  # every kernel once, some again
    read = {name: kernel_abi(name, device(abi)) for name, abi in kernels.items()}
    assert read == kernels
    calls = reconcile(None, host(*((name, passed(kernels[name])) for name in order)), read)
    assert [call.kernel for call in calls] == order
    for call in calls:
        assert all(argument.variable == parameter.name for parameter, argument in call.bindings)
        assert [name for name, _ in call.launch] == list(kernels[call.kernel].launch)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(signatures(), st.data())
def test_a_lost_or_swapped_argument_is_found(abi, data):
    if not abi.parameters:
        return
    arguments = passed(abi)
    at = data.draw(st.integers(0, len(abi.parameters) - 1))
    short = [*arguments[:at], *arguments[at + 1 :]]
    with pytest.raises(AbiError, match="the host passes"):
        reconcile(None, host(("k", short)), {"k": abi})
    if len(abi.parameters) > 1:
        other = data.draw(st.integers(0, len(abi.parameters) - 1).filter(lambda i: i != at))
        arguments[at], arguments[other] = arguments[other], arguments[at]
        with pytest.raises(AbiError, match="disagree"):
            reconcile(None, host(("k", arguments)), {"k": abi})


def test_constants_may_be_folded_on_the_host_side():
    arguments = passed(ABI)
    arguments[2], arguments[4] = tirx.const(3, "int32"), tirx.const(0.5, "float32")
    (call,) = reconcile(None, host(("k", arguments)), {"k": ABI})
    assert [argument.variable for _, argument in call.bindings] == ["x", "y", "", "n", ""]
    arguments[2] = tirx.const(3, "int64")
    with pytest.raises(AbiError, match=r"parameter m is int32, the host passes .*3.* of type int64"):
        reconcile(None, host(("k", arguments)), {"k": ABI})


def test_the_message_shows_three_columns():
    wider = dataclasses.replace(ABI, parameters=(*ABI.parameters, scalar("extra", "int64")))
    x = tirx.Var("x_handle", "handle")
    source = tirx.PrimFunc([x], tirx.Evaluate(0), buffer_map={x: tirx.decl_buffer((tirx.Var("m", "int32"), 8), "float32", name="x")})
    with pytest.raises(AbiError) as caught:
        reconcile(source, host(("k", passed(ABI))), {"k": wider})
    text = str(caught.value)
    assert "the host passes 5 arguments, the kernel has 6 parameters" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["kernel", "as", "written", "host", "call", "device", "function"] in lines
    assert ["x_handle:", "float32[m,", "8]", "x:", "handle", "x:", "const", "float32*"] in lines
    assert ["m:", "extent", "of", "x_handle", "m:", "int32", "m:", "int32"] in lines
    assert ["-", "-", "extra:", "int64"] in lines
    assert "the host does not pass extra" in text
    assert "kernel k" in text


def test_a_pointer_is_no_scalar():
    arguments = passed(ABI)
    arguments[1] = tirx.const(0, "int64")
    with pytest.raises(AbiError, match="parameter y is a pointer, the host passes"):
        reconcile(None, host(("k", arguments)), {"k": ABI})


def test_every_device_function_is_launched():
    require_called({"a": 0, "b": 0}, ["b", "a", "b"])
    with pytest.raises(AbiError, match="the host never launches a, c"):
        require_called(["c", "a", "b"], ["b"])


def test_text_and_function_must_have_the_same_parameters():
    require_same(ABI, [(parameter.name, parameter.kind, parameter.dtype) for parameter in ABI.parameters])
    with pytest.raises(AbiError, match=r"the text has \(x: float32\*\)"):
        require_same(ABI, [("x", "pointer", "float32")])


def test_two_parameters_of_one_name_are_refused():
    twins = tirx.PrimFunc([tirx.Var("n", "int32"), tirx.Var("n", "int32")], tirx.Evaluate(0))
    with pytest.raises(AbiError, match="several parameters have the name n"):
        kernel_abi("k", twins)
    with pytest.raises(AbiError, match="pointer to elements of no known dtype"):
        kernel_abi("k", tirx.PrimFunc([tirx.Var("p", "handle")], tirx.Evaluate(0)))


@pytest.mark.parametrize(
    ("parameter", "type", "size"),
    [
        (pointer("x"), "float*", 8),
        (pointer("x", "int64", constant=True), "const int64_t*", 8),
        *((pointer("x", dtype), "void*", 8) for dtype in ("bfloat16", "float16", "bool", "float8_e4m3fn", "float4_e2m1fnx2")),
        (scalar("n", "bool"), "uint8_t", 1),
        (scalar("n", "bfloat16"), "uint16_t", 2),
        (scalar("n", "float16"), "uint16_t", 2),
        (scalar("n", "float32"), "float", 4),
        (scalar("n", "uint64"), "uint64_t", 8),
    ],
    ids=str,
)
def test_c_types(parameter, type, size):
    assert c_type(parameter) == (type, size)


def test_a_scalar_without_c_type_is_refused():
    with pytest.raises(AbiError, match="scalar parameter n of dtype float8_e4m3fn cannot be passed"):
        c_type(scalar("n", "float8_e4m3fn"))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(signatures())
def test_the_pack_is_naturally_aligned(abi):
    fields, size = c_layout(abi)
    assert len({field.name for field in fields}) == len(abi.parameters)
    end = 0
    for field in fields:
        assert field.offset % field.size == 0
        assert end <= field.offset < end + field.size
        end = field.offset + field.size
    assert size % 8 == 0
    assert end <= size < end + 8


def test_names_that_cpp_does_not_allow_are_replaced():
    names = ["class", "_", "__x", "x-y", "x_y", "2d", "stream", "täg"]
    random.Random(0).shuffle(names)
    fields, _ = c_layout(KernelAbi("k", tuple(scalar(name) for name in names), ()))
    made = {parameter: field.name for parameter, field in zip(names, fields, strict=True)}
    assert made["class"] == "class_"
    assert made["2d"] == "p2d_"
    assert {made["x-y"], made["x_y"]} == {"x_y_", "x_y_2"}
    assert len(set(made.values())) == len(names)
    assert all(name.isascii() and name.isidentifier() and not name.startswith("_") and "__" not in name for name in made.values())
