"""The ``pto`` target: a target of kind ``ascend`` with the key ``pto`` and one attribute of ours.

TileLang's Ascend passes look at the kind, so they apply unchanged. The attribute ``feature.pto`` holds everything that
changes what a kernel is compiled to (device, PTODSL surface, a digest of this package). TileLang's kernel cache
uses the printed target as part of its key, so the attribute also keeps kernels of different settings apart.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilelang.backend.target import TargetLike, register_target_normalizer
from tvm.target import Target

from tilelang_pto.errors import ConfigurationError
from tilelang_pto.runtime.device import DEVICES, choose_device
from tilelang_pto.runtime.fingerprint import build_fingerprint

__all__ = ["FEATURE", "KEY", "PtoSettings", "StaleTargetWarning", "is_pto_target", "pto_target", "register", "settings_of"]

KIND = "ascend"
KEY = "pto"
FEATURE = "feature.pto"
STALE_VARIABLE = "TILELANG_TARGET"


class StaleTargetWarning(UserWarning):
    """``TILELANG_TARGET`` names another target than the one in use."""


@dataclass(frozen=True)
class PtoSettings:
    """What ``feature.pto`` records."""

    device: str
    surface: str
    build: str

    def encode(self) -> str:
        return f"device={self.device},surface={self.surface},build={self.build}"


def is_pto_target(target: Target) -> bool:
    """Whether ``target`` is ours."""
    return bool(target.kind.name == KIND and KEY in [str(key) for key in target.keys])


def settings_of(target: Target) -> PtoSettings:
    """The settings a target carries; those it lacks are chosen as for a new target."""
    return _complete(_decode(target.attrs.get(FEATURE)))


def pto_target(*, device: str | None = None, surface: str | None = None) -> Target:
    """The ``pto`` target.

    Args:
        device: ``auto``, ``sim`` or ``npu``; ``None`` asks ``TILELANG_PTO_DEVICE``.
        surface: ``auto``, ``2026-08`` or ``2026-09``; ``None`` asks ``TILELANG_PTO_SURFACE``.
    """
    chosen = PtoSettings(choose_device(device), _choose_surface(surface), build_fingerprint())
    return Target({"kind": KIND, "keys": [KEY, KIND], FEATURE: chosen.encode()})


def _choose_surface(requested: str | None) -> str:
    from tilelang_pto.codegen.surface import select_surface

    return select_surface(requested).name


def _decode(feature: object) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in str(feature or "").split(","):
        if not part.strip():
            continue
        name, separator, value = part.partition("=")
        if not separator or name.strip() not in ("device", "surface", "build"):
            raise ConfigurationError(f"target attribute {FEATURE} has the unknown part {part!r}", advice="use device=...,surface=...")
        fields[name.strip()] = value.strip()
    return fields


def _complete(fields: Mapping[str, str]) -> PtoSettings:
    # A device written into the target is taken as it is: a kernel may be compiled for an NPU that is elsewhere.
    device = fields.get("device") or choose_device()
    if device not in DEVICES:
        raise ConfigurationError(f"target attribute {FEATURE} has the unknown device {device!r}", advice="use device=sim or device=npu")
    return PtoSettings(device, _choose_surface(fields.get("surface")), build_fingerprint())


def _completed_target(config: Mapping[str, Any]) -> Target:
    completed = dict(config)
    keys = [str(key) for key in completed.get("keys", ())]
    # Both keys, ours first, whatever order or part of them was given.
    completed["keys"] = [KEY, KIND] + [key for key in keys if key not in (KEY, KIND)]
    completed[FEATURE] = _complete(_decode(completed.get(FEATURE))).encode()
    return Target(completed)


def _warn_if_stale(used: str) -> None:
    named = os.environ.get(STALE_VARIABLE, "").strip()
    if named and named != used and KEY in (named, used):
        warnings.warn(
            f"the environment has {STALE_VARIABLE}={named}, but the target in use is {used}; TileLang reads TILELANG_DEFAULT_TARGET only",
            StaleTargetWarning,
            stacklevel=_user_stack_level(),
        )


def _user_stack_level() -> int:
    """How far up the code that uses TileLang is: one compilation normalizes its target several times, and a warning that
    points to the user's line is shown once."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("tilelang", "tilelang_pto"):
        frame, level = frame.f_back, level + 1
    return level


def normalize_pto_target(target: TargetLike) -> Target | None:
    """TileLang's normalizer hook: ``"pto"`` and any target of ours become a complete target; others are left alone."""
    if isinstance(target, str):
        if target.strip() != KEY:
            return None
        _warn_if_stale(KEY)
        return pto_target()
    if isinstance(target, Target):
        if not is_pto_target(target):
            _warn_if_stale(target.kind.name)
            return None
        completed = settings_of(target).encode()
        if str(target.attrs.get(FEATURE, "")) == completed and [str(key) for key in target.keys][:2] == [KEY, KIND]:
            return None
        _warn_if_stale(KEY)
        config = {key: value for key, value in target.export().items() if key != "host"}
        normalized = _completed_target(config)
        return normalized if target.host is None else Target(normalized, target.host)
    if isinstance(target, Mapping) and target.get("kind") == KIND and KEY in target.get("keys", ()):
        _warn_if_stale(KEY)
        return _completed_target(target)
    return None


def register() -> None:
    """Make TileLang know ``target="pto"``."""
    register_target_normalizer(KEY, normalize_pto_target, override=True)
