"""Comparison of the ``pto`` and ``ascend`` backends over the cases of a kernel suite."""

from tilelang_pto.compare.case import Case, Tolerance

__all__ = ["Case", "Tolerance"]
