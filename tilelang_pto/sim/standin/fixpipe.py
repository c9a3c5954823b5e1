"""Stores of results from L0C to GM, UB or L1, with conversion and change of layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.control import require_explicit
from tilelang_pto.sim.standin.memory import pointer
from tilelang_pto.sim.standin.mte import check_static_range, triple
from tilelang_pto.sim.standin.registry import KERNEL, entry
from tilelang_pto.sim.standin.types import PLAIN, DType
from tilelang_pto.sim.standin.values import Pointer, SurfaceScalar, Value, describe

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

UNIT_FLAGS = ("check_only", "check_and_clear")
RELU_MODES = ("no_relu", "normal_relu", "scalar_relu", "vector_relu")
SATURATION = {"on": "on", "sat": "on", "off": "off", "nosat": "off", "preserve_nan": "preserve_nan", "sat_preserve_nan": "preserve_nan"}
SPLITS = {"M": "M", "N": "N", "split_m": "M", "split_n": "N"}
ATOMIC_TYPES = {"f32": "f32", "f16": "f16", "bf16": "bf16", "s32": "i32", "s16": "i16", "s8": "i8"}
ATOMIC_OPERATIONS = ("add", "max", "min")

_BYTES = ("i8", "ui8")
#: Conversions without their ending ``_vec`` or ``_scalar``: what L0C holds, and what may be stored.
QUANT_FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "f32_f16": ("f32", ("f16",)),
    "f32_bf16": ("f32", ("bf16",)),
    "qf322hif8_pre": ("f32", ("hif8",)),
    "qf322hif8_pre_hybrid": ("f32", ("hif8",)),
    "qf322fp8_pre": ("f32", ("f8e4m3",)),
    "qf322f32_pre": ("f32", ("f32",)),
    "qf322f16_pre": ("f32", ("f16",)),
    "qf322bf16_pre": ("f32", ("bf16",)),
    "qf322b8_pre": ("f32", _BYTES),
    "qf162b8_pre": ("f32", _BYTES),
    "deqs32_int": ("i32", ("i32",)),
    "req8": ("i32", _BYTES),
    "deqs16": ("i32", ("i16",)),
    "qf162s16_pre": ("i32", ("i16",)),
    "deqf16": ("i32", ("f16",)),
    "qs322bf16_pre": ("i32", ("bf16",)),
}
#: Conversions to 4-bit integers: no element type of the API stands for their results.
FOUR_BIT_FAMILIES = ("qf162s4_pre", "req4", "qf322s4_pre")
_CASTS = ("f32_f16", "f32_bf16")
QUANT_MODES = (
    "no_convert",
    *_CASTS,
    *(f"{name}_{form}" for name in (*QUANT_FAMILIES, *FOUR_BIT_FAMILIES) if name not in _CASTS for form in ("vec", "scalar")),
)


def _float_payload(rec: Recorder, name: str, value: Any) -> SurfaceScalar:
    if not isinstance(value, SurfaceScalar) or not value.dtype.is_float:
        rec.refuse(f"the payload of {name} is {describe(value)}", "an f16, bf16 or f32 scalar: pto.const(1.0, dtype=pto.f32)")
    return value


def _parameter_pointer(rec: Recorder, name: str, value: Any) -> Pointer:
    base = pointer(rec, f"the payload of {name}", value, "scaling")
    if not base.type.element.is_float:
        rec.refuse(f"the payload of {name} points to {base.type.element.name}", "a scaling pointer to f16, bf16 or f32")
    return base


def _pre_quant(rec: Recorder, src: DType, dst: DType, value: Any, operands: list[Value], attributes: dict[str, int | str | float]) -> None:
    given, wanted = src.record.dtype, dst.record.dtype
    payload, mode = None, "no_convert"
    if value is not None:
        if not isinstance(value, tuple) or len(value) != 2:
            rec.refuse(f"pre_quant is {describe(value)}", "(payload, mode)")
        payload, mode = value[0], scalar.token(rec, "the mode of pre_quant", value[1], QUANT_MODES)
    if mode == "no_convert":
        if given != wanted:
            rec.refuse(
                f"a store of {given} as {wanted} without a conversion", 'pre_quant=(payload, mode), such as (pto.f32(1.0), "f32_bf16")'
            )
        return
    family = mode if mode in _CASTS else mode.rsplit("_", 1)[0]
    if family in FOUR_BIT_FAMILIES:
        rec.refuse(f"pre_quant mode {mode}", "PTODSL has no 4-bit integer pointers to store its results through")
    source, results = QUANT_FAMILIES[family]
    if source != given or wanted not in results:
        rec.refuse(f"pre_quant mode {mode} from {given} to {wanted}", f"{source} in L0C and {' or '.join(results)} behind the destination")
    if dst.name == "si8" and mode.endswith("_scalar"):
        rec.refuse(f"{mode} into si8", "a ui8 destination, or vector parameters: a scalar payload has no bit for signed results")
    attributes["pre_quant"] = mode
    operands.append(_parameter_pointer(rec, mode, payload) if mode.endswith("_vec") else _float_payload(rec, mode, payload))


def _pre_relu(rec: Recorder, dst: DType, value: Any, operands: list[Value], attributes: dict[str, int | str | float]) -> None:
    if value is None:
        return
    if not isinstance(value, tuple) or len(value) != 3:
        rec.refuse(f"pre_relu is {describe(value)}", "(mode, payload or None, clip or None)")
    mode = scalar.token(rec, "the mode of pre_relu", value[0], RELU_MODES)
    attributes["pre_relu"] = mode
    if mode in ("no_relu", "normal_relu"):
        if value[1] is not None:
            rec.refuse(f"{mode} with a payload", f'("{mode}", None, clip)')
    else:
        operands.append(_parameter_pointer(rec, mode, value[1]) if mode == "vector_relu" else _float_payload(rec, mode, value[1]))
    clip = value[2]
    if clip is None:
        return
    kind = clip.dtype if isinstance(clip, SurfaceScalar) else None
    if dst.name == "f16":
        legal, advice = kind is not None and kind.name == "f16", "an f16 scalar"
    elif dst.is_integer and dst.bits in (8, 16) and not (dst.unsigned and dst.bits == 16):
        wide = kind is not None and kind.is_integer and kind.bits in ((16,) if dst.unsigned else (8, 16))
        legal, advice = (
            wide and kind is not None and (kind.unsigned or kind.name == "i16" if dst.unsigned else not kind.unsigned),
            ("a ui16 or i16 scalar" if dst.unsigned else "a signed scalar of 8 or 16 bits"),
        )
    else:
        rec.refuse(f"clip with a destination of {dst.name}", "f16, or integers of 8 or 16 bits")
    if not legal:
        rec.refuse(f"clip is {describe(clip)} for a destination of {dst.name}", advice)
    attributes["clip"] = 1
    operands.append(clip)


def _layout(rec: Recorder, dst: DType, value: Any, loop3: Any, operands: list[Value], attributes: dict[str, int | str | float]) -> None:
    if isinstance(value, tuple):
        if len(value) != 2 or value[0] not in ("nz2dn", "nz2nz"):
            rec.refuse(f"layout is {describe(value)}", '"nz2nd", ("nz2dn", source stride) or ("nz2nz", split)')
        attributes["layout"] = value[0]
        operands.append(scalar.integral(rec, f"the operand of {value[0]}", value[1]))
        if value[0] == "nz2nz":
            if dst.name != "f32":
                rec.refuse(f"nz2nz with a destination of {dst.name}", "an f32 destination")
            if loop3 is not None:
                rec.refuse("nz2nz with loop3", "one call for every matrix")
    elif value is not None:
        if value != "nz2nd":
            rec.refuse(f"layout is {describe(value)}", '"nz2nd", ("nz2dn", source stride) or ("nz2nz", split)')
        attributes["layout"] = value
    if loop3 is not None:
        attributes["loop3"] = 1
        operands += triple(rec, "loop3", loop3)


def _store(
    rec: Recorder,
    name: str,
    space: str,
    numbers: tuple[Any, ...],
    options: dict[str, Any],
    target: list[Value],
    attributes: dict[str, int | str | float],
) -> None:
    require_explicit(rec, f"pto.{name}")
    source, destination, m, n, src_stride, dst_stride = numbers
    src = pointer(rec, f"the source of {name}", source, "acc")
    dst = pointer(rec, f"the destination of {name}", destination, space)
    if src.type.element.record.dtype not in ("f32", "i32"):
        rec.refuse(f"{name} from {src.type.element.name}", "L0C holds f32 or i32")
    operands: list[Value] = [src, dst]
    limits = {"m": 65535, "n": 4095, "src_stride": 65535, "dst_stride": (1 << 32) - 1}
    for (word, limit), value in zip(limits.items(), (m, n, src_stride, dst_stride), strict=True):
        number = scalar.integral(rec, word, value)
        check_static_range(rec, word, number, limit)
        operands.append(number)
    operands += target
    if options["unit_flag"] is not None:
        attributes["unit_flag"] = scalar.token(rec, "unit_flag", options["unit_flag"], UNIT_FLAGS)
    element = dst.type.element
    _pre_quant(rec, src.type.element, element, options["pre_quant"], operands, attributes)
    _pre_relu(rec, element, options["pre_relu"], operands, attributes)
    _layout(rec, element, options["layout"], options["loop3"], operands, attributes)
    if options["sat"] is not None:
        attributes["sat"] = SATURATION[scalar.token(rec, "sat", options["sat"], tuple(SATURATION))]
    if "split" in attributes and any(options[key] is not None for key in ("pre_quant", "pre_relu", "loop3")):
        rec.refuse("split with pre_quant, pre_relu or loop3", "a plain store, or sub_blockid=0 and 1 in two calls")
    if "split" in attributes and isinstance(options["layout"], tuple):
        rec.refuse(f"split with {options['layout'][0]}", 'layout="nz2nd"')
    rec.emit(name, operands, (), attributes)


@entry("mte_l0c_gm", places=KERNEL)
def mte_l0c_gm(
    rec: Recorder, source: Any, destination: Any, m: Any, n: Any, src_stride: Any, dst_stride: Any, sid: Any, l2_cache_ctrl: Any, *,
    unit_flag: Any = None, pre_quant: Any = None, pre_relu: Any = None, layout: Any = None, loop3: Any = None, sat: Any = None,
    atomic: Any = None,
) -> None:  # fmt: skip
    """``pto.mte_l0c_gm(src, dst, m, n, src_stride, dst_stride, 0, 0, layout="nz2nd")``."""
    check_static_range(rec, "sid", scalar.integral(rec, "sid", sid), 3)
    check_static_range(rec, "l2_cache_ctrl", scalar.integral(rec, "l2_cache_ctrl", l2_cache_ctrl), 15)
    attributes: dict[str, int | str | float] = {}
    if atomic is not None:
        if not isinstance(atomic, tuple) or len(atomic) != 2:
            rec.refuse(f"atomic is {describe(atomic)}", '(type, operation), such as ("f32", "add")')
        kind = scalar.token(rec, "the type of atomic", atomic[0], tuple(ATOMIC_TYPES))
        element = pointer(rec, "the destination of mte_l0c_gm", destination, "gm").type.element
        if PLAIN[ATOMIC_TYPES[kind]].bits != element.bits:
            rec.refuse(f"atomic {kind} on {element.name}", "the type of the destination")
        attributes["atomic_type"] = kind
        attributes["atomic_op"] = scalar.token(rec, "the operation of atomic", atomic[1], ATOMIC_OPERATIONS)
    options = {"unit_flag": unit_flag, "pre_quant": pre_quant, "pre_relu": pre_relu, "layout": layout, "loop3": loop3, "sat": sat}
    _store(rec, "mte_l0c_gm", "gm", (source, destination, m, n, src_stride, dst_stride), options, [], attributes)


@entry("mte_l0c_l1", places=KERNEL)
def mte_l0c_l1(
    rec: Recorder, source: Any, destination: Any, m: Any, n: Any, src_stride: Any, dst_stride: Any, *,
    unit_flag: Any = None, pre_quant: Any = None, pre_relu: Any = None, layout: Any = None, loop3: Any = None, sat: Any = None,
) -> None:  # fmt: skip
    """``pto.mte_l0c_l1(src, dst, m, n, src_stride, dst_stride, layout="nz2nd")``."""
    options = {"unit_flag": unit_flag, "pre_quant": pre_quant, "pre_relu": pre_relu, "layout": layout, "loop3": loop3, "sat": sat}
    _store(rec, "mte_l0c_l1", "mat", (source, destination, m, n, src_stride, dst_stride), options, [], {})


@entry("mte_l0c_ub", places=KERNEL)
def mte_l0c_ub(
    rec: Recorder, source: Any, destination: Any, m: Any, n: Any, src_stride: Any, dst_stride: Any, sub_blockid: Any = 0, *,
    split: Any = None, unit_flag: Any = None, pre_quant: Any = None, pre_relu: Any = None, layout: Any = None, loop3: Any = None,
    sat: Any = None,
) -> None:  # fmt: skip
    """``pto.mte_l0c_ub(src, dst, m, n, src_stride, dst_stride, sub_blockid)``, or with ``split="M"`` to both vector cores."""
    attributes: dict[str, int | str | float] = {}
    target: list[Value] = []
    if split is None:
        number = scalar.integral(rec, "sub_blockid", sub_blockid)
        check_static_range(rec, "sub_blockid", number, 1)
        target.append(number)
    else:
        if isinstance(sub_blockid, SurfaceScalar) or sub_blockid not in (0, None):
            rec.refuse("split together with sub_blockid", "one of them")
        attributes["split"] = SPLITS[scalar.token(rec, "split", split, tuple(SPLITS))]
    options = {"unit_flag": unit_flag, "pre_quant": pre_quant, "pre_relu": pre_relu, "layout": layout, "loop3": loop3, "sat": sat}
    _store(rec, "mte_l0c_ub", "ub", (source, destination, m, n, src_stride, dst_stride), options, target, attributes)
