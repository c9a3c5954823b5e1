"""Operators: which of them exist on runtime values, and constant folding."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tilelang_pto.codegen.surface._arguments import BOOL_ADVICE
from tilelang_pto.codegen.surface._values import KIND_NAMES, OPAQUE, PLAIN, RUNTIME, RUNTIME_VALUE, STATIC, TUPLE, Value

if TYPE_CHECKING:
    from tilelang_pto.codegen.surface._expressions import ExpressionChecker

__all__ = ["binary", "boolean", "compare", "conditional", "unary"]


_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


def _operand(out: ExpressionChecker, node: ast.expr, value: Value, operator: str, runtime: bool) -> bool:
    """Report an operand that cannot be one; False if it was."""
    if value.kind in KIND_NAMES:
        out.report(node, operator, f"{KIND_NAMES[value.kind]} is no operand")
    elif value.kind == TUPLE and runtime:
        out.report(node, operator, "a tuple is no operand; take the pair apart first")
    elif runtime and value.sort == "bool":
        out.report(node, operator, "a Python bool is no operand of a runtime value", BOOL_ADVICE)
    elif value.sort in ("vreg", "mask") and value.kind == RUNTIME:
        what = "vector registers" if value.sort == "vreg" else "masks"
        out.report(node, operator, f"{what} have no operators", "use the v or p operation")
    else:
        return True
    return False


def binary(out: ExpressionChecker, node: ast.BinOp) -> Value:
    """Arithmetic and bit operators."""
    left, right = out.expr(node.left), out.expr(node.right)
    operator = _OPERATORS[type(node.op)]
    runtime = left.kind == RUNTIME or right.kind == RUNTIME
    for operand, value in ((node.left, left), (node.right, right)):
        if not _operand(out, operand, value, operator, runtime):
            break
    if runtime:
        if operator in ("<<", ">>") and not out.surface.has_shift_operators:
            advice = "multiply by a power of two" if operator == "<<" else "divide with // by a power of two"
            out.report(node, operator, f"PTODSL {out.surface.name} has no shifts of runtime values", advice)
        elif operator in ("**", "@"):
            advice = "use pto.pow inside pto.simt" if operator == "**" else ""
            out.report(node, operator, "runtime values do not have this operator", advice)
        return RUNTIME_VALUE
    if left.kind == TUPLE or right.kind == TUPLE:
        return Value(TUPLE)
    if left.low is not None and right.low is not None:
        return _fold(operator, left, right)
    return Value(STATIC, "float") if "float" in (left.sort, right.sort) or operator == "/" else PLAIN


def _fold(operator: str, left: Value, right: Value) -> Value:
    bounds = [(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    results: list[int] = []
    for a, b in bounds:
        if a is None or b is None:
            return PLAIN
        if operator == "+":
            results.append(a + b)
        elif operator == "-":
            results.append(a - b)
        elif operator == "*":
            results.append(a * b)
        elif operator == "//" and b > 0:
            results.append(a // b)
        elif operator == "%" and b > 0 and left.low == left.high and right.low == right.high:
            results.append(a % b)
        elif operator == "%" and b > 0:
            results += [0, b - 1]
        else:
            return PLAIN
    return Value(STATIC, low=min(results), high=max(results))


def unary(out: ExpressionChecker, node: ast.UnaryOp) -> Value:
    """``-``, ``+``, ``~`` and ``not``."""
    value = out.expr(node.operand)
    op = node.op
    if isinstance(op, ast.Invert):
        out.report(node, "~", "no surface has ~", "use x ^ -1, or pto.pnot / pto.vnot")
        return OPAQUE
    runtime = value.kind == RUNTIME
    operator = "not" if isinstance(op, ast.Not) else "-" if isinstance(op, ast.USub) else "+"
    _operand(out, node.operand, value, operator, runtime)
    if isinstance(op, ast.Not):
        if runtime:
            out.report(node, "not", "a runtime value has no truth value while tracing", "compare with 0 instead")
            return RUNTIME_VALUE
        return Value(STATIC, "bool")
    if runtime:
        if isinstance(op, ast.USub) and not out.surface.has_unary_minus:
            out.report(node, "-", f"PTODSL {out.surface.name} has no unary minus on runtime values", "use 0 - x")
        return RUNTIME_VALUE
    if value.low is not None and value.high is not None and isinstance(op, ast.USub):
        return Value(STATIC, low=-value.high, high=-value.low)
    return value


def boolean(out: ExpressionChecker, node: ast.BoolOp) -> Value:
    """``and`` and ``or``."""
    values = [out.expr(operand) for operand in node.values]
    if not any(value.kind == RUNTIME for value in values):
        return PLAIN
    operator = "and" if isinstance(node.op, ast.And) else "or"
    if not (out.surface.has_short_circuit and out.scope.rewrite):
        sign = "&" if operator == "and" else "|"
        out.report(node, operator, "a runtime value has no truth value while tracing", f"use {sign} on conditions, or nested pto.if_")
    return RUNTIME_VALUE


def compare(out: ExpressionChecker, node: ast.Compare) -> Value:
    """Comparisons."""
    left = out.expr(node.left)
    rest = [out.expr(operand) for operand in node.comparators]
    if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
        return Value(STATIC, "bool")
    if left.kind != RUNTIME and not any(value.kind == RUNTIME for value in rest):
        return Value(STATIC, "bool")
    if len(rest) > 1:
        out.report(node, "comparison", "a chained comparison needs a truth value while tracing", "join two comparisons with &")
    if any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
        out.report(node, "in", "runtime values have no membership test")
        return Value(RUNTIME, dtype="i1")
    for operand, value in zip((node.left, *node.comparators), (left, *rest), strict=True):
        if not _operand(out, operand, value, "comparison", True):
            break
    return Value(RUNTIME, dtype="i1")


def conditional(out: ExpressionChecker, node: ast.IfExp) -> Value:
    """``a if c else b``."""
    test, first, second = out.expr(node.test), out.expr(node.body), out.expr(node.orelse)
    if test.kind == RUNTIME:
        if not out.scope.rewrite:
            advice = f"use {out.surface.spelling('select')} or pto.if_ with assign"
            out.report(node, "if", "a conditional expression on a runtime value is not traced", advice)
        return RUNTIME_VALUE
    return RUNTIME_VALUE if RUNTIME in (first.kind, second.kind) else PLAIN
