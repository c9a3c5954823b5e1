"""What the threads of a SIMT function do to GM in any order of places: the same findings as in ascending order, and all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hazard_harness import findings_of, text_of

THREADS = 256
ARRAYS = {"x": ("i32", np.zeros(THREADS * 16)), "y": ("i32", np.zeros(THREADS * 16))}
#: Place of thread t, in elements of 4 bytes; distinct for all threads.
ORDERS = {
    "ascending": ("t", np.arange(THREADS)),
    "descending": ("255 - t", np.arange(THREADS)[::-1]),
    "in no order": ("(t * 37) & 255", np.arange(THREADS) * 37 % 256),
    "with gaps": ("((t * 37) & 255) * 3", np.arange(THREADS) * 37 % 256 * 3),
    "far apart": ("((t * 37) & 255) * 16", np.arange(THREADS) * 37 % 256 * 16),
}
BODY = """\
with pto.simt({threads}, 1, 1):
    t = pto.get_tid_x()
    pto.store(t, y, {place})
{flags}pto.mte_gm_ub(pto.addptr(y, {read}), at("ub", pto.i32), 0, 4, nburst=(1, 4, 4))
"""
FLAGS = 'pto.set_flag("V", "MTE2")\npto.wait_flag("V", "MTE2")\n'


def findings(order: str, read: int, flags: str = "") -> list[tuple[str, int, int]]:
    body = BODY.format(threads=THREADS, place=ORDERS[order][0], read=read, flags=flags)
    found, _ = findings_of(text_of(body, ARRAYS, "vector"), ARRAYS)
    return [(finding.hazard, finding.begin, finding.end) for finding in found if finding.memory == "GM"]


@pytest.mark.parametrize("order", ORDERS)
def test_each_place_is_noted(order: str) -> None:
    """A load of one element races exactly when a thread has stored there."""
    places = set(ORDERS[order][1].tolist())
    for read in sorted({0, 1, 2, 7, 36, 37, 38, 111, 255, 256, 764, 765, 766, 4080, 4081}):
        assert findings(order, read) == ([("RAW", 4 * read, 4 * read + 4)] if read in places else [])


@pytest.mark.parametrize("order", ORDERS)
def test_flags_order_all_places(order: str) -> None:
    assert findings(order, 37, FLAGS) == []
