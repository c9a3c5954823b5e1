"""From launches to the time of calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilelang_pto.compare.msprof.files import summaries
from tilelang_pto.compare.msprof.tables import MsprofError, read_op_statistic, read_op_summary

__all__ = ["CallSamples", "samples_of"]

#: What a name may have behind it in the profiler's tables: a number, the kind of core.
_SUFFIX = r"(?:_\d+)?(?:_mix_ai[cv])?"


@dataclass(frozen=True, slots=True)
class CallSamples:
    """Microseconds of calls, warm-up left out; one mean over all calls, warm-up included, where the source is ``op_statistic``."""

    microseconds: tuple[float, ...]
    source: str


def samples_of(output: Path, functions: Sequence[str], warm_up: int, calls: int) -> CallSamples:
    """Time of each call of a kernel that was profiled alone.

    Args:
        output: the directory ``msprof`` has written to.
        functions: the device functions of the kernel; a call may launch each several times.
        warm_up: calls before those that count.
        calls: calls that count.

    Raises:
        MsprofError: files are missing or damaged, or have not as many launches as were made.
    """
    tables = summaries(output)
    matchers = [_matcher(function, functions) for function in functions]
    seen: list[str] = []

    def wanted(name: str) -> bool:
        seen.append(name)
        return any(matcher.fullmatch(name) for matcher in matchers)

    if tables.op_summary:
        launches = [launch for path in tables.op_summary for launch in read_op_summary(path, wanted)]
        launches.sort(key=lambda launch: launch.start)
        times = [0.0] * calls
        for function, matcher in zip(functions, matchers, strict=True):
            mine = [launch.microseconds for launch in launches if matcher.fullmatch(launch.name)]
            each = _check(function, len(mine), warm_up + calls, seen)
            for call in range(calls):
                first = (warm_up + call) * each
                times[call] += sum(mine[first : first + each])
        return CallSamples(tuple(times), "op_summary")
    totals = [total for path in tables.op_statistic for total in read_op_statistic(path, wanted)]
    mean = 0.0
    for function, matcher in zip(functions, matchers, strict=True):
        of_function = [total for total in totals if matcher.fullmatch(total.name)]
        _check(function, sum(total.count for total in of_function), warm_up + calls, seen)
        mean += sum(total.microseconds for total in of_function) / (warm_up + calls)
    return CallSamples((mean,), "op_statistic")


def _matcher(function: str, functions: Sequence[str]) -> re.Pattern[str]:
    others = "".join(f"(?!{re.escape(other)}$)" for other in functions if other != function)
    return re.compile(f"{others}{re.escape(function)}{_SUFFIX}")


def _check(function: str, launches: int, calls: int, seen: Iterable[str]) -> int:
    """Launches for each call."""
    if not launches or launches % calls:
        names = list(dict.fromkeys(seen))
        known = f"; it has {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}" if not launches else ""
        raise MsprofError(f"msprof has {launches} launches of {function} for {calls} calls{known}", advice="profile again")
    return launches // calls
