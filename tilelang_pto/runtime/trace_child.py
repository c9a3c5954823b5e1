"""Traces a PTODSL module with the real PTODSL: a script for a child process of its own.

    python trace_child.py KERNEL.py DIRECTORY

Writes the MLIR text of every kernel to ``DIRECTORY/<kernel>.pto`` and the outcome to ``DIRECTORY/trace.json``:

    {"kernels": [names], "error": null or {"stage", "kernel", "type", "message", "line"}, "modules": [heavy modules that were imported]}

It imports PTODSL and the standard library only, whatever interpreter runs it: neither this package nor TileLang nor torch.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from pathlib import Path
from typing import Any

HEAVY = ("tilelang", "tilelang_pto", "torch", "torch_npu", "tvm")


def handles(module: object) -> dict[str, Any]:
    """The kernels of a module, by the name of their Python function."""
    return {name: value for name, value in vars(module).items() if hasattr(value, "mlir_text") and hasattr(value, "compile")}


def load(path: Path) -> object:
    """Execute a file as a module."""
    spec = importlib.util.spec_from_file_location("kernel_text", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def line_in(path: Path, error: BaseException) -> int:
    """The innermost line of ``path`` on the way of an exception, 0 if it was not on it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    return (lines or [0])[-1] or 0


def trace(path: Path, directory: Path) -> dict[str, object]:
    """Trace every kernel of ``path``; the first error ends it."""
    stage, kernel, done = "import", "", []
    try:
        for kernel, handle in handles(load(path)).items():
            stage = "trace"
            text = handle.mlir_text()
            stage = "verify"
            handle.verify()
            (directory / f"{kernel}.pto").write_text(text, encoding="utf-8")
            done.append(kernel)
    except Exception as error:
        place = {"stage": stage, "kernel": kernel, "type": type(error).__name__, "message": str(error), "line": line_in(path, error)}
        return {"kernels": done, "error": place}
    return {"kernels": done, "error": None}


def main() -> int:
    """The command line; the status is 0 when every kernel was traced."""
    sys.path.pop(0)  # the folder of this script holds modules of this package, whose names others may want
    path, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    outcome = trace(path, directory)
    outcome["modules"] = [name for name in HEAVY if name in sys.modules]
    (directory / "trace.json").write_text(json.dumps(outcome), encoding="utf-8")
    return 0 if outcome["error"] is None else 1


if __name__ == "__main__":
    sys.exit(main())
