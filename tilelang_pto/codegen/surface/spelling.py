"""How generic operations are spelled on each surface, and which features each one has. Data only.

``SPELLINGS[op][surface]`` maps a unit (``"scalar"``: the scalar unit of a vector or cube core; ``"simt"``: code inside ``pto.simt``) to
a :class:`Spelling`; the key ``"*"`` holds for every unit. A missing entry means: no such operation there.

Generic argument orders: ``load*``/``read_uncached`` (pointer, offset), ``store*``/``write_uncached`` (value, pointer, offset),
everything else as in the 2026-09 API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["FEATURES", "SPELLINGS", "Features", "Spelling"]


@dataclass(frozen=True, slots=True)
class Spelling:
    """A qualified name, the order in which it takes the generic arguments, and keywords it always carries."""

    name: str
    order: tuple[int, ...] = ()
    keywords: str = ""


@dataclass(frozen=True, kw_only=True)
class Features:
    """What a surface can do beyond plain calls."""

    has_scalar_namespace: bool
    has_shift_operators: bool
    """``<<`` and ``>>`` on runtime scalars."""
    has_unary_minus: bool
    has_short_circuit: bool
    """``and``/``or`` on runtime values, by the AST rewrite only."""
    has_bitcast: bool
    has_cast_attributes: bool
    """``rounding=`` and ``saturation=`` on the numeric cast."""
    has_init_core: bool
    has_loop_unroll: bool
    has_branch_get: bool
    has_mad_runtime_flags: bool
    has_div_precision: bool
    has_vsubc: bool
    has_vunpack: bool


FEATURES: Mapping[str, Features] = MappingProxyType(
    {
        "2026-08": Features(
            has_scalar_namespace=True,
            has_shift_operators=False,
            has_unary_minus=False,
            has_short_circuit=False,
            has_bitcast=False,
            has_cast_attributes=False,
            has_init_core=False,
            has_loop_unroll=False,
            has_branch_get=False,
            has_mad_runtime_flags=False,
            has_div_precision=False,
            has_vsubc=False,
            has_vunpack=False,
        ),
        "2026-09": Features(
            has_scalar_namespace=False,
            has_shift_operators=True,
            has_unary_minus=True,
            has_short_circuit=True,
            has_bitcast=True,
            has_cast_attributes=True,
            has_init_core=True,
            has_loop_unroll=True,
            has_branch_get=True,
            has_mad_runtime_flags=True,
            has_div_precision=True,
            has_vsubc=True,
            has_vunpack=True,
        ),
    }
)

_Units = Mapping[str, Spelling]
_BY_VALUE = (1, 2, 0)  # (value, pointer, offset) written as (pointer, offset, value)


def _entry(aug: _Units | str | None, sep: _Units | str | None) -> Mapping[str, _Units]:
    entry: dict[str, _Units] = {}
    for surface, units in (("2026-08", aug), ("2026-09", sep)):
        if isinstance(units, str):
            units = {"*": Spelling(units)}
        if units:
            entry[surface] = MappingProxyType(dict(units))
    return MappingProxyType(entry)


def _split(scalar: str, simt: str) -> _Units:
    return {"scalar": Spelling(scalar), "simt": Spelling(simt)}


def _simt(name: str) -> _Units:
    return {"simt": Spelling(name)}


def _outside(name: str, order: tuple[int, ...] = (), keywords: str = "") -> _Units:
    return {"scalar": Spelling(name, order, keywords)}


_TABLE: dict[str, Mapping[str, _Units]] = {
    # conversion and selection
    "cast": _entry("scalar.cast", "pto.cast"),
    "index_cast": _entry("scalar.cast", "pto.cast"),
    "bitcast": _entry(None, "pto.bitcast"),
    "convert": _entry(_simt("pto.convert"), "pto.cast"),
    "select": _entry("scalar.select", "pto.select"),
    # memory
    "load": _entry("scalar.load", "pto.load"),
    "store": _entry("scalar.store", "pto.store"),
    "load_scalar": _entry(_outside("pto.load_scalar"), _outside("pto.load")),
    "store_scalar": _entry(_outside("pto.store_scalar", _BY_VALUE), _outside("pto.store")),
    "read_uncached": _entry(_outside("pto.load_scalar", (), "bypass_l1=True"), _outside("pto.ld_dev")),
    "write_uncached": _entry(_outside("pto.store_scalar", _BY_VALUE, "bypass_l1=True"), _outside("pto.st_dev", _BY_VALUE)),
    # arithmetic with a function form
    "max": _entry("scalar.max", "pto.max"),
    "min": _entry("scalar.min", "pto.min"),
    "fmax": _entry(_split("scalar.max", "pto.fmax"), "pto.max"),
    "fmin": _entry(_split("scalar.min", "pto.fmin"), "pto.min"),
    "maximum": _entry(None, "pto.maximum"),
    "minimum": _entry(None, "pto.minimum"),
    "abs": _entry(None, "pto.abs"),
    "fabs": _entry(_simt("pto.absf"), "pto.abs"),
    "neg": _entry(None, "pto.neg"),
    "div": _entry(None, "pto.div"),
    "floordiv": _entry(None, "pto.floordiv"),
    "ceildiv": _entry(None, "pto.ceildiv"),
    "rem": _entry(None, "pto.rem"),
    "shl": _entry(None, "pto.shl"),
    "shr": _entry(None, "pto.shr"),
    "cmp": _entry(None, "pto.cmp"),
    # math; scalar.exp and its like of 2026-08 exist, but nothing lowers them to LLVM IR
    "exp": _entry(_simt("pto.exp"), "pto.exp"),
    "log": _entry(_simt("pto.log"), "pto.log"),
    "sqrt": _entry(_simt("pto.sqrt"), "pto.sqrt"),
    "fma": _entry(_simt("pto.fma"), "pto.fma"),
    "sin": _entry(_simt("pto.sin"), _simt("pto.sin")),
    "cos": _entry(_simt("pto.cos"), _simt("pto.cos")),
    "pow": _entry(_simt("pto.pow"), _simt("pto.pow")),
    "ceil": _entry(_simt("pto.ceil"), _simt("pto.ceil")),
    "floor": _entry(_simt("pto.floor"), _simt("pto.floor")),
    "rint": _entry(_simt("pto.rint"), _simt("pto.rint")),
    "round": _entry(_simt("pto.round"), _simt("pto.round")),
    "mulhi": _entry(_simt("pto.mulhi"), _simt("pto.mulhi")),
    "ldg": _entry(_simt("pto.ldg"), _simt("pto.ldg")),
    "stg": _entry(_simt("pto.stg"), _simt("pto.stg")),
}

SPELLINGS: Mapping[str, Mapping[str, _Units]] = MappingProxyType(_TABLE)
