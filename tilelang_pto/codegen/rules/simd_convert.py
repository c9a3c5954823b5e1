"""Conversions of vector registers."""

from __future__ import annotations

from typing import Any

from ..emit import call, constant, path
from ..registry import op
from ..values import Value
from ..visitor import Visitor

CONVERSIONS: dict[tuple[str, str], tuple[str, ...]] = {
    ("f32", "bf16"): ("rnd", "sat", "part"),
    ("f32", "f16"): ("rnd", "sat", "part"),
    ("f32", "i16"): ("rnd", "sat", "part"),
    ("f32", "i32"): ("rnd", "sat"),
    ("f16", "i16"): ("rnd", "sat"),
    ("f16", "i32"): ("rnd", "part"),
    ("bf16", "f32"): ("part",),
    ("f16", "f32"): ("part",),
    ("i16", "f32"): ("part",),
    ("i32", "f32"): ("rnd",),
    ("i16", "f16"): ("rnd",),
}
"""Control strings of ``tl.simd.vcvt`` by source and target, in TIR's order; a mode string follows."""

_ROUNDING = {f"ROUND_{letter}": letter for letter in "RAFCZO"}
_SATURATION = {"RS_ENABLE": "SAT", "RS_DISABLE": "NOSAT"}
_PARTS = {"PART_EVEN": "EVEN", "PART_ODD": "ODD"}
_TOKENS = {"rnd": _ROUNDING, "sat": _SATURATION, "part": _PARTS}


@op("tl.simd.vcvt", arity=(4, 5, 6), regions="simd", emits="vcvt")
def vcvt(v: Visitor, node: Any, a: Any, m: Any, *controls: Any) -> Value:
    """Numeric conversion. TIR gives a predicate of the narrower type; the hardware reads it at the source's width."""
    value = v.expr(a)
    register = v.register_type(node.dtype)
    pair = (value.dtype.pto, register.dtype.pto)
    wanted = CONVERSIONS.get(pair)
    if wanted is None:
        legal = ", ".join(f"{source} to {target}" for source, target in CONVERSIONS)
        v.unsupported(f"vcvt from {pair[0]} to {pair[1]}", f"this version converts {legal}")
    texts = [v.string(control, "a control string of vcvt") for control in controls]
    if len(texts) != len(wanted) + 1 or texts[-1] != "MODE_ZEROING":
        v.unsupported(f"vcvt from {pair[0]} to {pair[1]} with {', '.join(texts)}", f"wanted: {', '.join(wanted)} and MODE_ZEROING")
    keywords = {}
    for keyword, text in zip(wanted, texts, strict=False):
        token = _TOKENS[keyword].get(text)
        if token is None:
            v.unsupported(f"{text} as {keyword} of vcvt", f"use one of {', '.join(_TOKENS[keyword])}")
        keywords[keyword] = token
    target = f"pto.{register.dtype.pto}"
    mask = v.mask(m, value.dtype.bits)

    def build(e: Any) -> Any:
        return call("pto.vcvt", e[0], path(target), e[1], **{key: constant(text) for key, text in keywords.items()})

    return v.b.pure(("vcvt", *keywords.items()), build, (value, mask), register, hint=register.dtype.pto, pinned=True, weight=40)
