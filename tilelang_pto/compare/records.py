"""Results of a comparison: one record for each case and backend, kept as lines of JSON so that an interrupted run goes on.

A file is only ever appended to. A last line that was cut off is dropped when the file is read.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilelang_pto.compare.modelled import ModelledTime
from tilelang_pto.errors import ConfigurationError

__all__ = ["BACKENDS", "STAGES", "Record", "RecordFile", "Step"]

BACKENDS = ("ascend", "pto")

#: What is done with a case, in this order; a stage is tried if those before it went well, or if it does not need them.
STAGES = ("load", "trace", "text", "count", "compile", "run", "numbers", "model", "time")

OK, FAILED, NOT_TRIED = "ok", "failed", "not tried"


@dataclass(frozen=True, slots=True)
class Step:
    """How a stage ended.

    Attributes:
        stage: one of :data:`STAGES`.
        status: ``ok``, ``failed`` or ``not tried``.
        detail: the error in one line, or why the stage was not tried.
        seconds: how long it took.
    """

    stage: str
    status: str
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a case with a backend.

    Attributes:
        case: name of the case.
        kernel: its kernel.
        parameters: its sizes.
        tokens: rows it works on.
        backend: ``ascend`` or ``pto``.
        digest: of the suite and the package.
        setting: where it ran: ``sim`` or ``npu``; ``static`` if only texts were made.
        steps: stages in their order.
        counts: static counts of the text, empty if it could not be counted.
        functions: names of the device functions.
        modelled: time of one call by the simulator's timing model, and what it goes on.
        samples: microseconds of measured calls, one list for each round.
        source: what the samples were read from.
    """

    case: str
    kernel: str
    parameters: dict[str, int | str]
    tokens: int
    backend: str
    digest: str
    setting: str
    steps: tuple[Step, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    modelled: ModelledTime | None = None
    samples: tuple[tuple[float, ...], ...] = ()
    source: str = ""

    def step(self, stage: str) -> Step:
        """How a stage ended; a stage nobody came to was not tried, because of the first error."""
        for step in self.steps:
            if step.stage == stage:
                return step
        error = self.error
        return Step(stage, NOT_TRIED, f"{error.stage} failed" if error is not None else "")

    @property
    def error(self) -> Step | None:
        """The first stage that failed."""
        return next((step for step in self.steps if step.status == FAILED), None)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Record:
        """A record from its line.

        Raises:
            ValueError: the line is none.
        """
        try:
            values: dict[str, Any] = json.loads(text)
            values["steps"] = tuple(Step(**step) for step in values["steps"])
            values["functions"] = tuple(values["functions"])
            values["samples"] = tuple(tuple(map(float, samples)) for samples in values["samples"])
            values["modelled"] = ModelledTime(**values["modelled"]) if values["modelled"] is not None else None
            return cls(**values)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"not a record: {error}") from error


class RecordFile:
    """The records of a run in a file; later records of a case and backend replace earlier ones."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: dict[tuple[str, str], Record] = {}
        self._read()

    def _read(self) -> None:
        if not self.path.exists():
            return
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be read: {error.strerror}", advice="another directory, with --out") from error
        whole = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(whole.decode(errors="replace").splitlines(), 1):
            try:
                record = Record.from_json(line)
            except ValueError as error:
                raise ConfigurationError(
                    f"{self.path}:{number} is no record of a comparison",
                    where=(str(error),),
                    advice="--fresh starts again, --out names another directory",
                ) from error
            self._records[record.case, record.backend] = record
        if len(whole) < len(data):  # cut off: the next record must not continue this line
            with self.path.open("r+b") as file:
                file.truncate(len(whole))

    def add(self, record: Record) -> None:
        """Append a record and have it on the disk."""
        self._records[record.case, record.backend] = record
        with self.path.open("a", encoding="utf-8") as file:
            file.write(record.to_json() + "\n")

    def find(self, case: str, backend: str, digest: str, setting: str) -> Record | None:
        """The record of a case and backend, if it is of the same suite and package and ran in the same place."""
        record = self._records.get((case, backend))
        return record if record is not None and (record.digest, record.setting) == (digest, setting) else None

    def of(self, cases: Iterable[str]) -> list[Record]:
        """The records of these cases, in their order, those of ``ascend`` first."""
        return [self._records[case, backend] for case in cases for backend in BACKENDS if (case, backend) in self._records]
