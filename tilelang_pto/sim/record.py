"""Record a PTODSL module text: execute it with a stand-in ``ptodsl`` and keep what it calls."""

from __future__ import annotations

import builtins
import re
from types import CodeType
from typing import Any

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import standin
from tilelang_pto.sim.program import Program
from tilelang_pto.sim.standin.namespace import Package
from tilelang_pto.sim.standin.recorder import Recorder

__all__ = ["record_module"]

#: Builtins that a module text may use. Files, processes and code evaluation are not among them.
_BUILTINS = {
    name: getattr(builtins, name)
    for name in (
        "ArithmeticError",
        "AssertionError",
        "AttributeError",
        "BaseException",
        "Exception",
        "False",
        "IndexError",
        "KeyError",
        "NameError",
        "None",
        "NotImplementedError",
        "OverflowError",
        "RuntimeError",
        "StopIteration",
        "True",
        "TypeError",
        "ValueError",
        "ZeroDivisionError",
        "__build_class__",
        "abs",
        "all",
        "any",
        "bool",
        "callable",
        "dict",
        "divmod",
        "enumerate",
        "filter",
        "float",
        "frozenset",
        "getattr",
        "hasattr",
        "int",
        "isinstance",
        "issubclass",
        "iter",
        "len",
        "list",
        "map",
        "max",
        "min",
        "next",
        "object",
        "pow",
        "property",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "slice",
        "sorted",
        "staticmethod",
        "str",
        "sum",
        "super",
        "tuple",
        "type",
        "zip",
    )
}

_IMPORT = re.compile(r"^\s*from\s+ptodsl\s+import\s+(.+)$", re.MULTILINE)


def _infer_surface(text: str) -> str:
    for match in _IMPORT.finditer(text):
        words = re.split(r"[\s,()]+", match.group(1).split("#")[0])
        if "scalar" in words:
            return standin.AUGUST
    if re.search(r"\bptodsl\.scalar\b", text):
        return standin.AUGUST
    return standin.SEPTEMBER


def record_module(text: str, filename: str = "<pto>", surface: str | None = None) -> Program:
    """Execute a PTODSL module text with a stand-in ``ptodsl`` and return what its kernels do.

    The stand-in exists for this call only; ``sys.modules`` and all other global state stay as they are, so calls from
    several threads do not meet.

    Args:
        text: the module text.
        filename: its name in messages and in the program.
        surface: ``"2026-08"`` or ``"2026-09"``; inferred from the import line when None.

    Returns:
        The program with one function per ``@pto.jit``.

    Raises:
        SimulationError: the text does something that the API or the simulator does not allow. The message names the
            kernel, the file with line, and the source line.
    """
    if surface is None:
        surface = _infer_surface(text)
    elif surface not in standin.SURFACES:
        raise SimulationError(f"unknown API state {surface!r}", advice="one of " + ", ".join(standin.SURFACES))
    recorder = Recorder(text, filename, surface)
    recorder.program.text = text
    package = Package(recorder)

    def import_(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if name != "ptodsl" or level:
            recorder.refuse(f"import of {name!r}", "a module text imports ptodsl only")
        for item in fromlist or ():
            if item != "*":
                getattr(package, item)  # a name that the API state lacks is an error of ours, not an ImportError
        return package

    scope: dict[str, Any] = {"__builtins__": {**_BUILTINS, "__import__": import_}, "__name__": "__pto__", "__file__": filename}
    try:
        code: CodeType = compile(text, filename, "exec", dont_inherit=True)
        exec(code, scope)
        for kernel in recorder.kernels:
            recorder.program.functions.append(kernel.trace())
    except SimulationError:
        raise
    except SyntaxError as error:
        raise SimulationError(f"syntax error: {error.msg}", where=recorder.where(error.lineno or 0)) from error
    except Exception as error:
        raise SimulationError(f"{type(error).__name__}: {error}", where=recorder.where(_line_of(error, filename))) from error
    names = [function.name for function in recorder.program.functions]
    for name in names:
        if names.count(name) > 1:
            raise SimulationError(f"two kernels are called {name!r}", where=(filename,), advice="different names")
    if not names:
        raise SimulationError("the module text has no kernel", where=(filename,), advice="a function under @pto.jit(...)")
    return recorder.program


def _line_of(error: BaseException, filename: str) -> int:
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
