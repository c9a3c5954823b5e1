"""Launches of the same kernel belong together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from tilelang_pto.sim.report.model import Finding, KernelReport

__all__ = ["KernelGroup", "group"]


@dataclass(frozen=True, slots=True)
class KernelGroup:
    """All launches of one text under the same options, in their order."""

    launches: tuple[KernelReport, ...]

    @property
    def first(self) -> KernelReport:
        """The first launch."""
        return self.launches[0]

    @property
    def slowest(self) -> KernelReport | None:
        """The launch with most cycles, the first of several; None without timing."""
        timed = [launch for launch in self.launches if launch.timing is not None]
        return max(timed, key=lambda launch: launch.timing.cycles if launch.timing else 0.0, default=None)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all launches; those of the same lines and kind are one, with their counts added."""
        merged: dict[tuple[object, ...], Finding] = {}
        for finding in (finding for launch in self.launches for finding in launch.findings):
            lines = tuple(access.line if access else 0 for access in (finding.first, finding.second))
            key = (finding.kind, finding.hazard, finding.missing, finding.memory, finding.tensor, *lines)
            before = merged.get(key)
            merged[key] = finding if before is None else dataclasses.replace(before, count=before.count + finding.count)
        return tuple(merged.values())


def group(kernels: Iterable[KernelReport]) -> list[KernelGroup]:
    """Groups in the order of their first launches."""
    found: dict[tuple[object, ...], list[KernelReport]] = {}
    for kernel in kernels:
        found.setdefault((kernel.kernel, kernel.file, kernel.text, kernel.options), []).append(kernel)
    return [KernelGroup(tuple(launches)) for launches in found.values()]
