"""One case of a kernel suite: what is compiled, called and expected.

A suite is a Python module with a list ``CASES``. Its tests and ``tilelang-pto compare`` read the same list, so that a case
is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Case", "Tolerance"]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far an output may be from its reference: ``|found - expected| <= absolute + relative * |expected|``; both 0: every bit."""

    relative: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel at one set of sizes.

    Attributes:
        kernel: name of the kernel, as in tables: ``expand_forward``.
        parameters: the sizes of the case, in the order they are shown: ``{"n0": 1, "n1": 1024, "mhc": 4, "hidden": 2560}``.
        tokens: rows the kernel works on; reports group by it.
        program: makes the kernel's ``tirx.PrimFunc``, for any target. Compiled once per distinct ``specialisation``.
        specialisation: the values ``program`` depends on; cases that agree in it and in ``kernel`` share a compiled kernel.
        inputs: makes the arguments of a call on the CPU from a seed, outputs included (poisoned with NaN).
        outputs: positions of the arguments the kernel writes.
        reference: the expected outputs from the arguments, computed in float64 on the CPU without the kernel.
        tolerances: one for each output.
        deterministic: repeated calls promise the same bits.
        pass_configs: for ``tilelang.compile``.
    """

    kernel: str
    parameters: Mapping[str, int | str]
    tokens: int
    program: Callable[[], Any]
    specialisation: tuple[Any, ...]
    inputs: Callable[[int], Sequence[Any]]
    outputs: tuple[int, ...]
    reference: Callable[[Sequence[Any]], Sequence[Any]]
    tolerances: tuple[Tolerance, ...]
    deterministic: bool = True
    pass_configs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``expand_forward[n0=1,n1=1024,mhc=4,hidden=2560]``."""
        return f"{self.kernel}[{','.join(f'{key}={value}' for key, value in self.parameters.items())}]"

    @property
    def compiled_as(self) -> Hashable:
        """Cases that have this in common share a compiled kernel."""
        return self.kernel, repr(self.specialisation), repr(sorted(self.pass_configs.items()))
