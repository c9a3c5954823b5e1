"""Modules for an NPU, built with programs that stand in for the vendor's: what a launch hands over, saving, the cache."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import tvm_ffi
from fake_toolchain import FakeToolchain

from tilelang_pto import RuntimeModuleError, ToolchainError
from tilelang_pto.runtime.abi import AbiParameter, KernelAbi
from tilelang_pto.runtime.module import create_module, describe_abi
from tilelang_pto.sim.record import record_module

TEXT = '''"""Adds a number to the first element of each block's row of 8."""
from ptodsl import pto


@pto.jit(name="bump", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def bump(x: pto.ptr(pto.f32, "gm"), n: pto.i64, by: pto.f32, small: pto.i8):
    offset = pto.cast(pto.get_block_idx(), pto.i64) * 8
    pto.store(pto.load(x, offset) + by, x, offset)
'''
PARAMETERS = (
    AbiParameter("x", "pointer", "float32"),
    AbiParameter("n", "scalar", "int64"),
    AbiParameter("by", "scalar", "float32"),
    AbiParameter("small", "scalar", "int8"),
)

# The compiled kernel: does what the text says, and leaves what it got where the test can read it.
KERNELS = """
#include <cstdint>
using Kernel = void (*)(uint32_t, void*, float*, int64_t, float, int8_t);
extern "C" Kernel tilelang_pto_check_bump;
static void bump(uint32_t grid, void* stream, float* x, int64_t n, float by, int8_t small) {
  for (uint32_t block = 0; block < grid; ++block) x[8 * block] += by;
  x[1] = static_cast<float>(n), x[2] = small, x[3] = grid, x[4] = stream != nullptr;
}
static bool ready = (tilelang_pto_check_bump = &bump, true);
"""


@pytest.fixture
def fake(tmp_path, monkeypatch, cache_dir):
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "kernels.cc").write_text(KERNELS)
    fake = FakeToolchain(folder, monkeypatch)
    fake.set(FAKE_KERNELS=str(folder / "kernels.cc"))
    return fake


ABIS = {"bump": KernelAbi("bump", PARAMETERS, ("blockIdx.x", "tirx.use_dyn_shared_memory"))}


def emitted() -> SimpleNamespace:
    kernel = SimpleNamespace(name="bump", kind="vector", parameters=PARAMETERS)
    return SimpleNamespace(text=TEXT, surface="2026-09", kernels=(kernel,))


def make() -> tvm_ffi.Module:
    return create_module(emitted(), ABIS, device="npu", surface="2026-09")


def test_a_launch_hands_over_every_argument(fake):
    x = torch.arange(32, dtype=torch.float32)
    make()["bump"](x, -(2**40), 2.5, -7, 4, 256, 128)
    expected = torch.arange(32, dtype=torch.float32)
    expected[::8] += 2.5
    expected[1:5] = torch.tensor([-(2.0**40), -7.0, 4.0, 0.0])
    assert torch.equal(x, expected)


def test_no_blocks_no_launch(fake):
    x = torch.zeros(8)
    make()["bump"](x, 1, 1.0, 1, 0, 0, 32)
    assert not x.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", 0, 1.0, 0, 1, 0), "expected 7 arguments, got 6"),
        ((None, 0, 1.0, 0, 1, 0, 32), "argument x is a null pointer"),
        (("x", 0, 1.0, 300, 1, 0, 32), "argument small = 300 does not fit i8"),
        (("x", 0, None, 0, 1, 0, 32), "argument by must be a number"),
        (("x", 0, 1.0, 0, -1, 0, 32), r"blockIdx\.x is negative: -1"),
        (("x", 0, 1.0, 0, None, 0, 32), r"blockIdx\.x must be an integer"),
        (("x", 0, 1.0, 0, 1, 1 << 20, 32), "bytes of unified buffer"),
        (("x", 0, 1.0, 0, 70000, 0, 32), r"launch parameter blockIdx\.x = 70000 is too large: a launch has at most 65535 blocks"),
    ],
)
def test_wrong_arguments_are_refused_before_a_launch(fake, arguments, message):
    x = torch.zeros(8)
    with pytest.raises(RuntimeModuleError, match=message):
        make()["bump"](*[x if value == "x" else value for value in arguments])
    assert not x.any()


def test_a_saved_module_needs_no_tools(fake, tmp_path):
    module = make()
    (entry,) = (tmp_path / "cache" / "pto").glob("*/kernels.so")
    fake.set(PTOAS_BIN="/nowhere")
    abi = describe_abi(emitted(), ABIS, "npu").encode()
    program = record_module(TEXT, "bump.pto.py", "2026-09").serialize()
    data = b"PTOM3\n"
    for part in (TEXT.encode(), program, abi, entry.read_bytes()):
        data += len(part).to_bytes(8, "little") + part
    again = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.pto")(data)
    for loaded in (module, again):
        x = torch.zeros(16)
        loaded["bump"](x, 3, 1.5, 1, 2, 0, 64)
        assert (x[0], x[8]) == (1.5, 1.5)


def test_every_library_is_its_own(fake):
    """Two modules of one text, with different kernels behind it."""
    first = make()
    (fake.folder / "kernels.cc").write_text(KERNELS.replace("+= by", "-= by"))
    fake.set(FAKE_PTOAS="other")
    second = make()
    x, y = torch.zeros(8), torch.zeros(8)
    first["bump"](x, 0, 1.0, 0, 1, 0, 32)
    second["bump"](y, 0, 1.0, 0, 1, 0, 32)
    assert (x[0], y[0]) == (1, -1)


def test_the_library_is_built_once(fake):
    make()
    calls = len(fake.calls("ptoas"))
    make()
    assert len(fake.calls("ptoas")) == calls == 1
    fake.set(FAKE_PTOAS="other")  # another version of a tool is another library
    make()
    assert len(fake.calls("ptoas")) == 2


def test_a_failed_build_is_tried_again(fake):
    fake.set(FAKE_PTOAS="silent")
    with pytest.raises(ToolchainError, match="ptoas gave no output") as caught:
        make()
    Path(caught.value.log).unlink()
    fake.set(FAKE_PTOAS="ok")
    x = torch.zeros(8)
    make()["bump"](x, 0, 1.0, 0, 1, 0, 32)
    assert x[0] == 1


def test_a_library_that_does_not_load_says_why(fake):
    (fake.folder / "kernels.cc").write_text("extern void nowhere(); static int x = (nowhere(), 0);")
    with pytest.raises(RuntimeModuleError, match=r"the library of the kernels cannot be loaded: .*undefined symbol"):
        make()
