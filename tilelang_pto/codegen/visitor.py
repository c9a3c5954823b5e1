"""Walks the TIR of one device function and calls the rules.

The visitor owns what a rule needs: the builder, scalar arithmetic, the values of TIR variables, the storage behind buffers, and the kind
of code being emitted. It knows no operation by name; those are in :mod:`tilelang_pto.codegen.rules`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from tvm import tirx

from tilelang_pto.errors import UnsupportedError

from .analysis.cores import Cores, cores_of
from .analysis.liveness import Liveness, Slot
from .analysis.loops import constant_index, normalise_loops
from .analysis.ranges import non_negative_variables
from .analysis.views import PlacedView
from .arith import Arithmetic
from .emit import Block, Builder, call
from .registry import EXPRESSION_RULES, OP_RULES, STATEMENT_RULES, OpRule
from .surface import Surface
from .types import DTYPES, INDEX, DType, Type, mask_type, register_type, scalar_type, split_lanes
from .values import Value

__all__ = ["Core", "MemorySpace", "Region", "Storage", "Visitor", "operation_name"]

Region = Literal["scalar", "simd", "simt"]
MemorySpace = Literal["ub", "mat", "left", "right", "acc"]
Core = Literal["vector", "cube"]


@dataclass(eq=False, slots=True)
class Storage:
    """Memory behind a TIR data variable.

    Attributes:
        kind: ``gm`` a kernel argument; ``slot`` SSA values (mutable scalars and registers); ``stack`` a private array of SIMT
            threads; ``scales`` the scale factors of an L0 tile, which lie where the tile's address says; any other is a memory of
            :data:`~tilelang_pto.codegen.caps.MEMORIES`.
        name: TIR name.
        element: TIR dtype it was allocated with.
        pointer: base pointer (``gm``, ``stack``).
        byte_offset: position in its memory.
        size: bytes in its memory.
    """

    kind: MemorySpace | Literal["gm", "slot", "stack", "scales"]
    name: str
    element: str
    pointer: Value | None = None
    byte_offset: int = 0
    size: int = 0


class Visitor:
    """State of the emission of one kernel.

    Args:
        kernel: device function name, for messages.
        surface: PTODSL surface to write for.
        fast_math: divisions that ask for no precision may have the hardware's.

    Attributes:
        helpers: texts of plain Python functions the kernel calls, by name; they are printed once, in front of the kernels.
        private: values rules keep for the rest of a vector function, by its block and a name.
    """

    def __init__(self, kernel: str, surface: Surface, fast_math: bool = False) -> None:
        self.kernel = kernel
        self.surface = surface
        self.fast_math = fast_math
        self.b = Builder()
        self.arith = Arithmetic(self.b, surface, self.unsupported)
        self.region: Region = "scalar"
        self.cores = Cores("vector")
        self.core: Core | None = "vector"  # None where the code of both cores is still together
        self.sections: set[Core] = set()
        self.variables: dict[Any, Value] = {}
        self.storage: dict[Any, Storage] = {}
        self.slots: dict[Slot, Value] = {}
        self.liveness = Liveness(tirx.Evaluate(0), ())
        self.counters: set[Any] = set()
        self.allocations: dict[str, list[Storage]] = {}  # by memory space
        self.arenas: dict[str, list[PlacedView]] = {}  # buffers of merged allocations, by the allocation's name
        self.views: set[str] = set()  # buffers that a comment has told of, as ``UB view row``
        self.arguments_alias = False
        self.modes: dict[str, int | None] = {"hf32": 0, "direction": 0}  # None where it depends on the way that led here
        self.pad_value: Value | None = None  # of padded copies, where one setter is known to reach
        self.pad_setters = 0
        self.vector_function: Block | None = None
        self.running: set[Any] = set()
        self.threads = (1, 1, 1)
        self.helpers: dict[str, str] = {}
        self.body: Any = None
        self.private: dict[tuple[Block | None, str], Value] = {}
        self._statements: list[Any] = []
        self._position = ""

    def prepare(self, body: Any) -> Any:
        """Rewrite the loops of a body, run the analyses that rules rely on, and return the body to emit."""
        self.body = body
        self.cores = cores_of(body)
        self.core = None if self.cores.kind == "mixed" else self.cores.kind
        normalised = normalise_loops(body, slot_variables(body))
        slots = [*slot_variables(normalised.body), *normalised.running]
        self.running = set(normalised.running)
        self.liveness = Liveness(normalised.body, slots)
        self.counters = non_negative_variables(normalised.body, slots)
        return normalised.body

    # -- walking ---------------------------------------------------------------------------------------------------------

    def stmt(self, node: Any) -> None:
        """Emit a statement."""
        rule = STATEMENT_RULES.get(type(node))
        self._statements.append(node)
        self._source_comment(node)
        if rule is None:
            self.unsupported(f"statement {type(node).__name__} has no rule")
        rule(self, node)
        self._statements.pop()

    def _source_comment(self, node: Any) -> None:
        """A comment with the position in the TileLang source, where TIR carries one and it is not that of the statement before."""
        position = source_position(node)
        if position and position != self._position:
            self.b.comment(position)
            self._position = position

    def expr(self, node: Any) -> Value:
        """Value of an expression."""
        value = self.maybe_expr(node)
        if value is None:
            self.unsupported(f"{_describe(node)} gives no value but one is needed")
        return value

    def maybe_expr(self, node: Any) -> Value | None:
        """Value of an expression, None for a call made for its effect."""
        rule = EXPRESSION_RULES.get(type(node))
        if rule is None:
            self.unsupported(f"expression {type(node).__name__} has no rule")
        value: Value | None = rule(self, node)
        return value

    def call_rule(self, node: Any, name: str, arguments: Sequence[Any]) -> Value | None:
        """Apply the rule of operation ``name``."""
        rule = OP_RULES.get(name)
        if rule is None:
            self.unsupported(f"operation {name} has no rule", "see docs/coverage.md for the operations that have one")
        if self.region not in rule.regions:
            self.unsupported(f"operation {name} {_PLACES[self.region]}", f"it belongs {' or '.join(_BELONGS[r] for r in rule.regions)}")
        if rule.core is not None and rule.core != self.core:
            self.unsupported(
                f"operation {name} {_CORES[self.core]}", f"it belongs to a {rule.core} core: put it into {_SECTIONS[rule.core]}"
            )
        for annotation in node.annotations or {}:
            if str(annotation) not in rule.annotations:
                self.unsupported(f"annotation {annotation} of operation {name} has no rule")
        if rule.merges is not None and isinstance(arguments[-1], tirx.StringImm) and arguments[-1].value == "MODE_MERGING":
            from .rules.simd_fused import merge

            merge(self, node, rule, arguments)
            return None
        if rule.arity and len(arguments) not in rule.arity:
            wanted = " or ".join(str(count) for count in rule.arity)
            self.unsupported(f"operation {name} has {len(arguments)} arguments; the rule knows {wanted}")
        self._check_arguments(rule, arguments)
        value: Value | None = rule.function(self, node, *arguments)
        return value

    def _check_arguments(self, rule: OpRule, arguments: Sequence[Any]) -> None:
        """Hold the arguments against the literals and memory spaces of a rule."""
        for parameter, argument in rule.bind(arguments):
            what = f"argument {parameter} of {rule.name}"
            legal = rule.literals.get(parameter)
            if legal is not None:
                value = self.string(argument, what) if legal.kind is str else self.integer(argument, what)
                if legal.values and value not in legal.values:
                    self.unsupported(f"{value} as {what}", f"use one of {', '.join(map(str, legal.values))}")
            space = rule.spaces.get(parameter)
            if space is not None:
                from .rules.memory import require_space

                require_space(self, argument, space, what)

    # -- values ----------------------------------------------------------------------------------------------------------

    def index(self, value: int) -> Value:
        """A literal offset or count."""
        return self.b.literal(value, INDEX)

    def zero(self, tir_dtype: str) -> Value:
        """Zero of a scalar or vector register dtype."""
        name, lanes = split_lanes(tir_dtype)
        storage = self.element(name).category == "storage"
        element = self.arith.number(0, self.scalar_type("uint8" if storage else name))
        if lanes == 1:
            return element
        register = self.register_type(tir_dtype)
        filled = Type("register", element.dtype, register.lanes)
        zeros = self.b.pure("vbr", lambda e: call("pto.vbr", *e), (self.arith.typed(element),), filled, pinned=True)
        if not storage:
            return zeros
        from .rules.simd_arith import bitcast

        return bitcast(self, zeros, register)

    def integer(self, node: Any, what: str) -> int:
        """A compile-time integer argument."""
        if not isinstance(node, tirx.IntImm):
            self.unsupported(f"{what} must be a constant, not {_describe(node)}")
        return int(node)

    def slot(self, data: Any, index: Any) -> Slot:
        """Key of a mutable value: its buffer variable and constant index."""
        number = constant_index(index)
        if number is None:
            self.unsupported(
                f"the index of {data.name} must be a constant, not {_describe(index)}",
                "unroll the loop (T.unroll): registers have numbers, not addresses",
            )
        return data, number

    def string(self, node: Any, what: str) -> str:
        """A compile-time string argument."""
        if not isinstance(node, tirx.StringImm):
            self.unsupported(f"{what} must be a string, not {_describe(node)}")
        return str(node.value)

    def scalar_type(self, tir_dtype: Any) -> Type:
        """PTODSL type of a TIR scalar dtype."""
        type = scalar_type(str(tir_dtype))
        if type is None:
            scalars = ", ".join(name for name in DTYPES if scalar_type(name) is not None)
            self.unsupported(f"dtype {tir_dtype} has no PTODSL scalar type", f"use one of {scalars}")
        return type

    def element(self, tir_dtype: Any) -> DType:
        """Type of the elements that a pointer points to; types without scalar values have one too."""
        dtype = DTYPES.get(str(tir_dtype))
        if dtype is None:
            self.unsupported(f"elements of dtype {tir_dtype} have no PTODSL type", f"use one of {', '.join(DTYPES)}")
        return dtype

    def register_type(self, tir_dtype: Any) -> Type:
        """PTODSL vector register type of a TIR vector dtype."""
        type = register_type(str(tir_dtype))
        if type is None:
            self.unsupported(f"dtype {tir_dtype} is not that of a 256-byte vector register")
        return type

    def mask(self, node: Any, bits: int) -> Value:
        """A predicate operand, re-typed to the granularity the consumer wants (the bits stay the same)."""
        value = self.expr(node)
        if value.type.kind != "mask":
            self.unsupported(f"{_describe(node)} is used as a predicate but is {value.type}")
        if value.dtype.bits == bits:
            return value
        from .rules.simd_mask import recast

        return recast(self, value, mask_type(bits))

    # -- modes -----------------------------------------------------------------------------------------------------------

    def set_mode(self, name: str, value: int) -> None:
        """Set a mode of the core, which holds until it is set again."""
        self.modes = {**self.modes, name: value}

    def mode(self, name: str, what: str) -> int:
        """The mode that holds here; it must be the same whichever way leads here."""
        value = self.modes[name]
        if value is None:
            self.unsupported(f"{what} is set in a branch or later in a loop and may differ here", "set it once, in front of the loops")
        return value

    # -- mutable slots ---------------------------------------------------------------------------------------------------

    def read_slot(self, slot: Slot) -> Value:
        """Current value of a mutable variable."""
        value = self.slots.get(slot)
        if value is None:
            self.unsupported(
                f"{slot[0].name}[{slot[1]}] is read before it is written",
                "give the variable a value before the loop or branch that reads it",
            )
        return value

    # -- scopes ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def scope(self, block: Block, region: Region | None = None, *, repeats: Any = None) -> Iterator[None]:
        """Emit into ``block``; what is bound or stored inside is forgotten afterwards (loops and branches export what is needed).

        Args:
            repeats: body of the loop that ``block`` is, whose later rounds start with what earlier ones have set.
        """
        outer, outer_slots, outer_region = dict(self.variables), dict(self.slots), self.region
        modes = self.modes
        unsure = dict.fromkeys(_modes_set(repeats)) if repeats is not None else {}
        self.modes = {**modes, **unsure}
        pad, setters = self.pad_value, self.pad_setters
        if block.kind == "loop":
            self.pad_value = None  # a round before may have set another one
        self._enter(region or outer_region)
        with self.b.inside(block):
            yield
        self.variables, self.slots = outer, outer_slots
        self.modes = {name: value if self.modes.get(name) == value and name not in unsure else None for name, value in modes.items()}
        self.pad_value = pad if self.pad_setters == setters else None  # set on one path only
        self._enter(outer_region)

    def _enter(self, region: Region) -> None:
        self.region = region
        self.arith.unit = "simt" if region == "simt" else "scalar"

    # -- errors ----------------------------------------------------------------------------------------------------------

    def unsupported(self, what: str, advice: str = "") -> NoReturn:
        """Raise :class:`UnsupportedError` for the statement being emitted."""
        where = [f"kernel {self.kernel}"]
        if self._statements:
            where.append(f"TIR: {_statement_line(self._statements[-1])}")
            position = source_position(self._statements[-1])
            if position:
                where.append(position)
        raise UnsupportedError(what, where=tuple(where), advice=advice)


_PLACES = {"scalar": "outside a vector function", "simd": "inside a SIMD vector function", "simt": "inside a SIMT vector function"}
_CORES = {"vector": "on a vector core", "cube": "on a cube core", None: "outside T.Cube() and T.Vector() of a mixed kernel"}
_SECTIONS = {"vector": "T.Vector()", "cube": "T.Cube()"}
_BELONGS = {"scalar": "in front of or behind a vector function", "simd": "inside T.SimdVF", "simt": "inside T.SimtVF"}


def operation_name(call: Any) -> str:
    """Name of what a call node calls: an operation, or another function of the module."""
    return str(getattr(call.op, "name", None) or getattr(call.op, "name_hint", type(call.op).__name__))


def source_position(node: Any) -> str:
    """``file:line`` of a statement, from its own span or that of its value; empty if it has none."""
    for carrier in (node, getattr(node, "value", None), getattr(node, "condition", None)):
        span = getattr(carrier, "span", None)
        if span is not None:
            return f"{span.source_name.name}:{span.line}"
    return ""


_MODE_SETTERS = {"tl.ascend_set_hf32_mode": "hf32", "tl.ascend_set_mmad_direction": "direction"}


def _modes_set(body: Any) -> set[str]:
    """Modes a statement sets somewhere."""
    found: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, tirx.Call) and operation_name(node) in _MODE_SETTERS:
            found.add(_MODE_SETTERS[operation_name(node)])

    tirx.stmt_functor.post_order_visit(body, visit)
    return found


def slot_variables(body: Any) -> list[Any]:
    """Data variables of buffers kept as SSA values: mutable scalars and register arrays outside SIMT code."""
    found: list[Any] = []

    def visit(node: Any, simt: bool) -> None:
        if isinstance(node, tirx.SeqStmt):
            for inner in node.seq:
                visit(inner, simt)
        elif isinstance(node, tirx.SBlock):
            visit(node.body, simt or node.name_hint == "SIMT_VF")
        elif isinstance(node, (tirx.AttrStmt, tirx.For, tirx.While)):
            visit(node.body, simt)
        elif isinstance(node, tirx.IfThenElse):
            visit(node.then_case, simt)
            if node.else_case is not None:
                visit(node.else_case, simt)
        elif isinstance(node, tirx.AllocBuffer) and not simt and str(node.buffer.scope()).startswith("local"):
            found.append(node.buffer.data)

    visit(body, False)
    return found


def _describe(node: Any) -> str:
    if isinstance(node, tirx.Call):
        return f"operation {operation_name(node)}"
    return f"{type(node).__name__} `{_one_line(node, 60)}`"


_FREE_VARIABLE = re.compile(r"^[\w, ]+ = T\.(Buffer|handle|bool|u?int\d+|b?float\d+)\w*\(.*\)$")


def _statement_line(node: Any) -> str:
    """The line of TVMScript that a statement begins with, without the declarations TVM prints for its free variables."""
    lines = [line.strip() for line in str(node).splitlines()]
    own = [line for line in lines if line and not _FREE_VARIABLE.match(line) and not line.startswith("#")]
    text = own[0] if own else " ".join(lines)
    return text if len(text) <= 160 else text[:157] + "..."


def _one_line(node: Any, limit: int = 160) -> str:
    text = " ".join(str(node).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
