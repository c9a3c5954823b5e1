"""Lowering without building: what ``tilelang-pto emit`` and the tests look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm
from tilelang.backend.module import create_backend_context
from tilelang.engine.lower import lower_to_host_device_ir
from tilelang.transform.pass_config import normalize_pass_configs
from tvm import IRModule, tirx
from tvm.target import Target

from tilelang_pto import backend, pipeline
from tilelang_pto.runtime import abi
from tilelang_pto.runtime.abi import HostCall, KernelAbi
from tilelang_pto.target import pto_target

if TYPE_CHECKING:
    from tilelang_pto.codegen import EmittedModule

__all__ = ["Lowered", "emit_function", "lower_function", "pass_configs_of", "signatures"]


@dataclass(frozen=True)
class Lowered:
    """What the pipeline makes of one TileLang function."""

    source: tirx.PrimFunc
    host: IRModule
    device: IRModule
    target: Target


def pass_configs_of(func: tirx.PrimFunc, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The pass configuration ``tilelang.compile`` uses: what ``func`` carries, then what is given, by TVM's names."""
    carried = {str(key): value for key, value in (func.attrs or {}).get("tilelang_pass_configs", {}).items()}
    return normalize_pass_configs({**carried, **(given or {})}) or {}


def lower_function(func: tirx.PrimFunc, *, target: Target | None = None, pass_configs: Mapping[str, Any] | None = None) -> Lowered:
    """Run the ``pto`` pipeline over ``func``.

    Args:
        func: a TileLang kernel.
        target: a ``pto`` target; by default the one the environment asks for.
        pass_configs: as for ``tilelang.jit``.
    """
    context = create_backend_context(target if target is not None else pto_target(), "c", "tvm_ffi")
    with tvm.transform.PassContext(opt_level=3, config=pass_configs_of(func, pass_configs)), context.target:
        host, device, _, _, _ = lower_to_host_device_ir(func, context)
    return Lowered(func, host, device, context.target)


def signatures(lowered: Lowered) -> tuple[dict[str, KernelAbi], tuple[HostCall, ...]]:
    """The signature of every device function, and the launches the host makes, in its order.

    Raises:
        AbiError: host and device disagree.
    """
    abis = pipeline.signatures(lowered.device)
    hosts = [function for function in lowered.host.functions.values() if isinstance(function, tirx.PrimFunc)]
    return abis, tuple(call for host in hosts for call in abi.reconcile(lowered.source, host, abis))


def emit_function(func: tirx.PrimFunc, *, target: Target | None = None, pass_configs: Mapping[str, Any] | None = None) -> EmittedModule:
    """The PTODSL module of ``func``; nothing is built or cached."""
    lowered = lower_function(func, target=target, pass_configs=pass_configs)
    with tvm.transform.PassContext(config=pass_configs_of(func, pass_configs)):
        return backend.emit(lowered.device, lowered.target)
