"""Rules, API tables, stand-in and engine know the same operations."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import tilelang_pto.codegen.rules as rules
from tilelang_pto import _native
from tilelang_pto.codegen.registry import OP_RULES
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.sim.standin import recorded_opcodes

for _module in pkgutil.iter_modules(rules.__path__):
    importlib.import_module(f"{rules.__name__}.{_module.name}")

GENERIC = {"load", "store", "exp", "log", "sqrt", "abs", "select", "cast", "max", "min", "bitcast"}
SINCE_SEPTEMBER = {"vsubc", "vsubcs", "vsunpack", "vzunpack", "vusqz", "dhistv2", "ld_dev", "st_dev"}
"""Calls that rules emit for 2026-09 only; for 2026-08 they write something else or refuse."""


@pytest.mark.parametrize("name", sorted(OP_RULES))
def test_what_a_rule_emits_is_in_the_api(name):
    for emitted in OP_RULES[name].emits:
        if emitted not in GENERIC:
            for surface in ("2026-09",) if emitted in SINCE_SEPTEMBER else ("2026-08", "2026-09"):
                assert surface_of(surface).lookup(f"pto.{emitted}") is not None, f"{emitted}: not in the {surface} API"


def test_every_rule_lives_in_the_file_of_its_family():
    families = {module.name for module in pkgutil.iter_modules(rules.__path__)}
    assert {rule.family for rule in OP_RULES.values()} <= families


def test_the_engine_executes_nothing_the_stand_in_cannot_record():
    assert set(_native.sim_ops()) <= recorded_opcodes() | {"for", "if", "yield", "const"}
