"""How the launches of a session are simulated, checked and measured."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass

from tilelang_pto.errors import ConfigurationError

__all__ = ["CHECKS", "MAX_EVENTS", "POLICIES", "RACES", "SimOptions"]

CHECKS = ("off", "bounds", "full")
RACES = ("raise", "report")
POLICIES = ("late", "eager", "random:SEED")
#: Timeline events kept of one launch unless told otherwise: a page of about 8 MB.
MAX_EVENTS = 200_000
_LARGEST = 100_000_000
_RANDOM = re.compile(r"random:[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class SimOptions:
    """Options of a simulation session; see ``docs/simulator.md``.

    Args:
        check: beyond the bounds and alignment of accesses and the use of flags, which always count: ``"off"`` checks nothing,
            ``"bounds"`` that on-chip memory is written before it is read and that accesses stay in their buffers and find there what was
            stored, ``"full"`` also that accesses to the same bytes are ordered.
        policy: which of the orders that flags permit is executed. ``"late"``: a transfer happens when nothing else can go on without
            it; ``"eager"``: as early as it can; ``"random:SEED"``: any.
        race: ``"raise"`` ends a launch with an error at its first finding, ``"report"`` goes on and collects them.
        timing: whether cycles are modelled.
        timeline: whether the report says when each command ran and which memory it touched; needs ``timing``.
        max_events: timeline events kept of one launch, 1 to 100 000 000. Of a launch with more, some cores are kept; ``notes`` of its
            report say so.

    Raises:
        ConfigurationError: a value is none of these.
    """

    check: str = "full"
    policy: str = "late"
    race: str = "raise"
    timing: bool = False
    timeline: bool = False
    max_events: int = MAX_EVENTS

    def __post_init__(self) -> None:
        _one_of("check", self.check, CHECKS)
        _one_of("race", self.race, RACES)
        if self.policy not in POLICIES[:2] and not (isinstance(self.policy, str) and _RANDOM.fullmatch(self.policy)):
            raise _refusal("policy", self.policy, f"one of {', '.join(POLICIES)}, the seed a number of at most 18 digits")
        for name in ("timing", "timeline"):
            if not isinstance(getattr(self, name), bool):
                raise _refusal(name, getattr(self, name), "True or False")
        if isinstance(self.max_events, bool) or not isinstance(self.max_events, int) or not 1 <= self.max_events <= _LARGEST:
            raise _refusal("max_events", self.max_events, f"a number from 1 to {_LARGEST}")
        if self.timeline and not self.timing:
            raise ConfigurationError(
                "a timeline needs the timing model", where=("option timeline",), advice="timing=True with timeline=True"
            )

    def to_json(self) -> str:
        """The text the native library reads."""
        return json.dumps(dataclasses.asdict(self))


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise _refusal(name, value, f"one of {', '.join(allowed)}")


def _refusal(name: str, value: object, advice: str) -> ConfigurationError:
    return ConfigurationError(f"option {name}={value!r} of a simulation session is not understood", advice=advice)
