"""Vector loads and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.kinds import vreg
from tilelang_pto.sim.standin.memory import pointer
from tilelang_pto.sim.standin.registry import KERNEL, VECSCOPE, entry
from tilelang_pto.sim.standin.types import ALIGN, MASKS, PLAIN, DType, MaskType, PtrType, VRegType, mask_for
from tilelang_pto.sim.standin.values import AlignState, Mask, Pointer, SurfaceScalar, Value, VectorRegister, describe

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

I16, INDEX = PLAIN["i16"], PLAIN["index"]

LOAD_DISTS = (
    "BRC_B16",
    "BRC_B32",
    "BRC_B8",
    "BRC_BLK",
    "DS_B16",
    "DS_B8",
    "E2B_B16",
    "E2B_B32",
    "NORM",
    "SPLT4CHN",
    "UNPK4",
    "UNPK_B16",
    "UNPK_B32",
    "UNPK_B8",
    "US_B16",
    "US_B8",
)
STORE_DISTS = (
    "1PT_B16",
    "1PT_B32",
    "1PT_B8",
    "MRG2CHN_B16",
    "MRG2CHN_B8",
    "MRG4CHN_B8",
    "NORM_B16",
    "NORM_B32",
    "NORM_B8",
    "PK4_B32",
    "PK_B16",
    "PK_B32",
    "PK_B64",
)
DEINTERLEAVE = ("DINTLV_B8", "DINTLV_B16", "DINTLV_B32", "BDINTLV")
INTERLEAVE = ("INTLV_B8", "INTLV_B16", "INTLV_B32")


def register(rec: Recorder, name: str, value: Any) -> VectorRegister:
    """``value`` as a vector register."""
    if not isinstance(value, VectorRegister):
        rec.refuse(f"{name} is {describe(value)}, a vector register is needed", "pto.vlds(...), pto.vbr(scalar) or pto.vdup(scalar, mask)")
    return value


def as_mask(rec: Recorder, name: str, value: Any, element: DType | None = None, kind: MaskType | None = None) -> Mask:
    """``value`` as a mask that fits ``element`` (or has type ``kind``)."""
    if not isinstance(value, Mask):
        rec.refuse(f"the mask of {name} is {describe(value)}", "pto.pset_b32(...), pto.plt_b32(...) or pto.make_mask(dtype, ...)")
    wanted = mask_for(element) if element is not None else kind
    if wanted is not None and value.type != wanted:
        what = f"{element.name} needs" if element is not None else "this needs"
        rec.refuse(f"{name}: the mask is b{value.type.bits}, {what} b{wanted.bits}", f"pto.pset_b{wanted.bits}(...)")
    return value


def dist_bits(word: str) -> int | None:
    """The element width in a distribution token."""
    tail = word.rsplit("_B", 1)
    return int(tail[1]) if len(tail) == 2 and tail[1].isdigit() else None


def _post(rec: Recorder, value: Any) -> bool:
    if value in ("OFF", "NO_POST_UPDATE"):
        return False
    if value in ("ON", "POST_UPDATE"):
        return True
    rec.refuse(f"post_update={value!r} is not legal", "OFF or ON")


@entry("vlds", places=VECSCOPE)
def vlds(
    rec: Recorder, src_ptr: Any, offset: Any = None, result_vreg_type: Any = None, *, dist: Any = None, post_update: Any = "OFF"
) -> Any:
    """``pto.vlds(pointer, offset, vreg_type, dist=...)``; post-update loads at ``pointer`` and gives ``pointer + offset`` too."""
    source = pointer(rec, "the pointer of vlds", src_ptr, "ub")
    if offset is None:
        rec.refuse("vlds without an offset", "the offset in elements")
    place = scalar.integral(rec, "the offset of vlds", offset)
    word = "NORM" if dist is None else scalar.token(rec, "dist", dist, LOAD_DISTS)
    if word == "SPLT4CHN":
        rec.refuse("dist='SPLT4CHN' does not exist on this chip", "another distribution")
    kind = _load_type(rec, source, word, result_vreg_type)
    if _post(rec, post_update):
        value = rec.emit1("vlds", (source, scalar.constant(rec, 0, INDEX)), kind, {"dist": word})
        return value, rec.emit1("addptr", (source, place), source.type)
    return rec.emit1("vlds", (source, place), kind, {"dist": word})


def _load_type(rec: Recorder, source: Pointer, word: str, given: Any) -> VRegType:
    element = source.type.element
    width = dist_bits(word)
    if width is not None and width != element.bits:
        rec.refuse(f"dist={word!r} with a {element.name} pointer", f"a distribution of b{element.bits}")
    if word == "UNPK4" and element.bits != 8:
        rec.refuse(f"dist={word!r} with a {element.name} pointer", "8-bit elements")
    if given is None:
        return vreg(rec, element)
    if not isinstance(given, VRegType):
        rec.refuse(f"the register type is {describe(given)}", "pto.vreg_type(lanes, dtype)")
    if given.element != element:
        wide = {"UNPK_B8": 16, "UNPK_B16": 32, "UNPK_B32": 64, "UNPK4": 32}.get(word)
        if wide is None or given.element.bits != wide:
            rec.refuse(f"vlds of {given} through a {element.name} pointer", f"pto.castptr the pointer to {given.element.name}")
    return given


@entry("vsts", places=VECSCOPE)
def vsts(rec: Recorder, val: Any, dst_ptr: Any, offset: Any, mask: Any = None, *, dist: Any = None, post_update: Any = "OFF") -> Any:
    """``pto.vsts(value, pointer, offset, mask, dist=...)``; the distribution follows the value's width when not given."""
    value = register(rec, "the value of vsts", val)
    target = pointer(rec, "the pointer of vsts", dst_ptr, "ub")
    place = scalar.integral(rec, "the offset of vsts", offset)
    element = value.type.element
    word = f"NORM_B{min(element.bits, 32)}" if dist is None else scalar.token(rec, "dist", dist, STORE_DISTS)
    if word.startswith("MRG"):
        rec.refuse(f"dist={word!r} does not exist on this chip", "another distribution")
    width = dist_bits(word) or 0
    predicate = _store_mask(rec, word, width, element, mask)
    plain = not word.startswith("PK")
    if plain and target.type.element != element:
        rec.refuse(f"vsts of {value.type} through a {target.type.element.name} pointer", f"pto.castptr the pointer to {element.name}")
    if not plain and element.bits < width <= 32:  # the store reads whole lanes of the stated width
        value = rec.emit1("vbitcast", (value,), vreg(rec, PLAIN[f"i{width}"]))
    if _post(rec, post_update):
        rec.emit("vsts", (value, target, scalar.constant(rec, 0, INDEX), predicate), (), {"dist": word})
        return rec.emit1("addptr", (target, place), target.type)
    rec.emit("vsts", (value, target, place, predicate), (), {"dist": word})
    return None


def _store_mask(rec: Recorder, word: str, width: int, element: DType, given: Any) -> Mask:
    if word.startswith("PK"):
        legal = {"PK_B16": (8, 16), "PK_B32": (16, 32), "PK_B64": (32, 64), "PK4_B32": (8, 32)}[word]
        if element.bits not in legal:
            rec.refuse(f"dist={word!r} with {element.name} elements", f"elements of {legal[0]} or {legal[1]} bits")
        return as_mask(rec, f"vsts with {word}", given, kind=MASKS[min(width, 32)])
    if min(element.bits, 32) != width:
        rec.refuse(f"dist={word!r} with {element.name} elements", f"{word.rsplit('_', 1)[0]}_B{min(element.bits, 32)}")
    if given is None and word.startswith("1PT"):
        full: Mask = rec.emit1("pset", (), mask_for(element), {"pattern": "PAT_ALL"})
        return full
    return as_mask(rec, "vsts", given, element)


@entry("vldsx2", places=VECSCOPE)
def vldsx2(rec: Recorder, source: Any, offset_or_dist: Any, dist: Any = None, *, result_vreg_type: Any = None) -> Any:
    """``pto.vldsx2(pointer, offset, dist)``: two registers."""
    base = pointer(rec, "the pointer of vldsx2", source, "ub")
    if dist is None:
        rec.refuse("vldsx2 without a distribution", "pto.vldsx2(pointer, offset, dist)")
    place = scalar.integral(rec, "the offset of vldsx2", offset_or_dist)
    word = scalar.token(rec, "dist", dist, DEINTERLEAVE)
    kind = _load_type(rec, base, word, result_vreg_type)
    return tuple(rec.emit("vldsx2", (base, place), (kind, kind), {"dist": word}))


@entry("vstsx2", places=VECSCOPE)
def vstsx2(rec: Recorder, low: Any, high: Any, dst_ptr: Any, offset_or_dist: Any, dist_or_mask: Any = None, mask: Any = None) -> None:
    """``pto.vstsx2(low, high, pointer, offset, dist, mask)``; the mask has no effect."""
    first, second = register(rec, "low", low), register(rec, "high", high)
    base = pointer(rec, "the pointer of vstsx2", dst_ptr, "ub")
    if first.type != second.type:
        rec.refuse(f"vstsx2 of {first.type} and {second.type}", "registers of one type")
    place = scalar.integral(rec, "the offset of vstsx2", offset_or_dist)
    word = scalar.token(rec, "dist", dist_or_mask, INTERLEAVE)
    element = first.type.element
    if dist_bits(word) != element.bits:
        rec.refuse(f"dist={word!r} with {element.name} elements", f"INTLV_B{element.bits}")
    if base.type.element != element:
        rec.refuse(f"vstsx2 of {first.type} through a {base.type.element.name} pointer", f"pto.castptr the pointer to {element.name}")
    rec.emit("vstsx2", (first, second, base, place, as_mask(rec, "vstsx2", mask, element)), (), {"dist": word})


# -- gather, scatter, block strides ------------------------------------------------------------------------


def _gather(rec: Recorder, name: str, buf: Any, offsets: Any, mask: Any, given: Any) -> Any:
    base = pointer(rec, f"the pointer of {name}", buf, "ub")
    index = register(rec, f"the index of {name}", offsets)
    element = base.type.element
    bits = index.type.element.bits
    wanted = 32 if name == "vgather2_bc" else 16 if element.bits == 8 else element.bits
    if not index.type.element.is_integer or bits != wanted:
        rec.refuse(f"{name} of {element.name} with {index.type} as index", f"an index of {wanted}-bit integers")
    if given is None:
        given = VRegType(128, PLAIN["i16" if element.signed else "ui16"]) if element.bits == 8 else vreg(rec, element)
    if not isinstance(given, VRegType):
        rec.refuse(f"the register type is {describe(given)}", "pto.vreg_type(lanes, dtype)")
    return rec.emit1(name, (base, index, as_mask(rec, name, mask, kind=MASKS[bits])), given)


def _register_gathers() -> None:
    for name in ("vgather2", "vgather2_bc"):

        def gather(rec: Recorder, buf: Any, offsets: Any, mask: Any, result_vreg_type: Any = None, _opcode: str = name) -> Any:
            return _gather(rec, _opcode, buf, offsets, mask, result_vreg_type)

        entry(name, places=VECSCOPE)(gather)


_register_gathers()


@entry("vgatherb", places=VECSCOPE)
def vgatherb(rec: Recorder, buf: Any, offsets: Any, mask: Any, result_vreg_type: Any = None) -> Any:
    """``pto.vgatherb(pointer, byte offsets, mask)``: 32-byte blocks."""
    base = pointer(rec, "the pointer of vgatherb", buf, "ub")
    index = register(rec, "the offsets of vgatherb", offsets)
    if index.type.element.bits != 32 or not index.type.element.is_integer:
        rec.refuse(f"vgatherb with {index.type} as offsets", "32-bit integers")
    kind = vreg(rec, base.type.element) if result_vreg_type is None else result_vreg_type
    return rec.emit1("vgatherb", (base, index, as_mask(rec, "vgatherb", mask, kind=MASKS[32])), kind)


@entry("vscatter", places=VECSCOPE)
def vscatter(rec: Recorder, value: Any, destination: Any, offsets: Any, mask: Any) -> None:
    """``pto.vscatter(value, pointer, index, mask)``."""
    source = register(rec, "the value of vscatter", value)
    base = pointer(rec, "the pointer of vscatter", destination, "ub")
    index = register(rec, "the index of vscatter", offsets)
    element = source.type.element
    if base.type.element != element:
        rec.refuse(f"vscatter of {source.type} through a {base.type.element.name} pointer", f"pto.castptr the pointer to {element.name}")
    bits = 16 if element.bits == 8 else element.bits
    if not index.type.element.is_integer or index.type.element.bits != bits:
        rec.refuse(f"vscatter of {element.name} with {index.type} as index", f"an index of {bits}-bit integers")
    rec.emit("vscatter", (source, base, index, as_mask(rec, "vscatter", mask, kind=MASKS[bits])))


def _strides(rec: Recorder, name: str, block: Any, repeat: Any) -> list[SurfaceScalar]:
    return [
        scalar.convert_integral(rec, f"the {what} stride of {name}", value, I16) for what, value in (("block", block), ("repeat", repeat))
    ]


@entry("vsldb", places=VECSCOPE)
def vsldb(rec: Recorder, source: Any, block_stride: Any, repeat_stride: Any, mask: Any) -> Any:
    """``pto.vsldb(pointer, block stride, repeat stride, mask)``, strides in 32-byte blocks."""
    base = pointer(rec, "the pointer of vsldb", source, "ub")
    operands = [base, *_strides(rec, "vsldb", block_stride, repeat_stride), as_mask(rec, "vsldb", mask, base.type.element)]
    return rec.emit1("vsldb", operands, vreg(rec, base.type.element))


@entry("vsstb", places=VECSCOPE)
def vsstb(
    rec: Recorder, value: Any, destination: Any, block_stride: Any, repeat_stride: Any, mask: Any, *, post_update: Any = "OFF"
) -> Any:
    """``pto.vsstb(value, pointer, block stride, repeat stride, mask)``, strides in 32-byte blocks."""
    source = register(rec, "the value of vsstb", value)
    base = pointer(rec, "the pointer of vsstb", destination, "ub")
    if base.type.element != source.type.element:
        rec.refuse(
            f"vsstb of {source.type} through a {base.type.element.name} pointer", f"pto.castptr the pointer to {source.type.element.name}"
        )
    operands: list[Value] = [
        source,
        base,
        *_strides(rec, "vsstb", block_stride, repeat_stride),
        as_mask(rec, "vsstb", mask, source.type.element),
    ]
    if _post(rec, post_update):
        return rec.emit1("vsstb", operands, base.type, {"post_update": 1})
    rec.emit("vsstb", operands)
    return None


# -- unaligned streams -------------------------------------------------------------------------------------


def _align(rec: Recorder, name: str, value: Any) -> AlignState:
    if not isinstance(value, AlignState):
        rec.refuse(f"the state of {name} is {describe(value)}", "pto.vldas(pointer) or pto.init_align()")
    return value


@entry("init_align", places=VECSCOPE)
def init_align(rec: Recorder) -> Any:
    """``pto.init_align()``: an empty store stream."""
    return rec.emit1("init_align", (), ALIGN)


@entry("vldas", places=VECSCOPE)
def vldas(rec: Recorder, source: Any) -> Any:
    """``pto.vldas(pointer)``: prime an unaligned load stream."""
    return rec.emit1("vldas", (pointer(rec, "the pointer of vldas", source, "ub"),), ALIGN)


@entry("vldus", places=VECSCOPE)
def vldus(rec: Recorder, source: Any, align: Any) -> Any:
    """``pto.vldus(pointer, state)``: 256 bytes at any element, and the next state."""
    base = pointer(rec, "the pointer of vldus", source, "ub")
    return tuple(rec.emit("vldus", (base, _align(rec, "vldus", align)), (vreg(rec, base.type.element), ALIGN)))


@entry("vstus", places=VECSCOPE)
def vstus(rec: Recorder, align_in: Any, offset: Any, value: Any, base: Any) -> Any:
    """``pto.vstus(state, count, value, pointer)``."""
    target = pointer(rec, "the pointer of vstus", base, "ub")
    operands = [
        _align(rec, "vstus", align_in),
        scalar.integral(rec, "the count of vstus", offset),
        register(rec, "the value of vstus", value),
        target,
    ]
    return rec.emit1("vstus", operands, ALIGN)


@entry("vstur", places=VECSCOPE)
def vstur(rec: Recorder, align_in: Any, value: Any, base: Any, mode: Any = "NO_POST_UPDATE") -> Any:
    """``pto.vstur(state, value, pointer, mode)``: append what the last ``vsqz`` counted."""
    target = pointer(rec, "the pointer of vstur", base, "ub")
    operands = [_align(rec, "vstur", align_in), register(rec, "the value of vstur", value), target]
    return rec.emit1("vstur", operands, ALIGN, {"post_update": int(_post(rec, mode))})


@entry("vstas", places=VECSCOPE)
def vstas(rec: Recorder, align: Any, destination: Any, offset: Any) -> None:
    """``pto.vstas(state, pointer, offset)``: write the rest of a store stream."""
    target = pointer(rec, "the pointer of vstas", destination, "ub")
    rec.emit("vstas", (_align(rec, "vstas", align), target, scalar.integral(rec, "the offset of vstas", offset)))


@entry("vstar", places=VECSCOPE)
def vstar(rec: Recorder, align: Any, destination: Any) -> None:
    """``pto.vstar(state, pointer)``: write the rest of a counted store stream."""
    rec.emit("vstar", (_align(rec, "vstar", align), pointer(rec, "the pointer of vstar", destination, "ub")))


# -- masks in memory ---------------------------------------------------------------------------------------


def _mask_pointer(rec: Recorder, name: str, value: Any) -> Pointer:
    base = pointer(rec, f"the pointer of {name}", value, "ub")
    if not isinstance(base.type, PtrType) or not base.type.element.is_integer:
        rec.refuse(f"{name} through a {base.type.element.name} pointer", "an integer pointer such as pto.ui32")
    return base


@entry("plds", places=VECSCOPE)
def plds(rec: Recorder, buf: Any, offset: Any, *, dist: Any = "NORM") -> Any:
    """``pto.plds(pointer, offset, dist=)``: a mask image from UB."""
    base = _mask_pointer(rec, "plds", buf)
    word = scalar.token(rec, "dist", dist, ("NORM", "US", "DS"))
    kind = MASKS[min(max(base.type.element.bits, 8), 32)]
    return rec.emit1("plds", (base, scalar.integral(rec, "the offset of plds", offset)), kind, {"dist": word})


@entry("psts", places=VECSCOPE)
def psts(rec: Recorder, mask_value: Any, buf: Any, offset: Any, *, dist: Any = "NORM") -> None:
    """``pto.psts(mask, pointer, offset, dist=)``: a mask image to UB."""
    word = scalar.token(rec, "dist", dist, ("NORM", "PK"))
    operands = (as_mask(rec, "psts", mask_value), _mask_pointer(rec, "psts", buf), scalar.integral(rec, "the offset of psts", offset))
    rec.emit("psts", operands, (), {"dist": word})


@entry("pstu", places=VECSCOPE)
def pstu(rec: Recorder, align_in: Any, mask_value: Any, buf: Any) -> Any:
    """``pto.pstu(state, mask, pointer)``: append a packed mask to a store stream; the next state and pointer."""
    base = _mask_pointer(rec, "pstu", buf)
    return tuple(rec.emit("pstu", (_align(rec, "pstu", align_in), as_mask(rec, "pstu", mask_value), base), (ALIGN, base.type)))


# -- sorting, UB to UB -------------------------------------------------------------------------------------


@entry("vbitsort", places=KERNEL)
def vbitsort(rec: Recorder, destination: Any, source: Any, indices: Any, repeat_times: Any) -> None:
    """``pto.vbitsort(dst, scores, indices, repeat)``: records of 32 scores each, sorted."""
    pointers = [pointer(rec, "an operand of vbitsort", v, "ub") for v in (destination, source, indices)]
    rec.emit("vbitsort", [*pointers, scalar.integral(rec, "repeat_times", repeat_times)])


@entry("vmrgsort4", places=KERNEL)
def vmrgsort4(rec: Recorder, destination: Any, source0: Any, source1: Any, source2: Any, source3: Any, count: Any, config: Any) -> None:
    """``pto.vmrgsort4(dst, s0, s1, s2, s3, count, config)``: merge up to four sorted record lists."""
    pointers = [pointer(rec, "an operand of vmrgsort4", v, "ub") for v in (destination, source0, source1, source2, source3)]
    i64 = PLAIN["i64"]
    rec.emit("vmrgsort4", [*pointers, scalar.integral(rec, "count", count, i64), scalar.integral(rec, "config", config, i64)])
