"""Vector conversions, packing, reinterpretation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.kinds import element, vreg
from tilelang_pto.sim.standin.registry import VECSCOPE, entry
from tilelang_pto.sim.standin.simd_memory import as_mask, register
from tilelang_pto.sim.standin.types import PLAIN, DType

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

__all__ = ["VCVT_PAIRS", "vcvt"]

_HALF = ("EVEN", "ODD")
_QUARTER = ("P0", "P1", "P2", "P3")
ROUNDINGS = ("R", "A", "F", "C", "Z", "O", "H")
SATURATIONS = {"SAT": "SAT", "NOSAT": "NOSAT", "RS_ENABLE": "SAT", "RS_DISABLE": "NOSAT"}


def _pairs() -> dict[tuple[str, str], tuple[str, str]]:
    """Source and target family to the attributes the pair takes and its rounding letters."""
    table: dict[tuple[str, str], tuple[str, str]] = {}
    rows = (
        ("rsp", "f32", "f16 bf16 s16 s64", "RAFCZOH"),
        ("rs", "f32", "s32", "RAFCZOH"),
        ("rsp", "f32", "f8e4m3 f8e5m2", "RAZH"),
        ("rsp", "f32", "hif8", "AH"),
        ("rsp", "f16", "f8e4m3 f8e5m2", "RAFZC"),
        ("rsp", "f16", "hif8", "AH"),
        ("p", "f16", "f32", ""),
        ("rp", "f16", "s32", "RAFCZOH"),
        ("rs", "f16", "s16", "RAFCZOH"),
        ("rsp", "f16", "s8 u8", "RAFCZOH"),
        ("rsp", "bf16", "f8e4m3 f8e5m2", "RAFZC"),
        ("rp", "bf16", "f4e1m2x2 f4e2m1x2", "RAFZC"),
        ("rs", "bf16", "f16", "RAFCZOH"),
        ("p", "bf16", "f32", ""),
        ("rsp", "bf16", "s32", "RAFCZOH"),
        ("p", "u8", "f16 u16 u32", ""),
        ("p", "s8", "f16 s16 s32", ""),
        ("sp", "u16", "u8", ""),
        ("p", "u16", "u32", ""),
        ("r", "s16", "f16", "RAFCZOH"),
        ("p", "s16", "f32 u32 s32", ""),
        ("sp", "s16", "u8", ""),
        ("sp", "u32", "u8 u16 s16", ""),
        ("r", "s32", "f32", "RAFCZOH"),
        ("sp", "s32", "u8 u16 s16", ""),
        ("p", "s32", "s64", ""),
        ("rp", "s64", "f32", "RAFCZOH"),
        ("sp", "s64", "s32", ""),
        ("p", "f8e4m3", "f32", ""),
        ("p", "f8e5m2", "f32", ""),
        ("p", "hif8", "f32", ""),
        ("p", "f4e1m2x2", "bf16", ""),
        ("p", "f4e2m1x2", "bf16", ""),
    )
    for attributes, source, targets, letters in rows:
        for target in targets.split():
            table[source, target] = (attributes, letters)
    return table


#: Legal conversions: ``(source, target) -> (attributes of "r", "s", "p", rounding letters)``; ``s8`` is a signed or signless i8.
VCVT_PAIRS = _pairs()


def _family(dtype: DType) -> str:
    if dtype.is_integer:
        return f"{'u' if dtype.unsigned else 's'}{dtype.bits}"
    return dtype.name


def _parts(source: DType, target: DType) -> tuple[str, ...]:
    """Part tokens of a pair: halves for a factor of two (and to or from 64 bit), quarters for a factor of four and FP4."""
    if "f4" in (source.name[:2], target.name[:2]):
        return _QUARTER
    return _QUARTER if max(source.bits, target.bits) == 4 * min(source.bits, target.bits) else _HALF


@entry("vcvt", places=VECSCOPE)
def vcvt(rec: Recorder, src: Any, to_dtype: Any, mask: Any, *, rnd: Any = None, sat: Any = None, part: Any = None) -> Any:
    """``pto.vcvt(v, dtype, mask, rnd=, sat=, part=)``; every pair of types requires or forbids each attribute."""
    source = register(rec, "the operand of vcvt", src)
    target = element(rec, "the type of vcvt", to_dtype)
    origin = source.type.element
    pair = VCVT_PAIRS.get((_family(origin), _family(target)))
    if pair is None:
        legal = sorted(to for (frm, to) in VCVT_PAIRS if frm == _family(origin))
        rec.refuse(f"vcvt from {origin.name} to {target.name} does not exist", f"from {origin.name} to: {', '.join(legal) or 'nothing'}")
    takes, letters = pair
    attributes: dict[str, int | str | float] = {}
    for key, name, value in (("r", "rnd", rnd), ("s", "sat", sat), ("p", "part", part)):
        if key in takes and value is None:
            rec.refuse(f"vcvt from {origin.name} to {target.name} needs {name}", _legal(name, letters, origin, target))
        if key not in takes and value is not None:
            rec.refuse(f"vcvt from {origin.name} to {target.name} takes no {name}", f"leave {name} out")
    if rnd is not None:
        attributes["rnd"] = scalar.token(rec, "rnd", rnd, tuple(letters))
    if sat is not None:
        attributes["sat"] = SATURATIONS[scalar.token(rec, "sat", sat, tuple(SATURATIONS))]
    if part is not None:
        attributes["part"] = scalar.token(rec, "part", part, _parts(origin, target))
    return rec.emit1("vcvt", (source, as_mask(rec, "vcvt", mask, origin)), vreg(rec, target), attributes)


def _legal(name: str, letters: str, origin: DType, target: DType) -> str:
    words = {"rnd": tuple(letters), "sat": ("SAT", "NOSAT"), "part": _parts(origin, target)}[name]
    return f"{name}= one of {', '.join(words)}"


@entry("vtrc", places=VECSCOPE)
def vtrc(rec: Recorder, inp: Any, mask: Any, *, rnd: Any = "Z") -> Any:
    """``pto.vtrc(v, mask, rnd=)``: round to an integral value."""
    a = register(rec, "the operand of vtrc", inp)
    kind = a.type.element
    if not kind.is_float:
        rec.refuse(f"vtrc of {kind.name} elements", "f16, bf16 or f32")
    return rec.emit1(
        "vtrc", (a, as_mask(rec, "vtrc", mask, kind)), a.type, {"rnd": scalar.token(rec, "rnd", rnd, ("R", "A", "F", "C", "Z"))}
    )


@entry("vbitcast", places=VECSCOPE)
def vbitcast(rec: Recorder, vector_value: Any, to_dtype: Any) -> Any:
    """``pto.vbitcast(v, dtype)``: the same 256 bytes."""
    a = register(rec, "the operand of vbitcast", vector_value)
    kind = vreg(rec, element(rec, "the type of vbitcast", to_dtype))
    return a if kind == a.type else rec.emit1("vbitcast", (a,), kind)


@entry("vpack", places=VECSCOPE)
def vpack(rec: Recorder, src: Any, part: Any) -> Any:
    """``pto.vpack(v, part)``: the low half of every lane, into one half of the result."""
    a = register(rec, "the operand of vpack", src)
    kind = a.type.element
    if not kind.is_integer or kind.bits not in (16, 32):
        rec.refuse(f"vpack of {kind.name} elements", "16 or 32 bit integers")
    return rec.emit1("vpack", (a,), vreg(rec, PLAIN[f"ui{kind.bits // 2}"]), {"part": scalar.token(rec, "part", part, ("LOWER", "HIGHER"))})


def _register_unpack() -> None:
    for name in ("vunpack", "vsunpack", "vzunpack"):

        def unpack(rec: Recorder, src: Any, part: Any, _opcode: str = name) -> Any:
            a = register(rec, f"the operand of {_opcode}", src)
            kind = a.type.element
            if not kind.is_integer or kind.bits not in (8, 16):
                rec.refuse(f"{_opcode} of {kind.name} elements", "8 or 16 bit integers")
            signed = _opcode == "vsunpack" or (_opcode == "vunpack" and not kind.unsigned)
            opcode = "vsunpack" if signed else "vzunpack"
            result = vreg(rec, PLAIN[f"{'i' if signed else 'ui'}{kind.bits * 2}"])
            return rec.emit1(opcode, (a,), result, {"part": scalar.token(rec, "part", part, ("LOWER", "HIGHER"))})

        entry(name, aug=None, opcodes=("vsunpack", "vzunpack") if name == "vunpack" else (name,), places=VECSCOPE)(unpack)


_register_unpack()
