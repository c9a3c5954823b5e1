"""The API tables: what the two states of PTODSL export, read once from the JSON files beside this module.

A table entry gives a callable's signature in Python notation; the annotation of a parameter names the *rule* that its
argument has to satisfy (``dist: vlds_dist = None``). Rules are part of the same file. Nothing here imports PTODSL.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

__all__ = ["ApiTable", "Callable_", "ConversionRule", "Named", "ObjectType", "Param", "Rule", "load_table"]

_EMPTY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rule:
    """What one argument may be. ``form`` selects the test, the other fields are its data.

    Forms: ``token`` (a string of ``tokens`` or a member of ``enum``), ``integer``, ``flag`` (bool), ``tuple``, ``tuples``, ``shape``,
    ``tagged`` (a token, or a tuple holding one of ``tags``), ``dtype``, ``vreg_type``, ``ptr_type``, ``mask_type``, ``mask``, ``number``
    (a Python number), ``runtime`` (never a literal), ``text``, ``value`` (a number or runtime value) and ``any``.
    """

    name: str
    form: str
    tokens: frozenset[str] = _EMPTY
    enum: str = ""
    other: bool = False
    none: bool = False
    many: bool = False
    minimum: int | None = None
    maximum: int | None = None
    values: tuple[int, ...] = ()
    static: bool = False
    sizes: tuple[int, ...] = ()
    tags: frozenset[str] = _EMPTY
    tag_index: int = 0
    flags: bool = False
    text: bool = False
    runtime: bool = False
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: ``kind`` is ``"positional"`` or ``"keyword"`` (keyword-only)."""

    name: str
    kind: str
    required: bool
    rule: Rule
    default: Any = None


@dataclass(frozen=True, slots=True)
class Callable_:
    """One callable of a surface.

    Attributes:
        name: qualified name, ``"pto.vlds"``.
        params: all named parameters in order.
        varargs: takes any number of further positional arguments.
        varkeywords: takes any further keywords.
        gives: ``value``, ``none``, ``type``, ``static``, ``context``, ``pair``, ``triple``, ``vreg``, ``mask`` or ``store``.
        follows: for ``vreg`` and ``mask``: the parameter (or dtype, or width) the result's type comes from.
        where: ``"simt"``, ``"outside_simt"`` or ``""``.
        pointer_form: optional parameter that the form with a pointer operand needs all the same.
    """

    name: str
    params: tuple[Param, ...]
    varargs: bool = False
    varkeywords: bool = False
    gives: str = "value"
    follows: str = ""
    where: str = ""
    pointer_form: str = ""
    positional: tuple[Param, ...] = field(init=False, repr=False, compare=False)
    by_name: Mapping[str, Param] = field(init=False, repr=False, compare=False)
    required: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "positional", tuple(p for p in self.params if p.kind == "positional"))
        object.__setattr__(self, "by_name", MappingProxyType({p.name: p for p in self.params}))
        object.__setattr__(self, "required", tuple(p.name for p in self.params if p.required))

    def param(self, name: str) -> Param | None:
        """The parameter of that name, if there is one."""
        return self.by_name.get(name)


@dataclass(frozen=True, slots=True)
class Named:
    """An attribute that is not a function: ``kind`` is ``dtype``, ``enum``, ``member``, ``namespace`` or ``constant``."""

    name: str
    kind: str
    token: str = ""
    enum: str = ""


@dataclass(frozen=True, slots=True)
class ObjectType:
    """Attributes and methods of an object that a call returns (a loop or branch handle, a kernel)."""

    name: str
    attributes: frozenset[str]
    methods: Mapping[str, Callable_]


@dataclass(frozen=True, slots=True)
class ConversionRule:
    """One ``vcvt`` pair: which of rnd/sat/part it needs (the others are forbidden), and their values."""

    needs: frozenset[str]
    parts: tuple[str, ...]
    rounding: str


@dataclass(frozen=True, slots=True)
class ApiTable:
    """One state of the API. All mappings are read-only."""

    name: str
    exports: frozenset[str]
    callables: Mapping[str, Callable_]
    names: Mapping[str, Callable_ | Named]
    rules: Mapping[str, Rule]
    dtypes: Mapping[str, int]
    conversions: Mapping[tuple[str, str], ConversionRule]
    conversion_dtypes: Mapping[str, str]
    objects: Mapping[str, ObjectType]
    rejected: Mapping[str, str]
    moved: Mapping[str, str]


_ANY = Rule("any", "any")
_VALUE = Rule("value", "value")


def _rule(name: str, raw: Mapping[str, Any]) -> Rule:
    tokens = list(raw.get("tokens", ()))
    shown = tuple(tokens)
    if "counted" in raw:
        stem, first, last = raw["counted"]
        tokens += [f"{stem}{number}" for number in range(first, last + 1)]
        shown += (f"{stem}{first}..{stem}{last}",)
    prefix = raw.get("prefix", "")
    if prefix:
        tokens += [prefix + token for token in tokens]
    if raw.get("upper"):
        tokens += [token.upper() for token in tokens]
    return Rule(
        name=name,
        form=raw["form"],
        tokens=frozenset(tokens),
        enum=raw.get("enum", ""),
        other=raw.get("other", False),
        none=raw.get("none", False),
        many=raw.get("many", False),
        minimum=raw.get("min"),
        maximum=raw.get("max"),
        values=tuple(raw.get("values", ())),
        static=raw.get("static", False),
        sizes=tuple(raw.get("sizes", ())),
        tags=frozenset(raw.get("tags", ())),
        tag_index=raw.get("tag_index", 0),
        flags=raw.get("flags", False),
        text=raw.get("text", False),
        runtime=raw.get("runtime", False),
        shown=shown,
    )


def params_of(arguments: ast.arguments, rules: Mapping[str, Rule], fallback: Rule = _VALUE) -> tuple[Param, ...]:
    """The parameters of a parsed ``def``; an annotation that names a rule selects it, else ``fallback``."""
    found: list[Param] = []
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for kind, names, values in (("positional", positional, defaults), ("keyword", arguments.kwonlyargs, arguments.kw_defaults)):
        for arg, default in zip(names, values, strict=True):
            rule = fallback
            if isinstance(arg.annotation, ast.Name) and rules:
                rule = rules[arg.annotation.id]
            constant: Any = None
            if default is not None:
                try:
                    constant = ast.literal_eval(default)
                except ValueError:
                    constant = ...
            found.append(Param(arg.arg, kind, default is None, rule, constant))
    return tuple(found)


def _callables(raw: Mapping[str, Mapping[str, str]], rules: Mapping[str, Rule]) -> dict[str, Callable_]:
    text = "".join(f"def f{entry['sig']}: ...\n" for entry in raw.values())
    found: dict[str, Callable_] = {}
    for (name, entry), node in zip(raw.items(), ast.parse(text).body, strict=True):
        assert isinstance(node, ast.FunctionDef)
        gives, _, follows = entry.get("gives", "value").partition(" ")
        if gives.startswith("mask_b"):
            gives, follows = "mask", gives[6:]
        found[name] = Callable_(
            name=name,
            params=params_of(node.args, rules),
            varargs=node.args.vararg is not None,
            varkeywords=node.args.kwarg is not None,
            gives=gives,
            follows=follows,
            where=entry.get("where", ""),
            pointer_form=entry.get("pointer_form", ""),
        )
    return found


def _names(raw: Mapping[str, Any], callables: Mapping[str, Callable_]) -> dict[str, Callable_ | Named]:
    names: dict[str, Callable_ | Named] = dict(callables)
    for name in raw["dtypes"]:
        names[f"pto.{name}"] = Named(f"pto.{name}", "dtype", name)
    for name in raw["constants"]:
        names[f"pto.{name}"] = Named(f"pto.{name}", "constant", name)
    for name, members in raw["enums"].items():
        names[f"pto.{name}"] = Named(f"pto.{name}", "enum", name)
        for member, token in members.items():
            names[f"pto.{name}.{member}"] = Named(f"pto.{name}.{member}", "member", str(token), name)
    for alias, target in raw["aliases"].items():
        for name in [known for known in names if known == target or known.startswith(target + ".")]:
            names[alias + name[len(target) :]] = names[name]
    for name, members in raw["namespaces"].items():
        names[f"pto.{name}"] = Named(f"pto.{name}", "namespace", name)
        for member in members:
            names[f"pto.{name}.{member}"] = Callable_(f"pto.{name}.{member}", (), varargs=True, varkeywords=True)
    return names


@cache
def load_table(name: str) -> ApiTable:
    """The table of ``"2026-08"`` or ``"2026-09"``; read on first use, shared afterwards."""
    path = Path(__file__).with_name(f"api_{name.replace('-', '_')}.json")
    raw = json.loads(path.read_text(encoding="utf-8"))
    rules = {key: _rule(key, value) for key, value in raw["rules"].items()}
    callables = _callables(raw["callables"], rules)
    conversions = {}
    for pair, entry in raw["vcvt_pairs"].items():
        source, target = pair.split("->")
        parts = tuple(entry.get("parts", "EVEN ODD").split())
        conversions[source, target] = ConversionRule(frozenset(entry["needs"].split()), parts, entry.get("rounding", ""))
    objects = {
        key: ObjectType(
            key,
            frozenset(value["attributes"]),
            MappingProxyType(_callables({method: {"sig": sig} for method, sig in value["methods"].items()}, rules)),
        )
        for key, value in raw["objects"].items()
    }
    return ApiTable(
        name=raw["surface"],
        exports=frozenset(raw["exports"]),
        callables=MappingProxyType(callables),
        names=MappingProxyType(_names(raw, callables)),
        rules=MappingProxyType(rules),
        dtypes=MappingProxyType(raw["dtypes"]),
        conversions=MappingProxyType(conversions),
        conversion_dtypes=MappingProxyType(raw["vcvt_dtypes"]),
        objects=MappingProxyType(objects),
        rejected=MappingProxyType(raw["rejected"]),
        moved=MappingProxyType(raw["moved"]),
    )
