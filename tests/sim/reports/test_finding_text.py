"""Findings as text."""

from __future__ import annotations

import dataclasses

import pytest
from report_data import report

from tilelang_pto.errors import FindingError, RaceError
from tilelang_pto.sim.report.finding_text import advice, finding_error, finding_text

KERNEL = report("findings").kernels[0]
RACE, _, CROSS, UNINITIALISED, FLAG = KERNEL.findings


ADVICE = 'T.ascend_set_flag("V_MTE2", id) after the first access, T.ascend_wait_flag("V_MTE2", id) before the second'


def test_a_race_with_both_places():
    assert finding_text(KERNEL, RACE).splitlines() == [
        "race, write after read: no V->MTE2 ordering between them (found 6 times)",
        "  first   scale_kernel.pto.py:17: vlds on pipe V of block 0 reads, execution 1",
        "          pto.vsts(pto.vmuls(pto.vlds(ub, k * 64), 2.0, m), out, k * 64, m)",
        "  second  scale_kernel.pto.py:11: mte_gm_ub on pipe MTE2 of block 0 writes, execution 2",
        "          pto.mte_gm_ub(pto.addptr(a, i * 1024), ub, 0, 4096, nburst=(1, 4096, 4096))",
        "  bytes   UB bytes 0 to 4095",
        f"  instead {ADVICE}",
    ]


@pytest.mark.parametrize(
    ("views", "label"), [("row", "UB (view row) bytes 0 to 4095"), ("row, total", "UB (views row, total) bytes 0 to 4095")]
)
def test_the_buffers_of_a_finding(views, label):
    assert f"  bytes   {label}\n" in finding_text(KERNEL, dataclasses.replace(RACE, views=views))


@pytest.mark.parametrize(("kind", "words"), [("bounds", "a larger buffer"), ("overlap", "bytes of their own")])
def test_what_to_do_about_buffers(kind, words):
    assert words in advice(dataclasses.replace(UNINITIALISED, kind=kind))


def test_a_race_as_an_error():
    assert str(finding_error(KERNEL)).splitlines() == [
        "race, write after read: no V->MTE2 ordering between them (found 6 times)",
        "  in kernel scale_kernel",
        "  in first: scale_kernel.pto.py:17: vlds on pipe V of block 0 reads, execution 1",
        "      pto.vsts(pto.vmuls(pto.vlds(ub, k * 64), 2.0, m), out, k * 64, m)",
        "  in second: scale_kernel.pto.py:11: mte_gm_ub on pipe MTE2 of block 0 writes, execution 2",
        "      pto.mte_gm_ub(pto.addptr(a, i * 1024), ub, 0, 4096, nburst=(1, 4096, 4096))",
        "  in UB bytes 0 to 4095",
        "  in the first of 5 findings",
        f"  instead: {ADVICE}",
    ]


def test_findings_with_one_place():
    text = finding_text(KERNEL, UNINITIALISED)
    assert text.startswith("uninitialised: vlds reads bytes that nothing has written\n  place   scale_kernel.pto.py:17: ")
    assert "UB bytes 8192 to 8447" in text
    text = finding_text(KERNEL, FLAG)
    assert "bytes" not in text
    assert "pto.set_flag" in text


def test_bytes_of_an_argument():
    assert "GM (argument c) bytes 128 to 255" in finding_text(KERNEL, CROSS)


def between(first: dict, second: dict):
    assert RACE.first is not None and RACE.second is not None
    return dataclasses.replace(RACE, first=dataclasses.replace(RACE.first, **first), second=dataclasses.replace(RACE.second, **second))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {"block": 1}, "let each block write bytes of its own"),
        ({"core": "AIC"}, {"core": "AIV1"}, "set on AIC after the first access and awaited on AIV1"),
        ({"thread": 1}, {"thread": 2}, "a barrier of the threads"),
        ({"pipe": "V"}, {"pipe": "V"}, "mem_bar"),
        ({"pipe": "MTE2"}, {"pipe": "MTE2"}, 'T.ascend_pipe_barrier("PIPE_MTE2")'),
        ({"pipe": "MTE2"}, {"pipe": "V"}, 'T.ascend_set_flag("MTE2_V", id)'),
    ],
)
def test_advice_fits_the_two_places(first, second, expected):
    assert expected in advice(between(first, second))


def test_errors():
    error = finding_error(KERNEL)
    assert type(error) is RaceError
    assert error.where[-1] == "the first of 5 findings"
    error = finding_error(dataclasses.replace(KERNEL, findings=(FLAG,)))
    assert type(error) is FindingError
    assert "findings" not in str(error)
