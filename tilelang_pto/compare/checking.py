"""Running a case and comparing what the kernel gives with the reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tilelang_pto.compare.case import Case, Tolerance
from tilelang_pto.errors import PtoError

__all__ = ["WrongNumbersError", "call_guarded", "difference", "problems_of_call", "problems_of_outputs", "same_bits"]

_GUARD_BYTES, _GUARD = 512, 0xA5
_OTHER_POISON = 0x3C


class WrongNumbersError(PtoError):
    """The outputs of a kernel are not those of its reference."""


def call_guarded(case: Case, kernel: Callable[..., Any], given: Sequence[Any], device: str = "cpu") -> tuple[list[Any], list[str]]:
    """Call ``kernel`` on copies of the arguments with guard bytes around them.

    Returns:
        The arguments after the call, on the CPU, and what the call must not have done, one sentence each.
    """
    guarded = [_Guarded(value, device) if isinstance(value, torch.Tensor) else value for value in given]
    kernel(*(value.tensor if isinstance(value, _Guarded) else value for value in guarded))
    after = [value.tensor.cpu() if isinstance(value, _Guarded) else value for value in guarded]
    problems = []
    for position, value in enumerate(guarded):
        if not isinstance(value, _Guarded):
            continue
        if not value.intact():
            problems.append(f"argument {position}: the kernel wrote beside the tensor")
        if position not in case.outputs and not same_bits(after[position], given[position]):
            problems.append(f"argument {position}: the kernel changed an input")
    return after, problems


def problems_of_call(case: Case, kernel: Callable[..., Any], seed: int = 0, device: str = "cpu") -> list[str]:
    """Call the kernel of a case and tell what is wrong with its numbers, one sentence each; see :func:`problems_of_outputs`."""
    given = list(case.inputs(seed))
    first, problems = call_guarded(case, kernel, given, device)
    return problems + problems_of_outputs(case, kernel, given, first, device)


def problems_of_outputs(
    case: Case, kernel: Callable[..., Any], given: Sequence[Any], first: Sequence[Any], device: str = "cpu"
) -> list[str]:
    """What is wrong with the outputs of a first call.

    Every output is compared with the reference; the kernel may write nothing but its outputs, and not beside them; a second call, with
    other contents in the outputs before it, has to give the same bits where the case promises that.

    Args:
        case: what is called.
        kernel: its compiled kernel.
        given: the arguments before the call.
        first: the arguments after it, on the CPU.
        device: where a second call is made.
    """
    problems = []
    for position, reference, tolerance in zip(case.outputs, case.reference(given), case.tolerances, strict=True):
        problems += [f"argument {position}: {what}" for what in difference(first[position], reference, tolerance)]
    if case.deterministic:
        again = [_filled(value, _OTHER_POISON) if position in case.outputs else value for position, value in enumerate(given)]
        second, more = call_guarded(case, kernel, again, device)
        problems += more
        for position in case.outputs:
            if not same_bits(first[position], second[position]):
                problems.append(f"argument {position}: a second call gives other bits, or a part is not written")
    return problems


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Types, shapes and every bit are the same."""
    return one.dtype == other.dtype and one.shape == other.shape and (not one.numel() or torch.equal(_raw(one), _raw(other)))


def difference(found: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance) -> list[str]:
    """What is wrong with an output, in one sentence that shows the worst element; empty if nothing is."""
    if found.shape != expected.shape:
        return [f"shape {tuple(found.shape)}, the reference has {tuple(expected.shape)}"]
    exact = not tolerance.relative and not tolerance.absolute
    if exact and same_bits(found, expected):
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
        return [f"equal in value, but not in every bit (dtype {found.dtype}, reference {expected.dtype})"]
    excess = torch.where(wrong, (error - allowed).nan_to_num(nan=float("inf")), -1.0)
    worst = int(excess.argmax())
    index = [int(i) for i in torch.unravel_index(torch.tensor(worst), found.shape)]
    missing = int((wrong & value.isnan()).sum())
    return [
        f"{count} of {found.numel()} elements wrong{f', {missing} of them NaN' if missing else ''}; the worst at {index}: "
        f"found {value.flatten()[worst]:.9g}, expected {reference.flatten()[worst]:.9g}, "
        f"error {error.flatten()[worst]:.3g}, allowed {allowed.flatten()[worst]:.3g}"
    ]


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
