"""Conversions of vector registers."""

from __future__ import annotations

from typing import Any

from ..emit import call, constant, path
from ..registry import op
from ..types import DTYPES, Type
from ..values import Value
from ..visitor import Visitor
from .simd_arith import bitcast
from .simd_mask import full_mask

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("f32", "f16 bf16 i16 i64 f8e4m3 f8e5m2", "rnd sat part"),
    ("f32", "i32", "rnd sat"),
    ("f16", "i8 ui8 f8e4m3 f8e5m2", "rnd sat part"),
    ("f16", "i16", "rnd sat"),
    ("f16", "i32", "rnd part"),
    ("f16", "f32", "part"),
    ("f16", "bf16", "rnd"),
    ("bf16", "i32 f8e4m3 f8e5m2", "rnd sat part"),
    ("bf16", "f16", "sat rnd"),
    ("bf16", "f32", "part"),
    ("bf16", "f4e2m1x2", "rnd part"),
    ("f8e4m3", "f32", "part"),
    ("f8e5m2", "f32", "part"),
    ("f4e2m1x2", "bf16", "part"),
    ("i8", "f16 i16 i32", "part"),
    ("ui8", "f16 ui16 ui32", "part"),
    ("i16", "f16", "rnd"),
    ("i16", "f32 i32 ui32", "part"),
    ("i16", "ui8", "sat part"),
    ("ui16", "ui32", "part"),
    ("ui16", "ui8", "sat part"),
    ("i32", "f32", "rnd"),
    ("i32", "i64", "part"),
    ("i32", "i16 ui16 ui8", "sat part"),
    ("ui32", "i16 ui16 ui8", "sat part"),
    ("i64", "f32", "rnd part"),
    ("i64", "i32", "sat part"),
)
CONVERSIONS: dict[tuple[str, str], tuple[str, ...]] = {
    (source, target): tuple(controls.split()) for source, targets, controls in _ROWS for target in targets.split()
}
"""Control strings of ``tl.simd.vcvt`` by source and target, in TIR's order; a mode string follows."""

_ROUNDING = {f"ROUND_{letter}": letter for letter in "RAFCZOH"}
_SATURATION = {"RS_ENABLE": "SAT", "RS_DISABLE": "NOSAT"}
_PARTS = {"PART_EVEN": "EVEN", "PART_ODD": "ODD", **{f"PART_P{number}": f"P{number}" for number in range(4)}}
_HALVES = ("EVEN", "ODD")
_SOURCES = tuple(dict.fromkeys(source for source, _ in CONVERSIONS))
_TOKENS = {"rnd": _ROUNDING, "sat": _SATURATION, "part": _PARTS}


@op("tl.simd.vcvt", arity=(4, 5, 6), regions="simd", merges=1,
    literals={"controls": (*_ROUNDING, *_SATURATION, *_PARTS, "MODE_ZEROING")}, dtypes=_SOURCES,
    emits=("vcvt", "vor", "vbitcast", "pset_b8", "pset_b16", "pset_b32"))  # fmt: skip
def vcvt(v: Visitor, node: Any, a: Any, m: Any, *controls: Any) -> Value:
    """Numeric conversion. TIR gives a predicate of the narrower type; the hardware reads it at the source's width."""
    value = v.expr(a)
    register = v.register_type(node.dtype)
    pair = (value.dtype.pto, register.dtype.pto)
    wanted = CONVERSIONS.get(pair)
    if wanted is None or value.type.kind != "register":
        legal = ", ".join(target for source, target in CONVERSIONS if source == pair[0])
        v.unsupported(f"vcvt from {pair[0]} to {pair[1]}", f"{pair[0]} converts to {legal or 'nothing'}")
    texts = [str(control.value) for control in controls]
    if len(texts) != len(wanted) + 1 or texts[-1] != "MODE_ZEROING":
        v.unsupported(f"vcvt from {pair[0]} to {pair[1]} with {', '.join(texts)}", f"wanted: {', '.join(wanted)} and MODE_ZEROING")
    keywords = {keyword: _token(v, pair, keyword, text) for keyword, text in zip(wanted, texts, strict=False)}
    mask = v.mask(m, min(value.dtype.bits, 32))
    if pair == ("f16", "bf16"):
        return _through_f32(v, value, register, mask, {part: {"part": part} for part in _HALVES}, rnd=keywords["rnd"], sat="NOSAT")
    if pair[1].startswith("f8") and pair[0] != "f32":
        first = _HALVES.index(keywords.pop("part"))
        return _through_f32(v, value, register, mask, {"EVEN": {"part": f"P{first}"}, "ODD": {"part": f"P{first + 2}"}}, **keywords)
    return convert(v, value, register, mask, **keywords)


def _token(v: Visitor, pair: tuple[str, str], keyword: str, text: str) -> str:
    """PTODSL's word for a control string, if the conversion takes it."""
    legal = _TOKENS[keyword]
    stated = ("f32", pair[1]) if keyword == "rnd" and pair[1].startswith("f8") else pair  # 16-bit floats go through f32
    rule = v.surface.api.conversions.get(_families(v, stated))
    if keyword == "rnd":
        letters = (rule.rounding if rule else "") or "RAFCZ" + ("O" if pair == ("f32", "f16") else "")
        legal = {name: letter for name, letter in legal.items() if letter in letters}
    elif keyword == "part" and rule is not None:
        legal = {name: part for name, part in legal.items() if part in rule.parts}
    if text not in legal:
        v.unsupported(f"{text} as {keyword} of vcvt from {pair[0]} to {pair[1]}", f"use one of {', '.join(legal)}")
    return legal[text]


def _families(v: Visitor, pair: tuple[str, str]) -> tuple[str, str]:
    names = v.surface.api.conversion_dtypes
    return names[pair[0]], names[pair[1]]


def convert(v: Visitor, value: Value, register: Type, mask: Value, **keywords: str) -> Value:
    """``pto.vcvt``."""
    target = f"pto.{register.dtype.pto}"

    def build(e: Any) -> Any:
        return call("pto.vcvt", e[0], path(target), e[1], **{key: constant(text) for key, text in keywords.items()})

    return v.b.pure(("vcvt", *keywords.items()), build, (value, mask), register, hint=register.dtype.pto, pinned=True, weight=40)


def _through_f32(v: Visitor, value: Value, register: Type, mask: Value, parts: dict[str, dict[str, str]], **keywords: str) -> Value:
    """A conversion of 16-bit floats that A5 does not have: the exact f32 value of each half is rounded, and the halves are put together.

    ``parts`` says where the half of a part of the source goes.
    """
    wide = Type("register", DTYPES["float32"], 64)
    bits = Type("register", DTYPES[f"uint{register.dtype.bits}"], register.lanes)
    halves = []
    for half, place in parts.items():
        exact = convert(v, value, wide, mask, part=half)
        halves.append(bitcast(v, convert(v, exact, register, full_mask(v, 32), **keywords, **place), bits))
    operands = (*halves, full_mask(v, bits.dtype.bits))
    joined = v.b.pure("vor", lambda e: call("pto.vor", *e), operands, bits, hint="bits", pinned=True, weight=10)
    return bitcast(v, joined, register)
