"""The golden texts through the real PTODSL and ptoas, where both are installed.

``ptodsl`` may live in another environment: ``TILELANG_PTO_PTODSL_PYTHON`` names its interpreter, ``PTOAS_BIN`` the assembler.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden" / "2026-08"
PYTHON = os.environ.get("TILELANG_PTO_PTODSL_PYTHON", sys.executable)
PTOAS = os.environ.get("PTOAS_BIN") or shutil.which("ptoas")

TRACE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("emitted", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
(kernel,) = [value for value in vars(module).values() if hasattr(value, "mlir_text")]
kernel.verify()
print(kernel.mlir_text())
"""


def _has_ptodsl() -> bool:
    probe = [PYTHON, "-c", "import ptodsl"]
    return subprocess.run(probe, capture_output=True, timeout=120).returncode == 0


pytestmark = [
    pytest.mark.real_toolchain,
    pytest.mark.skipif(PTOAS is None or not _has_ptodsl(), reason="the real PTODSL and ptoas are not installed"),
]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.py")), ids=lambda path: path.stem)
def test_accepted(path, tmp_path):
    traced = subprocess.run([PYTHON, "-c", TRACE, str(path)], capture_output=True, text=True, timeout=300)
    assert traced.returncode == 0, traced.stderr[-2000:]
    source, result = tmp_path / "kernel.pto", tmp_path / "kernel.ll"
    source.write_text(traced.stdout)
    command = [
        str(PTOAS),
        "--pto-arch=a5",
        "--pto-backend=vpto",
        "--pto-level=level3",
        "--emit-vpto-llvm-ir",
        str(source),
        "-o",
        str(result),
    ]
    assembled = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert assembled.returncode == 0, assembled.stderr[-2000:]
    assert result.stat().st_size > 0
