"""Writes ``docs/coverage.md``: which TIR operations have a rule, where they may stand, what they become, what tests them.

``python -m tilelang_pto.codegen.coverage docs/coverage.md`` writes the file; a test compares it with the registries.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from . import rules
from .registry import EXPRESSION_RULES, OP_RULES, STATEMENT_RULES, OpRule

__all__ = ["coverage_table", "files_naming", "words_of"]

HEAD = """# Coverage

Operations with a rule, from the registries (`python -m tilelang_pto.codegen.coverage docs/coverage.md` writes this file). Everything
else is refused with an `UnsupportedError` that names it. Regions: *scalar* is the kernel body, *simd* and *simt* are vector functions.
Element types an operation does not take are refused too, with the types it takes. *Tests* are the files under `tests/`
(`tests/kernels/`, whole kernels of a package, aside) that name the operation or another name of its rule.
"""


def _load() -> None:
    for module in pkgutil.iter_modules(rules.__path__):
        importlib.import_module(f"{rules.__name__}.{module.name}")


def operation_tests() -> list[Path]:
    """The files under ``tests/`` that may name operations.

    Those in ``kernels/`` run kernels of a package, and their words are torch's; those in ``benchmarks/`` only read texts.
    """
    tests = Path(__file__).resolve().parents[2] / "tests"
    other = {tests / "kernels", tests / "benchmarks"}
    return sorted(path for path in tests.rglob("*.py") if other.isdisjoint(path.parents))


def words_of(text: str) -> frozenset[str]:
    """Names a test uses to say which operation it means: attributes (``T.exp``), imported names and words of string literals.

    Python's own names are left out (``print``, ``math.floor`` and ``np.exp`` are no operations of TIR), and so are docstrings but for what
    follows ``Operations:`` in that of the module, where a test that composes the names spells them out.
    """
    module = ast.parse(text)
    _, _, declared = (ast.get_docstring(module) or "").partition("Operations:")
    words = set(re.findall(r"\w+", declared))
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("math", "np")):
                words.add(node.attr)
        elif isinstance(node, ast.alias):
            words.add(node.name)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = None
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.update(re.findall(r"\w+", node.value))
    return frozenset(words)


def files_naming(rule: OpRule, words: dict[str, frozenset[str]]) -> list[str]:
    """Test files that name an operation, or another name of the same rule, without the prefix of its namespace."""
    names = {_short(other.name) for other in OP_RULES.values() if other.function is rule.function or other.name == rule.name}
    return sorted(name for name, used in words.items() if names & used)


def _short(name: str) -> str:
    return name.removeprefix("extern:").removeprefix("tl::").rpartition(".")[2]


def coverage_table(test_files: Iterable[Path]) -> str:
    """The text of ``docs/coverage.md``."""
    _load()
    words = {path.name: words_of(path.read_text()) for path in test_files}
    lines = [HEAD, "## Operations", "", "| operation | family | regions | arguments | PTODSL | tests |", "|---|---|---|---|---|---|"]
    for name in sorted(OP_RULES):
        rule = OP_RULES[name]
        arity = " or ".join(str(count) for count in rule.arity) or "any"
        emits = ", ".join(f"`{call}`" for call in rule.emits) or "operators"
        tests = ", ".join(f"`{test}`" for test in files_naming(rule, words))
        regions = "all" if len(rule.regions) == 3 else ", ".join(rule.regions)
        lines.append(f"| `{name}` | {rule.family} | {regions} | {arity} | {emits} | {tests} |")
    lines += ["", "## Statements and expressions", ""]
    for title, table in (("Statements", STATEMENT_RULES), ("Expressions", EXPRESSION_RULES)):
        names = sorted(kind.__name__ for kind in table)
        lines.append(f"{title}: " + ", ".join(f"`{name}`" for name in names) + ".")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the table to the file named on the command line."""
    Path(sys.argv[1]).write_text(coverage_table(operation_tests()))


if __name__ == "__main__":
    main()
