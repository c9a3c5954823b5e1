"""Going through the cases of a suite, with what an earlier run has left."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
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
    """Run what ``records`` does not have yet, and add it there. Cases that share a compiled kernel are done together.

    Args:
        suite: the suite of the cases.
        cases: those to run.
        records: results up to now.
        options: how.
        tell: called after each with its number, how many there are to run, and the record.
    """
    missing: dict[tuple[Hashable, str], list[Case]] = {}
    for case in cases:
        for backend in options.backends:
            if records.find(case.name, backend, suite.digest, options.setting) is None:
                missing.setdefault((case.compiled_as, backend), []).append(case)
    total = sum(map(len, missing.values()))
    context = process_context(options.setting)
    threads = max(1, (os.cpu_count() or 1) // options.jobs)
    lock, stop, done = Lock(), Event(), 0

    def recorded(record: Record) -> None:
        nonlocal done
        with lock:
            records.add(record)
            done += 1
            tell(done, total, record)

    def one(work: tuple[tuple[Hashable, str], list[Case]]) -> None:
        (_, backend), group = work
        nowhere = Path()
        job = Job(
            suite=suite.name,
            cases=(),
            backend=backend,
            digest=suite.digest,
            setting=options.setting,
            seed=options.seed,
            texts=options.directory / _TEXTS,
            progress=nowhere,
            log=nowhere,
            threads=threads,
            environment=dict(os.environ),
        )
        run_isolated(job, group, options.timeout, context, stop, recorded)

    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        try:
            for _ in pool.map(one, missing.items()):
                pass
        except BaseException:
            stop.set()  # processes of their own groups do not see the interrupt of this one
            pool.shutdown(wait=False, cancel_futures=True)
            raise
