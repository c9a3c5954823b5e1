"""Lowered device TIR of the corpus, kept between runs: TileLang's lowering takes up to a minute a kernel.

An entry is a file ``<case>-<digest>.gz``: a line of JSON about it, then the module as TVM's JSON. The digest covers what the module
depends on; an entry that cannot be read is made again. Entries are written under another name and renamed, so that processes can share
the directory.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import gzip
import hashlib
import importlib.metadata
import json
import os
import tempfile
import time
import zlib
from pathlib import Path

import tvm
from corpus.case import Case, JitCall, reached_kernel
from tile_kernels_support import CORES, CUBE_CORES
from tilelang.transform import PassConfigKey
from tvm import IRModule

from tilelang_pto.lowering import lower_function
from tilelang_pto.pipeline import stashed_module

__all__ = ["VARIABLE", "KeptTir", "directory", "is_kept", "kept_tir", "pipeline_digest", "pipeline_files"]

VARIABLE = "TILELANG_PTO_TEST_CACHE"
ROOT = Path(__file__).resolve().parents[2]
FORMAT = 1

#: Where lowering starts, and modules reached from there that change host functions, messages or settings, but no device function.
_ROOTS = ("lowering", "pipeline", "device_assert")
_NOT_DEVICE = ("abi", "argument_checks", "backend", "device", "errors", "fingerprint", "host", "settings", "version")


@dataclasses.dataclass(frozen=True)
class KeptTir:
    """The lowered form of a case.

    Attributes:
        kernel: name of the JIT function.
        seconds: processor time of TileLang's lowering when the entry was made.
        fast_math: whether the kernel asks for fast math.
        text: the device functions as TVM's JSON.
    """

    kernel: str
    seconds: float
    fast_math: bool
    text: str

    def module(self) -> IRModule:
        return tvm.ir.load_json(self.text)


def directory() -> Path:
    """Where entries are kept."""
    return Path(os.environ.get(VARIABLE) or ROOT / "build" / "test-cache") / "tir"


def kept_tir(case: Case) -> KeptTir:
    """The lowered form of ``case``, from the directory or made now."""
    call = reached_kernel(case)
    path = _path(case, call)
    return _read(path) or _write(path, _lower(call))


def is_kept(case: Case) -> bool:
    """Whether ``case`` need not be lowered."""
    return _read(_path(case, reached_kernel(case))) is not None


def _path(case: Case, call: JitCall) -> Path:
    return directory() / f"{case.name}-{_digest(call)}.gz"


def _digest(call: JitCall) -> str:
    depends_on = {
        "format": FORMAT,
        "tilelang": importlib.metadata.version("tilelang"),
        "tile_kernels": importlib.metadata.version("tile_kernels"),
        "pipeline": pipeline_digest(),
        "cores": [CUBE_CORES, CORES],
        "kernel": call.name,
        "source": call.kernel.func_source,
        "passes": repr(call.kernel.pass_configs),
        "arguments": call.describe(),
    }
    return hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()[:16]


@functools.lru_cache(maxsize=1)
def pipeline_digest() -> str:
    """A digest of the code that makes device TIR: comments and docstrings aside, and without the code generator."""
    trees = {path.name: ast.dump(_without_docstrings(ast.parse(path.read_text()))) for path in pipeline_files()}
    return hashlib.sha256(json.dumps(trees, sort_keys=True).encode()).hexdigest()


def pipeline_files() -> list[Path]:
    """The modules of the package that take part in lowering, found by their imports."""
    package = ROOT / "tilelang_pto"
    found: set[Path] = set()
    waiting = [package / f"{name}.py" for name in _ROOTS]
    while waiting:
        path = waiting.pop()
        if path in found or path.stem in _NOT_DEVICE or not path.is_file():
            continue
        found.add(path)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == package.name:
                base = ROOT.joinpath(*str(node.module).split("."))
                waiting += [base.with_suffix(".py"), *(base / f"{alias.name}.py" for alias in node.names)]
    return sorted(found)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = None
    return tree


def _lower(call: JitCall) -> KeptTir:
    function, passes = call.trace()
    started = time.process_time()
    lowered = lower_function(function, pass_configs=passes)
    seconds = time.process_time() - started
    fast_math = bool(passes.get(PassConfigKey.TL_ENABLE_FAST_MATH.value, False))
    return KeptTir(call.name, seconds, fast_math, tvm.ir.save_json(stashed_module(lowered.device)))


def _write(path: Path, entry: KeptTir) -> KeptTir:
    about = {"kernel": entry.kernel, "seconds": entry.seconds, "fast_math": entry.fast_math}
    data = gzip.compress(f"{json.dumps(about)}\n{entry.text}".encode(), compresslevel=6, mtime=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        unnamed = Path(file.name)
        try:
            file.write(data)
            file.flush()
            unnamed.replace(path)
        except BaseException:
            unnamed.unlink()
            raise
    return entry


def _read(path: Path) -> KeptTir | None:
    """The entry in a file, None if there is none that is whole."""
    try:
        line, _, text = gzip.decompress(path.read_bytes()).decode().partition("\n")
        about = json.loads(line)
        entry = KeptTir(str(about["kernel"]), float(about["seconds"]), bool(about["fast_math"]), text)
        entry.module()
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, RuntimeError):
        return None
    return entry
