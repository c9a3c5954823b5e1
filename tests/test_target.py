"""The target: its form, its completion, the choice of device, warnings."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
from tilelang.backend.target import determine_target
from tvm.target import Target

import tilelang_pto
from tilelang_pto.runtime import device
from tilelang_pto.target import FEATURE, is_pto_target, pto_target, settings_of


def keys(target: Target) -> list[str]:
    return [str(key) for key in target.keys]


def test_name_gives_a_target_of_kind_ascend():
    target = determine_target("pto", return_object=True)
    assert isinstance(target, Target)
    assert target.kind.name == "ascend"
    assert keys(target) == ["pto", "ascend"]
    assert settings_of(target).device == "sim"
    assert settings_of(target).surface in ("2026-08", "2026-09")


def test_ascend_stays_ascend():
    target = determine_target("ascend", return_object=True)
    assert keys(target) == ["ascend"]
    assert not is_pto_target(target)
    assert FEATURE not in target.attrs


@pytest.mark.parametrize("given", [["pto"], ["ascend", "pto"], ["pto", "ascend"], ["pto", "ascend", "other"]])
@pytest.mark.parametrize("as_object", [False, True])
def test_incomplete_targets_are_completed(given, as_object):
    config = {"kind": "ascend", "keys": given}
    target = determine_target(Target(config) if as_object else config, return_object=True)
    assert keys(target)[:2] == ["pto", "ascend"]
    assert str(target.attrs[FEATURE]) == str(pto_target().attrs[FEATURE])


def test_completion_keeps_what_is_chosen_and_the_host():
    target = Target({"kind": "ascend", "keys": ["pto"], FEATURE: "device=npu, surface=2026-08"}, "c")
    completed = determine_target(target, return_object=True)
    assert settings_of(completed).device == "npu"
    assert settings_of(completed).surface == "2026-08"
    assert completed.host.kind.name == "c"


def test_completion_is_stable():
    target = determine_target("pto", return_object=True)
    assert determine_target(target, return_object=True) == target
    with target:
        assert determine_target("auto", return_object=True) == target


def test_another_build_is_replaced():
    target = Target({"kind": "ascend", "keys": ["pto", "ascend"], FEATURE: "device=sim,surface=2026-09,build=0000"})
    assert settings_of(determine_target(target, return_object=True)).build == settings_of(pto_target()).build


@pytest.mark.parametrize("feature", ["device=gpu", "speed=9", "sim"])
def test_unknown_feature_parts_are_refused(feature):
    with pytest.raises(tilelang_pto.ConfigurationError, match=r"feature\.pto"):
        determine_target({"kind": "ascend", "keys": ["pto"], FEATURE: feature}, return_object=True)


def test_printed_target_tells_settings_apart():
    """TileLang's cache key holds the printed target."""
    printed = {
        str(Target({"kind": "ascend", "keys": ["pto", "ascend"], FEATURE: f"device={dev},surface={surface},build=0"}))
        for dev in ("sim", "npu")
        for surface in ("2026-08", "2026-09")
    }
    assert len(printed) == 4


def test_surface_from_environment(monkeypatch):
    monkeypatch.setenv("TILELANG_PTO_SURFACE", "2026-08")
    assert settings_of(determine_target("pto", return_object=True)).surface == "2026-08"
    monkeypatch.setenv("TILELANG_PTO_SURFACE", "1999-01")
    with pytest.raises(tilelang_pto.ConfigurationError, match="1999-01"):
        determine_target("pto", return_object=True)


def test_device_from_environment(monkeypatch):
    for value in ("sim", " SIM ", "auto", ""):
        monkeypatch.setenv("TILELANG_PTO_DEVICE", value)
        assert device.choose_device() == "sim"
    monkeypatch.setenv("TILELANG_PTO_DEVICE", "tpu")
    with pytest.raises(tilelang_pto.ConfigurationError, match="'tpu' is not a device"):
        determine_target("pto", return_object=True)


def test_npu_without_one_names_what_is_missing(monkeypatch):
    monkeypatch.setenv("TILELANG_PTO_DEVICE", "npu")
    with pytest.raises(tilelang_pto.ConfigurationError) as caught:
        determine_target("pto", return_object=True)
    assert "TILELANG_PTO_DEVICE=npu" in caught.value.what
    assert "torch_npu" in caught.value.what
    assert "sim" in caught.value.advice


def test_auto_takes_a_usable_npu(monkeypatch):
    monkeypatch.setattr(device, "_missing", lambda: iter(()))
    assert device.choose_device("auto") == "npu"
    assert device.choose_device("npu") == "npu"


def test_stale_variable_warns_naming_both(monkeypatch):
    monkeypatch.setenv("TILELANG_TARGET", "cuda")
    with pytest.warns(tilelang_pto.StaleTargetWarning, match=r"TILELANG_TARGET=cuda.* pto") as record:
        determine_target("pto", return_object=True)
    assert len(record) == 1


def test_stale_variable_naming_pto(monkeypatch):
    monkeypatch.setenv("TILELANG_TARGET", "pto")
    with pytest.warns(tilelang_pto.StaleTargetWarning, match=r"TILELANG_TARGET=pto.* ascend"):
        determine_target("ascend", return_object=True)


@pytest.mark.parametrize("value", ["pto", "", None])
def test_no_warning_without_a_conflict(monkeypatch, value):
    if value is None:
        monkeypatch.delenv("TILELANG_TARGET", raising=False)
    else:
        monkeypatch.setenv("TILELANG_TARGET", value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        determine_target("pto", return_object=True)


def test_import_alone_registers_and_stays_light():
    code = (
        "import sys, tilelang_pto\n"
        "from tilelang.backend.target import determine_target\n"
        "print(determine_target('pto', return_object=True))\n"
        "print([name for name in ('torch_npu', 'ptodsl', 'jinja2') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    target, heavy = done.stdout.strip().splitlines()[-2:]
    assert '"kind":"ascend"' in target
    assert heavy == "[]"
