"""What a process does: the cases of one compiled kernel, one after the other, with one backend."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tilelang
import torch

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
        cases: names of cases that share a compiled kernel.
        backend: ``ascend`` or ``pto``.
        digest: of the suite.
        setting: ``sim`` or ``npu``, or ``static``: only texts and their counts.
        seed: of the arguments.
        texts: directory for emitted texts.
        progress: file to tell progress in.
        log: file for what is printed.
        threads: of torch and of the simulator, unless the environment says how many.
        environment: environment variables.
    """

    suite: str
    cases: tuple[str, ...]
    backend: str
    digest: str
    setting: str
    seed: int
    texts: Path
    progress: Path
    log: Path
    threads: int = 1
    environment: dict[str, str] = field(default_factory=dict)


def run(job: Job) -> None:
    """Go through the cases, up to the first that fails: what comes behind it is for another process.

    Runs in a new process, which it makes the leader of a group and whose output goes to the log.
    """
    os.setsid()
    with job.log.open("wb") as log:
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    os.environ.clear()
    os.environ.update(job.environment)
    os.environ["TILELANG_PTO_DEVICE"] = "npu" if job.setting == "npu" else "sim"
    os.environ.setdefault("TILELANG_PRINT_ON_COMPILATION", "0")
    os.environ.setdefault("TILELANG_PTO_THREADS", str(job.threads))
    torch.set_num_threads(job.threads)
    progress = Progress(job.progress)
    stages = _Stages(job, progress)
    try:
        for name in job.cases:
            with progress.case(name):
                with progress.stage("load"):
                    stages.case = find_case(stages.suite().cases, name)
                stages.go()
    except Failed as failed:
        print(failed.__cause__, file=sys.stderr)


class _Stages:
    """The stages of ``case``; what cases share is made by the first of them."""

    case: Case

    def __init__(self, job: Job, progress: Progress) -> None:
        self.job, self.progress = job, progress
        self.store = TextStore(job.texts, job.digest)
        self.suite = functools.cache(lambda: load_suite(job.suite))
        self._kernel: Any = None

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
                self.progress.found(modelled=dataclasses.asdict(time))
        if time is None:
            self.progress.not_tried("this simulator has no timing model", "model")

    def compile_pto(self) -> Any:
        """TileLang's compilation ends in our text, which is then built; the error tells which of both it was."""
        if self._kernel is not None:
            self.progress.went_well("trace", "text", "compile")
            return self._kernel
        function = self.trace()
        building: PtoError | None = None
        with self.progress.stage("text"):
            try:
                self._kernel = tilelang.compile(function, target="pto", pass_configs=dict(self.case.pass_configs))
            except (RuntimeModuleError, SimulationError) as error:
                building = error
        with self.progress.stage("compile"):
            if building is not None:
                raise building
        return self._kernel

    def ascend(self) -> None:
        self.count(self.text())
        try:
            find_bisheng()
        except ConfigurationError:
            self.progress.not_tried("no bisheng", "compile", *_RUNNING)
            return
        if self._kernel is not None:
            self.progress.went_well("compile")
        else:
            function = self.case.program()
            with self.progress.stage("compile"):
                self._kernel = tilelang.compile(function, target="ascend", pass_configs=dict(self.case.pass_configs))
        if self.job.setting == "npu":
            self.call(self._kernel)
        else:
            self.progress.not_tried("no board", *_RUNNING)

    def text(self) -> str:
        """The text of the backend without building it, from an earlier case if there was one of the same specialisation."""
        kept = self.store.get(self.case, self.job.backend)
        if kept is not None:
            self.progress.went_well("trace", "text")
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
        self.progress.went_well("count")

    def call(self, kernel: Any) -> None:
        device = "npu" if self.job.setting == "npu" else "cpu"
        with self.progress.stage("run"):
            given = list(self.case.inputs(self.job.seed))
            first, problems = checking.call_guarded(self.case, kernel, given, device)
        with self.progress.stage("numbers"):
            problems += checking.problems_of_outputs(self.case, kernel, given, first, device)
            if problems:
                raise checking.WrongNumbersError("; ".join(problems))
