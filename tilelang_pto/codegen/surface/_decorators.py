"""Function heads: decorators, parameters, annotations."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from tilelang_pto.codegen.surface._expressions import ExpressionChecker
from tilelang_pto.codegen.surface._rules import Bound
from tilelang_pto.codegen.surface._values import OPAQUE, PLAIN, RUNTIME, TYPE, Value
from tilelang_pto.codegen.surface.tables import Callable_

__all__ = ["FunctionFrame", "function_frame"]

_DECORATORS = {"pto.jit": "jit", "pto.simt": "simt", "pto.func": "func", "pto.tileop": "tileop"}
_PYTHON_TYPES = frozenset(("int", "float", "str", "bool", "tuple", "list"))


@dataclass(slots=True)
class FunctionFrame:
    """What a function's head says about its body."""

    kind: str = "plain"
    rewrite: bool = False
    explicit: bool = True
    entry: bool = True
    kernel_kind: str = ""
    parameters: dict[str, Value] = field(default_factory=dict)


def function_frame(out: ExpressionChecker, node: ast.FunctionDef) -> FunctionFrame:
    """Check the head of a function and say how its body is traced."""
    frame = FunctionFrame()
    if len(node.decorator_list) > 1:
        out.report(node, "@", "one decorator per function")
    for decorator in node.decorator_list[:1]:
        _decorator(out, decorator, frame)
    if frame.kind == "jit" and out.scope.kind != "module":
        out.report(node, "pto.jit", "a kernel is defined at module level")
    _parameters(out, node, frame)
    return frame


def _decorator(out: ExpressionChecker, node: ast.expr, frame: FunctionFrame) -> None:
    call = node if isinstance(node, ast.Call) else None
    func = call.func if call is not None else node
    name = out.dotted(func) if isinstance(func, ast.Attribute) else ""
    if not name:
        out.report(node, "@", "is no decorator of the API", "use @pto.jit(...), @pto.simt, @pto.func or none")
        return
    entry = out.names.get(name)
    if entry is None:
        out.unknown(node, name)
        return
    kind = _DECORATORS.get(name)
    if kind is None or not isinstance(entry, Callable_):
        out.report(node, name, "is no decorator")
        return
    frame.kind = kind
    frame.rewrite = True
    if call is None:
        if kind == "jit":
            out.report(node, "pto.jit", "is written with parentheses", "@pto.jit(...)")
        return
    given = out.bind(call, name, entry)
    _, rewrite = given.get("ast_rewrite", (None, PLAIN))
    if rewrite.low is not None:
        frame.rewrite = bool(rewrite.low)
    if kind == "jit":
        _jit(out, call, given, frame)


def _jit(out: ExpressionChecker, call: ast.Call, given: Bound, frame: FunctionFrame) -> None:
    mode = given["mode"][1].text if "mode" in given else "auto"
    backend = given["backend"][1].text if "backend" in given else "vpto"
    frame.explicit = mode == "explicit"
    frame.entry = "entry" not in given or given["entry"][1].low != 0
    frame.kernel_kind = (given["kernel_kind"][1].text or "") if "kernel_kind" in given else ""
    if backend == "emitc" and mode != "auto":
        out.report(call, "pto.jit", 'backend="emitc" goes with mode="auto" only')
    if "source" in given and not frame.entry:
        out.report(call, "pto.jit", "source needs entry=True")
    if "frontend_options" in given:
        _frontend(out, given, frame)


def _frontend(out: ExpressionChecker, given: Bound, frame: FunctionFrame) -> None:
    options = given["frontend_options"][0]
    if not isinstance(options, ast.Dict):
        return
    for key, value in zip(options.keys, options.values, strict=True):
        name = key.value if isinstance(key, ast.Constant) else None
        constant = value.value if isinstance(value, ast.Constant) else None
        if name == "ast_rewrite":
            if "ast_rewrite" in given and isinstance(constant, bool) and frame.rewrite != constant:
                out.report(value, "pto.jit", "ast_rewrite and frontend_options contradict each other")
            frame.rewrite = constant is not False
        elif name not in ("rewrite_part", "dump_rewritten_source"):
            out.report(value, "pto.jit", f"frontend_options has no key {name!r}", "ast_rewrite, rewrite_part, dump_rewritten_source")
        elif name == "rewrite_part" and constant != "control_flow":
            out.report(value, "pto.jit", 'rewrite_part is "control_flow" only')
        elif name == "dump_rewritten_source" and constant is not False:
            out.report(value, "pto.jit", "dump_rewritten_source must be False")


def _parameters(out: ExpressionChecker, node: ast.FunctionDef, frame: FunctionFrame) -> None:
    arguments = node.args
    kernel = frame.kind == "jit"
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for arg, default in zip(positional, defaults, strict=True):
        if default is not None:
            out.expr(default)
            if kernel:
                out.report(arg, node.name, f"{arg.arg} has a default; positional parameters of a kernel have none")
        frame.parameters[arg.arg] = _kernel_parameter(out, node, arg, frame) if kernel else _helper_parameter(out, arg, default)
    for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is not None:
            out.expr(value)
        if kernel:
            _constant_parameter(out, node, arg, value, frame)
            frame.parameters[arg.arg] = PLAIN
        else:
            frame.parameters[arg.arg] = PLAIN if frame.kind == "simt" else _helper_parameter(out, arg, value)
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            frame.parameters[extra.arg] = OPAQUE
            if kernel:
                out.report(extra, node.name, "a kernel takes no *args or **kwargs")


def _kernel_parameter(out: ExpressionChecker, node: ast.FunctionDef, arg: ast.arg, frame: FunctionFrame) -> Value:
    annotation = arg.annotation
    if annotation is None:
        out.report(arg, node.name, f"parameter {arg.arg} has no annotation", 'pto.ptr(dtype, "gm") or a scalar dtype')
        return Value(RUNTIME)
    value = out.expr(annotation)
    if value.text is not None:
        out.report(annotation, node.name, f"the annotation of {arg.arg} is a string, not an object")
    elif value.kind != TYPE or value.sort not in ("ptr", "dtype"):
        if value.sort == "constant":
            out.report(annotation, node.name, f"{arg.arg}: pto.const_expr is for keyword-only parameters", "put it after *")
        elif value.sort != "param":
            out.report(annotation, node.name, f"the annotation of {arg.arg} is neither a pointer nor a scalar dtype")
    elif value.sort == "ptr" and value.space not in ("gm", "") and frame.entry:
        out.report(annotation, node.name, f"{arg.arg} points into {value.space}; an entry takes GM pointers only", 'pto.ptr(dtype, "gm")')
    return Value(RUNTIME, dtype=value.dtype if value.sort == "dtype" else "")


def _constant_parameter(
    out: ExpressionChecker, node: ast.FunctionDef, arg: ast.arg, default: ast.expr | None, frame: FunctionFrame
) -> None:
    annotation = arg.annotation
    is_constant = isinstance(annotation, ast.Attribute) and out.dotted(annotation) == "pto.const_expr"
    if not is_constant:
        out.report(arg, node.name, f"keyword-only parameter {arg.arg} is not annotated with pto.const_expr")
    if default is None:
        out.report(arg, node.name, f"keyword-only parameter {arg.arg} has no default")
    if not frame.entry:
        out.report(arg, node.name, "a module with entry=False takes no const_expr parameters")


def _helper_parameter(out: ExpressionChecker, arg: ast.arg, default: ast.expr | None) -> Value:
    annotation = arg.annotation
    if isinstance(annotation, ast.Name) and annotation.id in _PYTHON_TYPES:
        return PLAIN
    if annotation is not None and not isinstance(annotation, ast.Constant):
        value = out.expr(annotation)
        if value.kind == TYPE and value.sort == "dtype":
            return Value(RUNTIME, dtype=value.dtype)
    return OPAQUE
