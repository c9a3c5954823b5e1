"""TileLang's Ascend pipeline followed by ours.

TileLang runs LowerIntrin, Simplify and HoistBroadcastValues on the device functions after the pipeline and before device code
generation. They destroy what the code generator needs (floor division, access extents, math operations), so the last
step here keeps every device function as it is in an attribute of itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
from tilelang.ascend.pipeline import AscendPassPipelineBody
from tilelang.backend.pass_pipeline import PassPipeline
from tvm import IRModule, tirx
from tvm.ir import CallingConv
from tvm.target import Target

from tilelang_pto import argument_checks, host
from tilelang_pto.codegen.attributes import EXTENT_PARAMETERS
from tilelang_pto.errors import UnsupportedError
from tilelang_pto.layout_failures import lower_and_explain
from tilelang_pto.runtime import abi
from tilelang_pto.shape_parameters import extent_parameters
from tilelang_pto.target import KIND, settings_of
from tilelang_pto.tile_checks import refuse_parts_of_l1_tiles
from tilelang_pto.views import lower_with_views

__all__ = ["DEVICE_TIR", "PTO_PIPELINE", "PtoPassPipelineBody", "check_abi", "signatures", "stashed_functions", "stashed_module"]

DEVICE_TIR = "pto.device_tir"
HOST_PREFIX = "__tvm_ffi_"


def PtoPassPipelineBody(mod: IRModule, target: Target) -> IRModule:
    """Lower ``mod`` to host and device functions."""
    written = dict(_functions(mod))
    for name, func in written.items():
        refuse_parts_of_l1_tiles(name, func)
    mod = lower_and_explain(lower_with_views(AscendPassPipelineBody), mod, target)
    mod = AdaptHost(target)(mod)
    check_abi(mod, written)
    mod = StashDeviceFunctions()(mod)
    return mod


PTO_PIPELINE = PassPipeline(KIND, PtoPassPipelineBody)


def AdaptHost(target: Target) -> tvm.transform.Pass:
    """A pass that tells device calls the extents of their tensors and fits the host functions to the target's device."""
    on_simulator = settings_of(target).device == "sim"

    def apply(mod: IRModule, _: object) -> IRModule:
        devices = {name: func for name, func in _functions(mod) if _is_device(func)}
        for name, func in _functions(mod):
            if _is_device(func):
                continue
            for device, extents in extent_parameters(func, devices).items():
                mod.update_func(mod.get_global_var(device), devices[device].with_attr(EXTENT_PARAMETERS, sorted(extents)))
            adapted = host.add_extents(func, devices)
            kernel = name.removeprefix(HOST_PREFIX)
            adapted = host.allow_cpu_tensors(adapted) if on_simulator else host.launch_on_npu(adapted, kernel)
            adapted = argument_checks.name_refusals(adapted, kernel)
            mod.update_func(mod.get_global_var(name), adapted)
        return mod

    return tvm.transform.module_pass(apply, opt_level=0, name="pto.AdaptHost")


def StashDeviceFunctions() -> tvm.transform.Pass:
    """A pass that keeps each device function in its attribute ``pto.device_tir``."""

    def apply(mod: IRModule, _: object) -> IRModule:
        for name, func in _functions(mod):
            if _is_device(func):
                mod.update_func(mod.get_global_var(name), func.with_attr(DEVICE_TIR, tvm.ir.save_json(func)))
        return mod

    return tvm.transform.module_pass(apply, opt_level=0, name="pto.StashDeviceFunctions")


def stashed_functions(mod: IRModule) -> dict[str, tirx.PrimFunc]:
    """The device functions as they left the pipeline, by name, in the order of ``mod``."""
    functions = {}
    for name, func in _functions(mod):
        text = func.attrs.get(DEVICE_TIR)
        if text is None:
            raise UnsupportedError(f"device function {name} did not go through the pto pipeline", advice="compile with target='pto'")
        functions[name] = tvm.ir.load_json(str(text))
    return functions


def stashed_module(mod: IRModule) -> IRModule:
    """What the code generator gets."""
    return IRModule(stashed_functions(mod))


def signatures(mod: IRModule) -> dict[str, abi.KernelAbi]:
    """The signature of every device function, as it left the pipeline."""
    return {name: abi.kernel_abi(name, func) for name, func in stashed_functions(mod).items()}


def check_abi(mod: IRModule, written: Mapping[str, tirx.PrimFunc]) -> None:
    """Match every host call in ``mod`` to the device function it calls.

    Args:
        mod: host and device functions.
        written: the kernels as the user wrote them, by name.

    Raises:
        AbiError: they disagree.
    """
    kernels = {name: abi.kernel_abi(name, func) for name, func in _functions(mod) if _is_device(func)}
    hosts = [(name.removeprefix(HOST_PREFIX), func) for name, func in _functions(mod) if not _is_device(func)]
    called = {call.kernel for name, func in hosts for call in abi.reconcile(written.get(name), func, kernels)}
    abi.require_called(kernels, called)


def _functions(mod: IRModule) -> list[tuple[str, tirx.PrimFunc]]:
    return [(var.name_hint, func) for var, func in mod.functions.items() if isinstance(func, tirx.PrimFunc)]


def _is_device(func: tirx.PrimFunc) -> bool:
    attrs = func.attrs
    return bool(attrs) and int(attrs.get("calling_conv", 0)) == int(CallingConv.DEVICE_KERNEL_LAUNCH)
