"""Files made from the jinja2 templates of the package."""

from __future__ import annotations

import functools
from typing import Any

import jinja2

__all__ = ["render"]


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("tilelang_pto", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # C++ and shell, not HTML
    )


def render(template: str, /, **values: Any) -> str:
    """The text of ``template`` with ``values``; a name the template uses and nobody gives is an error."""
    return _environment().get_template(template).render(**values)
