"""The README's program is the example, and its commands work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tilelang_pto import cli, settings

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLE = ROOT / "examples" / "vector_add.py"


def program(text: str) -> list[str]:
    """The lines without comments and docstring."""
    lines = [re.sub(r"\s*# .*", "", line) for line in text.splitlines() if not line.startswith(('"""', "#"))]
    return "\n".join(lines).strip().splitlines()


def test_the_program_is_the_example():
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block is not None
    assert program(block[1]) == program(EXAMPLE.read_text())


@pytest.mark.parametrize("path", sorted(EXAMPLE.parent.glob("*.py")), ids=lambda path: path.stem)
def test_the_examples_run_without_warnings(path):
    assert f"examples/{path.name}" in README
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"def {path.stem}_kernel(" in done.stdout
    assert "WARNING" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", re.findall(r"^tilelang-pto (emit .+)$", README, re.MULTILINE))
def test_commands(monkeypatch, command):
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(cli.cli, shlex.split(command))
    assert result.exit_code == 0, result.output
    assert "@pto.jit(" in result.stdout


def test_every_variable_is_in_the_table():
    for variable in settings.SETTINGS:
        assert f"| `{variable}` |" in README
