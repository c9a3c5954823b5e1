"""The module objects that a module text imports: the package ``ptodsl``, ``pto`` and ``scalar``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import kinds, registry
from tilelang_pto.sim.standin.control import CONST_EXPR
from tilelang_pto.sim.standin.recorder import SurfaceNameError
from tilelang_pto.sim.standin.types import DTYPE_ALIASES, DTYPE_NAMES, PLAIN

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

__all__ = ["Bound", "Namespace", "Package"]


class Bound:
    """One call of the API, bound to a recorder."""

    __slots__ = ("_entry", "_function", "_recorder")

    def __init__(self, recorder: Recorder, entry: registry.Entry) -> None:
        self._recorder = recorder
        self._entry = entry
        self._function = entry.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder, entry = self._recorder, self._entry
        if recorder.place not in entry.places:
            recorder.require_place(f"{entry.namespace}.{entry.name}", entry.places)
        try:
            return self._function(recorder, *args, **kwargs)
        except TypeError as error:
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None:
                raise
            recorder.refuse(f"wrong arguments: {error}", signature(entry))

    def __repr__(self) -> str:
        return f"<{self._entry.namespace}.{self._entry.name}>"


def signature(entry: registry.Entry) -> str:
    """The call as the user writes it."""
    parts = []
    star = False
    for parameter in list(inspect.signature(entry.function).parameters.values())[1:]:
        if parameter.name.startswith("_"):
            continue
        name = parameter.name.rstrip("_")
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if parameter.kind is parameter.VAR_POSITIONAL:
            name, star = f"*{name}", True
        parts.append(name if parameter.default is parameter.empty else f"{name}={parameter.default!r}")
    return f"{entry.namespace}.{entry.name}({', '.join(parts)})"


class Namespace:
    """``pto`` or ``scalar`` of one API state."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self._recorder = recorder
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        recorder, namespace = self._recorder, self._name
        found = registry.find(recorder.surface, namespace, name)
        value: Any
        if found is not None:
            value = Bound(recorder, found)
        elif namespace == "pto" and name in DTYPE_NAMES:
            value = PLAIN[DTYPE_ALIASES.get(name, name)].bind(recorder)
        elif namespace == "pto" and name == "const_expr":
            value = CONST_EXPR
        elif namespace == "pto" and name in kinds.CONSTANTS:
            value = kinds.CONSTANTS[name]
        else:
            self._missing(name)
        self.__dict__[name] = value
        return value

    def _missing(self, name: str) -> Any:
        recorder, namespace = self._recorder, self._name
        where = recorder.where(recorder.line())
        if namespace == "pto" and name in kinds.NOT_SIMULATED:
            raise SurfaceNameError(f"the simulator has no pto.{name}", where=where, advice=kinds.NOT_SIMULATED[name])
        what = f"the {recorder.surface} API has no {namespace}.{name}"
        places = [
            f"{other}.{name} in the {surface} API"
            for surface, spaces in ((recorder.surface, ("pto", "scalar")), (_other(recorder.surface), ("pto", "scalar")))
            for other in spaces
            if registry.find(surface, other, name) is not None
        ]
        raise SurfaceNameError(what, where=where, advice=" or ".join(places))

    def __repr__(self) -> str:
        return f"<ptodsl.{self._name} of the simulator, {self._recorder.surface}>"


def _other(surface: str) -> str:
    return registry.SEPTEMBER if surface == registry.AUGUST else registry.AUGUST


class Package:
    """``ptodsl``."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.pto = Namespace(recorder, "pto")
        if recorder.surface == registry.AUGUST:
            self.scalar = Namespace(recorder, "scalar")
        else:
            self.MAD_RUNTIME_FLAGS = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        recorder = self._recorder
        raise SurfaceNameError(
            f"ptodsl of the {recorder.surface} API has no {name}", where=recorder.where(recorder.line()), advice="from ptodsl import pto"
        )
