"""Bits of a scalar as another type, for the API that cannot say so: written to UB as one type and read back as the other.

Every thread has a place of its own, as has the scalar unit; UB for them is allocated and counted like any other.
"""

from __future__ import annotations

from typing import Any

from ..emit import call
from ..types import I32, Type
from ..values import Value
from ..visitor import Storage, Visitor
from .memory import allocate, describe_view, pointer_to

PLACE = 4
"""Bytes of one place."""


def through_ub(v: Visitor, value: Value, target: Type) -> Value:
    """The bits of ``value`` as a scalar of the same width."""
    if v.region == "simd":
        v.unsupported(f"PTODSL {v.surface.name} cannot reinterpret the bits of a scalar in a vector function", "do it in front of T.SimdVF")
    if value.dtype.bits > 8 * PLACE:
        v.unsupported(f"PTODSL {v.surface.name} cannot reinterpret the bits of a {value.type} scalar", "compile for the 2026-09 surface")
    if v.core == "cube":
        v.unsupported(f"PTODSL {v.surface.name} cannot reinterpret the bits of a scalar on a cube core", "compile for the 2026-09 surface")
    simt = v.region == "simt"
    scratch = _scratch(v, "bits_of_threads" if simt else "bits_of_scalars", v.threads[0] * v.threads[1] * v.threads[2] if simt else 1)
    place = _thread(v) if simt else v.index(0)
    verbs = ("store", "load") if simt else ("store_scalar", "load_scalar")
    storing, loading = (v.surface.entry(verb, v.arith.unit) for verb in verbs)
    order = storing.order or (0, 1, 2)
    operands = (v.arith.typed(value), pointer_to(v, scratch, value.dtype), place)
    v.b.effect(lambda e: call(storing.name, *(e[i] for i in order)), operands, writes=scratch)
    source = (pointer_to(v, scratch, target.dtype), place)
    return v.b.pure(("bits", loading.name), lambda e: call(loading.name, *e), source, target, hint="bits", memory=scratch, pinned=True)


def _scratch(v: Visitor, name: str, places: int) -> Storage:
    """UB for that many places; what was allocated for an earlier vector function serves if it is large enough."""
    for size in (known for known in v.storage if isinstance(known, tuple) and known[0] == name and known[1] >= places):
        return v.storage[size]
    key: tuple[Any, ...] = (name, places)
    v.storage[key] = allocate(v, "ub", name, "uint8", places * PLACE)
    describe_view(v, v.storage[key], v.storage[key].name)
    return v.storage[key]


def _thread(v: Visitor) -> Value:
    """Number of the thread among all of the vector function."""
    number = v.arith.number(0, I32)
    for axis, extent in reversed(list(zip("xyz", v.threads, strict=True))):
        if extent == 1:
            continue
        index = _index(v, f"pto.get_tid_{axis}", extent)
        number = v.arith.add(v.arith.mul(number, v.arith.number(extent, I32)), index)
    return number


def _index(v: Visitor, getter: str, extent: int) -> Value:
    return v.b.pure(getter, lambda _: call(getter), (), I32, interval=(0, extent - 1), pinned=True, hint="t" + getter[-1])
