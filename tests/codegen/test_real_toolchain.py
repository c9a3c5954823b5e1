"""The golden texts through the real PTODSL and ptoas, where both are installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_toolchain import SURFACE, assert_accepted, real_toolchain

GOLDEN = Path(__file__).parent / "golden" / SURFACE


@real_toolchain
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.py")), ids=lambda path: path.stem)
def test_accepted(path, tmp_path):
    assert_accepted(path, tmp_path)
