"""Choosing the surface, and what a surface answers."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilelang_pto.codegen.surface import select, select_surface, surface_of
from tilelang_pto.errors import ConfigurationError, SurfaceError

AUG, SEP = "2026-08", "2026-09"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(select.ENVIRONMENT, raising=False)
    select._installed_surface.cache_clear()
    yield
    select._installed_surface.cache_clear()


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    package = folder / "ptodsl"
    package.mkdir()
    for name, text in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))


def test_requested() -> None:
    assert select_surface(AUG).name == AUG
    assert select_surface(SEP).name == SEP
    assert select_surface(AUG) is surface_of(AUG)


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(select.ENVIRONMENT, AUG)
    assert select_surface().name == AUG
    assert select_surface(SEP).name == SEP


@pytest.mark.parametrize("value", ["", "  "])
def test_empty_environment_means_auto(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(select.ENVIRONMENT, value)
    monkeypatch.setattr(select, "_find_ptodsl", lambda: None)
    assert select_surface().name == SEP


def test_bad_values(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="auto, 2026-08, 2026-09"):
        select_surface("2026-07")
    with pytest.raises(ConfigurationError, match="option"):
        select_surface("")
    monkeypatch.setenv(select.ENVIRONMENT, "newest")
    with pytest.raises(ConfigurationError, match=f"{select.ENVIRONMENT} is 'newest'"):
        select_surface()


def test_auto_without_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "_find_ptodsl", lambda: None)
    assert select_surface("auto").name == SEP
    assert select_surface().name == SEP


def test_auto_finds_2026_08(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, pto="x = 1\n", scalar="def load(p): ...\n")
    assert select_surface("auto").name == AUG
    assert "ptodsl" not in sys.modules


def test_auto_finds_2026_09(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, pto="def load(p): ...\n", _scalar="")
    assert select_surface("auto").name == SEP


def test_auto_reads_files_of_a_package_that_does_not_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, pto="raise ImportError\n", scalar="")
    assert select_surface("auto").name == AUG


def test_auto_gives_up_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, pto="x = 1\n")
    with pytest.raises(ConfigurationError, match=select.ENVIRONMENT):
        select_surface("auto")


def test_probe_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, __init__="import time\ntime.sleep(60)\n", pto="", _scalar="")
    monkeypatch.setattr(select, "PROBE_TIMEOUT", 0.5)
    assert select_surface("auto").name == SEP


def test_probe_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(select, "_find_ptodsl", lambda: calls.append(1))
    select_surface("auto")
    select_surface("auto")
    assert len(calls) == 1


def test_surface_is_frozen() -> None:
    surface = surface_of(AUG)
    with pytest.raises(dataclasses.FrozenInstanceError):
        surface.name = SEP  # type: ignore[misc]


def test_lookup() -> None:
    surface = surface_of(AUG)
    found = surface.lookup("pto.vlds")
    assert found is not None
    assert [param.name for param in found.positional] == ["src_ptr", "offset", "result_vreg_type"]
    assert found.by_name["dist"].rule.tokens >= {"NORM", "BRC_B32"}
    assert surface.lookup("pto.nothing") is None
    assert surface.lookup("scalar.cast") is not None
    assert surface_of(SEP).lookup("scalar.cast") is None


def test_features() -> None:
    assert surface_of(AUG).has_scalar_namespace
    assert not surface_of(AUG).has_shift_operators
    assert not surface_of(AUG).has_unary_minus
    assert surface_of(SEP).has_shift_operators
    assert not surface_of(SEP).has_scalar_namespace


@pytest.mark.parametrize(
    ("op", "unit", "aug", "sep"),
    [
        ("cast", "scalar", "scalar.cast", "pto.cast"),
        ("load", "simt", "scalar.load", "pto.load"),
        ("exp", "simt", "pto.exp", "pto.exp"),
        ("fmax", "simt", "pto.fmax", "pto.max"),
        ("max", "scalar", "scalar.max", "pto.max"),
        ("load_scalar", "scalar", "pto.load_scalar", "pto.load"),
    ],
)
def test_spelling(op: str, unit: str, aug: str, sep: str) -> None:
    assert surface_of(AUG).spelling(op, unit) == aug
    assert surface_of(SEP).spelling(op, unit) == sep


def test_calls_put_arguments_in_order() -> None:
    aug, sep = surface_of(AUG), surface_of(SEP)
    assert aug.call("store_scalar", ("v", "p", "0")) == "pto.store_scalar(p, 0, v)"
    assert sep.call("store_scalar", ("v", "p", "0")) == "pto.store(v, p, 0)"
    assert aug.call("read_uncached", ("p", "0")) == "pto.load_scalar(p, 0, bypass_l1=True)"
    assert sep.call("read_uncached", ("p", "0")) == "pto.ld_dev(p, 0)"
    assert sep.call("write_uncached", ("v", "p", "0")) == "pto.st_dev(p, 0, v)"
    assert sep.call("load", ("p", "0"), unit="simt", keywords="contiguous=2") == "pto.load(p, 0, contiguous=2)"


def test_missing_spelling() -> None:
    assert not surface_of(AUG).has_spelling("bitcast")
    assert surface_of(SEP).has_spelling("bitcast")
    assert not surface_of(AUG).has_spelling("exp", "scalar")
    with pytest.raises(SurfaceError, match="bitcast"):
        surface_of(AUG).spelling("bitcast")
    with pytest.raises(SurfaceError, match="simt"):
        surface_of(AUG).spelling("sin", "scalar")
    with pytest.raises(SurfaceError):
        surface_of(AUG).spelling("no_such_operation")
