"""AscendC of a TileLang function, as TileLang's own backend prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tilelang
import tvm
from tilelang.backend.module import create_backend_context
from tilelang.backend.target import determine_target
from tilelang.engine.lower import lower_with_context
from tvm import IRModule, tirx

from tilelang_pto.lowering import pass_configs_of

__all__ = ["ascendc_of_device_module", "ascendc_text"]


def ascendc_text(function: tirx.PrimFunc, pass_configs: Mapping[str, Any] | None = None) -> str:
    """Lower ``function`` with TileLang's Ascend pipeline and print it; nothing is compiled."""
    context = create_backend_context(determine_target("ascend", return_object=True), None, "tvm_ffi")
    with tvm.transform.PassContext(opt_level=3, config=pass_configs_of(function, pass_configs)), context.target:
        return str(lower_with_context(function, context).kernel_source)


def ascendc_of_device_module(module: IRModule) -> str:
    """Print device functions that are lowered already."""
    context = create_backend_context(determine_target("ascend", return_object=True), None, "tvm_ffi")
    with tvm.transform.PassContext(opt_level=3), context.target:
        module = tilelang.transform.LowerIntrin()(module)
        module = tirx.transform.Simplify()(module)
        module = tilelang.transform.HoistBroadcastValues()(module)
        return str(context.codegen_device(module, compile_device=False).inspect_source())
