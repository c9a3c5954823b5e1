"""The real PTODSL and ptoas of August 2026, where both are installed: their word on emitted texts.

``ptodsl`` may live in another environment: ``TILELANG_PTO_PTODSL_PYTHON`` names its interpreter, ``TILELANG_PTO_TEST_PTOAS``
the assembler (``PTOAS_BIN`` is a setting that tests do without).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["SURFACE", "assert_accepted", "real_toolchain"]

SURFACE = "2026-08"
PYTHON = os.environ.get("TILELANG_PTO_PTODSL_PYTHON", sys.executable)
PTOAS = os.environ.get("TILELANG_PTO_TEST_PTOAS") or shutil.which("ptoas")

TRACE = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("emitted", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernels = {name: value for name, value in vars(module).items() if hasattr(value, "mlir_text")}
assert kernels, "the module has no kernel"
for name, kernel in kernels.items():
    kernel.verify()
    lines = kernel.mlir_text().rstrip().split("\\n")
    # ptoas makes objects from the inner module; its printed LLVM IR would be of the outer one, without all passes.
    assert lines[0].startswith("module ") and lines[1].startswith("  module ") and lines[-2:] == ["  }", "}"], "another module form"
    pathlib.Path(sys.argv[2], name + ".pto").write_text("\\n".join(lines[1:-1]))
"""


def _absent() -> str:
    """What is missing, in words for the summary of a run; empty if nothing is."""
    missing = [] if PTOAS else ["ptoas (PATH, or TILELANG_PTO_TEST_PTOAS names it)"]
    if subprocess.run([PYTHON, "-c", "import ptodsl"], capture_output=True, timeout=120).returncode != 0:
        missing.append(f"PTODSL in {PYTHON} (or TILELANG_PTO_PTODSL_PYTHON names its interpreter)")
    return f"emitted kernels were NOT traced and assembled with the real tools; missing: {', '.join(missing)}" if missing else ""


_ABSENT = _absent()


def real_toolchain(test):
    """Mark a test that needs both; it is skipped where one is missing, and the summary of the run says so."""
    return pytest.mark.real_toolchain(pytest.mark.skipif(bool(_ABSENT), reason=_ABSENT or "not skipped")(test))


def assert_accepted(module: Path, directory: Path) -> None:
    """Trace and verify the kernels of a PTODSL file, then assemble them to LLVM IR; what is made goes to ``directory``."""
    traced = subprocess.run([PYTHON, "-c", TRACE, str(module), str(directory)], capture_output=True, text=True, timeout=300)
    assert traced.returncode == 0, traced.stderr[-2000:]
    for source in sorted(directory.glob("*.pto")):
        result = source.with_suffix(".ll")
        options = ["--pto-arch=a5", "--pto-backend=vpto", "--pto-level=level3", "--emit-vpto-llvm-ir"]
        command = [str(PTOAS), *options, str(source), "-o", str(result)]
        assembled = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert assembled.returncode == 0, assembled.stderr[-2000:]
        assert result.stat().st_size > 0
