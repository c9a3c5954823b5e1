"""Which device a kernel is compiled for: the simulator or an NPU."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_pto.errors import ConfigurationError
from tilelang_pto.runtime import tools

__all__ = ["DEVICES", "DEVICE_VARIABLE", "NpuReport", "choose_device", "probe_npu"]

DEVICE_VARIABLE = "TILELANG_PTO_DEVICE"
DEVICES = ("sim", "npu")


@dataclass(frozen=True)
class NpuReport:
    """What an NPU needs and what of it was not found."""

    missing: tuple[str, ...]

    @property
    def usable(self) -> bool:
        return not self.missing


def _npu_present() -> bool:
    """Whether torch sees an NPU. ``torch_npu`` is not imported for the question: torch loads it by itself where it is installed."""
    try:
        import torch

        npu = getattr(torch, "npu", None)
        return npu is not None and bool(npu.is_available())
    except Exception:
        return False


def _missing() -> Iterator[str]:
    """What a launch on an NPU lacks, the cheap questions first; the tools are asked for their versions last."""
    if importlib.util.find_spec("torch_npu") is None:
        yield "the Python package torch_npu"
    elif not _npu_present():
        yield "an Ascend NPU that torch_npu can use"
    for find in (tools.find_ptoas, tools.find_bisheng, tools.find_ptodsl):
        try:
            find()
        except ConfigurationError as error:
            yield error.what


def probe_npu() -> NpuReport:
    """Look for everything a launch on an NPU needs. Imports nothing but torch; PTODSL is asked in a process of its own."""
    return NpuReport(tuple(_missing()))


def choose_device(requested: str | None = None) -> str:
    """The device to compile for.

    Args:
        requested: ``auto``, ``sim`` or ``npu``; ``None`` reads ``TILELANG_PTO_DEVICE`` (default ``auto``).

    Raises:
        ConfigurationError: the value is none of these, or an NPU is asked for and something it needs is missing.
    """
    source = "device" if requested is not None else DEVICE_VARIABLE
    value = (requested if requested is not None else os.environ.get(DEVICE_VARIABLE, "")).strip().lower() or "auto"
    if value == "sim":
        return "sim"
    if value == "auto":
        return "npu" if next(_missing(), None) is None else "sim"
    if value == "npu":
        report = probe_npu()
        if report.usable:
            return "npu"
        raise ConfigurationError(
            f"{source}=npu, but not everything an NPU needs is here; missing: {'; '.join(report.missing)}",
            advice=f"{DEVICE_VARIABLE}=sim (or auto) runs the same kernel on the simulator",
        )
    raise ConfigurationError(f"{source}={value!r} is not a device", advice="use auto, sim or npu")
