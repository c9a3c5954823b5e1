"""Matrix products of the cube core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.control import require_explicit
from tilelang_pto.sim.standin.memory import pointer
from tilelang_pto.sim.standin.registry import KERNEL, entry
from tilelang_pto.sim.standin.values import Pointer, SurfaceScalar, Value, describe

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

UNIT_FLAGS = ("check_only", "check_and_set")
SATURATION = {"on": "on", "sat": "on", "off": "off", "nosat": "off"}
TF32_MODES = ("round_even", "round_away")
FLOAT8 = ("f8e4m3", "f8e5m2")
FLOAT4 = ("f4e2m1x2", "f4e1m2x2")


def _check_types(rec: Recorder, name: str, left: Pointer, right: Pointer, result: Pointer) -> None:
    a, b, c = (end.type.element.record.dtype for end in (left, right, result))
    if "mx" in name:
        legal = c == "f32" and ((a in FLOAT8 and b in FLOAT8) or (a in FLOAT4 and b in FLOAT4))
        advice = "two operands of 8-bit floats, or two of 4-bit floats, with an f32 result"
    else:
        same = a == b and a in ("f16", "bf16", "f32", "hif8")
        legal = (c == "f32" and (same or (a in FLOAT8 and b in FLOAT8))) or (a, b, c) == ("i8", "i8", "i32")
        advice = "f16, bf16, f32, hif8 or 8-bit floats with an f32 result, or i8 with an i32 result"
    if not legal:
        rec.refuse(f"{name} of {a} and {b} into {c}", advice)


def _mad(
    rec: Recorder,
    name: str,
    ends: tuple[Any, ...],
    extents: tuple[Any, ...],
    flags: dict[str, Any],
    runtime: bool,
    init: Any = None,
    bias_init: Any = None,
) -> None:
    require_explicit(rec, f"pto.{name}")
    operands: list[Value] = []
    for value, word, space in zip(ends, ("lhs", "rhs", "dst", "bias"), ("left", "right", "acc", "bias"), strict=False):
        operands.append(pointer(rec, f"{word} of {name}", value, space))
    left, right, result = operands[:3]
    assert isinstance(left, Pointer) and isinstance(right, Pointer) and isinstance(result, Pointer)
    _check_types(rec, name, left, right, result)
    if len(operands) == 4:
        bias = operands[3]
        assert isinstance(bias, Pointer)
        if bias.type.element.record != result.type.element.record:
            rec.refuse(f"a bias of {bias.type.element.name} for a result of {result.type.element.name}", "a bias of the result's type")
    for word, value in zip("mnk", extents, strict=True):
        number = scalar.integral(rec, word, value)
        if isinstance(number.known, int) and not 0 <= number.known <= 4095:
            rec.refuse(f"{word}={number.known} is out of range", "0 to 4095")
        operands.append(number)
    attributes: dict[str, int | str | float] = {}
    unit_flag, disable_gemv = flags["unit_flag"], flags["disable_gemv"]
    chosen: dict[str, Any] = {}
    if isinstance(unit_flag, SurfaceScalar) and runtime:
        chosen["unit_flag"] = unit_flag
    elif unit_flag is not None:
        attributes["unit_flag"] = scalar.token(rec, "unit_flag", unit_flag, UNIT_FLAGS)
    if isinstance(disable_gemv, SurfaceScalar) and runtime:
        chosen["disable_gemv"] = disable_gemv
    else:
        attributes["disable_gemv"] = scalar.static_flag(rec, "disable_gemv", disable_gemv)
    for word, value in (("init", init), ("bias_init", bias_init)):
        if value is None:
            continue
        if not isinstance(value, SurfaceScalar):
            rec.refuse(
                f"{word} is {describe(value)}", f"a runtime value; for a fixed start pto.mad, pto.mad_acc or pto.mad_bias without {word}"
            )
        chosen[word] = value
    for word, value in chosen.items():
        attributes[f"runtime_{word}"] = 1
        operands.append(scalar.integral(rec, word, value))
    if flags["sat"] is not None:
        attributes["sat"] = SATURATION[scalar.token(rec, "sat", flags["sat"], tuple(SATURATION))]
        if result.type.element.is_integer:
            rec.refuse(f"sat on {name} with an integer result", "leave it out")
    scalar.static_flag(rec, "n_dir", flags["n_dir"])  # the order in which results are made; no effect on them
    mode = flags.get("tf32_mode")
    if mode is not None:
        if left.type.element.name != "f32":
            rec.refuse(f"tf32_mode with operands of {left.type.element.name}", "f32 operands")
        attributes["tf32_mode"] = scalar.token(rec, "tf32_mode", mode, TF32_MODES)
    rec.emit(name, operands, (), attributes)


def _register() -> None:
    for name in ("mad", "mad_acc"):

        def august(
            rec: Recorder, lhs: Any, rhs: Any, dst: Any, m: Any, n: Any, k: Any, *, unit_flag: Any = None, disable_gemv: Any = False,
            sat: Any = None, tf32_mode: Any = None, n_dir: Any = False, _name: str = name,
        ) -> None:  # fmt: skip
            flags = {"unit_flag": unit_flag, "disable_gemv": disable_gemv, "sat": sat, "tf32_mode": tf32_mode, "n_dir": n_dir}
            _mad(rec, _name, (lhs, rhs, dst), (m, n, k), flags, False)

        def september(
            rec: Recorder, lhs: Any, rhs: Any, dst: Any, m: Any, n: Any, k: Any, *, unit_flag: Any = None, disable_gemv: Any = False,
            sat: Any = None, tf32_mode: Any = None, n_dir: Any = False, init: Any = None, _name: str = name,
        ) -> None:  # fmt: skip
            flags = {"unit_flag": unit_flag, "disable_gemv": disable_gemv, "sat": sat, "tf32_mode": tf32_mode, "n_dir": n_dir}
            _mad(rec, _name, (lhs, rhs, dst), (m, n, k), flags, True, init)

        entry(name, sep=None, places=KERNEL)(august)
        entry(name, aug=None, places=KERNEL)(september)

    @entry("mad_bias", sep=None, places=KERNEL)
    def bias_august(
        rec: Recorder, lhs: Any, rhs: Any, dst: Any, bias: Any, m: Any, n: Any, k: Any, *, unit_flag: Any = None, disable_gemv: Any = False,
        sat: Any = None, tf32_mode: Any = None, n_dir: Any = False,
    ) -> None:  # fmt: skip
        """``pto.mad_bias(lhs, rhs, dst, bias, m, n, k)``."""
        flags = {"unit_flag": unit_flag, "disable_gemv": disable_gemv, "sat": sat, "tf32_mode": tf32_mode, "n_dir": n_dir}
        _mad(rec, "mad_bias", (lhs, rhs, dst, bias), (m, n, k), flags, False)

    @entry("mad_bias", aug=None, places=KERNEL)
    def bias_september(
        rec: Recorder, lhs: Any, rhs: Any, dst: Any, bias: Any, m: Any, n: Any, k: Any, *, unit_flag: Any = None, disable_gemv: Any = False,
        sat: Any = None, tf32_mode: Any = None, n_dir: Any = False, init: Any = None, bias_init: Any = None,
    ) -> None:  # fmt: skip
        """``pto.mad_bias(lhs, rhs, dst, bias, m, n, k)``; ``init`` and ``bias_init`` choose the start at run time."""
        flags = {"unit_flag": unit_flag, "disable_gemv": disable_gemv, "sat": sat, "tf32_mode": tf32_mode, "n_dir": n_dir}
        _mad(rec, "mad_bias", (lhs, rhs, dst, bias), (m, n, k), flags, True, init, bias_init)

    for name in ("mad_mx", "mad_mx_acc"):

        def scaled(
            rec: Recorder, lhs: Any, rhs: Any, dst: Any, m: Any, n: Any, k: Any, *, unit_flag: Any = None, disable_gemv: Any = False,
            sat: Any = None, n_dir: Any = False, _name: str = name,
        ) -> None:  # fmt: skip
            flags = {"unit_flag": unit_flag, "disable_gemv": disable_gemv, "sat": sat, "n_dir": n_dir}
            _mad(rec, _name, (lhs, rhs, dst), (m, n, k), flags, False)

        entry(name, places=KERNEL)(scaled)

    @entry("mad_mx_bias", places=KERNEL)
    def scaled_bias(
        rec: Recorder, lhs: Any, rhs: Any, dst: Any, bias: Any, m: Any, n: Any, k: Any, *, unit_flag: Any = None, disable_gemv: Any = False,
        sat: Any = None, n_dir: Any = False,
    ) -> None:  # fmt: skip
        """``pto.mad_mx_bias(lhs, rhs, dst, bias, m, n, k)``."""
        flags = {"unit_flag": unit_flag, "disable_gemv": disable_gemv, "sat": sat, "n_dir": n_dir}
        _mad(rec, "mad_mx_bias", (lhs, rhs, dst, bias), (m, n, k), flags, False)


_register()
