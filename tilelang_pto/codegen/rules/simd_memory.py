"""Vector loads and stores of SIMD vector functions."""

from __future__ import annotations

from typing import Any

from ..emit import call, constant, path
from ..registry import op
from ..types import DType, Type
from ..values import Pair, Value, VectorAccess
from ..visitor import Visitor
from .memory import UB, Address, access_pointer, address, cast_pointer

VECTOR_BYTES, BLOCK_BYTES = 256, 32

LOAD_DISTRIBUTIONS = {
    "NORM": None, "BRC_B8": 8, "BRC_B16": 16, "BRC_B32": 32, "US_B8": 8, "US_B16": 16, "DS_B8": 8, "DS_B16": 16,
    "UNPK_B8": 8, "UNPK_B16": 16, "UNPK_B32": 32, "UNPK4_B8": 8, "BRC_BLK": None, "E2B_B16": 16, "E2B_B32": 32,
}  # fmt: skip
"""Distributions of ``tl.simd.vld`` and the memory element width their suffix states."""

STORE_DISTRIBUTIONS = {"PK_B16": 16, "PK_B32": 32, "PK4_B32": 32}
"""Packing distributions of ``tl.simd.vsts`` and the lane (and predicate) width they work on."""


_WIDTHS = ("B8", "B16", "B32")
_LOADS = (*LOAD_DISTRIBUTIONS, "BLK", *(f"NORM_{width}" for width in _WIDTHS))
_STORES = (*(f"{kind}{width}" for kind in ("NORM", "ONEPT") for width in ("", *(f"_{width}" for width in _WIDTHS))), *STORE_DISTRIBUTIONS)


@op("tl.simd.vld", arity=(2, 3), regions="simd", literals={"dist": _LOADS}, emits=("vlds", "castptr"))
def vld(v: Visitor, node: Any, pointer: Any, dist: Any, *step: Any) -> Value:
    """Load. With a step (in elements) the pointer is a handle variable, and the result a pair: register, advanced handle."""
    token = "BRC_BLK" if dist.value == "BLK" else str(dist.value)
    if token.startswith("NORM"):
        token = "NORM"
    register = v.register_type(node.dtype)
    width = LOAD_DISTRIBUTIONS[token]
    if width is not None and (width > register.dtype.bits or (width != register.dtype.bits and not token.startswith("UNPK"))):
        v.unsupported(f"load distribution {token} into {register}", f"use the distribution for {register.dtype.bits}-bit elements")
    spelled = "UNPK4" if token == "UNPK4_B8" else token
    keywords = {} if spelled == "NORM" else {"dist": constant(spelled)}
    shape = call("pto.vreg_type", constant(register.lanes), path(f"pto.{register.dtype.pto}"))
    if step:
        return _advancing_load(v, pointer, step[0], register, shape, keywords)
    where = lane_address(v, pointer, register.dtype)

    def build(e: Any) -> Any:
        return call("pto.vlds", e[0], e[1], shape, **keywords)

    loaded = v.b.pure(("vlds", spelled), build, (where.pointer, where.offset), register, hint="loaded", memory=UB, pinned=True, weight=44)
    loaded.access = VectorAccess(where.pointer, where.offset, _loaded_bytes(spelled, width), writes=False)
    return loaded


def _advancing_load(v: Visitor, pointer: Any, step: Any, register: Type, shape: Any, keywords: dict[str, Any]) -> Pair:
    from .simd_pairs import pair_of

    handle = v.expr(pointer)
    if handle.type.kind != "pointer" or handle.type.space != "ub":
        v.unsupported(f"a load that advances {handle.type}", "use a pointer of T.simd.make_ubuf_ptr")
    base = cast_pointer(v, handle, register.dtype)
    on = constant("ON")
    loaded, advanced = v.b.unpack(
        lambda e: call("pto.vlds", e[0], e[1], shape, post_update=on, **keywords),
        (base, v.expr(step)),
        (register, base.type),
        ("loaded", "advanced"),
    )
    return pair_of(v, loaded, cast_pointer(v, advanced, handle.dtype))


@op("tl.simd.vsts", arity=4, regions="simd", literals={"dist": _STORES}, emits="vsts")
def vsts(v: Visitor, node: Any, pointer: Any, value: Any, m: Any, dist: Any) -> None:
    """Store. The suffix of NORM and ONEPT in TIR is not reliable; the width is the value's."""
    token = str(dist.value)
    stored = v.expr(value)
    bits = stored.dtype.bits
    if token.startswith("NORM"):
        spelled, mask_bits = f"NORM_B{bits}", bits
    elif token.startswith("ONEPT"):
        spelled, mask_bits = f"1PT_B{bits}", bits
    else:
        spelled, mask_bits = token, STORE_DISTRIBUTIONS[token]
    where = lane_address(v, pointer, stored.dtype)
    operands = (stored, where.pointer, where.offset, v.mask(m, mask_bits))
    store = v.b.effect(lambda e: call("pto.vsts", *e, dist=constant(spelled)), operands, writes=UB)
    packed = {"PK_B16": 2, "PK_B32": 2, "PK4_B32": 4}.get(spelled, 1)
    width = bits // 8 if spelled.startswith("1PT") else VECTOR_BYTES // packed
    store.access = VectorAccess(where.pointer, where.offset, width, writes=True)


def _loaded_bytes(distribution: str, width: int | None) -> int:
    """What a load of the distribution reads; ``width``: bits of an element in memory."""
    kind = distribution.split("_")[0]
    if kind == "BRC":
        return BLOCK_BYTES if width is None else width // 8
    parts = {"US": 2, "UNPK": 2, "UNPK4": 4}
    if kind == "E2B":
        return VECTOR_BYTES // BLOCK_BYTES * (width or 8) // 8
    return VECTOR_BYTES * 2 if kind == "DS" else VECTOR_BYTES // parts.get(kind, 1)


def lane_address(v: Visitor, pointer: Any, dtype: DType) -> Address:
    """Address of a vector access as pointer to the register's element type."""
    access = access_pointer(v, pointer, "the address of a vector access")
    return address(v, access.data, dtype, access.index, v.element(access.dtype))
