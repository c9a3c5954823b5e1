"""Storage: buffers, pointers, scalar loads and stores.

Every access is one-dimensional. Views of one memory alias: an address is always arena base plus index times element size, whatever the
view's name. A sum of index terms is split: terms that are the same for a whole loop (or vector function) move into the pointer,
the others stay as offset.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ..analysis.views import PlacedView
from ..caps import MEMORIES, memory_name
from ..emit import call, constant, path
from ..naming import free_name
from ..registry import expression, op, statement
from ..types import DTYPES, DType, Type, pointer_type, split_lanes
from ..values import Value
from ..visitor import MemorySpace, Storage, Visitor

# -- declarations --------------------------------------------------------------------------------------------------------


@statement(tirx.AllocBuffer)
def alloc_buffer(v: Visitor, node: Any) -> None:
    buffer = node.buffer
    scope, data, element = str(buffer.scope()), buffer.data, str(buffer.dtype)
    space = SCOPES.get(scope.removesuffix(".dyn"))
    if scope != "shared" and space is not None:
        views = v.arenas.get(str(data.name), ())
        arena = v.storage[data] = allocate(v, space, str(data.name), element, _byte_count(v, buffer), views)
        for one in views:
            view = one.view
            part = Storage(space, view.name, view.element, byte_offset=arena.byte_offset + view.begin, size=view.size)
            v.storage[one.data] = part
            describe_view(v, part, part.name, f"{view.extent} {view.element}, ")
        if not views:
            describe_view(v, arena, arena.name, f"{_one_dimension(buffer)} {buffer.dtype}, ")
    elif scope in ("shared.l0a.sf", "shared.l0b.sf"):
        v.storage[data] = Storage("scales", str(data.name), element)
    elif scope in ("local", "local.var") and v.region == "simt" and data not in v.running:
        v.storage[data] = _stack(v, node, element)
    elif scope in ("local", "local.var"):
        v.storage[data] = Storage("slot", str(data.name), element)
        _reset_slot(v, node, element)
    else:
        v.unsupported(
            f"memory scope {scope} has no rule",
            "use T.alloc_shared, T.alloc_l1, T.alloc_l0a, T.alloc_l0b, T.alloc_l0c, T.alloc_fragment, T.alloc_local or T.alloc_var",
        )


SCOPES: dict[str, MemorySpace] = {"shared": "ub", "shared.l1": "mat", "shared.l0a": "left", "shared.l0b": "right", "shared.l0c": "acc"}
"""Spaces of TileLang's memory scopes, all of which may end in ``.dyn``; ``shared`` without it is none of Ascend's."""


def allocate(v: Visitor, space: MemorySpace, name: str, element: str, size: int, views: Sequence[PlacedView] = ()) -> Storage:
    """Memory behind all that is allocated already; buffers that do not fit are refused, with what each takes.

    Args:
        name: of the buffer, which gets another one like it if a buffer of this memory has it.
        size: bytes.
        views: buffers that TileLang has put into this one.
    """
    memory, taken = MEMORIES[space], v.allocations.setdefault(space, [])
    names = {one.name for one in taken} | {one.view.name for one in views}
    name = free_name(name, lambda free: free in names or view_title(space, free) in v.views)
    storage = Storage(space, name, element, byte_offset=taken_bytes(v, space), size=size)
    taken.append(storage)
    required = storage.byte_offset + size
    if required > memory.size:
        parts = {one.name: one.size for one in taken}
        inner = {one.view.name: one.view.size for one in views}
        listed = _largest(parts) + (f"; in {name}: {_largest(inner)}" if len(inner) > 1 else "")
        kept = f", {memory.kept} more are kept {memory.keeper}" if memory.kept else ""
        largest = max(inner or parts, key=lambda one: (inner or parts)[one])
        v.unsupported(
            f"{required} bytes of {memory.name} are required and {memory.size} are available{kept} ({listed})",
            f"use smaller tiles or fewer buffer versions; {largest} takes most",
        )
    return storage


_MOST_NAMED = 8


def _largest(sizes: dict[str, int]) -> str:
    """Buffers with their sizes in bytes, the largest first."""
    ordered = sorted(sizes.items(), key=lambda item: -item[1])
    others = f" and {len(ordered) - _MOST_NAMED} smaller" if len(ordered) > _MOST_NAMED else ""
    return ", ".join(f"{name} {size}" for name, size in ordered[:_MOST_NAMED]) + others


def taken_bytes(v: Visitor, space: str) -> int:
    """Where the next buffer of a memory can start."""
    alignment = MEMORIES[space].alignment
    end = max((storage.byte_offset + storage.size for storage in v.allocations.get(space, ())), default=0)
    return -(-end // alignment) * alignment


def _byte_count(v: Visitor, buffer: Any) -> int:
    count = 1
    for extent in buffer.shape:
        count *= v.integer(extent, f"the extent of {buffer.name}")
    name, lanes = split_lanes(str(buffer.dtype))
    dtype = DTYPES.get(name)
    if dtype is None:
        v.unsupported(f"buffer {buffer.name} of dtype {buffer.dtype}")
    return count * lanes * dtype.bytes


def _stack(v: Visitor, node: Any, element: str) -> Storage:
    """A private array of SIMT threads, or a mutable variable, which starts at its initial value or zero."""
    buffer = node.buffer
    dtype = v.element(split_lanes(element)[0])
    storage = private_array(v, str(buffer.data.name), dtype, _byte_count(v, buffer) // dtype.bytes)
    if str(buffer.scope()) == "local.var":
        pointer = storage.pointer
        assert pointer is not None
        type = Type("scalar", pointer.dtype)
        initial = (node.annotations or {}).get("tl.local_var_init")
        value = v.arith.cast(v.expr(initial), type) if initial is not None else v.arith.number(0, type)
        _store(v, "store", value, pointer, v.index(0), storage)
    return storage


def signless(dtype: DType) -> DType:
    """The type that carries elements on a thread's stack and in short vectors: floats, and integers without a sign."""
    return dtype if dtype.is_float else DTYPES[f"int{max(8, dtype.bits)}"]


def private_array(v: Visitor, hint: str, dtype: DType, count: int) -> Storage:
    """Memory of its own for every thread of the current SIMT vector function."""
    element = signless(dtype)
    pointer = v.b.pure(
        object(),  # each allocation is one of its own
        lambda _: call("pto.alloc_buffer", ast.Tuple([constant(count)], ast.Load()), path(f"pto.{element.pto}")),
        (),
        pointer_type(element, "stack"),
        hint=hint,
        within=v.vector_function,  # once per thread, not once per round of a loop
    )
    pointer.keep_name = True
    return Storage("stack", hint, dtype.tir, pointer)


def _reset_slot(v: Visitor, node: Any, element: str) -> None:
    """A mutable scalar starts at its initial value or zero, each time its allocation is reached; registers start undefined."""
    slot = (node.buffer.data, 0)
    for known in [s for s in v.slots if s[0].same_as(node.buffer.data)]:
        del v.slots[known]
    initial = (node.annotations or {}).get("tl.local_var_init")
    if split_lanes(element)[1] > 1 or element == "handle":
        if element != "handle":  # a pointer; it has no value until one is stored
            v.register_type(element)
        if initial is not None:
            v.slots[slot] = v.expr(initial)
        return
    if str(node.buffer.scope()) != "local.var":
        v.unsupported(f"scalar array {node.buffer.name} outside a SIMT vector function", "allocate it inside T.SimtVF, or use T.alloc_var")
    type = v.scalar_type(element)
    v.slots[slot] = v.arith.cast(v.expr(initial), type) if initial is not None else v.arith.number(0, type)


@statement(tirx.DeclBuffer)
def decl_buffer(v: Visitor, node: Any) -> None:
    """A typed view of memory that exists already: no code, but a comment where it has a name of its own."""
    _plain_view(v, node.buffer)
    if str(node.buffer.scope()).startswith("shared") and node.buffer.data not in v.storage:
        return  # another shape of a buffer (T.reshape) stands in front of the allocation
    storage = storage_of(v, node.buffer.data)
    name = str(node.buffer.name)
    if storage.kind not in MEMORIES or view_title(storage.kind, name) in v.views:
        return
    what = f"{_one_dimension(node.buffer)} {node.buffer.dtype}, "
    if _byte_count(v, node.buffer) == storage.size:
        describe_view(v, storage, name, what)
    else:  # a part, of which only the indices tell the place
        _comment_on_view(v, storage, name, f"{what}in {storage.name}")


def describe_view(v: Visitor, storage: Storage, name: str, what: str = "") -> None:
    """A comment with the place of a buffer in its memory; the simulator reads it (docs/program-form.md)."""
    _comment_on_view(v, storage, name, f"{what}bytes {storage.byte_offset} to {storage.byte_offset + storage.size - 1}")


def _comment_on_view(v: Visitor, storage: Storage, name: str, what: str) -> None:
    title = view_title(storage.kind, name)
    v.views.add(title)
    v.b.comment(f"{title}: {what}")


def view_title(space: str, name: str) -> str:
    """``UB view row``."""
    return f"{MEMORIES[space].name} view {name}"


def _plain_view(v: Visitor, buffer: Any) -> None:
    """Views start at their storage and are compact; TileLang folds positions into indices."""
    offset = buffer.elem_offset
    if offset is not None and not (isinstance(offset, tirx.IntImm) and int(offset) == 0):
        v.unsupported(f"view {buffer.name} with the element offset {offset}", "add the offset to the indices")
    strides = list(buffer.strides or ())
    if strides and not (len(strides) == 1 and isinstance(strides[0], tirx.IntImm) and int(strides[0]) == 1):
        v.unsupported(
            f"view {buffer.name} with strides {', '.join(str(stride) for stride in strides)}", "multiply the indices by the stride"
        )


def _one_dimension(buffer: Any) -> str:
    return " x ".join(str(int(extent) if isinstance(extent, tirx.IntImm) else extent) for extent in buffer.shape)


def storage_of(v: Visitor, data: Any) -> Storage:
    """Storage behind a data variable."""
    if not isinstance(data, tirx.Var):
        v.unsupported("an access through a computed pointer", "give the tensor of T.make_tensor a name")
    storage = v.storage.get(data)
    if storage is None:
        v.unsupported(f"buffer variable {data.name} has no storage")
    return storage


# -- addresses -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Address:
    """A pointer and an element offset from it."""

    pointer: Value
    offset: Value


def address(v: Visitor, data: Any, dtype: DType, index: Any, element: DType | None = None) -> Address:
    """Address of element ``index`` of a view.

    Args:
        data: data variable of the buffer.
        dtype: element type the result points to.
        index: TIR expression in elements of ``element``.
        element: type the index counts; ``dtype`` if not given.
    """
    element = element or dtype
    storage = storage_of(v, data)
    if storage.kind == "slot":
        v.unsupported(f"{storage.name} lives in registers and has no address", "keep it in a UB buffer if an address is needed")
    if storage.kind == "scales":
        v.unsupported(f"{storage.name} holds the scale factors of an L0 tile and has no address", "name the tile instead")
    if storage.kind == "stack":
        return _private_address(v, storage, dtype, index)
    if element.bytes != dtype.bytes:
        whole = at(v, pointer_to(v, storage, element), v.expr(index))
        return Address(cast_pointer(v, whole, dtype), v.index(0))
    base = pointer_to(v, storage, dtype)
    fixed, moving = _split_terms(v, index)
    if moving.literal == 0 and storage.kind == "gm":
        return Address(base, v.index(int(fixed.literal)) if isinstance(fixed.literal, int) else fixed)  # the access adds by itself
    return Address(at(v, base, fixed), moving if v.region == "scalar" else v.arith.as_index(moving))


def _private_address(v: Visitor, storage: Storage, dtype: DType, index: Any) -> Address:
    """PTODSL moves and casts no pointers into private arrays: the whole index is the offset."""
    pointer = storage.pointer
    assert pointer is not None
    if pointer.dtype != dtype:
        v.unsupported(f"private array {storage.name} of {storage.element} accessed as {dtype.tir}", "use T.reinterpret on the value")
    return Address(pointer, v.expr(index))


def pointer_to(v: Visitor, storage: Storage, dtype: DType) -> Value:
    """Base pointer of a storage, as pointer to ``dtype``."""
    if storage.kind in MEMORIES:
        return memory_pointer(v, storage, dtype)
    pointer = storage.pointer
    assert pointer is not None
    return cast_pointer(v, pointer, dtype)


def memory_pointer(v: Visitor, storage: Storage, dtype: DType) -> Value:
    """Pointer to the beginning of a buffer in a memory of the core."""
    type = pointer_type(dtype, storage.kind)

    def build(_: Sequence[ast.expr]) -> ast.expr:
        position = call("pto.const", constant(storage.byte_offset), dtype=path("pto.i64"))
        return call("pto.castptr", position, pointer_type_expression(type))

    stem = storage.name if storage.name.isidentifier() else MEMORIES[storage.kind].name.lower()
    hint = stem if dtype.tir == storage.element else f"{stem}_{dtype.pto}"
    base = v.b.pure((storage.kind, storage.byte_offset, storage.name), build, (), type, hint=hint, everywhere=True)
    base.keep_name, base.note = True, view_title(storage.kind, storage.name)
    return base


def cast_pointer(v: Visitor, pointer: Value, dtype: DType) -> Value:
    """The same address as pointer to ``dtype``."""
    if pointer.dtype == dtype:
        return pointer
    type = pointer_type(dtype, pointer.type.space)
    return v.b.pure(
        "castptr", lambda e: call("pto.castptr", e[0], pointer_type_expression(type)), (pointer,), type, hint=f"as_{dtype.pto}", weight=30
    )


def pointer_type_expression(type: Type) -> ast.expr:
    """``pto.ptr(element, space)``."""
    return call("pto.ptr", path(f"pto.{type.dtype.pto}"), constant(type.space))


def at(v: Visitor, pointer: Value, offset: Value) -> Value:
    """``pointer + offset`` in elements."""
    if offset.literal == 0:
        return pointer
    stem = pointer.name or pointer.hint or "ptr"
    if isinstance(pointer.key, tuple) and pointer.key[0] == "ub":  # a constant address: what is constant in the offset belongs to it
        offset, constant = v.arith.split_constant(offset)
        if constant:
            pointer = _moved(v, pointer, v.index(constant), f"{stem}_{constant}", everywhere=True)
            pointer.keep_name = True
        if offset.literal == 0:
            return pointer
    return _moved(v, pointer, offset, f"{stem}_at")


def _moved(v: Visitor, pointer: Value, offset: Value, hint: str, everywhere: bool = False) -> Value:
    return v.b.pure(
        "addptr", lambda e: call("pto.addptr", *e), (pointer, offset), pointer.type, hint=hint, everywhere=everywhere, weight=12
    )


def _split_terms(v: Visitor, index: Any) -> tuple[Value, Value]:
    """Split a sum into the part that is fixed in the innermost loop or vector function and the part that moves."""
    frame = v.b.block
    while frame.kind not in ("loop", "vector_function") and frame.parent is not None:
        frame = frame.parent
    type = v.scalar_type(index.dtype)
    zero = v.arith.number(0, type)
    if frame.parent is None or v.region == "scalar" or type.dtype.category == "uint":  # unsigned sums may wrap: no reordering
        return zero, v.expr(index)
    fixed, moving = zero, zero
    constants = 0
    for term in _terms(index):
        value = v.expr(term)
        if value.literal is not None:
            constants += int(value.literal)
        elif value.block is not None and value.block.depth >= frame.depth:
            moving = v.arith.add(moving, value)
        else:
            fixed = v.arith.add(fixed, value)
    return v.arith.add(fixed, v.arith.number(constants, type)), moving if moving.literal is None else v.index(0)


def _terms(index: Any) -> list[Any]:
    if isinstance(index, tirx.Add):
        return _terms(index.a) + _terms(index.b)
    return [index]


@dataclass(frozen=True, slots=True)
class AccessPointer:
    """The parts of a ``tvm_access_ptr``."""

    data: Any
    dtype: str
    index: Any


def access_pointer(v: Visitor, node: Any, what: str) -> AccessPointer:
    """Take a pointer operand apart."""
    if not (isinstance(node, tirx.Call) and str(node.op.name) == "tirx.tvm_access_ptr"):
        v.unsupported(f"{what} must be an access pointer")
    dtype = str(node.args[0].dtype)
    return AccessPointer(node.args[1], "int8" if dtype == "bool" else dtype, node.args[2])  # booleans are bytes in memory


def require_space(v: Visitor, node: Any, space: str, what: str) -> None:
    """Refuse a pointer operand into other memory than ``space``."""
    storage = storage_of(v, access_pointer(v, node, what).data)
    if storage.kind != space:
        v.unsupported(f"{what}, {storage.name}, lies in {memory_name(storage.kind)}, not in {memory_name(space)}")


def full_pointer(v: Visitor, node: Any, what: str, dtype: DType | None = None) -> Value:
    """The address of an access pointer as one pointer value."""
    access = access_pointer(v, node, what)
    element = v.element(access.dtype)
    found = address(v, access.data, dtype or element, access.index, element)
    return at(v, found.pointer, found.offset)


@op("tirx.tvm_access_ptr", arity=5, emits=("addptr", "castptr"))
def tvm_access_ptr(v: Visitor, node: Any, *_: Any) -> Value:
    return full_pointer(v, node, "operand")


# -- scalar access -------------------------------------------------------------------------------------------------------


@expression(tirx.BufferLoad)
def buffer_load(v: Visitor, node: Any) -> Value:
    from . import simt_vectors

    if simt_vectors.is_short(v, node):
        return simt_vectors.evaluate(v, node)
    index = _only_index(v, node)
    storage = storage_of(v, node.buffer.data)
    _plain_view(v, node.buffer)
    if storage.kind == "slot":
        _same_dtype(v, storage, node.buffer)
        return v.read_slot(v.slot(node.buffer.data, index))
    type, memory = _element(v, storage, node.buffer.dtype)
    return v.arith.cast(_load(v, node, storage, index, memory), type)


def _load(v: Visitor, node: Any, storage: Storage, index: Any, memory: Type) -> Value:
    """One element as it lies in memory."""
    generic = _generic(v, storage, "load")
    where = address(v, node.buffer.data, memory.dtype, index)
    spelled = v.surface.entry(generic, v.arith.unit).name
    hint = f"{node.buffer.name.lstrip('_')}_value"
    return v.b.pure(
        spelled, lambda e: call(spelled, *e), (where.pointer, where.offset), memory, hint=hint, memory=memory_of(v, storage), weight=14
    )


@statement(tirx.BufferStore)
def buffer_store(v: Visitor, node: Any) -> None:
    from . import simt_vectors

    storage = storage_of(v, node.buffer.data)
    _plain_view(v, node.buffer)
    if simt_vectors.is_short(v, node.value):
        simt_vectors.store(v, node)
        return
    index = _only_index(v, node)
    if storage.kind != "slot" and v.element(split_lanes(str(node.buffer.dtype))[0]).category == "storage":
        _move_bits(v, node, storage, index)
        return
    value = v.expr(node.value)
    if storage.kind == "slot":
        _same_dtype(v, storage, node.buffer)
        if v.region == "simt" and node.buffer.data not in v.running:
            v.unsupported(f"{storage.name} is written by SIMT threads but allocated outside", "allocate it inside T.SimtVF")
        slot = v.slot(node.buffer.data, index)
        known = v.slots.get(slot)
        if known is not None and known.type.kind == value.type.kind == "pointer":
            value = cast_pointer(v, value, known.dtype)  # a loop carries a pointer of one type
        v.slots[slot] = value
        return
    store_element(v, node.buffer, index, value)


def store_element(v: Visitor, buffer: Any, index: Any, value: Value) -> None:
    """Store one element; ``index`` is a TIR expression."""
    storage = storage_of(v, buffer.data)
    _, memory = _element(v, storage, buffer.dtype)
    where = address(v, buffer.data, memory.dtype, index)
    _store(v, _generic(v, storage, "store"), v.arith.cast(value, memory), where.pointer, where.offset, memory_of(v, storage))


def _move_bits(v: Visitor, node: Any, storage: Storage, index: Any) -> None:
    """An element of a type without scalar values can only be moved; its bits travel as an integer."""
    source = node.value
    memory = Type("scalar", signless(v.element(node.buffer.dtype)))
    if not (isinstance(source, tirx.BufferLoad) and source.buffer.dtype == node.buffer.dtype):
        v.unsupported(f"a computed value of dtype {node.buffer.dtype}", "convert to it in T.SimdVF")
    where = storage_of(v, source.buffer.data)
    if where.kind == "slot":
        v.unsupported(f"{where.name} of dtype {source.buffer.dtype} outside a SIMT vector function")
    value = _load(v, source, where, _only_index(v, source), memory)
    target = address(v, node.buffer.data, memory.dtype, index)
    _store(v, _generic(v, storage, "store"), value, target.pointer, target.offset, memory_of(v, storage))


UB = "ub"
"""UB as memory of loads and stores: its views alias."""


def memory_of(v: Visitor, storage: Storage) -> object:
    """What a load or store of ``storage`` touches: kernel arguments do not alias unless TileLang says so."""
    if storage.kind == "ub":
        return UB
    return "gm" if storage.kind == "gm" and v.arguments_alias else storage


def load_from_ub(v: Visitor, pointer: Value, offset: Value) -> Value:
    """One element of UB, read by a SIMT thread."""
    spelled = v.surface.spelling("load", v.arith.unit)
    type = Type("scalar", pointer.dtype)
    return v.b.pure(spelled, lambda e: call(spelled, *e), (pointer, offset), type, hint="read", memory=UB, weight=14)


def store_to_ub(v: Visitor, value: Value, pointer: Value, offset: Value) -> None:
    """One element of UB, written by a SIMT thread."""
    _store(v, "store", value, pointer, offset, UB)


def _store(v: Visitor, generic: str, value: Value, pointer: Value, offset: Value, memory: object) -> None:
    spelled = v.surface.entry(generic, v.arith.unit)
    order = spelled.order or (0, 1, 2)
    v.b.effect(lambda e: call(spelled.name, *(e[i] for i in order)), [v.arith.typed(value), pointer, offset], writes=memory)


def _same_dtype(v: Visitor, storage: Storage, view: Any) -> None:
    """A value in a register has one type; a view of another dtype would have to reinterpret it."""
    if str(view.dtype) != storage.element:
        v.unsupported(f"{storage.name} holds {storage.element} but is accessed as {view.dtype}", "use T.reinterpret on the value")


def _generic(v: Visitor, storage: Storage, verb: str) -> str:
    """Vector functions and the kernel body reach memory by different calls."""
    if v.region == "simd" and storage.kind != "ub":
        v.unsupported(f"a scalar {verb} of {storage.name} inside a SIMD vector function", "move it in front of the T.SimdVF block")
    if storage.kind in MEMORIES and storage.kind != "ub":
        v.unsupported(
            f"a scalar {verb} of {storage.name}, which lies in {MEMORIES[storage.kind].name}", "the scalar unit reaches GM and UB"
        )
    return f"{verb}_scalar" if v.region == "scalar" else verb


def _element(v: Visitor, storage: Storage, tir_dtype: Any) -> tuple[Type, Type]:
    """Type of an element as a value, and as it lies in memory: booleans are bytes, stacks know no unsigned integers."""
    type = v.scalar_type(tir_dtype)
    carried = type.dtype.category == "bool" or (storage.kind == "stack" and type.dtype.is_integer)
    return type, Type("scalar", signless(type.dtype)) if carried else type


def _only_index(v: Visitor, node: Any) -> Any:
    if len(node.indices) != 1:
        v.unsupported(f"access to {node.buffer.name} with {len(node.indices)} indices", "flatten the buffer")
    if getattr(node, "predicate", None) is not None:
        v.unsupported(f"predicated access to {node.buffer.name}")
    if split_lanes(str(node.indices[0].dtype))[1] != 1:
        v.unsupported(f"vector access to {node.buffer.name}", "inside T.SimdVF use the T.simd.* operations")
    return node.indices[0]
