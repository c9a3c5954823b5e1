"""What a process tells of its cases: a line of JSON when a case or a stage starts and when it ends, so that nothing is lost with it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilelang_pto.cli.loading import explain
from tilelang_pto.compare.records import FAILED, NOT_TRIED, OK, Step
from tilelang_pto.errors import PtoError
from tilelang_pto.settings import debugging

__all__ = ["Failed", "Progress", "Told", "read_progress", "said"]


class Failed(Exception):
    """A stage failed; it has been told."""


class Progress:
    """Writes the file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def _write(self, **line: Any) -> None:
        self._file.write(json.dumps(line) + "\n")

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """A case; what is told inside is about it.

        Raises:
            Failed: a stage failed, and the case has ended with it.
        """
        self._write(case=name)
        try:
            yield
        finally:
            self._write(done=name)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A stage; an exception in it ends the case.

        Raises:
            Failed: instead of any exception.
        """
        self._write(start=name)
        started = time.monotonic()
        try:
            yield
        except Exception as error:
            if debugging():
                raise
            self.ended(name, FAILED, said(error), time.monotonic() - started)
            raise Failed(name) from error
        self.ended(name, OK, "", time.monotonic() - started)

    def ended(self, stage: str, status: str, detail: str = "", seconds: float = 0.0) -> None:
        """A stage has ended."""
        self._write(end=stage, status=status, detail=detail, seconds=round(seconds, 3))

    def went_well(self, *stages: str) -> None:
        """Stages there was nothing to do for."""
        for stage in stages:
            self.ended(stage, OK)

    def not_tried(self, reason: str, *stages: str) -> None:
        """Stages nobody tries, and why."""
        for stage in stages:
            self.ended(stage, NOT_TRIED, reason)

    def found(self, **values: Any) -> None:
        """Fields of the case's :class:`~tilelang_pto.compare.records.Record`."""
        self._write(found=values)


def said(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, PtoError):
        return " ".join("; ".join((error.what, *(f"in {place}" for place in error.where))).split())
    return explain(error, "error")


class Told:
    """What a file says of a case.

    Attributes:
        steps: stages that ended.
        running: the stage that has started and not ended, empty if there is none.
        values: fields of the record.
        done: the process has come to the end of the case.
    """

    def __init__(self) -> None:
        self.done = False
        self.steps: list[Step] = []
        self.running = ""
        self.values: dict[str, Any] = {}

    @property
    def failed(self) -> bool:
        """Whether a stage did."""
        return any(step.status == FAILED for step in self.steps)


def read_progress(path: Path) -> list[Told]:
    """Read a file, whose last line may be cut off; the cases in their order."""
    cases: list[Told] = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if "case" in value:
            cases.append(Told())
            continue
        told = cases[-1]
        if "start" in value:
            told.running = value["start"]
        elif "end" in value:
            told.steps.append(Step(value["end"], value["status"], value["detail"], value["seconds"]))
            told.running = ""
        elif "done" in value:
            told.done = True
        else:
            told.values.update(value["found"])
    return cases
