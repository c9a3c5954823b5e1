"""Pointers, stack buffers, structs, and scalar access to memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.control import require_explicit
from tilelang_pto.sim.standin.kinds import element
from tilelang_pto.sim.standin.registry import KERNEL, NOT_SIMD, entry
from tilelang_pto.sim.standin.types import PLAIN, DType, PtrType, StructType, VecType
from tilelang_pto.sim.standin.values import Pointer, Struct, SurfaceScalar, VecValue, describe

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

I64, INDEX = PLAIN["i64"], PLAIN["index"]

L1_CACHE = ("cache", "uncache")
LOAD_L2 = (
    "nmfv",
    "nmlv",
    "nmprs",
    "nmpref",
    "nakeep",
    "naclean",
    "nadrop",
    "idsfv",
    "idslv",
    "idsprs",
    "idspref",
    "exfv",
    "exlv",
    "exprs",
    "expref",
)
STORE_L2 = (
    "nmfv",
    "nmlv",
    "nmprs",
    "nmred",
    "naci",
    "napw",
    "napi",
    "nared",
    "wbhfv",
    "wbhlv",
    "wbhprs",
    "wbhred",
    "wtsfv",
    "wtslv",
    "wtsprs",
    "wtsred",
)


def pointer(rec: Recorder, name: str, value: Any, *spaces: str) -> Pointer:
    """``value`` as a pointer into one of ``spaces`` (any space when none is given)."""
    if not isinstance(value, Pointer):
        rec.refuse(f"{name} is {describe(value)}, a pointer is needed", "a kernel parameter, pto.castptr(...) or pto.addptr(...)")
    if spaces and value.type.space not in spaces:
        rec.refuse(f"{name} points to {value.type.space!r}", f"a pointer to {' or '.join(spaces)}")
    return value


@entry("castptr")
def castptr(rec: Recorder, int_addr: Any, result_ptr_type: Any) -> Any:
    """``pto.castptr(value, type)``: address to pointer, pointer to pointer of another element type, pointer to integer."""
    if isinstance(result_ptr_type, PtrType):
        if isinstance(int_addr, Pointer):
            if int_addr.type.space != result_ptr_type.space:
                rec.refuse(f"castptr from {int_addr.type.space!r} to {result_ptr_type.space!r}", "a pointer type of the same space")
            if int_addr.type == result_ptr_type:
                return int_addr
            result = rec.emit1("castptr", (int_addr,), result_ptr_type)
            result.persistent = int_addr.persistent
            return result
        if isinstance(int_addr, SurfaceScalar):
            if int_addr.dtype.name not in ("i64", "ui64", "si64") and (rec.surface == "2026-08" or not int_addr.dtype.is_integral):
                rec.refuse(f"castptr of {describe(int_addr)}", "an i64 or ui64 byte address: pto.const(0, dtype=pto.i64)")
            return rec.emit1("castptr", (int_addr,), result_ptr_type, _view(rec, result_ptr_type.space))
        rec.refuse(f"castptr of {describe(int_addr)}", "a pointer, or a typed address: pto.const(0, dtype=pto.i64)")
    if isinstance(result_ptr_type, DType) and result_ptr_type.is_integer and result_ptr_type.bits == 64 and isinstance(int_addr, Pointer):
        return scalar.cast_to(rec, rec.emit1("castptr", (int_addr,), I64), result_ptr_type)
    rec.refuse(f"castptr of {describe(int_addr)} to {describe(result_ptr_type)}", "a pointer type, or pto.i64 for pointers")


def _view(rec: Recorder, space: str) -> dict[str, int | str | float]:
    """The buffer that a pointer points into, where the text says which."""
    for line in rec.lines():  # a helper may make the pointer
        view = rec.views.of_pointer(line, space)
        if view is not None:
            return {"view": view.name, "begin": view.begin, "end": view.end}
    return {}


@entry("addptr")
def addptr(rec: Recorder, base_ptr: Any, index_offset: Any) -> Any:
    """``pto.addptr(pointer, elements)``."""
    base = pointer(rec, "the pointer of addptr", base_ptr)
    offset = scalar.integral(rec, "the offset of addptr", index_offset)
    if base.persistent:
        _constant_offset(rec, offset)
    result = rec.emit1("addptr", (base, offset), base.type)
    result.persistent = base.persistent
    return result


def _constant_offset(rec: Recorder, offset: SurfaceScalar) -> None:
    if offset.known is None:
        rec.refuse(
            "a persistent buffer (alloc_buffer outside of pto.simt) is indexed with a runtime value",
            "constant indices: unroll with pto.static_range",
        )


@entry("alloc_buffer", places=NOT_SIMD)
def alloc_buffer(rec: Recorder, shape: Any, dtype: Any, **kwargs: Any) -> Any:
    """``pto.alloc_buffer((n,), dtype)``: stack scratch of one work-item; outside of ``pto.simt`` it persists between SIMT functions."""
    require_explicit(rec, "pto.alloc_buffer")
    if kwargs:
        rec.refuse(f"alloc_buffer takes no {', '.join(kwargs)}", "alloc_buffer(shape, dtype)")
    kind = element(rec, "the element type of alloc_buffer", dtype)
    if kind.bits == 1 or kind.family == "index":
        rec.refuse(f"alloc_buffer of {kind.name}", "an element type of whole bytes")
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    count = 1
    for size in sizes:
        count *= scalar.static_int(rec, "a dimension of alloc_buffer", size, 1, 1 << 20)
    result = rec.emit1("alloc_buffer", (), PtrType(kind, "stack"), {"count": count})
    result.persistent = rec.place == "kernel"
    return result


def _access(rec: Recorder, name: str, target: Any, offset: Any) -> tuple[Pointer, SurfaceScalar]:
    base = pointer(rec, f"the pointer of {name}", target, "gm", "ub", "stack")
    if offset is None:
        rec.refuse(f"{name} without an offset", "the offset in elements")
    place = scalar.integral(rec, f"the offset of {name}", offset)
    if rec.place == "vecscope" and base.type.space != "ub":
        rec.refuse(f"{name} on a {base.type.space!r} pointer in a vector function", "UB pointers, or access it before the vector function")
    if base.type.space == "stack" and rec.place != "simt":
        rec.refuse("a stack buffer is used outside of pto.simt", "loop and branch carries, or pto.declare_struct")
    if base.persistent:
        _constant_offset(rec, place)
    return base, place


def _load(
    rec: Recorder, name: str, target: Any, offset: Any, contiguous: Any, attributes: dict[str, int | str | float] | None = None
) -> Any:
    base, place = _access(rec, name, target, offset)
    kind = base.type.element
    if kind.family == "storage":
        rec.refuse(f"{name} of {kind.name}: there are no scalars of that type", "cast the pointer to pto.ui8")
    if contiguous is not None and scalar.static_int(rec, "contiguous", contiguous, 1, 64) > 1:
        return rec.emit1("load", (base, place), VecType(kind, contiguous), attributes)
    return rec.emit1("load", (base, place), kind, attributes)


def _store(
    rec: Recorder, name: str, value: Any, target: Any, offset: Any, contiguous: Any, attributes: dict[str, int | str | float] | None = None
) -> None:
    base, place = _access(rec, name, target, offset)
    kind = base.type.element
    if isinstance(value, VecValue):
        source = value.type.element
        if contiguous is not None and scalar.static_int(rec, "contiguous", contiguous, 1, 64) != value.type.lanes:
            rec.refuse(f"contiguous={contiguous} with {describe(value)}", f"contiguous={value.type.lanes}")
        if source != kind and not (source.is_integer and kind.is_integer and source.bits == kind.bits):
            rec.refuse(f"{name} of {describe(value)} to a {kind.name} pointer", "the element type of the pointer")
        rec.emit("store", (value, base, place), (), attributes)
        return
    if contiguous is not None and scalar.static_int(rec, "contiguous", contiguous, 1, 64) > 1:
        rec.refuse(f"contiguous={contiguous} with {describe(value)}", "a short vector: pto.Vec(dtype, n, init=...)")
    if kind.family == "storage":
        rec.refuse(f"{name} of {kind.name}: there are no scalars of that type", "cast the pointer to pto.ui8")
    if isinstance(value, SurfaceScalar) and value.dtype.is_integer and kind.is_integer and value.dtype.bits == kind.bits:
        value = scalar.cast_to(rec, value, kind)
    rec.emit("store", (scalar.scalar_of(rec, f"the value of {name}", value, kind), base, place), (), attributes)


@entry("load", aug="scalar")
def load(rec: Recorder, ptr_or_ref: Any, offset: Any = None, *, contiguous: Any = None) -> Any:
    """``load(pointer, offset)``: one element, or ``contiguous`` elements as a short vector."""
    return _load(rec, "load", ptr_or_ref, offset, contiguous)


@entry("store", aug="scalar")
def store(rec: Recorder, value: Any, ptr_or_ref: Any, offset: Any = None, *, contiguous: Any = None) -> None:
    """``store(value, pointer, offset)``."""
    _store(rec, "store", value, ptr_or_ref, offset, contiguous)


@entry("load_scalar", sep=None, opcodes=("load",), places=KERNEL)
def load_scalar(rec: Recorder, ptr_value: Any, offset: Any = 0, *, bypass_l1: Any = False) -> Any:
    """``pto.load_scalar(pointer, offset, bypass_l1=)`` of the 2026-08 API."""
    if bypass_l1:
        return ld_dev(rec, ptr_value, offset)
    return _load(rec, "load_scalar", ptr_value, offset, None)


@entry("store_scalar", sep=None, opcodes=("store",), places=KERNEL)
def store_scalar(rec: Recorder, ptr_value: Any, offset: Any, value: Any, *, bypass_l1: Any = False) -> None:
    """``pto.store_scalar(pointer, offset, value, bypass_l1=)`` of the 2026-08 API."""
    if bypass_l1:
        st_dev(rec, ptr_value, offset, value)
    else:
        _store(rec, "store_scalar", value, ptr_value, offset, None)


def _device_pointer(rec: Recorder, name: str, value: Any) -> Pointer:
    base = pointer(rec, f"the pointer of {name}", value, "gm")
    if not base.type.element.is_integer:
        rec.refuse(f"{name} on a {base.type.element.name} pointer", "cast the pointer to the integer type of the same width")
    return base


@entry("ld_dev", aug=None, opcodes=("load",), places=KERNEL)
def ld_dev(rec: Recorder, ptr_value: Any, offset: Any = 0) -> Any:
    """``pto.ld_dev(pointer, offset)``: GM past the data cache."""
    return _load(rec, "ld_dev", _device_pointer(rec, "ld_dev", ptr_value), offset, None, {"bypass": 1})


@entry("st_dev", aug=None, opcodes=("store",), places=KERNEL)
def st_dev(rec: Recorder, ptr_value: Any, offset: Any, value: Any) -> None:
    """``pto.st_dev(pointer, offset, value)``: GM past the data cache."""
    _store(rec, "st_dev", value, _device_pointer(rec, "st_dev", ptr_value), offset, None, {"bypass": 1})


@entry("ldg", opcodes=("load",), places=frozenset({"simt"}))
def ldg(rec: Recorder, ptr_or_ref: Any, offset: Any = None, *, l1cache: Any = "cache", l2cache: Any = "nmfv") -> Any:
    """``pto.ldg(pointer, offset)``: GM load of a SIMT function with a cache policy (no effect on values)."""
    scalar.token(rec, "l1cache", l1cache, L1_CACHE)
    scalar.token(rec, "l2cache", l2cache, LOAD_L2)
    return _load(rec, "ldg", pointer(rec, "the pointer of ldg", ptr_or_ref, "gm"), offset, None)


@entry("stg", opcodes=("store",), places=frozenset({"simt"}))
def stg(rec: Recorder, value: Any, ptr_or_ref: Any, offset: Any = None, *, l1cache: Any = "cache", l2cache: Any = "nmfv") -> None:
    """``pto.stg(value, pointer, offset)``: GM store of a SIMT function with a cache policy (no effect on values)."""
    scalar.token(rec, "l1cache", l1cache, L1_CACHE)
    scalar.token(rec, "l2cache", l2cache, STORE_L2)
    _store(rec, "stg", value, pointer(rec, "the pointer of stg", ptr_or_ref, "gm"), offset, None)


@entry("declare_struct", opcodes=("alloc_buffer",), places=NOT_SIMD)
def declare_struct(rec: Recorder, struct_type: Any) -> Struct:
    """``pto.declare_struct(type)``: a stack struct, recorded as one stack slot per field."""
    if not isinstance(struct_type, StructType):
        rec.refuse(f"declare_struct of {describe(struct_type)}", "pto.struct_type(...)")
    slots = tuple(rec.emit1("alloc_buffer", (), PtrType(kind, "stack"), {"count": 1}) for kind in struct_type.fields)
    return Struct(struct_type, slots)


def _slot(rec: Recorder, struct: Any, path: Any) -> Pointer:
    if not isinstance(struct, Struct):
        rec.refuse(f"{describe(struct)} is not a struct", "pto.declare_struct(...)")
    keys = list(path) if isinstance(path, (tuple, list)) else [path]
    if len(keys) != 1:
        rec.refuse("a path into nested structs", "[k], one field number")
    return struct.slots[scalar.static_int(rec, "the field number", keys[0], 0, len(struct.slots) - 1)]


@entry("struct_get", opcodes=("load",))
def struct_get(rec: Recorder, struct: Any, path: Any) -> Any:
    """``pto.struct_get(s, [k])``."""
    slot = _slot(rec, struct, path)
    return rec.emit1("load", (slot, scalar.constant(rec, 0, INDEX)), slot.type.element)


@entry("struct_set", opcodes=("store",))
def struct_set(rec: Recorder, struct: Any, path: Any, value: Any) -> None:
    """``pto.struct_set(s, [k], value)``."""
    slot = _slot(rec, struct, path)
    rec.emit("store", (scalar.scalar_of(rec, "the value of struct_set", value, slot.type.element), slot, scalar.constant(rec, 0, INDEX)))
