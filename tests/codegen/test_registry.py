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
SINCE_SEPTEMBER = {"vsubc", "vsubcs", "vsunpack", "vzunpack", "vusqz", "dhistv2"}
"""Calls that rules emit for 2026-09 only; for 2026-08 they write something else or refuse."""
CUBE = frozenset(f"mte_{path}" for path in ("gm_l1_frac", "l1_l0a", "l1_l0b", "l1_l0a_mx", "l1_l0b_mx", "l0c_ub", "l0c_gm", "ub_l1")) | {
    "raw_fill_l1",
    "mad",
    "mad_acc",
    "mad_mx",
    "mad_mx_acc",
    "set_intra_block",
    "wait_intra_block",
}
"""Calls of the cube core, which the simulator does not have yet."""
STRUCTURE = {"for_": "for", "if_": "if"}


def opcode(name: str) -> str:
    """Opcode a PTODSL call is recorded as."""
    for prefix in ("pset", "pge", "plt", "pintlv", "pdintlv"):
        if name.startswith(f"{prefix}_b"):
            return prefix
    return STRUCTURE.get(name, name)


@pytest.mark.parametrize("name", sorted(OP_RULES))
def test_what_a_rule_emits_exists_everywhere(name):
    for emitted in OP_RULES[name].emits:
        assert emitted in CUBE or opcode(emitted) in recorded_opcodes() | set(STRUCTURE.values()), (
            f"{emitted}: the stand-in does not record it"
        )
        if emitted not in GENERIC:
            for surface in ("2026-09",) if emitted in SINCE_SEPTEMBER else ("2026-08", "2026-09"):
                assert surface_of(surface).lookup(f"pto.{emitted}") is not None, f"{emitted}: not in the {surface} API"
    executed = set(_native.sim_ops())
    missing = {opcode(emitted) for emitted in OP_RULES[name].emits} - executed - CUBE
    assert not missing, f"the engine does not execute {', '.join(sorted(missing))}"


def test_every_rule_lives_in_the_file_of_its_family():
    families = {module.name for module in pkgutil.iter_modules(rules.__path__)}
    assert {rule.family for rule in OP_RULES.values()} <= families


def test_the_engine_executes_nothing_the_stand_in_cannot_record():
    assert set(_native.sim_ops()) <= recorded_opcodes() | {"for", "if", "yield", "const"}
