"""Writes ``docs/coverage.md``: which TIR operations have a rule, where they may stand, what they become, what tests them.

``python -m tilelang_pto.codegen.coverage docs/coverage.md`` writes the file; a test compares it with the registries.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

from . import rules
from .caps import memory_name
from .registry import EXPRESSION_RULES, OP_RULES, STATEMENT_RULES, OneOf, OpRule

__all__ = ["coverage_table", "files_naming", "load_rules", "operation_tests", "words_of"]

HEAD = """# Coverage

Operations with a rule, from the registries (`python -m tilelang_pto.codegen.coverage docs/coverage.md` writes this file). Everything
else is refused with an `UnsupportedError` that names it.

* *Regions*: *scalar* is the kernel body, *simd* and *simt* are vector functions.
* *Arguments*: their names in the rule, optional ones in brackets; what an argument that must be a literal may be, and the memory that
  one which must be a pointer points to. `m` is a predicate.
* *Element types*: those the operation takes, by PTODSL's names; *any*: those its other operands and the API state have.
* *Simulator*: whether every PTODSL call the rule writes is recorded and executed.
* *PTODSL*: the calls the rule writes, by their names of September 2026, besides Python's operators.
* *Tests*: the files under `tests/` that name the operation or another name of its rule; whole kernels of a package do not count.
"""

COLUMNS = ("operation", "family", "regions", "arguments", "element types", "simulator", "PTODSL", "tests")


def load_rules() -> None:
    """Fill the registries."""
    for module in pkgutil.iter_modules(rules.__path__):
        importlib.import_module(f"{rules.__name__}.{module.name}")


def operation_tests() -> list[Path]:
    """The files under ``tests/`` that may name operations.

    Those in ``kernels/`` and ``corpus/`` compile kernels of a package, and their words are torch's; those in ``benchmarks/`` only read
    texts.
    """
    tests = Path(__file__).resolve().parents[2] / "tests"
    other = {tests / "kernels", tests / "corpus", tests / "benchmarks"}
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


def coverage_table(test_files: Iterable[Path], executed: Collection[str]) -> str:
    """The text of ``docs/coverage.md``.

    Args:
        test_files: where to look for the names of operations.
        executed: the PTODSL calls that the simulator executes.
    """
    load_rules()
    words = {path.name: words_of(path.read_text()) for path in test_files}
    lines = [HEAD, "## Operations", "", f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for name in sorted(OP_RULES):
        lines.append(f"| {' | '.join(_row(OP_RULES[name], words, executed))} |")
    lines += ["", "## Conversions of vector registers", "", "Control strings of `tl.simd.vcvt` by source and target; the mode follows.", ""]
    lines += ["| from | to | controls |", "|---|---|---|"]
    for (source, controls), targets in _conversions().items():
        lines.append(f"| {source} | {', '.join(targets)} | {controls} |")
    lines += ["", "## Statements and expressions", ""]
    for title, table in (("Statements", STATEMENT_RULES), ("Expressions", EXPRESSION_RULES)):
        names = sorted(kind.__name__ for kind in table)
        lines.append(f"{title}: " + ", ".join(f"`{name}`" for name in names) + ".")
    return "\n".join(lines) + "\n"


def _row(rule: OpRule, words: dict[str, frozenset[str]], executed: Collection[str]) -> tuple[str, ...]:
    missing = [call for call in rule.emits if call not in executed]
    return (
        f"`{rule.name}`",
        rule.family,
        "all" if len(rule.regions) == 3 else ", ".join(rule.regions),
        _arguments(rule),
        ", ".join(rule.dtypes) or "any",
        f"no: {', '.join(missing)}" if missing else "yes",
        ", ".join(f"`{call}`" for call in rule.emits) or "operators",
        ", ".join(f"`{test}`" for test in files_naming(rule, words)),
    )


def _arguments(rule: OpRule) -> str:
    """The parameters of a rule with what it demands of them."""
    shown = []
    for position, parameter in enumerate(rule.parameters):
        name = parameter.removeprefix("*")
        if parameter.startswith("*") and position == 0:
            return f"{' or '.join(str(count) for count in rule.arity)} of any kind"
        legal, space = rule.literals.get(name), rule.spaces.get(name)
        text = name
        if legal is not None:
            text += f": {_values(legal, rule.merges is not None and name == 'mode')}"
        if space is not None:
            text += f" in {memory_name(space)}"
        optional = bool(rule.arity) and position >= min(rule.arity)
        shown.append(f"[{text}]" if optional else text)
    return "; ".join(shown) or "none"


def _values(legal: OneOf, merges: bool) -> str:
    if not legal.values:
        return "a text" if legal.kind is str else "a constant"
    values = [*legal.values, *(["MODE_MERGING"] if merges else [])]
    if len(values) > 2 and values == list(range(len(values))):
        return f"0 to {len(values) - 1}"
    return ", ".join(f"`{value}`" for value in values)


def _conversions() -> dict[tuple[str, str], list[str]]:
    """Targets by source and control strings."""
    from .rules.simd_convert import CONVERSIONS

    found: dict[tuple[str, str], list[str]] = {}
    for (source, target), controls in CONVERSIONS.items():
        found.setdefault((source, ", ".join(controls)), []).append(target)
    return found


def main() -> None:
    """Write the table to the file named on the command line."""
    from tilelang_pto.sim.executed import executed_calls

    Path(sys.argv[1]).write_text(coverage_table(operation_tests(), executed_calls()))


if __name__ == "__main__":
    main()
