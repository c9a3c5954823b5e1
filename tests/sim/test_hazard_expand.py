"""Expand kernels as they are emitted, without some or all of their flags between pipes: the fault that gave wrong numbers in silence."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import run, session

GOLDEN = Path(__file__).parents[1] / "codegen" / "golden" / "2026-09"
CORES, ROUNDS = 64, 16
TOKENS = CORES * ROUNDS
POLICIES = ("late", "eager", "random:5")
_FLAG = re.compile(r' *pto\.(?:set|wait)_flag\("(?P<source>\w+)", "(?P<destination>\w+)", event_id=.*\)\n')


def forward():
    """Text, arguments and the expected result."""
    x = np.random.default_rng(1).integers(0, 0x7F80, (TOKENS, 1280), np.uint16)  # bits of finite positive bfloat16
    return (GOLDEN / "expand_forward.py").read_text(), x, np.repeat(x[:, None], 2, axis=1)


def backward():
    grads = np.random.default_rng(2).integers(-8, 9, (TOKENS, 4, 2560)).astype(np.float32)
    total = grads.sum(1, dtype=np.float32)  # small integers: exact in bfloat16
    return (GOLDEN / "expand_backward.py").read_text(), _bfloat16(grads), _bfloat16(total)


def _bfloat16(values: np.ndarray) -> np.ndarray:
    return (values.view(np.uint32) >> 16).astype(np.uint16)


KERNELS = {"expand_forward": forward, "expand_backward": backward}


def without(text: str, *channels: tuple[str, str]) -> str:
    """The text without the flags of these channels; of all if none is named."""
    return _FLAG.sub(lambda found: "" if not channels or found.group("source", "destination") in channels else found[0], text)


def simulate(name: str, text: str, given: np.ndarray, wanted: np.ndarray, policy: str):
    """Findings, the share of elements of the result that are wrong, and the error that stopped the kernel."""
    out = np.full_like(wanted, 0x7FC0)  # NaN
    arguments = (out, given) if name == "expand_forward" else (given, out)
    stopped = ""
    with session(check="full", race="report", policy=policy) as s:
        try:
            run(text, f"{name}_kernel", *arguments, TOKENS, grid=CORES)
        except SimulationError as error:
            stopped = error.what
    return s.report.kernels[-1].findings, float((out != wanted).mean()), stopped


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", KERNELS)
def test_as_emitted(name, policy):
    assert simulate(name, *KERNELS[name](), policy) == ((), 0.0, "")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", KERNELS)
def test_without_any_flag(name, policy):
    text, given, wanted = KERNELS[name]()
    found, wrong, _ = simulate(name, without(text), given, wanted, policy)
    hazards = {finding.hazard for finding in found if finding.kind == "race" and finding.memory == "UB"}
    if policy == "eager":  # pipes take turns, so that the numbers happen to be right
        assert {"RAW", "WAR"} <= hazards
        assert wrong == 0
    else:
        assert hazards
        assert wrong > 0.5


CHANNELS = {
    ("expand_forward", "MTE2", "MTE3"): "RAW",
    ("expand_forward", "MTE3", "MTE2"): "WAR",
    ("expand_backward", "MTE2", "V"): "RAW",
    ("expand_backward", "V", "MTE2"): "WAR",
    ("expand_backward", "V", "MTE3"): "RAW",
    ("expand_backward", "MTE3", "V"): "WAR",
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("name", "source", "destination"), CHANNELS)
def test_without_one_kind_of_flag(name, source, destination, policy):
    """Every kind of flag is missed, whatever happens to be executed first, and the finding says which.

    Where a pipe runs ahead it may also set another flag twice, which ends the kernel.
    """
    text, given, wanted = KERNELS[name]()
    found, _, stopped = simulate(name, without(text, (source, destination)), given, wanted, policy)
    if stopped:
        assert policy != "eager"
        assert "is set again before any wait for it" in stopped
        return
    races = [finding for finding in found if finding.kind == "race"]
    first = [finding for finding in races if (finding.first.pipe, finding.second.pipe) == (source, destination)]
    assert CHANNELS[name, source, destination] in {finding.hazard for finding in first}
    assert all(f"no {source}->{destination} flag" in finding.missing and finding.memory == "UB" for finding in first)
