"""SIMT queries and collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.registry import SIMT, entry
from tilelang_pto.sim.standin.types import PLAIN
from tilelang_pto.sim.standin.values import SurfaceScalar

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

I1, I32, I64 = PLAIN["i1"], PLAIN["i32"], PLAIN["i64"]

_REDUX = ("i32", "f16", "f32")
_SHUFFLE = ("i32", "i64", "f16", "f32")
SIGNEDNESS = ("signed", "unsigned")


def _register_queries() -> None:
    simple = [f"{base}_{axis}" for base in ("get_tid", "get_block_dim", "get_grid_dim", "get_block_idx") for axis in "xyz"]
    simple += ["get_laneid", "get_veccoreid", *(f"get_lanemask_{kind}" for kind in ("eq", "le", "lt", "ge", "gt"))]
    for name in simple:

        def query(rec: Recorder, _opcode: str = name) -> Any:
            return rec.emit1(_opcode, (), I32)

        entry(name, places=SIMT)(query)
    for name in ("get_tid", "get_block_dim", "get_grid_dim"):

        def triple(rec: Recorder, _opcode: str = name) -> Any:
            return tuple(rec.emit1(f"{_opcode}_{axis}", (), I32) for axis in "xyz")

        entry(name, opcodes=(), places=SIMT)(triple)


_register_queries()


def _typed(rec: Recorder, name: str, value: Any, legal: tuple[str, ...]) -> SurfaceScalar:
    operand = scalar.as_scalar(rec, f"the value of {name}", value)
    if operand.dtype.name not in legal:
        rec.refuse(f"{name} of {operand.dtype.name}", "one of " + ", ".join(legal))
    return operand


def _reduce(rec: Recorder, name: str, value: Any, signedness: Any, need: bool) -> Any:
    operand = _typed(rec, name, value, _REDUX)
    attributes: dict[str, int | str | float] = {}
    if signedness is not None:
        if operand.dtype.is_float:
            rec.refuse(f"signedness with a {operand.dtype.name} value", "leave it out for floats")
        attributes["signedness"] = scalar.token(rec, "signedness", signedness, SIGNEDNESS)
    elif need and operand.dtype.is_integer:
        rec.refuse(f"{name} of an integer without signedness", 'signedness="signed" or "unsigned"')
    return rec.emit1(name, (operand,), operand.dtype, attributes)


@entry("redux_add", sep=None, places=SIMT)
def redux_add_aug(rec: Recorder, value: Any, *, signedness: Any = None) -> Any:
    """``pto.redux_add(value)``: the sum over a warp."""
    return _reduce(rec, "redux_add", value, signedness, False)


@entry("redux_add", aug=None, places=SIMT)
def redux_add_sep(rec: Recorder, value: Any) -> Any:
    """``pto.redux_add(value)``: the sum over a warp."""
    return _reduce(rec, "redux_add", value, None, False)


def _register_collectives() -> None:
    for name in ("redux_max", "redux_min"):

        def redux(rec: Recorder, value: Any, *, signedness: Any = None, _opcode: str = name) -> Any:
            return _reduce(rec, _opcode, value, signedness, True)

        entry(name, places=SIMT)(redux)
    for name in ("vote_all", "vote_any", "vote_uni", "vote_ballot"):

        def vote(rec: Recorder, pred: Any, _opcode: str = name) -> Any:
            return rec.emit1(_opcode, (_typed(rec, _opcode, pred, ("i1",)),), I32 if _opcode == "vote_ballot" else I1)

        entry(name, places=SIMT)(vote)
    for name, argument in (("shuffle_idx", "index"), ("shuffle_up", "offset"), ("shuffle_down", "offset"), ("shuffle_bfly", "mask")):
        entry(name, places=SIMT)(_shuffle(name, argument))


def _shuffle(name: str, argument: str) -> Any:
    def record(rec: Recorder, value: Any, lane: Any, width: Any) -> Any:
        operand = _typed(rec, name, value, _SHUFFLE)
        if width not in (16, 32) or isinstance(width, bool):
            rec.refuse(f"width={width!r} is not legal", "16 or 32")
        place = scalar.scalar_of(rec, f"the {argument} of {name}", lane, I32)
        return rec.emit1(name, (operand, place), operand.dtype, {"width": width})

    if argument == "index":

        def by_index(rec: Recorder, value: Any, index: Any, *, width: Any = 32) -> Any:
            return record(rec, value, index, width)

        return by_index
    if argument == "mask":

        def by_mask(rec: Recorder, value: Any, mask: Any, *, width: Any = 32) -> Any:
            return record(rec, value, mask, width)

        return by_mask

    def by_offset(rec: Recorder, value: Any, offset: Any, *, width: Any = 32) -> Any:
        return record(rec, value, offset, width)

    return by_offset


_register_collectives()


def _register_clocks() -> None:
    for name, dtype in (("get_clock32", I32), ("get_clock64", I64)):

        def clock(rec: Recorder, _opcode: str = name, _dtype: Any = dtype) -> Any:
            return rec.emit1(_opcode, (), _dtype)

        entry(name, places=SIMT)(clock)


_register_clocks()
