"""Recording of vector functions: loads, stores, masks, arithmetic, conversions; data movement and flags around them."""

from __future__ import annotations

import textwrap

import pytest

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module
from tilelang_pto.sim.standin.simd_convert import VCVT_PAIRS

HEAD = """\
{imports}
@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)
def k(x: pto.ptr(pto.f32, "gm"), xh: pto.ptr(pto.f16, "gm"), n: pto.i32, s: pto.f32):
    def ub(dtype, at=0):
        return pto.castptr(pto.const(at, dtype=pto.i64), pto.ptr(dtype, "ub"))
    def reg(dtype):
        return pto.vlds(ub(dtype), 0, pto.vreg_type(pto.elements_per_vreg(dtype), dtype))
"""


def record(body: str, surface: str = "2026-08"):
    imports = "from ptodsl import pto, scalar" if surface == "2026-08" else "from ptodsl import pto"
    return record_module(HEAD.format(imports=imports) + textwrap.indent(textwrap.dedent(body), "    "), "k.py").functions[0]


def vector(body: str, surface: str = "2026-08"):
    return record("with pto.vecscope():\n" + textwrap.indent(textwrap.dedent(body), "    "), surface)


def last(body: str, surface: str = "2026-08"):
    function = vector(body, surface)
    operation = list(function.walk())[-1]
    return operation.opcode, [str(function.types[value]) for value in operation.results], operation.attributes


M = {8: "pto.pset_b8('ALL')", 16: "pto.pset_b16('ALL')", 32: "pto.pset_b32('ALL')"}
WIDTH = {
    "f32": 32, "f16": 16, "bf16": 16, "i8": 8, "ui8": 8, "i16": 16, "ui16": 16, "i32": 32, "ui32": 32, "i64": 32, "f8e4m3": 8, "f8e5m2": 8,
    "hif8": 8, "f4e1m2x2": 8, "f4e2m1x2": 8,
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "opcode", "results"),
    [
        ("pto.vadd(reg(pto.f32), reg(pto.f32), {m32})", "vadd", ["vreg<64 x f32>"]),
        ("pto.vmul(reg(pto.bf16), reg(pto.bf16), {m16})", "vmul", ["vreg<128 x bf16>"]),
        ("pto.vand(reg(pto.ui8), reg(pto.ui8), {m8})", "vand", ["vreg<256 x ui8>"]),
        ("pto.vshr(reg(pto.ui32), reg(pto.i32), {m32})", "vshr", ["vreg<64 x ui32>"]),
        ("pto.vadds(reg(pto.f16), 1.5, {m16})", "vadds", ["vreg<128 x f16>"]),
        ("pto.vmuls(reg(pto.f32), s, {m32})", "vmuls", ["vreg<64 x f32>"]),
        ("pto.vshls(reg(pto.i32), n, {m32})", "vshls", ["vreg<64 x i32>"]),
        ("pto.vexp(reg(pto.f32), {m32})", "vexp", ["vreg<64 x f32>"]),
        ("pto.vmadd(reg(pto.f32), reg(pto.f32), reg(pto.f32), {m32})", "vmadd", ["vreg<64 x f32>"]),
        ("pto.vaxpy(2.0, reg(pto.f32), reg(pto.f32), {m32})", "vaxpy", ["vreg<64 x f32>"]),
        ("pto.vexpdif(reg(pto.f16), reg(pto.f16), {m16}, 'EVEN')", "vexpdif", ["vreg<64 x f32>"]),
        ("pto.vcadd(reg(pto.i16), {m16})", "vcadd", ["vreg<64 x i32>"]),
        ("pto.vcmax(reg(pto.f32), {m32})", "vcmax", ["vreg<64 x f32>"]),
        ("pto.vcgadd(reg(pto.ui16), {m16})", "vcgadd", ["vreg<64 x ui32>"]),
        ("pto.vcmp(reg(pto.f32), reg(pto.f32), {m32}, 'LT')", "vcmp", ["mask<b32>"]),
        ("pto.vcmps(reg(pto.f16), 0.0, {m16}, 'ge')", "vcmps", ["mask<b16>"]),
        ("pto.vsel(reg(pto.f32), reg(pto.f32), {m32})", "vsel", ["vreg<64 x f32>"]),
        ("pto.vselr(reg(pto.f32), reg(pto.i32))", "vselr", ["vreg<64 x f32>"]),
        ("pto.vdup(s, {m32})", "vdup", ["vreg<64 x f32>"]),
        ("pto.vdup(reg(pto.f16), {m16}, 'LOWEST')", "vdup", ["vreg<128 x f16>"]),
        ("pto.vbr(pto.const(1, dtype=pto.i8))", "vbr", ["vreg<256 x i8>"]),
        ("pto.vci(3)", "vci", ["vreg<64 x i32>"]),
        ("pto.vintlv(reg(pto.f32), reg(pto.f32))", "vintlv", ["vreg<64 x f32>", "vreg<64 x f32>"]),
        ("pto.vmull(reg(pto.i32), reg(pto.i32), {m32})", "vmull", ["vreg<64 x i32>", "vreg<64 x i32>"]),
        ("pto.vaddc(reg(pto.ui32), reg(pto.ui32), {m32})", "vaddc", ["vreg<64 x ui32>", "mask<b32>"]),
        ("pto.vpack(reg(pto.i32), 'LOWER')", "vpack", ["vreg<128 x ui16>"]),
        ("pto.vbitcast(reg(pto.f32), pto.ui16)", "vbitcast", ["vreg<128 x ui16>"]),
        ("pto.vtrc(reg(pto.f32), {m32}, rnd='F')", "vtrc", ["vreg<64 x f32>"]),
        ("pto.vldsx2(ub(pto.f16), 0, 'DINTLV_B16')", "vldsx2", ["vreg<128 x f16>", "vreg<128 x f16>"]),
        ("pto.vlds(ub(pto.f16), 0, dist='BRC_B16')", "vlds", ["vreg<128 x f16>"]),
        ("pto.vlds(ub(pto.ui8), 0, pto.vreg_type(64, pto.ui32), dist='UNPK4')", "vlds", ["vreg<64 x ui32>"]),
        ("pto.vlds(ub(pto.f32), n, post_update='ON')", "addptr", ["ptr<f32, ub>"]),
        ("pto.vgather2(ub(pto.f32), reg(pto.i32), {m32})", "vgather2", ["vreg<64 x f32>"]),
        ("pto.vldus(ub(pto.f32), pto.vldas(ub(pto.f32)))", "vldus", ["vreg<64 x f32>", "align"]),
        ("pto.plt_b16(n)", "plt", ["mask<b16>", "i32"]),
        ("pto.make_mask(pto.f16, 'PAT_VL8')", "pset", ["mask<b16>"]),
        ("pto.pand({m8}, {m8}, {m8})", "pand", ["mask<b8>"]),
        ("pto.ppack({m32}, 'LOWER')", "ppack", ["mask<b16>"]),
        ("pto.punpack({m16}, 'HIGHER', pto.mask_b32)", "punpack", ["mask<b32>"]),
        ("pto.pbitcast({m16}, pto.mask_type('b32'))", "pbitcast", ["mask<b32>"]),
        ("pto.pintlv_b16({m16}, {m16})", "pintlv", ["mask<b16>", "mask<b16>"]),
        ("pto.plds(ub(pto.ui32), 0)", "plds", ["mask<b32>"]),
    ],
)
def test_calls(call: str, opcode: str, results: list[str]):
    assert last(call.format(m8=M[8], m16=M[16], m32=M[32]))[:2] == (opcode, results)


@pytest.mark.parametrize(
    ("call", "opcodes"),
    [
        ("pto.vrec(reg(pto.f32), {m32})", ["vbr", "vdiv"]),
        ("pto.vrsqrt(reg(pto.f32), {m32})", ["vsqrt", "vbr", "vdiv"]),
        ("pto.vaddrelu(reg(pto.f32), reg(pto.f32), {m32})", ["vadd", "vrelu"]),
        ("pto.vsubs(reg(pto.f32), 2.0, {m32})", ["vadds"]),
        ("pto.vsubs(reg(pto.f32), s, {m32})", ["sub", "vadds"]),
        ("pto.vands(reg(pto.i32), 7, {m32})", ["vbr", "vand"]),
    ],
)
def test_composed_calls(call: str, opcodes: list[str]):
    found = [op.opcode for op in vector(call.format(m32=M[32])).walk()]
    skip = {"vecscope", "const", "castptr", "vlds", "pset"}
    assert [code for code in found if code not in skip] == opcodes


def test_stores():
    function = vector("""\
        m8, m16, m32 = pto.pset_b8("ALL"), pto.pset_b16("ALL"), pto.pset_b32("ALL")
        pto.vsts(reg(pto.bf16), ub(pto.bf16), 0, m16)
        pto.vsts(reg(pto.f32), ub(pto.f32), n, m32, dist="NORM_B32")
        pto.vsts(reg(pto.f32), ub(pto.f32), 5, m32, dist="1PT_B32")
        pto.vsts(reg(pto.f32), ub(pto.f32), 5, dist=pto.VStoreDist._1PT_B32)
        pto.vsts(reg(pto.f16), ub(pto.f16), 0, pto.pbitcast(m16, pto.mask_b32), dist="PK_B32")
        pto.vsts(reg(pto.ui8), ub(pto.ui8), 0, m32, dist="PK4_B32")
        pto.vstsx2(reg(pto.f32), reg(pto.f32), ub(pto.f32), 0, "INTLV_B32", m32)
        pto.vscatter(reg(pto.f32), ub(pto.f32), reg(pto.ui32), m32)
        next_ = pto.vsts(reg(pto.f32), ub(pto.f32), 64, m32, post_update=pto.PostUpdate.ON)
        pto.vstas(pto.vstus(pto.init_align(), 3, reg(pto.f32), next_), next_, 0)
        """)
    stores = [op.attributes for op in function.walk() if op.opcode == "vsts"]
    assert stores == [
        {"dist": "NORM_B16"}, {"dist": "NORM_B32"}, {"dist": "1PT_B32"}, {"dist": "1PT_B32"}, {"dist": "PK_B32"}, {"dist": "PK4_B32"},
        {"dist": "NORM_B32"},
    ]  # fmt: skip
    assert all(len(op.operands) == 4 for op in function.walk() if op.opcode == "vsts")


def _name(family: str) -> str:
    return {"s": "i", "u": "ui"}[family[0]] + family[1:] if family[0] in "su" else family


def _arguments(source: str, target: str) -> dict[str, list[str]]:
    takes, letters = VCVT_PAIRS[source, target]
    bits = {"s": lambda t: int(t[1:]), "u": lambda t: int(t[1:])}
    width = {name: bits[name[0]](name) if name[0] in "su" else WIDTH[name] for name in (source, target)}
    quarter = max(width.values()) == 4 * min(width.values()) or "f4" in (source[:2], target[:2])
    words = {"rnd": list(letters), "sat": ["SAT", "NOSAT"], "part": ["P0", "P1", "P2", "P3"] if quarter else ["EVEN", "ODD"]}
    return {name: words[name] for key, name in (("r", "rnd"), ("s", "sat"), ("p", "part")) if key in takes}


@pytest.mark.parametrize(("source", "target"), sorted(VCVT_PAIRS), ids=lambda name: name)
def test_conversions(source: str, target: str):
    """Each pair takes exactly its attributes and refuses to go without one or with another."""
    arguments = _arguments(source, target)
    first, second = _name(source), _name(target)
    mask = M[min(WIDTH[first], 32)]

    def call(chosen: dict[str, str]) -> str:
        options = "".join(f", {name}={value!r}" for name, value in chosen.items())
        return f"pto.vcvt(reg(pto.{first}), pto.{second}, {mask}{options})"

    chosen = {name: values[0] for name, values in arguments.items()}
    opcode, results, attributes = last(call(chosen))
    assert opcode == "vcvt" and results[0].endswith(f"x {second}>") and attributes == chosen
    for name in chosen:
        with pytest.raises(SimulationError, match=f"needs {name}"):
            last(call({key: value for key, value in chosen.items() if key != name}))
        with pytest.raises(SimulationError, match=f"{name}='X' is not legal"):
            last(call({**chosen, name: "X"}))
    for name, value in (("rnd", "R"), ("sat", "SAT"), ("part", "EVEN")):
        if name not in chosen:
            with pytest.raises(SimulationError, match=f"takes no {name}"):
                last(call({**chosen, name: value}))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pto.vadd(reg(pto.f32), reg(pto.f32), {m16})", "the mask is b16, f32 needs b32"),
        ("pto.vadd(reg(pto.f32), reg(pto.f16), {m32})", "registers of one type"),
        ("pto.vadd(reg(pto.f32), s, {m32})", "a vector register is needed"),
        ("pto.vadd(reg(pto.f32), reg(pto.f32))", r"pto.vadd\(lhs, rhs, mask, result_type=None\)"),
        ("pto.vadd(reg(pto.f32), reg(pto.f32), mask={m32}, colour=1)", "unexpected keyword argument 'colour'"),
        ("pto.vadd(reg(pto.f8e4m3), reg(pto.f8e4m3), {m8})", "vadd of f8e4m3 elements"),
        ("pto.vmul(reg(pto.i8), reg(pto.i8), {m8})", "vmul of i8 elements"),
        ("pto.vexp(reg(pto.bf16), {m16})", "vexp of bf16 elements"),
        ("pto.vdiv(reg(pto.ui32), reg(pto.ui32), {m32})", "vdiv of ui32 elements"),
        ("pto.vadds(reg(pto.f32), n, {m32})", "f32 is needed"),
        ("pto.vadds(reg(pto.i32), 1.5, {m32})", "an int"),
        ("pto.vcadd(reg(pto.i8), {m8})", "vcadd of i8 elements"),
        ("pto.vcmp(reg(pto.f32), reg(pto.f32), {m32}, 'slt')", "one of eq"),
        ("pto.vcmp(reg(pto.f32), reg(pto.f32), {m16}, 'lt')", "needs b32"),
        ("pto.vselr(reg(pto.f32), reg(pto.i16))", "integers of the same width"),
        ("pto.vdup(1.0, {m32})", "a runtime scalar"),
        ("pto.vdup(s, {m16})", "needs b32"),
        ("pto.vdup(s, {m32}, 'LOWEST')", "leave position out"),
        ("pto.vci(0, order='UP')", "ASC, DESC"),
        ("pto.vcvt(reg(pto.f16), pto.bf16, {m16})", "does not exist"),
        ("pto.vcvt(reg(pto.f32), pto.f16, {m16}, rnd='R', sat='SAT', part='EVEN')", "needs b32"),
        ("pto.vreg_type(128, pto.f32)", "not 2048 bits"),
        ("pto.vlds(ub(pto.f32), 0, pto.vreg_type(128, pto.f16))", "pto.castptr the pointer"),
        ("pto.vlds(ub(pto.f32), 0, dist='BRC_B16')", "a distribution of b32"),
        ("pto.vlds(ub(pto.f32), 0, dist='BRC')", "one of BRC_B16"),
        ("pto.vlds(x, 0)", "a pointer to ub"),
        ("pto.vlds(ub(pto.f32), s)", "an integer or index"),
        ("pto.vsts(reg(pto.f32), ub(pto.f32), 0, {m16})", "needs b32"),
        ("pto.vsts(reg(pto.f32), ub(pto.f32), 0)", "the mask of vsts is NoneType"),
        ("pto.vsts(reg(pto.bf16), ub(pto.bf16), 0, {m16}, dist='NORM_B32')", "NORM_B16"),
        ("pto.vsts(reg(pto.f32), ub(pto.i32), 0, {m32})", "pto.castptr the pointer"),
        ("pto.vsts(reg(pto.f32), ub(pto.f32), 0, {m32}, dist='MRG2CHN_B8')", "does not exist on this chip"),
        ("pto.vsts(reg(pto.f16), ub(pto.f16), 0, {m16}, dist='PK_B32')", "needs b32"),
        ("pto.pset_b32('PAT_VL129')", "PAT_VL1 to PAT_VL128"),
        ("pto.pset_b32('MOST')", "is not legal"),
        ("pto.pand({m8}, {m16}, {m8})", "this needs b8"),
        ("pto.plt_b32(1.0)", "a Python int"),
        ("pto.mem_bar('ALL')", "one of LD_ST"),
        ("scalar.load(x, 0)", "UB pointers"),
        ("pto.vunpack(reg(pto.i8), 'LOWER')", "2026-09"),
        ("reg(pto.f32) + reg(pto.f32)", "unsupported operand type"),
    ],
)
def test_vector_faults(call: str, message: str):
    with pytest.raises(SimulationError, match=message):
        vector(call.format(m8=M[8], m16=M[16], m32=M[32]))


def test_surfaces_differ():
    assert last("pto.vdiv(reg(pto.f32), reg(pto.f32), pto.pset_b32('ALL'), precision=pto.DivPrecision.HighPrecision)", "2026-09")[2] == {
        "precision": "HighPrecision"
    }
    assert last("pto.vunpack(reg(pto.ui8), 'HIGHER')", "2026-09")[:2] == ("vzunpack", ["vreg<128 x ui16>"])
    assert last("pto.vexpdif(reg(pto.f16), reg(pto.f16), pto.pset_b16('ALL'))")[2] == {"part": "ODD"}
    with pytest.raises(SimulationError, match="without part"):
        vector("pto.vexpdif(reg(pto.f16), reg(pto.f16), pto.pset_b16('ALL'))", "2026-09")


def test_data_movement():
    function = record("""\
        u = ub(pto.f32)
        pto.mte_gm_ub(x, u, 0, 256, nburst=(4, n, 256))
        pto.mte_load(pto.addptr(x, n), u, 0, 100, nburst=(1, 100, 128), loops=[(2, 1000, 512), (3, 4000, 2048)], pad=(s, 0, 3))
        pto.mte_gm_ub(xh, ub(pto.f16), 0, 100, nburst=(1, 100, 128), pad=(0.0,))
        pto.mte_ub_ub(u, u, 4, nburst=(2, 0, 4))
        pto.mte_ub_gm(u, x, 256, nburst=(4, 256, n), l2_cache="naci")
        pto.set_atomic_f32()
        pto.set_atomic_add()
        pto.mte_store(u, x, 256, nburst=(1, 256, 256))
        pto.set_atomic_none()
        """)
    found = [(op.opcode, len(op.operands), op.attributes) for op in function.walk() if op.opcode.startswith(("mte", "set"))]
    assert found == [
        ("mte_gm_ub", 6, {"l2_cache_ctl": 0, "loops": 0, "pad": 0}),
        ("mte_gm_ub", 15, {"l2_cache_ctl": 0, "loops": 2, "pad": 3}),
        ("mte_gm_ub", 7, {"l2_cache_ctl": 0, "loops": 0, "pad": 1}),
        ("mte_ub_ub", 6, {}),
        ("mte_ub_gm", 6, {"l2_cache": "naci", "loops": 0}),
        ("set_atomic_f32", 0, {}),
        ("set_atomic_add", 0, {}),
        ("mte_ub_gm", 6, {"l2_cache": "nmfv", "loops": 0}),
        ("set_atomic_none", 0, {}),
    ]


def test_flags_and_barriers():
    function = record("""\
        pto.set_flag("MTE2", "PIPE_V", event_id=3)
        pto.wait_flag(pto.Pipe.MTE2, "V", event_id=n % 2)
        pto.get_buf("V", 5)
        pto.rls_buf("V", 5, 1)
        pto.pipe_barrier("ALL")
        pto.set_cross_block("MTE3", 15)
        """)
    found = [(op.opcode, op.attributes) for op in function.walk() if op.opcode not in ("const", "rem")]
    assert found == [
        ("set_flag", {"src": "MTE2", "dst": "V"}),
        ("wait_flag", {"src": "MTE2", "dst": "V"}),
        ("get_buf", {"pipe": "V", "mode": 0}),
        ("rls_buf", {"pipe": "V", "mode": 1}),
        ("pipe_barrier", {"pipe": "ALL"}),
        ("set_cross_block", {"pipe": "MTE3"}),
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pto.set_flag('V', 'V')", "to itself"),
        ("pto.set_flag('V', 'ALL')", "one pipe on each side"),
        ("pto.set_flag('V', 'MTE9')", "one of ALL, FIX"),
        ("pto.set_flag('V', 'MTE3', event_id=8)", "0 to 7"),
        ("pto.set_flag('V', 'MTE3', event_id=True)", "a Python int is needed"),
        ("pto.set_flag('V', 'MTE3', 3)", r"pto.set_flag\(src, dst, \*, event_id=0\)"),
        ("pto.set_flag('V', 'MTE3', event_id=s)", "an integer or index"),
        ("pto.get_buf('V', 32)", "0 to 31"),
        ("pto.pipe_barrier('S')", "another pipe"),
        ("pto.mem_bar('VST_VLD')", "use it in `with pto.vecscope"),
        ("pto.set_cross_block('S', 0)", "one of FIX"),
        ("pto.mte_gm_ub(x, ub(pto.f32), 0, 256)", "nburst"),
        ("pto.mte_gm_ub(x, ub(pto.f32), 0, 256, nburst=(1, 256))", "a tuple of three"),
        ("pto.mte_gm_ub(x, ub(pto.f32), 0, 256, nburst=[1, 256, 256])", "a tuple of three"),
        ("pto.mte_gm_ub(x, ub(pto.f16), 0, 256, nburst=(1, 256, 256))", "elements of one size"),
        ("pto.mte_gm_ub(ub(pto.f32), x, 0, 256, nburst=(1, 256, 256))", "a pointer to gm"),
        ("pto.mte_gm_ub(x, ub(pto.f32), 0, 65536, nburst=(1, 256, 256))", "0 to 65535"),
        ("pto.mte_gm_ub(x, ub(pto.f32), 0, 256.0, nburst=(1, 256, 256))", "a Python int"),
        ("pto.mte_gm_ub(xh, ub(pto.f16), 0, 100, nburst=(1, 100, 128), pad=(1.0,))", "would become an f32"),
        ("pto.mte_gm_ub(xh, ub(pto.f16), 0, 100, nburst=(1, 100, 128), pad=(s,))", "a scalar of the same width"),
        ("pto.mte_gm_ub(x, ub(pto.f32), 0, 100, nburst=(1, 100, 128), pad=(0.0, 1))", r"\(value, left, right\)"),
        ("pto.mte_gm_ub(x, ub(pto.f32), 0, 100, nburst=(1, 100, 128), pad=(0.0, 0, 300))", "0 to 255"),
        ("pto.mte_gm_ub(x, ub(pto.f32), 0, 100, nburst=(1, 100, 128), loops=4)", "inner loop first"),
        ("pto.mte_ub_gm(ub(pto.f32), x, 256, nburst=(1, 256, 256), l2_cache='fast')", "one of idle|one of naci"),
        ("pto.mte_gm_l1(x, x, 256, nburst=(1, 256, 256))", "points to 'gm'"),
    ],
)
def test_kernel_faults(call: str, message: str):
    with pytest.raises(SimulationError, match=message):
        record(call)
