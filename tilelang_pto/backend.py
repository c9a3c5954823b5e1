"""The backend manifest: how TileLang reaches our pipeline, code generator and runtime module."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tilelang.backend import module as registry
from tilelang.backend.device_codegen import DeviceCodegen
from tilelang.backend.execution_backend import ExecutionBackendSpec
from tilelang.backend.host_codegen import STANDARD_HOST_CODEGENS
from tilelang.backend.module import BackendModule, get_backend, list_backends, register_backend
from tvm import IRModule
from tvm.ir.transform import PassContext
from tvm.target import Target

from tilelang_pto import pipeline, settings
from tilelang_pto.errors import ConfigurationError, PtoError
from tilelang_pto.target import KIND, is_pto_target, settings_of

if TYPE_CHECKING:
    from tvm_ffi import Module

    from tilelang_pto.codegen import EmittedModule

__all__ = ["BACKEND_NAME", "build", "emit", "register"]

BACKEND_NAME = "pto"
FAST_MATH = "tl.enable_fast_math"


def emit(mod: IRModule, target: Target) -> EmittedModule:
    """The PTODSL text of the device functions of ``mod``, checked against the API table of the target's surface.

    Errors say where they are in the kernel; the frames of the code generator would only hide that, so they are dropped unless
    ``TILELANG_PTO_DEBUG`` is on.
    """
    debugging = settings.debugging()
    try:
        return _emit(mod, target)
    except PtoError as error:
        if debugging:
            raise
        raise error.with_traceback(None) from None


def build(mod: IRModule, target: Target) -> Module:
    """Device code generation: TIR to a runtime module of kind ``pto``. Errors are cut as those of :func:`emit`."""
    debugging = settings.debugging()
    try:
        return _build(mod, target)
    except PtoError as error:
        if debugging:
            raise
        raise error.with_traceback(None) from None


def _emit(mod: IRModule, target: Target) -> EmittedModule:
    from tilelang_pto.codegen import emit_module
    from tilelang_pto.codegen.surface import require_clean, select_surface

    checking = settings.checking()
    surface = select_surface(settings_of(target).surface)
    fast_math = bool(PassContext.current().config.get(FAST_MATH, False))
    emitted = emit_module(pipeline.stashed_module(mod), surface=surface, fast_math=fast_math)
    if checking:
        require_clean(emitted.text, surface)
    return emitted


def _build(mod: IRModule, target: Target) -> Module:
    from tilelang_pto.runtime.module import create_module

    launch_settings = (
        settings.host_threads,
        settings.perturbation,
        settings.seed,
        settings.mad_order,
        settings.sim_check,
        settings.sim_policy,
    )
    for read in launch_settings:
        read()  # what a launch would refuse is refused before the work
    chosen = settings_of(target)
    return create_module(_emit(mod, target), pipeline.signatures(mod), device=chosen.device, surface=chosen.surface)


def _make_backend() -> BackendModule:
    return BackendModule(
        name=BACKEND_NAME,
        target_kinds=(KIND,),
        supports_target=is_pto_target,
        pipelines={KIND: pipeline.PTO_PIPELINE},
        device_codegens={KIND: DeviceCodegen(BACKEND_NAME, build=build, build_without_compile=build)},
        execution_backends=(
            ExecutionBackendSpec(
                "tvm_ffi",
                enable_host_codegen=True,
                enable_device_compile=True,
                supports_callee_allocated_outputs=True,
            ),
        ),
        host_codegens=STANDARD_HOST_CODEGENS,
    )


def _make_room() -> None:
    """Keep TileLang's ``ascend`` backend from claiming ``pto`` targets.

    Two backends of one target kind must have predicates that exclude each other, and the shipped one accepts every target of its
    kind. It is replaced by a copy that differs in the predicate only.
    """
    backends: object = getattr(registry, "_BACKENDS", None)
    if not isinstance(backends, dict):
        backends = {}
    shipped = backends.get(KIND)
    if not isinstance(shipped, BackendModule) or shipped.target_kinds != (KIND,) or shipped.supports_target is None:
        raise ConfigurationError(
            "this TileLang keeps its ascend backend in another way than tilelang-pto knows, so the pto target cannot be added beside it",
            advice="install tilelang>=0.1.15,<0.2",
        )
    claims = shipped.supports_target

    def supports_target(target: Target) -> bool:
        return claims(target) and not is_pto_target(target)

    backends[KIND] = dataclasses.replace(shipped, supports_target=supports_target)


def register() -> None:
    """Add the ``pto`` backend; does nothing when there is one already."""
    if BACKEND_NAME in list_backends():
        return
    get_backend(KIND)
    _make_room()
    register_backend(_make_backend())
