"""Division, roots, exponentials and logarithms that are asked to be better than the hardware.

The helper functions run on NumPy registers whose raw division, root, exponential and logarithm are off by up to one ulp and flush
subnormals, as the hardware may be; the emitted kernels run on the simulator.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import tvm
from simd_registers import SURFACES, evaluate, full, register, sample, ulps
from tir_builder import registers
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.rules.simd_precise import HELPERS
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import UnsupportedError
from tilelang_pto.sim import run

SMALLEST_NORMAL = np.float32(2.0**-126)
LIMIT = 60_000


class Registers:
    """The vector calls the helpers use, on arrays of any length.

    Args:
        error: how many units in the last place raw functions are off: an array of -1, 0 and 1.
    """

    f32, i32 = np.float32, np.int32

    def __init__(self, error: np.ndarray) -> None:
        self.error = error

    def const(self, value, dtype):
        return dtype(value)

    def vbr(self, value):
        return np.full(self.error.shape, value)

    def vbitcast(self, a, dtype):
        return a.view(dtype)

    def _raw(self, exact: np.ndarray) -> np.ndarray:
        result = exact.astype(np.float32)
        normal = np.isfinite(result) & (np.abs(result) >= 2 * SMALLEST_NORMAL) & (np.abs(result) < np.float32(3e38))
        moved = np.where(normal, result.view(np.int32) + self.error, result.view(np.int32)).view(np.float32)
        return self._flush(moved)

    @staticmethod
    def _flush(a):
        return np.where(np.abs(a) < SMALLEST_NORMAL, np.copysign(np.float32(0), a), a)

    def vdiv(self, a, b, mask):
        return np.where(mask, self._raw(self._flush(a).astype(np.float64) / self._flush(b)), np.float32(0))

    def vsqrt(self, a, mask):
        return np.where(mask, self._raw(np.sqrt(self._flush(a).astype(np.float64))), np.float32(0))

    def vexp(self, a, mask):
        return np.where(mask, self._raw(np.exp(self._flush(a).astype(np.float64))), np.float32(0))

    def vln(self, a, mask):
        return np.where(mask, self._raw(np.log(self._flush(a).astype(np.float64))), np.float32(0))

    def vmula(self, acc, a, b, mask):
        return np.where(mask, fused(a, b, acc), np.float32(0))

    def vsel(self, a, b, mask):
        return np.where(mask, a, b)

    def vcmp(self, a, b, mask, mode):
        return mask & getattr(np, {"gt": "greater", "lt": "less", "le": "less_equal"}[mode])(a, b)

    def vcmps(self, a, b, mask, mode):
        return self.vcmp(a, a.dtype.type(b), mask, mode)


def _plain(name, function):
    def call(self, a, *rest):
        *others, mask = rest
        operands = [a.dtype.type(o) if np.isscalar(o) else o for o in others]
        return np.where(mask, function(a, *operands), a.dtype.type(0)).astype(a.dtype)

    setattr(Registers, name, call)


for _name, _function in {
    "vabs": np.abs, "vneg": np.negative, "vadd": np.add, "vadds": np.add, "vsub": np.subtract, "vmul": np.multiply, "vmuls": np.multiply,
    "vmax": np.maximum, "vmaxs": np.maximum, "vmins": np.minimum, "vand": np.bitwise_and, "vor": np.bitwise_or, "vxor": np.bitwise_xor,
    "vshrs": np.right_shift,
}.items():  # fmt: skip
    _plain(_name, _function)


def fused(a, b, c):
    """a * b + c with one rounding: the exact sum is rounded to odd at 53 bits, then to 24."""
    product = a.astype(np.float64) * b
    addend = c.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where(np.isfinite(total) & (error != 0) & (bits & 1 == 0), bits + toward, bits)
    return odd.view(np.float64).astype(np.float32)


def helper(name: str, error: np.ndarray):
    """A correction as a Python function on arrays."""
    function, text = HELPERS[name]
    scope = {"pto": Registers(error)}
    exec(text, scope)
    return scope[function]


def edges() -> np.ndarray:
    """Floats at the ends of every binade, halves of grids, zeros, infinities, NaN."""
    powers = [2.0**e for e in range(-149, 128)]
    steps = [1.0, 1.0 + 2**-23, 2.0 - 2**-23, 1.5, 3.0, 5.0, 7.0]
    with np.errstate(over="ignore"):
        values = np.array([p * s for p in powers for s in steps] + [0.0, np.inf, np.nan, 2.0**-149 * 3], np.float64).astype(np.float32)
    return np.concatenate([values, -values])


def pairs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    known = edges()
    bits = rng.integers(0, 2**32, (2, LIMIT), dtype=np.uint64).astype(np.uint32).view(np.float32)
    a = np.concatenate([rng.choice(known, LIMIT), bits[0], rng.integers(1, 4000, LIMIT).astype(np.float32) * np.float32(2.0**-149)])
    b = np.concatenate([rng.choice(known, LIMIT), bits[1], rng.integers(1, 64, LIMIT).astype(np.float32)])
    return a, b


def random_errors(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-1, 2, count).astype(np.int32)


def same(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Equal bit for bit, or both NaN."""
    return (got.view(np.int32) == expected.view(np.int32)) | (np.isnan(got) & np.isnan(expected))


@pytest.mark.parametrize("error", ["none", "up", "down", "mixed"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_division_is_correctly_rounded_whatever_the_hardware_does(error, seed):
    a, b = pairs(seed)
    off = {"none": 0, "up": 1, "down": -1}.get(error)
    errors = random_errors(a.size, seed) if off is None else np.full(a.size, off, np.int32)
    with np.errstate(all="ignore"):
        got = helper("vdiv", errors)(a, b, np.ones(a.shape, bool))
        expected = a / b
    wrong = ~same(got, expected)
    report = zip(a[wrong][:5], b[wrong][:5], got[wrong][:5], expected[wrong][:5], strict=True)
    assert not wrong.any(), [(float(x).hex(), float(y).hex(), g, e) for x, y, g, e in report]


def test_division_near_the_middle_of_two_floats():
    """Quotients whose exact value is as near to a midpoint as quotients get: a = (m * b rounded to 24 bits), m a midpoint."""
    rng = np.random.default_rng(5)
    b = (rng.integers(2**23, 2**24, LIMIT) | 1).astype(np.float64)
    middle = rng.integers(2**23, 2**24, LIMIT).astype(np.float64) + 0.5
    a = (middle * b * 2.0**-24).astype(np.float32)
    b = (b * 2.0**-23).astype(np.float32)
    for shift in (0, -140, 100):
        scaled = (a * np.float32(2.0**-20)) * np.float32(2.0**shift)
        for errors in (random_errors(LIMIT, 6), np.full(LIMIT, 1, np.int32), np.full(LIMIT, -1, np.int32)):
            with np.errstate(all="ignore"):
                assert same(helper("vdiv", errors)(scaled, b, np.ones(LIMIT, bool)), scaled / b).all()


def test_numpy_rounds_quotients_and_roots_correctly():
    """The expectations above, against rational arithmetic."""
    a, b = pairs(7)
    usable = np.isfinite(a) & np.isfinite(b) & (b != 0) & (a != 0)
    for x, y in list(zip(a[usable], b[usable], strict=True))[::600]:
        exact = Fraction(float(x)) / Fraction(float(y))
        with np.errstate(all="ignore"):
            quotient = x / y
        if np.isfinite(quotient):
            for other in (np.nextafter(quotient, np.float32(np.inf)), np.nextafter(quotient, np.float32(-np.inf))):
                if np.isfinite(other):
                    assert abs(Fraction(float(quotient)) - exact) <= abs(Fraction(float(other)) - exact)


def test_inactive_lanes_of_a_division_are_zero():
    a, b = pairs(8)
    mask = np.random.default_rng(9).integers(0, 2, a.size).astype(bool)
    with np.errstate(all="ignore"):
        got = helper("vdiv", random_errors(a.size, 10))(a, b, mask)
    assert (got[~mask].view(np.int32) == 0).all()


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_square_root_is_correctly_rounded(off):
    rng = np.random.default_rng(11)
    random = rng.integers(0, 2**31, 4 * LIMIT, dtype=np.int64).astype(np.uint32).view(np.float32)
    roots = rng.integers(2**12, 2**13, LIMIT).astype(np.float32)
    a = np.concatenate([edges(), random, roots * roots, np.nextafter(roots * roots, np.float32(0))])
    with np.errstate(all="ignore"):
        got = helper("vsqrt", np.full(a.size, off, np.int32))(a, np.ones(a.shape, bool))
        expected = np.sqrt(a)
    assert same(got, expected).all()


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_exponential_keeps_subnormal_results(off):
    """The model's raw result is up to 1.5 ulp from the exact one (rounded, then moved by one); the product adds half a unit at the most."""
    rng = np.random.default_rng(12)
    a = np.concatenate([-rng.random(LIMIT).astype(np.float32) * 110, rng.normal(size=LIMIT).astype(np.float32) * 30, edges()])
    with np.errstate(all="ignore"):
        got = helper("vexp", np.full(a.size, off, np.int32))(a, np.ones(a.shape, bool))
        exact = np.exp(a.astype(np.float64))
        expected = exact.astype(np.float32)
    assert (np.isnan(got) == np.isnan(a)).all()
    finite = np.isfinite(expected)
    unit = np.spacing(np.maximum(expected[finite], 0).astype(np.float32)).astype(np.float64)
    distance = np.abs(got[finite].astype(np.float64) - exact[finite]) / unit
    assert distance.max() <= 1.51
    subnormal = (exact > 2.0**-148) & (exact < 2.0**-127)
    assert (got[subnormal] != 0).all()
    assert (got[a < -104.5] == 0).all()


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_logarithm_keeps_subnormal_operands(off):
    rng = np.random.default_rng(13)
    tiny = rng.integers(1, 2**23, LIMIT).astype(np.uint32).view(np.float32)
    a = np.concatenate([tiny, rng.random(LIMIT).astype(np.float32) * 100, edges()])
    with np.errstate(all="ignore"):
        got = helper("vln", np.full(a.size, off, np.int32))(a, np.ones(a.shape, bool))
        exact = np.log(a.astype(np.float64))
        expected = exact.astype(np.float32)
    special = ~np.isfinite(expected)
    assert same(got[special], expected[special]).all()
    small = (a > 0) & (a < SMALLEST_NORMAL)
    distance = np.abs(got[small].astype(np.float64) - exact[small]) / np.spacing(np.abs(expected[small])).astype(np.float64)
    assert distance.max() <= 1.0


def test_the_model_fuses_with_one_rounding():
    rng = np.random.default_rng(14)
    a, b, c = rng.normal(size=(3, 2000)).astype(np.float32)
    c = np.where(rng.integers(0, 2, 2000) == 1, -(a * b), c).astype(np.float32)
    for x, y, z, got in zip(a, b, c, fused(a, b, c), strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        below, above = np.nextafter(got, np.float32(-np.inf)), np.nextafter(got, np.float32(np.inf))
        assert abs(Fraction(float(got)) - exact) <= min(abs(Fraction(float(o)) - exact) for o in (below, above))


# -- emitted kernels -----------------------------------------------------------------------------------------------------


def call(name: str, *arguments, **annotations):
    attributes = {key: tirx.IntImm("int32", value) for key, value in annotations.items()}
    return tirx.call_intrin(register("float32"), tvm.ir.Op.get(f"tl.simd.{name}"), *arguments, annotations=attributes or None)


def zeroing(*arguments):
    return (*arguments, full("float32"), tirx.StringImm("MODE_ZEROING"))


def wide_sample(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.choice(edges(), 40), rng.normal(size=24).astype(np.float32) * 100])
    return np.where(np.isnan(values), np.float32(2), values)


@pytest.fixture(params=["exact", "perturb:1", "perturb:2", "perturb:3"])
def raw_error(request, monkeypatch):
    """How exact the simulator's raw operations are: corrections absorb their error."""
    monkeypatch.setenv("TILELANG_PTO_ULP", request.param)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("annotations", [{}, {"precision": 1}])
def test_division_of_a_kernel(surface, annotations, raw_error):
    for seed in range(4):
        a, b = wide_sample(seed), wide_sample(seed + 50)
        got = evaluate(surface, {"a": a, "b": b}, "float32", lambda x, y: call("vdiv", *zeroing(x, y), **annotations))
        with np.errstate(all="ignore"):
            assert same(got, a / b).all()


@pytest.mark.parametrize("surface", SURFACES)
def test_division_by_the_hardware(surface):
    """Precision 0, and fast math: the raw operation; subnormals are flushed."""
    a, b = sample("float32"), sample("float32", seed=2)
    b[b == 0] = 3
    with np.errstate(all="ignore"):
        expected = a / b
    inputs = {"a": "float32", "b": "float32"}
    raw = registers(inputs, "float32", lambda x, y: call("vdiv", *zeroing(x, y), precision=0))
    default = registers(inputs, "float32", lambda x, y: call("vdiv", *zeroing(x, y)))
    assert "vdiv_exact" not in emit_module(raw, surface=surface_of(surface)).text
    assert "vdiv_exact" not in emit_module(default, surface=surface_of(surface), fast_math=True).text
    assert emit_module(default, surface=surface_of(surface)).text.count("def vdiv_exact") == 1
    got = evaluate(surface, {"a": a, "b": b}, "float32", lambda x, y: call("vdiv", *zeroing(x, y), precision=0))
    normal = (np.abs(a) >= SMALLEST_NORMAL) & (np.abs(b) >= SMALLEST_NORMAL) & (np.abs(expected) >= SMALLEST_NORMAL) & np.isfinite(expected)
    assert ulps(got[normal], expected[normal]).max() <= 1
    tiny = np.abs(a) < SMALLEST_NORMAL
    assert tiny.any() and (got[tiny] == 0).all()


RAW = {"vdiv": np.divide, "vexp": np.exp, "vln": np.log, "vsqrt": np.sqrt}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", RAW)
def test_raw_operations_vary_within_the_documented_error(surface, name, monkeypatch):
    """With fast math a quotient, and without the annotation every other function, is what the hardware gives: within 1 ulp, and no more."""
    rng = np.random.default_rng(20)
    values = [rng.uniform(1.5, 60, 64).astype(np.float32) for _ in range(2 if name == "vdiv" else 1)]
    mod = registers({f"a{k}": "float32" for k in range(len(values))}, "float32", lambda *x: call(name, *zeroing(*x)))
    emitted = emit_module(mod, surface=surface_of(surface), fast_math=True)
    assert not any(function in emitted.text for function, _ in HELPERS.values())
    exact = RAW[name](*(v.astype(np.float64) for v in values))
    unit = np.spacing(exact.astype(np.float32)).astype(np.float64)
    changed = 0
    for setting in ("exact", "perturb:1", "perturb:2"):
        out = np.zeros(64, np.float32)
        run(emitted.text, "map", *values, out, ulp=setting)
        assert (np.abs(out - exact) / unit).max() <= (0.9 if setting == "exact" else 1)
        changed += setting != "exact" and (out != exact.astype(np.float32)).any()
    assert changed == 2


PRECISE = {"vdiv": (1, "vdiv_exact"), "vexp": (2, "vexp_subnormal"), "vln": (2, "vln_subnormal"), "vsqrt": (2, "vsqrt_exact")}


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("name", PRECISE)
def test_what_asks_for_precision_gets_the_correction(surface, fast_math, name):
    """Fast math takes away only what nobody asked for by an annotation."""
    precision, function = PRECISE[name]

    def corrected(**annotations) -> bool:
        arguments = (lambda x: (x, x)) if name == "vdiv" else (lambda x: (x,))
        mod = registers({"a": "float32"}, "float32", lambda x: call(name, *zeroing(*arguments(x)), **annotations))
        text = emit_module(mod, surface=surface_of(surface), fast_math=fast_math).text
        body = text[text.index("with pto.vecscope") :]
        assert (f" {function}(" in body) != (f"pto.{name}(" in body)
        return f" {function}(" in body

    assert corrected(precision=precision)
    assert not corrected(precision=0)
    assert corrected() == (name == "vdiv" and not fast_math)


@pytest.mark.parametrize("surface", SURFACES)
def test_square_roots_of_a_kernel(surface, raw_error):
    for seed in range(4):
        a = np.abs(wide_sample(seed))
        got = evaluate(surface, {"a": a}, "float32", lambda x: call("vsqrt", *zeroing(x), precision=2))
        assert same(got, np.sqrt(a)).all()


@pytest.mark.parametrize("surface", SURFACES)
def test_exponentials_and_logarithms_of_a_kernel(surface, raw_error):
    """Precision 2 keeps subnormal values: within 1 ulp, an exponential that rounds once more within 1.51."""
    rng = np.random.default_rng(21)
    powers = np.concatenate([rng.uniform(-103.9, -87.4, 32), rng.uniform(-87, 88, 32)]).astype(np.float32)
    got = evaluate(surface, {"a": powers}, "float32", lambda x: call("vexp", *zeroing(x), precision=2))
    exact = np.exp(powers.astype(np.float64))
    assert (np.abs(got - exact) / np.spacing(exact.astype(np.float32))).max() <= 1.51
    operands = np.concatenate([rng.integers(1, 2**23, 32).astype(np.uint32).view(np.float32), rng.uniform(2, 1e30, 32).astype(np.float32)])
    got = evaluate(surface, {"a": operands}, "float32", lambda x: call("vln", *zeroing(x), precision=2))
    exact = np.log(operands.astype(np.float64))
    assert (np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32))).max() <= 1.01


@pytest.mark.parametrize("surface", SURFACES)
def test_subnormals_of_a_kernel(surface, raw_error):
    tiny = np.random.default_rng(3).integers(1, 2**23, 64).astype(np.uint32).view(np.float32)
    got = evaluate(surface, {"a": tiny}, "float32", lambda x: call("vsqrt", *zeroing(x), precision=2))
    np.testing.assert_array_equal(got, np.sqrt(tiny))
    got = evaluate(surface, {"a": tiny}, "float32", lambda x: call("vln", *zeroing(x), precision=2))
    assert ulps(got, np.log(tiny.astype(np.float64)).astype(np.float32)).max() <= 1
    low = np.linspace(-103, -86, 64, dtype=np.float32)
    got = evaluate(surface, {"a": low}, "float32", lambda x: call("vexp", *zeroing(x), precision=2))
    assert ulps(got, np.exp(low.astype(np.float64)).astype(np.float32)).max() <= 2
    assert (got > 0).all()


@pytest.mark.parametrize(("name", "precision"), [("vdiv", 2), ("vexp", 1), ("vsqrt", 7)])
def test_other_precisions_are_refused(name, precision):
    operands = (lambda x: (x, x)) if name == "vdiv" else (lambda x: (x,))
    mod = registers({"a": "float32"}, "float32", lambda x: call(name, *zeroing(*operands(x)), precision=precision))
    with pytest.raises(UnsupportedError, match=f"precision {precision} of {name}"):
        emit_module(mod, surface=surface_of("2026-09"))


def test_helpers_keep_their_names_when_the_source_uses_them():
    mod = registers({"vdiv_exact": "float32"}, "float32", lambda x: call("vdiv", *zeroing(x, x)))
    text = emit_module(mod, surface=surface_of("2026-09")).text
    scope = SimpleNamespace(lines=[line for line in text.splitlines() if "vdiv_exact" in line])
    assert any("vdiv_exact_1:" in line for line in scope.lines)
    assert math.isclose(
        evaluate("2026-09", {"vdiv_exact": np.full(64, 3, np.float32)}, "float32", lambda x: call("vdiv", *zeroing(x, x)))[0], 1
    )
