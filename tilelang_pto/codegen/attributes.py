"""Attributes of device functions that the code generator reads."""

from __future__ import annotations

__all__ = ["EXTENT_PARAMETERS"]

EXTENT_PARAMETERS = "pto.extent_parameters"
"""Names of the scalar parameters that are tensor extents, so never negative."""
