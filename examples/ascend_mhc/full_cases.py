"""All cases of the suite at the sizes for a board."""

from __future__ import annotations

from .cases import all_cases
from .sizes import Sizes

__all__ = ["CASES"]

CASES = all_cases(Sizes(full=True))
