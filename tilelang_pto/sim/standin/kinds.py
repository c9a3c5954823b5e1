"""Type constructors and enumerations of the API."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.registry import EVERYWHERE, entry
from tilelang_pto.sim.standin.types import ALIGN, MASKS, DType, MaskType, PtrType, StructType, VecType, VRegType
from tilelang_pto.sim.standin.values import describe

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

SPACES = {
    "gm": "gm",
    "ub": "ub",
    "vec": "ub",
    "mat": "mat",
    "left": "left",
    "right": "right",
    "acc": "acc",
    "bias": "bias",
    "scaling": "scaling",
}


def element(rec: Recorder, name: str, value: Any) -> DType:
    """``value`` as an element type."""
    if not isinstance(value, DType):
        rec.refuse(f"{name} is {describe(value)}", "an element type such as pto.f32")
    return value


def vreg(rec: Recorder, dtype: DType) -> VRegType:
    """The register type of an element type."""
    if dtype.bits < 8 or dtype.family == "index":
        rec.refuse(f"there are no vector registers of {dtype.name}", "an element type of 8 to 64 bits")
    return VRegType(2048 // dtype.bits, dtype)


@entry("ptr", opcodes=(), places=EVERYWHERE)
def ptr(rec: Recorder, elem: Any, space: Any = "ub") -> PtrType:
    """``pto.ptr(dtype, space)``."""
    dtype = element(rec, "the element type of a pointer", elem)
    word = SPACES.get(space.lower()) if isinstance(space, str) else None
    if word is None:
        rec.refuse(f"memory space {space!r} is not legal", "one of " + ", ".join(SPACES))
    if dtype.bits == 1:
        rec.refuse("a pointer to i1", "bytes: pto.i8 or pto.ui8")
    return PtrType(dtype, word)


@entry("gm_ptr", opcodes=(), places=EVERYWHERE)
def gm_ptr(rec: Recorder, elem: Any) -> PtrType:
    """``pto.gm_ptr(dtype)``."""
    return ptr(rec, elem, "gm")


@entry("vreg_type", opcodes=(), places=EVERYWHERE)
def vreg_type(rec: Recorder, lanes: Any, elem: Any) -> VRegType:
    """``pto.vreg_type(lanes, dtype)``."""
    kind = vreg(rec, element(rec, "the element type of a vector register", elem))
    if isinstance(lanes, bool) or lanes != kind.lanes:
        rec.refuse(
            f"a vector register of {lanes} x {kind.element.name} is not 2048 bits", f"{kind.lanes} lanes, or pto.elements_per_vreg(dtype)"
        )
    return kind


@entry("mask_type", opcodes=(), places=EVERYWHERE)
def mask_type(rec: Recorder, bits: Any = "b32") -> MaskType:
    """``pto.mask_type("b16")``."""
    word = scalar.token(rec, "bits", bits, ("b8", "b16", "b32"))
    return MASKS[int(word[1:])]


@entry("vec_type", opcodes=(), places=EVERYWHERE)
def vec_type(rec: Recorder, elem: Any, size: Any) -> VecType:
    """``pto.vec_type(dtype, n)``."""
    return VecType(element(rec, "the element type of a vector", elem), scalar.static_int(rec, "size", size, 1, 64))


@entry("struct_type", opcodes=(), places=EVERYWHERE)
def struct_type(rec: Recorder, *field_types: Any) -> StructType:
    """``pto.struct_type(pto.i32, pto.f32, ...)``; nested structs are not simulated."""
    if not field_types:
        rec.refuse("a struct without fields", "pto.struct_type(pto.i32, ...)")
    for kind in field_types:
        if not isinstance(kind, DType) or kind.family not in ("float", "int") or kind.bits == 1 or kind.unsigned:
            rec.refuse(f"a struct field of {describe(kind)}", "i8, i16, i32, i64, f16, bf16 or f32")
    return StructType(tuple(field_types))


@entry("bytewidth", opcodes=(), places=EVERYWHERE)
def bytewidth(rec: Recorder, dtype: Any) -> int:
    """Bytes of one element."""
    return element(rec, "dtype", dtype).bytes


@entry("elements_per_vreg", opcodes=(), places=EVERYWHERE)
def elements_per_vreg(rec: Recorder, dtype: Any) -> int:
    """Lanes of a vector register."""
    return vreg(rec, element(rec, "dtype", dtype)).lanes


def _same(*words: str) -> SimpleNamespace:
    return SimpleNamespace(**{word: word for word in words})


_PATTERNS = SimpleNamespace(**{word: f"PAT_{word}" for word in ("ALL", "ALLF", "H", "Q", "M3", "M4", *(f"VL{n}" for n in range(1, 129)))})
_PRECISION = SimpleNamespace(Default=0, HighPrecision=1)

#: Enumerations and constant types by name.
CONSTANTS: dict[str, Any] = {
    "AccStoreUnitFlagCtrl": SimpleNamespace(CHECK_ONLY="check_only", CHECK_AND_CLEAR="check_and_clear"),
    "AlignType": ALIGN,
    "BarrierType": _same(
        "VV_ALL",
        "VST_VLD",
        "VLD_VST",
        "VST_VST",
        "VS_ALL",
        "VST_LD",
        "VLD_ST",
        "VST_ST",
        "SV_ALL",
        "ST_VLD",
        "LD_VST",
        "ST_VST",
        "SS_ALL",
        "ST_LD",
        "LD_ST",
        "ST_ST",
    ),
    "CmpMode": SimpleNamespace(EQ="eq", NE="ne", LT="lt", LE="le", GT="gt", GE="ge"),
    "DeinterleaveDist": _same("DINTLV_B8", "DINTLV_B16", "DINTLV_B32", "BDINTLV"),
    "DivPrecision": _PRECISION,
    "FractalMode": SimpleNamespace(ND2NZ="nd2nz", DN2NZ="dn2nz", NZ2ND="nz2nd", NZ2DN="nz2dn", NZ2NZ="nz2nz"),
    "InterleaveDist": _same("INTLV_B8", "INTLV_B16", "INTLV_B32"),
    "MadUnitFlagMode": SimpleNamespace(CHECK_ONLY="check_only", CHECK_AND_SET="check_and_set"),
    "MaskPattern": _PATTERNS,
    "MemorySpace": SimpleNamespace(
        GM="gm", UB="ub", VEC="ub", MAT="mat", LEFT="left", RIGHT="right", ACC="acc", BIAS="bias", SCALING="scaling"
    ),
    "PAT": _PATTERNS,
    "PartMode": _same("EVEN", "ODD"),
    "Pipe": SimpleNamespace(
        **{name: f"PIPE_{name}" for name in ("S", "V", "M", "MTE1", "MTE2", "MTE3", "MTE4", "MTE5", "V2", "FIX", "ALL")}
    ),
    "PositionMode": _same("LOWEST", "HIGHEST"),
    "PostUpdate": SimpleNamespace(OFF="NO_POST_UPDATE", ON="POST_UPDATE"),
    "PredicateDist": _same("NORM", "US", "DS", "PK"),
    "PredicatePart": _same("LOWER", "HIGHER"),
    "SatMode": SimpleNamespace(ON="on", OFF="off", PRESERVE_NAN="preserve_nan"),
    "SplitMode": _same("M", "N"),
    "Tf32Mode": SimpleNamespace(ROUND_EVEN="round_even", ROUND_AWAY="round_away"),
    "VPackPart": _same("LOWER", "HIGHER"),
    "VStoreDist": SimpleNamespace(
        **{
            ("_" if word[0] == "1" else "") + word: word
            for word in (
                "NORM_B8",
                "NORM_B16",
                "NORM_B32",
                "1PT_B8",
                "1PT_B16",
                "1PT_B32",
                "PK_B16",
                "PK_B32",
                "PK_B64",
                "PK4_B32",
                "MRG4CHN_B8",
                "MRG2CHN_B8",
                "MRG2CHN_B16",
            )
        }
    ),
    "VcvtPartMode": _same("EVEN", "ODD", "P0", "P1", "P2", "P3"),
    "VcvtRoundMode": _same("R", "A", "F", "C", "Z", "O", "H"),
    "VcvtSatMode": SimpleNamespace(SAT="SAT", NOSAT="NOSAT", RS_ENABLE="SAT", RS_DISABLE="NOSAT"),
    "mask_b16": MASKS[16],
    "mask_b32": MASKS[32],
    "mask_b8": MASKS[8],
}

#: Names that the API has and the simulator has not, with what to use in their place.
NOT_SIMULATED: dict[str, str] = {
    **dict.fromkeys(
        (
            "BLayout",
            "SLayout",
            "ExpPrecision",
            "LogPrecision",
            "Precision",
            "RecipPrecision",
            "RemPrecision",
            "RoundMode",
            "RsqrtPrecision",
            "SqrtPrecision",
            "BranchHandle",
            "KernelHandle",
            "LoopHandle",
            "tfmod",
            "tfmods",
            "tgemv",
            "tgemv_acc",
            "tgemv_bias",
            "tprelu",
            "trandom",
            "trem",
            "trems",
        ),
        "pointers, vector registers and plain tokens",
    ),
    **dict.fromkeys(
        (
            "bf16x2",
            "f16x2",
            "f32x2",
            "f8e4m3x2",
            "f8e4m3x4",
            "f8e4m3x8",
            "f8e5m2x2",
            "f8e5m2x4",
            "f8e5m2x8",
            "hif8x2",
            "i16x2",
            "i32x2",
            "i8x2",
        ),
        "pto.Vec(dtype, n) and contiguous=n",
    ),
    **dict.fromkeys(
        ("get_ctrl", "set_ctrl", "set_loop_size_outtoub", "set_loop_size_ubtoout", "set_mov_pad_val", "sprclr", "sprsts"),
        "the operands of each call (sat=, pad=, loops=)",
    ),
    **dict.fromkeys(("index_cast",), "pto.cast"),
    **dict.fromkeys(("vtranspose",), "vintlv and vdintlv, or vselr"),
    **dict.fromkeys(
        (
            "tile",
            "vmi",
            "pipe",
            "tileop",
            "alloc_tile",
            "make_tensor_view",
            "partition_view",
            "empty_like",
            "Tile",
            "TensorView",
            "PartitionTensorView",
            "tprint",
            "tgather",
            "tscatter",
            "tsort32",
            "tmrgsort",
            "get_op_attr",
        ),
        "write the kernel with pointers and vector registers",
    ),
    **dict.fromkeys(("yield_", "range"), "pto.for_ and pto.if_"),
    **dict.fromkeys(
        ("func", "simt_launch", "store_vfsimt_info", "merge_jit_modules", "reserve_buffer", "import_reserved_buffer", "keep", "resume"),
        "one kernel with the inline form `with pto.simt(x, y, z):`",
    ),
    **dict.fromkeys(("cube", "simd"), "pto.section(...) or pto.vecscope()"),
    **dict.fromkeys(
        ("simt_allreduce_sum", "simt_allreduce_max", "simt_allreduce_min"),
        "a reduction written with pto.redux_add/max/min, UB scratch and pto.syncthreads()",
    ),
}
