"""Running the tools of the chain: with a time limit, all output kept, and whole process groups ended."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilelang_pto.errors import ToolchainError

__all__ = ["Finished", "run_tool"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A tool that has ended, with whatever status.

    Attributes:
        command: as it was run.
        status: exit status; the negative signal number where a signal ended it.
        output: standard output.
        errors: standard error.
        seconds: how long it ran.
    """

    command: tuple[str, ...]
    status: int
    output: str
    errors: str
    seconds: float

    def log(self) -> str:
        """The text of a log file: the command line, how it ended, and everything it printed."""
        ended = f"signal {-self.status}" if self.status < 0 else f"exit status {self.status}"
        parts = [f"$ {shlex.join(self.command)}", f"# {ended} after {self.seconds:.2f} s"]
        parts += ["# standard output:", self.output, "# standard error:", self.errors]
        return "\n".join(parts) + "\n"


def run_tool(
    command: Sequence[str | Path], *, what: str, timeout: float, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Finished:
    """Run a tool to its end.

    Args:
        command: program and arguments.
        what: name of the tool for messages.
        timeout: seconds after which the tool and everything it has started is killed.
        cwd: working directory.
        env: the environment; that of this process by default.

    Raises:
        ToolchainError: the tool cannot be started, or does not end in time.
    """
    words = tuple(str(word) for word in command)
    started = time.monotonic()
    try:
        child = subprocess.Popen(
            words,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise ToolchainError(f"{what} cannot be started: {error.strerror or error}", where=(shlex.join(words),)) from error
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill_group(child)
        output, errors = child.communicate()
        last = (errors or output).strip().splitlines()[-1:]
        raise ToolchainError(
            f"{what} did not end within {timeout:g} s and was stopped" + (f"; the last thing it said: {last[0]}" if last else ""),
            where=(shlex.join(words),),
            advice="TILELANG_PTO_TOOL_TIMEOUT=SECONDS gives the tools more time",
        ) from None
    except BaseException:
        _kill_group(child)
        child.communicate()
        raise
    return Finished(words, child.returncode, output, errors, time.monotonic() - started)


def _kill_group(child: subprocess.Popen[str]) -> None:
    """The tool and all its children: it leads a process group of its own."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        child.kill()
