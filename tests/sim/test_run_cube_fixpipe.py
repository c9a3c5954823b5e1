"""Stores from L0C: layouts, conversions with scalar and vector parameters, relu, clip, saturation, atomics."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from cube_harness import flags, numbers, run, up
from engine_harness import NUMPY, same

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import session

M, N = 20, 48
M16 = up(M, 16)


def body(store: str, source: str, parameters: bool, m: int, n: int) -> str:
    """L0C gets ``x`` exactly: a product with ones (s32: by bytes) and a bias do not round what is stored."""
    lines = f"""\
l1x, l1one = at("mat", pto.{"f32" if source == "f32" else "i8"}), at("mat", pto.{"f32" if source == "f32" else "i8"}, 131072)
la, lb = at("left", pto.{"f32" if source == "f32" else "i8"}), at("right", pto.{"f32" if source == "f32" else "i8"})
lc = at("acc", pto.{source}, 1024)
"""
    if source == "f32":
        k = up(n, 8)
        lines += f"""\
pto.mte_gm_l1_frac(x, l1x, "nd2nz", shape=({m}, {n}), src_layout=({4 * n},), dst_group=(1, 1, {up(m, 16)}, 0), ctrl=(0, False))
pto.mte_gm_l1_frac(one, l1one, "nd2nz", shape=({n}, {n}), src_layout=({4 * n},), dst_group=(1, 1, {up(n, 16)}, 0), ctrl=(0, False))
"""
    else:
        k = up(4 * n, 32)
        lines += f"""\
pto.mte_gm_l1_frac(x, l1x, "nd2nz", shape=({m}, {4 * n}), src_layout=({4 * n},), dst_group=(1, 1, {up(m, 16)}, 0), ctrl=(0, False))
pto.mte_gm_l1_frac(one, l1one, "nd2nz", shape=({n}, {4 * n}), src_layout=({4 * n},), dst_group=(1, 1, {up(n, 16)}, 0), ctrl=(0, False))
"""
    if parameters:
        lines += 'pto.mte_gm_l1(q, at("mat", pto.ui8, 262144), 1024, nburst=(1, 0, 0))\n' + flags("MTE2-FIX")
        lines += 'fb = at("scaling", pto.f32, 128)\npto.mte_l1_fb(at("mat", pto.ui8, 262144), fb, 16, nburst=(1, 0, 0))\n'
        lines += 'pto.pipe_barrier("FIX")\n'
    inner = k if source == "f32" else 4 * n
    lines += flags("MTE2-MTE1") + f"pto.mte_l1_l0a(l1x, la, {m}, {inner})\npto.mte_l1_l0b(l1one, lb, {inner}, {n})\n" + flags("MTE1-M")
    lines += f"pto.mad(la, lb, lc, {m}, {n}, {n if source == 'f32' else 4 * n}, disable_gemv=True)\n" + flags("M-FIX")
    return lines + store + "\n"


def stored(store: str, x: np.ndarray, out: tuple[str, tuple[int, ...]], words: np.ndarray | None = None, fill=0, **options) -> np.ndarray:
    """What ``store`` leaves in ``c``; ``x`` is what L0C holds (f32, or s32 that four bytes of weights can make)."""
    m, n = x.shape
    if x.dtype == np.float32:
        arrays = {"x": ("f32", x), "one": ("f32", np.eye(n, dtype=np.float32))}
        source = "f32"
    else:
        source = "i32"
        digits = np.zeros((m, n, 4), np.int8)
        rest = x.astype(np.int64)
        for i, weight in enumerate((100, 10, 1, 0)):
            if weight:
                digits[:, :, i] = np.trunc(rest / weight)
                rest = rest - digits[:, :, i].astype(np.int64) * weight
        one = np.zeros((n, n, 4), np.int8)
        one[np.arange(n), np.arange(n)] = (100, 10, 1, 0)
        arrays = {"x": ("i8", digits.reshape(m, 4 * n)), "one": ("i8", one.reshape(n, 4 * n))}
    arrays["c"] = (out[0], np.full(out[1], fill))
    if words is not None:
        padded = np.zeros(1024, np.uint8)
        padded[: words.nbytes] = words.view(np.uint8)
        arrays["q"] = ("ui8", padded)
    return run(body(store, source, words is not None, m, n), arrays, **options)["c"]


X = numbers("f32", M, N, seed=1) * 8
WHOLE = np.random.default_rng(2).integers(-9000, 9000, (M, N)).astype(np.int32)


# -- layouts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ['layout="nz2nd"', "layout=None"])
def test_rows(layout: str) -> None:
    c = stored(f"pto.mte_l0c_gm(lc, c, {M}, {N}, {M16}, 64, 0, 0, {layout})", X, ("f32", (M, 64)), fill=7)
    same(c[:, :N], X)
    assert (c[:, N:] == 7).all()


def test_columns() -> None:
    c = stored(f'pto.mte_l0c_gm(lc, c, {M}, {N}, {M16}, 24, 0, 0, layout=("nz2dn", 1))', X, ("f32", (N, 24)), fill=7)
    same(c[:, :M], X.T)
    assert (c[:, M:] == 7).all()
    # Every second row of L0C.
    c = stored(f'pto.mte_l0c_gm(lc, c, 10, {N}, {M16}, 10, 0, 0, layout=("nz2dn", 2))', X, ("f32", (N, 10)))
    same(c, X[::2].T)


@pytest.mark.parametrize(("split", "c0"), [(0, 16), (1, 8)])
def test_fractals(split: int, c0: int) -> None:
    stride = M * c0 + 8
    c = stored(
        f'pto.mte_l0c_gm(lc, c, {M}, {N}, {M16}, {stride}, 0, 0, layout=("nz2nz", {split}))', X, ("f32", (N // c0 * stride,)), fill=7
    )
    r, k = np.indices((M, N))
    expected = np.full(N // c0 * stride, 7, np.float32)
    expected[k // c0 * stride + r * c0 + k % c0] = X
    same(c, expected)


def test_repeated_matrices() -> None:
    # Two blocks of 16 columns, as two matrices.
    c = stored(f'pto.mte_l0c_gm(lc, c, {M}, 16, {M16}, 16, 0, 0, layout="nz2nd", loop3=(3, {M16}, {M * 16}))', X, ("f32", (3, M, 16)))
    same(c, X.reshape(M, 3, 16).transpose(1, 0, 2))


def test_a_part_of_l0c() -> None:
    c = stored(f"pto.mte_l0c_gm(pto.addptr(lc, {M16 * 16 + 2 * 16}), c, 5, 16, {M16}, 16, 0, 0)", X, ("f32", (5, 16)))
    same(c, X[2:7, 16:32])


def test_to_l1_and_back_into_a_product() -> None:
    store = f"""\
l1 = at("mat", pto.bf16, 300032)
pto.mte_l0c_l1(lc, l1, {M}, {N}, {M16}, {N}, layout="nz2nd", pre_quant=(pto.f32(1.0), "f32_bf16"))
{flags("FIX-MTE1")}pto.mte_l1_l0a(l1, at("left", pto.bf16), m_start=0, k_start=0, m_step=1, k_step=1, src_stride=1, dst_stride=1)
{flags("MTE1-M")}pto.pipe_barrier("ALL")
pto.mte_l0c_gm(lc, c, {M}, {N}, {M16}, {N}, 0, 0)
"""
    same(stored(store, X, ("f32", (M, N))), X)


# -- conversions -------------------------------------------------------------------------------------------------------


def convert(x: np.ndarray, mode: str, payload: str, dtype: str, words: np.ndarray | None = None, rest: str = "") -> np.ndarray:
    m, n = x.shape
    store = f'pto.mte_l0c_gm(lc, c, {m}, {n}, {up(m, 16)}, {n}, 0, 0, layout="nz2nd", pre_quant=({payload}, "{mode}"){rest})'
    return stored(store, x, (dtype, (m, n)), words)


@pytest.mark.parametrize(("mode", "dtype"), [("f32_f16", "f16"), ("f32_bf16", "bf16")])
@pytest.mark.parametrize("payload", ["pto.f32(1.0)", "pto.f16(1.0)", "pto.bf16(1.0)"])
def test_casts_round_to_nearest_even(mode: str, dtype: str, payload: str) -> None:
    same(convert(X, mode, payload, dtype), X.astype(NUMPY[dtype]))


def parameters(scales: np.ndarray, offsets: np.ndarray | int = 0, signed: bool = False) -> np.ndarray:
    """64-bit parameters, one for each column."""
    word = np.ascontiguousarray(scales, np.float32).view(np.uint32).astype(np.uint64)
    offset = (np.broadcast_to(offsets, scales.shape) & 0x1FF).astype(np.uint64)
    return word | offset << np.uint64(37) | np.uint64(int(signed) << 46)


SCALES = (2.0 ** np.arange(-3, 3)[np.arange(N) % 6] * (1 + np.arange(N) % 4 / 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("mode", "source", "dtype"),
    [
        ("qf322f32_pre", "f32", "f32"), ("qf322f16_pre", "f32", "f16"), ("qf322bf16_pre", "f32", "bf16"), ("qf322fp8_pre", "f32", "f8e4m3"),
        ("deqf16", "i32", "f16"), ("qs322bf16_pre", "i32", "bf16"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("vector", [True, False])
def test_scaled_floats(mode: str, source: str, dtype: str, vector: bool) -> None:
    x = X if source == "f32" else WHOLE
    scales = SCALES if vector else np.full(N, np.float32(0.375))
    scaled = x.astype(np.float32) * scales
    expected = scaled.astype(NUMPY[dtype])
    payload, words = ("fb", parameters(SCALES)) if vector else ("pto.f32(0.375)", None)
    found = convert(x, f"{mode}_{'vec' if vector else 'scalar'}", payload, dtype, words)
    if dtype == "f8e4m3":
        expected = np.clip(scaled, -448, 448).astype(NUMPY[dtype])
    same(found, expected)


def test_multipliers_have_eleven_bits() -> None:
    scale = np.float32(1 + 2.0**-10 + 2.0**-12)  # the last bit is dropped
    found = convert(X, "qf322f32_pre_scalar", f"pto.f32({float(scale)!r})", "f32")
    same(found, X * np.float32(1 + 2.0**-10))


@pytest.mark.parametrize(("mode", "source"), [("qf322b8_pre", "f32"), ("qf162b8_pre", "f32"), ("req8", "i32")])
@pytest.mark.parametrize("signed", [True, False])
def test_quantised_bytes(mode: str, source: str, signed: bool) -> None:
    x = X if source == "f32" else WHOLE
    scales = SCALES * (4 if source == "f32" else 1 / 64)
    offsets = np.arange(N) * 7 % 200 - 100
    words = parameters(scales, offsets, signed)
    value = x.astype(np.float32)
    if mode.startswith("qf16"):
        value = value.astype(np.float16).astype(np.float32)
    t = np.clip(np.rint(value * scales), -256, 255) + offsets
    expected = np.clip(t, -128, 127) if signed else np.clip(t, 0, 255)
    dtype = "i8" if signed else "ui8"
    same(convert(x, f"{mode}_vec", "fb", dtype, words), expected.astype(np.int64).astype(NUMPY[dtype]))


@pytest.mark.parametrize(
    ("mode", "source", "dtype"), [("deqs32_int", "i32", "i32"), ("deqs16", "i32", "i16"), ("qf162s16_pre", "i32", "i16")]
)
def test_rescaled_integers(mode: str, source: str, dtype: str) -> None:
    scale = np.float32(20.5)
    value = WHOLE.astype(np.float32)
    if mode.startswith("qf16"):
        value = value.astype(np.float16).astype(np.float32)
    limits = np.iinfo(NUMPY[dtype])
    expected = np.clip(np.rint(value * scale), limits.min, limits.max).astype(np.int64)
    same(convert(WHOLE, f"{mode}_scalar", f"pto.f32({scale})", dtype), expected.astype(NUMPY[dtype]))


@pytest.mark.parametrize("hybrid", [False, True])
def test_hif8(hybrid: bool) -> None:
    x = np.tile(np.array([1.0, 1.0625, -1.5, 3.75, 0.5, 40000.0, 2.0**-23, 6.0], np.float32), (M, N // 8))
    found = convert(x, f"qf322hif8_pre_{'hybrid_' if hybrid else ''}scalar", "pto.f32(1.0)", "hif8")
    # Ties away below 2^4 in both modes; what exceeds 2^15 becomes it.
    same(found[0, :8], np.array([0x08, 0x09, 0x80 | 0x0C, 0x10 | 7, 0x18, 0x6E, 0x01, 0x20 | 4], np.uint8))


# -- relu and clip -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["normal_relu", "scalar_relu", "vector_relu", "no_relu"])
@pytest.mark.parametrize("source", ["f32", "i32"])
def test_relu(mode: str, source: str) -> None:
    x = X if source == "f32" else WHOLE
    slopes = (np.arange(64) % 4 / 8 + 0.125).astype(np.float32)
    payload = {"normal_relu": "None", "no_relu": "None", "scalar_relu": "pto.f32(0.25)", "vector_relu": "fb"}[mode]
    slope = {"normal_relu": 0, "no_relu": 1, "scalar_relu": 0.25, "vector_relu": slopes[:N]}[mode]
    words = slopes if mode == "vector_relu" else None
    quant = ', pre_quant=(pto.f32(1.0), "deqf16_scalar")' if source == "i32" else ""
    store = f'pto.mte_l0c_gm(lc, c, {M}, {N}, {M16}, {N}, 0, 0, layout="nz2nd", pre_relu=("{mode}", {payload}, None){quant})'
    dtype = "f32" if source == "f32" else "f16"
    expected = np.where(x < 0, x * np.float32(slope), x).astype(np.float32).astype(NUMPY[dtype])
    np.testing.assert_array_equal(stored(store, x, (dtype, (M, N)), words), expected)


def test_relu_of_integers_as_they_are() -> None:
    store = f'pto.mte_l0c_gm(lc, c, {M}, {N}, {M16}, {N}, 0, 0, layout="nz2nd", pre_relu=("normal_relu", None, None))'
    same(stored(store, WHOLE, ("i32", (M, N))), np.maximum(WHOLE, 0))


@pytest.mark.parametrize(
    ("mode", "dtype", "clip", "limit"),
    [
        ("f32_f16", "f16", "pto.f16(3.0)", 3),
        ("qf322b8_pre_scalar", "ui8", "pto.ui16(5)", 5),
        ("qf322b8_pre_scalar", "ui8", "pto.i16(5)", 5),
    ],
)
def test_clip(mode: str, dtype: str, clip: str, limit: int) -> None:
    found = convert(X, mode, "pto.f32(1.0)", dtype, rest=f', pre_relu=("normal_relu", None, {clip})')
    expected = np.minimum(np.maximum(X, 0), np.float32(limit))
    same(found, np.rint(expected).astype(np.uint8) if dtype == "ui8" else expected.astype(np.float16))


# -- saturation --------------------------------------------------------------------------------------------------------

EXTREME = np.tile(np.array([70000.0, -1e38, 1.0, 3.4e38] + [2.0] * 12, np.float32), (16, 1))


@pytest.mark.parametrize(
    ("mode", "dtype", "sat", "expected"),
    [
        ("f32_f16", "f16", "None", [np.inf, -np.inf, 1, np.inf]),
        ("f32_f16", "f16", '"on"', [65504, -65504, 1, 65504]),
        ("f32_f16", "f16", '"off"', [np.inf, -np.inf, 1, np.inf]),
        ("qf322f16_pre_scalar", "f16", "None", [65504, -65504, 1, 65504]),
        ("f32_bf16", "bf16", "None", [70144, float(np.float32(-1e38).astype(ml_dtypes.bfloat16)), 1, 3.3895313892515355e38]),
        ("f32_bf16", "bf16", '"off"', [70144, float(np.float32(-1e38).astype(ml_dtypes.bfloat16)), 1, np.inf]),
        ("qf322fp8_pre_scalar", "f8e4m3", "None", [448, -448, 1, 448]),
    ],
)
def test_saturation(mode: str, dtype: str, sat: str, expected: list[float]) -> None:
    found = convert(EXTREME, mode, "pto.f32(1.0)", dtype, rest=f", sat={sat}")
    assert found[0, :4].astype(np.float64).tolist() == expected


@pytest.mark.parametrize(
    ("mode", "dtype", "sat", "nan"),
    [
        ("f32_f16", "f16", "None", True), ("f32_f16", "f16", '"on"', False),
        ("f32_bf16", "bf16", "None", True), ("f32_bf16", "bf16", '"on"', False),
        ("qf322fp8_pre_scalar", "f8e4m3", '"on"', False), ("qf322fp8_pre_scalar", "f8e4m3", '"preserve_nan"', True),
        ("qf322b8_pre_scalar", "ui8", "None", False),
    ],
)  # fmt: skip
def test_nan(mode: str, dtype: str, sat: str, nan: bool) -> None:
    # Rows of L0C that no product has written hold NaN; a check would report that they are read.
    store = f'pto.mte_l0c_gm(at("acc", pto.f32, 65536), c, 16, 32, 16, 32, 0, 0, pre_quant=(pto.f32(1.0), "{mode}"), sat={sat})'
    with session(check="off"):
        found = stored(store, X, (dtype, (16, 32))).astype(np.float64)
    assert np.isnan(found).all() if nan else (found == 0).all()


# -- atomics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("operation", "combine"), [("add", np.add), ("max", np.maximum), ("min", np.minimum)])
@pytest.mark.parametrize("form", ["call", "mode"])
def test_atomics(operation: str, combine, form: str) -> None:
    call = f'pto.mte_l0c_gm(lc, c, {M}, {N}, {M16}, {N}, 0, 0, layout="nz2nd"{{}})'
    if form == "call":
        store = call.format(f', atomic=("f32", "{operation}")')
    else:
        store = f"pto.set_atomic_f32()\npto.set_atomic_{operation}()\n{call.format('')}\npto.set_atomic_none()"
    found = stored(store, X, ("f32", (M, N)), fill=1.5, grid=3, host_threads=2)
    expected = np.full((M, N), 1.5, np.float32)
    for _ in range(3):
        expected = combine(expected, X)
    same(found, expected)


def test_the_mode_of_atomics_fits_what_is_stored() -> None:
    store = f"pto.set_atomic_{{}}()\npto.set_atomic_add()\npto.mte_l0c_gm(lc, c, {M}, {N}, {M16}, {N}, 0, 0)\npto.set_atomic_none()"
    for mode in ("f16", "bf16", "s8", "s32"):
        with pytest.raises(SimulationError, match="stores to GM are set to combine"):
            stored(store.format(mode), X, ("f32", (M, N)))


def test_atomics_of_converted_numbers() -> None:
    rest = ', pre_quant=(pto.f32(1.0), "f32_bf16"), atomic=("bf16", "add")'
    found = stored(f"pto.mte_l0c_gm(lc, c, {M}, {N}, {M16}, {N}, 0, 0{rest})", X, ("bf16", (M, N)), fill=1)
    same(found, (X.astype(ml_dtypes.bfloat16).astype(np.float32) + 1).astype(ml_dtypes.bfloat16))


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("store", "dtype", "message"),
    [
        ("pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0)", "bf16", "a store of f32 as bf16 without a conversion"),
        (
            'pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0, pre_quant=(pto.f32(1.0), "f32_f16"))',
            "bf16",
            "pre_quant mode f32_f16 from f32 to bf16",
        ),
        (
            'pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0, pre_quant=(pto.f32(1.0), "req8_scalar"))',
            "i8",
            "pre_quant mode req8_scalar from f32",
        ),
        ('pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0, pre_quant=(pto.f32(1.0), "qf322s4_pre_scalar"))', "i8", "no 4-bit integer pointers"),
        ('pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0, pre_quant=(1.0, "f32_f16"))', "f16", "the payload of f32_f16 is float 1.0"),
        ('pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0, pre_quant=(lc, "qf322f16_pre_vec"))', "f16", "points to 'acc'"),
        ('pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0, layout="nz2dn")', "f32", "layout is str 'nz2dn'"),
        ('pto.mte_l0c_gm(lc, c, 20, 40, 32, 48, 0, 0, layout=("nz2nz", 0))', "f32", "nz2nz takes multiples of 16"),
        ('pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0, layout=("nz2nz", 0), loop3=(1, 1, 1))', "f32", "nz2nz with loop3"),
        ("pto.mte_l0c_gm(lc, c, 20, 48, 8192, 48, 0, 0)", "f32", "L0C access out of bounds"),
        ("pto.mte_l0c_gm(lc, c, 21, 48, 32, 48, 0, 0)", "f32", "of tensor c, which has 3840 bytes"),
        ("pto.mte_l0c_gm(pto.addptr(lc, 8), c, 20, 48, 32, 48, 0, 0)", "f32", "L0C address 1056 is not a multiple of 64"),
        ('pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0, atomic=("f16", "add"))', "f32", "atomic f16 on f32"),
        ('pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0, pre_relu=("normal_relu", pto.f32(1.0), None))', "f32", "normal_relu with a payload"),
        (
            'pto.mte_l0c_gm(lc, c, 20, 48, 32, 48, 0, 0, pre_relu=("normal_relu", None, pto.f32(1.0)))',
            "f32",
            "clip with a destination of f32",
        ),
        ("pto.mte_l0c_gm(lc, c, 20, 4096, 32, 48, 0, 0)", "f32", "n=4096 is out of range"),
        ('pto.mte_l0c_l1(lc, at("mat", pto.f32), 20, 4, 32, 48)', "f32", "a row has 16 bytes, not a multiple of 32"),
        ('pto.mte_l0c_l1(lc, at("mat", pto.f32), 20, 48, 32, 52)', "f32", "the destination stride has 208 bytes"),
        ('pto.mte_l0c_l1(lc, at("mat", pto.f32), 20, 48, 32, 48, layout=("nz2dn", 1))', "f32", "a column has 80 bytes"),
        ('pto.mte_l0c_ub(lc, at("ub", pto.f32), 20, 48, 32, 48)', "f32", "a kernel for cube cores has no UB"),
        (
            'pto.mte_l0c_gm(lc, c, 16, 48, 32, 48, 0, 0, layout=("nz2dn", 2), unit_flag="check_only")',
            "f32",
            "unit_flag with a nz2dn source stride",
        ),
    ],
)
def test_bad_stores(store: str, dtype: str, message: str) -> None:
    with pytest.raises(SimulationError) as info:
        stored(store, X, (dtype, (M, N)))
    assert message in str(info.value)
    assert any(place.startswith("k.py:") for place in info.value.where)


def test_vector_parameters_stand_at_their_rows() -> None:
    with pytest.raises(SimulationError, match="the fixpipe buffer address 192 is not a multiple of 128"):
        convert(X, "qf322f32_pre_vec", "pto.addptr(fb, 16)", "f32", parameters(SCALES))
