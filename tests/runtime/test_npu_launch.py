"""Launches on an NPU that is none: device, stream, workspaces, outputs, and what a call that fails leaves behind."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import fake_npu
import pytest
import tilelang
import torch
import tvm_ffi
from fake_npu import FakeNpu, in_a_child, on_npu, values_of
from fake_toolchain import FakeToolchain
from simple_kernels import copy_twice, make_add
from tvm.target import Target

from tilelang_pto import RuntimeModuleError
from tilelang_pto.runtime.npu_stream import torch_npu_stream
from tilelang_pto.target import FEATURE

NPU = {"kind": "ascend", "keys": ["pto", "ascend"], FEATURE: "device=npu"}

# What the kernels do, and a line in a file for each launch.
KERNELS = """
#include <dlfcn.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void note(const char* kernel, uint32_t grid, void* stream) {
  int32_t device = -1;
  void* const runtime = dlopen("libascendcl.so", RTLD_NOW | RTLD_NOLOAD);
  if (runtime) reinterpret_cast<int32_t (*)(int32_t*)>(dlsym(runtime, "aclrtGetDevice"))(&device);
  FILE* log = std::fopen(std::getenv("FAKE_LAUNCHES"), "a");
  const char* const line = "{\\"kernel\\": \\"%s\\", \\"grid\\": %u, \\"device\\": %d, \\"stream\\": %zu}\\n";
  std::fprintf(log, line, kernel, grid, device, reinterpret_cast<size_t>(stream));
  std::fclose(log);
}
static void copy(float* to, const float* from) {
  for (int i = 0; i < 256; ++i) to[i] = from[i];
}
static void first(uint32_t grid, void* stream, const float* a, float* w) { note("first", grid, stream), copy(w, a); }
static void second(uint32_t grid, void* stream, float* c, const float* w) { note("second", grid, stream), copy(c, w); }
static void add(uint32_t grid, void* stream, const float* a, const float* b, float* c, int32_t rows) {
  note("add", grid, stream);
  for (int i = 0; i < 64 * rows; ++i) c[i] = a[i] + b[i];
}
extern "C" {
__attribute__((weak)) extern void (*tilelang_pto_check_two_kernel)(uint32_t, void*, const float*, float*);
__attribute__((weak)) extern void (*tilelang_pto_check_two_kernel_1)(uint32_t, void*, float*, const float*);
__attribute__((weak)) extern void (*tilelang_pto_check_add_kernel)(uint32_t, void*, const float*, const float*, float*, int32_t);
}
static bool ready = [] {
  if (std::getenv("FAKE_NO_KERNELS")) return false;
  if (&tilelang_pto_check_two_kernel) tilelang_pto_check_two_kernel = &first, tilelang_pto_check_two_kernel_1 = &second;
  if (&tilelang_pto_check_add_kernel) tilelang_pto_check_add_kernel = &add;
  return true;
}();
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Exported libraries: ``two`` (a workspace between two kernels) and ``add`` (its result allocated by the host function)."""
    folder = tmp_path_factory.mktemp("npu")
    (folder / "kernels.cc").write_text(KERNELS)
    (folder / "tools").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        fake = FakeToolchain(folder / "tools", patch)
        fake.set(FAKE_KERNELS=str(folder / "kernels.cc"), TILELANG_CACHE_DIR=str(folder / "cache"))
        tilelang.compile(copy_twice(), target=Target(NPU)).export_library(str(folder / "two.so"))
        add = tilelang.jit(make_add.func.orig_func, target=Target(NPU), out_idx=[2])
        add().export_library(str(folder / "add.so"))
    fake_npu.build(folder)
    return folder


@pytest.fixture
def board(built, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_LAUNCHES", str(tmp_path / "launches"))
    (tmp_path / "launches").write_text("")

    def load(name: str):
        # The loader takes a path it has seen before for what it has loaded from there.
        path = tmp_path / f"{name}{len(list(tmp_path.iterdir()))}.so"
        path.write_bytes((built / f"{name}.so").read_bytes())
        return tilelang.tvm.runtime.load_module(str(path))

    def launches() -> list[SimpleNamespace]:
        return [SimpleNamespace(**json.loads(line)) for line in (tmp_path / "launches").read_text().splitlines()]

    return SimpleNamespace(load=load, launches=launches, library=built / "libascendcl.so")


def operands(device: int = 0) -> tuple[torch.Tensor, torch.Tensor, list[tvm_ffi.Tensor]]:
    a, c = torch.randn(4, 64), torch.zeros(4, 64)
    return a, c, [on_npu(a, device), on_npu(c, device)]


@in_a_child
def test_a_kernel_runs_where_its_tensors_are(board):
    npu = FakeNpu(board.library)
    npu.allocate_for_tvm_ffi()
    a, c, arguments = operands(device=1)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("ext_dev", 1), 0x1000):
        board.load("two")["two"](*arguments)
    assert torch.equal(a, c)
    assert [(one.kernel, one.grid, one.device, one.stream) for one in board.launches()] == [
        ("first", 4, 1, 0x1000),
        ("second", 4, 1, 0x1000),
    ]
    assert npu.selected == [1, 0, 1, 0]
    assert npu.current == 0


@in_a_child
def test_the_current_device_is_left_alone(board):
    npu = FakeNpu(board.library, device=3)
    npu.allocate_for_tvm_ffi()
    a, c, arguments = operands(device=3)
    board.load("two")["two"](*arguments)
    assert torch.equal(a, c)
    assert npu.selected == []


@in_a_child
def test_a_thread_that_has_used_no_device(board):
    npu = FakeNpu(board.library, device=None)
    npu.allocate_for_tvm_ffi()
    a, c, arguments = operands(device=2)
    board.load("two")["two"](*arguments)
    assert torch.equal(a, c)
    assert npu.selected == [2]  # no device was current before, so none is made current again


@in_a_child
def test_tensors_of_two_devices_are_refused(board):
    npu = FakeNpu(board.library)
    npu.allocate_for_tvm_ffi()
    with pytest.raises(RuntimeError, match=r"kernel two: argument c has device_id = 1, expected 0 \(that of the first tensor\)"):
        board.load("two")["two"](on_npu(torch.zeros(4, 64), 0), on_npu(torch.zeros(4, 64), 1))
    assert board.launches() == []
    assert npu.memory.made == 0


@in_a_child
def test_cpu_tensors_are_refused(board):
    with pytest.raises(RuntimeError, match="kernel two: argument a is on the wrong device: expected ext_dev, got cpu"):
        board.load("two")["two"](torch.zeros(4, 64), torch.zeros(4, 64))
    assert board.launches() == []


@in_a_child
def test_workspaces_are_the_frameworks(board):
    """On the device of the tensors, and given back when the last kernel is on the stream."""
    npu = FakeNpu(board.library)
    npu.allocate_for_tvm_ffi()
    module = board.load("two")
    for calls in (1, 2, 3):
        _, _, arguments = operands(device=1)
        module["two"](*arguments)
        memory = npu.memory
        assert (memory.made, memory.live, memory.made_on, memory.made_bytes) == (calls, 0, 1, 4 * 64 * 4)


@in_a_child
def test_a_workspace_needs_a_framework(board):
    FakeNpu(board.library)
    _, _, arguments = operands()
    with pytest.raises(RuntimeModuleError, match="a workspace of 1024 bytes is needed, and no framework is there to allocate it") as caught:
        board.load("two")["two"](*arguments)
    assert caught.value.where == ("kernel two",)
    assert "pass the tensors as torch tensors" in caught.value.advice
    assert board.launches() == []


@in_a_child
def test_results_are_allocated_on_the_device_of_the_tensors(board):
    npu = FakeNpu(board.library)
    npu.allocate_for_tvm_ffi()
    a, b = torch.randn(5, 64), torch.randn(5, 64)
    anchor = on_npu(torch.empty(1), 2)
    result = board.load("add")["add"](on_npu(a, 2), on_npu(b, 2), anchor)
    assert tuple(result.shape) == (5, 64)
    assert result.device == tvm_ffi.device("ext_dev", 2)
    (launch,) = board.launches()
    assert (launch.kernel, launch.device) == ("add", 2)
    assert npu.memory.live == 1
    assert torch.equal(values_of(result), a + b)
    del result
    assert npu.memory.live == 0


@in_a_child
def test_a_device_that_cannot_be_selected(board):
    npu = FakeNpu(board.library)
    npu.allocate_for_tvm_ffi()
    npu.break_device(1)
    _, c, arguments = operands(device=1)
    with pytest.raises(RuntimeModuleError, match="NPU 1 cannot be made current: aclrtSetDevice gives 107001") as caught:
        board.load("two")["two"](*arguments)
    assert caught.value.where == ("kernel two_kernel",)
    assert board.launches() == []
    assert not c.any()
    assert npu.memory.live == 0
    assert npu.current == 0


@in_a_child
def test_a_launch_that_fails_leaves_nothing_behind(board, monkeypatch):
    npu = FakeNpu(board.library)
    npu.allocate_for_tvm_ffi()
    _, _, arguments = operands(device=1)
    monkeypatch.setenv("FAKE_NO_KERNELS", "1")
    with pytest.raises(RuntimeModuleError, match="the launch failed: check build only: no function to call is set"):
        board.load("two")["two"](*arguments)
    monkeypatch.delenv("FAKE_NO_KERNELS")
    assert (npu.memory.made, npu.memory.live) == (1, 0)
    assert npu.current == 0
    # The next call is as good as the first.
    a, c, arguments = operands(device=2)
    board.load("two")["two"](*arguments)
    assert torch.equal(a, c)
    assert {launch.device for launch in board.launches()} == {2}


@in_a_child
def test_without_a_stream_of_tvm_ffi_the_one_of_torch_npu_is_taken(board, monkeypatch):
    npu = FakeNpu(board.library)
    npu.allocate_for_tvm_ffi()
    torch_npu = SimpleNamespace(_C=SimpleNamespace(_npu_getCurrentRawStream=lambda device: 0x700 + device))
    monkeypatch.setitem(sys.modules, "torch_npu", torch_npu)
    _, _, arguments = operands(device=1)
    board.load("two")["two"](*arguments)
    assert {launch.stream for launch in board.launches()} == {0x701}


@pytest.mark.parametrize(
    ("module", "stream"),
    [
        (None, 0),
        (SimpleNamespace(_C=SimpleNamespace(_npu_getCurrentRawStream=lambda device: 16 + device)), 18),
        (
            SimpleNamespace(
                _C=SimpleNamespace(), npu=SimpleNamespace(current_stream=lambda device: SimpleNamespace(npu_stream=32 + device))
            ),
            34,
        ),
    ],
    ids=["no torch_npu", "raw stream", "stream object"],
)
def test_the_stream_of_torch_npu(monkeypatch, module, stream):
    monkeypatch.delitem(sys.modules, "torch_npu", raising=False)
    if module is not None:
        monkeypatch.setitem(sys.modules, "torch_npu", module)
    assert torch_npu_stream(2) == stream


def test_an_exported_library_is_complete(board):
    """All tests here load it where there is neither a tool nor a cache; it carries its text too."""
    (device,) = board.load("two").imports
    assert device.kind == "pto"
    assert "def two_kernel(" in device.inspect_source()
