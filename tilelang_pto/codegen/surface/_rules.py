"""Rules of single calls that a signature does not express."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from tilelang_pto.codegen.surface._handles import while_handle
from tilelang_pto.codegen.surface._values import FOR, RUNTIME, STATIC, TUPLE, TYPE, Value

if TYPE_CHECKING:
    from tilelang_pto.codegen.surface._expressions import ExpressionChecker

__all__ = ["SPECIAL", "VREG_BITS", "Bound"]

Bound = dict[str, tuple[ast.expr, Value]]
Special = Callable[["ExpressionChecker", ast.Call, Bound], "Value | None"]

VREG_BITS = 2048
SIMT_LIMIT = 2048
_FULL_L0 = ("m_start", "k_start", "m_step", "k_step", "src_stride", "dst_stride")
_FULL_L0_MX = ("x_start", "y_start", "x_step", "y_step", "src_stride", "dst_stride")
_SHORT_L0 = ("m", "k", "n", "start_row", "start_col")


def _get(given: Bound, name: str) -> Value | None:
    found = given.get(name)
    return found[1] if found else None


def _token(value: Value | None) -> str:
    return (value.text or "").rpartition(".")[2] if value is not None else ""


def _present(given: Bound, name: str) -> bool:
    value = _get(given, name)
    return value is not None and value.sort != "none"


def _ptr(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    elem, space = _get(given, "elem"), _get(given, "space")
    return Value(TYPE, "ptr", dtype=elem.dtype if elem else "", space=_token(space).lower() if space else "ub")


def _gm_ptr(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    elem = _get(given, "elem")
    return Value(TYPE, "ptr", dtype=elem.dtype if elem else "", space="gm")


def _vreg_type(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    lanes, elem = _get(given, "lanes"), _get(given, "elem")
    dtype = elem.dtype if elem else ""
    width = out.api.dtypes.get(dtype, 0)
    if lanes is not None and lanes.low is not None and lanes.low == lanes.high and width and lanes.low * width != VREG_BITS:
        advice = f"{VREG_BITS // width} lanes of pto.{dtype}"
        out.report(node, "pto.vreg_type", f"{lanes.low} lanes of {dtype} are {lanes.low * width} bits, a register has {VREG_BITS}", advice)
    return Value(TYPE, "vreg", dtype=dtype)


def _vec_type(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    return Value(TYPE, "vec")


def _vec(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    init, size = _get(given, "init"), _get(given, "size")
    if init is None or init.sort == "none":
        return Value(TYPE, "vec")
    if init.kind == TUPLE and init.items is not None and size is not None and size.low is not None and len(init.items) != size.low:
        out.report(node, "pto.Vec", f"init has {len(init.items)} scalars for {size.low} elements")
    return Value(RUNTIME)


def _mask_type(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    token = _token(_get(given, "bits")) or "b32"
    return Value(TYPE, "mask", bits=int(token[1:]) if token[1:].isdigit() else 0)


def _struct_type(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    return Value(TYPE, "struct")


def _const(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    dtype, value = _get(given, "dtype"), _get(given, "value")
    name = dtype.dtype if dtype is not None else "index"
    if value is not None and value.sort == "float" and name and not name.startswith(("f", "bf", "hif")):
        out.report(node, "pto.const", f"a float constant of type {name}", "give dtype=pto.f32, pto.f16 or pto.bf16")
    return Value(RUNTIME, dtype=name)


def _for(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    step = _get(given, "step")
    if step is not None and step.high is not None and step.high < 1:
        out.report(node, "pto.for_", "step must be positive")
    for name in ("start", "stop", "step"):
        bound = _get(given, name)
        if bound is not None and bound.sort == "float":
            out.report(node, "pto.for_", f"{name} is a float")
    if _present(given, "unroll") and _present(given, "unroll_factor"):
        out.report(node, "pto.for_", "unroll and unroll_factor exclude each other")
    return Value(FOR)


def _while(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    return while_handle(out, node)


def _if(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    condition = _get(given, "cond")
    if condition is not None and condition.kind == STATIC and condition.sort != "bool":
        out.report(node, "pto.if_", "the condition is a Python value, not a runtime value")
    elif condition is not None and condition.kind == RUNTIME and condition.sort in ("vreg", "mask"):
        out.report(node, "pto.if_", "the condition is no scalar")
    return None


def _simt(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    if any(keyword.arg == "max_threads" for keyword in node.keywords):
        out.report(node, "pto.simt", "max_threads belongs to the decorated form")
    if any(isinstance(arg, ast.Starred) for arg in node.args):
        return None
    if len(node.args) not in (0, 3):
        out.report(node, "pto.simt", f"takes exactly three dims or none, {len(node.args)} given")
        return None
    total = 1
    for arg in node.args:
        value = out.again(arg)
        if value.sort == "param":
            return None
        if value.kind != STATIC or value.text is not None or value.sort in ("bool", "float", "none"):
            out.report(arg, "pto.simt", "dims must be Python integers")
            return None
        if value.low is None or value.low != value.high:
            return None
        if value.low < 1:
            out.report(arg, "pto.simt", "dims must be positive")
        total *= value.low
    if total > SIMT_LIMIT:
        out.report(node, "pto.simt", f"{total} work-items, the limit is {SIMT_LIMIT}")
    return None


def _vcvt(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    source, target, mask = _get(given, "src"), _get(given, "to_dtype"), _get(given, "mask")
    canonical = out.api.conversion_dtypes
    src = canonical.get(source.dtype, "") if source else ""
    dst = canonical.get(target.dtype, "") if target else ""
    if source is not None and mask is not None and mask.bits:
        width = out.api.dtypes.get(source.dtype, 0)
        if width in (8, 16, 32) and width != mask.bits:
            out.report(node, "pto.vcvt", f"mask is b{mask.bits}, the source elements are {source.dtype}", f"use a b{width} mask")
    if not dst:
        return None
    if any(_sort(given, name) == "param" for name in ("rnd", "sat", "part")):
        return None
    present = frozenset(name for name in ("rnd", "sat", "part") if _present(given, name))
    if not src:
        if not any(pair[1] == dst and rule.needs == present for pair, rule in out.api.conversions.items()):
            out.report(node, "pto.vcvt", f"no conversion to {dst} takes {_names(present)}")
        return None
    rule = out.api.conversions.get((src, dst))
    if rule is None:
        legal = " ".join(sorted({pair[1] for pair in out.api.conversions if pair[0] == src}))
        out.report(node, "pto.vcvt", f"there is no conversion {src} -> {dst}", f"from {src}: {legal}" if legal else "")
        return None
    for name in sorted(rule.needs - present):
        out.report(node, "pto.vcvt", f"{src} -> {dst} needs {name}")
    for name in sorted(present - rule.needs):
        out.report(node, "pto.vcvt", f"{src} -> {dst} does not take {name}")
    part, rounding = _token(_get(given, "part")), _token(_get(given, "rnd"))
    if part and "part" in rule.needs and part not in rule.parts:
        out.report(node, "pto.vcvt", f"{src} -> {dst} takes part {' '.join(rule.parts)}, not {part}")
    if rounding and rule.rounding and rounding not in rule.rounding:
        out.report(node, "pto.vcvt", f"{src} -> {dst} takes rnd {' '.join(rule.rounding)}, not {rounding}")
    return None


def _sort(given: Bound, name: str) -> str:
    value = _get(given, name)
    return value.sort if value is not None else ""


def _names(present: frozenset[str]) -> str:
    return " and ".join(sorted(present)) if present else "no attribute"


def _suffix(out: ExpressionChecker, node: ast.Call, call: str, given: Bound, dtype: str, stems: tuple[str, ...]) -> None:
    dist = _token(_get(given, "dist"))
    stem, _, suffix = dist.rpartition("_B")
    width = out.api.dtypes.get(dtype, 0)
    if stem in stems and suffix.isdigit() and width and width <= 32 and int(suffix) != width:
        out.report(node, call, f"dist {dist} does not fit {dtype} elements", f"use {stem}_B{width}")


def _vsts(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    value = _get(given, "val")
    if value is None:
        return None
    if value.kind == RUNTIME and value.sort == "mask":
        out.report(node, "pto.vsts", "stores a vector register, val is a mask", "use pto.psts")
    _suffix(out, node, "pto.vsts", given, value.dtype if value.sort == "vreg" else "", ("NORM", "1PT"))
    mask, dist = _get(given, "mask"), _token(_get(given, "dist"))
    width = out.api.dtypes.get(value.dtype, 0) if value.sort == "vreg" else 0
    if mask is not None and mask.bits and width in (8, 16, 32) and mask.bits != width and (not dist or dist.startswith("NORM")):
        out.report(node, "pto.vsts", f"mask is b{mask.bits}, the elements are {value.dtype}", f"use a b{width} mask")
    return None


def _vlds(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    register = _get(given, "result_vreg_type")
    if register is not None and register.kind == TYPE:
        _suffix(out, node, "pto.vlds", given, register.dtype, ("BRC",))
    return None


def _vldsx2(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    register = _get(given, "result_vreg_type")
    one = Value(RUNTIME, "vreg", dtype=register.dtype if register is not None and register.kind == TYPE else "")
    return Value(TUPLE, items=(one, one))


def _like_first(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    first = _get(given, "lhs")
    one = Value(RUNTIME, "vreg", dtype=first.dtype if first is not None and first.sort == "vreg" else "")
    return Value(TUPLE, items=(one, one))


def _with_carry(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    first = _get(given, "lhs")
    one = Value(RUNTIME, "vreg", dtype=first.dtype if first is not None and first.sort == "vreg" else "")
    return Value(TUPLE, items=(one, Value(RUNTIME, "mask", bits=32)))


def _counted_mask(bits: int) -> Special:
    def special(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
        return Value(TUPLE, items=(Value(RUNTIME, "mask", bits=bits), Value(RUNTIME, dtype="i32")))

    return special


def _make_mask(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    dtype, value = _get(given, "dtype"), _get(given, "value")
    width = out.api.dtypes.get(dtype.dtype, 0) if dtype is not None else 0
    mask = Value(RUNTIME, "mask", bits=width if width in (8, 16, 32) else 0)
    if value is not None and value.text is not None:
        return mask
    if value is not None and value.sort == "param":
        return None
    return Value(TUPLE, items=(mask, Value(RUNTIME)))


def _pbitcast(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    target = _get(given, "to_type")
    return Value(RUNTIME, "mask", bits=target.bits if target is not None and target.kind == TYPE else 0)


def _any_mask(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    target = _get(given, "to_type")
    return Value(RUNTIME, "mask", bits=target.bits if target is not None else 0)


def _any_vreg(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    return Value(RUNTIME, "vreg")


def _l0_load(out: ExpressionChecker, node: ast.Call, given: Bound) -> Value | None:
    mx = "mx" in (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    full = _FULL_L0_MX if mx else _FULL_L0
    count = sum(_present(given, name) for name in full)
    short = [name for name in _SHORT_L0 if _present(given, name)]
    call = f"pto.{node.func.attr}" if isinstance(node.func, ast.Attribute) else ""
    if count not in (0, len(full)):
        missing = ", ".join(name for name in full if not _present(given, name))
        out.report(node, call, f"the full form needs all of its six numbers, missing {missing}")
    elif count and short:
        out.report(node, call, f"the full form excludes {', '.join(short)}")
    elif not count and len([name for name in short if name in ("m", "k", "n")]) < 2:
        out.report(node, call, "needs both extents, or the six numbers of the full form")
    return None


SPECIAL: dict[str, Special] = {
    "pto.ptr": _ptr,
    "pto.gm_ptr": _gm_ptr,
    "pto.vreg_type": _vreg_type,
    "pto.vec_type": _vec_type,
    "pto.Vec": _vec,
    "pto.mask_type": _mask_type,
    "pto.struct_type": _struct_type,
    "pto.const": _const,
    "pto.for_": _for,
    "pto.while_": _while,
    "pto.if_": _if,
    "pto.simt": _simt,
    "pto.vcvt": _vcvt,
    "pto.vsts": _vsts,
    "pto.vlds": _vlds,
    "pto.vldsx2": _vldsx2,
    "pto.vintlv": _like_first,
    "pto.vdintlv": _like_first,
    "pto.vmull": _like_first,
    "pto.vaddc": _with_carry,
    "pto.vaddcs": _with_carry,
    "pto.vsubc": _with_carry,
    "pto.vsubcs": _with_carry,
    "pto.plt_b8": _counted_mask(8),
    "pto.plt_b16": _counted_mask(16),
    "pto.plt_b32": _counted_mask(32),
    "pto.make_mask": _make_mask,
    "pto.pbitcast": _pbitcast,
    "pto.ppack": _any_mask,
    "pto.punpack": _any_mask,
    "pto.vdup": _any_vreg,
    "pto.vbr": _any_vreg,
    "pto.vci": _any_vreg,
    "pto.vcadd": _any_vreg,
    "pto.vpack": _any_vreg,
    "pto.vunpack": _any_vreg,
    "pto.vsunpack": _any_vreg,
    "pto.vzunpack": _any_vreg,
    "pto.mte_l1_l0a": _l0_load,
    "pto.mte_l1_l0b": _l0_load,
    "pto.mte_l1_l0a_mx": _l0_load,
    "pto.mte_l1_l0b_mx": _l0_load,
}
