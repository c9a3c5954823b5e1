"""Runs vector operations on registers: builds the TIR, emits and checks the text, executes it on the simulator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from tir_builder import access, op, pointer, registers, sequence, simd_block, vector_kernel
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")
BF16 = ml_dtypes.bfloat16
NUMPY = {
    "bfloat16": BF16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float4_e2m1fnx2": np.uint8,  # two values
}
F32_EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.75, 3.0e38, -3.0e38, 1e-38, 65504.0, 1e-3, -7.0, 100.25, np.pi, -np.e, 4096.5]


def numpy_dtype(name: str):
    return np.dtype(NUMPY.get(name, name))


def sample(dtype: str, seed: int = 0) -> np.ndarray:
    """A register of edge values and random ones, negative numbers included."""
    kind = numpy_dtype(dtype)
    count = 256 // kind.itemsize
    rng = np.random.default_rng(seed)
    if dtype in ("float32", "float16", "bfloat16"):
        values = np.concatenate([np.array(F32_EDGES, np.float32), rng.normal(size=count).astype(np.float32) * 8])[:count]
        with np.errstate(over="ignore"):
            return np.roll(values, seed * 5).astype(kind)
    info = np.iinfo(kind)
    edges = np.array([0, 1, 2, 7, info.max, info.min, info.max - 1, info.min + 1], kind)
    return np.roll(np.concatenate([edges, rng.integers(info.min, info.max, count, dtype=np.int64).astype(kind)])[:count], seed * 3)


def evaluate(surface, inputs, output, function, **layout) -> np.ndarray:
    """Result register of ``function`` over one register per input."""
    mod = registers({name: str(array.dtype) for name, array in inputs.items()}, output, function, **layout)
    emitted = emit_module(mod, surface=surface_of(surface))
    require_clean(emitted.text, surface_of(surface))
    kind = numpy_dtype(output)
    out = np.zeros(layout.get("lanes") or 256 // kind.itemsize, kind)
    run(emitted.text, "map", *inputs.values(), out)
    return out


def ulps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Distance of float32 values in units of the last place; infinities are the neighbours of the largest numbers."""

    def rank(values: np.ndarray) -> np.ndarray:
        bits = values.view(np.int32).astype(np.int64)
        return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    return np.abs(rank(a) - rank(b))


def register(dtype: str) -> str:
    if dtype == "float4_e2m1fnx2":
        return "float4_e2m1fnx512"
    return f"{dtype}x{256 // numpy_dtype(dtype).itemsize}"


def full(dtype: str):
    return op("tl.simd.pset", "boolx256", numpy_dtype(dtype).itemsize * 8, "PAT_ALL")


def first(dtype: str, count: int):
    return op("tl.simd.pset", "boolx256", numpy_dtype(dtype).itemsize * 8, f"PAT_VL{count}")


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == BF16 else array


REGION = 1024
"""Bytes of UB that :func:`run_kernel` gives each argument."""


def run_kernel(surface, inputs, outputs, body) -> list[np.ndarray]:
    """Arrays that a vector function leaves in UB.

    Args:
        surface: API state.
        inputs: arrays of at most ``REGION`` bytes; each lies at the start of a region of UB.
        outputs: TIR dtype and number of elements of each result, which start as zeros.
        body: gets a function ``at(number, dtype, offset=0, extent=1)`` that makes access pointers into the regions (inputs first, then
            outputs) and gives the statements of the vector function.
    """
    arena = tirx.decl_buffer((REGION * 16,), "uint8", name="arena", scope="shared.dyn")

    def at(number, dtype, offset=0, extent=1):
        return access(arena.data, dtype, number * REGION // numpy_dtype(dtype).itemsize + offset, extent)

    regions = [(f"in_{i}", array.dtype, array.size) for i, array in enumerate(inputs)]
    regions += [(f"out_{i}", numpy_dtype(name), count) for i, (name, count) in enumerate(outputs)]
    params = [pointer(name, "uint8") for name, _, _ in regions]

    def flag(verb, event):
        return tirx.Evaluate(op(f"tl.ascend_{verb}_flag", "handle", event, 0))

    def copy_in(number, size):
        return tirx.Evaluate(
            op("tl.ascend_copy_gm_to_ubuf", "handle", at(number, "uint8"), access(params[number], "uint8", 0, size, 1),
               0, 1, size, 0, 0, 0, 0, size, size)
        )  # fmt: skip

    def copy_out(number, size):
        return tirx.Evaluate(
            op("tl.ascend_copy_ubuf_to_gm", "handle", access(params[number], "uint8", 0, size, 2), at(number, "uint8"),
               0, 1, size, 4, size, size)
        )  # fmt: skip

    sizes = [dtype.itemsize * count for _, dtype, count in regions]
    whole = sequence(
        tirx.AllocBuffer(arena),
        *(copy_in(number, size) for number, size in enumerate(sizes)),
        flag("set", "MTE2_V"),
        flag("wait", "MTE2_V"),
        simd_block(*body(at)),
        flag("set", "V_MTE3"),
        flag("wait", "V_MTE3"),
        *(copy_out(number, sizes[number]) for number in range(len(inputs), len(regions))),
    )
    emitted = emit_module(vector_kernel("map", params, lambda _: whole), surface=surface_of(surface))
    require_clean(emitted.text, surface_of(surface))
    results = [np.zeros(count, dtype) for _, dtype, count in regions[len(inputs) :]]
    bits = [np.ascontiguousarray(array).view(np.uint8).copy() for array in inputs]
    raw = [np.zeros(array.nbytes, np.uint8) for array in results]
    run(emitted.text, "map", *bits, *raw)
    return [data.view(array.dtype) for data, array in zip(raw, results, strict=True)]


def load(at, number, dtype, offset=0, dist="NORM"):
    """A register of a region."""
    return op("tl.simd.vld", register(dtype), at(number, dtype, offset, 1), dist)


def store(at, number, dtype, value, offset=0, mask=None, dist=None):
    """The statement that stores a register to a region."""
    bits = numpy_dtype(dtype).itemsize * 8
    where = at(number, dtype, offset, 1)
    return tirx.Evaluate(op("tl.simd.vsts", "handle", where, value, full(dtype) if mask is None else mask, dist or f"NORM_B{bits}"))
