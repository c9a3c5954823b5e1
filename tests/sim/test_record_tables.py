"""The stand-in against the API tables that emitted texts are checked with: names, parameters, tokens, conversions, places."""

from __future__ import annotations

import ast
import inspect
import json
from importlib import resources

import pytest

from tilelang_pto.sim.standin import kinds, registry
from tilelang_pto.sim.standin.simd_convert import VCVT_PAIRS
from tilelang_pto.sim.standin.types import DTYPE_NAMES

SURFACES = tuple(registry.SURFACES)


def table(surface: str) -> dict:
    name = f"api_{surface.replace('-', '_')}.json"
    return json.loads(resources.files("tilelang_pto.codegen.surface").joinpath(name).read_text(encoding="utf-8"))


def parameters_of_text(signature: str) -> list[tuple[str, str, bool]]:
    (function,) = ast.parse(f"def f{signature}: pass").body
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    free = len(positional) - len(arguments.defaults)
    out = [(item.arg, "positional", number < free) for number, item in enumerate(positional)]
    if arguments.vararg:
        out.append((arguments.vararg.arg, "star", False))
    out += [(item.arg, "keyword", default is None) for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg:
        out.append((arguments.kwarg.arg, "stars", False))
    return out


def parameters_of_entry(entry: registry.Entry) -> list[tuple[str, str, bool]]:
    words = {"POSITIONAL_OR_KEYWORD": "positional", "KEYWORD_ONLY": "keyword", "VAR_POSITIONAL": "star", "VAR_KEYWORD": "stars"}
    out = []
    for parameter in list(inspect.signature(entry.function).parameters.values())[1:]:
        if not parameter.name.startswith("_"):
            kind = words[parameter.kind.name]
            out.append((parameter.name, kind, parameter.default is parameter.empty and kind in ("positional", "keyword")))
    return out


@pytest.mark.parametrize("surface", SURFACES)
def test_every_name_of_the_api_is_recorded_or_refused_on_purpose(surface: str):
    facts = table(surface)
    for full in facts["callables"]:
        namespace, _, name = full.partition(".")
        if namespace in ("pto", "scalar") and "." not in name:
            assert registry.find(surface, namespace, name) or (namespace == "pto" and name in kinds.NOT_SIMULATED), full
    for name in (*facts["dtypes"], *facts["constants"], *facts["enums"]):
        assert name in DTYPE_NAMES or name in kinds.CONSTANTS or name in kinds.NOT_SIMULATED or name == "const_expr", name


@pytest.mark.parametrize("surface", SURFACES)
def test_no_name_beyond_the_api(surface: str):
    callables = table(surface)["callables"]
    for entry in registry.entries():
        if entry.surface == surface:
            assert f"{entry.namespace}.{entry.name}" in callables


@pytest.mark.parametrize("surface", SURFACES)
def test_parameters_are_those_of_the_api(surface: str):
    differences = []
    for full, facts in table(surface)["callables"].items():
        entry = registry.find(surface, *full.split(".", 1)) if full.count(".") == 1 else None
        if entry is None or full in ("pto.jit", "pto.simt", "pto.alloc_buffer"):  # decorators have a shape of their own
            continue
        wanted, found = parameters_of_text(facts["sig"]), parameters_of_entry(entry)
        if wanted != found:
            differences.append((full, wanted, found))
    assert differences == []


@pytest.mark.parametrize("surface", SURFACES)
def test_conversions_are_those_of_the_api(surface: str):
    pairs = {}
    for pair, facts in table(surface)["vcvt_pairs"].items():
        source, target = pair.split("->")
        pairs[source, target] = "".join(word[0] for word in ("rnd", "sat", "part") if word in facts["needs"].split())
        if "rounding" in facts:
            assert set(VCVT_PAIRS[source, target][1]) == set(facts["rounding"])
    assert pairs == {pair: attributes for pair, (attributes, _) in VCVT_PAIRS.items()}


@pytest.mark.parametrize("surface", SURFACES)
def test_enumerations_are_those_of_the_api(surface: str):
    for name, members in table(surface)["enums"].items():
        value = kinds.CONSTANTS.get(name)
        if value is not None:
            assert {member if member.isidentifier() else f"_{member}" for member in members} <= set(vars(value)), name
