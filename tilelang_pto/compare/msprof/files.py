"""Finding the tables in what ``msprof`` has written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilelang_pto.compare.msprof.tables import MsprofError

__all__ = ["Summaries", "summaries"]


@dataclass(frozen=True)
class Summaries:
    """Tables of one run; long ones are written in slices."""

    op_summary: tuple[Path, ...]
    op_statistic: tuple[Path, ...]


def summaries(output: Path) -> Summaries:
    """The tables under an output directory: in ``PROF_*/mindstudio_profiler_output``, with older versions in ``PROF_*/*/summary``.

    Raises:
        MsprofError: there is none.
    """
    found = [tuple(sorted(output.rglob(f"{name}*.csv"))) for name in ("op_summary", "op_statistic")]
    if not any(found):
        profiles = sorted(path.name for path in output.glob("PROF_*"))
        where = f"{output} has {', '.join(profiles)} without tables" if profiles else f"there is nothing in {output}"
        raise MsprofError(f"msprof has written no op_summary: {where}", advice="run its command by hand and see what it says")
    return Summaries(*found)
