"""Reading a report from JSON, with every field checked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

from tilelang_pto.errors import ConfigurationError, ReportError
from tilelang_pto.sim.options import SimOptions
from tilelang_pto.sim.report.model import (
    Access,
    CoreTiming,
    Event,
    Finding,
    KernelReport,
    LineTiming,
    MemoryExtent,
    PipeTiming,
    Rates,
    SessionReport,
    Step,
    Timeline,
    Timing,
    Traffic,
)

__all__ = ["read_kernel", "read_session"]

Item = TypeVar("Item")
_EVENT = (int, str, str, int, str, float, float, str)


class _Fields:
    """An object of the JSON text; its fields are asked for by name and type. More fields than asked for are no fault."""

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(path, "an object", value)
        self._value = value
        self._path = path

    def _get(self, name: str, kinds: type | tuple[type, ...], wanted: str) -> Any:
        path = f"{self._path}.{name}"
        if name not in self._value:
            raise ReportError("a field is missing", where=(path,))
        value = self._value[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise _wrong(path, wanted, value)
        return value

    def text(self, name: str) -> str:
        return str(self._get(name, str, "a text"))

    def integer(self, name: str) -> int:
        return int(self._get(name, int, "an integer"))

    def number(self, name: str) -> float:
        value = float(self._get(name, (int, float), "a number"))
        if not math.isfinite(value):
            raise _wrong(f"{self._path}.{name}", "a finite number", value)
        return value

    def switch(self, name: str) -> bool:
        return bool(self._get(name, bool, "true or false"))

    def optional(self, name: str, read: Callable[[str], Item]) -> Item | None:
        return None if name in self._value and self._value[name] is None else read(name)

    def inner(self, name: str) -> _Fields:
        return _Fields(self._get(name, dict, "an object"), f"{self._path}.{name}")

    def items(self, name: str) -> list[tuple[str, Any]]:
        """The fields of an object whose names are not known beforehand."""
        return list(self._get(name, dict, "an object").items())

    def rows(self, name: str, read: Callable[[_Fields], Item]) -> tuple[Item, ...]:
        values = self._get(name, list, "a list")
        return tuple(read(_Fields(value, f"{self._path}.{name}[{number}]")) for number, value in enumerate(values))

    def values(self, name: str, kind: type, wanted: str) -> list[Any]:
        values = self._get(name, list, "a list")
        for number, value in enumerate(values):
            if not isinstance(value, kind):
                raise _wrong(f"{self._path}.{name}[{number}]", wanted, value)
        return list(values)


def _wrong(path: str, wanted: str, value: Any) -> ReportError:
    return ReportError(f"{wanted} is needed, {value!r:.60} was found", where=(path,))


def read_session(text: str) -> SessionReport:
    """A report from the JSON list of its launches."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ReportError(f"the text is not JSON: {error}") from error
    if not isinstance(values, list):
        raise _wrong("report", "a list of launches", values)
    return SessionReport(tuple(_kernel(_Fields(value, f"report[{number}]")) for number, value in enumerate(values)))


def read_kernel(text: str) -> KernelReport:
    """One launch from its JSON object."""
    return read_session(f"[{text}]").kernels[0]


def _kernel(fields: _Fields) -> KernelReport:
    return KernelReport(
        kernel=fields.text("kernel"),
        grid=fields.integer("grid"),
        file=fields.text("file"),
        text=fields.text("text"),
        options=_options(fields.inner("options")),
        error=fields.optional("error", fields.text),
        notes=tuple(fields.values("notes", str, "a text")),
        stats={name: _integer(value, name) for name, value in fields.items("stats")},
        findings=fields.rows("findings", _finding),
        timing=fields.optional("timing", lambda name: _timing(fields.inner(name))),
        timeline=fields.optional("timeline", lambda name: _timeline(fields.inner(name))),
        memory=fields.optional("memory", lambda name: fields.rows(name, _extent)),
    )


def _integer(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(f"stats.{name}", "an integer", value)
    return value


def _options(fields: _Fields) -> SimOptions:
    try:
        return SimOptions(
            check=fields.text("check"),
            policy=fields.text("policy"),
            race=fields.text("race"),
            timing=fields.switch("timing"),
            timeline=fields.switch("timeline"),
            max_events=fields.integer("max_events"),
        )
    except ConfigurationError as error:
        raise ReportError(error.what, advice=error.advice) from error


def _access(fields: _Fields) -> Access | None:
    access = Access(
        line=fields.integer("line"),
        op=fields.text("op"),
        pipe=fields.text("pipe"),
        block=fields.integer("block"),
        core=fields.text("core"),
        access=fields.text("access"),
        execution=fields.integer("execution"),
        thread=fields.optional("thread", fields.integer),
    )
    return access if access.line > 0 else None  # the library gives a place without a line where there is none


def _finding(fields: _Fields) -> Finding:
    first = fields.optional("first", lambda name: _access(fields.inner(name)))
    second = fields.optional("second", lambda name: _access(fields.inner(name)))
    kind = fields.text("kind")
    return Finding(
        kind=kind,
        hazard=fields.optional("hazard", fields.text),
        message=fields.text("message"),
        missing=fields.text("missing"),
        memory=fields.text("memory"),
        views=fields.text("views"),
        tensor=fields.optional("tensor", fields.text),
        begin=fields.integer("begin"),
        end=fields.integer("end"),
        count=fields.integer("count"),
        first=first,
        second=None if second == first and kind != "race" else second,  # one place, told twice
    )


def _core(fields: _Fields) -> CoreTiming:
    pipes = {}
    for name, _ in fields.items("pipes"):
        pipe = fields.inner("pipes").inner(name)
        pipes[name] = PipeTiming(pipe.number("busy"), pipe.integer("commands"))
    return CoreTiming(fields.integer("block"), fields.text("core"), fields.number("cycles"), pipes)


def _rates(fields: _Fields) -> Rates:
    return Rates(fields.number("gm_bytes_per_second"), fields.number("flops"))


def _line(fields: _Fields) -> LineTiming:
    return LineTiming(fields.integer("line"), fields.text("op"), fields.text("pipe"), fields.number("cycles"), fields.integer("executions"))


def _step(fields: _Fields) -> Step:
    return Step(
        fields.integer("line"),
        fields.text("op"),
        fields.text("pipe"),
        fields.integer("block"),
        fields.text("core"),
        fields.number("cycles"),
    )


def _timing(fields: _Fields) -> Timing:
    traffic = fields.inner("bytes")
    return Timing(
        cycles=fields.number("cycles"),
        microseconds=fields.number("microseconds"),
        clock_ghz=fields.number("clock_ghz"),
        bound_by=fields.text("bound_by"),
        cores=fields.rows("cores", _core),
        bytes=Traffic(traffic.integer("gm_read"), traffic.integer("gm_written")),
        achieved=_rates(fields.inner("achieved")),
        peak=_rates(fields.inner("peak")),
        lines=fields.rows("lines", _line),
        critical_path=fields.rows("critical_path", _step),
    )


def _timeline(fields: _Fields) -> Timeline:
    events = []
    for number, row in enumerate(fields.values("events", list, "a list")):
        if len(row) != len(_EVENT) or not all(
            isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)
            for value, kind in zip(row, _EVENT, strict=True)
        ):
            raise _wrong(f"timeline.events[{number}]", "[block, core, pipe, line, op, start, end, kind]", row)
        events.append(Event._make(row))
    return Timeline(fields.switch("sampled"), tuple(events))


def _extent(fields: _Fields) -> MemoryExtent:
    return MemoryExtent(
        memory=fields.text("memory"),
        block=fields.integer("block"),
        core=fields.text("core"),
        begin=fields.integer("begin"),
        end=fields.integer("end"),
        first_cycle=fields.number("first_cycle"),
        last_cycle=fields.number("last_cycle"),
        line=fields.integer("line"),
        access=fields.text("access"),
    )
