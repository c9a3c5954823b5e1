"""Small kernels with one ordering missing, and what the simulator has to say about them.

A body is PTODSL text. Lines that begin with ``+`` are there only in the repaired kernel, lines that begin with ``-`` only in the racy one.
Comments ``# 1`` and ``# 2`` mark the two places that a finding names.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, replace

import numpy as np
from cube_harness import AT, module
from engine_harness import HEADS, NUMPY, serialized

from tilelang_pto import _native
from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import session
from tilelang_pto.sim.report.model import Finding

__all__ = ["AT", "HEADS", "POLICIES", "Hazard", "check_hazard", "findings_of", "launch", "marked", "text_of", "variant"]

POLICIES = ("late", "eager", "random:1", "random:7")

Arrays = dict[str, tuple[str, np.ndarray]]

VECTOR = {"x": ("f32", np.arange(1, 513)), "y": ("f32", np.zeros(512))}
"""Arguments of kernels for one vector core."""


def variant(body: str, repaired: bool) -> str:
    """The racy or the repaired kernel."""
    drop, keep = ("-", "+") if repaired else ("+", "-")
    lines = [line for line in textwrap.dedent(body).splitlines() if not line.startswith(drop)]
    return "\n".join(line[1:] if line.startswith(keep) else line for line in lines) + "\n"


def text_of(body: str, arrays: Arrays, kind: str | None) -> str:
    """The module text around a body."""
    return module({name: dtype for name, (dtype, _) in arrays.items()}, body, kind)


def marked(text: str, mark: str) -> int:
    """The line with the comment ``# mark``."""
    (line,) = [number for number, line in enumerate(text.splitlines(), 1) if f"# {mark}" in line]
    return line


def launch(text: str, arrays: Arrays, **options) -> dict[str, np.ndarray]:
    """Run kernel ``k`` on copies of the arrays and return them."""
    data = {name: np.array(array, NUMPY[dtype], order="C") for name, (dtype, array) in arrays.items()}
    plain = [array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}") for array in data.values()]
    _native.sim_launch(serialized(text, "2026-09"), "k", plain, **options)
    return data


def findings_of(text: str, arrays: Arrays, policy: str = "late", **options) -> tuple[tuple[Finding, ...], dict[str, np.ndarray]]:
    """What a full check finds, and what the kernel leaves in the arrays."""
    with session(check="full", race="report", policy=policy) as s:
        found = launch(text, arrays, **options)
    return s.report.kernels[-1].findings, found


@dataclass(frozen=True)
class Hazard:
    """A racy kernel with its repair.

    Args:
        body: the text, see above.
        hazard: ``RAW``, ``WAR`` or ``WAW``.
        pipes: of the two places.
        missing: what the finding asks for.
        memory: where the bytes are.
        bytes: first byte and the one behind the last.
        executions: of the two places.
        cores: of the two places, in a block with several.
        tensor: the argument, in GM.
        kind: of the kernel; None: mixed.
        also: hazards of the further races that the same missing order gives.
    """

    body: str
    hazard: str
    pipes: tuple[str, str]
    missing: str
    memory: str = "UB"
    bytes: tuple[int, int] = (0, 256)
    executions: tuple[int, int] = (1, 1)
    cores: tuple[str, str] = ("", "")
    tensor: str | None = None
    kind: str | None = "vector"
    arrays: Arrays = field(default_factory=lambda: VECTOR)
    options: dict = field(default_factory=dict)
    also: tuple[str, ...] = ()

    def swapped(self) -> Hazard:
        """The same race, the other place first."""
        (pipe, other), (core, other_core) = self.pipes, self.cores
        return replace(
            self,
            hazard={"RAW": "WAR", "WAR": "RAW"}.get(self.hazard, self.hazard),
            pipes=(other, pipe),
            cores=(other_core, core),
            executions=self.executions[::-1],
            missing=f"no flag from {other} of {other_core} to {pipe} of {core} between them",
        )


def check_hazard(hazard: Hazard, policies: tuple[str, ...] = POLICIES) -> None:
    """Every policy reports exactly the race, and nothing about the repaired kernel, which gives the same results everywhere."""
    racy = text_of(variant(hazard.body, False), hazard.arrays, hazard.kind)
    repaired = text_of(variant(hazard.body, True), hazard.arrays, hazard.kind)
    results = []
    for policy in policies:
        findings, _ = findings_of(racy, hazard.arrays, policy, **hazard.options)
        # What runs too early may also read what nothing has written yet.
        races = [f for f in findings if f.kind == "race"]
        assert len(races) == 1 + len(hazard.also), [f.message for f in findings]
        assert {str(f.hazard) for f in races} >= set(hazard.also)
        line, other = marked(racy, "1"), marked(racy, "2")
        f = next(f for f in races if f.hazard == hazard.hazard or hazard.cores[0] != hazard.cores[1])
        assert f.first is not None and f.second is not None
        expected, first, second = hazard, f.first, f.second
        if first.core != hazard.cores[0]:  # among cores, the one that came first is first
            expected, line, other = expected.swapped(), other, line
        assert (f.hazard, f.memory, f.tensor, (f.begin, f.end)) == (expected.hazard, hazard.memory, hazard.tensor, hazard.bytes), f.message
        assert (first.line, second.line) == (line, other), f.message
        assert (first.pipe, second.pipe) == expected.pipes
        assert (first.core, second.core) == expected.cores
        assert (first.execution, second.execution) == expected.executions, f.message
        access = {"RAW": ("write", "read"), "WAR": ("read", "write"), "WAW": ("write", "write")}[expected.hazard]
        assert (first.access, second.access) == access
        assert f.missing == expected.missing
        for part in (f"{f.hazard} race", f"line {first.line}", f"line {second.line}", expected.missing):
            assert part in f.message
        findings, found = findings_of(repaired, hazard.arrays, policy, **hazard.options)
        assert [f.message for f in findings] == []
        results.append(found)
    for found in results[1:]:
        for name, array in found.items():
            np.testing.assert_array_equal(array.view(np.uint8), results[0][name].view(np.uint8))


def stopped(body: str, arrays: Arrays, kind: str | None = "vector", policy: str = "late", **options) -> SimulationError:
    """The error that ends a launch under the full check."""
    with session(check="full", policy=policy):
        try:
            launch(text_of(body, arrays, kind), arrays, **options)
        except SimulationError as error:
            return error
    raise AssertionError("the launch was not stopped")
