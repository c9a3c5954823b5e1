"""Integrity of the API tables."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tilelang_pto.codegen import surface as package
from tilelang_pto.codegen.surface import SURFACE_NAMES, surface_of
from tilelang_pto.codegen.surface._arguments import _TESTS
from tilelang_pto.codegen.surface._rules import SPECIAL
from tilelang_pto.codegen.surface.spelling import FEATURES, SPELLINGS
from tilelang_pto.codegen.surface.tables import load_table

GIVES = {"value", "none", "type", "static", "context", "pair", "triple", "vreg", "mask", "store"}


@pytest.mark.parametrize("name", SURFACE_NAMES)
def test_entries(name: str) -> None:
    table = load_table(name)
    assert len(table.callables) > 280
    for qualified, entry in table.callables.items():
        assert entry.name == qualified
        assert qualified.split(".")[0] in table.exports
        assert entry.gives in GIVES, qualified
        assert entry.where in ("", "simt", "outside_simt")
        assert len({param.name for param in entry.params}) == len(entry.params)
        kinds = [param.kind for param in entry.params]
        assert kinds == sorted(kinds, reverse=True), qualified
        required = [param.required for param in entry.positional]
        assert required == sorted(required, reverse=True), f"{qualified}: required parameters come first"
        if entry.pointer_form:
            assert entry.by_name[entry.pointer_form].required is False
        if entry.gives in ("vreg", "mask"):
            assert entry.follows in entry.by_name or entry.follows in table.dtypes or entry.follows in ("8", "16", "32"), qualified


@pytest.mark.parametrize("name", SURFACE_NAMES)
def test_defaults_are_legal(name: str) -> None:
    for qualified, entry in load_table(name).callables.items():
        for param in entry.params:
            if param.rule.form == "token" and isinstance(param.default, str):
                assert param.default in param.rule.tokens, f"{qualified}({param.name})"


@pytest.mark.parametrize("name", SURFACE_NAMES)
def test_rules(name: str) -> None:
    table = load_table(name)
    used = {param.rule.name for entry in table.callables.values() for param in entry.params}
    used |= {param.rule.name for kind in table.objects.values() for entry in kind.methods.values() for param in entry.params}
    assert set(table.rules) <= used
    for rule in table.rules.values():
        assert rule.form in _TESTS or rule.form == "any"
        assert rule.form != "token" or rule.tokens
        assert not rule.enum or f"pto.{rule.enum}" in table.names, rule.name


@pytest.mark.parametrize("name", SURFACE_NAMES)
def test_conversions(name: str) -> None:
    table = load_table(name)
    known = set(table.conversion_dtypes.values())
    for (source, target), rule in table.conversions.items():
        assert {source, target} <= known
        assert rule.needs <= {"rnd", "sat", "part"}
        assert set(rule.rounding) <= set("RAFCZOH")
    assert ("f16", "bf16") not in table.conversions


def test_special_rules_name_existing_calls() -> None:
    known = {name for surface in SURFACE_NAMES for name in load_table(surface).callables}
    assert set(SPECIAL) <= known


def test_tables_are_read_only() -> None:
    table = load_table("2026-08")
    with pytest.raises(TypeError):
        table.callables["pto.x"] = table.callables["pto.vadd"]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.name = "x"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.callables["pto.vadd"].name = "x"  # type: ignore[misc]
    assert load_table("2026-08") is table


def test_tables_are_small_and_sorted() -> None:
    for path in Path(package.__file__).parent.glob("api_*.json"):
        assert path.stat().st_size < 120_000
    for name in SURFACE_NAMES:
        keys = list(load_table(name).callables)
        assert keys == sorted(keys)


@pytest.mark.parametrize("name", SURFACE_NAMES)
def test_spellings_exist(name: str) -> None:
    surface = surface_of(name)
    for op, entry in SPELLINGS.items():
        for unit, spelling in entry.get(name, {}).items():
            found = surface.lookup(spelling.name)
            assert found is not None, f"{op}: {spelling.name}"
            for keyword in filter(None, spelling.keywords.split(", ")):
                assert keyword.partition("=")[0] in found.by_name
            if unit in ("scalar", "simt"):
                assert found.where != {"scalar": "simt", "simt": "outside_simt"}[unit], op
            else:
                assert not found.where or op == "convert", op


@pytest.mark.parametrize("name", SURFACE_NAMES)
def test_features_agree_with_the_table(name: str) -> None:
    table, features = load_table(name), FEATURES[name]
    assert features.has_scalar_namespace == ("scalar" in table.exports)
    assert features.has_init_core == ("pto.init_core" in table.callables)
    assert features.has_bitcast == ("pto.bitcast" in table.callables)
    assert features.has_loop_unroll == ("unroll" in table.callables["pto.for_"].by_name)
    assert features.has_branch_get == ("get" in table.objects["branch"].methods)
    assert features.has_mad_runtime_flags == ("init" in table.callables["pto.mad"].by_name)
    assert features.has_div_precision == ("precision" in table.callables["pto.vdiv"].by_name)
    assert features.has_vsubc == ("pto.vsubc" in table.callables)
    assert features.has_vunpack == ("pto.vunpack" in table.callables)


def test_moved_names_are_absent() -> None:
    for name in SURFACE_NAMES:
        table = load_table(name)
        assert not set(table.moved) & set(table.callables)
        assert not set(table.rejected) & set(table.callables)
