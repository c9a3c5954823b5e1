"""Short vectors of SIMT threads: moves stay vector accesses, everything else is computed lane by lane; all give TIR's numbers."""

from __future__ import annotations

import ml_dtypes  # noqa: F401  (registers the dtypes with NumPy)
import numpy as np
import pytest
from simt_kernels import SURFACES, emitted
from tir_builder import op, pointer, sequence, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import UnsupportedError
from tilelang_pto.sim import run

THREADS = 64
RNG = np.random.default_rng(3)
DTYPES = [
    "float32",
    "float16",
    "bfloat16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
]
NUMBERS = ["float32", "float16", "bfloat16", "int32", "int64", "uint32"]


def i32(value):
    return tirx.IntImm("int32", value)


def ramp(index, lanes, stride=1):
    return tirx.Ramp(index * lanes if stride == 1 else index, i32(stride), lanes)


def kernel(inputs: dict[str, str], output: str, lanes: int, function, threads: int = THREADS):
    """Each thread loads ``lanes`` elements of every input and stores as many of the result."""
    arguments = {name: pointer(name, dtype) for name, dtype in inputs.items()}
    out = pointer("out", output)

    def body(tx):
        loads = [tirx.BufferLoad(view(data, inputs[name], threads * lanes), [ramp(tx, lanes)]) for name, data in arguments.items()]
        return tirx.BufferStore(view(out, output, threads * lanes), function(*loads), [ramp(tx, lanes)])

    return vector_kernel("map", [*arguments.values(), out], lambda _: simt_block(threads, body))


def execute(mod, surface: str, inputs: list[np.ndarray], output: str, count: int) -> tuple[np.ndarray, str]:
    text = emitted(mod, surface)
    out = np.zeros(count, np.dtype(output))
    run(text, "map", *[array.copy() for array in inputs], out)
    return out, text


def numbers(dtype: str, count: int) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return RNG.integers(info.min, info.max, count, kind, endpoint=True)
    return RNG.uniform(-8, 8, count).astype(np.float32).astype(kind)


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_moves_are_vector_accesses(surface, dtype, lanes):
    values = numbers(dtype, THREADS * lanes)
    out, text = execute(kernel({"a": dtype}, dtype, lanes, lambda a: a), surface, [values], dtype, THREADS * lanes)
    np.testing.assert_array_equal(bits(out), bits(values))
    assert text.count(f"contiguous={lanes}") == 2 and "Vec" not in text


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_arithmetic(surface, dtype, lanes, name):
    node = {"add": tirx.Add, "sub": tirx.Sub, "mul": tirx.Mul}[name]
    a, b = (numbers(dtype, THREADS * lanes) for _ in range(2))
    mod = kernel({"a": dtype, "b": dtype}, dtype, lanes, lambda x, y: node(x, node(y, tirx.Broadcast(tirx.const(3, dtype), lanes))))
    out, _ = execute(mod, surface, [a, b], dtype, THREADS * lanes)
    with np.errstate(over="ignore"):
        operation = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name]
        expected = operation(a, operation(b, np.array(3, np.dtype(dtype))))
    np.testing.assert_array_equal(bits(out), bits(expected.astype(np.dtype(dtype))))


@pytest.mark.parametrize("surface", SURFACES)
def test_lane_by_lane_operations(surface):
    """Division, minimum, comparison, selection and functions exist on single elements only."""
    a, b = numbers("float32", THREADS * 2), np.abs(numbers("float32", THREADS * 2)) + 1

    def formula(x, y):
        halves = x / y
        smaller = tirx.Select(tirx.LT(x, y), halves, tirx.Max(x, tirx.Broadcast(tirx.const(0.5, "float32"), 2)))
        return tirx.Min(smaller, op("tirx.sqrt", "float32x2", y))

    out, text = execute(kernel({"a": "float32", "b": "float32"}, "float32", 2, formula), surface, [a, b], "float32", THREADS * 2)
    expected = np.minimum(np.where(a < b, a / b, np.maximum(a, np.float32(0.5))), np.sqrt(b))
    np.testing.assert_array_equal(out, expected)
    assert text.count("contiguous=2") == 1  # the store


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("source", "target"), [("float32", "bfloat16"), ("float32", "float16"), ("bfloat16", "float32"), ("float16", "float32")]
)
@pytest.mark.parametrize("lanes", [2, 4])
def test_casts_of_floats_stay_whole(surface, source, target, lanes):
    values = numbers(source, THREADS * lanes)
    out, text = execute(
        kernel({"a": source}, target, lanes, lambda a: tirx.Cast(f"{target}x{lanes}", a)), surface, [values], target, THREADS * lanes
    )
    np.testing.assert_array_equal(bits(out), bits(values.astype(np.dtype(target))))
    assert text.count("contiguous=") == 2


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("source", "target"), [("int32", "float32"), ("float32", "int32"), ("int32", "int64"), ("uint8", "int32"), ("uint32", "float32")]
)
def test_other_casts(surface, source, target):
    values = numbers(source, THREADS * 4) if source != "float32" else (numbers(source, THREADS * 4) * 100).astype(np.float32)
    out, _ = execute(kernel({"a": source}, target, 4, lambda a: tirx.Cast(f"{target}x4", a)), surface, [values], target, THREADS * 4)
    np.testing.assert_array_equal(out, values.astype(target))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint32", "float8_e4m3fn"])
def test_guarded_moves_keep_the_false_value(surface, dtype):
    """The load of a thread beyond the limit is out of range and must not happen."""
    a, out = pointer("a", dtype), pointer("out", dtype)
    limit = 40

    def body(tx):
        load = tirx.BufferLoad(view(a, dtype, limit * 2), [ramp(tx, 2)])
        other = tirx.Broadcast(tirx.const(0 if dtype.startswith("float8") else 5, dtype), 2)
        return tirx.BufferStore(view(out, dtype, THREADS * 2), tirx.if_then_else(tx < limit, load, other), [ramp(tx, 2)])

    values = numbers(dtype, limit * 2)
    got, text = execute(vector_kernel("map", [a, out], lambda _: simt_block(THREADS, body)), surface, [values], dtype, THREADS * 2)
    expected = np.full(THREADS * 2, 0 if dtype.startswith("float8") else 5, np.dtype(dtype))
    expected[: limit * 2] = values
    np.testing.assert_array_equal(bits(got), bits(expected))
    assert text.count("contiguous=2") == 2


@pytest.mark.parametrize("surface", SURFACES)
def test_strides_and_gathers(surface):
    """Elements that are not neighbours are reached one by one."""
    a, out = pointer("a", "int32"), pointer("out", "int32")

    def body(tx):
        strided = tirx.BufferLoad(view(a, "int32", THREADS * 8), [ramp(tx, 4, THREADS)])
        gathered = tirx.BufferLoad(view(a, "int32", THREADS * 8), [tirx.Ramp(tx, i32(0), 4) + tirx.Ramp(i32(0), i32(2), 4)])
        return tirx.BufferStore(view(out, "int32", THREADS * 8), strided - gathered, [ramp(tx, 4, THREADS)])

    values = np.arange(THREADS * 8, dtype=np.int32) ** 2
    got, text = execute(vector_kernel("map", [a, out], lambda _: simt_block(THREADS, body)), surface, [values], "int32", THREADS * 8)
    expected = np.zeros(THREADS * 8, np.int32)
    for t in range(THREADS):
        for lane in range(4):
            expected[t + lane * THREADS] = values[t + lane * THREADS] - values[t + 2 * lane]
    np.testing.assert_array_equal(got, expected)
    assert "contiguous" not in text


@pytest.mark.parametrize("surface", SURFACES)
def test_shuffles_build_and_extract(surface):
    a, out = pointer("a", "float32"), pointer("out", "float32")

    def body(tx):
        pair = tirx.Var("pair", "float32x2")
        load = tirx.BufferLoad(view(a, "float32", THREADS * 2), [ramp(tx, 2)])
        first, second = (tirx.Shuffle([pair], [i32(k)]) for k in (0, 1))
        swapped = tirx.Shuffle([second, first * tirx.const(2.0, "float32")], [i32(0), i32(1)])
        return sequence(tirx.Bind(pair, load), tirx.BufferStore(view(out, "float32", THREADS * 2), swapped, [ramp(tx, 2)]))

    values = numbers("float32", THREADS * 2)
    got, _ = execute(vector_kernel("map", [a, out], lambda _: simt_block(THREADS, body)), surface, [values], "float32", THREADS * 2)
    expected = values.reshape(-1, 2)[:, ::-1] * np.array([1, 2], np.float32)
    np.testing.assert_array_equal(got, expected.reshape(-1))


@pytest.mark.parametrize("surface", SURFACES)
def test_a_bound_vector_is_a_snapshot(surface):
    """A vector bound before a store to where it came from keeps its values."""
    out = pointer("out", "float32")

    def body(tx):
        whole, parts = tirx.Var("whole", "float32x2"), tirx.Var("parts", "float32x2")
        here = view(out, "float32", THREADS * 2)
        one, half = tirx.Broadcast(tirx.const(1.0, "float32"), 2), tirx.Broadcast(tirx.const(0.5, "float32"), 2)
        return sequence(
            tirx.Bind(whole, tirx.BufferLoad(here, [ramp(tx, 2)])),
            tirx.Bind(parts, tirx.BufferLoad(here, [ramp(tx, 2)]) / half),
            tirx.BufferStore(here, one, [ramp(tx, 2)]),
            tirx.BufferStore(here, whole + parts * tirx.BufferLoad(here, [ramp(tx, 2)]), [ramp(tx, 2)]),
        )

    mod = vector_kernel("map", [out], lambda _: simt_block(THREADS, body))
    values = numbers("float32", THREADS * 2)
    got = values.copy()
    run(emitted(mod, surface), "map", got)
    np.testing.assert_array_equal(got, values + values / np.float32(0.5))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]
)
def test_private_arrays_of_every_dtype(surface, dtype):
    """Elements go in one by one or as vectors and come out reversed; the index is a loop variable."""
    a, out = pointer("a", dtype), pointer("out", dtype)
    memory = "int8" if dtype == "bool" else dtype
    local = tirx.decl_buffer((4,), dtype, name="parts", scope="local")

    def body(tx):
        i, k = tirx.Var("i", "int32"), tirx.Var("k", "int32")
        load = tirx.BufferLoad(view(a, dtype, THREADS * 4), [tx * 4 + i])
        store = tirx.BufferStore(view(out, dtype, THREADS * 4), tirx.BufferLoad(local, [3 - k]), [tx * 4 + k])
        return sequence(
            tirx.AllocBuffer(local),
            tirx.For(i, i32(0), i32(4), tirx.ForKind.SERIAL, tirx.BufferStore(local, load, [i])),
            tirx.For(k, i32(0), i32(4), tirx.ForKind.SERIAL, store),
        )

    values = (numbers(memory, THREADS * 4) > 0).astype(np.int8) if dtype == "bool" else numbers(memory, THREADS * 4)
    mod = vector_kernel("map", [a, out], lambda _: simt_block(THREADS, body))
    got, _ = execute(mod, surface, [values], memory, THREADS * 4)
    np.testing.assert_array_equal(bits(got), bits(values.reshape(-1, 4)[:, ::-1].reshape(-1)))


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_private_arrays_of_low_precision_floats_move_bits(surface, dtype):
    a, out = pointer("a", dtype), pointer("out", dtype)
    local = tirx.decl_buffer((4,), dtype, name="parts", scope="local")

    def body(tx):
        first = tirx.BufferStore(local, tirx.BufferLoad(view(a, dtype, THREADS * 4), [ramp(tx, 4)]), [tirx.Ramp(i32(0), i32(1), 4)])
        moved = [tirx.BufferStore(view(out, dtype, THREADS * 4), tirx.BufferLoad(local, [i32(3 - k)]), [tx * 4 + k]) for k in range(4)]
        return sequence(tirx.AllocBuffer(local), first, *moved)

    values = np.arange(256, dtype=np.uint8).view(np.dtype(dtype))
    got, _ = execute(vector_kernel("map", [a, out], lambda _: simt_block(THREADS, body)), surface, [values], dtype, THREADS * 4)
    np.testing.assert_array_equal(bits(got), bits(values).reshape(-1, 4)[:, ::-1].reshape(-1))


@pytest.mark.parametrize("surface", SURFACES)
def test_private_vectors(surface):
    """A private array filled, accumulated and read two elements at a time, as reducers are."""
    a, out = pointer("a", "float32"), pointer("out", "float32")
    local = tirx.decl_buffer((8,), "float32", name="sums", scope="local")

    def body(tx):
        i, j, k = (tirx.Var(name, "int32") for name in "ijk")
        zero = tirx.BufferStore(local, tirx.Broadcast(tirx.const(0.0, "float32"), 2), [ramp(i, 2)])
        load = tirx.BufferLoad(view(a, "float32", THREADS * 8), [tirx.Ramp(tx * 8 + j * 2, i32(1), 2)])
        total = tirx.BufferStore(local, tirx.BufferLoad(local, [ramp(j, 2)]) + load * load, [ramp(j, 2)])
        write = tirx.BufferStore(
            view(out, "float32", THREADS * 8), tirx.BufferLoad(local, [ramp(k, 2)]), [tirx.Ramp(tx * 8 + k * 2, i32(1), 2)]
        )

        def loop(var, statement):
            return tirx.For(var, i32(0), i32(4), tirx.ForKind.SERIAL, statement)

        return sequence(tirx.AllocBuffer(local), loop(i, zero), loop(j, total), loop(k, write))

    values = numbers("float32", THREADS * 8)
    got, _ = execute(vector_kernel("map", [a, out], lambda _: simt_block(THREADS, body)), surface, [values], "float32", THREADS * 8)
    np.testing.assert_array_equal(got, values * values)


@pytest.mark.parametrize("surface", SURFACES)
def test_vector_store_of_the_scalar_unit(surface):
    """Outside a vector function there are no short vectors; the elements are stored one by one."""
    a, out = pointer("a", "int32"), pointer("out", "int32")
    load = tirx.BufferLoad(view(a, "int32", 8), [tirx.Ramp(i32(2), i32(1), 2)])
    mod = vector_kernel(
        "map", [a, out], lambda _: tirx.BufferStore(view(out, "int32", 8), load + tirx.Broadcast(i32(1), 2), [tirx.Ramp(i32(4), i32(1), 2)])
    )
    values = np.arange(8, dtype=np.int32)
    got, _ = execute(mod, surface, [values], "int32", 8)
    np.testing.assert_array_equal(got, [0, 0, 0, 0, 3, 4, 0, 0])


@pytest.mark.parametrize("surface", SURFACES)
def test_conversion_to_low_precision_is_refused(surface):
    mod = kernel({"a": "float32"}, "float8_e4m3fn", 2, lambda a: tirx.Cast("float8_e4m3fnx2", a))
    with pytest.raises(UnsupportedError, match="float8_e4m3fn"):
        emit_module(mod, surface=surface_of(surface))


@pytest.mark.parametrize("surface", SURFACES)
def test_private_array_under_another_type_is_refused(surface):
    out = pointer("out", "int32")
    local = tirx.decl_buffer((4,), "float32", name="parts", scope="local")
    other = tirx.decl_buffer((4,), "int32", data=local.data, name="bits", scope="local")
    mod = vector_kernel(
        "map",
        [out],
        lambda _: simt_block(
            32,
            lambda tx: sequence(tirx.AllocBuffer(local), tirx.BufferStore(view(out, "int32", 32), tirx.BufferLoad(other, [i32(0)]), [tx])),
        ),
    )
    with pytest.raises(UnsupportedError, match="private array parts of float32 accessed as int32"):
        emit_module(mod, surface=surface_of(surface))
