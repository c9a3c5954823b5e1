"""What the code generator is known to refuse, with the words of its error. Everything else of the corpus is emitted."""

from __future__ import annotations

from types import MappingProxyType

__all__ = ["REFUSED"]

_NO_BARRIER = "ptoas of August 2026 cannot lower cross-block flags"
_NO_ADDRESSES = "dtype handle has no PTODSL scalar type"
_ADDRESS_TABLES = ("mhc.multilayer_recompute.l3p3", "mhc.multilayer_recompute.l3p2", "quant.batched_transpose_weight_sf")

REFUSED = MappingProxyType(
    {
        # A barrier over all cores between two passes of one kernel.
        ("quant.norm_backward.bf16", "2026-08"): _NO_BARRIER,
        ("quant.norm_backward.bf16.residual", "2026-08"): _NO_BARRIER,
        ("quant.norm_backward.f32", "2026-08"): _NO_BARRIER,
        ("quant.norm_backward.f32.residual", "2026-08"): _NO_BARRIER,
        # Tensors whose addresses are elements of another tensor.
        **{(case, surface): _NO_ADDRESSES for case in _ADDRESS_TABLES for surface in ("2026-08", "2026-09")},
    }
)
