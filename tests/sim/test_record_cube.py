"""Recording of cube calls: the spellings of both API states, enumerations, and what is refused before anything runs."""

from __future__ import annotations

import pytest
from cube_harness import module

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module

ENDS = """\
la, lb, lc = at("left", pto.f16), at("right", pto.f16), at("acc", pto.f32)
l1, ub = at("mat", pto.f16), at("ub", pto.f32)
i = pto.cast(n, pto.i32)
"""


def recorded(call: str, surface: str = "2026-09", kind: str | None = "cube"):
    """The last operation of a kernel with one call."""
    ends = ENDS
    if surface == "2026-08":
        ends = ends.replace("pto.cast", "scalar.cast")
    text = module({"x": "f16", "c": "f32", "n": ":si32"}, ends + call, kind, surface)
    (function,) = record_module(text, "k.py", surface).functions
    return list(function.walk())[-1]


def refused(call: str, surface: str = "2026-09") -> str:
    with pytest.raises(SimulationError) as info:
        recorded(call, surface)
    return str(info.value)


@pytest.mark.parametrize("surface", ["2026-08", "2026-09"])
def test_static_flags(surface: str) -> None:
    call = "pto.mad(la, lb, lc, 16, 16, 16, unit_flag=pto.MadUnitFlagMode.CHECK_AND_SET, disable_gemv=True, sat=pto.SatMode.ON, n_dir=True)"
    found = recorded(call, surface)
    assert found.opcode == "mad" and len(found.operands) == 6
    assert found.attributes == {"unit_flag": "check_and_set", "disable_gemv": 1, "sat": "on"}


def test_flags_of_the_run() -> None:
    found = recorded("pto.mad(la, lb, lc, 16, 16, 16, unit_flag=i, disable_gemv=i, init=i)")
    assert len(found.operands) == 9
    assert found.attributes == {"runtime_unit_flag": 1, "runtime_disable_gemv": 1, "runtime_init": 1}
    bias = recorded('pto.mad_bias(la, lb, lc, at("bias", pto.f32), 16, 16, 16, bias_init=i)')
    assert len(bias.operands) == 8 and bias.attributes == {"disable_gemv": 0, "runtime_bias_init": 1}


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("disable_gemv=i", "disable_gemv is a runtime i32"),
        ("unit_flag=i", "unit_flag=<"),
        ("init=i", "wrong arguments"),
        ("n_dir=2", "n_dir is int 2"),
        ('sat="preserve_nan"', "sat='preserve_nan' is not legal"),
    ],
)
def test_august_has_static_flags_only(flag: str, message: str) -> None:
    assert message in refused(f"pto.mad(la, lb, lc, 16, 16, 16, {flag})", "2026-08")


def test_enumerations_stand_for_their_words() -> None:
    call = "pto.mte_gm_l1_frac(x, l1, pto.FractalMode.DN2NZ, shape=(16, 16), src_layout=(32,), dst_group=(1, 1, 16, 0), ctrl=(0, False))"
    assert recorded(call).attributes == {"mode": "dn2nz"}
    call = "pto.mte_l0c_gm(lc, c, 16, 16, 16, 16, 0, 0, unit_flag=pto.AccStoreUnitFlagCtrl.CHECK_ONLY, layout=pto.FractalMode.NZ2ND)"
    assert recorded(call).attributes == {"unit_flag": "check_only", "layout": "nz2nd"}
    call = "pto.mte_l0c_ub(lc, ub, 16, 16, 16, 16, split={})"
    for split in ("pto.SplitMode.M", "'split_m'", "'M'"):
        assert recorded(call.format(split)).attributes == {"split": "M"}
    call = "pto.mad(at('left', pto.f32), at('right', pto.f32), lc, 16, 16, 16, tf32_mode=pto.Tf32Mode.ROUND_AWAY)"
    assert recorded(call).attributes["tf32_mode"] == "round_away"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pto.mte_l1_l0a(l1, la, 16, 16, transpose=i)", "transpose is a runtime i32"),
        ("pto.mte_l1_l0a(l1, la, 16, 16, transpose=2)", "transpose is int 2"),
        ("pto.mte_gm_l1_frac(x, l1, 'nd2nz', shape=(1, 1), src_layout=(2,), dst_group=(1, 1, 1, 0), ctrl=0)", "ctrl is int 0"),
        ("pto.mte_gm_l1_frac(x, l1, 'nd2nz', shape=(1, 1), src_layout=(2,), dst_group=(1, 1, 1), ctrl=(0, 0))", "a tuple of 4"),
        ("pto.mte_l0c_gm(lc, c, 16, 16, 16, 16, 4, 0)", "sid=4 is out of range"),
        (
            'pto.mte_l0c_l1(lc, at("mat", pto.si8), 16, 32, 16, 32, pre_quant=(pto.f32(1.0), "qf322b8_pre_scalar"))',
            "a scalar payload has no bit for signed results",
        ),
        ("pto.mte_l0c_gm(lc, c, 16, 16, 16, 16, 0, 0, loop3=(1, 2))", "loop3 is tuple (1, 2)"),
        ("pto.mte_l0c_gm(lc, c, 16, 16, 16, 16, 0, 0, pre_relu=('relu', None, None))", "the mode of pre_relu"),
        ("pto.mte_l0c_gm(lc, c, 16, 16, 16, 16, 0, 0, pre_relu='normal_relu')", "pre_relu is str 'normal_relu'"),
        ("pto.mte_l0c_gm(lc, c, 16, 16, 16, 16, 0, 0, atomic='f32')", "atomic is str 'f32'"),
        ("pto.set_intra_block('FIX', 32)", "event_id=32 is out of range"),
        ("pto.set_intra_block('M', 0)", "pipe='M' is not legal"),
        ("pto.wait_intra_block('V', pto.cast(n, pto.i16))", "event_id is a runtime i16"),
        ("pto.mte_l1_bt(l1, at('bias', pto.f32), 65536, nburst=(1, 0, 0))", "len_burst=65536 is out of range"),
    ],
)
def test_refused_before_anything_runs(call: str, message: str) -> None:
    text = refused(call)
    assert message in text and "k.py:" in text


def test_sections_are_operations_of_the_kernel() -> None:
    body = "with pto.section('cube'):\n    pto.pipe_barrier('M')\nwith pto.section('vector'):\n    pto.pipe_barrier('V')\n"
    (function,) = record_module(module({"x": "f16"}, body, None), "k.py").functions
    assert [(op.opcode, op.attributes["kind"]) for op in function.body.operations] == [("section", "cube"), ("section", "vector")]
    assert [[inner.attributes for inner in op.regions[0].operations] for op in function.body.operations] == [
        [{"pipe": "M"}],
        [{"pipe": "V"}],
    ]
