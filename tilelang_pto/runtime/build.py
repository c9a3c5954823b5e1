"""From PTODSL text to a shared library for a board, with the real tools.

::

    kernel.py  --PTODSL-->  <kernel>.pto  --ptoas-->  <kernel>.o  \\
                                                                   bisheng  -->  kernels.so
    the signatures  ------------------------->  launch_<kind>.cc  /

Every step keeps what its tool printed in ``<step>.log`` beside its files. A failing step is a :class:`ToolchainError` in the words of the
tool, with the PTODSL line it is about.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilelang_pto import settings
from tilelang_pto.errors import RuntimeModuleError, ToolchainError
from tilelang_pto.runtime import trace_child
from tilelang_pto.runtime.abi import KernelAbi
from tilelang_pto.runtime.diagnostics import Diagnostic, first_diagnostic, line_of_operation, places
from tilelang_pto.runtime.fingerprint import build_fingerprint
from tilelang_pto.runtime.kernel_cache import KernelCache, default_root, digest
from tilelang_pto.runtime.process import Finished, run_tool
from tilelang_pto.runtime.stub import render_stub
from tilelang_pto.runtime.tools import Toolchain, cann_home, find_toolchain

if TYPE_CHECKING:
    from tilelang_pto.codegen import EmittedModule
    from tilelang_pto.sim.program import Program

__all__ = [
    "ARCHITECTURES",
    "CANN_INCLUDES",
    "KERNEL_FLAGS",
    "LIBRARY",
    "LINK_FLAGS",
    "PTOAS_FLAGS",
    "TEXT",
    "Source",
    "architecture",
    "build_cached",
    "build_library",
    "working_directory",
]

LIBRARY = "kernels.so"
TEXT = "kernel.py"

#: ``--cce-aicore-arch`` of A5 by kernel kind; a mixed kernel has code for both cores.
ARCHITECTURES = {"vector": "dav-c310-vec", "cube": "dav-c310-cube", "mixed": "dav-c310"}

PTOAS_FLAGS = ("--pto-arch=a5", "--pto-backend=vpto", "--pto-level=level3")

# Stack of a core: the default is too small for kernels with spilled registers.
KERNEL_FLAGS = (
    "-std=gnu++17",
    "-O2",
    "-fPIC",
    "-xcce",
    "-mllvm",
    "-cce-aicore-stack-size=0x8000",
    "-mllvm",
    "-cce-aicore-function-stack-size=0x8000",
    "-mllvm",
    "-cce-aicore-addr-transform",
)
LINK_FLAGS = ("-fPIC", "-shared", "--cce-fatobj-link", "-Wl,--no-undefined", f"-Wl,-soname,{LIBRARY}")
CANN_INCLUDES = ("include", "pkg_inc", "pkg_inc/profiling", "pkg_inc/runtime/runtime")


@dataclass(frozen=True, slots=True)
class Source:
    """What a library is built from.

    Attributes:
        emitted: the PTODSL text and its kernels.
        program: what the simulator's recorder made of the text; it knows the line of every operation.
        abis: signatures by kernel name.
    """

    emitted: EmittedModule
    program: Program
    abis: Mapping[str, KernelAbi]


def architecture(kind: str) -> str:
    """The core architecture to compile launch code for; ``TILELANG_PTO_ARCH`` overrides the family (``dav-c310``).

    Args:
        kind: ``vector``, ``cube`` or ``mixed``.
    """
    family = settings.architecture_family()
    return ARCHITECTURES[kind].replace("dav-c310", family) if family else ARCHITECTURES[kind]


@contextmanager
def working_directory(parent: Path | None = None, prefix: str = "tilelang-pto-build-") -> Iterator[Path]:
    """A directory for one build. It goes away again, unless the build fails and ``TILELANG_PTO_KEEP`` is on; its name is in the error."""
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield path
    except ToolchainError as error:
        if not settings.keeping():
            log = Path(error.log)
            kept = "" if not error.log or not log.is_file() else _keep_log(log)
            shutil.rmtree(path, ignore_errors=True)
            raise ToolchainError(error.what, where=_without_log(error), advice=error.advice, log=kept) from None
        raise
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    else:
        shutil.rmtree(path, ignore_errors=True)


def _keep_log(log: Path) -> str:
    descriptor, name = tempfile.mkstemp(prefix=f"tilelang-pto-{log.stem}-", suffix=".log")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(log.read_text(encoding="utf-8"))
    return name


def _without_log(error: ToolchainError) -> tuple[str, ...]:
    return tuple(place for place in error.where if place != f"the log {error.log}")


def build_library(source: Source, tools: Toolchain, directory: Path) -> Path:
    """Build the library of a module.

    Args:
        source: what to build.
        tools: the tools to use.
        directory: an empty directory; every file of the build is in it afterwards.

    Returns:
        The path of the library.

    Raises:
        ToolchainError: a tool fails, refuses its input, or does not end in time.
    """
    if tools.ptodsl.surface != source.emitted.surface:
        raise RuntimeModuleError(
            f"the text is written for the PTODSL API of {source.emitted.surface}, the PTODSL at hand has that of {tools.ptodsl.surface}",
            where=(str(tools.ptodsl),),
            advice=f"compile with TILELANG_PTO_SURFACE={tools.ptodsl.surface}",
        )
    text = directory / TEXT
    text.write_text(source.emitted.text, encoding="utf-8")
    traced = _trace(source, tools, text)
    pairs = zip(source.emitted.kernels, traced, strict=True)
    objects = [_assemble(source, tools, kernel.name, assembly) for kernel, assembly in pairs]
    kinds = sorted({kernel.kind for kernel in source.emitted.kernels})
    for kind in kinds:
        abis = [source.abis[kernel.name] for kernel in source.emitted.kernels if kernel.kind == kind]
        objects.append(_compile_stub(source, tools, kind, abis, directory))
    return _link(source, tools, objects, directory)


def build_cached(source: Source, cache: KernelCache | None = None) -> Path:
    """The cache entry of a module: the library, the text, the assembly and the launch code.

    Raises:
        ToolchainError: as :func:`build_library`.
        ConfigurationError: a tool is missing, or the cache cannot be used.
    """
    tools = find_toolchain()
    key = digest(
        {
            "package": build_fingerprint(),
            "text": source.emitted.text,
            "surface": source.emitted.surface,
            "kernels": [[kernel.name, kernel.kind, repr(source.abis[kernel.name])] for kernel in source.emitted.kernels],
            "flags": [*PTOAS_FLAGS, *KERNEL_FLAGS, settings.architecture_family()],
            "tools": tools.versions(),
        }
    )

    def build(entry: Path) -> None:
        # Beside the entry and named after it, so that whoever builds next removes what a killed process has left; files that are to be
        # kept have to stay when somebody tries again.
        place = () if settings.keeping() else (entry.parent, f"{entry.name}-")
        with working_directory(*place) as directory:
            build_library(source, tools, directory)
            for path in directory.iterdir():
                if path.suffix in (".so", ".py", ".pto", ".cc"):
                    shutil.copyfile(path, entry / path.name)

    described = {"kernels": [kernel.name for kernel in source.emitted.kernels], "tools": tools.versions()}
    return (cache or KernelCache(default_root())).get(key, build, describe=described)


def _names(source: Source) -> str:
    return ", ".join(kernel.name for kernel in source.emitted.kernels)


def _run(step: str, what: str, command: Sequence[str | Path], directory: Path, kernel: str) -> Finished:
    """Run one tool, and write its log before anything looks at the outcome."""
    log = directory / f"{step}.log"
    try:
        done = run_tool(command, what=what, timeout=settings.tool_timeout(), cwd=directory)
    except ToolchainError as error:
        log.write_text(f"{error}\n", encoding="utf-8")
        raise ToolchainError(error.what, where=(f"kernel {kernel}", *error.where), advice=error.advice, log=str(log)) from None
    log.write_text(done.log(), encoding="utf-8")
    return done


def _trace(source: Source, tools: Toolchain, text: Path) -> list[Path]:
    """The assembly of every kernel, in the order of the text."""
    directory = text.parent
    done = _run("trace", "PTODSL", [tools.ptodsl.path, Path(trace_child.__file__), text, directory], directory, _names(source))
    report = directory / "trace.json"
    log = str(directory / "trace.log")
    if not report.is_file():
        found = first_diagnostic(done.errors or done.output)
        raise ToolchainError(f"PTODSL ended without a result: {_ending(done)}{found.message}", where=(f"kernel {_names(source)}",), log=log)
    outcome = json.loads(report.read_text(encoding="utf-8"))
    error = outcome["error"]
    if error is not None:
        raise ToolchainError(
            f"PTODSL refuses the emitted text ({error['stage']}): {error['type']}: {error['message']}",
            where=(f"kernel {error['kernel'] or _names(source)}", *places(source.emitted.text, TEXT, int(error["line"]))),
            advice="this is a defect of tilelang-pto, or this is another PTODSL than the text is for (tilelang-pto doctor)",
            log=log,
        )
    # Kernels stand in the text in their order; the name of a Python function differs where the kernel's is a Python word.
    traced = [directory / f"{name}.pto" for name in outcome["kernels"]]
    if len(traced) != len(source.emitted.kernels) or not all(path.is_file() for path in traced):
        raise ToolchainError(
            f"PTODSL found {len(traced)} kernels in the text, which has {len(source.emitted.kernels)}",
            where=(f"kernel {_names(source)}",),
            log=log,
        )
    return traced


def _assemble(source: Source, tools: Toolchain, kernel: str, assembly: Path) -> Path:
    directory, made = assembly.parent, assembly.with_suffix(".o")
    step = f"ptoas-{kernel}"
    done = _run(step, "ptoas", [tools.ptoas.path, *PTOAS_FLAGS, assembly, "-o", made], directory, kernel)
    if done.status == 0 and made.is_file() and made.stat().st_size > 0:
        return made
    found = first_diagnostic(done.errors or done.output)
    line = 0
    if found.file.endswith(assembly.name):
        line = line_of_operation(assembly.read_text(encoding="utf-8"), found.line, source.program, kernel)
    raise _refused("ptoas", done, found, kernel, places(source.emitted.text, TEXT, line), directory / f"{step}.log")


def _compile_stub(source: Source, tools: Toolchain, kind: str, abis: Sequence[KernelAbi], directory: Path) -> Path:
    stub, made = directory / f"launch_{kind}.cc", directory / f"launch_{kind}.o"
    stub.write_text(render_stub(abis), encoding="utf-8")
    home = cann_home()
    includes: list[str | Path] = [f"-I{home / folder}" for folder in CANN_INCLUDES if (home / folder).is_dir()] if home is not None else []
    command: list[str | Path] = [
        tools.bisheng.path,
        *KERNEL_FLAGS,
        f"--cce-aicore-arch={architecture(kind)}",
        *includes,
        "-c",
        stub,
        "-o",
        made,
    ]
    step = f"bisheng-{kind}"
    done = _run(step, "bisheng", command, directory, _names(source))
    if done.status == 0 and made.is_file():
        return made
    raise _refused("bisheng", done, first_diagnostic(done.errors or done.output), _names(source), (), directory / f"{step}.log")


def _link(source: Source, tools: Toolchain, objects: Sequence[Path], directory: Path) -> Path:
    made = directory / LIBRARY
    home = cann_home()
    libraries = [f"-L{home / 'lib64'}", f"-Wl,-rpath,{home / 'lib64'}"] if home is not None else []
    command: list[str | Path] = [
        tools.bisheng.path,
        "-fPIC",
        "-shared",
        "--cce-fatobj-link",
        "-Wl,--no-undefined",
        f"-Wl,-soname,{LIBRARY}",
    ]
    done = _run("link", "bisheng", [*command, "-o", made, *objects, *libraries, "-lruntime"], directory, _names(source))
    if done.status == 0 and made.is_file() and made.stat().st_size > 0:
        return made
    raise _refused("the linker", done, first_diagnostic(done.errors or done.output), _names(source), (), directory / "link.log")


def _ending(done: Finished) -> str:
    return f"ended by signal {-done.status}; " if done.status < 0 else ""


def _refused(tool: str, done: Finished, found: Diagnostic, kernel: str, where: tuple[str, ...], log: Path) -> ToolchainError:
    crashed = done.status < 0
    problem = "crashed" if crashed else "gave no output" if done.status == 0 else "refuses its input"
    return ToolchainError(
        f"{tool} {problem}: {_ending(done)}{found.message}",
        where=(f"kernel {kernel}", *where),
        advice="look at the log; TILELANG_PTO_KEEP=1 keeps all files of the build, tilelang-pto doctor shows the versions of the tools",
        log=str(log),
    )
