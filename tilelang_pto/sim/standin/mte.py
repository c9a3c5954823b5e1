"""Data movement between GM and UB, and the store-atomic mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.control import require_explicit
from tilelang_pto.sim.standin.memory import STORE_L2, pointer
from tilelang_pto.sim.standin.registry import KERNEL, entry
from tilelang_pto.sim.standin.types import PLAIN
from tilelang_pto.sim.standin.values import Pointer, SurfaceScalar, Value, describe

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

INDEX, F32 = PLAIN["index"], PLAIN["f32"]


def triple(rec: Recorder, name: str, value: Any) -> list[SurfaceScalar]:
    """Three numbers: a count and two strides or gaps."""
    if not isinstance(value, tuple) or len(value) != 3:
        rec.refuse(f"{name} is {describe(value)}", f"a tuple of three: {name}=(count, source stride, destination stride)")
    return [scalar.integral(rec, f"{name}[{i}]", item) for i, item in enumerate(value)]


def burst_loops(rec: Recorder, loops: Any) -> tuple[int, list[SurfaceScalar]]:
    """The number of outer loops and their numbers, three each."""
    if loops is None:
        return 0, []
    if not isinstance(loops, (list, tuple)):
        rec.refuse(f"loops is {describe(loops)}", "a list of (count, source stride, destination stride), inner loop first")
    out: list[SurfaceScalar] = []
    for level in loops:
        out += triple(rec, "a level of loops", level)
    return len(loops), out


def check_widths(rec: Recorder, name: str, source: Pointer, destination: Pointer) -> None:
    """Refuse a copy between elements of different width."""
    if source.type.element.bytes != destination.type.element.bytes:
        rec.refuse(
            f"{name} from {source.type.element.name} to {destination.type.element.name}",
            "pointers with elements of one size: cast both with pto.castptr",
        )


def check_static_range(rec: Recorder, name: str, value: SurfaceScalar, high: int) -> None:
    """Refuse a constant outside ``0..high``."""
    if isinstance(value.known, int) and not 0 <= value.known <= high:
        rec.refuse(f"{name}={value.known} is out of range", f"0 to {high}")


def _gm_ub(rec: Recorder, source: Any, destination: Any, l2_cache_ctl: Any, len_burst: Any, nburst: Any, loops: Any, pad: Any) -> None:
    require_explicit(rec, "pto.mte_gm_ub")
    src = pointer(rec, "the source of mte_gm_ub", source, "gm")
    dst = pointer(rec, "the destination of mte_gm_ub", destination, "ub")
    check_widths(rec, "mte_gm_ub", src, dst)
    control = scalar.static_int(rec, "l2_cache_ctl", l2_cache_ctl, 0, 15)
    length = scalar.integral(rec, "len_burst", len_burst)
    check_static_range(rec, "len_burst", length, 65535)
    operands: list[Value] = [src, dst, length, *triple(rec, "nburst", nburst)]
    levels, extra = burst_loops(rec, loops)
    operands += extra
    padding = 0
    if pad is not None:
        if not isinstance(pad, tuple) or len(pad) not in (1, 3):
            rec.refuse(f"pad is {describe(pad)}", "(value,) or (value, left, right)")
        padding = len(pad)
        operands.append(_pad_value(rec, pad[0], dst))
        for side, count in zip(("left", "right"), pad[1:], strict=False):
            amount = scalar.integral(rec, f"the {side} pad", count)
            check_static_range(rec, f"the {side} pad", amount, 255)
            operands.append(amount)
    rec.emit("mte_gm_ub", operands, (), {"l2_cache_ctl": control, "loops": levels, "pad": padding})


def _pad_value(rec: Recorder, value: Any, dst: Pointer) -> SurfaceScalar:
    element = dst.type.element
    if isinstance(value, SurfaceScalar):
        if value.dtype.bits not in (8, 16, 32) or value.dtype.family == "index":
            rec.refuse(f"the pad value is {describe(value)}", "an 8, 16 or 32 bit scalar")
        if element.bits not in (8, value.dtype.bits):
            rec.refuse(f"the pad value is {describe(value)} and the destination holds {element.name}", "a scalar of the same width")
        return value
    if not scalar.is_literal(value):
        rec.refuse(f"the pad value is {describe(value)}", "a typed constant: pto.const(0.0, dtype=...)")
    if value != 0 and element != F32:
        rec.refuse(f"the pad value {value!r} would become an f32", f"a typed constant: pto.const({value!r}, dtype=pto.{element.name})")
    if element.bits not in (8, 16, 32):
        rec.refuse(f"padding of {element.name} elements", "elements of 8, 16 or 32 bits")
    return scalar.constant(rec, float(value), F32) if element.bits == 32 else scalar.constant(rec, 0, PLAIN[f"i{element.bits}"])


def _ub_gm(rec: Recorder, source: Any, destination: Any, len_burst: Any, nburst: Any, loops: Any, l2_cache: Any) -> None:
    require_explicit(rec, "pto.mte_ub_gm")
    src = pointer(rec, "the source of mte_ub_gm", source, "ub")
    dst = pointer(rec, "the destination of mte_ub_gm", destination, "gm")
    check_widths(rec, "mte_ub_gm", src, dst)
    length = scalar.integral(rec, "len_burst", len_burst)
    check_static_range(rec, "len_burst", length, 65535)
    policy = scalar.token(rec, "l2_cache", l2_cache, STORE_L2)
    operands: list[Value] = [src, dst, length, *triple(rec, "nburst", nburst)]
    levels, extra = burst_loops(rec, loops)
    rec.emit("mte_ub_gm", [*operands, *extra], (), {"l2_cache": policy, "loops": levels})


def _register() -> None:
    for name in ("mte_gm_ub", "mte_load"):

        def gm_ub(
            rec: Recorder,
            source: Any,
            destination: Any,
            l2_cache_ctl: Any,
            len_burst: Any,
            *,
            nburst: Any,
            loops: Any = None,
            pad: Any = None,
        ) -> None:
            _gm_ub(rec, source, destination, l2_cache_ctl, len_burst, nburst, loops, pad)

        entry(name, opcodes=("mte_gm_ub",), places=KERNEL)(gm_ub)
    for name in ("mte_ub_gm", "mte_store"):

        def ub_gm(
            rec: Recorder, source: Any, destination: Any, len_burst: Any, *, nburst: Any, loops: Any = None, l2_cache: Any = "nmfv"
        ) -> None:
            _ub_gm(rec, source, destination, len_burst, nburst, loops, l2_cache)

        entry(name, opcodes=("mte_ub_gm",), places=KERNEL)(ub_gm)
    for suffix in ("add", "max", "min", "f32", "f16", "bf16", "s32", "s16", "s8", "none"):

        def mode(rec: Recorder, _opcode: str = f"set_atomic_{suffix}") -> None:
            rec.emit(_opcode)

        entry(f"set_atomic_{suffix}", places=KERNEL)(mode)


_register()


@entry("mte_ub_ub", places=KERNEL)
def mte_ub_ub(rec: Recorder, source: Any, destination: Any, len_burst: Any, *, nburst: Any) -> None:
    """``pto.mte_ub_ub(src, dst, len_burst, nburst=(count, src gap, dst gap))``, all in 32-byte units."""
    require_explicit(rec, "pto.mte_ub_ub")
    src = pointer(rec, "the source of mte_ub_ub", source, "ub")
    dst = pointer(rec, "the destination of mte_ub_ub", destination, "ub")
    check_widths(rec, "mte_ub_ub", src, dst)
    length = scalar.integral(rec, "len_burst", len_burst)
    check_static_range(rec, "len_burst", length, 65535)
    rec.emit("mte_ub_ub", [src, dst, length, *triple(rec, "nburst", nburst)])


@entry("set_store_atomic_cfg", opcodes=(), places=KERNEL)
def set_store_atomic_cfg(rec: Recorder, config: Any) -> None:
    """Scalar-store configuration; MTE stores do not see it, so nothing is recorded."""
