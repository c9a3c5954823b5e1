"""The operations and nodes that TileLang's Ascend pipeline can hand to the code generator, measured on kernels and read from its sources.

A test holds this list against the rules, so that none of them is forgotten. Names are those of :mod:`registry`: an operation's, or
``extern:`` and a C name.
"""

from __future__ import annotations

from types import MappingProxyType

__all__ = ["EXPRESSIONS", "OPERATIONS", "STATEMENTS"]


def _prefixed(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(prefix + name for name in names.split())


OPERATIONS = MappingProxyType(
    {
        "synchronisation": (
            *_prefixed(
                "tl.ascend_", "set_flag wait_flag pipe_barrier cross_core_set_flag cross_core_wait_flag get_buf rls_buf threadfence"
            ),
            "tirx.tvm_storage_sync",
            "tl.simd.mem_bar",
        ),
        "memory": (
            *_prefixed("tl.ascend_", "copy_gm_to_ubuf copy_ubuf_to_gm set_copy_pad_value set_atomic set_atomic_none"),
            *_prefixed("tl.ascend_", "write_gm_bypass_dcache read_gm_bypass_dcache"),
            "tirx.tvm_access_ptr",
        ),
        "SIMD predicates": _prefixed(
            "tl.simd.", "pset pge update_mask pand por pxor pnot psel ppack punpack pintlv pdintlv pld pst vcmp vcmps vsel"
        ),
        "SIMD memory": _prefixed("tl.simd.", "vld vld2 vsts vsstb vgather2 vgatherb vscatter"),
        "SIMD arithmetic": _prefixed(
            "tl.simd.",
            "vadd vsub vmul vdiv vmax vmin vand vor vxor vshl vshr vadds vmuls vmaxs vmins vshls vshrs vmula vmadd vaxpy vabsdif vlrelu"
            " vprelu vexp vln vsqrt vabs vneg vrelu vnot vexpdif vaddc vsubc vaddcs vsubcs vmull",
        ),
        "SIMD reductions": _prefixed("tl.simd.", "vcadd vcmax vcmin vcgadd vcgmax vcgmin vcpadd chistv2 dhistv2"),
        "SIMD rearrangement": _prefixed("tl.simd.", "vdup vdupv vci vselr vintlv vdintlv pair_get vpack vunpack vsqz vusqz vcvt"),
        "SIMT": (
            "extern:tl::AscendAllReduce",
            *_prefixed("tl.", "warp_reduce_sum warp_reduce_max warp_reduce_min rng_init rng_rand rng_rand_float"),
            *(f"tl.atomic_{verb}_{form}" for verb in ("add", "max", "min") for form in ("elem_op", "ret_elem_op")),
            *_prefixed("tl.", "sync_warp ballot ballot_sync activemask"),
        ),
        "scalar": (
            *_prefixed("tirx.", "if_then_else shift_left shift_right bitwise_and bitwise_or bitwise_xor bitwise_not reinterpret"),
            *_prefixed("tirx.", "fabs exp log sqrt rsqrt tanh floor sigmoid isnan"),
            *_prefixed("tl.", "infinity clamp"),
            *_prefixed("extern:", "expf logf sqrtf rsqrtf tanhf fabsf floorf hexp hlog hsqrt hrsqrt htanh hfabs hfloor"),
        ),
        "asserts and prints": (
            *_prefixed("tl.", "device_assert device_assert_with_msg"),
            *_prefixed("extern:", "debug_print_var debug_print_buffer_value"),
        ),
        "cube": _prefixed(
            "tl.ascend_",
            "load_cbuf_to_ca load_cbuf_to_cb load_ca_sf load_cb_sf mad mad_mx gemm_l1 blockscaled_gemm_l1 set_hf32_mode set_mmad_direction"
            " copy_gm_to_cbuf fill_l1 copy_ubuf_to_cbuf nd2nz_scatter nd2nz_post_copy copy_matrix_cc_to_ub copy_matrix_cc_to_gm",
        ),
    }
)
"""By subject. Two operations have no rule of their own: ``tirx.address_of`` is an operand of the accesses past the data cache, and
``tl.loop_break`` is rewritten with its loop."""

STATEMENTS = ("AllocBuffer", "AttrStmt", "Bind", "BufferStore", "DeclBuffer", "Evaluate", "For", "IfThenElse", "SBlock", "SeqStmt", "While")
EXPRESSIONS = (
    "Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max", "LT", "LE", "GT", "GE", "EQ", "NE", "And", "Or", "Not",
    "Select", "Cast", "Call", "Var", "BufferLoad", "IntImm", "FloatImm", "Ramp", "Broadcast", "Shuffle",
)  # fmt: skip
