"""Lowering and emission without building: the text is the one the JIT would run.

No ``from __future__ import annotations`` here: TileLang evaluates the annotations of a kernel.
"""

import pytest
import tilelang
from tilelang.ascend import language as T
from tilelang.transform import PassConfigKey

from tilelang_pto.lowering import emit_function, pass_configs_of

FAST = {PassConfigKey.TL_ENABLE_FAST_MATH: True}


def division(configs=None):
    @T.prim_func
    def divide(a: T.Tensor((64,), "float32"), b: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            x, y = T.alloc_shared((64,), "float32"), T.alloc_shared((64,), "float32")
            T.copy(a, x)
            T.copy(b, y)
            with T.SimdVF():
                lanes = T.simd.pset(32)
                T.simd.vsts(y[0], T.simd.vdiv(T.simd.vld(x[0]), T.simd.vld(y[0]), lanes), lanes)
            T.copy(y, b)

    return divide if configs is None else divide.with_attr("tilelang_pass_configs", {key.value: value for key, value in configs.items()})


@pytest.mark.parametrize("carried", [None, FAST])
@pytest.mark.parametrize("given", [None, FAST, {"tl.enable_fast_math": False}])
def test_fast_math_is_that_of_the_jit(carried, given):
    with tilelang.backend.target.determine_target("pto", return_object=True):
        function = division(carried)
    text = emit_function(function, pass_configs=given).text
    compiled = tilelang.compile(function, target="pto", pass_configs=given).get_kernel_source()
    assert text == compiled
    fast = given is FAST or (given is None and carried is FAST)
    assert ("vdiv_exact" not in text) == fast


def test_given_pass_configurations_win():
    function = division({PassConfigKey.TL_ENABLE_FAST_MATH: True})
    assert pass_configs_of(function)["tl.enable_fast_math"]
    assert not pass_configs_of(function, {PassConfigKey.TL_ENABLE_FAST_MATH: False})["tl.enable_fast_math"]
    assert "tl.enable_fast_math" not in pass_configs_of(division())
