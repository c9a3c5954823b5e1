"""An NPU that is none, for tests of launches: a library in the place of the vendor's runtime, and CPU memory that says it is on an NPU.

The library is loaded for good, so a test does that in a process of its own (:func:`in_a_child`).
"""

from __future__ import annotations

import ctypes
import functools
import multiprocessing
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import torch
import tvm_ffi

_SOURCE = """
#include <dlpack/dlpack.h>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

static thread_local int32_t current = -1;
static int32_t broken = -1, live = 0, made = 0, made_on = -1;
static int64_t made_bytes = 0;

extern "C" {
int32_t selected[64] = {};
int32_t selections = 0;
}

EXPORT int32_t aclrtGetDevice(int32_t* device) {
  if (current < 0) return 107002;
  *device = current;
  return 0;
}
EXPORT int32_t aclrtSetDevice(int32_t device) {
  if (device == broken) return 107001;
  if (selections < 64) selected[selections++] = device;
  current = device;
  return 0;
}
EXPORT void fake_break(int32_t device) { broken = device; }
EXPORT void fake_forget() { selections = 0; }
EXPORT int32_t fake_live() { return live; }
EXPORT int32_t fake_made() { return made; }
EXPORT int32_t fake_made_on() { return made_on; }
EXPORT int64_t fake_made_bytes() { return made_bytes; }

struct Block {
  DLManagedTensorVersioned tensor;
  int64_t shape[8], strides[8];
};
EXPORT int fake_allocate(DLTensor* wanted, DLManagedTensorVersioned** out, void* context,
                         void (*fail)(void*, const char*, const char*)) {
  Block* block = new Block();
  int64_t bytes = wanted->dtype.bits * wanted->dtype.lanes / 8, stride = 1;
  for (int i = wanted->ndim - 1; i >= 0; --i) {
    block->shape[i] = wanted->shape[i], block->strides[i] = stride;
    bytes *= wanted->shape[i], stride *= wanted->shape[i];
  }
  if (bytes > 1 << 24) {
    delete block;
    fail(context, "RuntimeError", "NPU out of memory");
    return -1;
  }
  block->tensor.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  block->tensor.dl_tensor = *wanted;
  block->tensor.dl_tensor.data = std::aligned_alloc(64, (bytes + 64) / 64 * 64);
  block->tensor.dl_tensor.shape = block->shape;
  block->tensor.dl_tensor.strides = block->strides;
  block->tensor.dl_tensor.byte_offset = 0;
  block->tensor.manager_ctx = block;
  block->tensor.flags = 0;
  block->tensor.deleter = [](DLManagedTensorVersioned* self) {
    --live;
    std::free(self->dl_tensor.data);
    delete static_cast<Block*>(self->manager_ctx);
  };
  ++live, ++made, made_bytes = bytes, made_on = wanted->device.device_id;
  *out = &block->tensor;
  return 0;
}
"""

_EXT_DEV = 12


def build(folder: Path) -> Path:
    """Compile the library; its name is that of the vendor's."""
    source, library = folder / "fake_npu.cc", folder / "libascendcl.so"
    source.write_text(_SOURCE)
    include = f"-I{Path(tvm_ffi.libinfo.find_dlpack_include_path())}"
    flags = ["-std=c++17", "-shared", "-fPIC", "-Wl,-soname,libascendcl.so", include]
    subprocess.run([shutil.which("c++"), *flags, str(source), "-o", str(library)], check=True, capture_output=True, text=True)
    return library


class FakeNpu:
    """The loaded library. ``device`` is current at first."""

    def __init__(self, library: Path, device: int | None = 0) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.fake_made_bytes.restype = ctypes.c_int64
        if device is not None:
            self._library.aclrtSetDevice(device)
        self._library.fake_forget()

    def allocate_for_tvm_ffi(self) -> None:
        """Be the framework whose memory TVM-FFI hands out."""
        runtime = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())
        assert runtime.TVMFFIEnvSetDLPackManagedTensorAllocator(self._library.fake_allocate, 0, None) == 0

    @property
    def current(self) -> int | None:
        device = ctypes.c_int32(-1)
        return device.value if self._library.aclrtGetDevice(ctypes.byref(device)) == 0 else None

    @property
    def selected(self) -> list[int]:
        """The devices that were made current, in order."""
        count = ctypes.c_int32.in_dll(self._library, "selections").value
        return list((ctypes.c_int32 * 64).in_dll(self._library, "selected"))[:count]

    def break_device(self, device: int) -> None:
        """A device that cannot be selected from now on."""
        self._library.fake_break(device)

    @property
    def memory(self) -> SimpleNamespace:
        """Allocations that are alive, all there were, and device and bytes of the last."""
        made = {name: getattr(self._library, f"fake_{name}")() for name in ("live", "made", "made_on", "made_bytes")}
        return SimpleNamespace(**made)


def on_npu(tensor: torch.Tensor, device: int = 0) -> tvm_ffi.Tensor:
    """The memory of a CPU tensor as a tensor on an NPU."""
    capsule = torch.utils.dlpack.to_dlpack(tensor)
    # DLTensor begins with the data pointer, then come type and number of the device.
    ctypes.memmove(_content(capsule) + 8, (ctypes.c_int32 * 2)(_EXT_DEV, device), 8)

    class Exporter:
        def __dlpack__(self, **_: object) -> object:
            return capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return _EXT_DEV, device

    return tvm_ffi.from_dlpack(Exporter())


def values_of(tensor: tvm_ffi.Tensor) -> torch.Tensor:
    """A copy of a float32 tensor "on an NPU" as a CPU tensor."""
    capsule = tensor.__dlpack__()
    data = ctypes.c_void_p.from_address(_content(capsule)).value
    shape = tuple(tensor.shape)
    memory = (ctypes.c_float * torch.Size(shape).numel()).from_address(data)
    return torch.frombuffer(memory, dtype=torch.float32).clone().view(shape)


def _content(capsule: object) -> int:
    """Address of the DLManagedTensor in a capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, b"dltensor")


def in_a_child(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test in a forked process; what fails there fails here."""

    @functools.wraps(test)
    def run(*arguments: object, **options: object) -> None:
        context = multiprocessing.get_context("fork")
        results = context.Queue()

        def child() -> None:
            try:
                test(*arguments, **options)
                results.put("")
            except BaseException:
                results.put(traceback.format_exc())
            sys.stdout.flush()

        process = context.Process(target=child)
        process.start()
        failure = results.get(timeout=120)
        process.join(30)
        assert not failure, failure

    return run
