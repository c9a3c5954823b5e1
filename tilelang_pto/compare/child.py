"""What is done with one case and one backend, in a process of its own."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tilelang

from tilelang_pto.compare import ascendc, checking
from tilelang_pto.compare.case import Case
from tilelang_pto.compare.counts import UncountableError, count_ascendc, count_ptodsl
from tilelang_pto.compare.modelled import modelled_time
from tilelang_pto.compare.progress import Failed, Progress
from tilelang_pto.compare.suite import find_case, load_suite
from tilelang_pto.compare.texts import TextStore, device_functions
from tilelang_pto.errors import ConfigurationError, PtoError, RuntimeModuleError, SimulationError
from tilelang_pto.lowering import emit_function
from tilelang_pto.runtime.tools import find_bisheng

__all__ = ["Job", "run"]

_RUNNING = ("run", "numbers")


@dataclass(frozen=True)
class Job:
    """What a process is to do; everything in it can be sent to one.

    Attributes:
        suite: module or file.
        case: name of the case.
        backend: ``ascend`` or ``pto``.
        digest: of the suite.
        setting: ``sim`` or ``npu``, or ``static``: only texts and their counts.
        seed: of the arguments.
        texts: directory for emitted texts.
        progress: file to tell progress in.
        log: file for what is printed.
        environment: environment variables.
    """

    suite: str
    case: str
    backend: str
    digest: str
    setting: str
    seed: int
    texts: Path
    progress: Path
    log: Path
    environment: dict[str, str] = field(default_factory=dict)


def run(job: Job) -> None:
    """Go through the stages. Runs in a new process, which it makes the leader of a group and whose output goes to the log."""
    os.setsid()
    with job.log.open("wb") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    os.environ.clear()
    os.environ.update(job.environment)
    os.environ["TILELANG_PTO_DEVICE"] = "npu" if job.setting == "npu" else "sim"
    os.environ.setdefault("TILELANG_PRINT_ON_COMPILATION", "0")
    progress = Progress(job.progress)
    try:
        with progress.stage("load"):
            case = find_case(load_suite(job.suite).cases, job.case)
        _Stages(job, case, progress).go()
    except Failed as failed:
        print(failed.__cause__, file=sys.stderr)


class _Stages:
    def __init__(self, job: Job, case: Case, progress: Progress) -> None:
        self.job, self.case, self.progress = job, case, progress
        self.store = TextStore(job.texts, job.digest)

    def go(self) -> None:
        if self.job.setting == "static":
            self.count(self.text())
            self.progress.not_tried("only texts were asked for", "compile", *_RUNNING)
        elif self.job.backend == "pto":
            self.pto()
        else:
            self.ascend()

    def pto(self) -> None:
        kernel = self.compile_pto()
        self.count(kernel.get_kernel_source(kernel_only=True))
        self.call(kernel)
        if self.job.setting == "npu":
            self.progress.not_tried("on a board time is measured", "model")
            return
        with self.progress.stage("model"):
            time = modelled_time(self.case, kernel, self.job.seed)
            if time is not None:
                self.progress.found(modelled_microseconds=time.microseconds)
        if time is None:
            self.progress.not_tried("this simulator has no timing model", "model")

    def compile_pto(self) -> Any:
        """TileLang's compilation ends in our text, which is then built; the error tells which of both it was."""
        function = self.trace()
        building: PtoError | None = None
        with self.progress.stage("text"):
            try:
                kernel = tilelang.compile(function, target="pto", pass_configs=dict(self.case.pass_configs))
            except (RuntimeModuleError, SimulationError) as error:
                building = error
        with self.progress.stage("compile"):
            if building is not None:
                raise building
        return kernel

    def ascend(self) -> None:
        self.count(self.text())
        try:
            find_bisheng()
        except ConfigurationError:
            self.progress.not_tried("no bisheng", "compile", *_RUNNING)
            return
        function = self.case.program()
        with self.progress.stage("compile"):
            kernel = tilelang.compile(function, target="ascend", pass_configs=dict(self.case.pass_configs))
        if self.job.setting == "npu":
            self.call(kernel)
        else:
            self.progress.not_tried("no board", *_RUNNING)

    def text(self) -> str:
        """The text of the backend without building it, from an earlier case if there was one of the same specialisation."""
        kept = self.store.get(self.case, self.job.backend)
        if kept is not None:
            self.progress.ended("trace", "ok")
            self.progress.ended("text", "ok")
            return kept
        function = self.trace()
        with self.progress.stage("text"):
            if self.job.backend == "pto":
                return emit_function(function, pass_configs=self.case.pass_configs).text
            return ascendc.ascendc_text(function, self.case.pass_configs)

    def trace(self) -> Any:
        with self.progress.stage("trace"):
            return self.case.program()

    def count(self, text: str) -> None:
        self.store.put(self.case, self.job.backend, text)
        self.progress.found(functions=device_functions(text, self.job.backend))
        try:
            counts = count_ptodsl(text) if self.job.backend == "pto" else count_ascendc(text)
        except (UncountableError, ConfigurationError) as error:
            self.progress.not_tried(str(error).splitlines()[0], "count")
            return
        self.progress.found(counts=counts.as_dict())
        self.progress.ended("count", "ok")

    def call(self, kernel: Any) -> None:
        device = "npu" if self.job.setting == "npu" else "cpu"
        with self.progress.stage("run"):
            given = list(self.case.inputs(self.job.seed))
            first, problems = checking.call_guarded(self.case, kernel, given, device)
        with self.progress.stage("numbers"):
            problems += checking.problems_of_outputs(self.case, kernel, given, first, device)
            if problems:
                raise checking.WrongNumbersError("; ".join(problems))
