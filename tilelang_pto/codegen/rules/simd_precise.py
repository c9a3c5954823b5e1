"""Division, exponential, logarithm and square root of f32 lanes, where more is asked for than the hardware gives.

The hardware's own functions are within 1 ulp and take subnormal operands and results as zero. The sequences that correct them are
Python functions that the emitted module defines once and calls with vector values.
"""

from __future__ import annotations

from typing import Any

from ..emit import call
from ..registry import op
from ..values import Value
from ..visitor import Visitor
from .simd_arith import LANE_TYPES, ZEROING, masked

PRECISION = "precision"
HARDWARE, EXACT, SUBNORMALS = 0, 1, 2
"""Values of the annotation."""

DIVIDE = '''
def vdiv_exact(a, b, mask):
    """a / b of f32 lanes, correctly rounded, subnormal operands and results included."""
    exponent_bits = pto.vbr(pto.const(0x7F800000, dtype=pto.i32))
    x = pto.vabs(a, mask)
    y = pto.vabs(b, mask)
    x_exponent = pto.vand(pto.vbitcast(x, pto.i32), exponent_bits, mask)
    y_exponent = pto.vand(pto.vbitcast(y, pto.i32), exponent_bits, mask)
    twice_bias = pto.vbr(pto.const(0x7F000000, dtype=pto.i32))
    x_factor = pto.vmaxs(pto.vsub(twice_bias, x_exponent, mask), 0x00400000, mask)
    y_factor = pto.vmaxs(pto.vsub(twice_bias, y_exponent, mask), 0x00400000, mask)
    x = pto.vmul(x, pto.vbitcast(x_factor, pto.f32), mask)
    y = pto.vmul(y, pto.vbitcast(y_factor, pto.f32), mask)
    minus_y = pto.vneg(y, mask)
    reciprocal = pto.vdiv(pto.vbr(pto.const(1.0, dtype=pto.f32)), y, mask)
    rough = pto.vmul(x, reciprocal, mask)
    quotient = pto.vmula(rough, pto.vmula(x, minus_y, rough, mask), reciprocal, mask)
    exponent = pto.vmaxs(pto.vsub(x_exponent, y_exponent, mask), -1677721600, mask)
    own_top = pto.vand(pto.vbitcast(quotient, pto.i32), exponent_bits, mask)
    least_top = pto.vsub(pto.vbr(pto.const(0x00800000, dtype=pto.i32)), exponent, mask)
    subnormal = pto.vcmp(least_top, own_top, mask, "gt")
    top = pto.vbitcast(pto.vmax(least_top, own_top, mask), pto.f32)
    quotient = pto.vsel(pto.vsub(pto.vadd(quotient, top, mask), top, mask), quotient, subnormal)
    rest = pto.vmula(x, minus_y, quotient, mask)
    half_step = pto.vmul(pto.vmuls(top, 5.960464477539063e-08, mask), y, mask)
    step = pto.vmuls(top, 1.1920928955078125e-07, mask)
    above = pto.vcmp(rest, half_step, mask, "gt")
    below = pto.vcmp(rest, pto.vneg(half_step, mask), mask, "lt")
    lower = pto.vsel(pto.vsub(quotient, step, mask), quotient, below)
    quotient = pto.vsel(pto.vadd(quotient, step, mask), lower, above)
    one_half = pto.vand(pto.vshrs(exponent, 1, mask), pto.vbr(pto.const(-8388608, dtype=pto.i32)), mask)
    other_half = pto.vsub(exponent, one_half, mask)
    quotient = pto.vmul(quotient, pto.vbitcast(pto.vadds(one_half, 0x3F800000, mask), pto.f32), mask)
    quotient = pto.vmul(quotient, pto.vbitcast(pto.vadds(other_half, 0x3F800000, mask), pto.f32), mask)
    regular = pto.vcmps(rough, 1073741824.0, pto.vcmps(rough, 9.313225746154785e-10, mask, "gt"), "lt")
    magnitude = pto.vbitcast(pto.vsel(quotient, rough, regular), pto.i32)
    signs = pto.vxor(pto.vbitcast(a, pto.i32), pto.vbitcast(b, pto.i32), mask)
    sign = pto.vand(signs, pto.vbr(pto.const(-2147483648, dtype=pto.i32)), mask)
    return pto.vbitcast(pto.vor(magnitude, sign, mask), pto.f32)
'''
"""Both operands are brought to [1, 2) (subnormal ones to [2**-22, 2)). Their quotient, within half a unit and a bit, is put on the grid
of the result's floats, which is coarser where the result is subnormal. The exact rest says whether a neighbour is nearer. Then the
exponent is put back in two steps, which round nothing. Zeros, infinities and NaN come out of the rough quotient."""

SQUARE_ROOT = '''
def vsqrt_exact(a, mask):
    """Square root of f32 lanes, correctly rounded, subnormal operands included."""
    tiny = pto.vcmps(a, 1.1754943508222875e-38, mask, "lt")
    x = pto.vsel(pto.vmuls(a, 281474976710656.0, mask), a, tiny)
    exponent = pto.vadds(pto.vbitcast(x, pto.i32), -1065353216, mask)
    exponent = pto.vand(exponent, pto.vbr(pto.const(-16777216, dtype=pto.i32)), mask)
    factor = pto.vsub(pto.vbr(pto.const(0x3F800000, dtype=pto.i32)), exponent, mask)
    y = pto.vmul(x, pto.vbitcast(factor, pto.f32), mask)
    root = pto.vmins(pto.vmaxs(pto.vsqrt(y, mask), 1.0, mask), 1.9999998807907104, mask)
    rest = pto.vmula(y, pto.vneg(root, mask), root, mask)
    limit = pto.vmuls(root, 1.1920928955078125e-07, mask)
    above = pto.vcmp(rest, limit, mask, "gt")
    below = pto.vcmp(rest, pto.vneg(limit, mask), mask, "le")
    lower = pto.vsel(pto.vadds(root, -1.1920928955078125e-07, mask), root, below)
    root = pto.vsel(pto.vadds(root, 1.1920928955078125e-07, mask), lower, above)
    scale = pto.vadds(pto.vshrs(exponent, 1, mask), 0x3F800000, mask)
    root = pto.vmul(root, pto.vbitcast(scale, pto.f32), mask)
    root = pto.vsel(pto.vmuls(root, 5.960464477539063e-08, mask), root, tiny)
    regular = pto.vcmps(x, 3.4028234663852886e38, pto.vcmps(x, 0.0, mask, "gt"), "le")
    return pto.vsel(root, pto.vsqrt(x, mask), regular)
'''
"""The operand is brought to [1, 4); the exact rest says whether a neighbour of the hardware's root is nearer."""

EXPONENTIAL = '''
def vexp_subnormal(a, mask):
    """exp of f32 lanes with subnormal results kept: exp(a + c) * exp(-c) for a < -87.33, the sum exact."""
    low = pto.vcmps(a, -87.33000183105469, mask, "lt")
    result = pto.vexp(pto.vsel(pto.vadds(a, 57.53093719482422, mask), a, low), mask)
    return pto.vsel(pto.vmuls(result, 1.0342640697002396e-25, mask), result, low)
'''
"""c has the last bit of such operands, so adding it rounds nothing. exp(-c) is within 0.0002 ulp of a float and a little above a power
of two, so that the hardware's ulp stays one of the result. Within 1 ulp from exp(-87.33) on; below, the product rounds too: 1.51 ulp."""

LOGARITHM = '''
def vln_subnormal(a, mask):
    """ln of f32 lanes with subnormal operands kept: ln(a * 2**123) - 123 * ln 2 for them."""
    low = pto.vcmps(a, 1.1754943508222875e-38, mask, "lt")
    result = pto.vln(pto.vsel(pto.vmuls(a, 1.0633823966279327e37, mask), a, low), mask)
    return pto.vsel(pto.vadds(result, -85.2571029663086, mask), result, low)
'''
"""Results are near -95: the hardware's ulp of the logarithm is a quarter of theirs, the constant is within 0.04 of it."""

HELPERS = {
    "vdiv": ("vdiv_exact", DIVIDE),
    "vsqrt": ("vsqrt_exact", SQUARE_ROOT),
    "vexp": ("vexp_subnormal", EXPONENTIAL),
    "vln": ("vln_subnormal", LOGARITHM),
}
"""Name and text of the correction of an operation."""

_PARTS = ("vbr", "vabs", "vbitcast", "vand", "vsub", "vmaxs", "vneg", "vmul", "vmula", "vadd", "vadds", "vmuls", "vmax",
                  "vcmp", "vcmps", "vsel", "vshrs", "vxor", "vor")  # fmt: skip


@op("tl.simd.vdiv", arity=4, regions="simd", merges=2, annotations=(PRECISION,), literals=ZEROING, dtypes=LANE_TYPES,
    emits=("vdiv", *_PARTS))  # fmt: skip
def vdiv(v: Visitor, node: Any, a: Any, b: Any, m: Any, mode: Any) -> Value:
    """Quotient. Of f32 lanes it is correctly rounded unless the hardware's is asked for, by the annotation or by fast math."""
    operands = [v.expr(a), v.expr(b)]
    asked = _precision(v, node, operands[0], EXACT)
    if asked == EXACT or (asked is None and operands[0].dtype.pto == "f32" and not v.fast_math):
        return _corrected(v, node, operands, m)
    return masked(v, node, operands, m)


@op("tl.simd.vexp", "tl.simd.vln", "tl.simd.vsqrt", arity=3, regions="simd", merges=1, annotations=(PRECISION,),
    literals=ZEROING, dtypes=LANE_TYPES, emits=("vexp", "vln", "vsqrt", *_PARTS, "vmins"))  # fmt: skip
def hardware_function(v: Visitor, node: Any, a: Any, m: Any, mode: Any) -> Value:
    """Functions of the hardware, with subnormal values kept where the annotation asks for it (a square root is then correctly rounded)."""
    operand = v.expr(a)
    if _precision(v, node, operand, SUBNORMALS) == SUBNORMALS:
        return _corrected(v, node, [operand], m)
    return masked(v, node, [operand], m)


def _precision(v: Visitor, node: Any, value: Value, other: int) -> int | None:
    """What the annotation asks for: the hardware's precision, or ``other``, which only f32 lanes have."""
    annotation = (node.annotations or {}).get(PRECISION)
    if annotation is None:
        return None
    asked = v.integer(annotation, "the precision")
    name = str(node.op.name).rpartition(".")[2]
    if asked not in (HARDWARE, other):
        v.unsupported(f"precision {asked} of {name}", f"use {HARDWARE} or {other}")
    if asked != HARDWARE and value.dtype.pto != "f32":
        v.unsupported(f"precision {asked} of {name} on {value.type}", "other types than float32 have the hardware's precision")
    return asked


def _corrected(v: Visitor, node: Any, operands: list[Value], m: Any) -> Value:
    """A call of the helper function."""
    name = str(node.op.name).rpartition(".")[2]
    for operand in operands:
        if str(operand.type) != "vreg(64 x f32)":
            v.unsupported(f"{name} of {operand.type}", "bring the operands to float32")
    function, text = HELPERS[name]
    v.helpers[function] = text
    result = v.register_type(node.dtype)
    return v.b.pure(
        function, lambda e: call(function, *e), (*operands, v.mask(m, 32)), result, hint=name.removeprefix("v"), pinned=True, weight=16
    )
