"""Matrix multiplication: ``mad`` in all its modes, and the modes of the cube core that are state in TIR.

PTODSL wants at every ``mad`` what TileLang sets once for those that follow (HF32, direction), and August 2026 knows no flags that are only
known at run time: there a ``mad`` becomes one per case, under branches.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, Literal

from tvm import tirx

from ..emit import call, constant
from ..registry import op
from ..types import BOOL, DTYPES, I32, DType
from ..values import Value
from ..visitor import Visitor, operation_name
from .control import fork
from .operands import field, operand, require_fits

LARGEST_EXTENT = 4095
"""Fields of 12 bits: rows, columns and depth of a multiplication."""

SMALL_TILE = 10
"""Below that many 16 x 16 squares an accumulating ``mad`` must wait for the one before it."""

Flag = int | tuple[Value, "Flag", "Flag"]
"""Unit flag of a ``mad``: 0 off, 2 check, 3 check and set; or a condition and the flag where it holds and where not."""

FLAGS: Mapping[int, str | None] = {0: None, 2: "check_only", 3: "check_and_set"}

_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
_PRODUCTS = {
    **{(name, name): "float32" for name in ("float16", "bfloat16", "float32")},
    **{(a, b): "float32" for a in _FLOAT8 for b in _FLOAT8},
    ("int8", "int8"): "int32",
}
_SCALED_PRODUCTS = {
    **{(a, b): "float32" for a in _FLOAT8 for b in _FLOAT8},
    ("float4_e2m1fnx2", "float4_e2m1fnx2"): "float32",
}

HF32_MODES = {0: None, 1: "round_away", 2: "round_even"}
DIRECTIONS = ("m", "n")


@op("tl.ascend_set_hf32_mode", arity=1, regions="scalar", literals={"mode": tuple(HF32_MODES)})
def ascend_set_hf32_mode(v: Visitor, node: Any, mode: Any) -> None:
    """Rounding of float32 operands to HF32 by the ``mad`` that follow; it becomes an option of each."""
    v.set_mode("hf32", int(mode))


@op("tl.ascend_set_mmad_direction", arity=1, regions="scalar", literals={"direction": DIRECTIONS})
def ascend_set_mmad_direction(v: Visitor, node: Any, direction: Any) -> None:
    """Whether the ``mad`` that follow go along rows or columns first; it becomes an option of each."""
    v.set_mode("direction", DIRECTIONS.index(str(direction.value)))


def _register_mad(family: Literal["mad", "mad_mx"], types: Mapping[tuple[str, str], str]) -> None:
    @op(
        f"tl.ascend_{family}",
        arity=10,
        regions="scalar",
        core="cube",
        literals={"gemv": (0, 1), "bias": (0,)},
        spaces={"dst": "acc", "left": "left", "right": "right"},
        dtypes={DTYPES[name].pto for pair in types for name in pair},
        emits=(family, f"{family}_acc", "pipe_barrier"),
    )
    def mad(
        v: Visitor, node: Any, dst: Any, left: Any, right: Any, m: Any, k: Any, n: Any, flag: Any, gemv: Any, bias: Any, clear: Any
    ) -> None:
        """L0A times L0B into L0C."""
        tiles = (operand(v, left, "left tile"), operand(v, right, "right tile"), operand(v, dst, "accumulator"))
        extents = tuple(
            field(v, value, f"{name} of a matrix multiplication", LARGEST_EXTENT) for name, value in zip("MNK", (m, n, k), strict=True)
        )
        start = v.arith.cast(v.expr(clear), BOOL)
        multiply(v, family, tiles, extents, clear=start, flag=unit_flag(v, flag), normal_row=int(gemv) == 1)


_register_mad("mad", _PRODUCTS)
_register_mad("mad_mx", _SCALED_PRODUCTS)


def multiply(
    v: Visitor,
    family: Literal["mad", "mad_mx"],
    tiles: tuple[Value, Value, Value],
    extents: tuple[Value, ...],
    *,
    clear: Value,
    flag: Flag,
    flag_of_clear: Flag | None = None,
    normal_row: bool = True,
) -> None:
    """One multiplication.

    Args:
        tiles: pointers to A in L0A, B in L0B, C in L0C.
        extents: rows, columns, depth.
        clear: start from zero instead of what C holds.
        flag: unit flag.
        flag_of_clear: what the unit flag amounts to where ``clear`` holds, if that is simpler.
        normal_row: a single row lies as any other tile, not as a vector.
    """
    check_types(v, family, *(tile.dtype for tile in tiles))
    rows, columns, _ = extents
    options: dict[str, ast.expr] = {}
    if normal_row and rows.low <= 1 <= rows.high:
        options["disable_gemv"] = constant(True)
    if family == "mad" and tiles[0].dtype == DTYPES["float32"]:
        rounding = HF32_MODES[v.mode("hf32", "the HF32 mode")]
        if rounding:
            options["tf32_mode"] = constant(rounding)
    if v.mode("direction", "the direction of matrix multiplications"):
        options["n_dir"] = constant(True)
    squares = -(-max(rows.low, 0) // 16) * -(-max(columns.low, 0) // 16)
    if squares < SMALL_TILE and clear.literal is not True:
        v.b.effect(lambda _: call("pto.pipe_barrier", constant("M")))
    operands = [*tiles, *extents]
    if family == "mad" and v.surface.has_mad_runtime_flags:
        _with_runtime_flags(v, operands, clear, flag, options)
        return

    def case(function: str, token: str | None) -> None:
        unit = {"unit_flag": constant(token)} if token else {}
        v.b.effect(lambda e: call(function, *e, **unit, **options), operands)

    def flagged(function: str, which: Flag) -> None:
        fork_flag(v, which, lambda token: case(function, token), FLAGS)

    at_start = flag if flag_of_clear is None else flag_of_clear
    fork(v, clear, lambda: flagged(f"pto.{family}", at_start), lambda: flagged(f"pto.{family}_acc", flag))


def check_types(v: Visitor, family: str, left: DType, right: DType, result: DType) -> None:
    """Refuse element types the cube core does not multiply."""
    table = _PRODUCTS if family == "mad" else _SCALED_PRODUCTS
    if table.get((left.tir, right.tir)) != result.tir:
        pairs = ", ".join(f"{a} x {b} -> {c}" for (a, b), c in table.items())
        kind = "a matrix multiplication" if family == "mad" else "a block-scaled matrix multiplication"
        v.unsupported(f"{kind} of {left.tir} x {right.tir} -> {result.tir}", f"supported are {pairs}")


def _with_runtime_flags(v: Visitor, operands: list[Value], clear: Value, flag: Flag, options: Mapping[str, ast.expr]) -> None:
    """September 2026 takes flags as values."""
    function = "pto.mad" if clear.literal is True else "pto.mad_acc"
    runtime: dict[str, Value] = {}
    fixed = dict(options)
    if clear.literal is None:
        runtime["init"] = v.arith.cast(clear, I32)
    if isinstance(flag, tuple):
        runtime["unit_flag"] = flag_value(v, flag)
    elif FLAGS[flag]:
        fixed["unit_flag"] = constant(FLAGS[flag])
    count = len(operands)
    v.b.effect(lambda e: call(function, *e[:count], **dict(zip(runtime, e[count:], strict=True)), **fixed), [*operands, *runtime.values()])


# -- unit flags ----------------------------------------------------------------------------------------------------------


def unit_flag(v: Visitor, node: Any) -> Flag:
    """The unit flag an operand asks for."""
    if isinstance(node, tirx.Select):
        return choice(v, v.expr(node.condition), unit_flag(v, node.true_value), unit_flag(v, node.false_value))
    if isinstance(node, tirx.Call) and operation_name(node) == "tirx.if_then_else":
        return choice(v, v.expr(node.args[0]), unit_flag(v, node.args[1]), unit_flag(v, node.args[2]))
    value = v.expr(node)
    require_fits(v, value, "the unit flag", 3)
    if value.literal is not None:
        number = int(value.literal)
        if number not in FLAGS:
            v.unsupported(f"unit flag {number}", "use 0 (off), 2 (check) or 3 (check and set)")
        return number
    equal = {number: v.arith.compare("==", value, v.arith.number(number, value.type)) for number in (2, 3)}
    return choice(v, equal[3], 3, choice(v, equal[2], 2, 0))


def choice(v: Visitor, condition: Value, where: Flag, otherwise: Flag) -> Flag:
    """``where`` if the condition holds, else ``otherwise``."""
    if condition.literal is not None:
        return where if condition.literal else otherwise
    if isinstance(where, tuple) and where[2] == otherwise:  # two conditions for the same flag are one
        return v.arith.logical("&", condition, where[0]), where[1], otherwise
    return where if where == otherwise else (condition, where, otherwise)


def lowered(v: Visitor, flag: Flag) -> Flag:
    """The flag for a step that is not the last: it checks, but does not set."""
    if isinstance(flag, tuple):
        return choice(v, flag[0], lowered(v, flag[1]), lowered(v, flag[2]))
    return 2 if flag == 3 else flag


def flag_value(v: Visitor, flag: Flag) -> Value:
    """The flag as a number at run time."""
    if isinstance(flag, tuple):
        chosen = v.arith.select(flag[0], flag_value(v, flag[1]), flag_value(v, flag[2]))
        chosen.hint = "unit_flag"
        return chosen
    return v.arith.number(flag, I32)


def fork_flag(v: Visitor, flag: Flag, case: Callable[[str | None], None], tokens: Mapping[int, str | None]) -> None:
    """``case`` for the flag's token, or once per token under branches."""
    if isinstance(flag, tuple):
        condition, where, otherwise = flag
        fork(v, condition, lambda: fork_flag(v, where, case, tokens), lambda: fork_flag(v, otherwise, case, tokens))
    else:
        case(tokens[flag])
