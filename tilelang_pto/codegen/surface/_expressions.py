"""Expressions of emitted text: names, operators, calls."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache, partial

from tilelang_pto.codegen.surface._arguments import BOOL_ADVICE, check_argument, near
from tilelang_pto.codegen.surface._handles import branch_attribute, branch_method, carry, loop_attribute, loop_method
from tilelang_pto.codegen.surface._operators import binary, boolean, compare, conditional, unary
from tilelang_pto.codegen.surface._rules import SPECIAL, Bound
from tilelang_pto.codegen.surface._scope import BUILTINS, Scope
from tilelang_pto.codegen.surface._values import (
    BRANCH,
    FOR,
    FUNCTION,
    KIND_NAMES,
    LOOP,
    NONE,
    OPAQUE,
    PLAIN,
    RUNTIME,
    RUNTIME_VALUE,
    STATIC,
    TUPLE,
    TYPE,
    VOID,
    Branch,
    Function,
    Loop,
    Reporter,
    Value,
    integer,
)
from tilelang_pto.codegen.surface.surface import Surface
from tilelang_pto.codegen.surface.tables import Callable_, Named, load_table

__all__ = ["ExpressionChecker"]

_EXPLICIT_ONLY = tuple(
    f"pto.{stem}" for stem in ("mte_", "set_", "wait_", "section", "vecscope", "alloc_buffer", "init_core", "pipe_barrier")
)


@cache
def _named_values(surface: str) -> dict[str, Value]:
    """The value of every attribute that is not a function."""
    table = load_table(surface)
    values: dict[str, Value] = {}
    for name, entry in table.names.items():
        if not isinstance(entry, Named):
            continue
        if entry.kind == "dtype":
            values[name] = Value(TYPE, "dtype", dtype=entry.token)
        elif entry.kind == "member":
            values[name] = Value(STATIC, "member", text=f"{entry.enum}.{entry.token}")
        elif entry.kind == "constant":
            bits = int(entry.token[6:]) if entry.token.startswith("mask_b") else 0
            values[name] = Value(TYPE, "mask" if bits else "constant", bits=bits, text=None)
    return values


class ExpressionChecker(Reporter):
    """Evaluates expressions to abstract values and reports faults on the way."""

    def __init__(self, surface: Surface) -> None:
        super().__init__(surface.api)
        self.surface = surface
        self.names = surface.api.names
        self.named = _named_values(surface.name)
        self.modules: frozenset[str] = frozenset()
        self.scope = Scope("module", "", None)
        self.regions: list[int] = [0]
        self.active: set[int] = {0}
        self.python_loops = 0
        self._evaluate: dict[type[ast.AST], Callable[..., Value]] = {
            ast.Attribute: self._attribute,
            ast.BinOp: partial(binary, self),
            ast.BoolOp: partial(boolean, self),
            ast.Call: self._call,
            ast.Compare: partial(compare, self),
            ast.Constant: self._constant,
            ast.Dict: self._dict,
            ast.GeneratorExp: self._comprehension,
            ast.IfExp: partial(conditional, self),
            ast.JoinedStr: lambda node: Value(STATIC, text=""),
            ast.Lambda: self._lambda,
            ast.List: self._tuple,
            ast.ListComp: self._comprehension,
            ast.Name: self._name,
            ast.Starred: lambda node: self.expr(node.value),
            ast.Subscript: self._subscript,
            ast.Tuple: self._tuple,
            ast.UnaryOp: partial(unary, self),
        }

    def expr(self, node: ast.expr) -> Value:
        """The abstract value of an expression."""
        method = self._evaluate.get(type(node))
        if method is None:
            self.report(node, type(node).__name__, "this expression does not belong in emitted text")
            return OPAQUE
        return method(node)

    # -- leaves -------------------------------------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> Value:
        value = node.value
        if value is True or value is False:
            return Value(STATIC, "bool", low=int(value), high=int(value))
        if isinstance(value, int):
            return integer(value)
        if isinstance(value, str):
            return Value(STATIC, text=value)
        if value is None:
            return Value(STATIC, "none")
        return Value(STATIC, "float")

    def _name(self, node: ast.Name) -> Value:
        name = node.id
        scope: Scope | None = self.scope
        own = scope
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                value, region = found
                if region not in self.active and scope is own and value.kind not in (STATIC, TYPE, FUNCTION):
                    self._left_region(node, scope)
                return value
            scope = scope.parent
        if name in self.modules:
            self.report(node, name, "the module itself is used as a value")
        elif name not in BUILTINS:
            self.report(node, name, f"the name {name!r} is not defined here")
            self.scope.names[name] = (OPAQUE, 0)
        return OPAQUE if name not in BUILTINS else PLAIN

    def _left_region(self, node: ast.Name, scope: Scope) -> None:
        key = (node.id, node.lineno)
        if key in scope.warned:
            return
        scope.warned.add(key)
        self.report(
            node, node.id, f"{node.id!r} was made inside a block that has ended; its value does not exist here",
            "define it before the block, or pass it out with br.assign or a carry",
        )  # fmt: skip

    def _attribute(self, node: ast.Attribute) -> Value:
        dotted = self.dotted(node)
        if dotted:
            value = self.named.get(dotted)
            if value is not None:
                return value
            entry = self.names.get(dotted)
            if entry is None:
                self.unknown(node, dotted)
                return OPAQUE
            what = "is used without being called" if isinstance(entry, Callable_) else "is not a value"
            self.report(node, dotted, what)
            return OPAQUE
        base = self.expr(node.value)
        if isinstance(base.handle, Loop):
            return loop_attribute(self, node, base.handle)
        if isinstance(base.handle, Branch):
            return branch_attribute(self, node, base.handle)
        if base.sort != "param":
            what = KIND_NAMES.get(base.kind, "a runtime value" if base.kind == RUNTIME else "a Python value")
            self.report(node, node.attr, f"{what} has no attribute {node.attr!r}")
        return OPAQUE

    def dotted(self, node: ast.Attribute) -> str:
        """``"pto.x"`` or ``"pto.x.y"`` for a path that starts at an imported module, else the empty string."""
        base = node.value
        if isinstance(base, ast.Name):
            if base.id in self.modules and base.id not in self.scope.names:
                return f"{base.id}.{node.attr}"
            if base.id in ("pto", "scalar") and base.id not in self.scope.names and base.id not in self.modules:
                self.report(base, base.id, f"{base.id!r} is used but not imported")
                self.modules = self.modules | {base.id}
                return f"{base.id}.{node.attr}"
        elif isinstance(base, ast.Attribute):
            inner = self.dotted(base)
            if inner and isinstance(self.names.get(inner), Named):
                return f"{inner}.{node.attr}"
        return ""

    def unknown(self, node: ast.AST, dotted: str) -> None:
        """Report a path that the surface does not have."""
        advice = self.api.rejected.get(dotted) or self.api.moved.get(dotted, "")
        if dotted in self.api.moved:
            advice = f"use {advice}"
        if not advice:
            head, _, tail = dotted.rpartition(".")
            start = head + "."
            advice = near(tail, (name[len(start) :] for name in self.names if name.startswith(start)))
        self.report(node, dotted, f"PTODSL {self.surface.name} has no {dotted}", advice)

    # -- methods ------------------------------------------------------------------------------------------------------------

    def _method(self, node: ast.Call, func: ast.Attribute) -> Value:
        base = self.expr(func.value)
        handle = base.handle
        kind = {LOOP: "loop", BRANCH: "branch", FOR: "for"}.get(base.kind, "")
        method = self.api.objects[kind].methods.get(func.attr) if kind else None
        if isinstance(handle, Function) and handle.kind == "jit":
            method = self.api.objects["kernel"].methods.get(func.attr)
        if method is None:
            if base.sort == "param" or (isinstance(func.value, ast.Name) and func.value.id in BUILTINS):
                self._loose_arguments(node)
                return PLAIN if func.attr in ("fromhex", "from_bytes", "join", "append", "bit_length") else OPAQUE
            what = KIND_NAMES.get(base.kind, "a runtime value" if base.kind == RUNTIME else "a Python value")
            known = self.api.objects[kind].methods if kind else ()
            self.report(node, func.attr, f"{what} has no method {func.attr!r}", near(func.attr, known))
            self._loose_arguments(node)
            return OPAQUE
        if base.kind == LOOP and isinstance(handle, Loop):
            return loop_method(self, node, func.attr, method, handle)
        if base.kind == BRANCH and isinstance(handle, Branch):
            return branch_method(self, node, func.attr, method, handle)
        if base.kind == FOR:
            return carry(self, node, method)
        self.bind(node, func.attr, method)
        return PLAIN

    def again(self, node: ast.expr) -> Value:
        """The value of an expression that was evaluated before, without reporting again."""
        count = len(self.findings)
        value = self.expr(node)
        del self.findings[count:]
        return value

    # -- calls --------------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        func = node.func
        if isinstance(func, ast.Attribute):
            dotted = self.dotted(func)
            if not dotted:
                return self._method(node, func)
            entry = self.names.get(dotted)
            if isinstance(entry, Callable_):
                return self.api_call(node, entry)
            if entry is None:
                self.unknown(func, dotted)
            elif entry.kind == "dtype":
                return self._dtype_constant(node, entry)
            elif dotted != "pto.const_expr":
                self.report(node, dotted, "cannot be called")
            self._loose_arguments(node)
            return OPAQUE if entry is None else PLAIN
        if isinstance(func, ast.Subscript):
            target = self.expr(func.value)
            self.expr(func.slice)
            self._loose_arguments(node)
            if not isinstance(target.handle, Function) and target.sort != "param":
                self.report(node, "[]", "only a kernel or a decorated SIMT function is launched with a subscript")
            return NONE
        if isinstance(func, ast.Name):
            if self._lookup(func.id) is None and func.id in BUILTINS:
                return self._builtin(node, func.id)
            target = self._name(func)
            if isinstance(target.handle, Function):
                return self._function_call(node, target.handle)
            if target.kind == TYPE and target.sort == "dtype":
                return self._dtype_constant(node, Named(func.id, "dtype", target.dtype))
            if target.sort != "param":
                self.report(node, func.id, f"{func.id!r} is not a function")
            self._loose_arguments(node)
            return OPAQUE
        self.report(node, "()", "this call does not belong in emitted text")
        return OPAQUE

    def _lookup(self, name: str) -> Value | None:
        scope: Scope | None = self.scope
        while scope is not None:
            if name in scope.names:
                return scope.names[name][0]
            scope = scope.parent
        return None

    def _loose_arguments(self, node: ast.Call) -> list[Value]:
        return [self.expr(arg) for arg in node.args] + [self.expr(keyword.value) for keyword in node.keywords]

    def _dtype_constant(self, node: ast.Call, entry: Named) -> Value:
        values = self._loose_arguments(node)
        if len(values) != 1 or node.keywords:
            self.report(node, f"pto.{entry.token}", f"takes one number, {len(values)} arguments given")
        elif values[0].sort == "bool":
            self.report(node, f"pto.{entry.token}", "a Python bool is not a constant", BOOL_ADVICE)
        elif values[0].kind != STATIC and values[0].sort != "param":
            advice = f"use {self.surface.spelling('cast')}"
            self.report(node, f"pto.{entry.token}", "makes constants only, the argument is a runtime value", advice)
        return Value(RUNTIME, dtype=entry.token)

    def _builtin(self, node: ast.Call, name: str) -> Value:
        values = self._loose_arguments(node)
        if name not in ("tuple", "list", "len", "dict", "isinstance", "enumerate", "zip", "reversed"):
            for value in values:
                if value.kind == RUNTIME and value.sort != "param":
                    self.report(node, name, f"Python's {name}() cannot take a runtime value")
                    return OPAQUE
        if name in ("tuple", "list"):
            return values[0] if values and values[0].kind == TUPLE else Value(TUPLE)
        return Value(STATIC, "float") if name == "float" else Value(STATIC, text="") if name == "str" else PLAIN

    def _function_call(self, node: ast.Call, function: Function) -> Value:
        self.bind(node, function.callable.name, function.callable)
        return PLAIN if function.static_result else OPAQUE

    def bind(self, node: ast.Call, name: str, callee: Callable_) -> Bound:
        """Match arguments to parameters; report arity and rule faults; return what each parameter got."""
        given: Bound = {}
        positional = callee.positional
        room = len(positional)
        loose = False
        for position, arg in enumerate(node.args):
            if isinstance(arg, ast.Starred):
                loose = True
            value = self.expr(arg)
            if loose:
                continue
            if position < room:
                param = positional[position]
                given[param.name] = (arg, value)
                check_argument(self, name, param, arg, value)
            elif value.sort == "bool" or value.kind == VOID:
                self.report(arg, name, f"argument {position + 1} is no number or runtime value")
        if len(node.args) > room and not callee.varargs and not loose:
            keyword_only = [p.name for p in callee.params if p.kind == "keyword" and all(k.arg != p.name for k in node.keywords)]
            advice = f"keyword-only: {', '.join(keyword_only)}" if keyword_only else ""
            self.report(node, name, f"takes {room} positional arguments, {len(node.args)} given", advice)
        by_name = callee.by_name
        for keyword in node.keywords:
            value = self.expr(keyword.value)
            key = keyword.arg
            if key is None:
                loose = True
                continue
            found = by_name.get(key)
            if found is None:
                if not callee.varkeywords:
                    self.report(keyword.value, name, f"has no parameter {key!r}", near(key, by_name))
                elif value.kind in KIND_NAMES or value.sort == "bool" or value.text is not None:
                    what = "a Python bool" if value.sort == "bool" else KIND_NAMES.get(value.kind, "a string")
                    if callee.name not in ("pto.simt_launch", "compile"):
                        self.report(keyword.value, name, f"{key} is {what} where a runtime value is expected")
                continue
            if key in given:
                self.report(keyword.value, name, f"{key} is given twice")
            given[key] = (keyword.value, value)
            check_argument(self, name, found, keyword.value, value)
        if not loose:
            missing = [required for required in callee.required if required not in given]
            if missing:
                self.report(node, name, f"lacks {', '.join(missing)}")
        return given

    def api_call(self, node: ast.Call, entry: Callable_) -> Value:
        """Check one call of the API and give its result."""
        name = entry.name
        given = self.bind(node, name, entry)
        scope = self.scope
        if entry.where and scope.simt is not None and scope.simt != (entry.where == "simt"):
            self.report(node, name, "is legal inside pto.simt only" if entry.where == "simt" else "is not legal inside pto.simt")
        if not scope.explicit and name.startswith(_EXPLICIT_ONLY) and ("mode", 0) not in scope.warned:
            scope.warned.add(("mode", 0))
            self.report(node, name, 'needs mode="explicit" at the kernel')
        if entry.pointer_form and entry.pointer_form not in given and node.args and not isinstance(node.args[0], ast.Subscript):
            self.report(node, name, f"lacks {entry.pointer_form}, which the form with a pointer needs")
        special = SPECIAL.get(name)
        if special is not None:
            result = special(self, node, given)
            if result is not None:
                return result
        return self._result(node, entry, given)

    def _result(self, node: ast.Call, entry: Callable_, given: Bound) -> Value:
        gives = entry.gives
        if gives == "value":
            return RUNTIME_VALUE
        if gives == "none":
            return NONE
        if gives == "vreg":
            return self._vector_result(node, entry, given)
        if gives == "mask":
            source = given.get(entry.follows)
            bits = int(entry.follows) if entry.follows.isdigit() else source[1].bits if source else 0
            if not entry.follows.isdigit():
                self._same_masks(node, entry, given)
            return Value(RUNTIME, "mask", bits=bits)
        if gives == "pair":
            return Value(TUPLE, items=(RUNTIME_VALUE, RUNTIME_VALUE))
        if gives == "triple":
            return Value(TUPLE, items=(RUNTIME_VALUE, RUNTIME_VALUE, RUNTIME_VALUE))
        if gives == "store":
            update = given.get("post_update")
            return NONE if update is None or (update[1].text or "").rpartition(".")[2] in ("OFF", "NO_POST_UPDATE") else RUNTIME_VALUE
        return Value(STATIC, "context") if gives == "context" else Value(TYPE, "constant") if gives == "type" else PLAIN

    def _vector_result(self, node: ast.Call, entry: Callable_, given: Bound) -> Value:
        follows = entry.follows
        dtype = follows if follows in self.api.dtypes else ""
        if follows in given:
            source = given[follows][1]
            dtype = source.dtype
            if source.kind == RUNTIME:
                self._same_widths(node, entry, given, dtype)
        update = given.get("post_update")
        if update is not None and (update[1].text or "").rpartition(".")[2] in ("ON", "POST_UPDATE"):
            return Value(TUPLE, items=(Value(RUNTIME, "vreg", dtype=dtype), RUNTIME_VALUE))
        return Value(RUNTIME, "vreg", dtype=dtype)

    def _same_widths(self, node: ast.Call, entry: Callable_, given: Bound, dtype: str) -> None:
        """Operands of one elementwise operation have one width, and the mask's granularity is that width."""
        width = self.api.dtypes.get(dtype, 0)
        if not width:
            return
        for name, (where, value) in given.items():
            if value.sort == "mask" and value.bits and value.bits != width and width <= 32:
                self.report(where, entry.name, f"{name} is a b{value.bits} mask, the elements are {dtype}", f"use a b{width} mask")
            elif value.sort == "vreg" and value.dtype and self.api.dtypes.get(value.dtype, width) != width:
                self.report(where, entry.name, f"{name} holds {value.dtype} elements, the other operand {dtype}")

    def _same_masks(self, node: ast.Call, entry: Callable_, given: Bound) -> None:
        bits = {value.bits for _, value in given.values() if value.sort == "mask" and value.bits}
        widths = {self.api.dtypes.get(value.dtype, 0) for _, value in given.values() if value.sort == "vreg" and value.dtype} - {0, 64}
        if len(bits | widths) > 1:
            shown = ", ".join(f"b{width}" for width in sorted(bits | widths))
            self.report(node, entry.name, f"operands of different granularity: {shown}")

    # -- containers ---------------------------------------------------------------------------------------------------------

    def _tuple(self, node: ast.Tuple | ast.List) -> Value:
        items = tuple(self.expr(item) for item in node.elts)
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return Value(TUPLE)
        return Value(TUPLE, items=items)

    def _dict(self, node: ast.Dict) -> Value:
        for item in (*node.keys, *node.values):
            if item is not None:
                self.expr(item)
        return Value(STATIC, "dict")

    def _subscript(self, node: ast.Subscript) -> Value:
        base, index = self.expr(node.value), self.expr(node.slice)
        if base.kind == RUNTIME and base.sort != "param":
            self.report(node, "[]", "a runtime value cannot be indexed", f"use {self.surface.spelling('load', 'simt')}")
            return OPAQUE
        if base.kind == TUPLE:
            if index.kind == RUNTIME and index.sort != "param":
                self.report(node, "[]", "a Python sequence has no runtime index", "use pto.alloc_buffer")
            elif base.items is not None and index.low is not None and index.low == index.high and index.low < len(base.items):
                return base.items[index.low]
            return RUNTIME_VALUE if base.holds_runtime() else OPAQUE
        return PLAIN if base.kind == STATIC else OPAQUE

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        outer = self.scope
        self.scope = Scope(outer.kind, outer.name, outer, rewrite=False, explicit=outer.explicit)
        self.scope.simt = outer.simt
        for generator in node.generators:
            value = self.iterate(generator.iter)
            self.bind_target(generator.target, value)
            for test in generator.ifs:
                self.expr(test)
        item = self.expr(node.elt)
        self.scope = outer
        return Value(TUPLE, sort="" if item.kind != RUNTIME else "runtime")

    def _lambda(self, node: ast.Lambda) -> Value:
        outer = self.scope
        self.scope = Scope("plain", "<lambda>", outer)
        for arg in (*node.args.args, *node.args.kwonlyargs):
            self.scope.names[arg.arg] = (OPAQUE, self.regions[-1])
        self.expr(node.body)
        self.scope = outer
        return Value(STATIC, "lambda")

    def iterate(self, node: ast.expr) -> Value:
        """The value of the items of an iterable of trace time; reports iteration over runtime values."""
        if isinstance(node, ast.Call):
            func = node.func
            name = func.id if isinstance(func, ast.Name) else self.dotted(func) if isinstance(func, ast.Attribute) else ""
            if name in ("range", "pto.static_range"):
                values = self._loose_arguments(node)
                if not 1 <= len(values) <= 3 or node.keywords:
                    self.report(node, name, "takes one to three positional numbers")
                for value in values:
                    if value.kind == RUNTIME and value.sort != "param":
                        self.report(node, name, "a runtime bound does not exist while tracing", "use pto.for_(lo, hi, step=...)")
                        return OPAQUE
                return _range_value(values)
        value = self.expr(node)
        if value.kind == RUNTIME and value.sort != "param":
            self.report(node, "for", "runtime values cannot be iterated over")
            return OPAQUE
        if value.kind == TUPLE:
            if value.items and all(item.kind == RUNTIME for item in value.items):
                return RUNTIME_VALUE
            return OPAQUE if value.items is None or value.holds_runtime() else PLAIN
        return OPAQUE if value.kind == RUNTIME else PLAIN

    def bind_target(self, target: ast.expr, value: Value) -> None:
        """Assign a value to a name or take it apart."""
        if isinstance(target, ast.Name):
            self.scope.names[target.id] = (value, self.regions[-1])
            return
        if isinstance(target, (ast.Tuple, ast.List)):
            items = value.items if value.kind == TUPLE else None
            if items is not None and len(items) != len(target.elts) and not any(isinstance(e, ast.Starred) for e in target.elts):
                self.report(target, "=", f"{len(target.elts)} names for {len(items)} values")
                items = None
            elif value.kind == RUNTIME and value.sort != "param" and value is not RUNTIME_VALUE:
                self.report(target, "=", "a single runtime value cannot be taken apart")
            for position, item in enumerate(target.elts):
                part = items[position] if items is not None and position < len(items) else OPAQUE
                self.bind_target(item.value if isinstance(item, ast.Starred) else item, part)
            return
        if isinstance(target, ast.Subscript):
            base = self.expr(target.value)
            index = self.expr(target.slice)
            if base.kind == RUNTIME and base.sort != "param":
                self.report(target, "[]=", "a runtime value cannot be assigned into", f"use {self.surface.spelling('store', 'simt')}")
            elif index.kind == RUNTIME and index.sort != "param":
                self.report(target, "[]=", "a Python sequence has no runtime index", "use pto.alloc_buffer")
            return
        self.report(target, "=", "only names are assigned")


def _range_value(values: list[Value]) -> Value:
    if len(values) == 1:
        lows: tuple[int | None, int | None] = (0, values[0].high)
    elif len(values) >= 2:
        lows = (values[0].low, values[1].high)
    else:
        return PLAIN
    if lows[0] is None or lows[1] is None or lows[1] <= lows[0] or (len(values) == 3 and (values[2].low or 0) < 1):
        return PLAIN
    return Value(STATIC, low=lows[0], high=lows[1] - 1)
