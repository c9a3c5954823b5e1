"""Running a few lines of PTODSL on the engine, with arrays in UB or in GM."""

from __future__ import annotations

import functools
import textwrap

import ml_dtypes
import numpy as np

from tilelang_pto.sim import record_module
from tilelang_pto.sim.program import Program

NUMPY = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "ui8": np.uint8, "i16": np.int16, "ui16": np.uint16,
    "i32": np.int32, "ui32": np.uint32, "i64": np.int64, "ui64": np.uint64,
    "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "hif8": np.uint8, "f4e2m1x2": np.uint8, "f4e1m2x2": np.uint8,
}  # fmt: skip

Arrays = dict[str, tuple[str, object]]


def lanes(dtype: str) -> int:
    """Elements in a register."""
    return 256 // np.dtype(NUMPY[dtype]).itemsize


def bits(dtype: str) -> int:
    """Width of an element."""
    return np.dtype(NUMPY[dtype]).itemsize * 8


def same(found: np.ndarray, expected: object) -> None:
    """Bit for bit."""
    unsigned = np.dtype(f"u{found.dtype.itemsize}")
    np.testing.assert_array_equal(found.view(unsigned), np.ascontiguousarray(expected, found.dtype).view(unsigned))


def flushed(values: np.ndarray) -> np.ndarray:
    """Floats as the hardware's approximate functions take and give them: subnormal ones are zero."""
    return np.where(np.abs(values) < ml_dtypes.finfo(values.dtype).smallest_normal, np.copysign(values.dtype.type(0), values), values)


def _arrays(inputs: Arrays, outputs: dict[str, tuple[str, int]]) -> dict[str, tuple[str, np.ndarray]]:
    both = {**inputs, **{name: (dtype, np.zeros(count, NUMPY[dtype])) for name, (dtype, count) in outputs.items()}}
    return {name: (dtype, np.array(data, NUMPY[dtype], order="C")) for name, (dtype, data) in both.items()}


HEADS = {"2026-08": "from ptodsl import pto, scalar", "2026-09": "from ptodsl import pto"}
"""API state to the import line of its modules."""


def in_ub(
    body: str,
    inputs: Arrays,
    outputs: dict[str, tuple[str, int]],
    scope: str = "with pto.vecscope():",
    program=None,
    surface: str = "2026-09",
    **options,
) -> dict[str, np.ndarray]:
    """Run ``body`` inside one vector function; every array is copied to UB, outputs are copied back. Names are UB pointers.

    ``scope`` may be ``"if True:"`` for commands of the scalar unit that run on pipe V; ``program`` may change what was recorded;
    ``options`` are those of a launch.
    """
    arrays = _arrays(inputs, outputs)
    parameters, addresses, loads, stores = [], [], [], []
    at = 0
    for name, (dtype, array) in arrays.items():
        parameters.append(f'g_{name}: pto.ptr(pto.{dtype}, "gm")')
        addresses.append(f'{name} = pto.castptr(pto.const({at}, dtype=pto.i64), pto.ptr(pto.{dtype}, "ub"))')
        size = array.nbytes
        loads.append(f"pto.mte_gm_ub(g_{name}, {name}, 0, {size}, nburst=(1, {size}, {size}))")
        if name in outputs:
            stores.append(f"pto.mte_ub_gm({name}, g_{name}, {size}, nburst=(1, {size}, {size}))")
        at += (size + 31) // 32 * 32
    lines = [
        HEADS[surface],
        '@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)',
        f"def k({', '.join(parameters)}):",
        *(f"    {line}" for line in (*addresses, *loads, 'pto.set_flag("MTE2", "V")', 'pto.wait_flag("MTE2", "V")', scope)),
        textwrap.indent(textwrap.dedent(body), " " * 8),
        *(f"    {line}" for line in ('pto.set_flag("V", "MTE3")', 'pto.wait_flag("V", "MTE3")', *stores)),
    ]
    text = "\n".join(lines) + "\n"
    if program is not None:
        recorded = record_module(text, "k.py", surface)
        program(recorded)
        launch(recorded, [array for _, array in arrays.values()], **options)
    else:
        launch(serialized(text, surface), [array for _, array in arrays.values()], **options)
    return {name: arrays[name][1] for name in outputs}


def in_gm(body: str, inputs: Arrays, outputs: dict[str, tuple[str, int]], **options):
    """Run ``body`` as a kernel; names are GM pointers, all arrays are written in place."""
    arrays = _arrays(inputs, outputs)
    parameters = ", ".join(f'{name}: pto.ptr(pto.{dtype}, "gm")' for name, (dtype, _) in arrays.items())
    head = f'from ptodsl import pto\n@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)\ndef k({parameters}):\n'
    recorded = record_module(head + textwrap.indent(textwrap.dedent(body), "    ") + "\n", "k.py", "2026-09")
    launch(recorded, [array for _, array in arrays.values()], **options)
    return {name: array for name, (_, array) in arrays.items()}


@functools.lru_cache(maxsize=64)
def serialized(text: str, surface: str) -> bytes:
    """The program of a text; tests that run one text on many inputs record it once."""
    return record_module(text, "k.py", surface).serialize()


def launch(program: Program | bytes, arrays: list[np.ndarray], **options) -> None:
    """Run kernel ``k``; types NumPy does not know go as bytes."""
    from tilelang_pto import _native

    plain = [a if a.dtype.isbuiltin == 1 else a.view(np.dtype(f"u{a.itemsize}")) for a in arrays]
    _native.sim_launch(program if isinstance(program, bytes) else program.serialize(), "k", plain, **options)
