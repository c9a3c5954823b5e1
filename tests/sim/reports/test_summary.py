"""The text summary."""

from __future__ import annotations

import dataclasses

import pytest
from report_data import DATA, report

from tilelang_pto.sim import SessionReport
from tilelang_pto.sim.report import numbers
from tilelang_pto.sim.report.groups import group
from tilelang_pto.sim.report.summary import summary


@pytest.mark.parametrize("name", ["clean", "findings", "timed"])
def test_summaries_as_kept(name):
    """``data/NAME.txt`` is what a person gets to read."""
    assert summary(report(name)) == (DATA / f"{name}.txt").read_text()


def test_lines_fit_and_bars_may_be_ascii():
    kernel = report("timed").kernels[0]
    text = summary(SessionReport((dataclasses.replace(kernel, findings=()),)), width=80, ascii_only=True)
    assert text.isascii()
    assert "###############........." in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "..." in text


def test_no_launches():
    assert summary(SessionReport()) == "no kernel was launched\n"


def test_launches_of_one_kernel_are_told_together():
    kernel = report("timed").kernels[0]
    slow = dataclasses.replace(kernel, grid=8, timing=dataclasses.replace(kernel.timing, cycles=2e6, microseconds=1212.0))
    other = report("clean").kernels[0]
    found = SessionReport((kernel, other, slow, kernel))
    assert [len(part.launches) for part in group(found.kernels)] == [3, 1]
    text = summary(found)
    assert "scale_kernel  (3 launches, 2 to 8 blocks; check full, policy late)" in text
    assert "2,000,000 cycles, 1.21 ms at 1.65 GHz (the slowest launch; all of them: 1.22 ms)" in text
    assert "  findings   1\n" in text
    assert "(found 18 times)" in text
    assert text.count("note ") == 1
    assert text.endswith("\n4 launches, 1 finding\n")


def test_findings_are_merged_only_where_their_lines_are_the_same():
    kernel = report("findings").kernels[0]
    first = kernel.findings[0]
    moved = dataclasses.replace(first, first=dataclasses.replace(first.first, line=12))
    found = SessionReport((kernel, dataclasses.replace(kernel, findings=(moved, first))))
    counts = [finding.count for finding in group(found.kernels)[0].findings]
    assert counts == [12, 6, 1, 1, 1, 6]


def test_a_check_that_was_off_does_not_say_none():
    kernel = report("clean").kernels[0]
    off = dataclasses.replace(kernel, options=dataclasses.replace(kernel.options, check="off"))
    assert "findings   none" not in summary(SessionReport((off,)))


def test_cores_that_take_equally_long():
    kernel = report("timed").kernels[0]
    cores = tuple(dataclasses.replace(kernel.timing.cores[0], block=block) for block in range(5))
    found = SessionReport((dataclasses.replace(kernel, timing=dataclasses.replace(kernel.timing, cores=cores)),))
    assert "of the slowest of 5 cores (block 0, as slow as 4 more)" in summary(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (numbers.count(12.0), "12"),
        (numbers.count(12.25), "12.2"),
        (numbers.count(1234567.8), "1,234,568"),
        (numbers.percent(1, 3), "33.3 %"),
        (numbers.percent(1, 0), "-"),
        (numbers.size(0), "0 B"),
        (numbers.size(1536), "1.5 KiB"),
        (numbers.size(1023), "1023 B"),
        (numbers.size(1 << 30), "1 GiB"),
        (numbers.rate(1.6e12, "B"), "1.6 TB/s"),
        (numbers.rate(999.9e9, "B"), "1000 GB/s"),
        (numbers.time(7.519), "7.52 us"),
        (numbers.time(1200), "1.2 ms"),
        (numbers.time(2.5e6), "2.5 s"),
    ],
)
def test_numbers(text, expected):
    assert text == expected


def test_lines_that_take_no_time_are_not_listed():
    kernel = report("timed").kernels[0]
    lines = tuple(dataclasses.replace(line, cycles=0.0) if line.line == 12 else line for line in kernel.timing.lines)
    text = summary(SessionReport((dataclasses.replace(kernel, timing=dataclasses.replace(kernel.timing, lines=lines)),)))
    assert "line 18" in text
    assert "line 12" not in text
