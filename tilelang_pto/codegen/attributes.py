"""Attributes of device functions that the code generator reads."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["EXTENT_PARAMETERS", "VIEWS", "VIEW_SHIFT", "View", "read_views", "write_views"]

EXTENT_PARAMETERS = "pto.extent_parameters"
"""Names of the scalar parameters that are tensor extents, so never negative."""

VIEWS = "pto.views"
"""The buffers that lie in merged allocations, as JSON text."""

VIEW_SHIFT = 8
"""Where the number of a view begins among the bits of an access mask."""


@dataclass(frozen=True, slots=True)
class View:
    """A buffer of the kernel that lies in an allocation with others.

    Attributes:
        number: what access masks call it, from 1.
        name: unique in the device function.
        arena: name of the allocation's data variable.
        begin: first byte, in the allocation.
        size: bytes.
        element: TIR dtype.
        extent: elements, as its dimensions.
        buffers: names of the TIR buffers that are it.
    """

    number: int
    name: str
    arena: str
    begin: int
    size: int
    element: str
    extent: str
    buffers: tuple[str, ...]


def write_views(views: Iterable[View]) -> str:
    """What the attribute :data:`VIEWS` says of ``views``."""
    return json.dumps([dataclasses.asdict(view) for view in views])


def read_views(text: str) -> list[View]:
    """The views of an attribute :data:`VIEWS`."""
    return [View(**{**entry, "buffers": tuple(entry["buffers"])}) for entry in json.loads(text)]
