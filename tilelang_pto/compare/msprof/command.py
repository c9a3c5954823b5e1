"""Running ``msprof``."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilelang_pto.compare.msprof.tables import MsprofError
from tilelang_pto.errors import ConfigurationError, ToolchainError
from tilelang_pto.runtime.process import run_tool
from tilelang_pto.runtime.tools import cann_home

__all__ = ["find_msprof", "profile"]

_PLACES = ("bin/msprof", "tools/profiler/bin/msprof")
#: Characters ``msprof`` refuses in a path.
_REFUSED = set("\n\f\r\b\t\v\x7f\"'\\%><|&$;`")


def find_msprof(named: str | None = None) -> Path:
    """The profiler: as named, in the CANN installation, or on ``PATH``.

    Raises:
        ConfigurationError: there is none.
    """
    if named is not None:
        found = shutil.which(named)
        if found is None:
            raise ConfigurationError(f"{named} is no program", advice="--msprof with the path of msprof")
        return Path(found)
    home = cann_home()
    candidates = [str(home / place) for place in _PLACES] if home is not None else []
    found = next((path for path in map(shutil.which, [*candidates, "msprof"]) if path is not None), None)
    if found is None:
        raise ConfigurationError("msprof was not found", advice="source set_env.sh of the CANN toolkit, or name it with --msprof")
    return Path(found)


def profile(
    msprof: Path,
    command: Sequence[str],
    output: Path,
    *,
    timeout: float,
    environment: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
) -> str:
    """Run ``command`` under the profiler, which writes into ``output``.

    Args:
        msprof: the profiler.
        command: a program and its arguments, none of which starts with a dash: ``msprof`` would take it for its own.
        output: an empty directory.
        timeout: seconds.
        environment: environment variables; those of this process by default.
        options: more options of ``msprof``.

    Returns:
        What it printed.

    Raises:
        MsprofError: it fails or does not end in time.
        ConfigurationError: it would refuse the path of ``output``.
    """
    refused = sorted(_REFUSED.intersection(str(output)))
    if refused:
        raise ConfigurationError(f"msprof takes no path with {refused[0]!r} in it: {output}", advice="another directory, with --out")
    try:
        done = run_tool(
            [msprof, f"--output={output}", *options, *command],
            what="msprof",
            timeout=timeout,
            env=environment,
        )
    except ToolchainError as error:
        raise MsprofError(error.what, where=error.where) from error
    if done.status != 0:
        last = ([line for line in (done.errors + "\n" + done.output).splitlines() if line.strip()] or ["no message"])[-1].strip()
        ended = f"signal {-done.status}" if done.status < 0 else f"status {done.status}"
        raise MsprofError(f"msprof ended with {ended}: {last}", advice="run its command by hand")
    return done.output + done.errors
