"""The native module of kind "pto": calls, checks of arguments, saving, errors."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
import tvm_ffi

from tilelang_pto import ConfigurationError, RuntimeModuleError, SimulationError
from tilelang_pto.runtime.abi import AbiParameter, KernelAbi
from tilelang_pto.runtime.module import create_module
from tilelang_pto.runtime.native_errors import parse_error

TEXT = '''"""Adds a number to the first element of each block's row of 8."""
from ptodsl import pto


@pto.jit(name="bump", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def bump(x: pto.ptr(pto.f32, "gm"), n: pto.i32, by: pto.f32):
    block = pto.get_block_idx()
    offset = pto.cast(block, pto.i64) * 8
    pto.store(pto.load(x, offset) + by, x, offset)
'''


def parameter(name: str, kind: str, dtype: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, kind=kind, dtype=dtype)


PARAMETERS = (parameter("x", "pointer", "float32"), parameter("n", "scalar", "int32"), parameter("by", "scalar", "float32"))
LAUNCH = ("blockIdx.x", "tirx.use_dyn_shared_memory")


def make(
    parameters=PARAMETERS, launch=LAUNCH, device: str = "sim", name: str = "bump", kernel: str = "bump", text: str = TEXT
) -> tvm_ffi.Module:
    emitted = SimpleNamespace(text=text, kernels=(SimpleNamespace(name=name, kernel_kind="vector", parameters=parameters),))
    signature = tuple(AbiParameter(item.name, item.kind, item.dtype) for item in parameters)
    return create_module(emitted, {kernel: KernelAbi(kernel, signature, launch)}, device=device, surface="2026-09")


@pytest.fixture(scope="module")
def module() -> tvm_ffi.Module:
    return make()


def test_a_call_runs_every_block(module):
    x = torch.arange(32, dtype=torch.float32)
    expected = x.clone()
    expected[::8] += 2.5
    module["bump"](x, 3, 2.5, 4, 256, 128)
    assert torch.equal(x, expected)


def test_integers_are_taken_for_floats(module):
    x = torch.zeros(8)
    module["bump"](x, True, 2, 1, 0, 32)
    assert x[0] == 2


def test_nothing_to_do(module):
    module["bump"](None, 0, 1.0, 0, 0, 0)
    x = torch.zeros(8)
    module["bump"](x, 0, 1.0, 0, 0, 32)
    assert x[0] == 0


def test_unknown_extent_is_allowed(module):
    x = torch.zeros(8)
    module["bump"](x, 0, 1.0, 1, 0, -1)
    assert x[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expected 6 arguments, got 0"),
        (("x", 0, 1.0, 1, 0), "expected 6 arguments, got 5"),
        (("x", 0, 1.0, 1, 0, 32, 1), "expected 6 arguments, got 7"),
        ((5, 0, 1.0, 1, 0, 32), "argument x must be a pointer"),
        (("x", 1.5, 1.0, 1, 0, 32), "argument n must be an integer"),
        (("x", 1 << 32, 1.0, 1, 0, 32), "argument n = 4294967296 does not fit i32"),
        (("x", -(1 << 31) - 1, 1.0, 1, 0, 32), "does not fit i32"),
        (("x", 0, None, 1, 0, 32), "argument by must be a number"),
        (("x", 0, 1.0, -1, 0, 32), "blockIdx.x is negative: -1"),
        (("x", 0, 1.0, 65536, 0, 32), r"launch parameter blockIdx\.x = 65536 is too large: a launch has at most 65535 blocks"),
        (("x", 0, 1.0, 1 << 62, 0, 32), r"launch parameter blockIdx\.x = 4611686018427387904 is too large"),
        (("x", 0, 1.0, None, 0, 32), r"argument blockIdx\.x must be an integer, not None"),
        (("x", 0, 1.0, 1, -1, 32), "is negative"),
        (("x", 0, 1.0, 1, 1 << 20, 32), "bytes of unified buffer"),
        (("x", 0, 1.0, 1, 0, -2), "negative extent -2"),
        ((None, 0, 1.0, 1, 0, 32), "argument x is a null pointer"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(module, arguments, message):
    x = torch.zeros(8)
    with pytest.raises(RuntimeModuleError, match=message) as caught:
        module["bump"](*[x if value == "x" and isinstance(value, str) else value for value in arguments])
    assert caught.value.where == ("kernel bump",)
    assert not x.any()


def test_an_access_out_of_bounds_says_where(module):
    x = torch.zeros(8)
    with pytest.raises(SimulationError) as caught:
        module["bump"](x, 0, 1.0, 2, 0, 32)
    places = caught.value.where
    assert "kernel bump" in places
    at = next(number for number, place in enumerate(places) if "bump.pto.py:9" in place)
    assert places[at + 1] == "pto.store(pto.load(x, offset) + by, x, offset)"
    assert "of tensor x, which has 32 bytes" in caught.value.what
    assert x[0] in (0, 1)


@pytest.mark.parametrize("threads", ["1", "2", "0", ""])
def test_threads(module, monkeypatch, threads):
    monkeypatch.setenv("TILELANG_PTO_THREADS", threads)
    x = torch.zeros(8 * 100)
    module["bump"](x, 0, 1.0, 100, 0, 3200)
    assert x.sum() == 100


@pytest.mark.parametrize("threads", ["many", "-1", "2x", "99999"])
def test_bad_number_of_threads(module, monkeypatch, threads):
    monkeypatch.setenv("TILELANG_PTO_THREADS", threads)
    with pytest.raises(ConfigurationError, match="TILELANG_PTO_THREADS"):
        module["bump"](torch.zeros(8), 0, 1.0, 1, 0, 32)


EXP = """from ptodsl import pto

@pto.jit(name="bump", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def bump(x: pto.ptr(pto.f32, "gm"), n: pto.i32, by: pto.f32):
    with pto.simt(64, 1, 1):
        t = pto.get_tid_x()
        pto.store(pto.exp(pto.load(x, t) * by), x, t)
"""


def test_perturbation(monkeypatch):
    """Read at every call: the same kernel, exact and off by what is documented."""
    module = make(text=EXP)
    start = torch.linspace(-3, 3, 64)

    def result(setting: str) -> torch.Tensor:
        monkeypatch.setenv("TILELANG_PTO_ULP", setting)
        x = start.clone()
        module["bump"](x, 0, 1.0, 1, 0, 256)
        return x

    exact = result("exact")
    assert torch.equal(exact, result(""))
    assert torch.equal(result("perturb:1"), result(" perturb:1"))
    for seed in (1, 2):
        assert not torch.equal(result(f"perturb:{seed}"), exact)
        torch.testing.assert_close(result(f"perturb:{seed}"), exact, rtol=2.0**-22, atol=0)
    assert not torch.equal(result("perturb:1"), result("perturb:2"))


@pytest.mark.parametrize("setting", ["perturb", "perturb:", "perturb:x", "exact:1", "perturb:-1", "perturb:" + "9" * 19])
def test_bad_perturbation(module, monkeypatch, setting):
    monkeypatch.setenv("TILELANG_PTO_ULP", setting)
    with pytest.raises(ConfigurationError, match=f"TILELANG_PTO_ULP={setting} is not understood"):
        module["bump"](torch.zeros(8), 0, 1.0, 1, 0, 32)


def test_properties(module):
    assert module.kind == "pto"
    assert module.inspect_source() == TEXT
    assert module.is_runnable()
    assert module.is_binary_serializable()
    assert not module.is_compilation_exportable()
    assert not module.implements_function("other")


def test_the_function_keeps_the_module():
    function = make()["bump"]
    x = torch.zeros(8)
    function(x, 0, 1.0, 1, 0, 32)
    assert x[0] == 1


def test_saved_modules_load_and_bad_bytes_do_not():
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.pto")
    abi = json.dumps({"device": "sim", "kernels": []})
    text = TEXT.encode()
    for data in (
        b"",
        b"PTOM1\n",
        b"PTOM3\n",
        b"PTOM3\n" + (1 << 40).to_bytes(8, "little"),
        b"PTOM3\n" + len(text).to_bytes(8, "little") + text,
    ):
        with pytest.raises(RuntimeModuleError):
            load(data)
    broken = b"PTOM3\n"
    for part in (text, b"not a program", abi.encode(), b""):
        broken += len(part).to_bytes(8, "little") + part
    with pytest.raises(RuntimeModuleError, match="not a valid program"):
        load(broken)


def test_text_and_tir_must_agree():
    with pytest.raises(RuntimeModuleError, match="does not define kernel other"):
        make(name="other", kernel="other")
    with pytest.raises(RuntimeModuleError, match="TIR has 2 parameters and the PTODSL text 3"):
        make(parameters=PARAMETERS[:2])
    with pytest.raises(RuntimeModuleError, match="parameter n is a pointer on one side"):
        make(parameters=(PARAMETERS[0], parameter("n", "pointer", "int32"), PARAMETERS[2]))
    with pytest.raises(RuntimeModuleError, match="not a device function"):
        make(kernel="other")


def test_an_unknown_launch_parameter_is_refused():
    with pytest.raises(RuntimeModuleError, match=r"unknown launch parameter threadIdx\.x"):
        make(launch=("threadIdx.x",))["bump"](torch.zeros(8), 0, 1.0, 1, 32)


def test_errors_keep_their_parts():
    error = SimulationError("out of bounds", where=("kernel k", "k.py:3"), advice="check the mask")
    again = parse_error(SimulationError, str(error))
    assert isinstance(again, SimulationError)
    assert (again.what, again.where, again.advice) == (error.what, error.where, error.advice)


def test_errors_raised_in_python_under_a_native_call_keep_their_type():
    @tvm_ffi.convert
    def fails():
        raise SimulationError("inner", where=("kernel k",))

    with pytest.raises(SimulationError) as caught:
        fails()
    assert caught.value.what == "inner"
    assert caught.value.where == ("kernel k",)
