"""Which mutable integer variables never become negative.

Loop counters of multi-buffering (``x_ub_version_counter``) are memory in TIR, so nothing says that they only count up. Knowing it
turns ``counter % 7`` into one remainder instead of a floor modulo.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm import tirx

from ..types import DTYPES

__all__ = ["non_negative_variables"]


def non_negative_variables(body: Any, variables: Iterable[Any], loop_variables_from: int = 0) -> set[Any]:
    """Data variables of ``local.var`` integers whose every stored value is provably >= 0.

    Optimistic fixpoint: start with all candidates, drop those with a store that cannot be proven while the others are assumed.
    Signed arithmetic is taken not to overflow, as everywhere in TVM.
    """
    stores: dict[Any, list[Any]] = {variable: [] for variable in variables}
    known: set[Any] = set()

    def visit(node: Any) -> None:
        if isinstance(node, tirx.BufferStore) and node.buffer.data in stores:
            stores[node.buffer.data].append(node.value)
        elif isinstance(node, tirx.AllocBuffer) and node.buffer.data in stores and "tl.local_var_init" in (node.annotations or {}):
            stores[node.buffer.data].append(node.annotations["tl.local_var_init"])
        elif isinstance(node, tirx.For) and isinstance(node.min, tirx.IntImm) and int(node.min) >= loop_variables_from:
            known.add(node.loop_var)
        elif isinstance(node, tirx.AttrStmt) and node.attr_key == "thread_extent":
            known.add(node.node.var)

    tirx.stmt_functor.post_order_visit(body, visit)
    candidates = {variable for variable in stores if str(variable.type_annotation.element_type.dtype).startswith(("int", "uint"))}
    while True:
        failing = {v for v in candidates if not all(_non_negative(value, candidates, known) for value in stores[v])}
        if not failing:
            return candidates
        candidates -= failing


def _keeps_sign(source: str, target: str) -> bool:
    """Whether every non-negative value of an integer type is a non-negative value of another."""
    if source not in DTYPES or target not in DTYPES:
        return False
    return DTYPES[source].is_integer and DTYPES[target].is_integer and DTYPES[source].maximum <= DTYPES[target].maximum


_MONOTONE = (tirx.Add, tirx.Mul, tirx.FloorDiv, tirx.Div, tirx.Min)


def _non_negative(value: Any, candidates: set[Any], known: set[Any]) -> bool:
    if isinstance(value, tirx.IntImm):
        return int(value) >= 0
    if isinstance(value, tirx.Var):
        return value in known
    if isinstance(value, tirx.BufferLoad):
        return value.buffer.data in candidates
    if isinstance(value, tirx.Cast):
        return _keeps_sign(str(value.value.dtype), str(value.dtype)) and _non_negative(value.value, candidates, known)
    if isinstance(value, _MONOTONE):
        return _non_negative(value.a, candidates, known) and _non_negative(value.b, candidates, known)
    if isinstance(value, tirx.Max):
        return _non_negative(value.a, candidates, known) or _non_negative(value.b, candidates, known)
    if isinstance(value, tirx.Mod):
        return _non_negative(value.a, candidates, known)
    if isinstance(value, tirx.FloorMod):
        return _non_negative(value.b, candidates, known)
    return False
