"""A program that stands in for ``msprof`` in tests of its driver.

It notes its arguments in ``FAKE_LOG`` and does what ``FAKE_MSPROF`` says: ``run`` (runs the program and writes an ``op_summary`` of
its calls, each longer than the one before), ``ok`` (the same without running it: the kernel is ``scaled_kernel``), ``statistic`` (only an
``op_statistic``), ``few`` (a launch is missing), ``cut`` (the table ends in the middle of a row), ``nothing`` (no table), ``idle`` (the
program does not come to its end), ``fail``, ``crash``, ``hang``. ``FAKE_FAILS`` names a backend whose profiling fails.
"""

from __future__ import annotations

import stat
import sys
from pathlib import Path

_SCRIPT = """
import json, os, signal, subprocess, sys, time
from pathlib import Path

mode = os.environ.get("FAKE_MSPROF", "ok")
options = [word for word in sys.argv[1:] if word.startswith("-")]
program = [word for word in sys.argv[1:] if not word.startswith("-")]
output = Path(next(word for word in options if word.startswith("--output=")).partition("=")[2])
job = json.loads((Path(program[-1]).parent / "job.json").read_text())
with open(os.environ["FAKE_LOG"], "a") as log:
    pinned = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    log.write(json.dumps({"program": program, "backend": job["backend"], "pinned": pinned}) + "\\n")
if mode == "fail" or os.environ.get("FAKE_FAILS") == job["backend"]:
    print("[ERROR] Failed to start the device profiling, driver error", file=sys.stderr)
    sys.exit(1)
if mode == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if mode == "hang":
    time.sleep(600)
if mode == "idle":
    print("[WARNING] the application was not started")
    sys.exit(0)
note = {"functions": ["scaled_kernel"], "warm_up": job["warm_up"], "calls": job["calls"]}
if mode == "run":
    if subprocess.call(program):
        sys.exit(0)  # as the real one
    note = json.loads(Path(job["note"]).read_text())
Path(job["note"]).write_text(json.dumps(note))
folder = output / "PROF_000001_20260101000000000_ABC" / "mindstudio_profiler_output"
folder.mkdir(parents=True)
number = note["warm_up"] + note["calls"]
unit = 10.0 if job["backend"] == "ascend" else 5.0
rows = []
for call in range(number - (mode == "few")):
    for function in note["functions"]:
        start = f"{1000 + 50 * call}.5\\t"
        rows.append(f"0,4294967295,{call},2,{function},{function},dynamic,AI_VECTOR_CORE,{start},{unit + call},1.0,64,0,NO,N/A")
head = "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us)"
table = head + ",Task Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes\\n" + "\\n".join(rows) + "\\n"
if mode == "cut":
    table = table[:-40]
if mode == "statistic":
    lines = [f"0,{f},AI_VECTOR_CORE,{number},{number * unit},1,2,3,100" for f in note["functions"]]
    head = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    (folder / "op_statistic_20260101000000.csv").write_text("\\n".join([head, *lines]) + "\\n")
elif mode != "nothing":
    (folder / "op_summary_20260101000000.csv").write_text(table)
"""


def fake_msprof(folder: Path) -> Path:
    """Write the program into a directory."""
    path = folder / "msprof"
    path.write_text(f"#!{sys.executable}\n{_SCRIPT}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
