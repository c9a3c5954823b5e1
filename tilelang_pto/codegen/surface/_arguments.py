"""One argument against the rule of its parameter."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable

from tilelang_pto.codegen.surface._values import KIND_NAMES, RUNTIME, STATIC, TUPLE, TYPE, VOID, Reporter, Value
from tilelang_pto.codegen.surface.tables import Param, Rule

__all__ = ["check_argument", "near"]

Test = Callable[[Reporter, str, Param, Rule, ast.expr, Value], None]

BOOL_ADVICE = "write a number; Python booleans are refused here"


def near(name: str, known: Iterable[str]) -> str:
    """An advice naming the closest known spelling, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"did you mean {close[0]}?" if close else ""


def check_argument(out: Reporter, call: str, param: Param, node: ast.expr, value: Value) -> None:
    """Report what is wrong with one argument."""
    rule = param.rule
    form = rule.form
    kind = value.kind
    if kind == VOID:
        out.report(node, call, f"{param.name} is the result of a call that returns nothing")
        return
    if form == "any" or value.sort == "param":
        return
    if kind == RUNTIME and form == "value":
        return
    if value.sort == "none":
        if param.required or (param.default is not None and not rule.none):
            out.report(node, call, f"{param.name} may not be None")
        return
    _TESTS[form](out, call, param, rule, node, value)


def _shown(rule: Rule) -> str:
    return "one of: " + " ".join(rule.shown)


def _value(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    if value.sort == "bool":
        out.report(node, call, f"{param.name} is a Python bool where a number is expected", BOOL_ADVICE)
    elif value.text is not None:
        out.report(node, call, f"{param.name} is {value.text!r} where a value is expected")
    elif value.kind == TUPLE:
        out.report(node, call, f"{param.name} is a tuple where a value is expected")
    elif value.kind in KIND_NAMES:
        out.report(node, call, f"{param.name} is {KIND_NAMES[value.kind]} where a value is expected")


def _token(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    if value.text is not None:
        if value.sort == "member":
            enum, _, token = value.text.partition(".")
            if enum == rule.enum or token in rule.tokens:
                return
            out.report(node, call, f"{param.name} is a member of pto.{enum}", f"use pto.{rule.enum}" if rule.enum else _shown(rule))
        elif value.text not in rule.tokens:
            out.report(node, call, f"{param.name}={value.text!r} is not a legal value", _shown(rule))
        return
    if value.sort == "bool":
        out.report(node, call, f"{param.name} is a Python bool", _shown(rule))
    elif rule.many and value.kind == TUPLE:
        for item in value.items or ():
            _token(out, call, param, rule, node, item)
    elif rule.other:
        if value.kind not in (RUNTIME, STATIC):
            _value(out, call, param, rule, node, value)
    elif value.kind != STATIC or value.low is not None or value.sort == "float":
        out.report(node, call, f"{param.name} must be a literal name", _shown(rule))


def _integer(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    if value.kind == RUNTIME:
        if rule.static:
            out.report(node, call, f"{param.name} must be a Python integer known while tracing")
        return
    if value.kind != STATIC or value.text is not None or value.sort in ("bool", "float"):
        what = "a Python bool" if value.sort == "bool" else "not an integer"
        out.report(node, call, f"{param.name} is {what}", BOOL_ADVICE if value.sort == "bool" else "")
        return
    if value.low is None or value.high is None:
        return
    if rule.values:
        if value.low == value.high and value.low not in rule.values:
            out.report(node, call, f"{param.name}={value.low} is not one of {', '.join(map(str, rule.values))}")
        return
    below = rule.minimum is not None and value.low < rule.minimum
    above = rule.maximum is not None and value.high > rule.maximum
    if below or above:
        limit = f"{rule.minimum}..{rule.maximum}" if rule.maximum is not None else f"at least {rule.minimum}"
        out.report(node, call, f"{param.name} reaches {value.low if below else value.high}, legal is {limit}")


def _flag(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    if value.sort == "bool" or (value.low in (0, 1) and value.low == value.high):
        return
    if value.kind == RUNTIME and rule.runtime:
        return
    if value.kind == STATIC and value.low is None and value.text is None and not value.sort:
        return
    out.report(node, call, f"{param.name} must be True or False" + (" or a runtime value" if rule.runtime else ""))


def _tuple(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    sizes = " or ".join(map(str, rule.sizes))
    if value.kind != TUPLE or isinstance(node, ast.List):
        out.report(node, call, f"{param.name} must be a tuple of {sizes} numbers")
        return
    items = value.items
    if items is None:
        return
    if len(items) not in rule.sizes:
        out.report(node, call, f"{param.name} has {len(items)} elements, legal is {sizes}")
        return
    for position, item in enumerate(items):
        if item.sort == "bool" and not (rule.flags and position == len(items) - 1):
            out.report(node, call, f"{param.name}[{position}] is a Python bool where a number is expected", BOOL_ADVICE)
        elif item.sort == "none" or (item.text is not None and not rule.text) or item.kind in KIND_NAMES or item.kind == TUPLE:
            out.report(node, call, f"{param.name}[{position}] is not a number or runtime value")


def _tuples(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    if value.kind != TUPLE:
        out.report(node, call, f"{param.name} must be a list of tuples of {rule.sizes[0]} numbers")
        return
    for item in value.items or ():
        _tuple(out, call, param, rule, ast.copy_location(ast.Tuple([], ast.Load()), node), item)


def _shape(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    if value.kind != TUPLE:
        out.report(node, call, f"{param.name} must be a tuple of positive Python integers")
        return
    for item in value.items or ():
        if item.kind != STATIC or item.sort or item.text is not None or (item.low is not None and item.low < 1):
            out.report(node, call, f"{param.name} must hold positive Python integers only")
            return


def _tagged(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    legal = " ".join((*rule.shown, *(f"(.., {tag!r})" if rule.tag_index else f"({tag!r}, ..)" for tag in sorted(rule.tags)[:8])))
    if value.kind == TUPLE:
        items = value.items
        if items is None:
            return
        tag = items[rule.tag_index].text if len(items) == 2 else None
        if tag is not None and tag.rpartition(".")[2] in rule.tags:
            return
    elif value.text is not None and value.text.rpartition(".")[2] in rule.tokens:
        return
    out.report(node, call, f"{param.name} has no legal form", f"one of: {legal}")


def _type_of(sorts: tuple[str, ...], wanted: str) -> Test:
    """Check of an argument that is a type of one of the ``sorts``."""

    def check(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
        if (value.kind != TYPE or value.sort not in sorts) and not _unknown(value):
            out.report(node, call, f"{param.name} must be {wanted}")

    return check


def _mask(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    if value.kind != RUNTIME:
        out.report(node, call, f"{param.name} must be a mask", "make one with pto.pset_b32, pto.plt_b32, pto.make_mask, ...")
    elif value.sort == "vreg":
        out.report(node, call, f"{param.name} is a vector register where a mask is expected")


def _number(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    if value.kind == RUNTIME:
        out.report(node, call, f"{param.name} must be a Python number, it is a runtime value")
    else:
        _value(out, call, param, rule, node, value)


def _runtime(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    if value.kind != RUNTIME:
        out.report(node, call, f"{param.name} must be a runtime value", "a constant choice is another call (pto.mad or pto.mad_acc)")


def _text(out: Reporter, call: str, param: Param, rule: Rule, node: ast.expr, value: Value) -> None:
    if value.text is None and not _unknown(value):
        out.report(node, call, f"{param.name} must be a string")


def _unknown(value: Value) -> bool:
    return value.kind == STATIC and value.low is None and value.text is None and not value.sort


_TESTS: dict[str, Test] = {
    "value": _value,
    "token": _token,
    "integer": _integer,
    "flag": _flag,
    "tuple": _tuple,
    "tuples": _tuples,
    "shape": _shape,
    "tagged": _tagged,
    "dtype": _type_of(("dtype", "vec"), "a dtype such as pto.f32"),
    "vreg_type": _type_of(("vreg",), "a pto.vreg_type(lanes, dtype)"),
    "ptr_type": _type_of(("ptr", "dtype"), "a pto.ptr(dtype, space) or an integer dtype"),
    "mask_type": _type_of(("mask",), "pto.mask_b8, pto.mask_b16 or pto.mask_b32"),
    "mask": _mask,
    "number": _number,
    "runtime": _runtime,
    "text": _text,
}
