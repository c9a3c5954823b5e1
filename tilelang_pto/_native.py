"""Calling the native execution engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tilelang_pto import settings
from tilelang_pto.errors import ConfigurationError, SimulationError
from tilelang_pto.runtime.native import library_path, load

__all__ = [
    "sim_accuracy",
    "sim_failed_report",
    "sim_launch",
    "sim_ops",
    "sim_progress",
    "sim_session_begin",
    "sim_session_end",
    "sim_session_reports",
    "sim_timing_figures",
]


def _function(name: str) -> Any:
    load()
    import tvm_ffi

    found = tvm_ffi.get_global_func(name, allow_missing=True)
    if found is None:
        raise ConfigurationError(
            f"the native library of tilelang-pto has no {name}",
            where=(str(library_path()),),
            advice="it is older than the Python files; build it again: pip install --force-reinstall --no-deps .",
        )
    return found


def _tensor(value: Any) -> Any:
    """An argument as TVM-FFI takes it: arrays become tensors that share their memory."""
    if isinstance(value, (bool, int, float)):
        return value
    import numpy as np
    import tvm_ffi

    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf" or value.dtype.isbuiltin != 1 or value.dtype.itemsize > 8 or not value.flags.writeable:
            if not value.flags.writeable:
                raise SimulationError("an array argument is read-only", advice="pass a copy")
            if not value.flags.c_contiguous:
                raise SimulationError("an array argument is not contiguous", advice="pass a contiguous copy")
            value = value.view(np.uint8)  # types DLPack does not know, such as those of ml_dtypes
        return tvm_ffi.from_dlpack(value)
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "__dlpack__"):
        return tvm_ffi.from_dlpack(value)
    return value


def sim_launch(
    program: bytes,
    function: str,
    args: Sequence[Any],
    *,
    grid: int = 1,
    host_threads: int = 0,
    max_steps: int = 0,
    perturbation: int | None = None,
    mad_order: str | None = None,
    seed: int | None = None,
    text: str = "",
) -> dict[str, int]:
    """Run blocks ``0..grid-1`` of one function of a program.

    Args:
        program: the program form's bytes.
        function: name of the function.
        args: one per parameter: NumPy or torch CPU arrays (written in place) for pointers, numbers for scalars.
        grid: number of blocks.
        host_threads: host threads to use; 0 means all.
        max_steps: instructions after which a block counts as endless; 0 means the default.
        perturbation: seed with which approximate operations err by up to their documented error; None: they do not.
        mad_order: how a mad adds its products: ``ascending``, ``blocked``, ``reverse`` or ``random:SEED``; None: as set by
            ``TILELANG_PTO_MAD_ORDER``.
        seed: how the cores of a block take turns; 0 means in equal turns, None: as set by ``TILELANG_PTO_SEED``.
        text: the module text the program was recorded from; errors quote its line.

    Returns:
        Counts of what was executed.

    Raises:
        ConfigurationError: the native library is not built or does not fit.
        FindingError: the check found something.
        SimulationError: the program is not valid, or was stopped.
    """
    launch = _function("tilelang_pto.sim_launch")
    perturb = -1 if perturbation is None else perturbation
    order = settings.mad_order() if mad_order is None else mad_order
    turns = settings.seed() if seed is None else seed
    tensors = [_tensor(a) for a in args]
    answer = json.loads(str(launch(program, function, tensors, grid, host_threads, max_steps, perturb, order, turns, text)))
    if "setting" in answer:
        raise ConfigurationError(answer["setting"]["message"], advice=answer["setting"]["advice"])
    if "finding" in answer:
        from tilelang_pto.sim.report.finding_text import finding_error
        from tilelang_pto.sim.report.reading import read_kernel

        raise finding_error(read_kernel(sim_failed_report()))
    if "error" in answer:
        raise _error(answer["error"], text.splitlines())
    return dict(answer)


def _error(error: dict[str, Any], lines: Sequence[str]) -> SimulationError:
    where = []
    if error["function"]:
        where.append(f"kernel {error['function']}")
    if error["file"] or error["line"] >= 0:
        where.append(f"{error['file']}:{error['line']}" if error["line"] >= 0 else error["file"])
        if 0 < error["line"] <= len(lines) and lines[error["line"] - 1].strip():
            where.append(lines[error["line"] - 1].strip())
    if error["op"]:
        where.append(error["op"])
    if error["core"] >= 0:
        parts = [f"block {error['core']}", error["core_name"], f"pipe {error['pipe']}" if error["pipe"] else ""]
        where.append(", ".join(part for part in parts if part))
    return SimulationError(error["message"], where=tuple(where))


def sim_ops() -> list[str]:
    """Names of the operations that the engine executes, sorted."""
    return [str(name) for name in _function("tilelang_pto.sim_ops")()]


def sim_accuracy() -> str:
    """The engine's table of documented errors, as JSON; :mod:`tilelang_pto.sim.accuracy` reads it."""
    return str(_function("tilelang_pto.sim_accuracy")())


def sim_timing_figures() -> str:
    """The engine's table of timing figures, as JSON; :mod:`tilelang_pto.sim.timing_figures` reads it."""
    return str(_function("tilelang_pto.sim_timing_figures")())


def sim_session_begin(options: str) -> None:
    """Open a session inside those that are open; ``options`` is the JSON text of :class:`tilelang_pto.sim.options.SimOptions`."""
    _function("tilelang_pto.sim_session_begin")(options)


def sim_session_end() -> str:
    """Close the innermost session; the JSON list of its reports."""
    return str(_function("tilelang_pto.sim_session_end")())


def sim_session_reports() -> str:
    """The JSON list of the reports of the innermost session up to now."""
    return str(_function("tilelang_pto.sim_session_reports")())


def sim_failed_report() -> str:
    """Report of the last launch of this thread that findings ended, as JSON; empty when it has been taken already."""
    return str(_function("tilelang_pto.sim_failed_report")())


def sim_progress() -> tuple[int, int]:
    """Blocks done and blocks in all of the launch that began last, from any thread; zeros before the first."""
    done, total = _function("tilelang_pto.sim_progress")()
    return int(done), int(total)
