"""Values that a traced kernel handles. None of them has a Python value while the text runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from tilelang_pto.sim.standin.types import AlignType, DType, MaskType, PtrType, StructType, SurfaceType, VecType, VRegType

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder, Scope

__all__ = ["AlignState", "Mask", "Pointer", "Struct", "SurfaceScalar", "Value", "VecValue", "VectorRegister", "describe", "wrap"]


class Value:
    """One defined value of the kernel that is being traced."""

    __slots__ = ("id", "recorder", "scope")

    label = "value"

    def __init__(self, recorder: Recorder, number: int, scope: Scope) -> None:
        self.recorder = recorder
        self.id = number
        self.scope = scope

    @property
    def surface_type(self) -> SurfaceType:
        raise NotImplementedError

    def _no(self, what: str, advice: str) -> NoReturn:
        if self.recorder.rewrites:
            advice += " (the simulator traces the text; it does not rewrite Python control flow: emit with ast_rewrite=False)"
        self.recorder.refuse(f"{what} of a runtime {self.label}", advice)

    def __bool__(self) -> bool:
        self._no("Python truth value (if, while, and, or, not, chained comparison)", "pto.if_(...), or & and | on i1 values")

    def __int__(self) -> int:
        self._no("int()", "keep it as a runtime value")

    def __float__(self) -> float:
        self._no("float()", "keep it as a runtime value")

    def __index__(self) -> int:
        self._no("use as a Python index, or range()", "pto.for_(lo, hi, step=s) for loops, memory for indexed data")

    def __iter__(self) -> Any:
        self._no("iteration over", "pto.for_(lo, hi, step=s)")

    def __len__(self) -> int:
        self._no("len()", "use the known lane count")

    def __hash__(self) -> int:
        self._no("hashing (dictionary key, set element)", "use a Python value as the key")


class SurfaceScalar(Value):
    """A runtime integer, index or float."""

    __slots__ = ("dtype", "known")

    label = "scalar"

    def __init__(self, recorder: Recorder, number: int, scope: Scope, dtype: DType, known: int | float | None = None) -> None:
        super().__init__(recorder, number, scope)
        self.dtype = dtype
        self.known = known  # the Python number of a constant

    @property
    def surface_type(self) -> DType:
        return self.dtype

    def __add__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "rem", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "rem", other, self)

    def __and__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "and", self, other)

    def __rand__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "and", other, self)

    def __or__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "or", self, other)

    def __ror__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "or", other, self)

    def __xor__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return _scalar.binary(self.recorder, "xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return _scalar.operator_shift(self.recorder, "shl", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _scalar.operator_shift(self.recorder, "shl", other, self)

    def __rshift__(self, other: Any) -> Any:
        return _scalar.operator_shift(self.recorder, "shr", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _scalar.operator_shift(self.recorder, "shr", other, self)

    def __neg__(self) -> Any:
        return _scalar.operator_neg(self.recorder, self)

    def __invert__(self) -> Any:
        self.recorder.refuse("PTODSL scalars have no operator ~", "x ^ -1")

    def __lt__(self, other: Any) -> Any:
        return _scalar.compare(self.recorder, "lt", self, other)

    def __le__(self, other: Any) -> Any:
        return _scalar.compare(self.recorder, "le", self, other)

    def __gt__(self, other: Any) -> Any:
        return _scalar.compare(self.recorder, "gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return _scalar.compare(self.recorder, "ge", self, other)

    def __eq__(self, other: object) -> Any:
        return _scalar.compare(self.recorder, "eq", self, other)

    def __ne__(self, other: object) -> Any:
        return _scalar.compare(self.recorder, "ne", self, other)

    __hash__ = Value.__hash__


class Pointer(Value):
    """An address into GM, UB or a stack buffer."""

    __slots__ = ("persistent", "type")

    label = "pointer"

    def __init__(self, recorder: Recorder, number: int, scope: Scope, kind: PtrType) -> None:
        super().__init__(recorder, number, scope)
        self.type = kind
        self.persistent = False

    @property
    def surface_type(self) -> PtrType:
        return self.type

    def __add__(self, other: Any) -> Any:
        self.recorder.refuse("the simulator has no pointer + offset", "pto.addptr(pointer, elements), or the offset argument of the access")

    __radd__ = __add__


class VectorRegister(Value):
    """A 256-byte vector register."""

    __slots__ = ("type",)

    label = "vector register"

    def __init__(self, recorder: Recorder, number: int, scope: Scope, kind: VRegType) -> None:
        super().__init__(recorder, number, scope)
        self.type = kind

    @property
    def surface_type(self) -> VRegType:
        return self.type


class Mask(Value):
    """A predicate register."""

    __slots__ = ("type",)

    label = "mask"

    def __init__(self, recorder: Recorder, number: int, scope: Scope, kind: MaskType) -> None:
        super().__init__(recorder, number, scope)
        self.type = kind

    @property
    def surface_type(self) -> MaskType:
        return self.type


class VecValue(Value):
    """A short vector of one SIMT work-item."""

    __slots__ = ("type",)

    label = "short vector"

    def __init__(self, recorder: Recorder, number: int, scope: Scope, kind: VecType) -> None:
        super().__init__(recorder, number, scope)
        self.type = kind

    @property
    def surface_type(self) -> VecType:
        return self.type

    def __add__(self, other: Any) -> Any:
        return _scalar.vector_binary(self.recorder, "add", self, other)

    def __sub__(self, other: Any) -> Any:
        return _scalar.vector_binary(self.recorder, "sub", self, other)

    def __mul__(self, other: Any) -> Any:
        return _scalar.vector_binary(self.recorder, "mul", self, other)

    def __truediv__(self, other: Any) -> Any:
        return _scalar.vector_binary(self.recorder, "div", self, other)

    def __and__(self, other: Any) -> Any:
        return _scalar.vector_binary(self.recorder, "and", self, other)

    def __or__(self, other: Any) -> Any:
        return _scalar.vector_binary(self.recorder, "or", self, other)

    def __xor__(self, other: Any) -> Any:
        return _scalar.vector_binary(self.recorder, "xor", self, other)


class AlignState(Value):
    """The state of an unaligned load or store stream."""

    __slots__ = ()

    label = "unaligned-access state"

    @property
    def surface_type(self) -> AlignType:
        return AlignType()


class Struct:
    """A stack struct: one stack slot per field."""

    __slots__ = ("slots", "type")

    def __init__(self, kind: StructType, slots: tuple[Pointer, ...]) -> None:
        self.type = kind
        self.slots = slots


def wrap(recorder: Recorder, number: int, kind: SurfaceType, scope: Scope) -> Value:
    """The value object for value ``number`` of type ``kind``."""
    if isinstance(kind, DType):
        return SurfaceScalar(recorder, number, scope, kind)
    if isinstance(kind, VRegType):
        return VectorRegister(recorder, number, scope, kind)
    if isinstance(kind, MaskType):
        return Mask(recorder, number, scope, kind)
    if isinstance(kind, PtrType):
        return Pointer(recorder, number, scope, kind)
    if isinstance(kind, VecType):
        return VecValue(recorder, number, scope, kind)
    return AlignState(recorder, number, scope)


def describe(value: object) -> str:
    """A short description of an argument for messages."""
    if isinstance(value, SurfaceScalar):
        return f"a runtime {value.dtype.name}"
    if isinstance(value, (Pointer, VectorRegister, Mask, VecValue)):
        return f"a {value.type}"
    if isinstance(value, Value):
        return f"a {value.label}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 40 else text[:37] + '...'}"


from tilelang_pto.sim.standin import scalar as _scalar  # noqa: E402  (the two modules need each other)
