"""Counts operations in PTODSL text; :mod:`~tilelang_pto.compare.counts.kinds` says which."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilelang_pto.compare.counts.kinds import (
    Counts,
    Kind,
    UncountableError,
    cast_computes,
    element_bytes,
    family_of,
    limit_of,
    names,
    product,
)

__all__ = ["count_ptodsl"]

_SCALAR = names(
    "add sub mul div floordiv ceildiv rem neg abs absf min max fmin fmax minimum maximum select cmp shl shr exp log sqrt sin cos pow fma"
    " floor ceil rint round convert mulhi mul_i32toi64 addui_extended mul_extended prmt shuffle_bfly shuffle_up shuffle_down shuffle_idx"
    " redux_add redux_max redux_min"
)
_SYNCS = names(
    "set_flag wait_flag pipe_barrier mem_bar syncthreads set_cross_block wait_cross_block get_buf rls_buf threadfence threadfence_block"
    " set_intra_block wait_intra_block"
)
_COPIES = names("mte_gm_ub mte_ub_gm mte_ub_ub mte_gm_l1_frac mte_ub_l1 mte_l0c_gm mte_l0c_ub")
_LOADS = names("load load_scalar ld_dev ldg")
_STORES = names("store store_scalar st_dev stg")
_ATOMICS = names("atomic_add atomic_max atomic_min atomic_exch atomic_cas")
_NEUTRAL = names(
    "alloc_buffer get_block_idx get_block_num get_subblock_idx get_tid_x get_tid_y get_tid_z get_laneid if_ vecscope simt section"
    " static_range trap print bitcast set_atomic_none set_atomic_f32 set_atomic_f16 set_atomic_bf16 set_atomic_s32 set_atomic_s16"
    " set_atomic_s8 set_atomic_add set_atomic_max set_atomic_min init_align extract insert Vec ptr vreg_type mask_b8 mask_b16 mask_b32"
    " vbitcast pbitcast"
)
_FAMILIES = {
    "vector_memory": re.compile(r"v(lds|sts|ld|st|sld|sst|gather|scatter|stu|stas|stur|ldas|ldus)\w*$|p(lds|sts|stu)\w*$"),
    "predicates": re.compile(r"p(set|ge|lt|and|or|xor|not|sel|pack|unpack|intlv|dintlv)(_\w+)?$"),
    "vector": re.compile(r"v[a-z0-9_]+$"),
    "matrix": re.compile(r"mad(_mx)?(_acc|_bias)?$"),
    "matrix_loads": re.compile(r"(mte_l1_l0[ab]\w*|raw_fill_l1)$"),
}
_DTYPE = re.compile(r"pto\.(index|(?:i|ui|f|bf)\d+\w*)$")
_RESULTS = {"get_block_idx": "i64", "get_block_num": "i64", "get_tid_x": "i32", "get_tid_y": "i32", "get_tid_z": "i32", "get_laneid": "i32"}
_RESULTS["get_subblock_idx"] = "i64"
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%", ast.BitAnd: "&", ast.BitOr: "|",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_CONSTANT = Kind(constant=True)


def count_ptodsl(text: str) -> Counts:
    """Counts of all kernels of a PTODSL module.

    Raises:
        UncountableError: the text contains something this counter does not know.
    """
    tree = ast.parse(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    counter = _Counter({name: node for name, node in functions.items() if not node.decorator_list})
    for function in functions.values():
        if function.decorator_list:
            counter.kernel(function)
    return counter.counts


@dataclass(frozen=True, slots=True)
class _Tuple(Kind):
    """A tuple, with what is known of its elements."""

    parts: tuple[Kind, ...] = ()


@dataclass(frozen=True, slots=True)
class _Loop(Kind):
    """A ``pto.for_`` or ``pto.while_``, which is not ``counted``; ``last`` is the largest value of the counter."""

    rounds: int = 1
    counted: bool = False
    last: int | None = None
    carries: dict[str, Kind] = field(default_factory=dict)


class _Counter:
    def __init__(self, helpers: dict[str, ast.FunctionDef]) -> None:
        self.counts = Counts()
        self.helpers = helpers
        self.names: dict[str, Kind] = {}
        self.merges: dict[str, dict[str, Kind]] = {}
        self.weight = 1
        self.unrolled = 1
        self.result = Kind()

    def kernel(self, function: ast.FunctionDef) -> None:
        """A decorated function; the annotations give the types of its parameters."""
        self.names = {argument.arg: _annotated(argument.annotation) for argument in function.args.args}
        self.body(function.body)

    def count(self, kind: str) -> None:
        self.counts.add(kind, self.weight, self.unrolled)

    def scalar(self) -> None:
        self.count("scalar")

    # -- statements ------------------------------------------------------------------------------------------------------

    def body(self, statements: Sequence[ast.stmt], rounds: int = 1, *, unrolled: bool = False) -> None:
        outer = self.weight, self.unrolled
        self.weight *= rounds
        if unrolled:
            self.unrolled *= rounds
        for statement in statements:
            self.statement(statement)
        self.weight, self.unrolled = outer

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            self.bind(node.targets[0], node.value)
        elif isinstance(node, ast.Expr):
            self.expression(node.value)
        elif isinstance(node, ast.With):
            for item in node.items:
                self.scope(item, node.body)
        elif isinstance(node, ast.For):
            bounds = [value for value in map(_integer, node.iter.args) if value is not None] if isinstance(node.iter, ast.Call) else []
            if not isinstance(node.iter, ast.Call) or not bounds or len(bounds) < len(node.iter.args):
                raise UncountableError(f"static loop over {ast.unparse(node.iter)}")
            values = range(*bounds)
            self.bind(node.target, ast.Constant(max(values, default=0)))
            self.body(node.body, len(values), unrolled=True)
        elif isinstance(node, ast.Return):
            self.result = self.expression(node.value) if node.value is not None else Kind()
        elif not isinstance(node, ast.Pass):
            raise UncountableError(f"statement {ast.unparse(node)}")

    def bind(self, target: ast.expr, value: ast.expr) -> None:
        """An assignment; a tuple is taken apart where the value is one too."""
        if isinstance(target, ast.Tuple):
            parts = value.elts if isinstance(value, ast.Tuple) else []
            kinds = [self.expression(part) for part in parts] or [self.expression(value)] * len(target.elts)
            for element, kind in zip(target.elts, kinds, strict=True):
                assert isinstance(element, ast.Name)
                self.names[element.id] = kind
            return
        assert isinstance(target, ast.Name)
        self.names[target.id] = self.expression(value)

    def scope(self, item: ast.withitem, body: Sequence[ast.stmt]) -> None:
        """``with`` of a loop, a branch or a vector function."""
        opened = self.expression(item.context_expr)
        variable = item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else ""
        if not isinstance(opened, _Loop):
            if variable:
                self.merges[variable] = {}
            self.body(body)
            return
        if variable:
            self.names[variable] = Kind("index", limit=opened.last)
        if opened.counted:
            self.counts.add("scalar", 2 * opened.rounds * self.weight, 2 * self.unrolled)
        self.body(body, opened.rounds)

    # -- expressions -----------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Kind:
        if isinstance(node, ast.Constant):
            return Kind(constant=True, limit=node.value) if isinstance(node.value, int) else _CONSTANT
        if isinstance(node, ast.Name):
            return self.names.get(node.id, _CONSTANT)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Lambda):
            return self.expression(node.body)
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp)):
            return self.operation(node)
        kinds = [self.expression(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        if isinstance(node, ast.Tuple):
            return _Tuple(constant=all(kind.constant for kind in kinds), parts=tuple(kinds))
        return _CONSTANT if all(kind.constant for kind in kinds) else Kind()

    def operation(self, node: ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp) -> Kind:
        kinds = [self.expression(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        dtype = next((kind.dtype for kind in kinds if kind.dtype), "")
        limit = limit_of(_OPERATORS.get(type(node.op), ""), kinds[0], kinds[1]) if isinstance(node, ast.BinOp) else None
        if all(kind.constant for kind in kinds):
            return Kind(dtype, constant=True, limit=limit)
        for _ in range(max(1, len(kinds) - 1)):
            self.scalar()
        return Kind("i1" if isinstance(node, (ast.Compare, ast.BoolOp)) else dtype, limit=limit)

    def attribute(self, node: ast.Attribute) -> Kind:
        """``loop.iv``, ``loop.carry``, ``branch.merge``, ``pto.i32``."""
        if not isinstance(node.value, ast.Name):
            return self.expression(node.value)
        owner = self.names.get(node.value.id)
        if isinstance(owner, _Loop):
            return Kind("index", limit=owner.last) if node.attr == "iv" else owner.carries.get(node.attr, Kind())
        if node.value.id in self.merges:
            return self.merges[node.value.id].get(node.attr, Kind())
        return _CONSTANT if node.value.id in ("pto", "scalar") else Kind()

    def call(self, node: ast.Call) -> Kind:
        owner, _, function = ast.unparse(node.func).rpartition(".")
        if owner not in ("pto", "scalar"):
            return self.other_call(node, owner, function)
        arguments = [self.expression(argument) for argument in node.args]
        keywords = {keyword.arg or "": self.expression(keyword.value) for keyword in node.keywords}
        constant = all(kind.constant for kind in arguments)
        if function == "for_":
            return _counted_loop(arguments, keywords)
        if function == "while_":
            return _Loop(carries=_running(keywords))
        if function == "const":
            return Kind(_dtype(next(k.value for k in node.keywords if k.arg == "dtype")), constant=True, limit=arguments[0].limit)
        if function == "cast":
            target = _dtype(node.args[1])
            if not arguments[0].constant and cast_computes(arguments[0].dtype, target):
                self.scalar()
            return Kind(target, arguments[0].constant, limit=arguments[0].limit)
        if function == "addptr":
            if not constant:
                self.scalar()
            return Kind(arguments[0].dtype, constant, "pointer")
        if function == "castptr":
            return Kind(_pointed(node.args[1]), arguments[0].constant, "pointer")
        if function in _SCALAR:
            return self.function(node, function, arguments, constant)
        if function in _COPIES:
            self.counts.add_copy(_copy_bytes(function, arguments, keywords), self.weight, self.unrolled)
        elif function in _LOADS or function in _STORES:
            memory = arguments[0] if function in _LOADS else arguments[1]
            if memory.place == "pointer":
                self.count("accesses")
            return Kind(memory.dtype)
        elif function == "alloc_buffer":
            return Kind(_dtype(node.args[1]), place="array")
        elif function not in _NEUTRAL:
            self.count(family_of(function, _SYNCS, _ATOMICS, _FAMILIES, f"{owner}.{function}"))
        return Kind(_RESULTS.get(function, ""))

    def function(self, node: ast.Call, function: str, arguments: list[Kind], constant: bool) -> Kind:
        """A scalar operation in the form of a call."""
        if not constant:
            self.scalar()
        if function in ("convert", "cmp"):
            return Kind("i1" if function == "cmp" else _dtype(node.args[1]), constant)
        operands = arguments[1:] if function == "select" else arguments
        limit = limit_of(function if function in ("min", "max") else "", arguments[0], arguments[-1])
        return Kind(next((kind.dtype for kind in operands if kind.dtype), ""), constant, limit=limit)

    def other_call(self, node: ast.Call, owner: str, function: str) -> Kind:
        """Methods of loops and branches, helper functions (evaluated in place), and Python's own functions."""
        if function == "carry":
            loop = self.expression(node.func.value)  # type: ignore[attr-defined]
            carries = {keyword.arg or "": self.expression(keyword.value) for keyword in node.keywords}
            assert isinstance(loop, _Loop)
            return dataclasses.replace(loop, carries=_running(carries))
        arguments = [self.expression(argument) for argument in node.args]
        keywords = {keyword.arg or "": self.expression(keyword.value) for keyword in node.keywords}
        if function == "assign" and owner in self.merges:
            self.merges[owner] = _running(keywords)
            return Kind()
        if function == "update":
            return Kind()
        if function == "final":
            loop = self.names[owner]
            assert isinstance(loop, _Loop) and isinstance(node.args[0], ast.Constant)
            return loop.carries.get(str(node.args[0].value), Kind())
        if not owner and function in self.helpers:
            helper = self.helpers[function]
            outer, self.names = self.names, dict(zip((a.arg for a in helper.args.args), arguments, strict=True))
            self.result = Kind()
            self.body(helper.body)
            self.names = outer
            return self.result
        if function == "float" and not owner:
            return _CONSTANT
        raise UncountableError(f"{ast.unparse(node.func)}: unknown function")


def _counted_loop(arguments: Sequence[Kind], keywords: dict[str, Kind]) -> _Loop:
    """``pto.for_(low, high, step=...)``: its rounds where they are constant, else one."""
    low, high = arguments[0], arguments[1]
    step = keywords.get("step", Kind(constant=True, limit=1))
    last = high.limit - 1 if high.limit is not None else None
    if not (low.constant and high.constant and step.constant) or low.limit is None or high.limit is None or not step.limit:
        return _Loop(rounds=1, counted=True, last=last)
    return _Loop(rounds=len(range(low.limit, high.limit, step.limit)), counted=True, last=last)


def _copy_bytes(function: str, arguments: Sequence[Kind], keywords: dict[str, Kind]) -> int | None:
    """Bytes of a copy: bursts times their length, or rows times columns times the width of the elements read or written."""
    if function == "mte_gm_l1_frac":
        return product((element_bytes(arguments[0].dtype), *(part.limit for part in _parts(keywords, "shape"))))
    if function in ("mte_l0c_gm", "mte_l0c_ub"):
        return product((element_bytes(arguments[1].dtype), arguments[2].limit, arguments[3].limit))
    bursts = _parts(keywords, "nburst")[0].limit
    length = arguments[3 if function == "mte_gm_ub" else 2].limit
    blocks = 32 if function in ("mte_ub_ub", "mte_ub_l1") else 1  # bytes a unit of the length has
    return product((bursts, length, blocks))


def _parts(keywords: dict[str, Kind], name: str) -> tuple[Kind, ...]:
    value = keywords.get(name)
    if not isinstance(value, _Tuple):
        raise UncountableError(f"{name} of a copy is no tuple")
    return value.parts


def _annotated(annotation: ast.expr | None) -> Kind:
    if isinstance(annotation, ast.Call):
        return Kind(_dtype(annotation.args[0]), place="pointer")
    return Kind(_dtype(annotation)) if annotation is not None else Kind()


def _running(values: dict[str, Kind]) -> dict[str, Kind]:
    """Values carried or merged: of the same types as those they come from, but not constant."""
    return {name: Kind(kind.dtype, place=kind.place) for name, kind in values.items()}


def _dtype(node: ast.expr) -> str:
    match = _DTYPE.match(ast.unparse(node))
    return match.group(1) if match else ""


def _pointed(node: ast.expr) -> str:
    return _dtype(node.args[0]) if isinstance(node, ast.Call) else ""


def _integer(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
