"""Statistics of times and counts: per case, and over groups of cases."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["GroupStatistics", "TimeStatistics", "geometric_mean", "group", "grouped", "ratio", "time_statistics"]


@dataclass(frozen=True, slots=True)
class TimeStatistics:
    """Times of one case and backend, in microseconds.

    Attributes:
        calls: how many.
        mean: arithmetic mean.
        median: median.
        cv: coefficient of variation, the standard deviation of the calls divided by their mean; None for a single call.
        round_cv: the same of the means of the rounds.
    """

    calls: int
    mean: float
    median: float
    cv: float | None
    round_cv: float | None


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """Ratios of several cases.

    Attributes:
        name: what the cases have in common.
        cases: how many there are to compare.
        mean: arithmetic mean of the ratios.
        median: median of the ratios.
        geometric_mean: their geometric mean.
        wins: cases with a ratio below 1.
        worst: the largest ratio.
    """

    name: str
    cases: int
    mean: float
    median: float
    geometric_mean: float
    wins: int
    worst: float


def time_statistics(rounds: Sequence[Sequence[float]]) -> TimeStatistics | None:
    """Statistics of calls in rounds; None without any call."""
    rounds = [samples for samples in rounds if samples]
    calls = [time for samples in rounds for time in samples]
    if not calls:
        return None
    means = [statistics.fmean(samples) for samples in rounds]
    return TimeStatistics(len(calls), statistics.fmean(calls), statistics.median(calls), _variation(calls), _variation(means))


def ratio(ours: float | None, theirs: float | None) -> float | None:
    """``ours / theirs``; None where one is missing or not positive."""
    return ours / theirs if ours is not None and theirs is not None and ours > 0 and theirs > 0 else None


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive numbers; NaN of none."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else math.nan


def group(name: str, ratios: Sequence[float]) -> GroupStatistics | None:
    """Statistics of ratios; None of none."""
    if not ratios:
        return None
    return GroupStatistics(
        name,
        len(ratios),
        statistics.fmean(ratios),
        statistics.median(ratios),
        geometric_mean(ratios),
        sum(value < 1 for value in ratios),
        max(ratios),
    )


def grouped(pairs: Iterable[tuple[str, float]], order: Callable[[str], int] | None = None) -> list[GroupStatistics]:
    """Statistics of each name among pairs of names and ratios, sorted by ``order``, else as they come."""
    ratios: dict[str, list[float]] = {}
    for name, value in pairs:
        ratios.setdefault(name, []).append(value)
    found = (group(name, ratios[name]) for name in (sorted(ratios, key=order) if order is not None else ratios))
    return [statistics for statistics in found if statistics is not None]


def _variation(values: Sequence[float]) -> float | None:
    mean = statistics.fmean(values)
    return statistics.stdev(values) / mean if len(values) > 1 and mean else None
