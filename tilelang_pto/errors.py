"""The exception family of tilelang-pto.

Every error a user can cause is a :class:`PtoError`. Its message has three parts: what is wrong, where
(kernel, TIR operation or PTODSL line), and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "AbiError",
    "ConfigurationError",
    "FindingError",
    "LayoutError",
    "PtoError",
    "RaceError",
    "ReportError",
    "RuntimeModuleError",
    "SimulationError",
    "SurfaceError",
    "ToolchainError",
    "UnsupportedError",
]


class PtoError(Exception):
    """Base of all errors raised by this package.

    Args:
        what: one sentence that says what is wrong.
        where: places, outermost first, each already readable (``"kernel expand_kernel"``, ``"line 12"``).
        advice: what the user can do instead; empty when nothing is known.
    """

    def __init__(self, what: str, *, where: tuple[str, ...] = (), advice: str = "") -> None:
        self.what = what
        self.where = tuple(where)
        self.advice = advice
        parts = [what]
        parts += [f"  in {place}" for place in self.where]
        if advice:
            parts.append(f"  instead: {advice}")
        super().__init__("\n".join(parts))


class UnsupportedError(PtoError):
    """A TIR construct has no rule, or a rule cannot express it. Nothing was emitted."""


class LayoutError(PtoError):
    """TileLang finds no layout over SIMT threads that suits every loop on a fragment. Nothing was emitted.

    Args:
        fragments: names of the fragments this is about.
    """

    def __init__(self, what: str, *, where: tuple[str, ...] = (), advice: str = "", fragments: tuple[str, ...] = ()) -> None:
        self.fragments = fragments
        super().__init__(what, where=where, advice=advice)


class SurfaceError(PtoError):
    """PTODSL text uses a name, arity, keyword or literal that the chosen API does not have."""


class SimulationError(PtoError):
    """The simulator refuses the program (while recording) or stopped it (while running)."""


class FindingError(SimulationError):
    """The check of a simulation session found something in a kernel (docs/simulator.md)."""


class RaceError(FindingError):
    """Two accesses of the same bytes are not ordered."""


class ReportError(PtoError):
    """A report of the simulator cannot be read: it is damaged, or of another version."""


class RuntimeModuleError(PtoError):
    """A compiled kernel cannot be built, loaded or launched."""


class AbiError(RuntimeModuleError):
    """Host and device disagree about the arguments of a kernel."""


class ToolchainError(RuntimeModuleError):
    """A tool of the chain from PTODSL to a library failed, or refused what it was given.

    Args:
        log: the file that holds everything the tool printed; empty when it was not kept.
    """

    def __init__(self, what: str, *, where: tuple[str, ...] = (), advice: str = "", log: str = "") -> None:
        self.log = log
        super().__init__(what, where=(*where, f"the log {log}") if log else where, advice=advice)


class ConfigurationError(PtoError):
    """An environment variable, option or installed tool does not fit."""
