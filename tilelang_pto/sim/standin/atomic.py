"""Atomic operations of SIMT functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.memory import STORE_L2, pointer
from tilelang_pto.sim.standin.registry import SIMT, entry
from tilelang_pto.sim.standin.simt import SIGNEDNESS

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder


def _atomic(rec: Recorder, opcode: str, target: Any, values: tuple[Any, ...], l2cache: Any, signedness: Any, need: bool) -> Any:
    base = pointer(rec, f"the pointer of {opcode}", target, "gm", "ub")
    kind = base.type.element
    scalar.token(rec, "l2cache", l2cache, STORE_L2)
    if not (kind.is_float or (kind.is_integer and kind.bits in (32, 64))):
        rec.refuse(f"{opcode} on {kind.name}", "i32, i64, f16, bf16 or f32")
    if kind.is_float and opcode in ("atomic_and", "atomic_or", "atomic_xor"):
        rec.refuse(f"{opcode} on {kind.name}", "an integer pointer")
    if kind.bits == 64 and base.type.space == "ub":
        rec.refuse(f"{opcode} on {kind.name} in UB", "a 32-bit type, or GM")
    attributes: dict[str, int | str | float] = {}
    if signedness is not None:
        if kind.is_float:
            rec.refuse(f"signedness on a {kind.name} pointer", "leave it out for floats")
        attributes["signedness"] = scalar.token(rec, "signedness", signedness, SIGNEDNESS)
    elif need and kind.is_integer:
        rec.refuse(f"{opcode} on integers without signedness", 'signedness="signed" or "unsigned"')
    operands = [base, *(scalar.scalar_of(rec, f"a value of {opcode}", value, kind) for value in values)]
    return rec.emit1(opcode, operands, kind, attributes)


def _register() -> None:
    for name in ("add", "sub", "exch", "and", "or", "xor"):

        def aug(
            rec: Recorder, ptr: Any, value: Any, *, l2cache: Any = "nmfv", signedness: Any = None, _opcode: str = f"atomic_{name}"
        ) -> Any:
            return _atomic(rec, _opcode, ptr, (value,), l2cache, signedness, False)

        def sep(rec: Recorder, ptr: Any, value: Any, *, l2cache: Any = "nmfv", _opcode: str = f"atomic_{name}") -> Any:
            return _atomic(rec, _opcode, ptr, (value,), l2cache, None, False)

        entry(f"atomic_{name}", sep=None, places=SIMT)(aug)
        entry(f"atomic_{name}", aug=None, places=SIMT)(sep)
    for name in ("max", "min"):

        def signed(
            rec: Recorder, ptr: Any, value: Any, *, l2cache: Any = "nmfv", signedness: Any = None, _opcode: str = f"atomic_{name}"
        ) -> Any:
            return _atomic(rec, _opcode, ptr, (value,), l2cache, signedness, True)

        entry(f"atomic_{name}", places=SIMT)(signed)


_register()


@entry("atomic_cas", sep=None, places=SIMT)
def atomic_cas_aug(rec: Recorder, ptr: Any, compare: Any, value: Any, *, l2cache: Any = "nmfv", signedness: Any = None) -> Any:
    """``pto.atomic_cas(pointer, compare, value)``."""
    return _atomic(rec, "atomic_cas", ptr, (compare, value), l2cache, signedness, False)


@entry("atomic_cas", aug=None, places=SIMT)
def atomic_cas_sep(rec: Recorder, ptr: Any, compare: Any, value: Any, *, l2cache: Any = "nmfv") -> Any:
    """``pto.atomic_cas(pointer, compare, value)``."""
    return _atomic(rec, "atomic_cas", ptr, (compare, value), l2cache, None, False)
