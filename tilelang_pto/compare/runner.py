"""Going through the cases of a suite, with what an earlier run has left."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

from tilelang_pto.compare.case import Case
from tilelang_pto.compare.child import Job
from tilelang_pto.compare.isolation import process_context, run_isolated
from tilelang_pto.compare.records import Record, RecordFile
from tilelang_pto.compare.suite import Suite

__all__ = ["Options", "run_cases"]

_TEXTS = "texts"


@dataclass(frozen=True)
class Options:
    """How cases are run.

    Attributes:
        directory: for emitted texts.
        setting: ``sim``, ``npu`` or ``static``.
        timeout: seconds a case may take.
        jobs: processes at a time.
        seed: of the arguments.
        backends: which to run.
    """

    directory: Path
    setting: str
    timeout: float
    jobs: int
    seed: int
    backends: Sequence[str]


def run_cases(suite: Suite, cases: Sequence[Case], records: RecordFile, options: Options, tell: Callable[[int, int, Record], None]) -> None:
    """Run what ``records`` does not have yet, and add it there.

    Args:
        suite: the suite of the cases.
        cases: those to run.
        records: results up to now.
        options: how.
        tell: called after each with its number, how many there are to run, and the record.
    """
    missing = [
        (case, backend)
        for case in cases
        for backend in options.backends
        if records.find(case.name, backend, suite.digest, options.setting) is None
    ]
    context = process_context(options.setting)
    lock, stop, done = Lock(), Event(), 0

    def one(work: tuple[Case, str]) -> None:
        nonlocal done
        case, backend = work
        nowhere = Path()
        job = Job(
            suite=suite.name,
            case=case.name,
            backend=backend,
            digest=suite.digest,
            setting=options.setting,
            seed=options.seed,
            texts=options.directory / _TEXTS,
            progress=nowhere,
            log=nowhere,
            environment=dict(os.environ),
        )
        record = run_isolated(job, case, options.timeout, context, stop)
        if record is None:
            return
        with lock:
            records.add(record)
            done += 1
            tell(done, len(missing), record)

    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        try:
            for _ in pool.map(one, missing):
                pass
        except BaseException:
            stop.set()  # processes of their own groups do not see the interrupt of this one
            pool.shutdown(wait=False, cancel_futures=True)
            raise
