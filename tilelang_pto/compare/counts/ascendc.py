"""Counts operations in AscendC text as TileLang prints it; :mod:`~tilelang_pto.compare.counts.kinds` says which.

Vector functions are counted where they are called, with what is constant at the call. Functions of TileLang's C++ library whose
bodies are not in the text count with what :mod:`~tilelang_pto.compare.counts.ascendc_library` knows of them; others raise
:class:`LibraryCall`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilelang_pto.compare.counts.ascendc_library import VECTOR_COSTS, LibraryCall, library_cost
from tilelang_pto.compare.counts.ascendc_syntax import (
    Node,
    assigned_names,
    children,
    declared,
    field,
    integer,
    parse,
    stripped,
    text_of,
)
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

__all__ = ["LibraryCall", "count_ascendc"]

_SCALAR = names(
    "min max expf exp2f logf log2f sqrtf rsqrtf sinf cosf tanhf erff powf fabsf fmaxf fminf fmaf floorf ceilf roundf rintf truncf"
    " isnan isinf abs asc_reduce_add asc_reduce_max asc_reduce_min asc_shfl_xor __float22bfloat162_rn"
    " __bfloat1622float2 __float22half2_rn __half22float2"
)
_SYNCS = names(
    "asc_sync_notify asc_sync_wait asc_sync_pipe asc_sync asc_sync_inter_arrive asc_sync_inter_wait asc_sync_intra_arrive"
    " asc_sync_intra_wait asc_syncthreads asc_threadfence asc_get_buf asc_rls_buf asc_lock asc_unlock simd_inst::mem_bar"
)
_COPIES = names(
    "asc_copy_gm2ub_align asc_copy_ub2gm_align asc_copy_ub2ub asc_copy_gm2l1_nd2nz asc_copy_gm2l1_dn2nz asc_copy_ub2l1"
    " asc_copy_l0c2gm asc_copy_l0c2ub"
)
_ATOMICS = names("asc_atomic_add asc_atomic_max asc_atomic_min asc_atomic_exch asc_atomic_cas")
_NEUTRAL = names(
    "asc_init cce::dim3 device_assert device_assert_with_msg printf make_float2 reinterpret_cast asc_set_atomic_none"
    " asc_set_gm2l1_nz_para asc_set_l0c_copy_nz_para asc_get_sub_block_id asc_set_copy_pad_val"
)
_FAMILIES = {
    "vector_memory": re.compile(r"(simd_inst::|::)(v(lds?|sts?|sld|sstb?|gatherb?|scatter|stu|ldas|ldus)|p(lds|sts))(?![a-z])\w*$"),
    "predicates": re.compile(r"asc_(create|update)_mask_b\d+$|(simd_inst::|::)p[a-z]+\w*$"),
    "vector": re.compile(r"(simd_inst::|::)v\w+$"),
    "matrix": re.compile(r"asc_mmad(_mx)?$"),
    "matrix_loads": re.compile(r"(asc_copy_l12l0[ab]\w*|asc_fill_l1)$"),
}
_SET_ATOMIC = re.compile(r"asc_set_atomic_\w+$")
_TYPES = {
    "int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "int64_t": "i64", "int": "i32", "uint8_t": "ui8", "uint16_t": "ui16",
    "uint32_t": "ui32", "uint64_t": "ui64", "float": "f32", "half": "f16", "bfloat16_t": "bf16", "bool": "i1",
}  # fmt: skip
_FP8 = {"fp8_e4m3fn_t": "f8e4m3", "fp8_e5m2_t": "f8e5m2", "fp8_e8m0_t": "ui8", "float8_e4m3_t": "f8e4m3", "float8_e5m2_t": "f8e5m2"}
_TYPES.update(_FP8)
_CONSTANT = Kind(constant=True)
_NAMES = {"block_idx": Kind("i64"), "threadIdx": Kind("ui32"), "ASC_IS_AIC": _CONSTANT, "ASC_IS_AIV": _CONSTANT}
_QUALIFIERS = re.compile(r'extern "C"|__launch_bounds__\(\d+\)|__mix__\([^)]*\)|\b__(?!float)[a-z_]*[a-z]__\b')
_KERNEL = re.compile(r"__global__(?:\s*__mix__\([^)]*\))?[^(]*?(\w+)\(")
_SECTION = re.compile(r"\bif (ASC_IS_AI[CV]) \{")


def count_ascendc(text: str) -> Counts:
    """Counts of all kernels of an AscendC translation unit.

    Raises:
        LibraryCall: what is computed is hidden in a library function.
        UncountableError: the text contains something this counter does not know.
        ConfigurationError: the grammar of C++ is not installed.
    """
    root = parse(_SECTION.sub(r"if (\1) {", _QUALIFIERS.sub("", text)))
    if root.has_error:
        raise UncountableError("the text is no C++ that the grammar knows")
    functions = {}
    for node in root.named_children:
        if node.type == "function_definition":
            functions[text_of(declared(field(node, "declarator")))] = node
    counter = _Counter(functions)
    kernels = _KERNEL.findall(text)
    if not kernels:
        raise UncountableError("the text has no kernel")
    for kernel in kernels:
        counter.function(functions[kernel], None)
    return counter.counts


class _Counter:
    def __init__(self, functions: dict[str, Node]) -> None:
        self.counts = Counts()
        self.functions = functions
        self.names: dict[str, Kind] = {}
        self.assigned: set[str] = set()
        self.weight = 1
        self.unrolled = 1

    def count(self, kind: str, number: int = 1) -> None:
        self.counts.add(kind, number * self.weight, number * self.unrolled)

    def scalar(self) -> None:
        self.count("scalar")

    def function(self, node: Node, arguments: Sequence[Kind] | None) -> None:
        """Body of a function; ``arguments`` are None for a kernel."""
        declarator = field(node, "declarator")
        parameters = [p for p in field(declarator, "parameters").named_children if p.type == "parameter_declaration"]
        outer = self.names, self.assigned
        body = field(node, "body")
        self.names, self.assigned = {}, assigned_names(body)
        for position, parameter in enumerate(parameters):
            kind = self.declared_kind(parameter)
            name = text_of(declared(field(parameter, "declarator")))
            given = arguments[position] if arguments is not None else Kind()
            constant = given.constant and name not in self.assigned
            self.names[name] = Kind(kind.dtype, constant, kind.place, given.limit if constant else None)
        self.statement(body)
        self.names, self.assigned = outer

    def declared_kind(self, node: Node) -> Kind:
        """Type of a declaration, parameter or type descriptor."""
        dtype = _TYPES.get(text_of(field(node, "type")), "")
        declarator = node.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "init_declarator":
            declarator = field(declarator, "declarator")
        places = {"pointer_declarator": "pointer", "abstract_pointer_declarator": "pointer", "array_declarator": "array"}
        return Kind(dtype, place=places.get(declarator.type if declarator is not None else "", "value"))

    # -- statements ------------------------------------------------------------------------------------------------------

    def statement(self, node: Node, unrolled: bool = False) -> None:
        kind = node.type
        if kind == "compound_statement":
            pragma = False
            for child in node.named_children:
                if child.type == "preproc_call":
                    pragma = text_of(child).strip() == "#pragma unroll"
                    continue
                self.statement(child, pragma)
                pragma = False
        elif kind == "declaration":
            self.declaration(node)
        elif kind == "for_statement":
            self.loop(node, unrolled)
        elif kind in ("if_statement", "while_statement"):
            self.expression(field(node, "condition"))
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
            raise UncountableError(f"statement {kind}: {text_of(node)[:80]}")

    def declaration(self, node: Node) -> None:
        for declarator in node.children_by_field_name("declarator"):
            kind = self.declared_kind(node)
            name = text_of(declared(declarator))
            value = declarator.child_by_field_name("value")
            if value is not None:
                given = self.expression(value)
                fixed = name not in self.assigned
                if text_of(field(node, "type")) == "auto":
                    kind = Kind(given.dtype, place=given.place)
                kind = Kind(kind.dtype, given.constant and fixed, kind.place, given.limit if fixed else None)
            self.names[name] = kind

    def loop(self, node: Node, unrolled: bool) -> None:
        """``for``: the number of rounds if it is constant, else one round."""
        initializer, condition = field(node, "initializer"), field(node, "condition")
        declarator = field(initializer, "declarator")
        name = text_of(declared(declarator))
        low, high = integer(field(declarator, "value")), integer(field(condition, "right"))
        constant = (
            low is not None and high is not None and text_of(field(node, "update")) == f"++{name}" and text_of(condition.children[1]) == "<"
        )
        self.expression(field(declarator, "value"))
        rounds = max(0, high - low) if constant and low is not None and high is not None else 1
        last = high - 1 if high is not None and text_of(condition.children[1]) == "<" else None
        self.names[name] = Kind(self.declared_kind(initializer).dtype, constant=constant and unrolled, limit=last)
        outer = self.weight, self.unrolled
        self.weight *= rounds
        if constant and unrolled:
            self.unrolled *= rounds
        else:
            self.expression(condition)
            self.expression(field(node, "update"))
        self.statement(field(node, "body"))
        self.weight, self.unrolled = outer

    # -- expressions -----------------------------------------------------------------------------------------------------

    def expression(self, node: Node) -> Kind:
        handler = getattr(self, node.type, None)
        if handler is not None:
            kind: Kind = handler(node)
            return kind
        if node.type == "number_literal":
            return Kind(constant=True, limit=integer(node))
        if node.type in ("true", "false", "string_literal", "char_literal", "null"):
            return _CONSTANT
        raise UncountableError(f"expression {node.type}: {text_of(node)[:80]}")

    def identifier(self, node: Node) -> Kind:
        name = text_of(node)
        return self.names.get(name) or _NAMES.get(name) or _CONSTANT

    def qualified_identifier(self, node: Node) -> Kind:
        return _CONSTANT

    def parenthesized_expression(self, node: Node) -> Kind:
        return self.expression(children(node)[0])

    condition_clause = parenthesized_expression

    def initializer_list(self, node: Node) -> Kind:
        for item in children(node):
            self.expression(field(item, "value") if item.type == "initializer_pair" else item)
        return Kind()

    def field_expression(self, node: Node) -> Kind:
        return self.expression(field(node, "argument"))

    def binary_expression(self, node: Node) -> Kind:
        left, right = self.expression(field(node, "left")), self.expression(field(node, "right"))
        operator = text_of(field(node, "operator"))
        dtype = "i1" if operator in ("<", "<=", ">", ">=", "==", "!=", "&&", "||") else _wider(left.dtype, right.dtype)
        limit = limit_of(operator, left, right)
        if left.constant and right.constant:
            return Kind(dtype, constant=True, limit=limit)
        self.scalar()
        return Kind(dtype, limit=limit)

    def unary_expression(self, node: Node) -> Kind:
        operand = self.expression(field(node, "argument"))
        if not operand.constant:
            self.scalar()
        return Kind(operand.dtype, operand.constant, operand.place)

    def conditional_expression(self, node: Node) -> Kind:
        condition, first, second = (self.expression(field(node, part)) for part in ("condition", "consequence", "alternative"))
        constant = condition.constant and first.constant and second.constant
        if not constant:
            self.scalar()
        return Kind(first.dtype or second.dtype, constant, limit=limit_of("max", first, second))

    def assignment_expression(self, node: Node) -> Kind:
        if text_of(field(node, "operator")) != "=":
            self.scalar()
        self.expression(field(node, "left"))
        return self.expression(field(node, "right"))

    def update_expression(self, node: Node) -> Kind:
        self.scalar()
        return self.expression(field(node, "argument"))

    def subscript_expression(self, node: Node) -> Kind:
        base = self.element(node)
        if base.place == "pointer":
            self.count("accesses")
        return Kind(base.dtype)

    def element(self, node: Node) -> Kind:
        """``x[i]`` without the access itself: what is known of ``x``."""
        base = self.expression(field(node, "argument"))
        for index in children(field(node, "indices")):
            self.expression(index)
        return base

    def pointer_expression(self, node: Node) -> Kind:
        """``&x[i]`` computes an address, ``*p`` does not."""
        operand = stripped(field(node, "argument"))
        if text_of(field(node, "operator")) == "*":
            memory = self.accessed(operand)
            if memory.place == "pointer":
                self.count("accesses")
            return Kind(memory.dtype)
        if operand.type != "subscript_expression":
            return Kind(self.expression(operand).dtype, place="pointer")
        base = self.expression(field(operand, "argument"))
        indices = children(field(operand, "indices"))
        constant = self.expression(indices[0]).constant
        fixed = base.constant or base.place == "array" or text_of(indices[0]) == "0"
        if not (constant and fixed):
            self.scalar()
        return Kind(base.dtype, base.constant and constant, "pointer")

    def accessed(self, node: Node) -> Kind:
        """What a pointer points to, accessed in place: ``*(T*)&x[i]`` and ``*(T*)(x + i)`` are ``x[i]``."""
        node = stripped(node)
        if node.type == "binary_expression" and text_of(field(node, "operator")) == "+":
            self.expression(field(node, "right"))
            return self.expression(field(node, "left"))
        if node.type == "cast_expression":
            inner = self.accessed(field(node, "value"))
            return Kind(self.declared_kind(field(node, "type")).dtype or inner.dtype, place=inner.place)
        if node.type == "pointer_expression" and text_of(field(node, "operator")) == "&":
            argument = stripped(field(node, "argument"))
            return self.element(argument) if argument.type == "subscript_expression" else self.expression(argument)
        return self.expression(node)

    def cast_expression(self, node: Node) -> Kind:
        return self.cast(field(node, "type"), self.expression(field(node, "value")))

    def cast(self, target: Node, value: Kind) -> Kind:
        kind = self.declared_kind(target)
        if kind.place == "value" and kind.dtype and not value.constant and cast_computes(value.dtype, kind.dtype):
            self.scalar()
        return Kind(kind.dtype, value.constant, kind.place, value.limit)

    def call_expression(self, node: Node) -> Kind:
        function = field(node, "function")
        arguments = children(field(node, "arguments"))
        name, _, template = text_of(function).partition("<")
        kinds = [self.expression(argument) for argument in arguments]
        constant = all(kind.constant for kind in kinds)
        if name in _TYPES:
            if not constant and cast_computes(kinds[0].dtype, _TYPES[name]):
                self.scalar()
            return Kind(_TYPES[name], constant, limit=kinds[0].limit)
        if name == "static_cast":
            return self.cast(children(field(function, "arguments"))[0], kinds[0])
        if name == "asc_vf_call":
            self.function(self.functions[template.rstrip(">")], kinds[1:])
        elif name in self.functions:
            self.function(self.functions[name], kinds)
        elif name in _SCALAR:
            if not constant:
                self.scalar()
            limit = limit_of(name, kinds[0], kinds[1]) if name in ("min", "max") else None
            return Kind(next((kind.dtype for kind in kinds if kind.dtype), ""), constant, limit=limit)
        elif name in _COPIES:
            self.counts.add_copy(_copy_bytes(name, kinds), self.weight, self.unrolled)
        elif name.startswith(("tl::", "ascend_")):
            self.library(text_of(function))
            return Kind(kinds[0].dtype)
        elif name not in _NEUTRAL and not _SET_ATOMIC.match(name):
            self.count(family_of(name, _SYNCS, _ATOMICS, _FAMILIES), VECTOR_COSTS.get(name, 1))
        return Kind(kinds[0].dtype if name in _ATOMICS else "")

    def library(self, function: str) -> None:
        """A call of a library function."""
        self.counts.add_all(library_cost(function), self.weight, self.unrolled)


def _copy_bytes(function: str, arguments: Sequence[Kind]) -> int | None:
    """Bytes of a copy: bursts times their length, or rows times columns times the width of the elements read or written."""
    if function.startswith("asc_copy_gm2l1"):
        return product((element_bytes(arguments[1].dtype), arguments[4].limit, arguments[5].limit))
    if function.startswith("asc_copy_l0c2"):
        return product((element_bytes(arguments[0].dtype), arguments[2].limit, arguments[3].limit))
    if len(arguments) < 4:
        return None
    blocks = 32 if function in ("asc_copy_ub2ub", "asc_copy_ub2l1") else 1  # bytes a unit of the length has
    return product((arguments[2].limit, arguments[3].limit, blocks))


def _wider(first: str, second: str) -> str:
    """Type of an arithmetic operation; a constant without a type takes the other's."""
    if not first or not second:
        return first or second
    order = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64", "f16", "bf16", "f32")
    return max(first, second, key=order.index)
