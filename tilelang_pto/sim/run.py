"""Run a kernel of a module text on the native engine."""

from __future__ import annotations

from typing import Any

from tilelang_pto import settings
from tilelang_pto.errors import SimulationError
from tilelang_pto.sim.program import Function, Program, Type
from tilelang_pto.sim.record import record_module

__all__ = ["run"]


def run(
    text_or_program: str | Program,
    kernel: str,
    *args: Any,
    grid: int = 1,
    host_threads: int = 0,
    ulp: str | None = None,
    mad_order: str | None = None,
    seed: int | None = None,
) -> dict[str, int]:
    """Run blocks ``0..grid-1`` of one kernel on this machine.

    Args:
        text_or_program: a module text, or a program that :func:`~tilelang_pto.sim.record.record_module` returned.
        kernel: name of the kernel.
        args: one per parameter: NumPy or torch CPU arrays for pointers (written in place), numbers for scalars.
        grid: number of blocks.
        host_threads: host threads to use; 0 means all.
        ulp: ``"exact"``, or ``"perturb:SEED"``: approximate operations err by up to their documented error (docs/accuracy.md);
            what ``TILELANG_PTO_ULP`` says if not given.
        mad_order: how a matrix product adds its products: ``"ascending"``, ``"blocked"``, ``"reverse"`` or ``"random:SEED"``;
            what ``TILELANG_PTO_MAD_ORDER`` says if not given.
        seed: how the cores of a block take turns, 0: in equal turns; what ``TILELANG_PTO_SEED`` says if not given.

    Returns:
        Counts of what was executed.

    Raises:
        ConfigurationError: ``ulp`` or the variable is not understood.
        SimulationError: the text, the program or the arguments are refused, or the kernel was stopped.
    """
    from tilelang_pto import _native

    program = record_module(text_or_program) if isinstance(text_or_program, str) else text_or_program
    function = program.function(kernel)
    _check_arguments(function, args)
    perturbation = settings.perturbation() if ulp is None else settings.parse_perturbation(ulp, "ulp")
    return _native.sim_launch(
        program.serialize(),
        kernel,
        args,
        grid=grid,
        host_threads=host_threads,
        perturbation=perturbation,
        mad_order=mad_order,
        seed=seed,
        text=program.text,
    )


def _check_arguments(function: Function, args: tuple[Any, ...]) -> None:
    signature = function.signature()
    where = (f"kernel {function.name}",)
    if len(args) != len(signature):
        wanted = ", ".join(f"{name}: {kind}" for name, kind in signature)
        raise SimulationError(f"{len(args)} arguments given, {len(signature)} needed", where=where, advice=f"({wanted})")
    for (name, kind), value in zip(signature, args, strict=True):
        if kind.kind == "pointer":
            _check_array(where, name, kind, value)
        elif getattr(value, "ndim", None):
            raise SimulationError(f"argument {name} is an array, {kind} is needed", where=where, advice="a number")


def _check_array(where: tuple[str, ...], name: str, kind: Type, value: Any) -> None:
    width = getattr(value, "itemsize", None)
    if width is None or not hasattr(value, "shape"):
        raise SimulationError(
            f"argument {name} is a {type(value).__name__}, {kind} is needed", where=where, advice="a NumPy or torch CPU array"
        )
    if width != element_bytes(kind.dtype):
        advice = f"an array with elements of {element_bytes(kind.dtype)} bytes"
        raise SimulationError(f"argument {name} has elements of {width} bytes, {kind} is needed", where=where, advice=advice)


def element_bytes(dtype: str) -> int:
    """Bytes of one element in memory."""
    if dtype.startswith(("f8", "f4", "hif8", "i1")) and not dtype.startswith("i16"):
        return 1
    digits = dtype.lstrip("buif")
    return int(digits) // 8 if digits.isdigit() else 8
