"""Files made from the jinja2 templates of the package."""

from __future__ import annotations

import functools
from typing import IO, Any

import jinja2

__all__ = ["render", "write"]


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("tilelang_pto", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=jinja2.select_autoescape(("html.j2",)),  # the others are C++ and shell
    )


def render(template: str, /, **values: Any) -> str:
    """The text of ``template`` with ``values``; a name the template uses and nobody gives is an error."""
    return _environment().get_template(template).render(**values)


def write(stream: IO[str], template: str, /, **values: Any) -> None:
    """Write the same text piece by piece; values may be iterators."""
    for piece in _environment().get_template(template).generate(**values):
        stream.write(piece)
