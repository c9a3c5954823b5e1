"""Kernels through TileLang's own entry points: numbers, outputs, argument errors."""

from __future__ import annotations

import pytest
import tilelang
import torch
from fake_toolchain import FakeToolchain
from simple_kernels import make_add, strided_scale, unused_tensors, vector_add
from tilelang.backend.target import determine_target
from tvm.target import Target

import tilelang_pto
from tilelang_pto import codegen
from tilelang_pto.codegen.surface import check_text, select_surface
from tilelang_pto.target import FEATURE


@pytest.fixture(scope="module")
def add():
    """Arguments in, nothing out."""
    return tilelang.compile(vector_add(), target="pto")


@pytest.fixture(scope="module")
def add_out():
    return make_add()


@pytest.mark.parametrize("rows", [0, 1, 5, 64, 130])
def test_numbers(add, rows):
    a, b, c = torch.randn(rows, 64), torch.randn(rows, 64), torch.full((rows, 64), float("nan"))
    add(a, b, c)
    assert torch.equal(c, a + b)


@pytest.mark.parametrize("rows", [0, 1, 33])
def test_outputs_are_allocated_on_the_cpu(add_out, rows):
    a, b = torch.randn(rows, 64), torch.randn(rows, 64)
    c = add_out(a, b)
    assert c.device.type == "cpu"
    assert c.shape == (rows, 64)
    assert torch.equal(c, a + b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32])
def test_other_types(dtype):
    kernel = make_add(dtype=str(dtype).removeprefix("torch."))
    a, b = torch.arange(640).reshape(10, 64).to(dtype), torch.ones(10, 64, dtype=dtype)
    assert torch.equal(kernel(a, b), a + b)


def test_tensors_the_kernel_does_not_use():
    """They are checked as the others are."""
    kernel = tilelang.compile(unused_tensors(), target="pto")
    a, c = torch.randn(100), torch.zeros(100)
    first, between, last = torch.zeros(100, dtype=torch.int32), torch.zeros(3), torch.zeros(7, dtype=torch.bfloat16)
    kernel(first, a, between, c, last)
    assert torch.equal(a, c)
    with pytest.raises(RuntimeError, match="argument last has shape"):
        kernel(first, a, between, c, last[:6])
    with pytest.raises(RuntimeError, match="argument between"):
        kernel(first, a, between.to(torch.float16), c, last)


def test_strides_and_scalars():
    kernel = tilelang.compile(strided_scale(), out_idx=[2], target="pto")
    wide = torch.randn(9, 80)
    view = wide[:, :64]
    assert torch.equal(kernel(view, 2.0), view * 2.0)
    assert torch.equal(kernel(view, 2), view * 2.0)
    assert torch.equal(kernel(wide[:1, :64], 3.0), view[:1] * 3.0)
    with pytest.raises(RuntimeError, match="kernel scale: argument factor is not a number but a string"):
        kernel(view, "2")


@pytest.mark.parametrize(
    "compile_kernel",
    [
        lambda: tilelang.compile(vector_add(cores=3), target=determine_target("pto", return_object=True)),
        lambda: tilelang.compile(vector_add(cores=3), target={"kind": "ascend", "keys": ["pto", "ascend"]}),
        lambda: compile_in_context(),
    ],
)
def test_ways_to_name_the_target(compile_kernel):
    a, c = torch.randn(7, 64), torch.empty(7, 64)
    compile_kernel()(a, a, c)
    assert torch.equal(c, a + a)


def compile_in_context():
    with determine_target("pto", return_object=True):
        return tilelang.compile(vector_add(cores=3), target="auto")


def test_default_target(monkeypatch):
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "pto")
    a, c = torch.randn(7, 64), torch.empty(7, 64)
    tilelang.compile(vector_add(cores=2))(a, a, c)
    assert torch.equal(c, a + a)


def test_source_is_the_ptodsl_text(add_out):
    source = add_out.get_kernel_source()
    assert "def add_kernel(" in source
    assert "#include" not in source
    assert check_text(source, select_surface()) == []
    assert add_out.kernel_source == source


def tensors(**changes) -> list:
    given = {name: torch.zeros(6, 64) for name in "abc"}
    given.update(changes)
    return list(given.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (tensors(b=torch.zeros(6, 64, dtype=torch.float64)), "argument b has the wrong dtype: expected float32, got float64"),
        (tensors(a=torch.zeros(6, 64, dtype=torch.int32)), "argument a has the wrong dtype: expected float32, got int32"),
        (tensors(b=torch.zeros(6, 65)), r"argument b has shape\[1\] = 65, expected 64"),
        (tensors(b=torch.zeros(7, 64)), r"argument b has shape\[0\] = 7, expected 6 \(a\.shape\[0\]\)"),
        (tensors(c=torch.zeros(64)), "argument c has the wrong number of dimensions: expected 2, got 1"),
        (tensors(c=torch.zeros(64, 6).T), r"argument c has strides\[1\] = 6, expected 1"),
        (tensors(c=torch.zeros(6, 128)[:, :64]), r"argument c has strides\[0\] = 128, expected 64"),
        (tensors(b=torch.zeros(6, 64).bfloat16()), "argument b has the wrong dtype: expected float32, got bfloat16"),
        (tensors(b=torch.zeros(6, 64) > 0), "argument b has the wrong dtype: expected float32, got bool"),
        (tensors(a=torch.tensor(1.0)), "argument a has the wrong number of dimensions: expected 2, got 0"),
        (tensors(b=torch.zeros(1, 6, 64)), "argument b has the wrong number of dimensions: expected 2, got 3"),
        (tensors(a=None), "argument a is None, a tensor is expected"),
        (tensors(a=3), "argument a is not a tensor but an int"),
        (tensors(b=2.5), "argument b is not a tensor but a float"),
        (tensors(b=True), "argument b is not a tensor but a bool"),
        (tensors(a=[1.0, 2.0]), "argument a is not a tensor but a list or tuple"),
        (tensors(a=(torch.zeros(6, 64),)), "argument a is not a tensor but a list or tuple"),
        (tensors(b={"x": 1}), "argument b is not a tensor but a dict"),
        (tensors(b="x"), "argument b is not a tensor but a string"),
        (tensors(b="a string that is not small"), "argument b is not a tensor but a string"),
        (tensors(b=b"x"), "argument b is not a tensor but bytes"),
        (tensors(b=print), "argument b is not a tensor but a function"),
        (tensors(b=torch.float32), "argument b is not a tensor but a dtype"),
        (tensors(b=object()), "argument b is not a tensor but a Python object"),
    ],
)
def test_wrong_arguments_are_refused_by_name(add, arguments, message):
    written = arguments[2]
    before = written.clone()
    with pytest.raises(RuntimeError, match=message):
        add(*arguments)
    assert torch.equal(written, before)


def test_extents_that_are_expressions(monkeypatch):
    monkeypatch.setenv("TILELANG_PTO_SIM_CHECK", "off")  # its blocks write the same places
    from simple_kernels import related_extents

    kernel = tilelang.compile(related_extents(), target="pto")
    zeros = torch.zeros
    kernel(zeros(4), zeros(9, 4), zeros(4, 4), 1, True)
    for b, c, message in (
        (zeros(8, 4), zeros(4, 4), r"argument b has shape\[0\] = 8, expected 9"),
        (zeros(9, 5), zeros(4, 4), r"argument b has shape\[1\] = 5, expected 4 \(a\.shape\[0\]\)"),
        (zeros(9, 4), zeros(4, 5), r"argument c has shape\[1\] = 5, expected 4 \(a\.shape\[0\]\)"),
    ):
        with pytest.raises(RuntimeError, match=message):
            kernel(zeros(4), b, c, 1, True)
    with pytest.raises(RuntimeError, match="argument step is not an integer but a float"):
        kernel(zeros(4), zeros(9, 4), zeros(4, 4), 1.5, True)
    with pytest.raises(RuntimeError, match="argument add is not a bool but a string"):
        kernel(zeros(4), zeros(9, 4), zeros(4, 4), 1, "x")


def test_a_number_that_does_not_fit_is_refused():
    """TileLang's host code takes the lower bits; a kernel would get another number than its caller gave."""
    from simple_kernels import add_numbers

    kernel = tilelang.compile(add_numbers(), target="pto")
    x = torch.zeros(64, dtype=torch.int64)
    kernel(x, -(2**31), 2**32 - 1, -(2**7), 2**63 - 1)
    assert (x == -(2**31) + 2**32 - 1 - 2**7 + 2**63 - 1 - 2**64).all()
    kernel(x, 0, -1, 0, 0)  # an unsigned number with all bits set
    assert (x == 2**32 - 1).all()
    for arguments, message in (
        ((2**31, 0, 0, 0), "argument a = 2147483648 does not fit int32"),
        ((-(2**31) - 1, 0, 0, 0), "argument a = -2147483649 does not fit int32"),
        ((0, 2**32, 0, 0), "argument b = 4294967296 does not fit uint32"),
        ((0, 0, 128, 0), "argument c = 128 does not fit int8"),
    ):
        with pytest.raises(RuntimeError, match=f"kernel add_numbers: {message}"):
            kernel(x, *arguments)
    assert (x == 2**32 - 1).all()


def test_an_extent_that_does_not_fit_is_refused():
    """A view of one row that says it has 2**31 of them: no memory is touched before the check."""
    kernel = tilelang.compile(strided_scale(), out_idx=[2], target="pto")
    with pytest.raises(RuntimeError, match=r"kernel scale: argument b has shape\[0\] = 2147483648, which does not fit int32"):
        kernel(torch.zeros(64).as_strided((2**31, 64), (0, 1)), 1.0)
    with pytest.raises(RuntimeError, match=r"kernel scale: argument b has strides\[0\] = 4294967296, which does not fit int32"):
        kernel(torch.zeros(64).as_strided((1, 64), (2**32, 1)), 1.0)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (-1, r"launch parameter blockIdx\.x is negative: -1"),
        (65536, r"launch parameter blockIdx\.x = 65536 is too large: a launch has at most 65535 blocks"),
        (None, "kernel fill: argument blocks is not an integer but None"),
        (2.0, "kernel fill: argument blocks is not an integer but a float"),
    ],
)
def test_numbers_of_blocks(blocks, message):
    from simple_kernels import fill

    kernel = tilelang.compile(fill(), target="pto")
    x = torch.zeros(128)
    with pytest.raises((RuntimeError, tilelang_pto.RuntimeModuleError), match=message):
        kernel(x, blocks)
    assert not x.any()
    kernel(x, 0)  # nothing to do is no error: empty tensors give such numbers
    assert not x.any()
    kernel(x, 2)
    assert x.all()


@pytest.mark.parametrize("value", [[1.0], "x", 3, None])
def test_a_kernel_that_allocates_its_result_checks_too(add_out, value):
    with pytest.raises(RuntimeError, match="argument a is "):
        add_out(value, torch.zeros(6, 64))


@pytest.mark.parametrize("count", [0, 2, 4])
def test_wrong_number_of_arguments(add, add_out, count):
    with pytest.raises(ValueError, match=f"expected 3 inputs, but {count} are provided"):
        add(*[torch.zeros(2, 64)] * count)
    with pytest.raises(ValueError, match=r"expected 2 inputs, but 5 are provided"):
        add_out(*[torch.zeros(2, 64)] * 5)


def test_cpu_tensors_are_refused_by_a_kernel_for_an_npu(cache_dir, tmp_path, monkeypatch):
    FakeToolchain(tmp_path, monkeypatch)
    target = Target({"kind": "ascend", "keys": ["pto", "ascend"], FEATURE: "device=npu"})
    kernel = tilelang.compile(vector_add(), target=target)
    with pytest.raises(RuntimeError, match="argument a is on the wrong device: expected ext_dev, got cpu"):
        kernel(*tensors())


def test_the_check_of_the_text_stops_a_build(cached_kernels, monkeypatch):
    """A text that leaves the API is never built, and leaves nothing in the cache."""
    emit = codegen.emit_module

    def planted(*args, **kwargs):
        emitted = emit(*args, **kwargs)
        object.__setattr__(emitted, "text", emitted.text.replace("pto.get_block_idx()", "pto.get_block_number()"))
        return emitted

    monkeypatch.setattr(codegen, "emit_module", planted, raising=False)
    with pytest.raises(tilelang_pto.SurfaceError, match="get_block_number"):
        tilelang.compile(vector_add(cores=7), target="pto")
    assert cached_kernels() == []
    monkeypatch.setenv("TILELANG_PTO_CHECK", "0")
    with pytest.raises(tilelang_pto.SimulationError, match="get_block_number"):
        tilelang.compile(vector_add(cores=7), target="pto")
    assert cached_kernels() == []


def test_a_refused_kernel_leaves_nothing_behind(cached_kernels, monkeypatch):
    def refuses(*args, **kwargs):
        raise tilelang_pto.UnsupportedError("no rule for tl.example", where=("kernel add_kernel",))

    with monkeypatch.context() as patch:
        patch.setattr(codegen, "emit_module", refuses, raising=False)
        for _ in range(2):
            with pytest.raises(tilelang_pto.UnsupportedError, match=r"tl\.example"):
                tilelang.compile(vector_add(cores=5), target="pto")
    assert cached_kernels() == []
    a, c = torch.randn(7, 64), torch.empty(7, 64)
    tilelang.compile(vector_add(cores=5), target="pto")(a, a, c)
    assert torch.equal(c, a + a)
    assert len(cached_kernels()) == 1


def test_workspace_between_two_device_functions():
    from simple_kernels import copy_twice

    a, c = torch.randn(4, 64), torch.empty(4, 64)
    tilelang.compile(copy_twice(), target="pto")(a, c)
    assert torch.equal(c, a)
