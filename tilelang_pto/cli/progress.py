"""A bar for launches that take long."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

import click

from tilelang_pto import _native

__all__ = ["progress_bar"]

_INTERVAL = 0.1
#: A launch that ends sooner shows nothing.
_PATIENCE = 1.0


@contextlib.contextmanager
def progress_bar(patience: float = _PATIENCE) -> Iterator[None]:
    """While the block runs, show on a terminal how many blocks of a long launch are done."""
    if not sys.stderr.isatty():
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_watch, args=(stop, patience), name="tilelang-pto progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _watch(stop: threading.Event, patience: float) -> None:
    while not stop.wait(_INTERVAL):
        done, total = _native.sim_progress()
        if done < total and _outlasts(stop, total, patience):
            _show(stop, total)


def _outlasts(stop: threading.Event, total: int, patience: float) -> bool:
    """Whether the launch at hand still runs after a while."""
    begin, last = time.monotonic(), 0
    while time.monotonic() - begin < patience:
        done, now = _native.sim_progress()
        if now != total or not last <= done < total or stop.wait(_INTERVAL):
            return False
        last = done
    return True


def _show(stop: threading.Event, total: int) -> None:
    with click.progressbar(length=total, label="simulating blocks", show_pos=True, file=sys.stderr) as bar:
        while True:
            done, now = _native.sim_progress()
            if now != total or done < bar.pos:
                done = total
            bar.update(done - bar.pos)
            if done == total or stop.wait(_INTERVAL):
                return
