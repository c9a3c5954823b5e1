"""Structure: sequences, launch, vector functions, loops, branches.

Control flow is explicit (``ast_rewrite=False``): loops are ``pto.for_`` with named carries, branches ``pto.if_`` with merged results. The
one exception are unrolled loops that carry nothing, printed as a Python loop over ``pto.static_range``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tvm import tirx

from ..analysis.liveness import Slot
from ..analysis.repeated_flags import sets_run_ahead
from ..analysis.vector_memory import place_barriers
from ..caps import MAX_THREADS, VECTOR_CORES
from ..emit import Block, attribute, call, constant, name
from ..forms import Form
from ..naming import NameSupply
from ..registry import statement
from ..types import BOOL, I32, I64, INDEX, Type
from ..values import Interval, Value
from ..visitor import Core, Region, Visitor

_TRANSPARENT_ATTRS = frozenset(
    {"tl.simdvf_scope", "tl.simtvf_scope", "lexical_alloc_scope", "pragma_unroll_factor", "storage_alignment", "compute_scope"}
)
_THREADS = {"threadIdx.x": "pto.get_tid_x", "threadIdx.y": "pto.get_tid_y", "threadIdx.z": "pto.get_tid_z"}


@statement(tirx.SeqStmt)
def sequence(v: Visitor, node: Any) -> None:
    for inner in node.seq:
        v.stmt(inner)


@statement(tirx.Evaluate)
def evaluate(v: Visitor, node: Any) -> None:
    """A call made for its effect; a value nobody uses is dropped by the builder."""
    v.maybe_expr(node.value)


@statement(tirx.Bind)
def bind(v: Visitor, node: Any) -> None:
    """An immutable variable: the value, under the name the user gave it."""
    from . import addresses, simt_vectors

    if addresses.binds_address(node):
        addresses.bind_address(v, node)
        return
    value = simt_vectors.evaluate(v, node.value) if simt_vectors.is_short(v, node.value) else v.expr(node.value)
    if value.literal is None and not value.inline and value.name is None:
        value.hint = str(node.var.name)
        value.keep_name = value.memory is None
    v.variables[node.var] = value


@statement(tirx.AttrStmt)
def attr(v: Visitor, node: Any) -> None:
    key = str(node.attr_key)
    if key == "tl.assume":
        with v.arith.assuming(*_assumption(v, node.node)):
            v.stmt(node.body)
        return
    if key == "thread_extent":
        v.variables[node.node.var] = _thread(v, node)
    elif key not in _TRANSPARENT_ATTRS:
        v.unsupported(f"attribute {key} has no rule")
    v.stmt(node.body)


def _assumption(v: Visitor, condition: Any) -> list[Form]:
    """What ``T.assume`` promises of integers. The condition itself is not emitted, so one that reads memory or may trap says nothing."""
    from .scalar import may_fail

    if may_fail(condition):
        return []
    with v.arith.speculation():
        return v.arith.consequences(v.expr(condition), True)


def _thread(v: Visitor, node: Any) -> Value:
    """Value of a launch variable."""
    tag, hint = str(node.node.thread_tag), str(node.node.var.name)
    type = v.scalar_type(node.node.var.dtype)
    extent = int(node.value) if isinstance(node.value, tirx.IntImm) else None
    interval: Interval = (0, extent - 1 if extent is not None else type.dtype.maximum)
    if tag == "blockIdx.x":
        index = v.b.pure("get_block_idx", lambda _: call("pto.get_block_idx"), (), I64, interval=interval, hint="block")
        return v.arith.cast(index, type, hint="core_id" if hint == "bx" else hint)
    if tag in _THREADS:
        if v.region != "simt":
            v.unsupported(
                f"{tag} is used outside a SIMT vector function", "put the code that needs threads inside `with T.SimtVF(threads=...)`"
            )
        if extent == 1:
            return v.arith.number(0, type)
        getter = _THREADS[tag]
        thread = v.b.pure(getter, lambda _: call(getter), (), I32, interval=interval, pinned=True, hint="t" + tag[-1])
        return v.arith.cast(thread, type)
    if tag == "cthread":
        return v.arith.number(0, type) if v.core == "cube" or extent == 1 else v.arith.cast(_sub_block(v), type, hint=hint)
    v.unsupported(f"launch dimension {tag} has no rule", "kernels use blockIdx.x and, inside T.SimtVF, threadIdx.x/y/z")


def _sub_block(v: Visitor) -> Value:
    """Number of the vector core among those of its block."""
    return v.b.pure(
        "get_subblock_idx",
        lambda _: call("pto.get_subblock_idx"),
        (),
        I64,
        interval=(0, VECTOR_CORES - 1),
        hint="sub_block",
        pinned=True,
    )


@statement(tirx.SBlock)
def region(v: Visitor, node: Any) -> None:
    block_name = str(node.name_hint)
    for what in ("init", "iter_vars", "alloc_buffers", "match_buffers"):
        if getattr(node, what, None):
            v.unsupported(f"block {block_name} with {what}")
    if block_name in ("CUBE", "VECTOR"):
        _section(v, node, "cube" if block_name == "CUBE" else "vector")
    elif block_name == "SIMD_VF":
        _vector_function(v, node, "simd", call("pto.vecscope"))
    elif block_name == "SIMT_VF":
        threads = (_extent(v, node.body, "threadIdx.x"), _extent(v, node.body, "threadIdx.y"), _extent(v, node.body, "threadIdx.z"))
        if not 0 < threads[0] * threads[1] * threads[2] <= MAX_THREADS:
            v.unsupported(f"a SIMT vector function of {threads} threads", f"use at least one and at most {MAX_THREADS} threads in all")
        v.threads = threads
        _vector_function(v, node, "simt", call("pto.simt", *(constant(count) for count in threads)))
    else:
        v.unsupported(f"block {block_name} has no rule")


def _section(v: Visitor, node: Any, core: Core) -> None:
    """Code of one core; a kernel of one kind of core has no sections."""
    if v.cores.kind != "mixed":
        v.stmt(node.body)
        return
    if v.core is not None:
        v.unsupported(f"the code of a {core} core inside that of a {v.core} core", "put T.Cube() and T.Vector() one after the other")
    if core in v.sections:
        v.unsupported(f"a second block for the {core} core", "a kernel has one T.Cube() and one T.Vector()")
    v.sections.add(core)
    escaping = v.liveness.merged(node)
    if escaping:
        v.unsupported(
            f"{escaping[0][0].name} is written by the {core} core and read after its code", "each core has its own copy of a variable"
        )
    opener = call("pto.section", constant(core))
    with v.b.nest(["section"], lambda _, bodies: [_with(opener, bodies[0])]) as nest, v.scope(nest.blocks[0]):
        v.core = core
        if core == "vector" and v.cores.vectors == 1:
            first = v.b.pure(
                "get_subblock_idx", lambda _: call("pto.get_subblock_idx"), (), I64, interval=(0, VECTOR_CORES - 1), pinned=True
            )
            with only_if(v, v.arith.compare("==", first, v.arith.number(0, I64))):
                v.stmt(node.body)
        else:
            v.stmt(node.body)
        v.core = None


def _vector_function(v: Visitor, node: Any, region: Region, opener: ast.expr) -> None:
    escaping = v.liveness.merged(node)
    if escaping:
        v.unsupported(
            f"{escaping[0][0].name} is written inside a vector function and read after it", "pass the value through a UB buffer instead"
        )
    with vector_function(v, region, opener):
        v.stmt(node.body)


@contextmanager
def vector_function(v: Visitor, region: Region, opener: ast.expr) -> Iterator[None]:
    """A vector function, opened by the given expression."""
    if v.core != "vector":
        v.unsupported("a vector function outside the code of a vector core", "put it into T.Vector()")
    if v.vector_function is not None:
        v.unsupported("a vector function inside a vector function", "put them one after the other")
    with v.b.nest(["vector_function"], lambda _, bodies: [_with(opener, bodies[0])]) as nest, v.scope(nest.blocks[0], region):
        v.vector_function = nest.blocks[0]
        yield
    v.vector_function = None
    if region == "simd":
        place_barriers(nest.blocks[0], v.arith.forms, v.b.handed)


def _extent(v: Visitor, body: Any, tag: str) -> int:
    """Extent of a thread dimension, bound somewhere at the head of a SIMT block."""
    if isinstance(body, tirx.AttrStmt):
        if body.attr_key == "thread_extent" and str(body.node.thread_tag) == tag:
            return v.integer(body.value, f"the extent of {tag}")
        return _extent(v, body.body, tag)
    if isinstance(body, tirx.SeqStmt):
        for inner in body.seq:
            if isinstance(inner, tirx.AttrStmt):
                return _extent(v, inner, tag)
    return 1


# -- loops ---------------------------------------------------------------------------------------------------------------


@statement(tirx.For)
def for_loop(v: Visitor, node: Any) -> None:
    if node.step is not None and not (isinstance(node.step, tirx.IntImm) and int(node.step) == 1):
        v.unsupported(f"loop step {node.step}", "write the loop with step 1 and scale the variable")
    kind = int(node.kind)
    if kind not in (int(tirx.ForKind.SERIAL), int(tirx.ForKind.UNROLLED), int(tirx.ForKind.PARALLEL)):
        v.unsupported(f"a loop of kind {tirx.ForKind(kind).name}", "use T.serial, T.unroll or, inside T.SimtVF, T.Parallel")
    low, extent = v.expr(node.min), v.expr(node.extent)
    if extent.high <= 0 and not extent.assumed:
        return
    carried = v.liveness.carried(node)
    unrolled = kind == int(tirx.ForKind.UNROLLED)
    if unrolled and not carried and low.literal is not None and extent.literal is not None:
        _static_loop(v, node, int(low.literal), int(extent.literal))
    else:
        _device_loop(v, node, low, _end(v, low, extent), carried)


def _end(v: Visitor, low: Value, extent: Value) -> Value:
    """``low + extent``, which need not be a value of a narrow loop variable's type."""
    if low.literal is not None and extent.literal is not None:
        return v.index(int(low.literal) + int(extent.literal))
    if low.literal == 0:
        return extent
    wide = I32 if low.dtype.bits < 32 else low.type
    return v.arith.add(v.arith.cast(low, wide), v.arith.cast(extent, wide))


def _static_loop(v: Visitor, node: Any, low: int, extent: int) -> None:
    """A loop that PTODSL unrolls while tracing."""
    variable = v.b.names.claim(str(node.loop_var.name))

    def build(_: Sequence[ast.expr], bodies: list[list[ast.stmt]]) -> list[ast.stmt]:
        bounds = call("pto.static_range", constant(low), constant(low + extent))
        return [ast.For(ast.Name(variable, ast.Store()), bounds, bodies[0], [])]

    with v.b.nest(["loop"], build) as nest, v.scope(nest.blocks[0], repeats=node.body):
        type = v.scalar_type(node.loop_var.dtype)
        nest.blocks[0].variable = v.variables[node.loop_var] = v.b.named(variable, type, interval=(low, low + extent - 1), static=True)
        _round(v, node)


def _device_loop(v: Visitor, node: Any, low: Value, high: Value, carried: list[Slot]) -> None:
    """``pto.for_``, with the carries PTODSL wants spelled out."""
    loop_name = str(node.loop_var.name)
    interval = (low.low, max(low.low, high.high - 1))
    initial = [v.arith.typed(_initial(v, slot)) for slot in carried]
    fields = _field_names(carried)
    handle = v.b.names.claim(f"{loop_name.lstrip('_') or 'i'}_loop") if carried else ""
    variable = "" if carried else v.b.names.claim(loop_name)
    v.b.hand(handle, fields, initial)
    updates: list[Value] = []

    def build(exprs: Sequence[ast.expr], bodies: list[list[ast.stmt]]) -> list[ast.stmt]:
        loop = call("pto.for_", exprs[0], exprs[1], step=constant(1))
        if not carried:
            return [_with(loop, bodies[0], variable)]
        carry = call(attribute(loop, "carry"), **dict(zip(fields, exprs[2:], strict=True)))
        return [ast.Assign([ast.Name(handle, ast.Store())], carry), _with(name(handle), bodies[0])]

    with v.b.nest(["loop"], build, [low, high, *initial]) as nest, v.scope(nest.blocks[0], repeats=node.body):
        for slot, field, start in zip(carried, fields, initial, strict=True):
            v.slots[slot] = v.b.member(handle, field, start.type, interval=_slot_interval(v, slot, start.type))
        if carried:
            index = v.b.member(handle, "iv", INDEX, interval=interval)
        else:
            index = v.b.named(variable, INDEX, interval=interval)
        nest.blocks[0].variable = index
        v.variables[node.loop_var] = v.arith.cast(index, v.scalar_type(node.loop_var.dtype), hint=loop_name)
        _round(v, node)
        updates = [v.arith.typed(v.read_slot(slot)) for slot in carried]
        if carried:
            _hand_over(v, handle, "update", fields, updates)
    for slot, field, start in zip(carried, fields, initial, strict=True):
        v.slots[slot] = _final(v, handle, field, start.type, _slot_interval(v, slot, start.type))


def _round(v: Visitor, node: Any) -> None:
    """The body of a loop; where its flags would be set again too early, a barrier ends it."""
    v.stmt(node.body)
    if sets_run_ahead(node.body, mixed=v.cores.kind == "mixed"):
        v.b.effect(lambda _: call("pto.pipe_barrier", constant("ALL")))


def _initial(v: Visitor, slot: Slot) -> Value:
    """Value a carry starts with; a register never written before starts with zeros, which nothing reads."""
    value = v.slots.get(slot)
    if value is not None:
        return value
    element = str(slot[0].type_annotation.element_type.dtype)
    return v.zero(element)


def _final(v: Visitor, handle: str, field: str, type: Type, interval: Interval | None) -> Value:
    return v.b.pure(
        ("final", handle, field),
        lambda _: call(attribute(name(handle), "final"), constant(field)),
        (),
        type,
        interval=interval,
        hint=field,
        pinned=True,
    )


def _slot_interval(v: Visitor, slot: Slot, type: Type) -> Interval | None:
    if slot[0] in v.counters and type.kind == "scalar" and type.dtype.is_integer:
        return 0, type.dtype.maximum
    return None


_HANDLE_MEMBERS = ("iv", "final", "update", "carry", "assign", "get", "then_", "else_")


def _field_names(slots: list[Slot]) -> list[str]:
    """Names of carries and merges, unique within their handle."""
    names = NameSupply(_HANDLE_MEMBERS)
    fields = []
    for variable, index in slots:
        stem = "version" if "_version_counter" in str(variable.name) else str(variable.name)
        fields.append(names.claim(stem if index <= 0 else f"{stem}_{index}"))
    return fields


@statement(tirx.While)
def while_loop(v: Visitor, node: Any) -> None:
    """``pto.while_``; after :mod:`~tilelang_pto.codegen.analysis.loops` the condition is one flag, which the loop carries."""
    carried = v.liveness.carried(node)
    flag = (node.condition.buffer.data, 0)
    initial = [v.arith.typed(_initial(v, slot)) for slot in carried]
    fields = _field_names(carried)
    condition = fields[carried.index(flag)]
    handle = v.b.names.claim("while_loop")
    v.b.hand(handle, fields, initial)

    def build(exprs: Sequence[ast.expr], bodies: list[list[ast.stmt]]) -> list[ast.stmt]:
        state = ast.arguments(posonlyargs=[], args=[ast.arg("state")], kwonlyargs=[], kw_defaults=[], defaults=[])
        test = ast.Lambda(state, attribute(name("state"), condition))
        loop = call("pto.while_", test, **dict(zip(fields, exprs, strict=True)))
        return [ast.Assign([ast.Name(handle, ast.Store())], loop), _with(name(handle), bodies[0])]

    with v.b.nest(["loop"], build, initial) as nest, v.scope(nest.blocks[0], repeats=node.body):
        for slot, field, start in zip(carried, fields, initial, strict=True):
            v.slots[slot] = v.b.member(handle, field, start.type, interval=_slot_interval(v, slot, start.type))
        v.slots[flag] = v.b.literal(True, BOOL)  # inside the loop the condition holds
        _round(v, node)
        _hand_over(v, handle, "update", fields, [v.arith.typed(v.read_slot(slot)) for slot in carried])
    for slot, field, start in zip(carried, fields, initial, strict=True):
        v.slots[slot] = _final(v, handle, field, start.type, _slot_interval(v, slot, start.type))


# -- branches ------------------------------------------------------------------------------------------------------------


@statement(tirx.IfThenElse)
def if_then_else(v: Visitor, node: Any) -> None:
    condition = v.expr(node.condition)
    if condition.literal is not None:
        taken = node.then_case if condition.literal else node.else_case
        if taken is not None:
            v.stmt(taken)
        return
    merged = v.liveness.merged(node)
    fields = _field_names(merged)
    has_else = node.else_case is not None or bool(merged)
    handle = v.b.names.claim("br")
    results: list[Type] = [_initial(v, slot).type for slot in merged]
    with v.b.nest(["branch"] * (2 if has_else else 1), _if(handle), [condition]) as nest:
        for block, case, holds in zip(nest.blocks, (node.then_case, node.else_case), (True, False), strict=False):
            with v.arith.assuming(*v.arith.consequences(condition, holds)):
                _branch(v, block, case, handle, merged, fields)
    for slot, field, type in zip(merged, fields, results, strict=True):
        v.slots[slot] = v.b.member(handle, field, type, interval=_slot_interval(v, slot, type))


def _branch(v: Visitor, block: Block, case: Any, handle: str, merged: list[Slot], fields: list[str]) -> None:
    with v.scope(block):
        if case is not None:
            v.stmt(case)
        if merged:
            values = [v.arith.typed(_initial(v, slot)) for slot in merged]
            _hand_over(v, handle, "assign", fields, values)


def _hand_over(v: Visitor, handle: str, method: str, fields: Sequence[str], values: Sequence[Value]) -> None:
    """``handle.update(field=value, ...)`` or ``handle.assign(...)``."""
    v.b.hand(handle, fields, values)
    build = attribute(name(handle), method)
    v.b.statement(lambda e: ast.Expr(call(build, **dict(zip(fields, e, strict=True)))), values, writes=None)


def _with(context: ast.expr, body: list[ast.stmt], variable: str = "") -> ast.With:
    target = ast.Name(variable, ast.Store()) if variable else None
    return ast.With([ast.withitem(context, target)], body)


# -- values that need control flow ---------------------------------------------------------------------------------------


def merge_values(v: Visitor, condition: Value, then_value: Callable[[], Value], else_value: Callable[[], Value], type: Type) -> Value:
    """A value of which only one of two computations is executed."""
    if condition.literal is not None:
        return then_value() if condition.literal else else_value()
    handle = v.b.names.claim("choice")

    def assign(compute: Callable[[], Value]) -> None:
        _hand_over(v, handle, "assign", ["value"], [v.arith.typed(compute())])

    _two_branches(v, condition, handle, lambda: assign(then_value), lambda: assign(else_value))
    return v.b.member(handle, "value", type)


@contextmanager
def device_loop(v: Visitor, hint: str, count: int) -> Iterator[Value]:
    """A loop of ``count`` rounds that carries nothing; gives the number of the round."""
    variable = v.b.names.claim(hint)

    def build(_: Sequence[ast.expr], bodies: list[list[ast.stmt]]) -> list[ast.stmt]:
        return [_with(call("pto.for_", constant(0), constant(count), step=constant(1)), bodies[0], variable)]

    with v.b.nest(["loop"], build) as nest, v.scope(nest.blocks[0]):
        nest.blocks[0].variable = index = v.b.named(variable, INDEX, interval=(0, count - 1))
        yield index


def repeat(v: Visitor, start: Value, count: Value, step: Callable[[Value], Value]) -> Value:
    """``step`` applied ``count`` times to ``start``."""
    return _fold(v, start, v.index(0), count, lambda _, value: step(value))


def repeat_indexed(v: Visitor, start: Value, low: int, high: int, step: Callable[[Value, Value], Value]) -> Value:
    """``value = step(index, value)`` for each index from ``low`` to ``high - 1``."""
    return _fold(v, start, v.index(low), v.index(high), step)


def _fold(v: Visitor, start: Value, low: Value, high: Value, step: Callable[[Value, Value], Value]) -> Value:
    handle = v.b.names.claim("steps")
    v.b.hand(handle, ["value"], [start])

    def build(exprs: Sequence[ast.expr], bodies: list[list[ast.stmt]]) -> list[ast.stmt]:
        loop = call("pto.for_", exprs[0], exprs[1], step=constant(1))
        carry = call(attribute(loop, "carry"), value=exprs[2])
        return [ast.Assign([ast.Name(handle, ast.Store())], carry), _with(name(handle), bodies[0])]

    with v.b.nest(["loop"], build, [low, high, v.arith.typed(start)]) as nest, v.scope(nest.blocks[0]):
        nest.blocks[0].variable = index = v.b.member(handle, "iv", INDEX, interval=(low.low, max(low.low, high.high - 1)))
        value = v.arith.typed(step(v.arith.cast(index, I32), v.b.member(handle, "value", start.type)))
        _hand_over(v, handle, "update", ["value"], [value])
    return _final(v, handle, "value", start.type, None)


def fork(v: Visitor, condition: Value, then_case: Callable[[], None], else_case: Callable[[], None]) -> None:
    """Statements of one case or of another."""
    if condition.literal is not None:
        (then_case if condition.literal else else_case)()
        return
    _two_branches(v, condition, v.b.names.claim("br"), then_case, else_case)


def _two_branches(v: Visitor, condition: Value, handle: str, then_case: Callable[[], None], else_case: Callable[[], None]) -> None:
    with v.b.nest(["branch", "branch"], _if(handle), [condition]) as nest:
        for block, case in zip(nest.blocks, (then_case, else_case), strict=True):
            with v.scope(block):
                case()


def _if(handle: str) -> Callable[[Sequence[ast.expr], list[list[ast.stmt]]], list[ast.stmt]]:
    """Prints a branch: the first body where the condition holds, the second, if there is one, where it does not."""

    def build(exprs: Sequence[ast.expr], bodies: list[list[ast.stmt]]) -> list[ast.stmt]:
        cases = zip(("then_", "else_"), bodies, strict=False)
        return [_with(call("pto.if_", exprs[0]), [_with(attribute(name(handle), case), body) for case, body in cases], handle)]

    return build


def only_if(v: Visitor, condition: Value) -> AbstractContextManager[None]:
    """Statements executed only where ``condition`` holds; it is no constant ``False``."""
    if condition.literal is not None:
        return nullcontext()

    @contextmanager
    def guarded() -> Iterator[None]:
        with v.b.nest(["branch"], _if(v.b.names.claim("br")), [condition]) as nest, v.scope(nest.blocks[0]):
            yield

    return guarded()
