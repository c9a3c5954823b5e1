"""Commands of a cube core under the timing model: matrix products, loads into L0, the fixpipe."""

from __future__ import annotations

import math

import numpy as np
import pytest
from timing_harness import FIGURES, events, gm, timed

MAD = """
a, r = pto.castptr(zero, pto.ptr(pto.{dtype}, "left")), pto.castptr(zero, pto.ptr(pto.{dtype}, "right"))
c = pto.castptr(zero, pto.ptr(pto.{result}, "acc"))
pto.mad(a, r, c, {m}, {n}, {k}{rest})
"""


def duration(body: str, pipe: str, arrays: dict | None = None, **options) -> float:
    (event,) = events(timed(body, arrays, kind="cube", **options), pipe)
    return event.end - event.start


@pytest.mark.parametrize(
    ("dtype", "result", "rest", "per_cycle", "block", "head"),
    [
        ("f16", "f32", "", 16, 16, "kMadHead"),
        ("bf16", "f32", "", 16, 16, "kMadHead"),
        ("i8", "i32", "", 32, 32, "kMadHead"),
        ("f8e4m3", "f32", "", 32, 32, "kMadHead"),
        ("f32", "f32", "", 1, 8, "kMadF32Head"),
        ("f32", "f32", ", tf32_mode=pto.Tf32Mode.ROUND_EVEN", 8, 8, "kMadHead"),
    ],
)
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (16, 16, 16), (100, 40, 33), (1, 64, 64)])
def test_a_product_takes_its_cubes_and_a_head(
    dtype: str, result: str, rest: str, per_cycle: int, block: int, head: str, m: int, n: int, k: int
) -> None:
    found = duration(MAD.format(dtype=dtype, result=result, m=m, n=n, k=k, rest=rest), "M")
    cubes = math.ceil(m / 16) * math.ceil(n / 16) * math.ceil(k / block) * block / per_cycle
    assert found == cubes + FIGURES[head]


@pytest.mark.parametrize(("dtype", "per_cycle"), [("f8e4m3", 32), ("f4e2m1x2", 64)])
@pytest.mark.parametrize(("m", "n", "k"), [(128, 64, 128), (16, 32, 64)])
def test_a_scaled_product_has_a_least_size_and_a_longer_head(dtype: str, per_cycle: int, m: int, n: int, k: int) -> None:
    body = MAD.replace("pto.mad(", "pto.mad_mx(").format(dtype=dtype, result="f32", m=m, n=n, k=k, rest="")
    least = FIGURES["kMadScaledExtent"]
    cubes = max(m, least) * max(n, least) / 256 * k / per_cycle
    assert duration(body, "M") == cubes + FIGURES["kMadScaledHead"]


def test_operations_of_products_count_and_have_a_peak_of_their_type() -> None:
    for dtype, result, peak in (("f16", "f32", 16), ("i8", "i32", 32), ("f32", "f32", 1)):
        timing = timed(MAD.format(dtype=dtype, result=result, m=128, n=128, k=64, rest=""), kind="cube").timing
        assert timing.achieved.flops * timing.microseconds * 1e-6 == pytest.approx(2 * 128 * 128 * 64)
        assert timing.peak.flops == pytest.approx(2 * 16 * 16 * peak * FIGURES["kCubeCores"] * 1.65e9)


def test_a_load_into_l0_takes_its_bytes_and_a_latency() -> None:
    body = """
    l1 = pto.castptr(zero, pto.ptr(pto.f16, "mat"))
    pto.mte_l1_l0a(l1, pto.castptr(zero, pto.ptr(pto.f16, "left")), m_start=0, k_start=0, m_step=16, k_step=4, src_stride=16, dst_stride=16)
    """
    assert duration(body, "MTE1") == 256 * 64 * 2 / 256 + FIGURES["kL1L0Latency"]


def test_loads_into_l1_take_their_latency_and_bytes() -> None:
    plain = """
    l1 = pto.castptr(zero, pto.ptr(pto.f16, "mat"))
    pto.mte_gm_l1(x, l1, 32768, nburst=(1, 32768, 32768))
    """
    fractal = """
    l1 = pto.castptr(zero, pto.ptr(pto.f16, "mat"))
    pto.mte_gm_l1_frac(x, l1, "nd2nz", shape=(64, 64), src_layout=(256,), dst_group=(1, 1, 64, 0), ctrl=(0, False))
    """
    assert duration(plain, "MTE2", {"x": gm(16384, np.float16)}) == pytest.approx(190 + 327.68, rel=2e-3)
    assert duration(fractal, "MTE2", {"x": gm(16384, np.float16)}) == pytest.approx(190 + 81.92, rel=2e-3)


@pytest.mark.parametrize(
    ("result", "extra", "per_cycle"), [("f32", "", 32), ("f16", ', pre_quant=(pto.const(1.0, dtype=pto.f32), "f32_f16")', 64)]
)
def test_a_store_to_gm_takes_its_elements_and_a_latency(result: str, extra: str, per_cycle: int) -> None:
    body = f"""
    c = pto.castptr(zero, pto.ptr(pto.f32, "acc"))
    pto.mte_l0c_gm(c, o, 128, 256, 128, 256, 0, 0, layout="nz2nd"{extra})
    """
    count = 128 * 256
    found = duration(body, "FIX", {"o": gm(count, np.float32 if result == "f32" else np.float16)})
    assert found == pytest.approx(count / per_cycle + FIGURES["kFixpipeGmLatency"], rel=0.01)


def test_columns_of_rows_with_a_stride_are_stored_at_a_quarter_of_the_rate() -> None:
    body = """
    c = pto.castptr(zero, pto.ptr(pto.f32, "acc"))
    pto.mte_l0c_gm(c, o, 32, 64, 128, 32, 0, 0, layout=("nz2dn", {stride}))
    """
    near, far = (duration(body.format(stride=stride), "FIX", {"o": gm(2048, np.float32)}) for stride in (1, 2))
    assert near == pytest.approx(32 * 64 / 32 + FIGURES["kFixpipeGmLatency"], rel=0.02)
    assert far == pytest.approx(4 * 32 * 64 / 32 + FIGURES["kFixpipeGmLatency"], rel=0.02)


UB_L1 = """
with pto.section("cube"):
    pto.wait_intra_block("MTE1", 0)
    pto.wait_intra_block("MTE1", 16)
with pto.section("vector"):
    ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f16, "ub"))
    l1 = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f16, "mat"))
    pto.mte_ub_l1(ub, l1, {blocks}, nburst=({rows}, {gap}, 0))
    pto.set_intra_block("MTE3", 0)
"""


@pytest.mark.parametrize(
    ("blocks", "rows", "gap", "rate"), [(128, 1, 0, 128), (8, 16, 0, 128), (8, 16, 8, 128), (6, 16, 6, 96), (4, 16, 4, 48)]
)
def test_rows_from_ub_to_l1(blocks: int, rows: int, gap: int, rate: float) -> None:
    report = timed(UB_L1.format(blocks=blocks, rows=rows, gap=gap), kind=None)
    (event,) = events(report, "MTE3", core="AIV1")
    assert event.end - event.start == pytest.approx(FIGURES["kUbL1Latency"] + 32 * blocks * rows / rate)


UNIT_FLAGS = """
a, r = pto.castptr(zero, pto.ptr(pto.f16, "left")), pto.castptr(zero, pto.ptr(pto.f16, "right"))
c = pto.castptr(zero, pto.ptr(pto.f32, "acc"))
pto.mad(a, r, c, 128, 128, 64, unit_flag="check_and_set")
pto.mte_l0c_gm(c, o, 128, 128, 128, 128, 0, 0, layout="nz2nd", unit_flag="check_and_clear")
pto.mad(a, r, c, 128, 128, 64, unit_flag="check_and_set")
pto.mte_l0c_gm(c, o, 128, 128, 128, 128, 0, 0, layout="nz2nd", unit_flag="check_and_clear")
"""


def test_unit_flags_order_products_and_stores() -> None:
    report = timed(UNIT_FLAGS, {"o": gm(16384, np.float32)}, kind="cube")
    first, second = events(report, "M")
    stored, again = events(report, "FIX")
    assert first.end <= stored.start < stored.end <= second.start < second.end <= again.start


MIXED = """
with pto.section("cube"):
    c = pto.castptr(zero, pto.ptr(pto.f32, "acc"))
    ub = pto.castptr(zero, pto.ptr(pto.f32, "ub"))
    pto.mte_l0c_ub(c, ub, 128, 128, 128, 128, split="M", layout="nz2nd")
    pto.set_intra_block("FIX", 0)
    pto.set_intra_block("FIX", 16)
with pto.section("vector"):
    ub = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
    pto.wait_intra_block("V", 0)
    with pto.vecscope():
        m = pto.pset_b32("PAT_ALL")
        pto.vsts(pto.vlds(ub, 0), ub, 0, m)
"""


@pytest.mark.parametrize("seed", [0, 3])
def test_flags_between_the_cores_of_a_block(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_PTO_SEED", str(seed))
    report = timed(MIXED, kind=None)
    (store,) = events(report, "FIX", core="AIC")
    assert store.end - store.start == pytest.approx(128 * 128 / 64 + FIGURES["kFixpipeLatency"], abs=1)
    for core in ("AIV0", "AIV1"):
        (function,) = events(report, "V", core=core)
        assert function.start == store.end + FIGURES["kIntraLatency"]
    assert [(c.block, c.core) for c in report.timing.cores] == [(0, "AIC"), (0, "AIV0"), (0, "AIV1")]
