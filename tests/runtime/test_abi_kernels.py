"""Real kernels of random signatures: whatever the order, number and type of the arguments, each reaches its place."""

from __future__ import annotations

import importlib.util
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

# Values that every dtype on the way (f32 included) holds exactly, so results are compared bit by bit.
VALUES = {"int32": lambda r: r.randint(-999, 999), "int64": lambda r: r.randint(-999, 999), "float32": lambda r: r.randint(-64, 64) / 8}


@dataclass(frozen=True)
class Signature:
    """A function of three kernels. ``arguments`` in the order of the user: tensors ``x*`` (read), ``y*`` (written), scalars ``s*``."""

    arguments: tuple[tuple[str, str], ...]
    uses: tuple[tuple[str, tuple[str, ...]], ...]  # for each kernel the tensor it reads and the scalars it adds
    extents: tuple[str, ...]  # extent of the tensors of each kernel: a number or a name


def signature(seed: int) -> Signature:
    r = random.Random(seed)
    scalars = [(f"s{i}", r.choice(list(VALUES))) for i in range(r.randint(2, 5))]
    tensors = [(f"{kind}{k}", "tensor") for k in range(3) for kind in "xy"]
    arguments = [*scalars, *tensors]
    r.shuffle(arguments)
    uses = tuple((f"x{k}", tuple(name for name, _ in r.sample(scalars, r.randint(0, len(scalars))))) for k in range(3))
    return Signature(tuple(arguments), uses, tuple(r.choice((str(r.randint(1, 300)), f"n{k}")) for k in range(3)))


def source(s: Signature) -> str:
    names = ", ".join(name if dtype == "tensor" else f"{name}: T.{dtype}" for name, dtype in s.arguments)
    lines = ["import tilelang", "from tilelang.ascend import language as T", "", "", "@tilelang.jit(target='pto')", f"def three({names}):"]
    lines += [f"    {extent} = T.dynamic('{extent}')" for extent in s.extents if extent.startswith("n")]
    lines += [f"    {kind}{k}: T.Tensor[({extent},), T.float32]" for k, extent in enumerate(s.extents) for kind in "xy"]
    for k, (tensor, scalars) in enumerate(s.uses):
        total = " + ".join([f"{tensor}[i]", *(f"T.cast({name}, 'float32')" for name in scalars)])
        lines += ["    with T.Kernel(2) as b:", "        with T.SimtVF(threads=64):", "            for i in T.Parallel(512):"]
        lines += [f"                if i < {s.extents[k]}:", f"                    y{k}[i] = {total}"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(8))
def test_every_argument_reaches_its_place(seed, tmp_path: Path):
    s = signature(seed)
    path = tmp_path / f"three_{seed}.py"
    path.write_text(source(s))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    r = random.Random(seed)
    for _ in range(2):  # the second call binds other sizes and values to the same kernel
        sizes = [int(extent) if extent.isdigit() else r.randint(0, 500) for extent in s.extents]
        values = {name: VALUES[dtype](r) for name, dtype in s.arguments if dtype != "tensor"}
        tensors = {f"x{k}": torch.randint(-99, 99, (size,)).float() for k, size in enumerate(sizes)}
        tensors |= {f"y{k}": torch.full((size,), float("nan")) for k, size in enumerate(sizes)}
        module.three(*((values | tensors)[name] for name, _ in s.arguments))
        for k, (tensor, scalars) in enumerate(s.uses):
            expected = tensors[tensor]
            for name in scalars:
                expected = expected + values[name]
            assert torch.equal(tensors[f"y{k}"], expected), f"kernel {k} of:\n{path.read_text()}"
