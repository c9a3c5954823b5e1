"""Vector arithmetic, comparison, reduction, rearrangement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar as scalars
from tilelang_pto.sim.standin.kinds import vreg
from tilelang_pto.sim.standin.registry import VECSCOPE, entry
from tilelang_pto.sim.standin.simd_memory import as_mask, register
from tilelang_pto.sim.standin.types import MASKS, PLAIN, DType, VRegType, mask_for
from tilelang_pto.sim.standin.values import SurfaceScalar, VectorRegister, describe

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

I16, I32, F32 = PLAIN["i16"], PLAIN["i32"], PLAIN["f32"]


def _set(*words: str) -> frozenset[str]:
    """Element types: ``i8`` stands for i8, si8 and ui8; ``s8`` for i8 and si8."""
    out: set[str] = set()
    for word in words:
        if word[0] == "i":
            out |= {word, f"s{word}", f"u{word}"}
        elif word[0] == "s":
            out |= {f"i{word[1:]}", f"si{word[1:]}"}
        else:
            out.add(word)
    return frozenset(out)


_FLOATS = ("f16", "bf16", "f32")
_ADD = _set("i8", "i16", "i32", "i64", *_FLOATS)
_MUL = _set("i16", "i32", *_FLOATS)
_DIV = _set("s16", "s32", "f16", "f32")
_MAX = _set("i8", "i16", "i32", *_FLOATS)
_INT = _set("i8", "i16", "i32", "i64")
_SHIFT = _set("i8", "i16", "i32")
_ABS = _set("s8", "s16", "s32", "f16", "f32")
_FLOAT2 = _set("f16", "f32")
_FLOAT3 = _set(*_FLOATS)
_RELU = _set("s32", "f16", "f32")
_REDUCE = _set("i16", "i32", "f16", "f32")
_WIDE = _set("i32")


def check(rec: Recorder, name: str, value: VectorRegister, legal: frozenset[str]) -> DType:
    """The element type of ``value``, which has to be one of ``legal``."""
    element = value.type.element
    if element.name not in legal:
        rec.refuse(f"{name} of {element.name} elements", "element types " + ", ".join(sorted(legal)))
    return element


def _same(rec: Recorder, name: str, first: VectorRegister, other: Any) -> VectorRegister:
    second = register(rec, f"an operand of {name}", other)
    if second.type != first.type:
        rec.refuse(f"{name} of {first.type} and {second.type}", "registers of one type")
    return second


def _binary(rec: Recorder, opcode: str, lhs: Any, rhs: Any, mask: Any, legal: frozenset[str], attributes: Any = None) -> Any:
    a = register(rec, f"an operand of {opcode}", lhs)
    element = check(rec, opcode, a, legal)
    b = _same(rec, opcode, a, rhs)
    return rec.emit1(opcode, (a, b, as_mask(rec, opcode, mask, element)), a.type, attributes)


def _with_scalar(rec: Recorder, opcode: str, inp: Any, value: Any, mask: Any, legal: frozenset[str]) -> Any:
    a = register(rec, f"the operand of {opcode}", inp)
    element = check(rec, opcode, a, legal)
    operand = scalars.scalar_of(rec, f"the scalar of {opcode}", value, element)
    return rec.emit1(opcode, (a, operand, as_mask(rec, opcode, mask, element)), a.type)


def _unary(rec: Recorder, opcode: str, inp: Any, mask: Any, legal: frozenset[str]) -> Any:
    a = register(rec, f"the operand of {opcode}", inp)
    element = check(rec, opcode, a, legal)
    return rec.emit1(opcode, (a, as_mask(rec, opcode, mask, element)), a.type)


def _register_elementwise() -> None:
    for name, legal in (("vsub", _ADD), ("vmul", _MUL), ("vmax", _MAX), ("vmin", _MAX), ("vand", _INT), ("vor", _INT), ("vxor", _INT),
                        ("vprelu", _FLOAT2)):  # fmt: skip

        def binary(rec: Recorder, lhs: Any, rhs: Any, mask: Any, _opcode: str = name, _legal: frozenset[str] = legal) -> Any:
            return _binary(rec, _opcode, lhs, rhs, mask, _legal)

        entry(name, places=VECSCOPE)(binary)
    for name in ("vshl", "vshr"):

        def shift(rec: Recorder, lhs: Any, rhs: Any, mask: Any, _opcode: str = name) -> Any:
            a, b = register(rec, f"an operand of {_opcode}", lhs), register(rec, f"the count of {_opcode}", rhs)
            element = check(rec, _opcode, a, _SHIFT)
            if b.type.element.bits != element.bits or not b.type.element.is_integer:
                rec.refuse(f"{_opcode} of {a.type} by {b.type}", "counts of the same width")
            return rec.emit1(_opcode, (a, b, as_mask(rec, _opcode, mask, element)), a.type)

        entry(name, places=VECSCOPE)(shift)
    for name, legal in (("vadds", _ADD), ("vmuls", _MUL), ("vmaxs", _MAX), ("vmins", _MAX), ("vlrelu", _FLOAT2)):
        argument = "alpha" if name == "vlrelu" else "scalar"

        def with_scalar(rec: Recorder, inp: Any, scalar: Any, mask: Any, _opcode: str = name, _legal: frozenset[str] = legal) -> Any:
            return _with_scalar(rec, _opcode, inp, scalar, mask, _legal)

        def with_alpha(rec: Recorder, inp: Any, alpha: Any, mask: Any, _opcode: str = name, _legal: frozenset[str] = legal) -> Any:
            return _with_scalar(rec, _opcode, inp, alpha, mask, _legal)

        entry(name, places=VECSCOPE)(with_alpha if argument == "alpha" else with_scalar)
    for name in ("vshls", "vshrs"):

        def shift_scalar(rec: Recorder, inp: Any, scalar: Any, mask: Any, _opcode: str = name) -> Any:
            return _shift_scalar(rec, _opcode, inp, scalar, mask)

        entry(name, places=VECSCOPE)(shift_scalar)
    for name, vector in (("vands", "vand"), ("vors", "vor"), ("vxors", "vxor")):

        def broadcast(rec: Recorder, inp: Any, scalar: Any, mask: Any, _vector: str = vector) -> Any:
            return _broadcast_binary(rec, _vector, inp, scalar, mask, _INT)

        entry(name, opcodes=("vbr", vector), places=VECSCOPE)(broadcast)
    for name, legal in (
        ("vabs", _ABS),
        ("vneg", _ABS),
        ("vexp", _FLOAT2),
        ("vln", _FLOAT2),
        ("vsqrt", _FLOAT2),
        ("vrelu", _RELU),
        ("vnot", _INT),
    ):

        def unary(rec: Recorder, inp: Any, mask: Any, _opcode: str = name, _legal: frozenset[str] = legal) -> Any:
            return _unary(rec, _opcode, inp, mask, _legal)

        entry(name, places=VECSCOPE)(unary)


def _shift_scalar(rec: Recorder, opcode: str, inp: Any, count: Any, mask: Any) -> Any:
    a = register(rec, f"the operand of {opcode}", inp)
    element = check(rec, opcode, a, _SHIFT)
    amount = scalars.convert_integral(rec, f"the count of {opcode}", count, I16)
    return rec.emit1(opcode, (a, amount, as_mask(rec, opcode, mask, element)), a.type)


def _broadcast_binary(rec: Recorder, opcode: str, inp: Any, value: Any, mask: Any, legal: frozenset[str]) -> Any:
    a = register(rec, f"the operand of {opcode}s", inp)
    element = check(rec, f"{opcode}s", a, legal)
    operand = rec.emit1("vbr", (scalars.scalar_of(rec, f"the scalar of {opcode}s", value, element),), a.type)
    return rec.emit1(opcode, (a, operand, as_mask(rec, opcode, mask, element)), a.type)


_register_elementwise()


@entry("vadd", places=VECSCOPE)
def vadd(rec: Recorder, lhs: Any, rhs: Any, mask: Any, result_type: Any = None) -> Any:
    """``pto.vadd(a, b, mask)``."""
    if result_type is not None and result_type != getattr(lhs, "type", None):
        rec.refuse(f"vadd with result type {describe(result_type)}", "the type of the operands")
    return _binary(rec, "vadd", lhs, rhs, mask, _ADD)


@entry("vsubs", opcodes=("vadds",), places=VECSCOPE)
def vsubs(rec: Recorder, inp: Any, scalar: Any, mask: Any) -> Any:
    """``pto.vsubs(a, s, mask)``, the same as adding the negated scalar."""
    a = register(rec, "the operand of vsubs", inp)
    element = check(rec, "vsubs", a, _ADD)
    if scalars.is_literal(scalar):
        negated: Any = -scalar
    else:
        zero: Any = 0.0 if element.is_float else 0
        negated = scalars.binary(
            rec, "sub", -0.0 if element.is_float else zero, scalars.scalar_of(rec, "the scalar of vsubs", scalar, element)
        )
    return _with_scalar(rec, "vadds", inp, negated, mask, _ADD)


@entry("vdiv", sep=None, places=VECSCOPE)
def vdiv_aug(rec: Recorder, lhs: Any, rhs: Any, mask: Any) -> Any:
    """``pto.vdiv(a, b, mask)``."""
    return _binary(rec, "vdiv", lhs, rhs, mask, _DIV)


@entry("vdiv", aug=None, places=VECSCOPE)
def vdiv_sep(rec: Recorder, lhs: Any, rhs: Any, mask: Any, *, precision: Any = None) -> Any:
    """``pto.vdiv(a, b, mask, precision=)``."""
    if precision not in (None, 0, 1, "Default", "HighPrecision"):
        rec.refuse(f"precision={precision!r} is not legal", "pto.DivPrecision.Default or HighPrecision")
    high = precision in (1, "HighPrecision")
    return _binary(rec, "vdiv", lhs, rhs, mask, _DIV, {"precision": "HighPrecision"} if high else None)


# -- composed operations -----------------------------------------------------------------------------------


@entry("vrec", opcodes=("vbr", "vdiv"), places=VECSCOPE)
def vrec(rec: Recorder, inp: Any, mask: Any) -> Any:
    """``pto.vrec(a, mask)``: 1 / a."""
    a = register(rec, "the operand of vrec", inp)
    element = check(rec, "vrec", a, _FLOAT2)
    return _binary(rec, "vdiv", rec.emit1("vbr", (scalars.constant(rec, 1.0, element),), a.type), a, mask, _DIV)


@entry("vrsqrt", opcodes=("vsqrt", "vbr", "vdiv"), places=VECSCOPE)
def vrsqrt(rec: Recorder, inp: Any, mask: Any) -> Any:
    """``pto.vrsqrt(a, mask)``: 1 / sqrt(a)."""
    return vrec(rec, _unary(rec, "vsqrt", inp, mask, _FLOAT2), mask)


@entry("vaddrelu", opcodes=("vadd", "vrelu"), places=VECSCOPE)
def vaddrelu(rec: Recorder, lhs: Any, rhs: Any, mask: Any) -> Any:
    """``pto.vaddrelu(a, b, mask)``."""
    return _unary(rec, "vrelu", _binary(rec, "vadd", lhs, rhs, mask, _RELU), mask, _RELU)


@entry("vsubrelu", opcodes=("vsub", "vrelu"), places=VECSCOPE)
def vsubrelu(rec: Recorder, lhs: Any, rhs: Any, mask: Any) -> Any:
    """``pto.vsubrelu(a, b, mask)``."""
    return _unary(rec, "vrelu", _binary(rec, "vsub", lhs, rhs, mask, _RELU), mask, _RELU)


# -- fused operations --------------------------------------------------------------------------------------


@entry("vaxpy", places=VECSCOPE)
def vaxpy(rec: Recorder, alpha: Any, x: Any, y: Any, mask: Any) -> Any:
    """``pto.vaxpy(alpha, x, y, mask)``: alpha * x + y."""
    a = register(rec, "x of vaxpy", x)
    element = check(rec, "vaxpy", a, _FLOAT2)
    factor = scalars.scalar_of(rec, "alpha of vaxpy", alpha, element)
    return rec.emit1("vaxpy", (factor, a, _same(rec, "vaxpy", a, y), as_mask(rec, "vaxpy", mask, element)), a.type)


def _register_fused() -> None:
    for name, legal in (("vmula", _MUL), ("vmadd", _FLOAT3)):

        def fused(rec: Recorder, acc: Any, lhs: Any, rhs: Any, mask: Any, _opcode: str = name, _legal: frozenset[str] = legal) -> Any:
            a = register(rec, f"acc of {_opcode}", acc)
            element = check(rec, _opcode, a, _legal)
            return rec.emit1(
                _opcode, (a, _same(rec, _opcode, a, lhs), _same(rec, _opcode, a, rhs), as_mask(rec, _opcode, mask, element)), a.type
            )

        entry(name, places=VECSCOPE)(fused)


_register_fused()


def _vexpdif(rec: Recorder, inp: Any, ref: Any, mask: Any, part: Any) -> Any:
    a = register(rec, "the operand of vexpdif", inp)
    element = check(rec, "vexpdif", a, _FLOAT2)
    attributes: dict[str, int | str | float] = {}
    if part is not None:
        attributes["part"] = scalars.token(rec, "part", part, ("EVEN", "ODD"))
    elif element.bits == 16:
        rec.refuse("vexpdif of f16 elements without part", "EVEN or ODD")
    return rec.emit1("vexpdif", (a, _same(rec, "vexpdif", a, ref), as_mask(rec, "vexpdif", mask, element)), vreg(rec, F32), attributes)


@entry("vexpdif", sep=None, places=VECSCOPE)
def vexpdif_aug(rec: Recorder, inp: Any, ref: Any, mask: Any, part: Any = "ODD") -> Any:
    """``pto.vexpdif(a, b, mask, part)``: exp(a - b) as f32."""
    return _vexpdif(rec, inp, ref, mask, part)


@entry("vexpdif", aug=None, places=VECSCOPE)
def vexpdif_sep(rec: Recorder, inp: Any, ref: Any, mask: Any, part: Any = None) -> Any:
    """``pto.vexpdif(a, b, mask, part)``: exp(a - b) as f32."""
    return _vexpdif(rec, inp, ref, mask, part)


@entry("vmulscvt", places=VECSCOPE)
def vmulscvt(rec: Recorder, src: Any, scalar: Any, mask: Any, *, rnd: Any, part: Any) -> Any:
    """``pto.vmulscvt(v, s, mask, rnd="A", part=)``: f16(v * s)."""
    a = register(rec, "the operand of vmulscvt", src)
    check(rec, "vmulscvt", a, _set("f32"))
    attributes: dict[str, int | str | float] = {
        "rnd": scalars.token(rec, "rnd", rnd, ("A",)),
        "part": scalars.token(rec, "part", part, ("EVEN", "ODD")),
    }
    operand = scalars.scalar_of(rec, "the scalar of vmulscvt", scalar, F32)
    return rec.emit1("vmulscvt", (a, operand, as_mask(rec, "vmulscvt", mask, F32)), vreg(rec, PLAIN["f16"]), attributes)


# -- carries and wide products -----------------------------------------------------------------------------


def _register_carry() -> None:
    for name, sep_only in (("vaddc", False), ("vsubc", True)):

        def carry(rec: Recorder, lhs: Any, rhs: Any, mask: Any, _opcode: str = name) -> Any:
            a = register(rec, f"an operand of {_opcode}", lhs)
            element = check(rec, _opcode, a, _WIDE)
            return tuple(rec.emit(_opcode, (a, _same(rec, _opcode, a, rhs), as_mask(rec, _opcode, mask, element)), (a.type, MASKS[32])))

        entry(name, aug=None if sep_only else "pto", places=VECSCOPE)(carry)

        def carry_in(rec: Recorder, lhs: Any, rhs: Any, carry_in: Any, mask: Any, _opcode: str = f"{name}s") -> Any:
            a = register(rec, f"an operand of {_opcode}", lhs)
            element = check(rec, _opcode, a, _WIDE)
            operands = (a, _same(rec, _opcode, a, rhs), as_mask(rec, _opcode, carry_in, element), as_mask(rec, _opcode, mask, element))
            return tuple(rec.emit(_opcode, operands, (a.type, MASKS[32])))

        entry(f"{name}s", aug=None if sep_only else "pto", places=VECSCOPE)(carry_in)


_register_carry()


@entry("vmull", places=VECSCOPE)
def vmull(rec: Recorder, lhs: Any, rhs: Any, mask: Any) -> Any:
    """``pto.vmull(a, b, mask)``: low and high half of the product."""
    a = register(rec, "an operand of vmull", lhs)
    element = check(rec, "vmull", a, _WIDE)
    return tuple(rec.emit("vmull", (a, _same(rec, "vmull", a, rhs), as_mask(rec, "vmull", mask, element)), (a.type, a.type)))


# -- reductions --------------------------------------------------------------------------------------------


def _register_reductions() -> None:
    for name in ("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd"):

        def reduction(rec: Recorder, v: Any, mask: Any, _opcode: str = name) -> Any:
            a = register(rec, f"the operand of {_opcode}", v)
            element = check(rec, _opcode, a, _FLOAT2 if _opcode == "vcpadd" else _REDUCE)
            kind = a.type
            if _opcode in ("vcadd", "vcgadd") and element.is_integer and element.bits == 16:
                kind = VRegType(64, PLAIN[f"{element.name[:-2]}32"])
            return rec.emit1(_opcode, (a, as_mask(rec, _opcode, mask, element)), kind)

        entry(name, places=VECSCOPE)(reduction)


_register_reductions()


# -- comparison and selection ------------------------------------------------------------------------------


def _mode(rec: Recorder, value: Any) -> str:
    return scalars.token(rec, "cmp_mode", value.lower() if isinstance(value, str) else value, ("eq", "ne", "lt", "le", "gt", "ge"))


@entry("vcmp", places=VECSCOPE)
def vcmp(rec: Recorder, src0: Any, src1: Any, seed_mask: Any, cmp_mode: Any) -> Any:
    """``pto.vcmp(a, b, seed, mode)``."""
    a = register(rec, "an operand of vcmp", src0)
    element = check(rec, "vcmp", a, _MAX)
    operands = (a, _same(rec, "vcmp", a, src1), as_mask(rec, "vcmp", seed_mask, element))
    return rec.emit1("vcmp", operands, mask_for(element), {"mode": _mode(rec, cmp_mode)})


@entry("vcmps", places=VECSCOPE)
def vcmps(rec: Recorder, src: Any, scalar: Any, seed_mask: Any, cmp_mode: Any) -> Any:
    """``pto.vcmps(a, s, seed, mode)``."""
    a = register(rec, "the operand of vcmps", src)
    element = check(rec, "vcmps", a, _MAX)
    operands = (a, scalars.scalar_of(rec, "the scalar of vcmps", scalar, element), as_mask(rec, "vcmps", seed_mask, element))
    return rec.emit1("vcmps", operands, mask_for(element), {"mode": _mode(rec, cmp_mode)})


@entry("vsel", places=VECSCOPE)
def vsel(rec: Recorder, true_v: Any, false_v: Any, mask: Any) -> Any:
    """``pto.vsel(t, f, mask)``."""
    a = register(rec, "an operand of vsel", true_v)
    return rec.emit1("vsel", (a, _same(rec, "vsel", a, false_v), as_mask(rec, "vsel", mask, a.type.element)), a.type)


@entry("vselr", places=VECSCOPE)
def vselr(rec: Recorder, src0: Any, src1: Any) -> Any:
    """``pto.vselr(v, index)``: lane i is ``v[index[i]]``."""
    a, index = register(rec, "the operand of vselr", src0), register(rec, "the index of vselr", src1)
    if not index.type.element.is_integer or index.type.element.bits != a.type.element.bits:
        rec.refuse(f"vselr of {a.type} with {index.type} as index", "integers of the same width")
    return rec.emit1("vselr", (a, index), a.type)


# -- broadcast and rearrangement ---------------------------------------------------------------------------


@entry("vbr", places=VECSCOPE)
def vbr(rec: Recorder, value: Any) -> Any:
    """``pto.vbr(scalar)``: all lanes."""
    operand = scalars.as_scalar(rec, "the value of vbr", value)
    return rec.emit1("vbr", (operand,), vreg(rec, operand.dtype))


@entry("vdup", places=VECSCOPE)
def vdup(rec: Recorder, input_value: Any, mask: Any, position: Any = None) -> Any:
    """``pto.vdup(scalar_or_register, mask, position)``."""
    attributes: dict[str, int | str | float] = {}
    operand: VectorRegister | SurfaceScalar
    if isinstance(input_value, VectorRegister):
        operand, kind = input_value, input_value.type
        attributes["position"] = scalars.token(rec, "position", position or "LOWEST", ("LOWEST", "HIGHEST"))
    else:
        if position is not None:
            rec.refuse("vdup of a scalar with a position", "leave position out")
        operand = scalars.as_scalar(rec, "the value of vdup", input_value)
        kind = vreg(rec, operand.dtype)
    return rec.emit1("vdup", (operand, as_mask(rec, "vdup", mask, kind.element)), kind, attributes)


@entry("vci", places=VECSCOPE)
def vci(rec: Recorder, base: Any, order: Any = None) -> Any:
    """``pto.vci(base, order)``: base, base + 1, ...; a Python int is an i32."""
    start = base if isinstance(base, SurfaceScalar) else scalars.scalar_of(rec, "the base of vci", base, I32)
    if not start.dtype.is_integer or start.dtype.bits not in (8, 16, 32):
        rec.refuse(f"vci of {start.dtype.name}", "an 8, 16 or 32 bit integer")
    word = "ASC" if order is None else scalars.token(rec, "order", order, ("ASC", "DESC"))
    return rec.emit1("vci", (start,), vreg(rec, start.dtype), {"order": word})


def _register_pairs() -> None:
    for name in ("vintlv", "vdintlv"):

        def pair(rec: Recorder, lhs: Any, rhs: Any, _opcode: str = name) -> Any:
            a = register(rec, f"an operand of {_opcode}", lhs)
            return tuple(rec.emit(_opcode, (a, _same(rec, _opcode, a, rhs)), (a.type, a.type)))

        entry(name, places=VECSCOPE)(pair)


_register_pairs()


@entry("vsqz", places=VECSCOPE)
def vsqz(rec: Recorder, inp: Any, mask: Any) -> Any:
    """``pto.vsqz(v, mask)``: active lanes to the front."""
    a = register(rec, "the operand of vsqz", inp)
    return rec.emit1("vsqz", (a, as_mask(rec, "vsqz", mask, a.type.element)), a.type)


@entry("vusqz", aug=None, places=VECSCOPE)
def vusqz(rec: Recorder, inp: Any, mask: Any) -> Any:
    """``pto.vusqz(v, mask)``: running count of active lanes."""
    a = register(rec, "the operand of vusqz", inp)
    element = check(rec, "vusqz", a, _set("s8", "s16", "s32"))
    return rec.emit1("vusqz", (a, as_mask(rec, "vusqz", mask, element)), a.type)


def _register_histograms() -> None:
    for name, aug in (("chistv2", "pto"), ("dhistv2", None)):

        def histogram(rec: Recorder, acc: Any, source: Any, mask: Any, bin_val: Any, _opcode: str = name) -> Any:
            a, b = register(rec, f"acc of {_opcode}", acc), register(rec, f"the source of {_opcode}", source)
            check(rec, _opcode, a, frozenset({"ui16"}))
            check(rec, _opcode, b, frozenset({"ui8"}))
            constant = bin_val.known if isinstance(bin_val, SurfaceScalar) and bin_val.known is not None else bin_val
            attributes: dict[str, int | str | float] = {"bin": scalars.static_int(rec, "bin_val", constant, 0, 1)}
            return rec.emit1(_opcode, (a, b, as_mask(rec, _opcode, mask, b.type.element)), a.type, attributes)

        entry(name, aug=aug, places=VECSCOPE)(histogram)


_register_histograms()
