"""Operations that update a register in place, and those that keep inactive lanes."""

from __future__ import annotations

import numpy as np
import pytest
from simd_registers import SURFACES, evaluate, first, full, load, numpy_dtype, register, run_kernel, sample, store, wide
from tir_builder import access, immediate, op
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import UnsupportedError

FLOATS = ("float32", "float16", "bfloat16")


def variable(dtype: str, count: int = 1):
    scope = "local.var" if count == 1 else "local"
    return tirx.decl_buffer((count,), register(dtype), name="acc", scope=scope)


def slot(buffer, number: int = 0):
    """Pointer to a register of an array."""
    return access(buffer.data, str(buffer.dtype), number, 1)


def updated(surface, dtype, arrays, make, mode="MODE_ZEROING", count=None):
    """Register 1 of 2 after an update: it starts as the first array; ``make`` gives the operands behind the destination."""
    acc = variable(dtype, 2)
    mask = full(dtype) if count is None else first(dtype, count)

    def body(at):
        rest = [load(at, number, dtype) for number in range(1, len(arrays))]
        name, operands = make(*rest)
        return [
            tirx.AllocBuffer(acc),
            tirx.BufferStore(acc, load(at, 0, dtype), [immediate(1)]),
            tirx.BufferStore(acc, load(at, 0, dtype), [immediate(0)]),
            tirx.Evaluate(op(f"tl.simd.{name}", "void", slot(acc, 1), *operands, mask, mode)),
            store(at, len(arrays), dtype, tirx.BufferLoad(acc, [immediate(1)])),
            store(at, len(arrays) + 1, dtype, tirx.BufferLoad(acc, [immediate(0)])),
        ]

    lanes = 256 // numpy_dtype(dtype).itemsize
    result, other = run_kernel(surface, arrays, [(dtype, lanes), (dtype, lanes)], body)
    np.testing.assert_array_equal(other.view(np.uint8), arrays[0].view(np.uint8))
    return result


def once(dtype, exact: np.ndarray) -> np.ndarray:
    """A float64 value rounded to the dtype; products of 24-bit floats are exact in it."""
    with np.errstate(over="ignore"):
        return exact.astype(numpy_dtype(dtype))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in ("vmula", "vmadd", "vaxpy") for dtype in FLOATS if (name, dtype) != ("vaxpy", "bfloat16")],
)
def test_fused_update_rounds_once(surface, name, dtype):
    """A5 has no bfloat16 ``vaxpy``."""
    rng = np.random.default_rng(1)
    acc, a, b = (rng.normal(size=256 // numpy_dtype(dtype).itemsize).astype(numpy_dtype(dtype)) * numpy_dtype(dtype).type(4) for _ in "abc")
    wide_acc, wide_a, wide_b = (array.astype(np.float64) for array in (acc, a, b))
    if name == "vaxpy":
        got = updated(surface, dtype, [acc, a], lambda x: ("vaxpy", (x, tirx.FloatImm("float32", -2.5))))
        expected = wide_a * -2.5 + wide_acc
    else:
        got = updated(surface, dtype, [acc, a, b], lambda x, y: (name, (x, y)))
        expected = wide_acc + wide_a * wide_b if name == "vmula" else wide_acc * wide_a + wide_b
    np.testing.assert_array_equal(wide(got), wide(once(dtype, expected)))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int16", "uint16"])
def test_integer_multiply_add_wraps(surface, dtype):
    acc, a, b = sample(dtype), sample(dtype, 1), sample(dtype, 2)
    got = updated(surface, dtype, [acc, a, b], lambda x, y: ("vmula", (x, y)))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, acc + a * b)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("mode", ["MODE_ZEROING", "MODE_MERGING"])
@pytest.mark.parametrize("count", [1, 8, 32])
def test_inactive_lanes_of_an_update(surface, mode, count):
    rng = np.random.default_rng(2)
    acc, a, b = (rng.integers(-40, 40, 64).astype(np.float32) for _ in "abc")
    got = updated(surface, "float32", [acc, a, b], lambda x, y: ("vmula", (x, y)), mode, count)
    expected = acc + a * b
    expected[count:] = acc[count:] if mode == "MODE_MERGING" else 0
    np.testing.assert_array_equal(got, expected)


MERGING = {
    "vadd": (2, np.add), "vsub": (2, np.subtract), "vmul": (2, np.multiply), "vmax": (2, np.maximum), "vmin": (2, np.minimum),
    "vabs": (1, np.abs), "vneg": (1, np.negative),
}  # fmt: skip


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int16"])
@pytest.mark.parametrize("name", MERGING)
def test_merging_keeps_the_destination(surface, dtype, name):
    """The void form of a merging call: the destination register comes first, and keeps its inactive lanes."""
    operands, model = MERGING[name]
    arrays = [sample(dtype, seed) for seed in range(operands + 1)]
    got = updated(surface, dtype, arrays, lambda *rest: (name, rest), "MODE_MERGING", 8)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = model(*arrays[1:]).astype(arrays[0].dtype)
    expected[8:] = arrays[0][8:]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("surface", SURFACES)
def test_merging_with_a_scalar_and_a_broadcast(surface):
    acc, a = sample("int32"), sample("int32", 1)
    got = updated(surface, "int32", [acc, a], lambda x: ("vadds", (x, immediate(-3))), "MODE_MERGING", 32)
    np.testing.assert_array_equal(got, np.concatenate([(a - 3)[:32], acc[32:]]))
    got = updated(surface, "int32", [acc], lambda: ("vdup", (immediate(-9),)), "MODE_MERGING", 16)
    np.testing.assert_array_equal(got, np.concatenate([np.full(16, -9, np.int32), acc[16:]]))


@pytest.mark.parametrize("surface", SURFACES)
def test_an_update_in_a_loop_is_carried(surface):
    acc = variable("float32")
    index = tirx.Var("i", "int32")
    zero = [immediate(0)]

    def body(at):
        step = tirx.Evaluate(
            op("tl.simd.vmadd", "void", slot(acc), load(at, 0, "float32"), load(at, 1, "float32"), full("float32"), "MODE_ZEROING")
        )
        return [
            tirx.AllocBuffer(acc),
            tirx.BufferStore(acc, load(at, 1, "float32"), zero),
            tirx.For(index, immediate(0), immediate(5), tirx.ForKind.SERIAL, step),
            store(at, 2, "float32", tirx.BufferLoad(acc, zero)),
        ]

    a, b = np.full(64, 0.5, np.float32), np.arange(64, dtype=np.float32)
    (got,) = run_kernel(surface, [a, b], [("float32", 64)], body)
    expected = b
    for _ in range(5):
        expected = expected * a + b
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_distance_of_two_registers(surface, dtype):
    a, b = sample(dtype), sample(dtype, 1)
    for mode in ((), ("MODE_ZEROING",)):
        got = evaluate(surface, {"a": a, "b": b}, dtype, lambda x, y, m=mode: op("tl.simd.vabsdif", register(dtype), x, y, full(dtype), *m))
        with np.errstate(over="ignore", invalid="ignore"):
            np.testing.assert_array_equal(got, np.abs(a - b))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_leaky_relu(surface, dtype):
    a, slopes = sample(dtype), sample(dtype, 1)
    slope = tirx.FloatImm("float32", 0.25)
    with np.errstate(over="ignore", invalid="ignore"):
        got = evaluate(surface, {"a": a}, dtype, lambda x: op("tl.simd.vlrelu", register(dtype), x, slope, full(dtype)))
        np.testing.assert_array_equal(got, np.where(np.signbit(a), a * a.dtype.type(0.25), a))
        got = evaluate(surface, {"a": a, "b": slopes}, dtype, lambda x, y: op("tl.simd.vprelu", register(dtype), x, y, full(dtype)))
        np.testing.assert_array_equal(got, np.where(np.signbit(a), a * slopes, a))


@pytest.mark.parametrize(("name", "surface"), [("chistv2", "2026-08"), ("chistv2", "2026-09"), ("dhistv2", "2026-09")])
@pytest.mark.parametrize("half", [0, 1])
def test_histograms(name, surface, half):
    values = np.random.default_rng(4).integers(0, 256, 256).astype(np.uint8)
    start = sample("uint16")
    acc = variable("uint16")
    zero = [immediate(0)]
    mask = op("tl.simd.pset", "boolx256", 8, "PAT_VL128")

    def body(at):
        return [
            tirx.AllocBuffer(acc),
            tirx.BufferStore(acc, load(at, 0, "uint16"), zero),
            tirx.Evaluate(op(f"tl.simd.{name}", "void", slot(acc), load(at, 1, "uint8"), mask, half)),
            store(at, 2, "uint16", tirx.BufferLoad(acc, zero)),
        ]

    (got,) = run_kernel(surface, [start, values], [("uint16", 128)], body)
    counts = np.bincount(values[:128], minlength=256)
    counts = np.cumsum(counts) if name == "chistv2" else counts
    np.testing.assert_array_equal(got, (start + counts[128 * half : 128 * half + 128]).astype(np.uint16))


def test_the_other_histogram_is_refused_in_august():
    acc = variable("uint16")
    with pytest.raises(UnsupportedError, match="has no dhistv2"):
        run_kernel(
            "2026-08",
            [sample("uint16"), sample("uint8")],
            [("uint16", 128)],
            lambda at: [
                tirx.AllocBuffer(acc),
                tirx.BufferStore(acc, load(at, 0, "uint16"), [immediate(0)]),
                tirx.Evaluate(op("tl.simd.dhistv2", "void", slot(acc), load(at, 1, "uint8"), full("uint8"), 0)),
            ],
        )


def test_a_destination_that_is_no_register():
    from tir_builder import registers

    mod = registers(
        {"a": "float32"}, "float32", lambda x: op("tl.simd.vadds", "float32x64", x, immediate(1), full("float32"), "MODE_MERGING")
    )
    with pytest.raises(UnsupportedError, match="without a destination register"):
        emit_module(mod, surface=surface_of("2026-09"))
