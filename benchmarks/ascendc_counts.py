"""Counts operations in AscendC text as TileLang prints it; :mod:`counts` says which.

Vector functions are counted where they are called, with what is constant at the call. Of TileLang's C++ library only
``tl::AscendAllReduce`` is looked into (its body is a template that is not in the text); other ``tl::`` functions raise
:class:`LibraryCall`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import tree_sitter
import tree_sitter_cpp
from counts import Counts, Kind, cast_computes, names

__all__ = ["LibraryCall", "all_reduce_cost", "count_ascendc"]

_SCALAR = names(
    "min max expf exp2f logf log2f sqrtf rsqrtf sinf cosf tanhf erff powf fabsf fmaxf fminf fmaf floorf ceilf roundf rintf truncf"
    " isnan isinf abs asc_reduce_add asc_reduce_max asc_reduce_min asc_shfl_xor __float22bfloat162_rn"
)
_SYNCS = names(
    "asc_sync_notify asc_sync_wait asc_sync_pipe asc_sync asc_sync_inter_arrive asc_sync_inter_wait asc_syncthreads asc_threadfence"
    " asc_get_buf asc_rls_buf simd_inst::mem_bar"
)
_COPIES = names("asc_copy_gm2ub_align asc_copy_ub2gm_align asc_copy_ub2ub")
_NEUTRAL = names(
    "asc_init asc_atomic_add asc_atomic_max asc_atomic_min cce::dim3 device_assert device_assert_with_msg printf make_float2"
    " reinterpret_cast asc_set_atomic_none"
)
_VECTOR = re.compile(r"(simd_inst::\w+|::v\w+|asc_create_mask_b\d+|asc_set_atomic_\w+)$")
_TYPES = {
    "int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "int64_t": "i64", "int": "i32", "uint8_t": "ui8", "uint16_t": "ui16",
    "uint32_t": "ui32", "uint64_t": "ui64", "float": "f32", "half": "f16", "bfloat16_t": "bf16", "bool": "i1",
}  # fmt: skip
_CONSTANT = Kind(constant=True)
_NAMES = {"block_idx": Kind("i64"), "threadIdx": Kind("ui32")}
_QUALIFIERS = re.compile(r'extern "C"|__launch_bounds__\(\d+\)|\b__(?!float)[a-z_]*[a-z]__\b')
_KERNEL = re.compile(r"__global__[^(]*?(\w+)\(")
_ALL_REDUCE = re.compile(r"tl::AscendAllReduce<tl::(\w+)Op, (\d+), (\d+), -?\d+>::run$")
_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
_WARP = 32

Node = tree_sitter.Node


class LibraryCall(ValueError):
    """The text calls a library function whose operations are not in it."""


def count_ascendc(text: str) -> Counts:
    """Counts of all kernels of an AscendC translation unit.

    Raises:
        LibraryCall: what is computed is hidden in a library function.
        ValueError: the text contains something this counter does not know.
    """
    tree = _PARSER.parse(_QUALIFIERS.sub("", text).encode())
    if tree.root_node.has_error:
        raise ValueError("the text is no C++ that the grammar knows")
    functions = {}
    for node in tree.root_node.named_children:
        if node.type == "function_definition":
            functions[_text(_declared(_field(node, "declarator")))] = node
    counter = _Counter(functions)
    kernels = _KERNEL.findall(text)
    if not kernels:
        raise ValueError("the text has no kernel")
    for kernel in kernels:
        counter.function(functions[kernel], None)
    return counter.counts


def all_reduce_cost(kind: str, threads: int, scale: int) -> Counts:
    """Cost per thread of TileLang 0.1.15's ``AscendAllReduce`` over ``threads`` threads, combining those ``scale`` apart.

    Both are powers of two and the values are of a type the warp shuffles (``tl_templates/ascend/reduce.h``).
    """
    if threads & (threads - 1) or scale & (scale - 1) or scale > _WARP:
        raise LibraryCall(f"an all-reduce of {threads} threads with scale {scale}")
    combine = 1 if kind == "Sum" else 2  # a comparison and a choice
    if threads <= scale:
        return Counts()
    if threads <= _WARP:
        return Counts(scalar=_warp_reduce(threads, scale, combine))
    warps = threads // _WARP
    cost = _warp_reduce(_WARP, scale, combine)  # within the warp
    cost += 2 + 1 + 2  # numbers of the warp and of the lane, `lid < scale`, `wid * scale + lid`
    cost += 1  # `tx < 32`
    if scale == 1:
        cost += 2 + 1  # `lid < num_warps ? ... : ...` and one hardware reduction
    elif scale * warps <= _WARP:
        cost += 2 + _warp_reduce(scale * warps, scale, combine)
    else:
        cost += 1 + warps * (2 + 2 + combine + 2)  # `lid % scale`; per round the loop, the index, the operation, the choice
    cost += 1 + (scale > 1)  # `tx < scale`, `tx % scale`
    return Counts(scalar=cost, syncs=4)


def _warp_reduce(threads: int, scale: int, combine: int) -> int:
    extent = threads // scale
    if extent <= 1:
        return 0
    if extent >= 16 and scale == 1:  # hardware reductions, one for each group of the warp
        groups = _WARP // threads
        return 1 if groups == 1 else 2 + groups * (2 + 1 + 1)
    return (extent.bit_length() - 1) * (1 + combine)


class _Counter:
    def __init__(self, functions: dict[str, Node]) -> None:
        self.counts = Counts()
        self.functions = functions
        self.names: dict[str, Kind] = {}
        self.assigned: set[str] = set()
        self.weight = 1

    def scalar(self, count: int = 1) -> None:
        self.counts.scalar += count * self.weight

    def function(self, node: Node, arguments: Sequence[Kind] | None) -> None:
        """Body of a function; ``arguments`` are None for a kernel."""
        declarator = _field(node, "declarator")
        parameters = [p for p in _field(declarator, "parameters").named_children if p.type == "parameter_declaration"]
        outer = self.names, self.assigned
        body = _field(node, "body")
        self.names, self.assigned = {}, _assigned(body)
        for position, parameter in enumerate(parameters):
            kind = self.declared_kind(parameter)
            name = _text(_declared(_field(parameter, "declarator")))
            constant = arguments is not None and arguments[position].constant and name not in self.assigned
            self.names[name] = Kind(kind.dtype, constant, kind.place)
        self.statement(body)
        self.names, self.assigned = outer

    def declared_kind(self, node: Node) -> Kind:
        """Type of a declaration, parameter or type descriptor."""
        dtype = _TYPES.get(_text(_field(node, "type")), "")
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "init_declarator":
            declarator = _field(declarator, "declarator")
        places = {"pointer_declarator": "pointer", "abstract_pointer_declarator": "pointer", "array_declarator": "array"}
        return Kind(dtype, place=places.get(declarator.type if declarator is not None else "", "value"))

    # -- statements ------------------------------------------------------------------------------------------------------

    def statement(self, node: Node, unrolled: bool = False) -> None:
        kind = node.type
        if kind == "compound_statement":
            pragma = False
            for child in node.named_children:
                if child.type == "preproc_call":
                    pragma = _text(child).strip() == "#pragma unroll"
                    continue
                self.statement(child, pragma)
                pragma = False
        elif kind == "declaration":
            self.declaration(node)
        elif kind == "for_statement":
            self.loop(node, unrolled)
        elif kind in ("if_statement", "while_statement"):
            self.expression(_field(node, "condition"))
            for name in ("consequence", "alternative", "body"):
                child = node.child_by_field_name(name)
                if child is not None:
                    self.statement(child)
        elif kind in ("expression_statement", "else_clause", "return_statement"):
            for child in node.named_children:
                if child.type.endswith("statement"):
                    self.statement(child)
                else:
                    self.expression(child)
        elif kind not in ("break_statement", "comment"):
            raise ValueError(f"statement {kind}: {_text(node)[:80]}")

    def declaration(self, node: Node) -> None:
        for declarator in node.children_by_field_name("declarator"):
            kind = self.declared_kind(node)
            name = _text(_declared(declarator))
            value = declarator.child_by_field_name("value")
            if value is not None:
                given = self.expression(value)
                if _text(_field(node, "type")) == "auto":
                    kind = Kind(given.dtype, place=given.place)
                kind = Kind(kind.dtype, given.constant and name not in self.assigned, kind.place)
            self.names[name] = kind

    def loop(self, node: Node, unrolled: bool) -> None:
        """``for``: the number of rounds if it is constant, else one round."""
        initializer, condition = _field(node, "initializer"), _field(node, "condition")
        declarator = _field(initializer, "declarator")
        name = _text(_declared(declarator))
        low, high = _integer(_field(declarator, "value")), _integer(_field(condition, "right"))
        constant = (
            low is not None and high is not None and _text(_field(node, "update")) == f"++{name}" and _text(condition.children[1]) == "<"
        )
        self.expression(_field(declarator, "value"))
        rounds = max(0, high - low) if constant and low is not None and high is not None else 1
        self.names[name] = Kind(self.declared_kind(initializer).dtype, constant=constant and unrolled)
        self.weight *= rounds
        if not (constant and unrolled):
            self.expression(condition)
            self.expression(_field(node, "update"))
        self.statement(_field(node, "body"))
        self.weight = self.weight // rounds if rounds else 1

    # -- expressions -----------------------------------------------------------------------------------------------------

    def expression(self, node: Node) -> Kind:
        handler = getattr(self, node.type, None)
        if handler is not None:
            kind: Kind = handler(node)
            return kind
        if node.type in ("number_literal", "true", "false", "string_literal", "char_literal", "null"):
            return _CONSTANT
        raise ValueError(f"expression {node.type}: {_text(node)[:80]}")

    def identifier(self, node: Node) -> Kind:
        name = _text(node)
        return self.names.get(name) or _NAMES.get(name) or _CONSTANT

    def qualified_identifier(self, node: Node) -> Kind:
        return _CONSTANT

    def parenthesized_expression(self, node: Node) -> Kind:
        return self.expression(_children(node)[0])

    condition_clause = parenthesized_expression

    def field_expression(self, node: Node) -> Kind:
        return self.expression(_field(node, "argument"))

    def binary_expression(self, node: Node) -> Kind:
        left, right = self.expression(_field(node, "left")), self.expression(_field(node, "right"))
        operator = _text(_field(node, "operator"))
        dtype = "i1" if operator in ("<", "<=", ">", ">=", "==", "!=", "&&", "||") else _wider(left.dtype, right.dtype)
        if left.constant and right.constant:
            return Kind(dtype, constant=True)
        self.scalar()
        return Kind(dtype)

    def unary_expression(self, node: Node) -> Kind:
        operand = self.expression(_field(node, "argument"))
        if not operand.constant:
            self.scalar()
        return operand

    def conditional_expression(self, node: Node) -> Kind:
        condition, first, second = (self.expression(_field(node, part)) for part in ("condition", "consequence", "alternative"))
        constant = condition.constant and first.constant and second.constant
        if not constant:
            self.scalar()
        return Kind(first.dtype or second.dtype, constant)

    def assignment_expression(self, node: Node) -> Kind:
        if _text(_field(node, "operator")) != "=":
            self.scalar()
        self.expression(_field(node, "left"))
        return self.expression(_field(node, "right"))

    def update_expression(self, node: Node) -> Kind:
        self.scalar()
        return self.expression(_field(node, "argument"))

    def subscript_expression(self, node: Node) -> Kind:
        base = self.expression(_field(node, "argument"))
        for index in _children(_field(node, "indices")):
            self.expression(index)
        return Kind(base.dtype)

    def pointer_expression(self, node: Node) -> Kind:
        """``&x[i]`` computes an address, ``*p`` does not."""
        operand = _stripped(_field(node, "argument"))
        if _text(_field(node, "operator")) == "*":
            return Kind(self.accessed(operand).dtype)
        if operand.type != "subscript_expression":
            return Kind(self.expression(operand).dtype, place="pointer")
        base = self.expression(_field(operand, "argument"))
        indices = _children(_field(operand, "indices"))
        constant = self.expression(indices[0]).constant
        fixed = base.constant or base.place == "array" or _text(indices[0]) == "0"
        if not (constant and fixed):
            self.scalar()
        return Kind(base.dtype, base.constant and constant, "pointer")

    def accessed(self, node: Node) -> Kind:
        """What a pointer points to, accessed in place: ``*(T*)&x[i]`` and ``*(T*)(x + i)`` are ``x[i]``."""
        node = _stripped(node)
        if node.type == "binary_expression" and _text(_field(node, "operator")) == "+":
            self.expression(_field(node, "right"))
            return self.expression(_field(node, "left"))
        if node.type == "cast_expression":
            inner = self.accessed(_field(node, "value"))
            return Kind(self.declared_kind(_field(node, "type")).dtype or inner.dtype)
        if node.type == "pointer_expression" and _text(_field(node, "operator")) == "&":
            return self.expression(_stripped(_field(node, "argument")))
        return self.expression(node)

    def cast_expression(self, node: Node) -> Kind:
        return self.cast(_field(node, "type"), self.expression(_field(node, "value")))

    def cast(self, target: Node, value: Kind) -> Kind:
        kind = self.declared_kind(target)
        if kind.place == "value" and kind.dtype and not value.constant and cast_computes(value.dtype, kind.dtype):
            self.scalar()
        return Kind(kind.dtype, value.constant, kind.place)

    def call_expression(self, node: Node) -> Kind:
        function = _field(node, "function")
        arguments = _children(_field(node, "arguments"))
        name, _, template = _text(function).partition("<")
        kinds = [self.expression(argument) for argument in arguments]
        constant = all(kind.constant for kind in kinds)
        if name in _TYPES:
            if not constant and cast_computes(kinds[0].dtype, _TYPES[name]):
                self.scalar()
            return Kind(_TYPES[name], constant)
        if name == "static_cast":
            return self.cast(_children(_field(function, "arguments"))[0], kinds[0])
        if name == "asc_vf_call":
            self.function(self.functions[template.rstrip(">")], kinds[1:])
        elif name in self.functions:
            self.function(self.functions[name], kinds)
        elif name in _SCALAR:
            if not constant:
                self.scalar()
            return Kind(next((kind.dtype for kind in kinds if kind.dtype), ""), constant)
        elif name in _SYNCS:
            self.counts.syncs += self.weight
        elif name in _COPIES:
            self.counts.copies += self.weight
        elif name.startswith("tl::"):
            return self.library(_text(function), kinds)
        elif name not in _NEUTRAL and not _VECTOR.match(name):
            raise ValueError(f"{name}: not known whether it is a scalar operation")
        return Kind(kinds[0].dtype if name.startswith("asc_atomic") else "")

    def library(self, function: str, kinds: Sequence[Kind]) -> Kind:
        match = _ALL_REDUCE.match(function)
        if match is None:
            raise LibraryCall(f"what {function} computes is not in the text")
        cost = all_reduce_cost(match.group(1), int(match.group(2)), int(match.group(3)))
        self.scalar(cost.scalar)
        self.counts.syncs += cost.syncs * self.weight
        return Kind(kinds[0].dtype)


# -- syntax --------------------------------------------------------------------------------------------------------------


def _text(node: Node) -> str:
    return node.text.decode() if node.text is not None else ""


def _field(node: Node, name: str) -> Node:
    child = node.child_by_field_name(name)
    if child is None:
        raise ValueError(f"{node.type} without {name}: {_text(node)[:80]}")
    return child


def _children(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type != "comment"]


def _stripped(node: Node) -> Node:
    """A node without the parentheses around it."""
    while node.type == "parenthesized_expression":
        node = _children(node)[0]
    return node


def _declared(node: Node) -> Node:
    """The name inside a declarator."""
    while node.type != "identifier":
        node = _field(node, "declarator")
    return node


def _assigned(body: Node) -> set[str]:
    """Names that are assigned after their declaration."""
    names, pending = set(), [body]
    while pending:
        node = pending.pop()
        if node.type == "assignment_expression":
            names.add(_text(_field(node, "left")))
        elif node.type == "update_expression":
            names.add(_text(_field(node, "argument")))
        pending.extend(node.named_children)
    return names


def _integer(node: Node) -> int | None:
    """A literal, perhaps in a cast."""
    node = _stripped(node)
    if node.type == "cast_expression":
        return _integer(_field(node, "value"))
    text = _text(node)
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _wider(first: str, second: str) -> str:
    """Type of an arithmetic operation; a constant without a type takes the other's."""
    if not first or not second:
        return first or second
    order = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64", "f16", "bf16", "f32")
    return max(first, second, key=order.index)
