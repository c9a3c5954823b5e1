"""Transfers under the timing model: latency, rate by the width of rows, overlap, and GM shared by cores."""

from __future__ import annotations

import numpy as np
import pytest
from timing_figures import COPY
from timing_harness import CLOCK, FIGURES, events, gm, timed

LOAD = """
ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
pto.mte_gm_ub(x, ub, 0, {width}, nburst=({rows}, {stride}, {width}))
"""
STORE = """
ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
pto.mte_ub_gm(ub, x, {width}, nburst=({rows}, {width}, {stride}))
"""


@pytest.mark.parametrize(
    ("rows", "width", "stride", "latency", "rate"),
    [
        (1, 16384, 16384, 90, 100),
        (8, 2048, 2048, 90, 100),  # rows that follow each other are one
        (16, 64, 128, 75, 50),
        (16, 128, 256, 75, 100),
        (16, 160, 256, 75, 102 * 160 / 256),
        (16, 512, 1024, 75, 100),
    ],
)
def test_a_load_takes_its_latency_and_its_bytes_at_a_rate(rows: int, width: int, stride: int, latency: int, rate: float) -> None:
    report = timed(LOAD.format(rows=rows, width=width, stride=stride), {"x": gm(rows * stride)})
    (event,) = events(report, "MTE2")
    assert event.end - event.start == pytest.approx(latency + max(13, rows * width / rate), rel=2e-3)
    assert report.timing.bytes.gm_read == rows * width
    assert report.timing.bytes.gm_written == 0


@pytest.mark.parametrize(
    ("rows", "width", "stride", "latency", "rate"),
    [
        (1, 16384, 16384, 180, 115),
        (16, 64, 128, 440, 40),
        (16, 128, 256, 180, 86),
        (16, 192, 256, 180, 86 * 192 / 256),
        (16, 256, 512, 180, 110),
        (16, 512, 1024, 180, 115),
    ],
)
def test_a_store_takes_its_latency_and_its_bytes_at_a_rate(rows: int, width: int, stride: int, latency: int, rate: float) -> None:
    report = timed(STORE.format(rows=rows, width=width, stride=stride), {"x": gm(rows * stride)})
    (event,) = events(report, "MTE3")
    assert event.end - event.start == pytest.approx(latency + max(10, rows * width / rate), rel=2e-3)
    assert report.timing.bytes.gm_written == rows * width


def test_the_latency_of_a_load_overlaps_with_the_next_one() -> None:
    body = """
    ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
    for i in range(3):
        pto.mte_gm_ub(pto.addptr(x, i * 8192), ub, 0, 8192, nburst=(1, 8192, 8192))
    """
    first, second, third = events(timed(body, {"x": gm(3 * 8192)}), "MTE2")
    assert second.start - first.start == third.start - second.start == pytest.approx(8192 / 100, rel=2e-3)
    assert third.end - third.start == pytest.approx(90 + 8192 / 100, rel=2e-3)


def test_issuing_small_loads_takes_longer_than_moving_them() -> None:
    body = """
    ub = pto.castptr(zero, pto.ptr(pto.ui8, "ub"))
    for i in range(8):
        pto.mte_gm_ub(x, ub, 0, 128, nburst=(1, 128, 128))
    """
    starts = [e.start for e in events(timed(body, {"x": gm(128)}), "MTE2")]
    # One instruction and the issue of a transfer each.
    assert set(np.diff(starts)) == {1 + FIGURES["kScalarDmaIssue"]}


@pytest.mark.parametrize(("tiles", "rows", "width"), [(32, 1, 16384), (16, 1, 32768), (16, 64, 512), (8, 2, 32768)])
def test_a_copy_by_all_cores_is_bound_by_the_bandwidth_of_gm(tiles: int, rows: int, width: int) -> None:
    size = 64 * tiles * rows * width
    body = COPY.format(tiles=tiles, rows=rows, width=width, tile=rows * width, buffers=2)
    timing = timed(body, {"x": gm(size), "y": gm(size)}, grid=64, timeline=False).timing
    assert timing.bytes.gm_read == timing.bytes.gm_written == size
    assert timing.cycles == pytest.approx(2 * size / FIGURES["kGmBytesPerCycle"], rel=0.1)
    assert timing.bound_by.startswith("the bandwidth of GM")
    assert timing.achieved.gm_bytes_per_second == pytest.approx(2 * size / (timing.cycles / CLOCK))
    assert timing.achieved.gm_bytes_per_second > 0.9 * timing.peak.gm_bytes_per_second


@pytest.mark.parametrize(("tile", "buffers"), [(16384, 4), (16384, 8), (32768, 4)])
def test_a_copy_by_one_core_is_bound_by_its_loads(tile: int, buffers: int) -> None:
    tiles = (1 << 20) // tile
    body = COPY.format(tiles=tiles, rows=1, width=tile, tile=tile, buffers=buffers)
    timing = timed(body, {"x": gm(1 << 20), "y": gm(1 << 20)}, timeline=False).timing
    assert timing.cycles == pytest.approx((1 << 20) / FIGURES["kGmUbRate"], rel=0.1)
    assert timing.bound_by.startswith("M") and "of block 0 is busy" in timing.bound_by


def test_cores_share_gm_evenly() -> None:
    """What one core gets, of 4, 16 and 64."""
    body = LOAD.format(rows=4, width=32768, stride=32768).replace("(x,", "(pto.addptr(x, b * 131072),")
    for cores in (4, 16, 64):
        report = timed(body, {"x": gm(cores * 131072)}, grid=cores)
        rate = min(FIGURES["kGmUbRate"], FIGURES["kGmBytesPerCycle"] / cores)
        for block in (0, cores - 1):
            (event,) = events(report, "MTE2", block)
            assert event.end - event.start == pytest.approx(90 + 131072 / rate, rel=2e-3)


def test_what_was_loaded_before_comes_from_l2() -> None:
    """64 cores load the same bytes: GM gives them once, L2 gives them to all."""
    body = LOAD.format(rows=4, width=32768, stride=32768)
    (event,) = events(timed(body, {"x": gm(131072)}, grid=64), "MTE2")
    assert event.end - event.start == pytest.approx(90 + 131072 / (FIGURES["kL2BytesPerCycle"] / 64), rel=2e-3)


def test_short_rows_take_more_of_the_bandwidth() -> None:
    body = LOAD.format(rows=512, width=128, stride=256).replace("(x,", "(pto.addptr(x, b * 131072),")
    (event,) = events(timed(body, {"x": gm(64 * 131072)}, grid=64), "MTE2")
    share = FIGURES["kGmBytesPerCycle"] / 64 / FIGURES["kShortRowPenalty"]
    assert event.end - event.start == pytest.approx(75 + 65536 / share, rel=2e-3)
