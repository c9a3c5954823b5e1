"""Vector operations from TIR to numbers: emitted, checked, run on the simulator, compared with NumPy and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from engine_harness import flushed
from simd_registers import SURFACES, evaluate, first, full, numpy_dtype, register, sample, ulps, wide
from tir_builder import access, immediate, op, pointer, sequence, simd_block, vector_kernel
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.sim import run

BINARY = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vmul": np.multiply,
    "vmax": np.maximum,
    "vmin": np.minimum,
    "vand": np.bitwise_and,
    "vor": np.bitwise_or,
    "vxor": np.bitwise_xor,
}
FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("int32", "uint32", "int16", "uint16")
CASES = [(name, dtype) for name in BINARY for dtype in FLOATS + INTEGERS]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_lanewise_binary(surface, name, dtype):
    a, b = sample(dtype), sample(dtype, seed=1)
    got = evaluate(surface, {"a": a, "b": b}, dtype, lambda x, y: op(f"tl.simd.{name}", register(dtype), x, y, full(dtype), "MODE_ZEROING"))
    bitwise = name in ("vand", "vor", "vxor")
    if bitwise:
        view = np.dtype(f"uint{a.dtype.itemsize * 8}")
        np.testing.assert_array_equal(got.view(view), BINARY[name](a.view(view), b.view(view)))
        return
    with np.errstate(over="ignore", invalid="ignore"):
        expected = BINARY[name](wide(a), wide(b)).astype(a.dtype)
    np.testing.assert_array_equal(wide(got), wide(expected))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("count", [1, 8, 32, 64])
def test_inactive_lanes_are_zero(surface, dtype, count):
    a, b = sample(dtype), sample(dtype, seed=1)
    got = evaluate(
        surface, {"a": a, "b": b}, dtype, lambda x, y: op("tl.simd.vmax", register(dtype), x, y, first(dtype, count), "MODE_ZEROING")
    )
    expected = np.maximum(wide(a), wide(b))
    expected[count:] = 0
    np.testing.assert_array_equal(wide(got), expected)


SCALARS = [("vadds", np.add, 3), ("vmuls", np.multiply, -5), ("vmaxs", np.maximum, 4), ("vmins", np.minimum, -2)]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int16"])
@pytest.mark.parametrize(("name", "model", "scalar"), SCALARS)
def test_vector_scalar(surface, dtype, name, model, scalar):
    """The scalar is an int32 immediate whatever the lanes are: its value counts."""
    a = sample(dtype)
    got = evaluate(surface, {"a": a}, dtype, lambda x: op(f"tl.simd.{name}", register(dtype), x, scalar, full(dtype), "MODE_ZEROING"))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, model(a, np.array(scalar, a.dtype)).astype(a.dtype))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int16", "uint16"])
@pytest.mark.parametrize("amount", [0, 1, 4, 15])
def test_shift_right_by_scalar_follows_the_sign(surface, dtype, amount):
    a = sample(dtype)
    got = evaluate(surface, {"a": a}, dtype, lambda x: op("tl.simd.vshrs", register(dtype), x, amount, full(dtype), "MODE_ZEROING"))
    np.testing.assert_array_equal(got, a >> np.array(amount, a.dtype))


UNARY = {"vabs": np.abs, "vneg": np.negative, "vrelu": lambda x: np.maximum(x, 0), "vsqrt": np.sqrt, "vexp": np.exp, "vln": np.log}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(surface, name):
    a = sample("float32")
    if name in ("vsqrt", "vln"):
        a = np.abs(a)
    if name == "vexp":
        a = np.clip(a, -80, 80)
    got = evaluate(surface, {"a": a}, "float32", lambda x: op(f"tl.simd.{name}", register("float32"), x, full("float32"), "MODE_ZEROING"))
    operand = flushed(a) if name in ("vsqrt", "vexp", "vln") else a
    with np.errstate(divide="ignore"):
        expected = UNARY[name](operand.astype(np.float64)).astype(np.float32)
    if name in ("vabs", "vneg", "vrelu", "vsqrt"):
        np.testing.assert_array_equal(got, expected)
    else:
        assert ulps(got, expected).max() <= 1


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("part", ["PART_EVEN", "PART_ODD"])
@pytest.mark.parametrize("source", ["bfloat16", "float16"])
def test_widening_conversion_reads_one_half(surface, source, part):
    a = sample(source)
    convert = lambda x: op("tl.simd.vcvt", register("float32"), x, full(source), part, "MODE_ZEROING")  # noqa: E731
    got = evaluate(surface, {"a": a}, "float32", convert)
    np.testing.assert_array_equal(got, a[0 if part == "PART_EVEN" else 1 :: 2].astype(np.float32))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("mask_bits", [16, 32])
@pytest.mark.parametrize("part", ["PART_EVEN", "PART_ODD"])
@pytest.mark.parametrize("target", ["bfloat16", "float16"])
def test_narrowing_conversion_writes_one_half(surface, target, part, mask_bits):
    """TIR gives the predicate at either width; the other half of each lane pair is zero; finite overflow saturates."""
    a = sample("float32")
    mask = op("tl.simd.pset", "boolx256", mask_bits, "PAT_ALL")
    convert = lambda x: op("tl.simd.vcvt", register(target), x, mask, "ROUND_R", "RS_ENABLE", part, "MODE_ZEROING")  # noqa: E731
    got = evaluate(surface, {"a": a}, target, convert)
    kind = numpy_dtype(target)
    largest = float(ml_dtypes.finfo(kind).max)
    expected = np.zeros(128, kind)
    expected[0 if part == "PART_EVEN" else 1 :: 2] = np.clip(a.astype(np.float64), -largest, largest).astype(np.float32).astype(kind)
    np.testing.assert_array_equal(got.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("letter", "model"), [("R", np.rint), ("F", np.floor), ("C", np.ceil), ("Z", np.trunc)])
def test_float_to_integer_rounding(surface, letter, model):
    a = np.clip(sample("float32"), -(2.0**31), 2.0**31 - 256).astype(np.float32)
    a[:8] = [0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.49, -0.51]
    convert = lambda x: op("tl.simd.vcvt", register("int32"), x, full("float32"), f"ROUND_{letter}", "RS_ENABLE", "MODE_ZEROING")  # noqa: E731
    np.testing.assert_array_equal(evaluate(surface, {"a": a}, "int32", convert), model(a).astype(np.int64).astype(np.int32))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("how", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32", "int16", "uint16", "float16"])
def test_compare_and_select(surface, dtype, how):
    a, b = sample(dtype), sample(dtype, seed=1)
    b[::3] = a[::3]

    def choose(x, y):
        mask = op("tl.simd.vcmp", "boolx256", x, y, full(dtype), how)
        return op("tl.simd.vsel", register(dtype), x, y, mask)

    compare = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}[how]
    np.testing.assert_array_equal(evaluate(surface, {"a": a, "b": b}, dtype, choose), np.where(compare(a, b), a, b))


def tree(values: np.ndarray) -> np.ndarray:
    """Pairwise sum of neighbours, the hardware's order, in the values' own type."""
    while len(values) > 1:
        values = (values[0::2] + values[1::2]).astype(values.dtype)
    return values[0]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_reductions(surface, dtype):
    a = sample(dtype) if dtype == "int32" else sample(dtype).clip(-1e6, 1e6)

    def reduce(name):
        return evaluate(surface, {"a": a}, dtype, lambda x: op(f"tl.simd.{name}", register(dtype), x, full(dtype), "MODE_ZEROING"))

    assert reduce("vcadd")[0] == tree(a)
    assert reduce("vcmax")[0] == a.max()
    assert reduce("vcmin")[0] == a.min()
    assert reduce("vcmax").view(np.int32)[1] == int(a.argmax())
    groups = a.reshape(8, 8)
    for name, model in (("vcgadd", tree), ("vcgmax", np.max), ("vcgmin", np.min)):
        np.testing.assert_array_equal(reduce(name), np.array([model(group) for group in groups] + [0] * 56, dtype))


@pytest.mark.parametrize("surface", SURFACES)
def test_exponential_of_a_difference(surface):
    a, b = np.clip(sample("float32"), -10, 10), np.clip(sample("float32", seed=2), -10, 10)
    got = evaluate(surface, {"a": a, "b": b}, "float32", lambda x, y: op("tl.simd.vexpdif", register("float32"), x, y, full("float32")))
    assert ulps(got, np.exp((a - b).astype(np.float64)).astype(np.float32)).max() <= 1


@pytest.mark.parametrize("surface", SURFACES)
def test_permutation_broadcast_and_lane_numbers(surface):
    a = sample("float32")
    index = np.random.default_rng(3).integers(0, 64, 64).astype(np.uint32)

    def permute(x, i):
        table = op("tirx.reinterpret", register("uint32"), x)
        return op("tirx.reinterpret", register("float32"), op("tl.simd.vselr", register("uint32"), table, i))

    np.testing.assert_array_equal(evaluate(surface, {"a": a, "i": index}, "float32", permute), a[index])
    got = evaluate(
        surface, {"a": a}, "float32", lambda _: op("tl.simd.vdup", register("float32"), immediate(3), full("float32"), "MODE_ZEROING")
    )
    np.testing.assert_array_equal(got, np.full(64, 3.0, np.float32))
    got = evaluate(surface, {"a": a}, "int32", lambda _: op("tl.simd.vci", register("int32"), immediate(-5), "INC_ORDER"))
    np.testing.assert_array_equal(got, np.arange(64) - 5)


@pytest.mark.parametrize("surface", SURFACES)
def test_packing_store_keeps_the_low_halves(surface):
    """PK_B32 on a 16-bit register: lanes 0, 2, 4, ... one after the other."""
    a = sample("bfloat16")
    got = evaluate(surface, {"a": a}, "bfloat16", lambda x: x, store="PK_B32", lanes=64)
    np.testing.assert_array_equal(got.view(np.uint16), a[::2].view(np.uint16))


@pytest.mark.parametrize("surface", SURFACES)
def test_store_suffix_of_the_wrong_width_is_ignored(surface):
    """TileLang writes NORM_B32 on 16-bit values too; the value's width counts."""
    a = sample("bfloat16")
    got = evaluate(surface, {"a": a}, "bfloat16", lambda x: x, store="NORM_B32")
    np.testing.assert_array_equal(got.view(np.uint16), a.view(np.uint16))


def test_binds_are_snapshots():
    """A register bound before its variable is stored again keeps the old value."""
    a = sample("float32")
    variable = tirx.decl_buffer((1,), "float32x64", name="acc", scope="local.var")
    mod = _snapshot_kernel(variable)
    for surface in SURFACES:
        out = np.zeros(64, np.float32)
        run(emit_module(mod, surface=surface_of(surface)).text, "map", a, out)
        np.testing.assert_array_equal(out, a)


def _snapshot_kernel(variable):
    arena = tirx.decl_buffer((512,), "float32", name="arena", scope="shared.dyn")
    source, out = pointer("a", "float32"), pointer("out", "float32")
    mask = full("float32")
    before = tirx.Var("before", "float32x64")
    zero = [immediate(0)]
    flag = lambda verb, event: tirx.Evaluate(op(f"tl.ascend_{verb}_flag", "handle", event, 0))  # noqa: E731
    inner = simd_block(
        tirx.AllocBuffer(variable),
        tirx.BufferStore(variable, op("tl.simd.vld", "float32x64", access(arena.data, "float32", 0, 64, 1), "NORM"), zero),
        tirx.Bind(before, tirx.BufferLoad(variable, zero)),
        tirx.BufferStore(variable, op("tl.simd.vadds", "float32x64", tirx.BufferLoad(variable, zero), 1, mask, "MODE_ZEROING"), zero),
        tirx.Evaluate(op("tl.simd.vsts", "handle", access(arena.data, "float32", 64, 64, 2), before, mask, "NORM_B32")),
    )
    load = op(
        "tl.ascend_copy_gm_to_ubuf",
        "handle",
        access(arena.data, "float32", 0, 64),
        access(source, "float32", 0, 64),
        0,
        1,
        256,
        0,
        0,
        0,
        0,
        256,
        256,
    )
    store = op(
        "tl.ascend_copy_ubuf_to_gm", "handle", access(out, "float32", 0, 64), access(arena.data, "float32", 64, 64), 0, 1, 256, 4, 256, 256
    )
    body = sequence(
        tirx.AllocBuffer(arena),
        tirx.Evaluate(load),
        flag("set", "MTE2_V"),
        flag("wait", "MTE2_V"),
        inner,
        flag("set", "V_MTE3"),
        flag("wait", "V_MTE3"),
        tirx.Evaluate(store),
    )
    return vector_kernel("map", [source, out], lambda _: body)
