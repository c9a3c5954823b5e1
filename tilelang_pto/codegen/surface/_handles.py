"""Loop and branch handles: what may be read from them, and when."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tilelang_pto.codegen.surface._arguments import near
from tilelang_pto.codegen.surface._values import LOOP, NONE, RUNTIME_VALUE, STATIC, TUPLE, TYPE, Branch, Loop, Value
from tilelang_pto.codegen.surface.tables import Callable_

if TYPE_CHECKING:
    from tilelang_pto.codegen.surface._expressions import ExpressionChecker

__all__ = ["branch_attribute", "branch_method", "carry", "loop_attribute", "loop_method", "while_handle"]


def loop_attribute(out: ExpressionChecker, node: ast.Attribute, loop: Loop) -> Value:
    """Read an attribute of a loop with carries."""
    name = node.attr
    if name != "iv" and name not in loop.carried:
        known = loop.carried | {"iv", "update", "final"}
        out.report(node, name, f"the loop of line {loop.line} carries no {name!r}", near(name, known))
    elif loop.state == "done":
        advice = f'read loop.final("{name}")' if name != "iv" else "the induction value ends with the loop"
        out.report(node, name, f"the loop of line {loop.line} has ended", advice)
    elif loop.state == "new":
        out.report(node, name, f"the loop of line {loop.line} has not been entered", "use it inside its with block")
    return RUNTIME_VALUE


def branch_attribute(out: ExpressionChecker, node: ast.Attribute, branch: Branch) -> Value:
    """Read a result of an ``if_``."""
    name = node.attr
    if name in ("then_", "else_"):
        out.report(node, name, "a branch is entered with a with statement only")
    elif branch.open:
        out.report(node, name, f"the results of the if_ of line {branch.line} do not exist before it has ended")
    elif name not in branch.results():
        out.report(node, name, f"the if_ of line {branch.line} assigns no {name!r} in both branches", near(name, branch.results()))
    elif name.startswith("_"):
        out.report(node, name, "a branch result that starts with an underscore cannot be read as an attribute")
    return RUNTIME_VALUE


def carry(out: ExpressionChecker, node: ast.Call, method: Callable_) -> Value:
    """``pto.for_(...).carry(...)``: the loop handle."""
    out.bind(node, "carry", method)
    if not node.keywords:
        out.report(node, "carry", "a loop without carries is written with pto.for_(...) as i")
    return _loop(out, node, "carry")


def while_handle(out: ExpressionChecker, node: ast.Call) -> Value:
    """``pto.while_(condition, a=..., ...)``: the loop handle."""
    if not node.keywords:
        out.report(node, "pto.while_", "a while loop needs at least one carried value")
    loop = _loop(out, node, "pto.while_")
    condition = node.args[0] if node.args else None
    if isinstance(condition, ast.Lambda) and condition.args.args and isinstance(loop.handle, Loop):
        state = condition.args.args[0].arg
        for part in ast.walk(condition.body):
            if not isinstance(part, ast.Attribute) or not isinstance(part.value, ast.Name) or part.value.id != state:
                continue
            if part.attr not in loop.handle.carried:
                out.report(part, "pto.while_", f"the loop carries no {part.attr!r}", near(part.attr, loop.handle.carried))
    return loop


def _loop(out: ExpressionChecker, node: ast.Call, call: str) -> Value:
    """A handle that carries the keywords of a call."""
    for keyword in node.keywords:
        if keyword.arg and keyword.arg in ("iv", "update", "final", "carry"):
            out.report(node, call, f"{keyword.arg!r} is a name of the loop handle itself")
        _crossing_name(out, node, call, keyword.arg)
        value = out.again(keyword.value)
        if value.kind in (STATIC, TUPLE, TYPE) and value.sort != "param":
            out.report(keyword.value, call, f"carry {keyword.arg} starts with a Python value", "use pto.const(value, dtype=...)")
    return Value(LOOP, handle=Loop(frozenset(keyword.arg for keyword in node.keywords if keyword.arg), node.lineno))


def _crossing_name(out: ExpressionChecker, node: ast.AST, call: str, name: str | None) -> None:
    if name and name.startswith("_"):
        out.report(node, call, f"{name!r} starts with an underscore", "carries and branch results need names without it")


def loop_method(out: ExpressionChecker, node: ast.Call, name: str, method: Callable_, loop: Loop) -> Value:
    """``update`` and ``final``."""
    given = out.bind(node, name, method)
    if name == "final":
        text = given["name"][1].text if "name" in given else None
        if text is not None and text not in loop.carried:
            out.report(node, "final", f"the loop of line {loop.line} carries no {text!r}", near(text, loop.carried))
        if loop.state != "done":
            out.report(node, "final", f"the loop of line {loop.line} has not ended")
        return RUNTIME_VALUE
    names = frozenset(keyword.arg for keyword in node.keywords if keyword.arg)
    if names != loop.carried:
        parts = [f"missing {' '.join(sorted(loop.carried - names))}"] if loop.carried - names else []
        parts += [f"unknown {' '.join(sorted(names - loop.carried))}"] if names - loop.carried else []
        out.report(node, "update", f"the names differ from those carried: {', '.join(parts)}")
    loop.updates += 1
    if loop.state != "open" or loop.region != out.regions[-1] or loop.python_loops != out.python_loops:
        out.report(node, "update", f"the loop of line {loop.line} must be updated directly in its own body, not in a nested block")
    elif loop.updates > 1:
        out.report(node, "update", f"the loop of line {loop.line} is updated more than once")
    return NONE


def branch_method(out: ExpressionChecker, node: ast.Call, name: str, method: Callable_, branch: Branch) -> Value:
    """``assign`` and ``get``."""
    given = out.bind(node, name, method)
    if name == "get":
        text = given["name"][1].text if "name" in given else None
        if text is not None and (branch.open or text not in branch.results()):
            out.report(node, "get", f"the if_ of line {branch.line} has no result {text!r} here")
        return RUNTIME_VALUE
    names = frozenset(keyword.arg for keyword in node.keywords if keyword.arg)
    for keyword in node.keywords:
        _crossing_name(out, node, "assign", keyword.arg)
        if keyword.arg in ("then_", "else_", "assign", "get"):
            out.report(node, "assign", f"{keyword.arg!r} is a name of the branch handle itself")
    if not names:
        out.report(node, "assign", "assigns nothing")
    current = branch.current
    if not branch.open or not current or branch.region != out.regions[-1] or branch.python_loops != out.python_loops:
        out.report(node, "assign", f"results of the if_ of line {branch.line} are assigned directly in its then_ or else_ block")
    elif current in branch.assigned:
        out.report(node, "assign", f"the {current} branch of line {branch.line} assigns twice")
    branch.assigned[current] = branch.assigned.get(current, frozenset()) | names
    return NONE
