"""TileLang's kernel cache and exported libraries, across processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import torch
from simple_kernels import vector_add

from tilelang_pto.runtime import fingerprint

TESTS = Path(__file__).resolve().parent.parent

# The digest of the package is fixed, so that a source file changed while the tests run does not matter.
RUN = """
    import os
    import torch, tilelang, tilelang_pto
    from tilelang_pto import codegen, target
    from simple_kernels import make_add

    target.build_fingerprint = lambda: os.environ["BUILD"]

    emit = codegen.emit_module
    emitted = []

    def counting(*args, **kwargs):
        emitted.append(1)
        return emit(*args, **kwargs)

    codegen.emit_module = counting
    kernel = make_add()
    a, b = torch.randn(37, 64), torch.randn(37, 64)
    assert torch.equal(kernel(a, b), a + b)
    assert "def add_kernel(" in kernel.get_kernel_source()
    assert "#include" not in kernel.get_kernel_source()
    print("emitted", len(emitted))
"""


def run(code: str, **environment: str) -> str:
    settings = {**os.environ, "PYTHONPATH": str(TESTS), "BUILD": "0", **environment}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=settings, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_second_process_takes_the_kernel_from_the_cache(cached_kernels):
    assert "emitted 1" in run(RUN)
    (entry,) = cached_kernels()
    assert (entry / "executable.so").exists()
    assert "emitted 0" in run(RUN)
    # Another PTODSL API or another version of the package is another kernel.
    assert "emitted 1" in run(RUN, TILELANG_PTO_SURFACE="2026-08")
    assert "emitted 1" in run(RUN, BUILD="1")
    assert len(cached_kernels()) == 3


def test_a_damaged_entry_is_compiled_again(cached_kernels):
    assert "emitted 1" in run(RUN)
    (entry,) = cached_kernels()
    library = entry / "executable.so"
    library.write_bytes(library.read_bytes()[:1000])
    assert "emitted 1" in run(RUN)
    assert cached_kernels() == [entry]


def test_another_version_of_the_package_does_not_meet_old_kernels(tmp_path, monkeypatch):
    before = fingerprint.build_fingerprint()
    monkeypatch.setattr(fingerprint, "__version__", "999")
    assert fingerprint.build_fingerprint.__wrapped__() != before


def test_exported_library_loads_in_another_process(tmp_path, cache_dir):
    import tilelang

    path = tmp_path / "add.so"
    kernel = tilelang.compile(vector_add(), target="pto")
    kernel.export_library(str(path))
    code = f"""
        import torch, tvm_ffi
        import tilelang, tilelang_pto
        module = tilelang.tvm.runtime.load_module({str(path)!r})
        a, c = torch.randn(5, 64), torch.empty(5, 64)
        module["add"](a, a, c)
        assert torch.equal(c, a + a)
        print(module.imports[0].kind)
    """
    assert run(code).strip().endswith("pto")


def test_in_process_repeat(cached_kernels):
    import tilelang

    first = tilelang.compile(vector_add(cores=6), target="pto")
    second = tilelang.compile(vector_add(cores=6), target="pto")
    a, c, d = torch.randn(5, 64), torch.empty(5, 64), torch.empty(5, 64)
    first(a, a, c)
    second(a, a, d)
    assert torch.equal(c, d)
    assert len(cached_kernels()) == 1
