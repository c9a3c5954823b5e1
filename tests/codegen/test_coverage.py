"""``docs/coverage.md`` says what the registries say, and every operation in it is used by a test."""

from __future__ import annotations

from pathlib import Path

from tilelang_pto.codegen.coverage import coverage_table, files_naming, operation_tests, words_of
from tilelang_pto.codegen.registry import OP_RULES

ROOT = Path(__file__).resolve().parents[2]
TESTS = operation_tests()


def test_the_file_is_up_to_date():
    wanted = coverage_table(TESTS)
    assert (ROOT / "docs" / "coverage.md").read_text() == wanted, "run: python -m tilelang_pto.codegen.coverage docs/coverage.md"


def test_every_operation_has_a_test():
    coverage_table(TESTS)  # loads all rules
    words = {path.name: words_of(path.read_text()) for path in TESTS}
    assert [name for name, rule in OP_RULES.items() if not files_naming(rule, words)] == []
