"""Scalars that are tensor extents are recognised by where the host takes them from, not by name."""

from __future__ import annotations

import pytest
import simple_kernels
import tvm
from tilelang.backend.module import create_backend_context
from tilelang.engine.lower import lower_to_host_device_ir

from tilelang_pto.codegen.attributes import EXTENT_PARAMETERS
from tilelang_pto.lowering import emit_function
from tilelang_pto.target import pto_target


def device_function(function):
    context = create_backend_context(pto_target(), None, "tvm_ffi")
    with tvm.transform.PassContext(opt_level=3), context.target:
        _, device, *_ = lower_to_host_device_ir(function, context)
    (only,) = device.functions.values()
    return only


@pytest.mark.parametrize(
    ("make", "extents"),
    [(simple_kernels.vector_add, ["rows"]), (simple_kernels.strided_scale, ["rows"])],  # not the stride, not the scalar argument
)
def test_only_extents_are_marked(make, extents):
    assert list(device_function(make()).attrs[EXTENT_PARAMETERS]) == extents


def test_an_extent_saves_the_floor_modulo():
    text = emit_function(simple_kernels.vector_add(), target=pto_target(surface="2026-09")).text
    assert "- rows // " not in text
