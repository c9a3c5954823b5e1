"""The recorder: regions, values, emission. One recorder belongs to one execution of one module text."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim.program import Function, Operation, Program, Region
from tilelang_pto.sim.standin.types import SurfaceType
from tilelang_pto.sim.standin.values import Value, wrap
from tilelang_pto.sim.views import ViewTable

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.control import KernelHandle

__all__ = ["Recorder", "Scope", "SurfaceNameError"]

#: More operations than any real kernel has; reached by an unrolled loop gone wild.
OPERATION_LIMIT = 2_000_000

_ADVICE_PLACE = {
    "vecscope": "a vector function holds vector and scalar operations only; end `with pto.vecscope()` first",
    "simt": "a SIMT function holds scalar code only; end `with pto.simt(...)` first",
    "kernel": "inside a kernel and outside `pto.vecscope()` and `pto.simt(...)`",
    "module": "inside a kernel",
}


class SurfaceNameError(SimulationError, AttributeError):
    """A name that the API state (or the simulator) does not have; an ``AttributeError`` so that ``hasattr`` works."""


class Scope:
    """One open region. A value may be used as long as the scope that defined it is open."""

    __slots__ = ("constants", "kind", "open", "parent", "place", "region")

    def __init__(self, region: Region, parent: Scope | None, kind: str, place: str) -> None:
        self.region = region
        self.parent = parent
        self.kind = kind  # "kernel", "section", "for", "if", "then", "else", "vecscope", "simt"
        self.place = place
        self.open = True
        self.constants: dict[tuple[str, str, object], int] = {}


class Recorder:
    """Records the calls of one module text into a program.

    Args:
        text: the module text, for messages.
        filename: its name; frames of this file name are the text's own.
        surface: the API state.
    """

    def __init__(self, text: str, filename: str, surface: str) -> None:
        self.filename = filename
        self.surface = surface
        self.program = Program(filename)
        self.scope: Scope | None = None
        self.function: Function | None = None
        self.mode = "auto"
        self.rewrites = False
        self.sections: set[str] = set()
        self.kernels: list[KernelHandle] = []
        self.views = ViewTable(text)
        self._lines = text.splitlines()
        self._count = 0

    # -- places in the text ------------------------------------------------------------------------------

    def line(self) -> int:
        """The line of the module text that is being executed."""
        frame = sys._getframe(1)
        filename = self.filename
        while frame is not None:
            if frame.f_code.co_filename == filename:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return self.function.line if self.function is not None else 0

    def lines(self) -> Iterator[int]:
        """The lines of the module text that are being executed, that of the innermost function first."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.filename:
                yield frame.f_lineno
            frame = frame.f_back

    def comment_above(self, line: int) -> str:
        """Text of the comment lines directly above a line."""
        found: list[str] = []
        for text in reversed(self._lines[: max(line - 1, 0)]):
            if not text.strip().startswith("#"):
                break
            found.append(text.strip().lstrip("# "))
        return "\n".join(reversed(found))

    def where(self, line: int) -> tuple[str, ...]:
        """Kernel, file with line, and the source line."""
        out = []
        if self.function is not None:
            out.append(f"kernel {self.function.name}")
        if line:
            out.append(f"{self.filename}:{line}")
            if 0 < line <= len(self._lines) and self._lines[line - 1].strip():
                out.append(self._lines[line - 1].strip())
        else:
            out.append(self.filename)
        return tuple(out)

    def refuse(self, what: str, advice: str = "", line: int | None = None) -> NoReturn:
        """Raise a :class:`SimulationError` that names the current place."""
        raise SimulationError(what, where=self.where(self.line() if line is None else line), advice=advice)

    # -- scopes ------------------------------------------------------------------------------------------

    @property
    def place(self) -> str:
        """``module``, ``kernel``, ``vecscope`` or ``simt``."""
        return self.scope.place if self.scope is not None else "module"

    def require_place(self, name: str, places: frozenset[str]) -> None:
        """Refuse a call that may not stand here."""
        place = self.place
        if place not in places:
            wanted = " or ".join(
                {"kernel": "the kernel body", "vecscope": "`with pto.vecscope()`", "simt": "`with pto.simt(...)`", "module": "the module"}[
                    p
                ]
                for p in ("kernel", "vecscope", "simt")
                if p in places
            )
            here = {"kernel": "the kernel body", "vecscope": "a vector function", "simt": "a SIMT function", "module": "module level"}[
                place
            ]
            self.refuse(f"{name} may not stand in {here}", f"use it in {wanted}")

    def push(self, region: Region, kind: str, place: str | None = None) -> Scope:
        """Open a region."""
        scope = Scope(region, self.scope, kind, self.place if place is None else place)
        self.scope = scope
        return scope

    def pop(self, scope: Scope) -> None:
        """Close the innermost region."""
        scope.open = False
        self.scope = scope.parent

    # -- emission ----------------------------------------------------------------------------------------

    def new_id(self, kind: SurfaceType) -> int:
        """A fresh value number of the current kernel."""
        function = self.function
        assert function is not None
        function.types.append(kind.record)
        return len(function.types) - 1

    def check_use(self, name: str, value: Value) -> None:
        """Refuse a value whose region is closed, or that belongs to another kernel."""
        if not value.scope.open:
            kinds = {
                "for": "a loop body",
                "then": "a branch",
                "else": "a branch",
                "vecscope": "a vector function",
                "simt": "a SIMT function",
                "section": "a section",
                "kernel": "another kernel",
            }
            advice = {
                "for": "carry it: pto.for_(...).carry(x=...), loop.update(x=...), loop.final('x')",
                "then": "merge it: br.assign(x=...) in both branches, then br.x",
                "else": "merge it: br.assign(x=...) in both branches, then br.x",
                "vecscope": "store it to UB inside the vector function and load it again",
                "simt": "store it to UB or GM inside the SIMT function and load it again",
            }
            self.refuse(
                f"{name} uses a value that was defined inside {kinds.get(value.scope.kind, 'a region')} that has ended",
                advice.get(value.scope.kind, "compute it in the region that uses it"),
            )

    def emit(
        self,
        opcode: str,
        operands: Sequence[Value] = (),
        results: Sequence[SurfaceType] = (),
        attributes: dict[str, int | str | float] | None = None,
        regions: list[Region] | None = None,
        line: int | None = None,
    ) -> list[Any]:
        """Record one operation in the current region and return its results as values."""
        scope = self.scope
        if scope is None:
            self.refuse(f"{opcode} outside of a kernel", _ADVICE_PLACE["module"])
        if scope.kind == "if":
            self.refuse(
                f"{opcode} directly in the body of pto.if_", "put it into `with br.then_:` or `with br.else_:`, or before the pto.if_"
            )
        for operand in operands:
            if not operand.scope.open:
                self.check_use(opcode, operand)
        self._count += 1
        if self._count > OPERATION_LIMIT:
            self.refuse(f"more than {OPERATION_LIMIT} operations", "use pto.for_ in place of an unrolled Python loop")
        ids = tuple([self.new_id(kind) for kind in results])
        scope.region.operations.append(
            Operation(
                opcode,
                self.line() if line is None else line,
                tuple([operand.id for operand in operands]),
                ids,
                {} if attributes is None else attributes,
                [] if regions is None else regions,
            )
        )
        return [wrap(self, number, kind, scope) for number, kind in zip(ids, results, strict=True)]

    def emit1(
        self, opcode: str, operands: Sequence[Value], result: SurfaceType, attributes: dict[str, int | str | float] | None = None
    ) -> Any:
        """Record an operation with one result."""
        return self.emit(opcode, operands, (result,), attributes)[0]
