"""Sessions: all launches between two points of a program are checked and reported.

The native library keeps one stack of sessions for the process. This file keeps which session of the program each entry belongs to,
so that sessions may end in any order (a generator that is closed late, a fixture that outlives a test).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType

from tilelang_pto import _native
from tilelang_pto.errors import ConfigurationError
from tilelang_pto.sim.options import MAX_EVENTS, SimOptions
from tilelang_pto.sim.report.model import SessionReport

__all__ = ["Session", "session"]


class Session:
    """A context manager; :func:`session` makes it. Its ``report`` is there during and after the ``with`` statement.

    Args:
        options: how launches are simulated.
        background: a session of a tool around the program: it stays outside of those of the program, in whatever order they are opened,
            and other threads may open theirs inside it.
    """

    def __init__(self, options: SimOptions, *, background: bool = False) -> None:
        self.options = options
        self.background = background
        self._thread = ""
        self._thread_id = 0
        self._opened = False
        self._parts: list[SessionReport] = []

    def __enter__(self) -> Session:
        if self._opened:
            raise ConfigurationError("a simulation session was already used", advice="a new tilelang_pto.sim.session(...) each time")
        self._thread, self._thread_id = threading.current_thread().name, threading.get_ident()
        _stack.open(self)
        self._opened = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _stack.close(self)

    @property
    def report(self) -> SessionReport:
        """The launches up to now, or all of them when the session has ended. Those of a session inside belong to that one."""
        return SessionReport(tuple(kernel for part in _stack.parts(self) for kernel in part.kernels))


class _Stack:
    """The open sessions of the process, outermost first."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._open: list[Session] = []
        self._busy = False
        self._late: list[Session] = []

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with self._lock:
            self._busy = True
            try:
                yield
            finally:
                self._busy = False
                while self._late:
                    self._close(self._late.pop())

    def open(self, session: Session) -> None:
        with self._exclusive():
            for other in self._open:
                if not other.background and other._thread_id != session._thread_id:
                    raise ConfigurationError(
                        f"a simulation session is open in thread {other._thread}, and a session is for all launches of the process",
                        advice="one session around the threads",
                    )
            if session.background:
                inside = self._take_off_all(other for other in self._open if not other.background)
                self._put_back([session, *inside])
            else:
                self._put_back([session])

    def close(self, session: Session) -> None:
        with self._lock:
            if self._busy:  # the garbage collector closes a generator in the middle of one of these methods
                self._late.append(session)
                return
        with self._exclusive():
            self._close(session)

    def parts(self, session: Session) -> list[SessionReport]:
        with self._exclusive():
            if session in self._open:
                inside = self._take_off(session)
                current = SessionReport.from_json(_native.sim_session_reports())
                self._put_back(inside)
                return [*session._parts, current]
            return list(session._parts)

    def _close(self, session: Session) -> None:
        if session in self._open:
            inside = self._take_off(session)
            self._end(session)
            self._put_back(inside)

    def _take_off(self, session: Session) -> list[Session]:
        """End the sessions inside ``session``: the library knows the innermost one only."""
        return self._take_off_all(self._open[self._open.index(session) + 1 :])

    def _take_off_all(self, innermost: Iterable[Session]) -> list[Session]:
        taken = list(innermost)
        for other in reversed(taken):
            self._end(other)
        return taken

    def _put_back(self, sessions: list[Session]) -> None:
        for other in sessions:
            _native.sim_session_begin(other.options.to_json())
            self._open.append(other)

    def _end(self, session: Session) -> None:
        self._open.remove(session)
        session._parts.append(SessionReport.from_json(_native.sim_session_end()))


_stack = _Stack()


def session(
    *,
    check: str = "full",
    policy: str = "late",
    race: str = "raise",
    timing: bool = False,
    timeline: bool = False,
    max_events: int = MAX_EVENTS,
) -> Session:
    """Check and report all launches of the process inside a ``with`` statement.

    >>> with tilelang_pto.sim.session(race="report", timing=True) as s:
    ...     kernel(x, y, out)
    >>> print(s.report.kernels[0].timing.microseconds)

    The options are those of :class:`~tilelang_pto.sim.options.SimOptions`. Sessions may be nested: a launch belongs to the innermost
    one. However the ``with`` statement is left, the launches after it are simulated as before it. A session opened in one thread is for
    the launches of all threads.

    Raises:
        ConfigurationError: an option is not understood, or a session of another thread is open.
    """
    return Session(SimOptions(check, policy, race, timing, timeline, max_events))
