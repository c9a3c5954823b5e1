"""Sixteen processes that want the same kernel for an NPU, some of them killed: one library, built with the stand-in tools."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import tilelang
import torch
from fake_npu import on_npu
from fake_toolchain import FakeToolchain
from simple_kernels import vector_add
from tvm.target import Target

from tilelang_pto.runtime.abi import AbiParameter, KernelAbi
from tilelang_pto.runtime.build import LIBRARY, Source, build_cached
from tilelang_pto.runtime.kernel_cache import KernelCache
from tilelang_pto.sim.record import record_module
from tilelang_pto.target import FEATURE

PROCESSES, KILLED = 16, 4
fork = multiprocessing.get_context("fork")

TEXT = '''"""One kernel."""
from ptodsl import pto


@pto.jit(name="bump", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def bump(x: pto.ptr(pto.f32, "gm")):
    pto.store(pto.load(x, 0), x, 1)
'''
KERNELS = """
#include <cstdint>
extern "C" void (*tilelang_pto_check_add_kernel)(uint32_t, void*, const float*, const float*, float*, int32_t);
static void add(uint32_t grid, void* stream, const float* a, const float* b, float* c, int32_t rows) {
  for (int i = 0; i < 64 * rows; ++i) c[i] = a[i] + b[i];
}
static bool ready = (tilelang_pto_check_add_kernel = &add, true);
"""


@pytest.fixture
def fake(tmp_path, monkeypatch, cache_dir):
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    fake = FakeToolchain(folder, monkeypatch)
    fake.set(FAKE_PTOAS="slow")
    return fake


def run(job: Callable[[], object], fake: FakeToolchain, kill: int = 0) -> list[object]:
    """What ``job`` gives in each of the processes. ``kill`` of them are killed, each as soon as it has started ptoas."""
    gate, results = fork.Event(), fork.Queue()

    def work() -> None:
        gate.wait()
        os.environ["FAKE_PARENT"] = str(os.getpid())
        try:
            results.put(job())
        except BaseException as error:
            results.put(repr(error))

    workers = [fork.Process(target=work) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    gate.set()
    killed: set[int] = set()
    deadline = time.monotonic() + 300
    while len(killed) < kill and time.monotonic() < deadline:
        for builder in {call["parent"] for call in fake.calls("ptoas")} - killed:
            os.kill(builder, signal.SIGKILL)
            killed.add(builder)
            break
        time.sleep(0.02)
    assert len(killed) == kill
    found = [results.get(timeout=300) for _ in range(PROCESSES - kill)]
    for worker in workers:
        worker.join(60)
    assert sum(worker.exitcode == -signal.SIGKILL for worker in workers) == kill
    return found


def check_leftovers(root: Path, temporary: Path) -> None:
    assert list((root / "building").iterdir()) == []
    assert list(temporary.iterdir()) == []
    assert len([entry for entry in root.iterdir() if (entry / LIBRARY).is_file()]) == 1


@pytest.mark.parametrize("kill", [0, KILLED], ids=["all live", "some are killed"])
def test_one_library_through_the_tools(fake, tmp_path, kill):
    abi = KernelAbi("bump", (AbiParameter("x", "pointer", "float32"),), ("blockIdx.x",))
    emitted = SimpleNamespace(text=TEXT, surface="2026-09", kernels=(SimpleNamespace(name="bump", kind="vector"),))
    source = Source(emitted, record_module(TEXT, "bump.pto.py", "2026-09"), {"bump": abi})
    root = tmp_path / "cache" / "pto"

    def job() -> int:
        library = ctypes.CDLL(str(build_cached(source, KernelCache(root)) / LIBRARY))
        return library.tilelang_pto_launch_bump(bytes(8), ctypes.c_size_t(8), ctypes.c_int64(1), None)

    assert run(job, fake, kill) == [4] * (PROCESSES - kill)  # the launch is reached: no kernel is behind it here
    assert len(fake.calls("ptoas")) == 1 + kill
    check_leftovers(root, tmp_path / "temporary")


@pytest.mark.slow
@pytest.mark.parametrize("kill", [0, KILLED], ids=["all live", "some are killed"])
def test_one_library_through_tilelang(fake, tmp_path, kill):
    (fake.folder / "kernels.cc").write_text(KERNELS)
    fake.set(FAKE_KERNELS=str(fake.folder / "kernels.cc"))

    def job() -> bool:
        target = Target({"kind": "ascend", "keys": ["pto", "ascend"], FEATURE: "device=npu"})
        kernel = tilelang.compile(vector_add(cores=5), target=target)
        path = tmp_path / f"add_{os.getpid()}.so"
        kernel.export_library(str(path))
        a, b, c = torch.randn(9, 64), torch.randn(9, 64), torch.zeros(9, 64)
        tilelang.tvm.runtime.load_module(str(path))["add"](*map(on_npu, (a, b, c)))
        return bool(torch.equal(c, torch.from_numpy(a.numpy() + b.numpy())))

    assert run(job, fake, kill) == [True] * (PROCESSES - kill)
    assert len(fake.calls("ptoas")) == 1 + kill
    check_leftovers(tmp_path / "cache" / "pto", tmp_path / "temporary")
