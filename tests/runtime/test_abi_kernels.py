"""Real kernels of random signatures: whatever the order, number and type of the arguments, each reaches its place.

On the simulator the emitted text runs; on the way to a board, the host code, the packed arguments and the launch code, with C++ functions
in the place of the kernels.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import random
from dataclasses import dataclass
from pathlib import Path

import fake_npu
import pytest
import tilelang
import torch
from fake_npu import FakeNpu, in_a_child, on_npu, values_of
from fake_toolchain import FakeToolchain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tvm.target import Target

from tilelang_pto.lowering import lower_function, signatures
from tilelang_pto.runtime.abi import KernelAbi, c_type
from tilelang_pto.target import FEATURE

# Values that every dtype on the way (f32 included) holds exactly, so results are compared bit by bit.
VALUES = {"int32": lambda r: r.randint(-999, 999), "int64": lambda r: r.randint(-999, 999), "float32": lambda r: r.randint(-64, 64) / 8}
NPU = {"kind": "ascend", "keys": ["pto", "ascend"], FEATURE: "device=npu"}
NUMBER = itertools.count()


@dataclass(frozen=True)
class Stage:
    """One kernel: ``output = input + scalars``, over ``extent`` elements (a number, or the name of a dynamic one)."""

    input: str
    output: str
    scalars: tuple[str, ...]
    extent: str


@dataclass(frozen=True)
class Signature:
    """A function of three kernels.

    ``arguments`` in the order of the user: tensors ``x*`` (read) and ``y*`` (written), scalars ``s*``. ``w`` is a workspace that the first
    kernel writes and the last one reads. ``allocated`` are the tensors that the host function allocates and returns.
    """

    arguments: tuple[tuple[str, str], ...]
    stages: tuple[Stage, ...]
    allocated: tuple[str, ...]

    @property
    def workspace(self) -> str:
        """The extent of the workspace, empty if there is none."""
        return self.stages[0].extent if self.stages[0].output == "w" else ""

    def extent(self, tensor: str) -> str:
        return next(stage.extent for stage in self.stages if tensor in (stage.input, stage.output))


@st.composite
def any_signature(draw) -> Signature:
    scalars = [(f"s{i}", draw(st.sampled_from(sorted(VALUES)))) for i in range(draw(st.integers(2, 5)))]
    extents = [draw(st.sampled_from([str(draw(st.integers(1, 300))), f"n{k}"])) for k in range(3)]
    workspace = draw(st.booleans())
    if workspace:
        extents[2] = extents[0]
    stages = []
    for k, extent in enumerate(extents):
        used = draw(st.lists(st.sampled_from([name for name, _ in scalars]), unique=True))
        stages.append(Stage("w" if workspace and k == 2 else f"x{k}", "w" if workspace and k == 0 else f"y{k}", tuple(used), extent))
    tensors = [(name, "tensor") for stage in stages for name in (stage.input, stage.output) if name != "w"]
    arguments = tuple(draw(st.permutations([*scalars, *tensors])))
    outputs = [name for name, _ in arguments if name.startswith("y")]
    return Signature(arguments, tuple(stages), tuple(name for name in outputs if draw(st.booleans())))


def source(s: Signature) -> str:
    """The function in TileLang."""
    tensor = {name: f'T.Tensor(({s.extent(name)},), "float32")' for name, dtype in s.arguments if dtype == "tensor"}
    arguments = ", ".join(f"{name}: {tensor.get(name, f'T.{dtype}')}" for name, dtype in s.arguments)
    extents = sorted({stage.extent for stage in s.stages if stage.extent.startswith("n")})
    lines = ["from tilelang.ascend import language as T", "", "", "def make():"]
    lines += [f"    {extent} = T.dynamic('{extent}')" for extent in extents]
    lines += ["    @T.prim_func", f"    def three({arguments}):"]
    if s.workspace:
        lines += [f"        w = T.alloc_global(({s.workspace},), 'float32')"]
    for stage in s.stages:
        total = " + ".join([f"{stage.input}[i]", *(f"T.cast({name}, 'float32')" for name in stage.scalars)])
        lines += ["        with T.Kernel(2) as b:", "            with T.SimtVF(threads=64):", "                for i in T.Parallel(512):"]
        lines += [f"                    if i < {stage.extent}:", f"                        {stage.output}[i] = {total}"]
    return "\n".join([*lines, "    return three", ""])


def function(s: Signature, folder: Path):
    path = folder / f"three_{next(NUMBER)}.py"
    path.write_text(source(s))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make()


def results_at(s: Signature) -> list[int]:
    """Positions of the tensors that the host function allocates."""
    return [i for i, (name, _) in enumerate(s.arguments) if name in s.allocated]


@dataclass
class Call:
    """Random sizes and values for one call: the arguments by name, and what the written tensors must hold."""

    given: dict[str, object]
    expected: dict[str, torch.Tensor]


def make_call(s: Signature, r: random.Random) -> Call:
    sizes = {stage.extent: int(stage.extent) if stage.extent.isdigit() else r.randint(0, 500) for stage in s.stages}
    given: dict[str, object] = {name: VALUES[dtype](r) for name, dtype in s.arguments if dtype != "tensor"}
    scalars = dict(given)
    held: dict[str, torch.Tensor] = {}
    for name, dtype in s.arguments:
        if dtype == "tensor":
            size = sizes[s.extent(name)]
            given[name] = torch.randint(-99, 99, (size,)).float() if name.startswith("x") else torch.full((size,), float("nan"))
    for stage in s.stages:
        value = held[stage.input] if stage.input in held else given[stage.input]
        held[stage.output] = functools.reduce(lambda total, name: total + scalars[name], stage.scalars, value)
    held.pop("w", None)
    return Call(given, held)


RARE = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture
def unchecked(monkeypatch):
    """Blocks write the same numbers to the same places here, on purpose."""
    monkeypatch.setenv("TILELANG_PTO_SIM_CHECK", "off")


@settings(RARE, max_examples=4)
@given(s=any_signature(), seed=st.integers(0, 2**32))
def test_every_argument_reaches_its_place(unchecked, tmp_path, s, seed):
    kernel = tilelang.compile(function(s, tmp_path), out_idx=results_at(s) or None, target="pto")
    r = random.Random(seed)
    for _ in range(2):  # the second call binds other sizes and values to the same kernel
        call = make_call(s, r)
        result = kernel(*(call.given[name] for name, _ in s.arguments if name not in s.allocated))
        returned = [] if not s.allocated else [result] if len(s.allocated) == 1 else result
        written = call.given | dict(zip(returned_names(s), returned, strict=True))
        for name, expected in call.expected.items():
            assert torch.equal(written[name], expected), f"{name} of:\n{source(s)}"


def returned_names(s: Signature) -> list[str]:
    """The tensors that the host function allocates, in the order in which it returns them."""
    return [name for name, _ in s.arguments if name in s.allocated]


def kernels_in_cpp(s: Signature, abis: list[KernelAbi]) -> str:
    """Each kernel as a C++ function with the parameters of the launch code; what a parameter is, its name says."""
    lines = ["#include <cstdint>"]
    for stage, abi in zip(s.stages, abis, strict=True):
        names = {parameter.name for parameter in abi.parameters}
        declared = ", ".join(["uint32_t grid", "void* stream", *(f"{c_type(p)[0]} {p.name}" for p in abi.parameters)])
        assert {stage.input, stage.output, *stage.scalars} <= names
        total = " + ".join([f"{stage.input}[i]", *(f"static_cast<float>({name})" for name in stage.scalars)])
        pointer = f"tilelang_pto_check_{abi.name}"
        lines += [f'extern "C" void (*{pointer})({declared});', f"static void run_{abi.name}({declared}) {{"]
        lines += [f"  for (int64_t i = 0; grid == 2 && i < {stage.extent}; ++i) {stage.output}[i] = {total};", "}"]
        lines += [f"static bool ready_{abi.name} = ({pointer} = &run_{abi.name}, true);"]
    return "\n".join([*lines, ""])


@settings(RARE, max_examples=4)
@given(s=any_signature(), seed=st.integers(0, 2**32))
def test_every_argument_reaches_its_place_on_the_way_to_a_board(tmp_path, s, seed):
    folder = tmp_path / f"board_{next(NUMBER)}"
    folder.mkdir()
    written = function(s, folder)
    abis, calls = signatures(lower_function(written, target=Target(NPU)))
    assert len(calls) == 3
    with pytest.MonkeyPatch.context() as patch:
        (folder / "kernels.cc").write_text(kernels_in_cpp(s, [abis[call.kernel] for call in calls]))
        fake = FakeToolchain(folder, patch)
        fake.set(FAKE_KERNELS=str(folder / "kernels.cc"), TILELANG_CACHE_DIR=str(folder / "cache"))
        kernel = tilelang.compile(written, out_idx=results_at(s) or None, target=Target(NPU))
        kernel.export_library(str(folder / "three.so"))
    call_exported(s, fake_npu.build(folder), folder / "three.so", seed)


@in_a_child
def call_exported(s: Signature, npu: Path, library: Path, seed: int) -> None:
    FakeNpu(npu).allocate_for_tvm_ffi()
    module = tilelang.tvm.runtime.load_module(str(library))
    r = random.Random(seed)
    for _ in range(2):
        call = make_call(s, r)
        arguments = [call.given[name] for name, _ in s.arguments if name not in s.allocated]
        moved = [on_npu(value) if isinstance(value, torch.Tensor) else value for value in arguments]
        anchor = [on_npu(torch.empty(1))] if s.allocated else []
        result = module["three"](*moved, *anchor)
        returned = [] if not s.allocated else [result] if len(s.allocated) == 1 else list(result)
        written = call.given | {name: values_of(value) for name, value in zip(returned_names(s), returned, strict=True)}
        for name, expected in call.expected.items():
            assert torch.equal(written[name], expected), f"{name} of:\n{source(s)}"
