"""Programs that stand in for PTODSL, ptoas and bisheng, for tests of the driver.

Each notes its arguments and does what ``FAKE_PTODSL``, ``FAKE_PTOAS`` or ``FAKE_BISHENG`` says: ``ok``, ``fail`` (with a diagnostic as the
real tool prints it), ``crash``, ``hang``, ``slow`` (a second), ``silent`` (status 0, no output file). ``FAKE_PTOAS`` may also be ``other``
(another version), ``ancient`` (one that is too old), ``nameless`` (no version) or ``mute`` (does not tell its version). The stand-in for
bisheng builds launch stubs with the system's compiler in their check mode, together with the C++ file ``FAKE_KERNELS`` if that is set, so
what it links can be loaded and called.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

_COMMON = """
import json, os, signal, sys, time
from pathlib import Path

def note(tool, more=None):
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(json.dumps({"tool": tool, "arguments": sys.argv[1:], **(more or {})}) + "\\n")

def misbehave(mode):
    if mode == "crash":
        print("PLEASE submit a bug report", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if mode == "hang":
        print("starting pass pipeline", file=sys.stderr, flush=True)
        if os.fork() == 0:  # a child that would outlive its parent
            Path(os.environ["FAKE_LOG"] + ".child").write_text(str(os.getpid()))
        time.sleep(600)
    if mode == "silent":
        sys.exit(0)
    if mode == "slow":
        time.sleep(1)
"""

_PTOAS = """
mode = os.environ.get("FAKE_PTOAS", "ok")
if sys.argv[1:] == ["--version"]:
    if mode == "mute":
        time.sleep(600)
    print({"other": "ptoas 0.61", "ancient": "ptoas 0.59", "nameless": "an assembler"}.get(mode, "ptoas 0.60"))
    sys.exit(0)
note("ptoas", {"parent": int(os.environ.get("FAKE_PARENT", "0"))})
misbehave(mode)
source, made = Path(sys.argv[-3]), Path(sys.argv[-1])
lines = source.read_text().splitlines()
if mode == "fail":
    wanted = os.environ.get("FAKE_OPERATION", "pto.store")
    number = [i for i, line in enumerate(lines, 1) if wanted in line][-1]
    print("bisheng not found, falling back to configured default", file=sys.stderr)
    print(f'loc("{source}":{number}:9): error: {wanted!r} op has a mask of the wrong width', file=sys.stderr)
    print("Error: VPTO emission pipeline failed.", file=sys.stderr)
    sys.exit(1)
made.write_text("object of " + source.name)
"""

_BISHENG = """
import shutil, subprocess
mode = os.environ.get("FAKE_BISHENG", "ok")
if sys.argv[1:] == ["--version"]:
    print("bisheng version 2026.07.30 clang 15.0.5")
    sys.exit(0)
note("bisheng")
linking = "--cce-fatobj-link" in sys.argv
if mode.startswith("link-"):
    mode = mode.removeprefix("link-") if linking else "ok"
misbehave(mode)
made = Path(sys.argv[sys.argv.index("-o") + 1])
if mode == "fail":
    at_compile = f"{sys.argv[-3]}:7:1: error: unknown type name 'bfloat'"
    print("ld.lld: error: undefined symbol: rtKernelLaunch" if linking else at_compile, file=sys.stderr)
    sys.exit(1)
compiler = shutil.which("c++")
if linking:
    objects = [word for word in sys.argv if word.endswith(".o") and Path(word).name.startswith("launch_")]
    kernels = [os.environ["FAKE_KERNELS"]] if "FAKE_KERNELS" in os.environ else []
    sys.exit(subprocess.call([compiler, "-std=c++17", "-shared", "-fPIC", "-o", str(made), *objects, *kernels]))
source = sys.argv[sys.argv.index("-c") + 1]
sys.exit(subprocess.call([compiler, "-std=c++17", "-fPIC", "-DTILELANG_PTO_STUB_CHECK", "-c", source, "-o", str(made)]))
"""

# The text is not executed: the assembly has one line for each operation that is called in it.
_PTODSL = '''
"""A stand-in for PTODSL."""
import inspect, json, os, re, signal, sys, time

__version__ = "0.9"
MODE = os.environ.get("FAKE_PTODSL", "ok")

class Handle:
    def __init__(self, function):
        self.function = function
    def compile(self):
        return self
    def verify(self):
        if MODE == "verify":
            raise ValueError("operand #0 does not dominate this use")
    def mlir_text(self):
        if MODE == "raise":
            self.function(*range(self.function.__code__.co_argcount))
        if MODE == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if MODE == "hang":
            time.sleep(600)
        source = inspect.getsource(self.function).split(":\\n", 1)[1]
        operations = re.findall(r"pto\\.(\\w+)\\(", source)
        return "module {\\n" + "".join(f"  pto.{name} %0\\n" for name in operations) + "}\\n"

class Namespace:
    def __getattr__(self, name):
        if name.startswith("__") or name in ("compile", "mlir_text") or (name == "load" and MODE == "august"):
            raise AttributeError(name)
        if name == "jit":
            return lambda **options: Handle
        if MODE == "raise" and name == "store":
            raise TypeError("store() takes 3 positional arguments")
        return lambda *args, **kwargs: self
    def __mul__(self, other): return self
    __add__ = __radd__ = __rmul__ = __mul__

pto = Namespace()
scalar = Namespace()
with open(os.environ["FAKE_LOG"], "a") as log:
    heavy = [name for name in ("torch", "tilelang", "tvm") if name in sys.modules]
    log.write(json.dumps({"tool": "ptodsl", "arguments": sys.argv[1:], "heavy": heavy}) + "\\n")
'''


class FakeToolchain:
    """The stand-ins in a directory of their own; the environment leads to them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._monkeypatch = folder, monkeypatch
        self.log = folder / "calls"
        self.log.write_text("")
        (folder / "site" / "ptodsl").mkdir(parents=True)
        (folder / "site" / "ptodsl" / "__init__.py").write_text(_PTODSL)
        self._script("ptoas", f"#!{sys.executable}\n{_COMMON}{_PTOAS}")
        (folder / "cann" / "bin").mkdir(parents=True)
        (folder / "cann" / "include").mkdir()
        self._script("cann/bin/bisheng", f"#!{sys.executable}\n{_COMMON}{_BISHENG}")
        self._script("python-with-ptodsl", f'#!/bin/sh\nPYTHONPATH="{folder}/site" exec "{sys.executable}" "$@"\n')
        self.set(
            FAKE_LOG=str(self.log),
            PTOAS_BIN=str(folder / "ptoas"),
            ASCEND_HOME_PATH=str(folder / "cann"),
            TILELANG_PTO_PYTHON=str(folder / "python-with-ptodsl"),
        )
        monkeypatch.delenv("BISHENG_HOME", raising=False)

    def _script(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def set(self, **variables: str) -> None:
        """Set environment variables for the rest of the test."""
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    def calls(self, tool: str) -> list[dict]:
        """What the runs of a tool noted, versions asked for not included."""
        found = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [call for call in found if call["tool"] == tool and (call["arguments"] or ["-c"])[0] != "-c"]

    def child_of_hanging_tool(self) -> int:
        """Process number of what the hanging tool has started."""
        return int(Path(f"{self.log}.child").read_text())


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
