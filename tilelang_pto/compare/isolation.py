"""Running cases in processes of their own: they may fail, hang or crash, and the comparison goes on."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from tilelang_pto.compare import child
from tilelang_pto.compare.case import Case
from tilelang_pto.compare.child import Job
from tilelang_pto.compare.modelled import ModelledTime
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


def run_isolated(
    job: Job, cases: Sequence[Case], timeout: float, context: BaseContext, stop: threading.Event, tell: Callable[[Record], None]
) -> None:
    """Do a job with cases that share a compiled kernel, in as few new processes as it takes.

    A case that fails ends its process, and the cases behind it have a new one. If others went before it in its process, it is tried
    again as the first of a new one, and only that counts.

    Args:
        job: what to do; its cases and its files for progress and log are replaced.
        cases: the cases it is about.
        timeout: seconds a case may take; then the process and everything it has started is killed.
        context: from :func:`process_context`.
        stop: ends the process when it is set; cases that have not ended then have no record.
        tell: called with each record.
    """
    left = list(cases)
    while left and not stop.is_set():
        left = left[_run_process(job, left, timeout, context, stop, tell) :]


def _run_process(
    job: Job, cases: Sequence[Case], timeout: float, context: BaseContext, stop: threading.Event, tell: Callable[[Record], None]
) -> int:
    """One process; how many of the cases have their record now."""
    recorded = 0

    def record_finished() -> bool:
        """Whether a case more went well. The last one has to wait for how the process ends."""
        nonlocal recorded
        before = recorded
        for told in read_progress(job.progress)[recorded : len(cases) - 1]:
            if not told.done or told.failed:
                break
            tell(_record(job, cases[recorded], told))
            recorded += 1
        return recorded > before

    with tempfile.TemporaryDirectory(prefix="tilelang-pto-compare-") as folder:
        names = tuple(case.name for case in cases)
        job = dataclasses.replace(job, cases=names, progress=Path(folder) / "progress", log=Path(folder) / "log")
        process: BaseProcess = context.Process(target=child.run, args=(job,))  # type: ignore[attr-defined]
        process.start()
        try:
            deadline = time.monotonic() + timeout
            while process.is_alive() and time.monotonic() < deadline and not stop.is_set():
                process.join(_POLL)
                if record_finished():
                    deadline = time.monotonic() + timeout
            late = process.is_alive()
        finally:
            _kill(process)
        if stop.is_set():
            return recorded
        record_finished()
        told = next(iter(read_progress(job.progress)[recorded:]), Told())
        ended = f"did not end within {timeout:g} s and was stopped" if late else _ended(process.exitcode, told)
        if ended:
            log = _last_line(job.log)
            told.steps.append(
                Step(told.running or "load", FAILED, f"the process {ended}{f'; the last thing it said: {log}' if log else ''}")
            )
    if recorded and told.failed:
        return recorded
    tell(_record(job, cases[recorded], told))
    return recorded + 1


def _record(job: Job, case: Case, told: Told) -> Record:
    modelled = told.values.get("modelled")
    return Record(
        case=case.name,
        kernel=case.kernel,
        parameters=dict(case.parameters),
        tokens=case.tokens,
        backend=job.backend,
        digest=job.digest,
        setting=job.setting,
        steps=tuple(told.steps),
        counts=told.values.get("counts", {}),
        functions=tuple(told.values.get("functions", ())),
        modelled=ModelledTime(**modelled) if modelled is not None else None,
    )


def _ended(status: int | None, told: Told) -> str:
    """What went wrong with a process that has told nothing of it; empty if nothing did."""
    if status is not None and status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    if status or not told.done:
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
