"""All cases of the suite at the sizes for the simulator; ``full_cases.py`` has those for a board."""

from __future__ import annotations

from tilelang_pto.compare.case import Case

from . import (
    expand,
    head_compute_mix,
    multilayer_recompute,
    norm_fn,
    post,
    pre_apply_mix,
    pre_big_fuse,
    pre_split_mixes,
    sinkhorn,
)
from .sizes import Sizes

__all__ = ["CASES", "FAMILIES", "all_cases"]

FAMILIES = (
    expand,
    head_compute_mix,
    pre_split_mixes,
    sinkhorn,
    pre_apply_mix,
    norm_fn,
    post,
    pre_big_fuse,
    multilayer_recompute,
)
"""Modules with a function ``cases(sizes)``; those that agree in a specialisation stand together, so that it is compiled once."""


def all_cases(sizes: Sizes) -> list[Case]:
    """The cases of all families."""
    return [case for family in FAMILIES for case in family.cases(sizes)]


CASES = all_cases(Sizes(full=False))
