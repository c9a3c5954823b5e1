"""Masks: patterns, counts, logic, layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar as scalars
from tilelang_pto.sim.standin.kinds import element
from tilelang_pto.sim.standin.registry import VECSCOPE, entry
from tilelang_pto.sim.standin.simd_memory import as_mask
from tilelang_pto.sim.standin.types import MASKS, PLAIN, MaskType, mask_for
from tilelang_pto.sim.standin.values import describe

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

I32 = PLAIN["i32"]

PATTERNS = frozenset({"ALL", "ALLF", "H", "Q", "M3", "M4", *(f"VL{n}" for n in range(1, 129))})


def _pattern(rec: Recorder, value: Any) -> str:
    if isinstance(value, str):
        word = value[4:] if value.startswith("PAT_") else value
        if word in PATTERNS:
            return f"PAT_{word}"
    rec.refuse(f"pattern {value!r} is not legal", "PAT_ALL, PAT_ALLF, PAT_H, PAT_Q, PAT_M3, PAT_M4, or PAT_VL1 to PAT_VL128")


def _pset(rec: Recorder, opcode: str, pattern: Any, kind: MaskType) -> Any:
    return rec.emit1(opcode, (), kind, {"pattern": _pattern(rec, pattern)})


def _plt(rec: Recorder, count: Any, kind: MaskType) -> tuple[Any, Any]:
    active, rest = rec.emit("plt", (scalars.convert_integral(rec, "the count of plt", count, I32),), (kind, I32))
    return active, rest


def _register() -> None:
    for bits in (8, 16, 32):
        for opcode in ("pset", "pge"):

            def static(rec: Recorder, pattern: Any, _opcode: str = opcode, _bits: int = bits) -> Any:
                return _pset(rec, _opcode, pattern, MASKS[_bits])

            entry(f"{opcode}_b{bits}", opcodes=(opcode,), places=VECSCOPE)(static)

        def counted(rec: Recorder, scalar: Any, _bits: int = bits) -> Any:
            return _plt(rec, scalar, MASKS[_bits])

        entry(f"plt_b{bits}", opcodes=("plt",), places=VECSCOPE)(counted)
        for opcode in ("pintlv", "pdintlv"):

            def pair(rec: Recorder, lhs: Any, rhs: Any, _opcode: str = opcode, _bits: int = bits) -> Any:
                kind = MASKS[_bits]
                return tuple(
                    rec.emit(_opcode, (as_mask(rec, _opcode, lhs, kind=kind), as_mask(rec, _opcode, rhs, kind=kind)), (kind, kind))
                )

            entry(f"{opcode}_b{bits}", opcodes=(opcode,), places=VECSCOPE)(pair)
    for opcode in ("pand", "por", "pxor"):

        def logic(rec: Recorder, src0: Any, src1: Any, mask: Any, _opcode: str = opcode) -> Any:
            return _three(rec, _opcode, src0, src1, mask)

        entry(opcode, places=VECSCOPE)(logic)


def _three(rec: Recorder, opcode: str, a: Any, b: Any, c: Any) -> Any:
    first = as_mask(rec, opcode, a)
    return rec.emit1(opcode, (first, as_mask(rec, opcode, b, kind=first.type), as_mask(rec, opcode, c, kind=first.type)), first.type)


_register()


@entry("psel", places=VECSCOPE)
def psel(rec: Recorder, src0: Any, src1: Any, sel: Any) -> Any:
    """``pto.psel(a, b, selector)``."""
    return _three(rec, "psel", src0, src1, sel)


@entry("pnot", places=VECSCOPE)
def pnot(rec: Recorder, src: Any, mask: Any) -> Any:
    """``pto.pnot(a, gate)``."""
    first = as_mask(rec, "pnot", src)
    return rec.emit1("pnot", (first, as_mask(rec, "pnot", mask, kind=first.type)), first.type)


@entry("make_mask", opcodes=("pset", "plt"), places=VECSCOPE)
def make_mask(rec: Recorder, dtype: Any, value: Any) -> Any:
    """``pto.make_mask(dtype, pattern)`` or ``mask, rest = pto.make_mask(dtype, count)``."""
    kind = mask_for(element(rec, "dtype", dtype))
    if isinstance(value, str):
        return _pset(rec, "pset", value, kind)
    count = scalars.integral(rec, "the count of make_mask", value, I32)
    active, rest = _plt(rec, count, kind)
    return active, scalars.cast_to(rec, rest, count.dtype)


def _mask_type(rec: Recorder, value: Any) -> MaskType:
    if not isinstance(value, MaskType):
        rec.refuse(f"the mask type is {describe(value)}", 'pto.mask_type("b16") or pto.mask_b16')
    return value


@entry("pbitcast", places=VECSCOPE)
def pbitcast(rec: Recorder, mask_value: Any, to_type: Any) -> Any:
    """``pto.pbitcast(mask, mask_type)``: the same 256 bits at another granularity."""
    source, kind = as_mask(rec, "pbitcast", mask_value), _mask_type(rec, to_type)
    return source if source.type == kind else rec.emit1("pbitcast", (source,), kind)


def _repack(rec: Recorder, opcode: str, value: Any, part: Any, to_type: Any, factor: float) -> Any:
    source = as_mask(rec, opcode, value)
    word = scalars.token(rec, "part", part, ("LOWER", "HIGHER"))
    if to_type is not None:
        kind = _mask_type(rec, to_type)
    else:
        kind = MASKS.get(int(source.type.bits * factor), source.type)
    return rec.emit1(opcode, (source,), kind, {"part": word})


@entry("ppack", places=VECSCOPE)
def ppack(rec: Recorder, mask_value: Any, part: Any, to_type: Any = None) -> Any:
    """``pto.ppack(mask, part)``: every second bit into one half."""
    return _repack(rec, "ppack", mask_value, part, to_type, 0.5)


@entry("punpack", places=VECSCOPE)
def punpack(rec: Recorder, mask_value: Any, part: Any, to_type: Any = None) -> Any:
    """``pto.punpack(mask, part)``: one half spread to every second bit."""
    return _repack(rec, "punpack", mask_value, part, to_type, 2)
