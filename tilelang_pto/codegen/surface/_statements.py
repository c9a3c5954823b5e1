"""Statements of emitted text: the module frame, functions, blocks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tilelang_pto.codegen.surface._decorators import FunctionFrame, function_frame
from tilelang_pto.codegen.surface._expressions import ExpressionChecker
from tilelang_pto.codegen.surface._scope import Scope, assigned_names
from tilelang_pto.codegen.surface._values import (
    BRANCH,
    FOR,
    FUNCTION,
    LOOP,
    OPAQUE,
    PLAIN,
    RUNTIME,
    RUNTIME_VALUE,
    STATIC,
    VOID,
    Branch,
    Finding,
    Function,
    Loop,
    Value,
)
from tilelang_pto.codegen.surface.surface import Surface
from tilelang_pto.codegen.surface.tables import Callable_, Rule, params_of

__all__ = ["ModuleChecker"]

_ANY = Rule("any", "any")
_PYTHON_TYPES = frozenset(("int", "float", "str", "bool"))


class ModuleChecker(ExpressionChecker):
    """Checks one module; use it once."""

    def __init__(self, surface: Surface) -> None:
        super().__init__(surface)
        self._next_region = 0
        self._execute: dict[type[ast.AST], Callable[..., None]] = {
            ast.AnnAssign: self._annotated,
            ast.Assert: self._assert,
            ast.Assign: self._assign,
            ast.AugAssign: self._augmented,
            ast.Break: self._nothing,
            ast.Continue: self._nothing,
            ast.Expr: self._expression,
            ast.For: self._for,
            ast.FunctionDef: self._function,
            ast.If: self._if,
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.Pass: self._nothing,
            ast.Return: self._return,
            ast.While: self._while,
            ast.With: self._with,
        }

    def check(self, tree: ast.Module) -> list[Finding]:
        """All findings of a module, in text order."""
        scope = self.scope
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                scope.names[node.name] = (Value(FUNCTION, handle=_signature(node)), 0)
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                self._from(node)
            elif isinstance(node, (ast.FunctionDef, ast.Assign, ast.AnnAssign, ast.Expr, ast.Import, ast.Pass)):
                if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
                    self.report(node, "module", "a module holds imports, constants and functions only")
                self.statement(node)
            else:
                self.report(node, type(node).__name__, "a module holds imports, constants and functions only")
        return sorted(self.findings, key=lambda finding: (finding.line, finding.column))

    # -- module level -------------------------------------------------------------------------------------------------------

    def _from(self, node: ast.ImportFrom) -> None:
        if node.module == "__future__":
            self.report(node, "import", "annotations of a kernel must be objects", "leave __future__ out")
            return
        if node.module != "ptodsl" or node.level:
            self._import(node)
            return
        found = set(self.modules)
        for alias in node.names:
            if alias.asname:
                self.report(node, "import", f"{alias.name} is imported under another name", f"from ptodsl import {alias.name}")
            if alias.name not in self.api.exports:
                exports = ", ".join(sorted(self.api.exports))
                self.report(node, "import", f"ptodsl {self.surface.name} exports no {alias.name!r}", f"from ptodsl import {exports}")
            found.add(alias.name)
        self.modules = frozenset(found)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        where = " at the top of the module" if self.scope.kind != "module" else ""
        self.report(node, "import", f"only ptodsl is imported{where}", f"from ptodsl import {', '.join(sorted(self.api.exports))}")
        for alias in node.names:
            self.scope.names[(alias.asname or alias.name).partition(".")[0]] = (OPAQUE, 0)

    # -- simple statements --------------------------------------------------------------------------------------------------

    def statement(self, node: ast.stmt) -> None:
        """Check one statement."""
        method = self._execute.get(type(node))
        if method is None:
            self.report(node, type(node).__name__, "this statement does not belong in emitted text")
        else:
            method(node)

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Check statements in order."""
        execute = self._execute
        for node in statements:
            method = execute.get(type(node))
            if method is None:
                self.statement(node)
            else:
                method(node)

    def _nothing(self, node: ast.stmt) -> None:
        pass

    def _expression(self, node: ast.Expr) -> None:
        value = self.expr(node.value)
        if (value.kind == STATIC and value.sort == "context") or value.kind == FOR:
            self.report(node, "with", "this call opens a block", "write it in a with statement")

    def _assign(self, node: ast.Assign) -> None:
        value = self.expr(node.value)
        self._assignable(node, value)
        for target in node.targets:
            self.bind_target(target, value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        self.expr(node.annotation)
        value = PLAIN
        if node.value is not None:
            value = self.expr(node.value)
            self._assignable(node, value)
        self.bind_target(node.target, value)

    def _assignable(self, node: ast.stmt, value: Value) -> None:
        if value.kind == VOID:
            self.report(node, "=", "the call returns nothing")
        elif (value.kind == STATIC and value.sort == "context") or value.kind == FOR:
            self.report(node, "=", "this call opens a block", "write it in a with statement, or name a loop with .carry(...)")

    def _augmented(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.report(node, "=", "only names are assigned")
            self.expr(node.value)
            return
        load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = self.expr(ast.copy_location(ast.BinOp(load, node.op, node.value), node))
        self.bind_target(node.target, value)

    def _assert(self, node: ast.Assert) -> None:
        if self.expr(node.test).kind == RUNTIME:
            self.report(node, "assert", "a runtime value has no truth value while tracing", "use pto.if_ with pto.trap()")

    def _return(self, node: ast.Return) -> None:
        value = self.expr(node.value) if node.value is not None else PLAIN
        if self.scope.kind in ("jit", "simt", "tileop") and node.value is not None and value.sort != "none":
            self.report(node, "return", "a kernel returns nothing")
        elif self.scope.kind == "jit" and len(self.regions) > 1:
            self.report(node, "return", "leaves a block that is being traced", "use pto.if_")
        elif value.kind == VOID:
            self.report(node, "return", "the call returns nothing")

    # -- native control flow ------------------------------------------------------------------------------------------------

    def _if(self, node: ast.If) -> None:
        test = self.expr(node.test)
        runtime = test.kind == RUNTIME
        if runtime and not self.scope.rewrite:
            self.report(node, "if", "a native if on a runtime value is not traced here", "use pto.if_")
        names = self._rewritten(node, [*node.body, *node.orelse], runtime)
        self.body(node.body)
        self.body(node.orelse)
        self._forget(names, runtime)

    def _while(self, node: ast.While) -> None:
        test = self.expr(node.test)
        if not self.scope.rewrite:
            if test.kind == RUNTIME:
                self.report(node, "while", "a native while on a runtime value is not traced here", "use pto.for_ with a carried flag")
            elif isinstance(node.test, ast.Constant):
                self.report(node, "while", "never ends while tracing")
        names = self._rewritten(node, node.body, self.scope.rewrite)
        self._forget(names, self.scope.rewrite)
        self.python_loops += 1
        self.body(node.body)
        self.python_loops -= 1
        self.body(node.orelse)
        self._forget(names, self.scope.rewrite)

    def _for(self, node: ast.For) -> None:
        device = self._device_loop(node)
        value = RUNTIME_VALUE if device else self.iterate(node.iter)
        if device and not isinstance(node.target, ast.Name):
            self.report(node, "for", "the target of a device loop is one plain name")
        names = self._rewritten(node, node.body, device)
        self._forget(names, device)
        self.bind_target(node.target, value)
        self.python_loops += 1
        self.body(node.body)
        self.python_loops -= 1
        self.body(node.orelse)
        self._forget(names, device)

    def _device_loop(self, node: ast.For) -> bool:
        """Whether the rewrite turns this loop into a device loop; its bounds are then checked here."""
        call = node.iter
        if not isinstance(call, ast.Call):
            return False
        func = call.func
        name = func.id if isinstance(func, ast.Name) else self.dotted(func) if isinstance(func, ast.Attribute) else ""
        if name == "pto.range" and name in self.names:
            if not self.scope.rewrite:
                self.report(node, name, "is for rewritten functions only", "use pto.for_")
        elif name != "range" or not self.scope.rewrite:
            return False
        values = self._loose_arguments(call)
        if not 1 <= len(call.args) <= 3 or (name == "range" and call.keywords):
            self.report(call, name, "takes one to three positional bounds")
        for arg, value in zip(call.args, values, strict=False):
            if value.sort in ("bool", "float", "vreg", "mask") or value.text is not None:
                self.report(arg, name, "a bound is no integer")
        for keyword in call.keywords:
            if keyword.arg not in ("unroll", "unroll_factor"):
                self.report(call, name, f"has no parameter {keyword.arg!r}")
        return True

    def _rewritten(self, node: ast.stmt, body: Sequence[ast.stmt], runtime: bool) -> set[str]:
        """Names a native block assigns; names it carries may not start with an underscore."""
        names = assigned_names(body)
        if runtime and self.scope.rewrite and not self.surface.has_branch_get:
            for name in sorted(names):
                if name.startswith("_") and name in self.scope.names:
                    message = f"{name!r} is carried by the block and starts with an underscore"
                    self.report(node, type(node).__name__.lower(), message, "name it without the underscore")
        return names

    def _forget(self, names: set[str], runtime: bool) -> None:
        """After a block only the kind of the names it assigns is known, not their numbers."""
        known = self.scope.names
        for name in names:
            if name in known:
                value, region = known[name]
                if value.kind == STATIC and (runtime or value.low is not None or value.text is not None):
                    known[name] = (RUNTIME_VALUE if runtime else PLAIN, region)

    # -- blocks -------------------------------------------------------------------------------------------------------------

    def _with(self, node: ast.With) -> None:
        if len(node.items) != 1:
            self.report(node, "with", "one block per with statement")
        item = node.items[0]
        target = item.optional_vars
        context = item.context_expr
        if target is not None and not isinstance(target, ast.Name):
            self.report(target, "with", "the target is one plain name")
            target = None
        if isinstance(context, ast.Attribute) and context.attr in ("then_", "else_") and not self.dotted(context):
            self._branch_block(node, context, target)
            return
        value = self.expr(context)
        handle = value.handle
        if value.kind == LOOP and isinstance(handle, Loop):
            self._loop_block(node, context, target, handle)
        elif value.kind == FOR:
            self._region(node.body, target, RUNTIME_VALUE)
        elif isinstance(context, ast.Call) and isinstance(context.func, ast.Attribute) and value.sort == "context":
            name = self.dotted(context.func)
            if name == "pto.if_":
                self._if_block(node, target)
            else:
                self._unit_block(node, context, name, target)
        else:
            if value.sort != "param":
                self.report(context, "with", "this is no block of the API")
            self._region(node.body, target, OPAQUE)

    def _region(self, body: Sequence[ast.stmt], target: ast.Name | None = None, value: Value = RUNTIME_VALUE) -> int:
        region = self._open_region()
        if target is not None:
            self.bind_target(target, value)
        self.body(body)
        self._close_region()
        return region

    def _open_region(self) -> int:
        self._next_region += 1
        self.regions.append(self._next_region)
        self.active.add(self._next_region)
        return self._next_region

    def _close_region(self) -> None:
        self.active.discard(self.regions.pop())

    def _loop_block(self, node: ast.With, context: ast.expr, target: ast.Name | None, loop: Loop) -> None:
        if not isinstance(context, ast.Name) or target is not None:
            self.report(node, "with", "a loop with carries is named first: loop = pto.for_(...).carry(...), then with loop:")
            if target is not None:
                self.bind_target(target, Value(LOOP, handle=loop))
        if loop.state != "new":
            self.report(node, "with", f"the loop of line {loop.line} is entered twice")
        loop.state = "open"
        loop.region = self._open_region()
        loop.python_loops = self.python_loops
        loop.updates = 0
        self.body(node.body)
        self._close_region()
        loop.state = "done"
        if not loop.updates:
            self.report(node, "update", "the loop carries values and is never updated", "end its body with .update(...)")

    def _if_block(self, node: ast.With, target: ast.Name | None) -> None:
        branch = Branch(node.lineno)
        if target is None:
            self.report(node, "pto.if_", "needs a name for its branches", "with pto.if_(cond) as br:")
        else:
            self.bind_target(target, Value(BRANCH, handle=branch))
        for statement in node.body:
            if not _is_branch(statement, target):
                self.report(
                    statement, "pto.if_", "holds nothing but its two branches",
                    f"move this into with {target.id}.then_:" if target is not None else "",
                )  # fmt: skip
        self.body(node.body)
        branch.open = False
        if "then_" not in branch.entered and target is not None:
            self.report(node, "pto.if_", "never enters then_")
        given = [branch.assigned.get(side, frozenset()) for side in ("then_", "else_")]
        odd = given[0] ^ given[1]
        if odd:
            self.report(node, "pto.if_", f"only one branch assigns {', '.join(sorted(odd))}", "assign the same names in then_ and else_")

    def _branch_block(self, node: ast.With, context: ast.Attribute, target: ast.Name | None) -> None:
        value = self.expr(context.value)
        branch = value.handle
        side = context.attr
        if value.kind != BRANCH or not isinstance(branch, Branch):
            self.report(context, side, "belongs to the handle of a pto.if_")
            self._region(node.body, target, OPAQUE)
            return
        if target is not None:
            self.report(node, side, "gives no value to name")
        if not branch.open or branch.current:
            self.report(node, side, f"the if_ of line {branch.line} is not open here")
        if side in branch.entered:
            self.report(node, side, f"entered twice, first at line {branch.entered[side]}")
        elif side == "then_" and "else_" in branch.entered:
            self.report(node, side, "then_ comes before else_")
        branch.entered[side] = node.lineno
        before = branch.current
        branch.current = side
        branch.python_loops = self.python_loops
        branch.region = self._open_region()
        self.body(node.body)
        self._close_region()
        branch.current = before

    def _unit_block(self, node: ast.With, context: ast.Call, name: str, target: ast.Name | None) -> None:
        if target is not None:
            self.report(node, name, "gives no value to name")
        scope = self.scope
        if name == "pto.section":
            self._section(node, context)
            return
        outer = scope.simt
        if name == "pto.simt":
            if scope.kind == "simt":
                self.report(node, name, "is not nested")
            scope.simt = True
        self._region(node.body)
        scope.simt = outer

    def _section(self, node: ast.With, context: ast.Call) -> None:
        scope = self.scope
        first = context.args[0] if context.args else None
        kind = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
        if scope.kernel_kind:
            self.report(node, "pto.section", "a kernel with sections has no kernel_kind", "leave kernel_kind out")
        if scope.section:
            self.report(node, "pto.section", f"stands inside the {scope.section} section")
        elif len(self.regions) > 1 or self.python_loops or scope.kind != "jit":
            self.report(node, "pto.section", "must stand directly in the body of the kernel")
        if kind in scope.sections:
            self.report(node, "pto.section", f"a second {kind} section in one kernel")
        scope.sections.add(kind)
        outer = scope.section
        scope.section = kind
        self._region(node.body)
        scope.section = outer

    # -- functions ----------------------------------------------------------------------------------------------------------

    def _function(self, node: ast.FunctionDef) -> None:
        outer, regions, active, loops = self.scope, self.regions, self.active, self.python_loops
        frame = function_frame(self, node)
        outer.names[node.name] = (Value(FUNCTION, handle=_signature(node, frame)), regions[-1])
        scope = Scope(frame.kind, node.name, outer, rewrite=frame.rewrite, explicit=frame.explicit)
        scope.kernel_kind = frame.kernel_kind
        self.scope, self.regions, self.active, self.python_loops = scope, [0], {0}, 0
        for name, value in frame.parameters.items():
            scope.names[name] = (value, 0)
        self.body(node.body)
        self.scope, self.regions, self.active, self.python_loops = outer, regions, active, loops


def _is_branch(node: ast.stmt, target: ast.Name | None) -> bool:
    if not isinstance(node, ast.With) or target is None:
        return isinstance(node, ast.With)
    context = node.items[0].context_expr
    return (
        isinstance(context, ast.Attribute)
        and context.attr in ("then_", "else_")
        and isinstance(context.value, ast.Name)
        and context.value.id == target.id
    )


def _signature(node: ast.FunctionDef, frame: FunctionFrame | None = None) -> Function:
    callee = Callable_(
        node.name,
        params_of(node.args, {}, _ANY),
        varargs=node.args.vararg is not None,
        varkeywords=node.args.kwarg is not None,
    )
    static = isinstance(node.returns, ast.Name) and node.returns.id in _PYTHON_TYPES
    return Function(callee, frame.kind if frame else "plain", static)
