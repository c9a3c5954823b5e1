"""How many missing synchronisations the simulator's check reports.

Every kernel runs unmodified under the full check (which must find nothing, and the result must be right), then once for each of its
synchronisations without it. A mutant the check finds nothing in has to be redundant: that is decided by an argument of its own about a
trace of the kernel (redundancy.py). The score is the share of those that were found among those not shown to be redundant.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from captured_launches import Launch, leave
from command_trace import Event, TraceError, trace_block
from mutation_kernels import Kernel, kernels
from redundancy import Verdict, judge
from sync_mutants import Mutant, mutants, without

import tilelang_pto.sim as sim
from tilelang_pto import _native
from tilelang_pto.errors import SimulationError
from tilelang_pto.sim.program import Program, parse

__all__ = ["Score", "findings_of", "score_launch"]


@dataclass
class Score:
    """What became of the mutants of a kernel.

    Attributes:
        name: of the kernel.
        findings: of the unmodified kernel; there must be none, and they do not count for a mutant.
        killed: number of mutants found, by kind of the first finding.
        redundant: mutants not found, with the reason they change nothing.
        unexplained: mutants not found that are not known to be redundant.
    """

    name: str
    findings: list[Found] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)
    redundant: list[tuple[Mutant, str]] = field(default_factory=list)
    unexplained: list[tuple[Mutant, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.needed + len(self.redundant)

    @property
    def needed(self) -> int:
        """Mutants that are not redundant."""
        return sum(self.killed.values()) + len(self.unexplained)


class Found(NamedTuple):
    """Something the check found: what it is, and the lines it is about."""

    kind: str
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}, lines {', '.join(map(str, self.lines))}" if self.lines else self.kind


def findings_of(launch: Launch, program: Program, *, same_result: bool = False) -> list[Found]:
    """What the full check finds in a launch, an error that stops it included.

    Args:
        launch: arguments and grid.
        program: what runs.
        same_result: also find other results than those of the launch.
    """
    arguments = [value.copy() if isinstance(value, np.ndarray) else value for value in launch.arguments]
    stopped: list[Found] = []
    with sim.session(check="full", race="report") as session:
        try:
            _native.sim_launch(program.serialize(), launch.kernel, arguments, grid=launch.grid, text=program.text)
        except SimulationError as error:
            stopped.append(Found(_kind_of(error)))
    found = [
        Found(each.kind, tuple(place.line for place in (each.first, each.second) if place)) for each in session.report.findings
    ] + stopped
    if same_result and not found and not all(_same(*pair) for pair in zip(arguments, launch.after, strict=True)):
        found.append(Found("wrong result"))
    return found


def _kind_of(error: SimulationError) -> str:
    text = str(error)
    for word in ("deadlock", "left set", "set again", "set more than", "released", "taken"):
        if word in text:
            return word
    return text.splitlines()[0][:60]


def _same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else one == other


def score_launch(name: str, launch: Launch) -> Score:
    """Run all mutants of one launch."""
    score = Score(name, findings_of(launch, launch.program, same_result=True))
    program, kernel = launch.program, launch.kernel
    blocks = [trace_block(program, kernel, launch.arguments, launch.grid, block, accesses=False) for block in range(launch.grid)]
    survivors = []
    for mutant in mutants(program, kernel, blocks):
        found = [each for each in findings_of(launch, without(program, kernel, mutant)) if each not in score.findings]
        if found:
            score.killed[found[0].kind] += 1
        else:
            survivors.append(mutant)
    if survivors:
        full = _full_trace(launch)
        for mutant in survivors:
            verdict = Verdict(False, full) if isinstance(full, str) else judge(mutant, full)
            (score.redundant if verdict.redundant else score.unexplained).append((mutant, verdict.reason))
    return score


def _full_trace(launch: Launch) -> list[Mapping[str, Sequence[Event]]] | str:
    try:
        return [trace_block(launch.program, launch.kernel, launch.arguments, launch.grid, block) for block in range(launch.grid)]
    except TraceError as error:
        return f"not traced: {error}"


def _kept_launch(kernel: Kernel, directory: Path | None) -> Launch:
    path = directory / f"{kernel.name}.pickle" if directory else None
    if path is None or kernel.addresses:
        return kernel.launch()
    if not path.exists():
        launch = kernel.launch()
        path.parent.mkdir(parents=True, exist_ok=True)
        data = launch.program.serialize(), launch.program.text, launch.kernel, launch.arguments, launch.after, launch.grid
        path.write_bytes(pickle.dumps(data))
    data, text, *rest = pickle.loads(path.read_bytes())
    program = parse(data)
    program.text = text
    return Launch(program, *rest)


def row(score: Score) -> str:
    """A line of the table."""
    killed = sum(score.killed.values())
    share = f"{100 * killed / score.needed:6.1f} %" if score.needed else "     -  "
    kinds = ", ".join(f"{count} {kind}" for kind, count in score.killed.most_common())
    clean = "clean" if not score.findings else f"{len(score.findings)} FOUND"
    return f"{score.name:38} {clean:8} {score.total:8} {killed:7} {len(score.redundant):10} {len(score.unexplained):12} {share}   {kinds}"


HEADER = f"{'kernel':38} {'original':8} {'mutants':>8} {'killed':>7} {'redundant':>10} {'unexplained':>12} {'score':>8}   found as"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="kernels with one of these words, separated by commas, in their names")
    parser.add_argument("--launches", type=Path, help="keep compiled kernels and their arguments in this directory, and use those there")
    parser.add_argument("--list", action="store_true", help="only the names of the kernels")
    options = parser.parse_args()
    chosen = [kernel for kernel in kernels() if any(word in kernel.name for word in options.only.split(","))]
    if options.list:
        print("\n".join(kernel.name for kernel in chosen))
        return 0
    print(HEADER, flush=True)
    scores: list[Score] = []
    failed: list[str] = []
    for kernel in chosen:
        started = time.perf_counter()
        try:
            score = score_launch(kernel.name, _kept_launch(kernel, options.launches))
        except Exception as error:  # one kernel that cannot be compiled must not hide the others
            failed.append(kernel.name)
            print(f"{kernel.name:38} not measured: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)
            continue
        scores.append(score)
        print(f"{row(score)}   [{time.perf_counter() - started:.1f} s]", flush=True)
        for finding in score.findings:
            print(f"    original: {finding}")
        for title, entries in (("redundant", score.redundant), ("UNEXPLAINED", score.unexplained)):
            for mutant, reason in entries:
                print(f"    {title}: {mutant.label}: {reason}", flush=True)
    total = Score("all")
    for score in scores:
        total.findings += score.findings
        total.killed += score.killed
        total.redundant += score.redundant
        total.unexplained += score.unexplained
    print(row(total))
    if failed:
        print(f"not measured: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    leave(main())
