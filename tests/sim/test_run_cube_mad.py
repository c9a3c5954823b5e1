"""Products of the cube core, by element type, against float64 with the bounds of f32 sums; integers exactly."""

from __future__ import annotations

import numpy as np
import pytest
from cube_harness import close, exact, flags, gemm, module, numbers, run
from engine_harness import NUMPY, same

from tilelang_pto import sim
from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module


def product(m: int, n: int, k: int, dtype: str, right: str | None = None, result: str = "f32", **options) -> tuple:
    settings = {key: options.pop(key) for key in ("mad", "before", "store") if key in options}
    a, b = options.pop("a", None), options.pop("b", None)
    a = numbers(dtype, m, k, seed=1) if a is None else a
    b = numbers(right or dtype, n, k, seed=2) if b is None else b
    arrays = {"a": (dtype, a), "b": (right or dtype, b), "c": (result, options.pop("c", np.zeros((m, n))))}
    body = gemm(m, n, k, dtype, right=right, result=result, **settings)
    return a, b, run(body, arrays, **options)["c"]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f8e4m3", "f8e5m2"])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (64, 48, 96), (1, 16, 64), (17, 33, 40), (5, 100, 7), (128, 256, 64)])
def test_floats(dtype: str, m: int, n: int, k: int) -> None:
    a, b, c = product(m, n, k, dtype)
    close(c, exact(a, b), k)


@pytest.mark.parametrize(("left", "right"), [("f8e4m3", "f8e5m2"), ("f8e5m2", "f8e4m3")])
def test_mixed_8_bit_floats(left: str, right: str) -> None:
    a, b, c = product(32, 48, 64, left, right)
    close(c, exact(a, b), 64)


def test_hif8() -> None:
    # 1 + m/8 has the code 0x08 | m, twice that is 0x10 | m.
    rng = np.random.default_rng(3)
    codes = rng.integers(0x08, 0x18, (2, 32, 64)).astype(np.uint8)
    values = np.where(codes < 0x10, 1.0, 2.0) * (1 + (codes & 7) / 8)
    _, _, c = product(32, 32, 64, "hif8", a=codes[0], b=codes[1])
    close(c, exact(values[0], values[1]), 64)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 32), (17, 40, 100), (64, 64, 2048)])
def test_bytes_are_exact(m: int, n: int, k: int) -> None:
    a = np.random.default_rng(4).integers(-128, 128, (m, k)).astype(np.int8)
    b = np.random.default_rng(5).integers(-128, 128, (n, k)).astype(np.int8)
    if k > 1024:  # L0 holds 64 KB
        a, b = a[:16, :], b[:16, :]
    _, _, c = product(a.shape[0], b.shape[0], k, "i8", result="i32", a=a, b=b)
    same(c, a.astype(np.int64) @ b.astype(np.int64).T)


def test_integers_saturate_at_the_end() -> None:
    mad = "\n".join(
        [
            "pto.mad(la, lb, lc, {m}, {n}, {k}, disable_gemv=True)",
            "with pto.for_(0, 200, step=1):",
            "    pto.mad_acc(la, lb, lc, {m}, {n}, {k}, disable_gemv=True)",
        ]
    )
    a = np.full((16, 1024), -128, np.int8)
    b = np.full((16, 1024), -128, np.int8)
    b[1] = 127
    _, _, c = product(16, 16, 1024, "i8", result="i32", a=a, b=b, mad=mad)
    assert (c[:, 0] == 2**31 - 1).all() and (c[:, 1] == -(2**31)).all()


def test_products_are_added_one_after_the_other() -> None:
    # 2^24 + 1 + 1 is 2^24 in f32, 1 + 1 + 2^24 is 2^24 + 2.
    a = np.ones((1, 16))
    a[0, 0] = 2.0**12
    b = np.ones((16, 16))
    b[:, 0] = 2.0**12
    expected = {"ascending": 2.0**24, "reverse": 2.0**24 + 16, "blocked": 2.0**24}
    for order, value in expected.items():
        _, _, c = product(1, 16, 16, "bf16", a=a, b=b, mad_order=order)
        assert (c == value).all(), order


def test_orders_differ_and_are_repeatable() -> None:
    a, b = numbers("f16", 64, 256, seed=8), numbers("f16", 64, 256, seed=9)
    found = {order: product(64, 64, 256, "f16", a=a, b=b, mad_order=order)[2] for order in ("ascending", "blocked", "random:1", "random:2")}
    for order, c in found.items():
        close(c, exact(a, b), 256)
        same(c, product(64, 64, 256, "f16", a=a, b=b, mad_order=order)[2])
    assert len({c.tobytes() for c in found.values()}) == 4


def test_the_order_may_come_from_the_environment(monkeypatch) -> None:
    a, b, arrays = numbers("f16", 64, 256, seed=8), numbers("f16", 64, 256, seed=9), {}
    program = record_module(module({"a": "f16", "b": "f16", "c": "f32"}, gemm(64, 64, 256, "f16")), "k.py")
    for word in ("ascending", "random:7"):
        arrays[word] = np.zeros((64, 64), np.float32)
        monkeypatch.setenv("TILELANG_PTO_MAD_ORDER", word)
        sim.run(program, "k", a, b, arrays[word])
        same(arrays[word], product(64, 64, 256, "f16", a=a, b=b, mad_order=word)[2])
    assert arrays["ascending"].tobytes() != arrays["random:7"].tobytes()
    given = np.zeros((64, 64), np.float32)
    sim.run(program, "k", a, b, given, mad_order="ascending")
    same(given, arrays["ascending"])


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(SimulationError, match="random:SEED"):
        product(16, 16, 16, "f16", mad_order="sideways")


def test_sums_are_rounded_as_f32() -> None:
    a, b, c = product(16, 32, 64, "bf16")
    expected = np.zeros((16, 32), np.float32)
    for i in range(64):
        expected += a.astype(np.float32)[:, i : i + 1] * b.astype(np.float32)[:, i][None]
    same(c, expected)


def test_f32_products_have_one_rounding() -> None:
    a = np.array([[1 + 2.0**-23, -1.0] + [0.0] * 6], np.float32)
    b = np.tile(np.array([1 + 2.0**-23, 1 + 2.0**-22] + [0.0] * 6, np.float32), (16, 1))
    _, _, c = product(1, 16, 8, "f32", a=a, b=b)
    # The square is 1 + 2^-22 + 2^-46; rounded on its own it would leave nothing. It is added to 0 first, so it is rounded.
    assert (c == 0).all()
    a, b = a[:, [1, 0, 2, 3, 4, 5, 6, 7]], b[:, [1, 0, 2, 3, 4, 5, 6, 7]]
    _, _, c = product(1, 16, 8, "f32", a=a, b=b)
    assert (c == 2.0**-46).all()


@pytest.mark.parametrize("mode", ["round_even", "round_away"])
def test_hf32_keeps_ten_bits_of_mantissa(mode: str) -> None:
    step, half = 2.0**-10, 2.0**-11
    a = np.array([[1 + half, 1 + step + half, 1 + half + 2.0**-20, -(1 + half)]], np.float32)
    b = np.eye(16, 4, dtype=np.float32)
    mad = f'pto.mad(la, lb, lc, {{m}}, {{n}}, {{k}}, disable_gemv=True, tf32_mode="{mode}")'
    _, _, c = product(1, 16, 4, "f32", a=a, b=b, mad=mad)
    up = {"round_even": [1, 1 + 2 * step, 1 + step, -1], "round_away": [1 + step, 1 + 2 * step, 1 + step, -(1 + step)]}
    same(c[0, :4], np.array(up[mode], np.float32))


def test_accumulating_and_bias() -> None:
    m, n, k = 32, 48, 32
    a, b = numbers("f16", m, k, seed=1), numbers("f16", n, k, seed=2)
    bias = numbers("f16", 1, 48, seed=3)
    before = 'lbias, bt = at("mat", pto.f16, 131072), at("bias", pto.f32, 64)\n'
    before += (
        'pto.mte_gm_l1(bias, lbias, 96, nburst=(1, 96, 96))\npto.set_flag("MTE2", "MTE1", event_id=1)\n'
        'pto.wait_flag("MTE2", "MTE1", event_id=1)\npto.mte_l1_bt(lbias, bt, 3, nburst=(1, 0, 0))\n'
    )
    arrays = {"a": ("f16", a), "b": ("f16", b), "bias": ("f16", bias), "c": ("f32", np.zeros((m, n)))}
    mad = "pto.mad_bias(la, lb, lc, bt, {m}, {n}, {k})\npto.mad_acc(la, lb, lc, {m}, {n}, {k})"
    close(run(gemm(m, n, k, "f16", before=before, mad=mad), arrays)["c"], bias.astype(np.float64) + 2 * exact(a, b), 2 * k)


def test_a_single_row_is_a_vector_unless_told_otherwise() -> None:
    k = 64
    a, b = numbers("f16", 1, k, seed=1), numbers("f16", 32, k, seed=2)
    # K values next to each other, as GM has them.
    before = 'pto.pipe_barrier("ALL")\npto.mte_gm_l1(a, l1a, 128, nburst=(1, 128, 128))\npto.pipe_barrier("ALL")\n'
    before += "pto.mte_l1_l0a(l1a, la, m_start=0, k_start=0, m_step=1, k_step=1, src_stride=1, dst_stride=1)\n"
    _, _, c = product(1, 32, k, "f16", a=a, b=b, before=before, mad="pto.mad(la, lb, lc, 1, {n}, {k})")
    close(c, exact(a, b), k)


def test_start_and_flags_chosen_at_run_time() -> None:
    m = n = k = 16
    a, b = numbers("f16", m, k, seed=1), numbers("f16", n, k, seed=2)
    mad = """\
with pto.for_(0, 3, step=1) as i:
    j = pto.cast(i, pto.i32)
    pto.mad_acc(la, lb, lc, {m}, {n}, {k}, init=pto.cmp(j, 0, "eq"), disable_gemv=pto.cmp(j, 0, "ge"))
"""
    close(product(m, n, k, "f16", a=a, b=b, mad=mad)[2], 3 * exact(a, b), 3 * k)


def test_saturating_products() -> None:
    a = np.array([[np.inf, 1, 0, 0], [1, np.nan, 0, 0], [60000, 60000, 60000, 60000]], np.float16)
    b = np.array([[1, 1, 1, 1]] * 16, np.float16)
    plain = product(3, 16, 4, "f16", a=a, b=b)[2]
    assert np.isinf(plain[0]).all() and np.isnan(plain[1]).all() and (plain[2] == 240000).all()
    mad = 'pto.mad(la, lb, lc, {m}, {n}, {k}, sat="on")'
    c = product(3, 16, 4, "f16", a=a, b=b, mad=mad)[2]
    assert (c[0] == 65505).all() and (c[1] == 1).all()


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8e5m2"])
def test_exceptional_numbers(dtype: str) -> None:
    a = np.array([[np.inf, 1], [-np.inf, 1], [np.nan, 1], [0, 1]], np.float32).astype(NUMPY[dtype])
    b = np.ones((16, 2), NUMPY[dtype])
    c = product(4, 16, 2, dtype, a=a, b=b)[2]
    assert (c[0] == np.inf).all() and (c[1] == -np.inf).all() and np.isnan(c[2]).all() and (c[3] == 1).all()


def test_what_lies_beyond_the_result_is_poison() -> None:
    store = 'pto.mte_l0c_gm(lc, c, 16, 16, 16, 16, 0, 0, layout="nz2nd")'
    c = product(5, 7, 16, "bf16", store=store, c=np.zeros((16, 16)))[2]
    assert not np.isnan(c[:5, :7]).any() and np.isnan(c[5:]).all() and np.isnan(c[:, 7:]).all()


def test_empty_products_do_nothing() -> None:
    mad = "pto.mad(la, lb, lc, {m}, {n}, {k})\npto.mad(la, lb, lc, 0, {n}, {k})\npto.mad(la, lb, lc, {m}, {n}, 0)"
    a, b, c = product(16, 16, 16, "bf16", mad=mad)
    close(c, exact(a, b), 16)


# -- scaled formats ----------------------------------------------------------------------------------------------------


def packed_scales(codes: np.ndarray) -> np.ndarray:
    """Rows by groups of 32: fragments of 16 rows by 2 groups."""
    rows, groups = codes.shape
    return codes.reshape(rows // 16, 16, groups // 2, 2).transpose(0, 2, 1, 3).ravel()


FP4 = {"f4e2m1x2": np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]), "f4e1m2x2": np.arange(8) / 4}


def scaled_operand(dtype: str, rows: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes in GM (rows by K) and values."""
    rng = np.random.default_rng(seed)
    if dtype.startswith("f4"):
        codes = rng.integers(0, 16, (rows, k))
        values = FP4[dtype][codes & 7] * np.where(codes & 8, -1, 1)
        return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), values
    values = rng.uniform(-2, 2, (rows, k)).astype(NUMPY[dtype])
    return values, values.astype(np.float64)


def scaled_product(left: str, right: str, m: int, n: int, k: int, a_codes: np.ndarray, b_codes: np.ndarray, **options) -> tuple:
    a, a_values = scaled_operand(left, m, k, 11)
    b, b_values = scaled_operand(right, n, k, 12)
    row = a.shape[1]
    body = f"""\
l1a, l1b, sa, sb = at("mat", pto.{left}), at("mat", pto.{right}, 131072), at("mat", pto.f8e8m0, 262144), at("mat", pto.f8e8m0, 300032)
la, lb, lc = at("left", pto.{left}, 2048), at("right", pto.{right}, 4096), at("acc", pto.f32)
pto.mte_gm_l1_frac(a, l1a, "nd2nz", shape=({m}, {row}), src_layout=({row},), dst_group=(1, 1, {m}, 0), ctrl=(0, False))
pto.mte_gm_l1_frac(b, l1b, "nd2nz", shape=({n}, {row}), src_layout=({row},), dst_group=(1, 1, {n}, 0), ctrl=(0, False))
pto.mte_gm_l1(pto.castptr(xs, pto.ptr(pto.f8e8m0, "gm")), sa, {a_codes.size}, nburst=(1, 0, 0))
pto.mte_gm_l1(pto.castptr(ys, pto.ptr(pto.f8e8m0, "gm")), sb, {b_codes.size}, nburst=(1, 0, 0))
{flags("MTE2-MTE1")}pto.mte_l1_l0a(l1a, la, {m}, {k})
pto.mte_l1_l0b(l1b, lb, {k}, {n})
pto.mte_l1_l0a_mx(sa, la, {m}, {k})
pto.mte_l1_l0b_mx(sb, lb, x_start=0, y_start=0, x_step={n // 16}, y_step={k // 64}, src_stride={k // 64}, dst_stride={k // 64})
{flags("MTE1-M")}pto.mad_mx(la, lb, lc, {m}, {n}, {k})
{flags("M-FIX")}pto.mte_l0c_gm(lc, c, {m}, {n}, {m}, {n}, 0, 0, layout="nz2nd")
"""
    arrays = {
        "a": (left, a), "b": (right, b), "xs": ("ui8", packed_scales(a_codes)), "ys": ("ui8", packed_scales(b_codes)),
        "c": ("f32", np.zeros((m, n))),
    }  # fmt: skip
    return a_values, b_values, run(body, arrays, **options)["c"]


@pytest.mark.parametrize(
    ("left", "right"),
    [("f8e4m3", "f8e4m3"), ("f8e4m3", "f8e5m2"), ("f4e2m1x2", "f4e2m1x2"), ("f4e2m1x2", "f4e1m2x2"), ("f4e1m2x2", "f4e1m2x2")],
)
@pytest.mark.parametrize("spread", [3, 60])
def test_scaled_formats(left: str, right: str, spread: int) -> None:
    m, n, k = 32, 48, 128
    rng = np.random.default_rng(13)
    # With a wide spread elements times their scales leave the range in which two of them can be multiplied in f32.
    a_codes = (127 + rng.integers(-spread, spread + 1, (m, k // 32))).astype(np.uint8)
    b_codes = (
        (127 - (a_codes[0].astype(int) - 127) + rng.integers(-3, 4, (n, k // 32))).astype(np.uint8)
        if spread > 40
        else (127 + rng.integers(-spread, spread + 1, (n, k // 32))).astype(np.uint8)
    )
    a, b, c = scaled_product(left, right, m, n, k, a_codes, b_codes)
    a = a * np.repeat(2.0 ** (a_codes.astype(int) - 127), 32, 1)
    b = b * np.repeat(2.0 ** (b_codes.astype(int) - 127), 32, 1)
    expected = exact(a, b)
    bound = k * 2.0**-23 * (np.abs(a) @ np.abs(b).T)
    assert (np.abs(c - expected) <= bound).all()


def test_a_scale_that_is_no_number() -> None:
    codes = np.full((16, 2), 127, np.uint8)
    broken = codes.copy()
    broken[3, 1] = 0xFF
    c = scaled_product("f8e4m3", "f8e4m3", 16, 16, 64, broken, codes)[2]
    assert np.isnan(c[3]).all() and not np.isnan(np.delete(c, 3, 0)).any()


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mad", "message"),
    [
        ("pto.mad(la, lb, pto.addptr(lc, 16), {m}, {n}, {k})", "L0C address 64 is not a multiple of 1024"),
        ("pto.mad(pto.addptr(la, 16), lb, lc, {m}, {n}, {k})", "L0A address 32 is not a multiple of 512"),
        ("pto.mad(la, lb, pto.addptr(lc, 65536 - 256), {m}, 32, {k})", "L0C access out of bounds: 2048 bytes at address 261120"),
        ("pto.mad(la, lb, lc, {m}, {n}, 4095)", "L0A access out of bounds: 131072 bytes"),
        ('pto.mad(la, lb, lc, {m}, {n}, {k}, tf32_mode="round_even")', "tf32_mode with operands of bf16"),
        ("pto.mad(la, lb, lc, {m}, {n}, 4096)", "k=4096 is out of range"),
        ("pto.mad(la, lb, lc, {m}, {n}, {k}, init=1)", "init is int 1"),
        ("pto.mad(lb, la, lc, {m}, {n}, {k})", "points to 'right'"),
        ("pto.mad_mx(la, lb, lc, {m}, {n}, {k})", "mad_mx of bf16 and bf16"),
        ('pto.mad(la, at("right", pto.f16), lc, {m}, {n}, {k})', "mad of bf16 and f16 into f32"),
        ('pto.mad(la, lb, at("acc", pto.i32), {m}, {n}, {k})', "mad of bf16 and bf16 into i32"),
        ('pto.mad_bias(la, lb, lc, at("bias", pto.f32, 32), {m}, {n}, {k})', "the bias table address 32 is not a multiple of 64"),
        ('pto.mad_bias(la, lb, lc, at("bias", pto.f32, 4032), {m}, 32, {k})', "the bias table access out of bounds"),
    ],
)
def test_bad_products(mad: str, message: str) -> None:
    with pytest.raises(SimulationError) as info:
        product(16, 16, 16, "bf16", mad=mad)
    assert message in info.value.what
    assert any(place.startswith("k.py:") for place in info.value.where)


def test_scaled_products_need_whole_groups() -> None:
    codes = np.full((16, 2), 127, np.uint8)
    with pytest.raises(SimulationError, match="multiples of 64"):
        scaled_product("f8e4m3", "f8e4m3", 16, 16, 32 + 64, np.full((16, 4), 127, np.uint8)[:, :2], codes)
