"""Runs cases and compares what they give with the references."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from tilelang_pto.compare.case import Case
from tilelang_pto.compare.checking import problems_of_call

from .launching import compiled
from .sizes import Sizes

__all__ = ["Device", "by_parameters", "quick"]


@dataclass(frozen=True)
class Device:
    """Where the suite runs.

    Attributes:
        target: ``pto`` or ``ascend``.
        torch_device: ``cpu`` (the simulator) or ``npu``.
        sizes: sizes of the cases.
    """

    target: str
    torch_device: str
    sizes: Sizes

    def check(self, cases: Iterable[Case], seed: int = 0) -> None:
        """Run every case and fail with what is wrong of all of them."""
        problems = [problem for case in cases for problem in self.problems(case, seed)]
        if problems:
            pytest.fail("\n".join(problems), pytrace=False)

    def problems(self, case: Case, seed: int = 0) -> list[str]:
        """What is wrong with a case, one sentence each.

        Every output is compared with the reference; the kernel may write nothing but its outputs, and not beside them; a second
        call, with other contents in the outputs before it, has to give the same bits where the case promises that.
        """
        kernel = compiled(case.kernel, case.specialisation, case.program, self.target, case.pass_configs)
        return [f"{case.name}: {problem}" for problem in problems_of_call(case, kernel, seed, self.torch_device)]


def by_parameters(cases: Iterable[Case]) -> list[tuple[Case, ...]]:
    """Cases of the same parameters (forward and backward) together, in the order in which they first appear."""
    groups: dict[tuple[tuple[str, int | str], ...], list[Case]] = {}
    for case in cases:
        groups.setdefault(tuple(case.parameters.items()), []).append(case)
    return [tuple(group) for group in groups.values()]


def quick(groups: Iterable[tuple[Case, ...]]) -> list[tuple[Case, ...]]:
    """The first group of every set of kernels."""
    first: dict[tuple[str, ...], tuple[Case, ...]] = {}
    for group in groups:
        first.setdefault(tuple(case.kernel for case in group), group)
    return list(first.values())
