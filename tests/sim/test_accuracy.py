"""Approximate functions: the table, its page, flushed subnormals, and results perturbed within the documented error.

Operations: vexp vln vsqrt vdiv vexpdif exp sqrt div log pow sin cos
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from engine_harness import NUMPY, in_gm, in_ub, lanes

from tilelang_pto import ConfigurationError
from tilelang_pto.sim import run
from tilelang_pto.sim.accuracy import accuracies, accuracy_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"
COUNT = 2048
TABLE = {(row.op, row.region): row for row in accuracies()}
CASES = [(row.op, row.region, dtype) for row in accuracies() for dtype in row.types]
FIGURES = [case for case in CASES if TABLE[case[:2]].ulp]
SEEDS = (0, 1, 999_999_999_999_999_999)

EXACT: dict[str, Callable[..., np.ndarray]] = {
    "vexp": np.exp, "exp": np.exp, "vln": np.log, "log": np.log, "vsqrt": np.sqrt, "sqrt": np.sqrt,
    "vdiv": np.divide, "div": np.divide, "vexpdif": lambda a, b: np.exp((a - b).astype(np.float32).astype(np.float64)),
    "pow": np.power, "sin": np.sin, "cos": np.cos,
}  # fmt: skip
BINARY = {"vdiv", "div", "vexpdif", "pow"}


def evaluated(op: str, region: str, dtype: str, a: np.ndarray, b: np.ndarray | None = None, seed: int | None = None) -> np.ndarray:
    """``op`` of COUNT elements (or fewer, in whole registers)."""
    inputs = {"a": (dtype, a)} if b is None else {"a": (dtype, a), "b": (dtype, b)}
    if region == "simt":
        operands = ", ".join(f"pto.load({name}, i * 128 + t)" for name in inputs)
        body = f"t = pto.get_tid_x()\nwith pto.for_(0, {len(a) // 128}, step=1) as i:\n    pto.store(pto.{op}({operands}), c, i * 128 + t)"
        return in_ub(body, inputs, {"c": (dtype, len(a))}, scope="with pto.simt(128, 1, 1):", perturbation=seed)["c"]
    width = lanes(dtype)
    bits = 8 * np.dtype(NUMPY[dtype]).itemsize
    operands = ", ".join(f"pto.vlds({name}, i * {width})" for name in inputs)
    part = ', part="ODD"' if op == "vexpdif" else ""
    body = f"""\
    m = pto.pset_b{bits}("PAT_ALL")
    with pto.for_(0, {len(a) // width}, step=1) as i:
        pto.vsts(pto.{op}({operands}, m{part}), c, i * {width}, m)
    """
    return in_ub(body, inputs, {"c": (dtype, len(a))}, perturbation=seed)["c"]


def operands(op: str, dtype: str, seed: int = 0) -> tuple[np.ndarray, ...]:
    """COUNT operands whose results are normal numbers, exact values among them."""
    rng = np.random.default_rng(seed)
    kind = NUMPY[dtype]
    if op in ("vexp", "exp"):
        return (np.concatenate([np.zeros(8), rng.uniform(-8, 8, COUNT - 8)]).astype(kind),)
    if op in ("sin", "cos"):
        return (rng.uniform(-8, 8, COUNT).astype(kind),)
    positive = np.exp(rng.uniform(-4, 4, COUNT))
    positive[:64] = np.arange(1, 65) ** 2
    if op not in BINARY:
        values = positive.astype(kind)
        values[values == 1] = 2  # ln 1 is zero, which stays
        return (values,)
    if op == "vexpdif":
        return rng.uniform(-3, 3, COUNT).astype(kind), rng.uniform(-3, 3, COUNT).astype(kind)
    sign = 1 if op == "pow" else rng.choice([-1, 1], COUNT)
    return (sign * positive).astype(kind), np.resize(rng.uniform(0.5, 2.5, COUNT), COUNT).astype(kind)


def exact_and_unit(op: str, dtype: str, values: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Results in float64, none of them zero, and the unit in the last place of each."""
    exact = EXACT[op](*(v.astype(np.float64) for v in values))
    digits = ml_dtypes.finfo(NUMPY[dtype]).nmant
    return exact, np.exp2(np.floor(np.log2(np.abs(exact))) - digits)


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == accuracy_page(), "run: python -m tilelang_pto.sim.accuracy docs/accuracy.md"


def test_every_row_says_where_it_is_from():
    assert {row.op for row in accuracies()} == set(EXACT)
    for row in accuracies():
        assert row.source and row.certainty and row.types
        assert (row.ulp == 0) == row.certainty.startswith("no figure")


@pytest.mark.parametrize(("op", "region", "dtype"), CASES)
def test_subnormals_are_flushed(op: str, region: str, dtype: str):
    info = ml_dtypes.finfo(NUMPY[dtype])
    tiny, normal = float(info.smallest_normal) / 4, float(info.smallest_normal)
    width = max(lanes(dtype), 128)

    def one(a: float, b: float | None = None, seed: int | None = None) -> np.ndarray:
        more = None if b is None else np.full(width, b, NUMPY[dtype])
        return evaluated(op, region, dtype, np.full(width, a, NUMPY[dtype]), more, seed)[0]

    for seed in (None, 3):
        if op in ("vdiv", "div"):
            assert one(1, tiny, seed) == np.inf and one(1, -tiny, seed) == -np.inf
            assert np.isnan(one(tiny, tiny, seed)) and np.isnan(one(0, tiny, seed))
            assert one(normal, 4, seed) == 0 and np.signbit(one(-normal, 4, seed))
        elif op in ("vsqrt", "sqrt", "sin"):
            assert one(tiny, seed=seed) == 0 and np.signbit(one(-tiny, seed=seed))
        elif op in ("vln", "log"):
            assert one(tiny, seed=seed) == -np.inf
        elif op in ("vexp", "exp"):
            assert one(np.log(normal) - 0.5, seed=seed) == 0
            assert one(tiny, seed=seed) == one(0, seed=seed)
        elif op == "vexpdif":
            assert one(np.log(normal), 0.5, seed) == 0
        elif op == "pow":
            assert one(tiny, 1, seed) == 0
        else:
            assert one(tiny, seed=seed) == 1


@pytest.mark.parametrize(("op", "region", "dtype"), FIGURES)
def test_perturbed_results_are_within_the_documented_error(op: str, region: str, dtype: str):
    values = operands(op, dtype)
    exact, unit = exact_and_unit(op, dtype, values)
    plain = evaluated(op, region, dtype, *values)
    assert (np.abs(plain.astype(np.float64) - exact) / unit).max() <= 0.9
    seen = []
    for seed in SEEDS:
        got = evaluated(op, region, dtype, *values, seed=seed)
        off = (got.astype(np.float64) - exact) / unit
        assert np.abs(off).max() <= TABLE[op, region].ulp
        assert np.abs(off).max() > 0.9 and off.min() < -0.5 and off.max() > 0.5  # the figure is used up, on both sides
        assert (np.signbit(got) == np.signbit(exact)).all()
        assert 0.3 < (got != plain).mean() < 0.8
        seen.append(got)
    assert (seen[0] != seen[1]).any() and (seen[1] != seen[2]).any()


@pytest.mark.parametrize(("op", "region", "dtype"), [case for case in FIGURES if case[0] not in ("vln", "log", "vexpdif")])
def test_exact_results_may_be_off_too(op: str, region: str, dtype: str):
    """Nothing says that exp(0), or the root of a square, is exact."""
    values = operands(op, dtype)
    if op in ("vdiv", "div"):
        values = values[0], np.full(COUNT, 2, NUMPY[dtype])
    exact, _ = exact_and_unit(op, dtype, values)
    representable = exact == exact.astype(NUMPY[dtype]).astype(np.float64)
    assert representable.any()
    got = [evaluated(op, region, dtype, *values, seed=seed)[representable] for seed in range(6)]
    assert any((g.astype(np.float64) != exact[representable]).any() for g in got)


@pytest.mark.parametrize(("op", "region", "dtype"), FIGURES)
def test_special_results_stay(op: str, region: str, dtype: str):
    info = ml_dtypes.finfo(NUMPY[dtype])
    top, low = float(info.max), float(info.smallest_normal)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, top, -top, low, -low, 2.0]
    pairs = np.array([(x, y) for x in special for y in special] * 2)[: 2 * 128]
    a, b = (np.resize(column, 256).astype(NUMPY[dtype]) for column in pairs.T)
    values = (a, b) if op in BINARY else (a,)
    plain = evaluated(op, region, dtype, *values)
    kept = (plain == 0) | ~np.isfinite(plain)
    assert kept.any()
    for seed in SEEDS:
        got = evaluated(op, region, dtype, *values, seed=seed)
        np.testing.assert_array_equal(got[kept], plain[kept])
        numbers = kept & ~np.isnan(plain)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(plain[numbers]))
        rest = got[~kept]
        assert np.isfinite(rest).all() and (np.abs(rest) >= low).all()
        np.testing.assert_array_equal(np.signbit(rest), np.signbit(plain[~kept]))


@pytest.mark.parametrize(("op", "region", "dtype"), [case for case in CASES if case not in FIGURES])
def test_without_a_figure_nothing_is_perturbed(op: str, region: str, dtype: str):
    values = operands(op, dtype)
    np.testing.assert_array_equal(evaluated(op, region, dtype, *values, seed=5), evaluated(op, region, dtype, *values))


SIMT = """\
b = pto.get_block_idx()
with pto.simt(64, 1, 1):
    t = pto.get_tid_x()
    pto.store(pto.exp(pto.load(x, t)), o, b * 64 + t)
    one = pto.load(x, 5)
    pto.store(pto.div(pto.sqrt(one), pto.exp(one)), u, b)
    pto.store(pto.div(pto.sqrt(pto.load(x, 5 + t * 0)), pto.exp(pto.load(x, 5 + t * 0))), v, b * 64 + t)
"""


def test_perturbation_depends_on_operation_operands_and_seed_alone():
    """Not on the block, the thread, the number of host threads, or on whether all threads share the operand."""
    x = np.random.default_rng(3).uniform(0.1, 9, 64)
    results = []
    for threads in (1, 2, 3):
        inputs = {"x": ("f32", x), "o": ("f32", np.zeros(640)), "u": ("f32", np.zeros(10)), "v": ("f32", np.zeros(640))}
        found = in_gm(SIMT, inputs, {}, grid=10, host_threads=threads, perturbation=17)
        assert (found["o"].reshape(10, 64) == found["o"][:64]).all()
        assert (found["u"] == found["u"][0]).all() and (found["v"] == found["u"][0]).all()
        results.append(found["o"])
    assert (results[0] == results[1]).all() and (results[1] == results[2]).all()
    a = x.astype(np.float32).repeat(4)
    alone = evaluated("exp", "simt", "f32", a, seed=17)
    np.testing.assert_array_equal(alone, results[0][:64].repeat(4))
    assert (evaluated("vexp", "simd", "f32", a, seed=17) != alone).any()  # another operation
    np.testing.assert_array_equal(
        evaluated("vexp", "simd", "f32", a[::-1].copy(), seed=17), evaluated("vexp", "simd", "f32", a, seed=17)[::-1]
    )


@pytest.mark.parametrize("seed", [None, 4])
def test_high_precision_division_is_correctly_rounded(seed: int | None):
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**32, (2, 256), dtype=np.uint64).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        expected = bits[0] / bits[1]
    inputs = {"a": ("f32", bits[0]), "b": ("f32", bits[1])}
    body = """\
    m = pto.pset_b32("PAT_ALL")
    with pto.for_(0, 4, step=1) as i:
        q = pto.vdiv(pto.vlds(a, i * 64), pto.vlds(b, i * 64), m, precision=pto.DivPrecision.HighPrecision)
        pto.vsts(q, c, i * 64, m)
    """
    np.testing.assert_array_equal(in_ub(body, inputs, {"c": ("f32", 256)}, perturbation=seed)["c"], expected)
    body = "t = pto.get_tid_x()\npto.store(pto.div(pto.load(a, t), pto.load(b, t), precision=pto.DivPrecision.HighPrecision), c, t)"
    found = in_ub(body, inputs, {"c": ("f32", 256)}, scope="with pto.simt(256, 1, 1):", perturbation=seed)["c"]
    np.testing.assert_array_equal(found, expected)


TEXT = """from ptodsl import pto

@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)
def k(x: pto.ptr(pto.f32, "gm")):
    with pto.simt(64, 1, 1):
        t = pto.get_tid_x()
        pto.store(pto.exp(pto.load(x, t)), x, t)
"""


def test_run_takes_the_setting(monkeypatch):
    start = np.linspace(-3, 3, 64, dtype=np.float32)

    def result(**options) -> np.ndarray:
        x = start.copy()
        run(TEXT, "k", x, **options)
        return x

    exact, perturbed = result(), result(ulp="perturb:8")
    assert (exact != perturbed).any()
    np.testing.assert_array_equal(result(ulp="exact"), exact)
    monkeypatch.setenv("TILELANG_PTO_ULP", "perturb:8")
    np.testing.assert_array_equal(result(), perturbed)
    np.testing.assert_array_equal(result(ulp="exact"), exact)
    with pytest.raises(ConfigurationError, match="ulp=perturb is not understood"):
        result(ulp="perturb")
