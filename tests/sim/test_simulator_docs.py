"""docs/simulator.md says what is so."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from pathlib import Path

import numpy as np
from sync_kernels import RACY

from tilelang_pto import pytest_plugin, sim

pytest_plugins = ["pytester"]

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "simulator.md").read_text()


def test_the_finding_is_what_the_simulator_says():
    program = sim.record_module(RACY, "double.pto.py")
    a, c = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    with sim.session(race="report") as s:
        sim.run(program, "double", a, c, grid=2)
    block = re.search(r"## How to read a finding\n\n```\n(.*?)```", DOCS, re.DOTALL)
    assert block is not None

    def without_count(text: str) -> str:
        return re.sub(r"found \d+ times", "found N times", text)

    assert without_count(textwrap.indent(block[1], "    ")) in without_count(s.report.summary())


def test_the_table_of_options_is_complete():
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", DOCS.split("## Options of a session")[1].split("## ")[0], re.MULTILINE)
    fields = dataclasses.fields(sim.SimOptions)
    assert [name for name, _ in rows] == [field.name for field in fields]
    for (_, values), field in zip(rows, fields, strict=True):
        default = f"{field.default:,}".replace(",", " ") if field.name == "max_events" else str(field.default)
        assert default in values


def test_the_options_of_the_plugin(pytester):
    names = set(re.findall(r"`(--pto-[a-z]+)", DOCS))
    parser = pytester.parseconfig("-p", pytest_plugin.__name__)._parser
    group = next(group for group in parser._groups if group.name == "tilelang-pto")
    assert names == {name for option in group.options for name in option.names()}
