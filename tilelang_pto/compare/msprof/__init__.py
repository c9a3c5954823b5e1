"""The vendor's profiler ``msprof``: running it, finding its files, reading them."""

from tilelang_pto.compare.msprof.command import find_msprof, profile
from tilelang_pto.compare.msprof.files import summaries
from tilelang_pto.compare.msprof.samples import CallSamples, samples_of
from tilelang_pto.compare.msprof.tables import Launch, MsprofError, Total, read_op_statistic, read_op_summary

__all__ = [
    "CallSamples",
    "Launch",
    "MsprofError",
    "Total",
    "find_msprof",
    "profile",
    "read_op_statistic",
    "read_op_summary",
    "samples_of",
    "summaries",
]
