"""Control flow: kernels, loops, branches, vector and SIMT functions, sections."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.program import Function, Operation, Parameter, Region
from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.registry import AUGUST, EVERYWHERE, KERNEL, SEPTEMBER, declare_opcodes, entry
from tilelang_pto.sim.standin.types import PLAIN, DType, PtrType, SurfaceType
from tilelang_pto.sim.standin.values import Mask, Pointer, SurfaceScalar, Value, VectorRegister, VecValue, describe, wrap

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder, Scope

__all__ = ["BranchHandle", "ConstExpr", "KernelHandle", "LoopHandle"]

I1, INDEX = PLAIN["i1"], PLAIN["index"]

declare_opcodes("for", "if", "section", "while", "yield", "vecscope", "simt")

_RESERVED_LOOP = frozenset({"carry", "final", "iv", "update"})
_RESERVED_BRANCH = frozenset({"assign", "else_", "get", "then_"})


def _check_carriable(rec: Recorder, name: str, value: Any) -> Value:
    if isinstance(value, (SurfaceScalar, Pointer, VectorRegister, Mask, VecValue)):
        return value
    advice = "a runtime scalar, pointer, vector register or mask"
    if scalar.is_literal(value):
        advice = f"a typed constant: pto.const({value!r}, dtype=...)"
    rec.refuse(f"{name} is {describe(value)}", advice)


class _Context:
    """A region opened by ``with``. When the body raises, the region stays as it is and the error goes on."""

    recorder: Recorder

    def _close(self) -> None:
        raise NotImplementedError

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._close()


# -- loops -------------------------------------------------------------------------------------------------


class LoopHandle(_Context):
    """``pto.for_(...)``: the loop and its carried values."""

    def __init__(self, recorder: Recorder, bounds: tuple[SurfaceScalar, ...], line: int) -> None:
        self.recorder = recorder
        self._bounds = bounds
        self._line = line
        self._initial: dict[str, Value] = {}
        self._current: dict[str, Value] = {}
        self._final: dict[str, Value] = {}
        self._updated: dict[str, Value] | None = None
        self._scope: Scope | None = None
        self._operation: Operation | None = None
        self._iv: Any = None

    def carry(self, **initial: Any) -> LoopHandle:
        """Name the carried values and give their first values."""
        rec = self.recorder
        if self._scope is not None or self._initial:
            rec.refuse("carry may be called once, before the loop is entered", "one .carry(a=..., b=...)")
        if not initial:
            rec.refuse("carry without values", ".carry(a=...), or leave it out")
        for name, value in initial.items():
            if name in _RESERVED_LOOP or name.startswith("_"):
                rec.refuse(
                    f"{name!r} cannot name a carried value",
                    "a name without a leading underscore, other than " + ", ".join(sorted(_RESERVED_LOOP)),
                )
            self._initial[name] = _check_carriable(rec, f"the first value of {name}", value)
        return self

    def __enter__(self) -> Any:
        rec = self.recorder
        if self._scope is not None:
            rec.refuse("this pto.for_ was already entered", "a new pto.for_ for every loop")
        region = Region()
        operands = (*self._bounds, *self._initial.values())
        results = [value.surface_type for value in self._initial.values()]
        outer = rec.scope
        assert outer is not None
        finals = rec.emit("for", operands, results, None, [region], line=self._line)
        self._final = dict(zip(self._initial, finals, strict=True))
        self._operation = outer.region.operations[-1]
        scope = rec.push(region, "for")
        self._scope = scope
        kinds: list[SurfaceType] = [INDEX, *results]
        numbers = [rec.new_id(kind) for kind in kinds]
        region.arguments.extend(numbers)
        values = [wrap(rec, number, kind, scope) for number, kind in zip(numbers, kinds, strict=True)]
        self._iv = values[0]
        self._current = dict(zip(self._initial, values[1:], strict=True))
        return self if self._initial else self._iv

    @property
    def iv(self) -> Any:
        """The induction value."""
        if self._scope is None or not self._scope.open:
            self.recorder.refuse("the induction value is known inside the loop only", "carry what is needed after the loop")
        return self._iv

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        rec = self.recorder
        if name not in self._initial:
            names = ", ".join(self._initial) or "none"
            rec.refuse(f"the loop carries no {name!r}", f"carried: {names}")
        if self._scope is None or not self._scope.open:
            rec.refuse(
                f"loop.{name} is the value inside the loop", f"loop.final({name!r}) after it" if self._scope else "enter the loop first"
            )
        return self._current[name]

    def update(self, **values: Any) -> None:
        """Give the carried values of the next iteration."""
        rec = self.recorder
        if self._scope is None or not self._scope.open:
            rec.refuse("loop.update outside of its loop", "call it inside `with loop:`")
        if rec.scope is not self._scope:
            rec.refuse(
                "loop.update inside a nested region", "merge the values first (br.assign, loop.final), then call it in the loop body itself"
            )
        if self._updated is not None:
            rec.refuse("loop.update was already called", "exactly one call per loop")
        _same_names(rec, "loop.update", tuple(values), tuple(self._initial))
        updated = {}
        for name, before in self._initial.items():
            value = _check_carriable(rec, f"the next value of {name}", values[name])
            rec.check_use("loop.update", value)
            if value.surface_type != before.surface_type:
                rec.refuse(
                    f"{name} is carried as {_type_name(before)} and updated with {_type_name(value)}",
                    "cast one of them: the types must be equal",
                )
            updated[name] = value
        self._updated = updated

    def final(self, name: str) -> Any:
        """The value of a carried name after the loop."""
        rec = self.recorder
        if name not in self._initial:
            rec.refuse(f"the loop carries no {name!r}", f"carried: {', '.join(self._initial) or 'none'}")
        if self._scope is None or self._scope.open:
            rec.refuse(f"loop.final({name!r}) before the end of the loop", "call it after the `with` block")
        return self._final[name]

    def _close(self) -> None:
        rec = self.recorder
        scope = self._scope
        assert scope is not None
        if self._initial and self._updated is None:
            rec.refuse(
                f"the loop carries {', '.join(self._initial)} and its body has no loop.update",
                "loop.update(...) once in the loop body",
                self._line,
            )
        rec.emit("yield", tuple((self._updated or {}).values()))
        rec.pop(scope)


class _State:
    """The carried values as the condition of a ``pto.while_`` sees them."""

    def __init__(self, recorder: Recorder, values: dict[str, Value]) -> None:
        self._recorder = recorder
        self._values = values

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._values:
            self._recorder.refuse(f"the loop carries no {name!r}", f"carried: {', '.join(self._values)}")
        return self._values[name]


class WhileHandle(LoopHandle):
    """``pto.while_(condition, a=..., ...)``: runs as long as the condition of the carried values holds."""

    def __init__(self, recorder: Recorder, condition: Callable[[Any], Any], initial: dict[str, Any], line: int) -> None:
        super().__init__(recorder, (), line)
        self._condition = condition
        super().carry(**initial)

    def carry(self, **initial: Any) -> LoopHandle:
        """Not for this loop: its carried values are the keywords of ``pto.while_``."""
        self.recorder.refuse("carry on a pto.while_", "pto.while_(condition, a=..., b=...)")

    @property
    def iv(self) -> Any:
        """A while loop counts nothing."""
        self.recorder.refuse("a pto.while_ has no induction value", "carry a counter")

    def __enter__(self) -> WhileHandle:
        rec = self.recorder
        if self._scope is not None:
            rec.refuse("this pto.while_ was already entered", "a new pto.while_ for every loop")
        test, body = Region(), Region()
        results = [value.surface_type for value in self._initial.values()]
        finals = rec.emit("while", tuple(self._initial.values()), results, None, [test, body], line=self._line)
        self._final = dict(zip(self._initial, finals, strict=True))
        scope, values = self._open(test, results)
        condition = self._condition(_State(rec, values))
        rec.emit("yield", (scalar.nonzero(rec, "the condition of pto.while_", condition),), line=self._line)
        rec.pop(scope)
        self._scope, self._current = self._open(body, results)
        return self

    def _open(self, region: Region, kinds: list[SurfaceType]) -> tuple[Scope, dict[str, Value]]:
        rec = self.recorder
        scope = rec.push(region, "while")
        numbers = [rec.new_id(kind) for kind in kinds]
        region.arguments.extend(numbers)
        values = [wrap(rec, number, kind, scope) for number, kind in zip(numbers, kinds, strict=True)]
        return scope, dict(zip(self._initial, values, strict=True))


def _type_name(value: Value) -> str:
    kind = value.surface_type
    return kind.name if isinstance(kind, DType) else str(kind)


def _same_names(rec: Recorder, call: str, given: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    missing = [name for name in wanted if name not in given]
    extra = [name for name in given if name not in wanted]
    if missing or extra:
        parts = []
        if missing:
            parts.append("lacks " + ", ".join(missing))
        if extra:
            parts.append("has unknown " + ", ".join(extra))
        rec.refuse(f"{call} {' and '.join(parts)}", f"exactly: {', '.join(wanted)}")


def _for(rec: Recorder, start: Any, stop: Any, step: Any) -> LoopHandle:
    if isinstance(step, int) and not isinstance(step, bool) and step <= 0:
        rec.refuse(f"step={step}", "a positive step")
    low, high, by = (scalar.convert_integral(rec, name, value, INDEX) for name, value in (("start", start), ("stop", stop), ("step", step)))
    return LoopHandle(rec, (low, high, by), rec.line())


@entry("for_", sep=None, opcodes=("for",))
def for_aug(rec: Recorder, start: Any, stop: Any, *, step: Any) -> LoopHandle:
    """``pto.for_(start, stop, step=s)``."""
    return _for(rec, start, stop, step)


@entry("for_", aug=None, opcodes=("for",))
def for_sep(rec: Recorder, start: Any, stop: Any, *, step: Any, unroll: Any = None, unroll_factor: Any = None) -> LoopHandle:
    """``pto.for_(start, stop, step=s, unroll=..., unroll_factor=...)``; unrolling does not change the meaning."""
    if unroll not in (None, "enable", "full"):
        rec.refuse(f"unroll={unroll!r} is not legal", "enable or full")
    if unroll_factor is not None:
        scalar.static_int(rec, "unroll_factor", unroll_factor, 1, 1 << 20)
        if unroll is not None:
            rec.refuse("unroll and unroll_factor together", "one of them")
    return _for(rec, start, stop, step)


@entry("while_", opcodes=("while",))
def while_(rec: Recorder, condition: Any, **kwargs: Any) -> WhileHandle:
    """``pto.while_(condition, a=..., ...)``; the condition is a function of the carried values."""
    if not callable(condition):
        rec.refuse("the condition of pto.while_ is not a function", "pto.while_(lambda state: state.go, go=...)")
    if not kwargs:
        rec.refuse("pto.while_ without carried values", "pto.while_(condition, a=...)")
    return WhileHandle(rec, condition, kwargs, rec.line())


@entry("static_range", opcodes=(), places=EVERYWHERE)
def static_range(rec: Recorder, *args: Any) -> range:
    """``pto.static_range(...)``: a Python range, unrolled while tracing."""
    for value in args:
        if isinstance(value, Value):
            rec.refuse("static_range over a runtime value", "pto.for_(lo, hi, step=s)")
    return range(*args)


# -- branches ----------------------------------------------------------------------------------------------


class _Arm(_Context):
    """``br.then_`` or ``br.else_``."""

    def __init__(self, branch: BranchHandle, kind: str) -> None:
        self.recorder = branch.recorder
        self.branch = branch
        self.kind = kind
        self.region = Region()
        self.scope: Scope | None = None
        self.assigned: dict[str, Any] | None = None

    def __enter__(self) -> None:
        rec = self.recorder
        if self.scope is not None:
            rec.refuse(f"br.{self.kind}_ was already entered", "enter each branch once")
        if rec.scope is not self.branch.scope or self.branch.scope is None:
            rec.refuse(f"br.{self.kind}_ outside of its pto.if_", "`with pto.if_(c) as br:` directly around `with br.then_:`")
        self.scope = rec.push(self.region, self.kind)

    def _close(self) -> None:
        assert self.scope is not None
        self.recorder.pop(self.scope)


class BranchHandle(_Context):
    """``pto.if_(condition)``: two branches and their merged values."""

    def __init__(self, recorder: Recorder, condition: SurfaceScalar, line: int) -> None:
        self.recorder = recorder
        self.scope: Scope | None = None
        self._condition = condition
        self._line = line
        self._then = _Arm(self, "then")
        self._else = _Arm(self, "else")
        self._merged: dict[str, Value] | None = None

    def __enter__(self) -> BranchHandle:
        rec = self.recorder
        if self.scope is not None:
            rec.refuse("this pto.if_ was already entered", "a new pto.if_ for every branch")
        self.scope = rec.push(Region(), "if")
        return self

    @property
    def then_(self) -> _Arm:
        """The branch that runs when the condition holds."""
        return self._then

    @property
    def else_(self) -> _Arm:
        """The other branch."""
        return self._else

    def assign(self, **values: Any) -> None:
        """Give the merged values of the branch that is open."""
        rec = self.recorder
        arm = next((arm for arm in (self._then, self._else) if arm.scope is not None and arm.scope is rec.scope), None)
        if arm is None:
            rec.refuse("br.assign outside of a branch of this pto.if_", "call it directly in `with br.then_:` and in `with br.else_:`")
        if arm.assigned is not None:
            rec.refuse("br.assign was already called in this branch", "one call with all names")
        if not values:
            rec.refuse("br.assign without values", "br.assign(x=...)")
        for name, value in values.items():
            if name in _RESERVED_BRANCH:
                rec.refuse(f"{name!r} cannot name a merged value", "another name")
            if not scalar.is_literal(value):
                rec.check_use("br.assign", _check_carriable(rec, f"the value of {name}", value))
        arm.assigned = dict(values)

    def _read(self, name: str) -> Any:
        if self._merged is None:
            self.recorder.refuse(f"br.{name} before the end of the pto.if_", "read merged values after the `with` block")
        if name not in self._merged:
            self.recorder.refuse(f"the branches assign no {name!r}", f"assigned: {', '.join(self._merged) or 'none'}")
        return self._merged[name]

    def get(self, name: str) -> Any:
        """The merged value of a name (2026-09 API)."""
        if self.recorder.surface == AUGUST:
            self.recorder.refuse("the branch handle of the 2026-08 API has no get", f"br.{name}")
        return self._read(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        recorder: Recorder = self.__dict__["recorder"]
        if name.startswith("_"):
            advice = "a name without a leading underscore" + (f", or br.get({name!r})" if recorder.surface == SEPTEMBER else "")
            recorder.refuse(f"br.{name}: names with a leading underscore cannot be read as attributes", advice)
        return self._read(name)

    def _close(self) -> None:
        rec = self.recorder
        assert self.scope is not None
        then, other = self._then.assigned or {}, self._else.assigned or {}
        if tuple(sorted(then)) != tuple(sorted(other)):
            only = sorted(set(then) ^ set(other))
            rec.refuse(
                f"{', '.join(only)} assigned in one branch only", "br.assign with the same names in br.then_ and br.else_", self._line
            )
        then_values, else_values = {}, {}
        for name in then:
            then_values[name], else_values[name] = self._merge(name, then[name], other[name])
        for arm, values in ((self._then, then_values), (self._else, else_values)):
            self._reopen(arm)
            rec.emit("yield", tuple(values.values()), line=self._line)
            self._reclose(arm)
        rec.pop(self.scope)
        results = [value.surface_type for value in then_values.values()]
        merged = rec.emit("if", (self._condition,), results, None, [self._then.region, self._else.region], line=self._line)
        self._merged = dict(zip(then_values, merged, strict=True))

    def _reopen(self, arm: _Arm) -> None:
        rec = self.recorder
        if arm.scope is None:
            arm.scope = rec.push(arm.region, arm.kind)
        else:
            arm.scope.open = True
            rec.scope = arm.scope

    def _reclose(self, arm: _Arm) -> None:
        assert arm.scope is not None
        self.recorder.pop(arm.scope)

    def _merge(self, name: str, a: Any, b: Any) -> tuple[Value, Value]:
        """Both sides in one type. Constants and casts go into the branch they belong to."""
        rec = self.recorder
        if scalar.is_literal(a) and scalar.is_literal(b):
            rec.refuse(
                f"{name} is a Python number in both branches", "a typed constant in one of them: pto.const(x, dtype=...)", self._line
            )
        if scalar.is_literal(a) or scalar.is_literal(b):
            typed = b if scalar.is_literal(a) else a
            if not isinstance(typed, SurfaceScalar):
                rec.refuse(f"{name} is a Python number in one branch and {describe(typed)} in the other", "values of one type", self._line)
            wanted = typed.dtype
        elif a.surface_type == b.surface_type:
            return a, b
        elif isinstance(a, SurfaceScalar) and isinstance(b, SurfaceScalar) and a.dtype.is_integral and b.dtype.is_integral:
            if a.dtype.bits == 1 or b.dtype.bits == 1:
                wanted = I1
            elif a.dtype == INDEX or b.dtype == INDEX:
                wanted = INDEX
            else:
                rec.refuse(f"{name} is {a.dtype.name} in one branch and {b.dtype.name} in the other", "cast one of them", self._line)
        else:
            rec.refuse(f"{name} is {_type_name(a)} in one branch and {_type_name(b)} in the other", "values of one type", self._line)
        out = []
        for arm, value in ((self._then, a), (self._else, b)):
            self._reopen(arm)
            if scalar.is_literal(value):
                out.append(scalar.scalar_of(rec, name, value, wanted))
            else:
                out.append(scalar.nonzero(rec, name, value) if wanted.bits == 1 else scalar.cast_to(rec, value, wanted))
            self._reclose(arm)
        return out[0], out[1]


@entry("if_", opcodes=("if",))
def if_(rec: Recorder, cond: Any) -> BranchHandle:
    """``pto.if_(condition)``."""
    return BranchHandle(rec, scalar.nonzero(rec, "the condition of pto.if_", cond), rec.line())


# -- vector functions, SIMT functions, sections ------------------------------------------------------------


class _Shell(_Context):
    """``pto.vecscope()`` or ``pto.simt(x, y, z)``."""

    def __init__(self, recorder: Recorder, opcode: str, attributes: dict[str, int | str | float]) -> None:
        self.recorder = recorder
        self._opcode = opcode
        self._attributes = attributes
        self._scope: Scope | None = None

    def __enter__(self) -> None:
        if self._scope is not None:
            self.recorder.refuse(f"this pto.{self._opcode} was already entered", f"a new pto.{self._opcode}(...) for every block")
        region = Region()
        self.recorder.emit(self._opcode, (), (), self._attributes, [region])
        self._scope = self.recorder.push(region, self._opcode, self._opcode)

    def _close(self) -> None:
        assert self._scope is not None
        self.recorder.pop(self._scope)


class _Section(_Context):
    """``pto.section("vector")``: a part of the kernel for one kind of core."""

    def __init__(self, recorder: Recorder, kind: str) -> None:
        self.recorder = recorder
        self._kind = kind
        self._scope: Scope | None = None

    def __enter__(self) -> None:
        rec = self.recorder
        region = Region()
        rec.emit("section", (), (), {"kind": self._kind}, [region])
        self._scope = rec.push(region, "section")

    def _close(self) -> None:
        assert self._scope is not None
        self.recorder.pop(self._scope)


def require_explicit(rec: Recorder, name: str) -> None:
    """Refuse a call that needs ``mode="explicit"``."""
    if rec.mode != "explicit":
        rec.refuse(f"{name} needs an explicit-mode kernel", 'pto.jit(..., mode="explicit")')


@entry("vecscope", places=KERNEL)
def vecscope(rec: Recorder) -> _Shell:
    """``with pto.vecscope():`` one vector function."""
    require_explicit(rec, "pto.vecscope")
    return _Shell(rec, "vecscope", {})


@entry("simt", places=frozenset({"module", "kernel"}))
def simt(rec: Recorder, *dims: Any, name: Any = None, target: str = "a5", ast_rewrite: bool = True, max_threads: Any = None) -> _Shell:
    """``with pto.simt(x, y, z):`` one SIMT function. The decorator form is not simulated."""
    if rec.place == "module" or any(callable(dim) for dim in dims) or name is not None:
        rec.refuse("the simulator has no decorated pto.simt", "the inline form: with pto.simt(x, y, z):")
    if max_threads is not None:
        rec.refuse("the inline pto.simt takes no max_threads", "leave it out")
    if len(dims) not in (0, 3):
        rec.refuse(f"pto.simt with {len(dims)} dimensions", "three Python ints, or none")
    sizes = [scalar.static_int(rec, f"dimension {axis}", dim, 1, 2048) for axis, dim in zip("xyz", dims or (1, 1, 1), strict=True)]
    if sizes[0] * sizes[1] * sizes[2] > 2048:
        rec.refuse(f"{sizes[0]} * {sizes[1]} * {sizes[2]} work-items", "at most 2048")
    return _Shell(rec, "simt", {"x": sizes[0], "y": sizes[1], "z": sizes[2]})


@entry("section", places=KERNEL)
def section(rec: Recorder, kind: Any) -> _Section:
    """``with pto.section("vector"):`` the part of a kernel without a kind that its vector cores run; ``"cube"`` likewise."""
    require_explicit(rec, "pto.section")
    if kind not in ("vector", "cube"):
        rec.refuse(f"section kind {kind!r} is not legal", "vector or cube")
    function, scope = rec.function, rec.scope
    assert function is not None and scope is not None
    if function.kind:
        rec.refuse(f'pto.section in a kernel with kernel_kind="{function.kind}"', "leave kernel_kind out, or the section")
    if scope.kind != "kernel":
        rec.refuse("pto.section inside another region", "directly in the kernel body")
    if kind in rec.sections:
        rec.refuse(f"a second {kind} section", "one section per kind")
    rec.sections.add(kind)
    return _Section(rec, kind)


# -- kernels -----------------------------------------------------------------------------------------------


class ConstExpr:
    """``pto.const_expr``: the annotation of a compile-time parameter; called, it returns its argument."""

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Value):
            value.recorder.refuse("const_expr of a runtime value", "a Python value")
        return value


CONST_EXPR = ConstExpr()


class KernelHandle:
    """What ``@pto.jit`` returns. It is traced when the whole module text has run."""

    def __init__(self, recorder: Recorder, function: Any, name: str, kind: str, mode: str, rewrites: bool) -> None:
        self._recorder = recorder
        self._python = function
        self._kind = kind
        self._mode = mode
        self._rewrites = rewrites
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._recorder.refuse(f"kernel {self.__name__} is called in the module text", "launch it through the simulator")

    def __getitem__(self, item: Any) -> Any:
        self._recorder.refuse(f"kernel {self.__name__} is launched in the module text", "launch it through the simulator")

    def trace(self) -> Function:
        """Run the kernel's Python function once and return what it recorded."""
        rec = self._recorder
        python = self._python
        code = python.__code__
        line = code.co_firstlineno
        function = Function(self.__name__, self._kind, line)
        rec.function = function
        rec.mode = self._mode
        rec.rewrites = self._rewrites
        rec.sections = set()
        if code.co_flags & 0x0C:
            rec.refuse("a kernel with *args or **kwargs", "named, annotated parameters", line)
        annotations = python.__annotations__
        constants = dict(python.__kwdefaults__ or {})
        for name in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]:
            if annotations.get(name) is not CONST_EXPR or name not in constants:
                rec.refuse(
                    f"keyword-only parameter {name} of kernel {self.__name__}", "annotate it with pto.const_expr and give a default", line
                )
        scope = rec.push(function.body, "kernel", "kernel")
        arguments = []
        for name in code.co_varnames[: code.co_argcount]:
            kind = annotations.get(name)
            if isinstance(kind, PtrType):
                if kind.space != "gm":
                    rec.refuse(f"parameter {name} points to {kind.space!r}", 'kernel pointers are pto.ptr(dtype, "gm")', line)
            elif not isinstance(kind, DType) or kind.family == "storage":
                rec.refuse(
                    f"parameter {name} of kernel {self.__name__} has annotation {kind!r}", 'pto.ptr(dtype, "gm") or a scalar type', line
                )
            number = rec.new_id(kind)
            function.parameters.append(Parameter(name, number))
            arguments.append(wrap(rec, number, kind, scope))
        result = python(*arguments, **constants)
        if rec.scope is not scope:
            rec.refuse("a region was entered and not left", "use pto.for_, pto.if_, pto.vecscope and pto.simt with `with`", line)
        if result is not None:
            rec.refuse(f"kernel {self.__name__} returns {describe(result)}", "kernels return nothing", line)
        rec.pop(scope)
        rec.function = None
        return function


@entry("jit", opcodes=(), places=frozenset({"module"}))
def jit(
    rec: Recorder,
    name: Any = None,
    *,
    target: str = "a5",
    kernel_kind: Any = None,
    backend: str = "vpto",
    entry: bool = True,
    mode: str = "auto",
    insert_sync: bool | None = None,
    ast_rewrite: bool | None = None,
    frontend_options: Any = None,
    source: Any = None,
) -> Any:
    """``@pto.jit(...)``: declare a kernel."""
    if callable(name):
        rec.refuse("pto.jit without parentheses", "@pto.jit(...)")
    if name is not None and not (isinstance(name, str) and name.isidentifier()):
        rec.refuse(f"name={name!r} is not legal", "an identifier")
    if mode not in ("auto", "explicit"):
        rec.refuse(f"mode={mode!r} is not legal", "auto or explicit")
    if backend not in ("vpto", "emitc"):
        rec.refuse(f"backend={backend!r} is not legal", "vpto or emitc")
    if target != "a5":
        rec.refuse(f"target={target!r}", "a5")
    if kernel_kind not in (None, "vector", "cube"):
        rec.refuse(f"kernel_kind={kernel_kind!r} is not legal", "vector or cube, or leave it out")
    if source is not None or not entry or backend != "vpto":
        rec.refuse("the simulator runs launchable vpto kernels with a Python body", "leave source, entry and backend out")
    if frontend_options is not None:
        unknown = set(frontend_options) - {"ast_rewrite", "rewrite_part", "dump_rewritten_source"}
        if unknown:
            rec.refuse(f"frontend_options has {', '.join(sorted(unknown))}", "ast_rewrite, rewrite_part, dump_rewritten_source")
        option = frontend_options.get("ast_rewrite")
        if option is not None and ast_rewrite is not None and option != ast_rewrite:
            rec.refuse("ast_rewrite and frontend_options contradict each other", "one of them")
        ast_rewrite = option if ast_rewrite is None else ast_rewrite

    def decorate(function: Any) -> KernelHandle:
        handle = KernelHandle(rec, function, name or function.__name__, kernel_kind or "", mode, ast_rewrite is not False)
        rec.kernels.append(handle)
        return handle

    return decorate
