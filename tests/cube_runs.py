"""Kernels with a cube core on the simulator, and the exact results they are measured against."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from real_toolchain import SURFACE, assert_accepted
from tvm import IRModule

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.lowering import lower_function
from tilelang_pto.pipeline import stashed_module
from tilelang_pto.sim import run
from tilelang_pto.target import pto_target

__all__ = ["NO_SCHEDULE", "SURFACES", "accepted", "device_module", "launch", "round_mantissa", "sum_bound", "text_of"]

SURFACES = ("2026-08", "2026-09")
NO_SCHEDULE = (("tl.enable_auto_schedule", False),)


@functools.cache
def device_module(
    make: Callable[..., Any], arguments: tuple[Any, ...], options: tuple[Any, ...] = (), passes: tuple[Any, ...] = ()
) -> IRModule:
    """Device TIR of ``make(*arguments, **dict(options))``, lowered once per process."""
    target = pto_target(surface="2026-09")
    with target:
        function = make(*arguments, **dict(options))
    return stashed_module(lower_function(function, target=target, pass_configs=dict(passes)).device)


def text_of(mod: IRModule, surface: str) -> str:
    """The emitted text, which the API table of the surface has nothing against."""
    text = emit_module(mod, surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    return text


def launch(mod: IRModule, surface: str, tensors: dict[str, Any], **options: Any) -> None:
    """Run the only kernel of ``mod`` on as many blocks as it is made for; ``tensors`` are its arguments by name."""
    ((name, function),) = [(var.name_hint, func) for var, func in mod.functions.items()]
    (kernel,) = emit_module(mod, surface=surface_of(surface)).kernels
    order = [tensors[parameter.name] for parameter in kernel.parameters]
    run(text_of(mod, surface), name, *order, grid=int(function.attrs["thread_extent"]["blockIdx.x"]), **options)


def accepted(mod: IRModule, directory: Any) -> None:
    """The real toolchain of August 2026 takes the text."""
    path = directory / "kernel.py"
    path.write_text(text_of(mod, SURFACE))
    assert_accepted(path, directory)


def sum_bound(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """How far a product ``a @ b`` whose terms are added in float32, in any order, may be from the exact one."""
    terms = a.shape[1] + 1
    return a.double().abs() @ b.double().abs() * terms * 2.0**-23


def round_mantissa(values: torch.Tensor, bits: int, *, ties_away: bool) -> torch.Tensor:
    """float32 values rounded to a mantissa of ``bits`` bits."""
    drop = 23 - bits
    raw = values.contiguous().view(torch.int32).to(torch.int64)
    sign, magnitude = raw & -0x80000000, raw & 0x7FFFFFFF
    half = 1 << (drop - 1)
    even = (magnitude >> drop) & 1
    rounded = (magnitude + (half if ties_away else half - 1 + even)) >> drop << drop
    return (sign | rounded).to(torch.int32).view(torch.float32)
