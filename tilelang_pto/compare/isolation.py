"""Running a case in a process of its own: it may fail, hang or crash, and the comparison goes on."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from tilelang_pto.compare import child
from tilelang_pto.compare.case import Case
from tilelang_pto.compare.child import Job
from tilelang_pto.compare.progress import Told, read_progress
from tilelang_pto.compare.records import FAILED, Record, Step

__all__ = ["process_context", "run_isolated"]

_LOG_CHARACTERS = 300
_GRACE = 10.0
_POLL = 0.2


def process_context(setting: str) -> BaseContext:
    """How processes are started. On a board each is new; elsewhere they are forked from one that has imported everything, which saves
    seconds for each case."""
    if setting == "npu":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([child.__name__])
    return context


def run_isolated(job: Job, case: Case, timeout: float, context: BaseContext, stop: threading.Event) -> Record | None:
    """Do a job in a new process.

    Args:
        job: what to do; its files for progress and log are replaced.
        case: the case it is about.
        timeout: seconds after which the process and everything it has started is killed.
        context: from :func:`process_context`.
        stop: ends the process when it is set; there is no record then.
    """
    with tempfile.TemporaryDirectory(prefix="tilelang-pto-compare-") as folder:
        job = dataclasses.replace(job, progress=Path(folder) / "progress", log=Path(folder) / "log")
        process: BaseProcess = context.Process(target=child.run, args=(job,))  # type: ignore[attr-defined]
        process.start()
        try:
            deadline = time.monotonic() + timeout
            while process.is_alive() and time.monotonic() < deadline and not stop.is_set():
                process.join(_POLL)
            late = process.is_alive()
        finally:
            _kill(process)
        if stop.is_set():
            return None
        told = read_progress(job.progress)
        steps = list(told.steps)
        ended = f"did not end within {timeout:g} s and was stopped" if late else _ended(process.exitcode, told)
        if ended:
            log = _last_line(job.log)
            steps.append(Step(told.running or "load", FAILED, f"the process {ended}{f'; the last thing it said: {log}' if log else ''}"))
    return Record(
        case=case.name,
        kernel=case.kernel,
        parameters=dict(case.parameters),
        tokens=case.tokens,
        backend=job.backend,
        digest=job.digest,
        setting=job.setting,
        steps=tuple(steps),
        counts=told.values.get("counts", {}),
        functions=tuple(told.values.get("functions", ())),
        modelled_microseconds=told.values.get("modelled_microseconds"),
    )


def _ended(status: int | None, told: Told) -> str:
    """What went wrong with a process that has told nothing of it; empty if nothing did."""
    if status is not None and status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    if told.running or not told.steps:
        return f"ended with status {status}"
    return ""


def _kill(process: BaseProcess) -> None:
    """End the process, and what it has started: it leads a group of its own."""
    if process.pid is not None and process.is_alive():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.join(_GRACE)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1].strip()[-_LOG_CHARACTERS:] if lines else ""
