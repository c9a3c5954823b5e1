"""The stream a kernel runs on when nobody told TVM-FFI: that of torch_npu.

TVM-FFI learns the current stream from the first tensor of a call, once TileLang has installed its callback in torch. TileLang does so in
its own kernels. A library loaded with ``load_module`` goes without, and its launches would not wait for what torch has put on its stream.
"""

from __future__ import annotations

import sys

import tvm_ffi

__all__ = ["register", "torch_npu_stream"]

NAME = "tilelang_pto.torch_npu_stream"


def torch_npu_stream(device: int) -> int:
    """Address of the stream torch_npu holds current for an NPU, after everything torch has queued for it is on it; 0 without torch_npu.

    Args:
        device: number of the NPU.
    """
    torch_npu = sys.modules.get("torch_npu")
    if torch_npu is None:
        return 0
    raw_stream = getattr(torch_npu._C, "_npu_getCurrentRawStream", None)
    if raw_stream is not None:
        return int(raw_stream(device))
    return int(torch_npu.npu.current_stream(device).npu_stream)


def register() -> None:
    """Let the native library ask."""
    tvm_ffi.register_global_func(NAME, torch_npu_stream, override=True)
