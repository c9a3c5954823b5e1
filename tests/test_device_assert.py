"""``T.device_assert`` is live on the pto target without an NPU, and only there."""

from __future__ import annotations

import pytest
import torch
from assert_kernels import checked_copy
from tilelang.backend.target import determine_target

import tilelang_pto
from tilelang_pto.device_assert import AssertSwitch


def test_an_assert_stops_the_kernel():
    values, out = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    kernel = checked_copy.compile(values, out)
    kernel(values, out)
    assert torch.equal(values, out)
    values[40] = 1000
    with pytest.raises(tilelang_pto.SimulationError, match="thread 40"):
        kernel(values, out)


def test_other_targets_are_as_before():
    with determine_target("ascend", return_object=True):
        assert not AssertSwitch(False)
        assert AssertSwitch(True)
    with determine_target("pto", return_object=True):
        assert AssertSwitch(False)


def test_the_default_target_counts(monkeypatch):
    assert not AssertSwitch(False)
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "pto")
    assert AssertSwitch(False)
