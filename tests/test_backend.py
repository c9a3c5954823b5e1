"""Two backends of one target kind: each takes its own targets."""

from __future__ import annotations

import dataclasses

import pytest
from tilelang.backend import module as registry
from tilelang.backend.module import create_backend_context, list_backends
from tilelang.backend.target import determine_target

import tilelang_pto
from tilelang_pto import backend


def test_backends_exclude_each_other():
    assert create_backend_context("pto", "c").module.name == "pto"
    for name in ("ascend", "asc"):
        assert create_backend_context(name, "c").module.name == "ascend"
    ours, theirs = determine_target("pto", return_object=True), determine_target("ascend", return_object=True)
    claims = {name: (module.matches(ours), module.matches(theirs)) for name, module in list_backends().items()}
    assert claims["pto"] == (True, False)
    assert claims["ascend"] == (False, True)
    assert not any(any(pair) for name, pair in claims.items() if name not in ("pto", "ascend"))


def test_default_target_from_environment(monkeypatch):
    from tilelang import env

    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "pto")
    assert env.get_default_target() == "pto"
    assert create_backend_context(env.get_default_target(), "c").module.name == "pto"


def test_target_context():
    with determine_target("pto", return_object=True):
        assert create_backend_context("auto", "c").module.name == "pto"


def test_only_tvm_ffi_runs_kernels():
    context = create_backend_context("pto", "c")
    assert context.execution_backend.name == "tvm_ffi"
    assert context.execution_backend.enable_host_codegen
    assert context.execution_backend.enable_device_compile
    assert context.execution_backend.supports_callee_allocated_outputs
    with pytest.raises(ValueError, match="cython"):
        create_backend_context("pto", "c", "cython")


def test_the_shipped_backend_differs_in_its_predicate_only():
    shipped = list_backends()["ascend"]
    from tilelang.ascend import codegen, pipeline

    assert shipped.pipelines["ascend"] is pipeline.ascend_pipeline
    assert shipped.device_codegens["ascend"] is codegen.ASCEND_CODEGEN
    assert shipped.callbacks


def test_registering_twice_changes_nothing():
    before = list_backends()
    backend.register()
    assert list_backends() == before


def test_a_pto_backend_of_tilelang_is_left_alone(monkeypatch):
    ours = registry._BACKENDS["pto"]
    future = dataclasses.replace(ours, device_codegens=dict(ours.device_codegens))
    registered = {**registry._BACKENDS, "pto": future}
    monkeypatch.setattr(registry, "_BACKENDS", registered)
    backend.register()
    assert registered["pto"] is future


def test_an_unknown_registry_is_refused(monkeypatch):
    without = {name: module for name, module in registry._BACKENDS.items() if name != "pto"}
    without["ascend"] = dataclasses.replace(without["ascend"], supports_target=None)
    monkeypatch.setattr(registry, "_BACKENDS", without)
    with pytest.raises(tilelang_pto.ConfigurationError, match="ascend backend"):
        backend.register()
