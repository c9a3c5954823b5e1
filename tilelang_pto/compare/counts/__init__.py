"""Static counts of emitted text, for PTODSL and AscendC alike; :mod:`~tilelang_pto.compare.counts.kinds` says what counts."""

from tilelang_pto.compare.counts.ascendc import LibraryCall, count_ascendc
from tilelang_pto.compare.counts.kinds import QUANTITIES, Counts, UncountableError
from tilelang_pto.compare.counts.ptodsl import count_ptodsl

__all__ = ["QUANTITIES", "Counts", "LibraryCall", "UncountableError", "count_ascendc", "count_ptodsl"]
