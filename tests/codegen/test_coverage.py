"""``docs/coverage.md`` says what the registries say; every operation has a test and is simulated, none of the census is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from tvm import tirx

from tilelang_pto.codegen import census
from tilelang_pto.codegen.coverage import coverage_table, files_naming, load_rules, operation_tests, words_of
from tilelang_pto.codegen.registry import CONSTANT, EXPRESSION_RULES, OP_RULES, STATEMENT_RULES, op
from tilelang_pto.sim.executed import executed_calls

ROOT = Path(__file__).resolve().parents[2]
TESTS = operation_tests()

load_rules()


def test_the_file_is_up_to_date():
    wanted = coverage_table(TESTS, executed_calls())
    assert (ROOT / "docs" / "coverage.md").read_text() == wanted, "run: python -m tilelang_pto.codegen.coverage docs/coverage.md"


def test_every_operation_has_a_test():
    words = {path.name: words_of(path.read_text()) for path in TESTS}
    assert [name for name, rule in OP_RULES.items() if not files_naming(rule, words)] == []


def test_the_simulator_executes_what_rules_emit():
    executed = executed_calls()
    assert {name: missing for name, rule in OP_RULES.items() if (missing := set(rule.emits) - executed)} == {}


def test_a_call_that_is_not_executed_shows_in_the_table():
    table = coverage_table([], executed_calls() - {"vadd", "vcmp"})
    assert "no: vadd" in next(line for line in table.splitlines() if line.startswith("| `tl.simd.vadd` "))


@pytest.mark.parametrize("subject", census.OPERATIONS)
def test_the_operations_of_the_census_have_rules(subject):
    assert [name for name in census.OPERATIONS[subject] if name not in OP_RULES] == []


def test_the_nodes_of_the_census_have_rules():
    assert [name for name in census.STATEMENTS if getattr(tirx, name) not in STATEMENT_RULES] == []
    nodes = {kind.__name__ for kind in EXPRESSION_RULES}
    assert [name for name in census.EXPRESSIONS if name not in nodes] == []


def test_names_of_the_census_are_operations_of_tilelang():
    from tvm.ir import Op

    names = [name for subject in census.OPERATIONS.values() for name in subject if not name.startswith("extern:")]
    assert len(names) == len(set(names))
    assert [name for name in names if Op.get(name).name != name] == []


def test_the_table_of_arguments():
    lines = {line.split("`")[1]: line for line in coverage_table([], executed_calls()).splitlines() if line.startswith("| `")}
    assert "a; part: `LOWER`, `HIGHER`" in lines["tl.simd.vpack"]
    assert "mode: `MODE_ZEROING`, `MODE_MERGING`" in lines["tl.simd.vadd"]
    assert "dst in UB; src in GM" in lines["tl.ascend_copy_gm_to_ubuf"]
    assert "[dist" not in lines["tl.simd.vld"] and "[step]" in lines["tl.simd.vld"]
    assert "mode: a constant" in lines["tl.ascend_cross_core_set_flag"]
    assert "| f16, f32 |" in lines["tl.simd.vexp"]


def test_a_restriction_names_a_parameter():
    with pytest.raises(RuntimeError, match="no parameter colour"):

        @op("test.colour", arity=1, literals={"colour": CONSTANT})
        def rule(v, node, shade):
            raise AssertionError

    assert "test.colour" not in OP_RULES
