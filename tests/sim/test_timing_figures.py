"""The tables of the timing model and the page that shows them."""

from __future__ import annotations

import re
from pathlib import Path

from tilelang_pto.sim.timing_figures import timing_figures, timing_page, vector_costs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "timing.md"
ENGINE = PAGE.parents[1] / "csrc" / "engine"


def test_the_page_shows_the_tables() -> None:
    assert PAGE.read_text() == timing_page(), "run: python -m tilelang_pto.sim.timing_figures docs/timing.md"


def test_every_figure_says_where_it_is_from_and_how_sure_it_is() -> None:
    for row in timing_figures():
        assert re.match(r"(AC|PI|TL|D|none)\b", row.source), row
        assert row.what and row.certainty
        assert row.source != "none" or row.certainty.startswith(("assumed", "unknown")), row
        assert row.value >= 0
    for cost in vector_costs():
        assert re.match(r"(AC|PI|none)\b", cost.source) and cost.certainty
        assert (cost.port == "none") == (cost.interval == 0)


def test_every_figure_is_used() -> None:
    """A figure that nothing reads would look as if it were modelled."""
    code = "".join(path.read_text() for path in ENGINE.glob("*.cc")) + "".join(path.read_text() for path in ENGINE.glob("*.h"))
    for row in timing_figures():
        assert re.search(rf"figure::{row.name}\b", code), row.name


def test_rows_of_vector_costs_name_operations() -> None:
    from tilelang_pto import _native

    known = {*_native.sim_ops(), "other"}
    assert [cost.op for cost in vector_costs() if cost.op not in known] == []
    assert vector_costs()[-1].op == "other"  # the first row that fits counts
