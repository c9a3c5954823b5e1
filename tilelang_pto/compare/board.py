"""Measuring on a board: each case in rounds, the backends in turns, every turn in a process of its own under the profiler."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilelang_pto.compare.case import Case
from tilelang_pto.compare.msprof import CallSamples, MsprofError, profile, samples_of
from tilelang_pto.compare.progress import said
from tilelang_pto.compare.records import FAILED, OK, Record, RecordFile, Step
from tilelang_pto.compare.suite import Suite
from tilelang_pto.errors import PtoError

__all__ = ["Measuring", "measure"]

_ROOT = Path(__file__).resolve().parents[2]
_PIN = "ASCEND_RT_VISIBLE_DEVICES"
_SCRIPT = """import sys
sys.path.insert(0, {root!r})
from tilelang_pto.compare.calls import main
main({job!r})
"""


@dataclass(frozen=True)
class Measuring:
    """How cases are measured.

    Attributes:
        msprof: the profiler.
        rounds: turns of each backend.
        warm_up: calls at the start of a turn that do not count.
        calls: calls of a turn that count.
        npu: the number of the one NPU processes may see.
        timeout: seconds for a turn.
        seed: of the arguments.
        device: torch device of the arguments.
        options: more options of the profiler.
    """

    msprof: Path
    rounds: int = 5
    warm_up: int = 3
    calls: int = 20
    npu: int = 0
    timeout: float = 600.0
    seed: int = 0
    device: str = "npu"
    options: tuple[str, ...] = ()


def measure(
    suite: Suite,
    cases: Sequence[Case],
    records: RecordFile,
    how: Measuring,
    backends: Sequence[str],
    setting: str,
    tell: Callable[[str], None],
) -> None:
    """Measure the cases whose numbers are right and that are not measured yet, and add that to their records.

    The backends of a case take turns: A B, B A, A B, ..., so that a drift of the clock or temperature meets both. A turn that fails ends
    the measurement of its backend, not of the other.
    """
    for case in cases:
        found = {backend: records.find(case.name, backend, suite.digest, setting) for backend in backends}
        ready = {
            backend: record
            for backend, record in found.items()
            if record is not None and record.error is None and record.step("numbers").status == OK and len(record.samples) < how.rounds
        }
        if not ready:
            continue
        rounds: dict[str, list[tuple[float, ...]]] = {backend: [] for backend in ready}
        failed: dict[str, str] = {}
        sources: dict[str, str] = {}
        for number in range(how.rounds):
            for backend in list(ready) if number % 2 == 0 else list(reversed(ready)):
                if backend in failed:
                    continue
                try:
                    sample = _turn(suite, case, backend, how)
                except PtoError as error:
                    failed[backend] = said(error)
                    continue
                rounds[backend].append(sample.microseconds)
                sources[backend] = sample.source
        for backend, record in ready.items():
            records.add(_measured(record, rounds[backend], sources.get(backend, ""), failed.get(backend)))
            tell(f"{backend:6} {case.name}: " + (f"time failed: {failed[backend]}" if backend in failed else f"{how.rounds} rounds"))


def _measured(record: Record, rounds: Sequence[tuple[float, ...]], source: str, failed: str | None) -> Record:
    step = Step("time", OK) if failed is None else Step("time", FAILED, failed)
    steps = (*(step for step in record.steps if step.stage != "time"), step)
    return dataclasses.replace(record, steps=steps, samples=tuple(rounds) if failed is None else (), source=source)


def _turn(suite: Suite, case: Case, backend: str, how: Measuring) -> CallSamples:
    """Calls of one backend under the profiler."""
    with tempfile.TemporaryDirectory(prefix="tilelang-pto-msprof-") as name:
        folder = Path(name)
        job, note, script, output = (folder / part for part in ("job.json", "note.json", "calls.py", "profile"))
        output.mkdir()
        fields = {"suite": _absolute(suite.name), "case": case.name, "backend": backend, "seed": how.seed, "device": how.device}
        job.write_text(json.dumps({**fields, "warm_up": how.warm_up, "calls": how.calls, "note": str(note)}))
        # A file, for `python -m ...` would hand the profiler an argument that starts with a dash.
        script.write_text(
            f"import sys\nsys.path.insert(0, {str(_ROOT)!r})\nfrom tilelang_pto.compare.calls import main\nmain({str(job)!r})\n"
        )
        printed = profile(
            how.msprof, [sys.executable, str(script)], output, timeout=how.timeout, environment=_environment(how), options=how.options
        )
        if not note.exists():
            lines = [line.strip() for line in printed.splitlines() if line.strip()] or ["nothing"]
            raise MsprofError(f"the calls under msprof did not come to their end; the last thing printed: {lines[-1]}")
        return samples_of(output, json.loads(note.read_text())["functions"], how.warm_up, how.calls)


def _environment(how: Measuring) -> Mapping[str, str]:
    values = {**os.environ, _PIN: str(how.npu), "TILELANG_PRINT_ON_COMPILATION": "0"}
    values["TILELANG_PTO_DEVICE"] = "npu" if how.device == "npu" else "sim"
    return values


def _absolute(suite: str) -> str:
    """The suite's file by its whole path: the profiler may start the calls elsewhere."""
    return str(Path(suite).resolve()) if suite.endswith(".py") else suite
