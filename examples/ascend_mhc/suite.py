"""Runs cases and compares what they give with the references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from tilelang_pto.compare.case import Case, Tolerance

from .launching import compiled
from .sizes import Sizes

__all__ = ["Device", "by_parameters", "quick"]

_GUARD_BYTES, _GUARD = 512, 0xA5
_OTHER_POISON = 0x3C


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
        given = list(case.inputs(seed))
        expected = case.reference(given)
        first, problems = self._call(case, kernel, given)
        for position, reference, tolerance in zip(case.outputs, expected, case.tolerances, strict=True):
            problems += _difference(f"{case.name}: argument {position}", first[position], reference, tolerance)
        if case.deterministic:
            for position in case.outputs:
                given[position] = _filled(given[position], _OTHER_POISON)
            second, more = self._call(case, kernel, given)
            problems += more
            for position in case.outputs:
                if not _same_bits(first[position], second[position]):
                    problems.append(f"{case.name}: argument {position}: a second call gives other bits, or a part is not written")
        return problems

    def _call(self, case: Case, kernel: Any, given: Sequence[Any]) -> tuple[list[Any], list[str]]:
        """The arguments after a call on guarded copies, on the CPU, and what the call must not have done."""
        guarded = [_Guarded(value, self.torch_device) if isinstance(value, torch.Tensor) else value for value in given]
        kernel(*(value.tensor if isinstance(value, _Guarded) else value for value in guarded))
        problems = []
        after = [value.tensor.cpu() if isinstance(value, _Guarded) else value for value in guarded]
        for position, value in enumerate(guarded):
            if not isinstance(value, _Guarded):
                continue
            if not value.intact():
                problems.append(f"{case.name}: argument {position}: the kernel wrote beside the tensor")
            if position not in case.outputs and not _same_bits(after[position], given[position]):
                problems.append(f"{case.name}: argument {position}: the kernel changed an input")
        return after, problems


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


class _Guarded:
    """A contiguous copy of a tensor between guard bytes."""

    def __init__(self, source: torch.Tensor, device: str) -> None:
        size = source.numel() * source.element_size()
        memory = torch.full((size + 2 * _GUARD_BYTES,), _GUARD, dtype=torch.uint8, device=device)
        self._guards = memory[:_GUARD_BYTES], memory[_GUARD_BYTES + size :]
        self.tensor = memory[_GUARD_BYTES : _GUARD_BYTES + size].view(source.dtype).reshape(source.shape)
        self.tensor.copy_(source)

    def intact(self) -> bool:
        return all(bool((guard == _GUARD).all()) for guard in self._guards)


def _filled(tensor: torch.Tensor, byte: int) -> torch.Tensor:
    """A tensor of the same type and shape with other contents."""
    return torch.full((tensor.numel() * tensor.element_size(),), byte, dtype=torch.uint8).view(tensor.dtype).reshape(tensor.shape)


def _raw(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().flatten().view(torch.uint8)


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and (not one.numel() or torch.equal(_raw(one), _raw(other)))


def _difference(what: str, found: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> list[str]:
    """What is wrong with an output, in one sentence that shows the worst element."""
    if found.shape != expected.shape:
        return [f"{what}: shape {tuple(found.shape)}, the reference has {tuple(expected.shape)}"]
    exact = not tolerance.relative and not tolerance.absolute
    if exact and _same_bits(found, expected):
        return []
    value, reference = found.double(), expected.double()
    error = (value - reference).abs()
    allowed = tolerance.absolute + tolerance.relative * reference.abs()
    same = (value == reference) | (value.isnan() & reference.isnan())  # infinities have no difference
    wrong = ~same & ~(error <= allowed)
    count = int(wrong.sum())
    if not count and not exact:
        return []
    if not count:
        return [f"{what}: equal in value, but not in every bit (dtype {found.dtype}, reference {expected.dtype})"]
    excess = torch.where(wrong, (error - allowed).nan_to_num(nan=float("inf")), -1.0)
    worst = int(excess.argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(worst), found.shape))
    missing = int((wrong & value.isnan()).sum())
    return [
        f"{what}: {count} of {found.numel()} elements wrong{f', {missing} of them NaN' if missing else ''}; the worst at {list(index)}: "
        f"found {value.flatten()[worst]:.9g}, expected {reference.flatten()[worst]:.9g}, "
        f"error {error.flatten()[worst]:.3g}, allowed {allowed.flatten()[worst]:.3g}"
    ]
