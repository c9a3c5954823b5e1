"""TileLang's failures to spread fragments over SIMT threads, told with the fragment and the loops that cannot agree.

Every loop and tile operation on a fragment wants it laid out over the threads in its own way. Where those ways differ, TileLang says that
there is no layout, but not of what. The fragment is found by trial: where inference goes through once every loop has a copy of it to
itself, it is the one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tilelang
import tvm
from tilelang.ascend import transform as ascend_transform
from tvm import IRModule, tirx
from tvm.ir.transform import PassContext
from tvm.target import Target

from tilelang_pto import settings
from tilelang_pto.errors import LayoutError, PtoError

__all__ = ["lower_and_explain"]

_INFERENCE, _REDUCERS = "tl.AscendLayoutInference", "tl.ReducerPlanAndMaterialize"
_FRAGMENT, _REDUCER = "local.fragment", "local.reducer"
_DECLARATION = re.compile(r"\s*(#|\w+ = T\.\w+\()")
"""Lines before a printed statement: comments, and the variables and buffers in it."""
_SHOWN = 110
"""Characters of a TIR line in a message."""


class _PassedError(Exception):
    """Ends lowering behind the passes on layouts."""


@dataclass(frozen=True)
class _Use:
    """A loop nest or tile operation with a fragment in it."""

    node: Any
    description: str


@dataclass(frozen=True)
class _Fragment:
    buffer: Any
    uses: tuple[_Use, ...]

    @property
    def description(self) -> str:
        return f"{self.buffer.name} ({' x '.join(map(str, self.buffer.shape))}, {self.buffer.dtype})"


def lower_and_explain(lower: Callable[[IRModule, Target], IRModule], mod: IRModule, target: Target) -> IRModule:
    """``lower(mod, target)``.

    Raises:
        LayoutError: it failed where fragments are laid out. All other errors pass as they are.
    """
    try:
        return lower(mod, target)
    except PtoError:
        raise
    except Exception as error:
        explained = _explained(lower, mod, target, error)
        if explained is None:
            raise
        raise explained from (error if settings.debugging() else None)


def _explained(lower: Callable[[IRModule, Target], IRModule], mod: IRModule, target: Target, error: Exception) -> LayoutError | None:
    """What is wrong, if it is the layout of fragments."""
    before = _before_inference(lower, mod, target)
    if before is None:
        return None
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    for name, func in [(var.name_hint, func) for var, func in before.functions.items() if isinstance(func, tirx.PrimFunc)]:
        fragments = [fragment for fragment in _fragments(func) if len(fragment.uses) > 1]
        if not fragments or _infers(before, name, func):
            continue
        suspects, named = _suspects(before, name, func, fragments)
        places = [f"kernel {name}"]
        for fragment in suspects:
            places += [f"{fragment.buffer.name}: {use.description}" for use in fragment.uses]
        return LayoutError(
            f"TileLang finds no layout over the threads that suits all loops on the fragment {named}",
            where=(*places, f"TileLang: {said}"),
            advice="give these loops one shape (a step over columns outside, T.Parallel over all threads inside), or each loop a "
            "fragment of its own and pass values between them through T.alloc_shared",
            fragments=tuple(str(fragment.buffer.name) for fragment in suspects),
        )
    return None


def _suspects(mod: IRModule, name: str, func: tirx.PrimFunc, fragments: list[_Fragment]) -> tuple[list[_Fragment], str]:
    """The fragments that are each, or else together, the reason; all if that cannot be told. And how to name them."""

    def succeeds(separated: list[_Fragment]) -> bool:
        return _infers(mod, name, _separated(func, separated))

    apart = [fragment for fragment in fragments if fragment.buffer.scope() == _FRAGMENT]
    alone = [fragment for fragment in apart if succeeds([fragment])]
    joining = " or "
    if not alone and succeeds(apart):
        joining = " and "
        alone = list(apart)
        for fragment in apart:
            others = [other for other in alone if other is not fragment]
            if others and succeeds(others):
                alone = others
    suspects = alone or fragments
    return suspects, joining.join(fragment.description for fragment in suspects)


def _before_inference(lower: Callable[[IRModule, Target], IRModule], mod: IRModule, target: Target) -> IRModule | None:
    """The module as it came to layout inference, if lowering fails there or where reducers are placed by its result.

    Lowering runs again for that, and no further than to those two passes.
    """
    begun: list[tuple[str, IRModule]] = []

    @tvm.instrument.pass_instrument
    class Recorder:
        def run_before_pass(self, module: IRModule, info: Any) -> None:
            if begun and begun[-1][0] == _REDUCERS:
                begun.clear()
                raise _PassedError
            if begun and begun[0][0] == _INFERENCE:
                begun[1:] = [(info.name, module)]
            else:
                begun[:] = [(info.name, module)]

    now = PassContext.current()
    config = {str(key): value for key, value in now.config.items()}
    try:
        with PassContext(now.opt_level, now.required_pass, now.disabled_pass, [Recorder()], config):
            lower(mod, target)
    except Exception:
        if begun and begun[0][0] == _INFERENCE:
            return begun[0][1]
    return None


def _infers(mod: IRModule, name: str, func: tirx.PrimFunc) -> bool:
    """Whether fragments of ``func`` have layouts."""
    module = IRModule({mod.get_global_var(name): func}, attrs=mod.attrs)
    try:
        tilelang.transform.ReducerPlanAndMaterialize()(ascend_transform.AscendLayoutInference()(module))
    except Exception:
        return False
    return True


def _fragments(func: tirx.PrimFunc) -> list[_Fragment]:
    """Fragments in the order of their allocation, with what uses them."""
    buffers: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, tirx.SBlock):
            buffers.extend(buffer for buffer in node.alloc_buffers if buffer.scope() in (_FRAGMENT, _REDUCER))

    tirx.stmt_functor.post_order_visit(func.body, visit)
    operations = list(_operations(func.body))
    return [_Fragment(buffer, tuple(_Use(node, _describe(node)) for node in operations if _touches(node, buffer))) for buffer in buffers]


def _operations(body: Any) -> Iterator[Any]:
    """Outermost parallel loops, and tile operations outside of them."""
    found: list[Any] = []

    def enter(node: Any) -> Any:
        if _is_operation(node):
            found.append(node)
            return node  # nothing inside is looked at
        return None

    tirx.stmt_functor.ir_transform(body, enter, lambda node: None, ["tirx.For", "tirx.Evaluate"])
    yield from found


def _is_operation(node: Any) -> bool:
    if isinstance(node, tirx.For):
        return bool(node.kind == tirx.ForKind.PARALLEL)
    return isinstance(node, tirx.Evaluate) and str(getattr(getattr(node.value, "op", None), "name", "")).startswith("tl.tileop.")


def _touches(node: Any, buffer: Any) -> bool:
    touched = False

    def visit(inner: Any) -> None:
        nonlocal touched
        if isinstance(inner, (tirx.BufferLoad, tirx.BufferStore)) and inner.buffer.same_as(buffer):
            touched = True

    tirx.stmt_functor.post_order_visit(node, visit)
    return touched


def _describe(node: Any) -> str:
    """``T.Parallel(4, 1280): products[s, i] = ...``, or the tile operation."""
    if isinstance(node, tirx.Evaluate):
        return _first_line(node)
    extents = []
    while isinstance(node, tirx.For) and node.kind == tirx.ForKind.PARALLEL:
        extents.append(str(node.extent))
        node = node.body
    return f"T.Parallel({', '.join(extents)}): {_first_line(node)}"


def _first_line(node: Any) -> str:
    lines = [line.strip() for line in str(node).splitlines() if line.strip() and not _DECLARATION.match(line)]
    text = " ".join(lines)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _separated(func: tirx.PrimFunc, fragments: list[_Fragment]) -> tirx.PrimFunc:
    """``func`` in which every use of each of the fragments has a buffer to itself."""
    for wanted in fragments:
        (fragment,) = [found for found in _fragments(func) if found.buffer.same_as(wanted.buffer)]
        func = _with_copies(func, fragment)
    return func


def _with_copies(func: tirx.PrimFunc, fragment: _Fragment) -> tirx.PrimFunc:
    """``func`` in which every use of the fragment after the first has a buffer to itself; what it computes does not matter."""
    made: list[Any] = []

    def own_copy(node: Any) -> Any:
        if not any(node.same_as(use.node) for use in fragment.uses[1:]):
            return None
        old = fragment.buffer
        buffer = tirx.decl_buffer(old.shape, old.dtype, f"{old.name}_{len(made) + 1}", scope=_FRAGMENT)
        made.append(buffer)
        return _replace(node, old, buffer)

    def allocate(node: Any) -> Any:
        if not any(buffer.same_as(fragment.buffer) for buffer in node.alloc_buffers):
            return None
        return tirx.SBlock(
            node.iter_vars,
            node.reads,
            node.writes,
            node.name_hint,
            node.body,
            node.init,
            [*node.alloc_buffers, *made],
            node.match_buffers,
            node.annotations,
        )

    body = tirx.stmt_functor.ir_transform(func.body, own_copy, lambda node: None, ["tirx.For", "tirx.Evaluate"])
    body = tirx.stmt_functor.ir_transform(body, lambda node: None, allocate, ["tirx.SBlock"])
    return func.with_body(body)


def _replace(statement: Any, old: Any, new: Any) -> Any:
    def swap(node: Any) -> Any:
        if not node.buffer.same_as(old):
            return None
        if isinstance(node, tirx.BufferStore):
            return tirx.BufferStore(new, node.value, node.indices, node.predicate)
        return tirx.BufferLoad(new, node.indices, node.predicate)

    return tirx.stmt_functor.ir_transform(statement, lambda node: None, swap, ["tirx.BufferLoad", "tirx.BufferStore"])
