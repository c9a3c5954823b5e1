"""The corpus: every Ascend JIT kernel of tile_kernels, with the argument combinations that change its code."""

from __future__ import annotations

import importlib
import pkgutil

from corpus import cases_engram, cases_mhc, cases_moe, cases_quant_cast, cases_quant_fused, cases_rand, cases_transform
from corpus.case import Case
from tile_kernels_support import tile_kernels
from tilelang.jit import JITImpl

__all__ = ["all_cases", "ascend_kernels"]

_FAMILIES = (cases_mhc, cases_engram, cases_moe, cases_quant_cast, cases_quant_fused, cases_transform, cases_rand)


def all_cases() -> dict[str, Case]:
    """All cases by name."""
    cases = [case for family in _FAMILIES for case in family.cases()]
    by_name = {case.name: case for case in cases}
    assert len(by_name) == len(cases), "two cases of one name"
    return by_name


def ascend_kernels() -> set[str]:
    """Names of the Ascend JIT functions of the package."""
    package = tile_kernels()
    names = set()
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name.endswith("_asc"):
            names |= {name for name, item in vars(importlib.import_module(module.name)).items() if isinstance(item, JITImpl)}
    return names
