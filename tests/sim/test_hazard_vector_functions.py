"""Order inside a vector function: loads and stores that no mem_bar and no register orders."""

from __future__ import annotations

import pytest
from hazard_harness import VECTOR, Hazard, check_hazard, findings_of, text_of

HEAD = """\
a, b = at("ub", pto.f32), at("ub", pto.f32, 1024)
pto.mte_gm_ub(x, a, 0, 2048, nburst=(1, 2048, 2048))
pto.set_flag("MTE2", "V")
pto.wait_flag("MTE2", "V")
with pto.vecscope():
    m, few = pto.pset_b32("ALL"), pto.pset_b32("VL8")
    two = pto.vdup(pto.const(2.0, dtype=pto.f32), m)
"""
TAIL = """\
pto.set_flag("V", "MTE3")
pto.wait_flag("V", "MTE3")
pto.mte_ub_gm(a, y, 2048, nburst=(1, 2048, 2048))
"""


def body(lines: str) -> str:
    """``lines`` stand inside the vector function."""
    out = []
    for line in lines.strip().splitlines():
        sign = line[0] if line[0] in "+-" else ""
        out.append(f"{sign}    {line.removeprefix(sign)}")
    return HEAD + "\n".join(out) + "\n" + TAIL


def hazard(kind: str, name: str, lines: str, **options) -> Hazard:
    return Hazard(body(lines), kind, ("V", "V"), f'no mem_bar("{name}") between them in the vector function', **options)


CASES = {
    "store then load": hazard("RAW", "VST_VLD", """
pto.vsts(two, a, 0, m)  # 1
+pto.mem_bar("VST_VLD")
v = pto.vlds(a, 0)  # 2
pto.vsts(v, b, 0, m)
"""),
    "load then store": hazard("WAR", "VLD_VST", """
v = pto.vlds(a, 0)  # 1
+pto.mem_bar("VLD_VST")
pto.vsts(two, a, 0, m)  # 2
pto.vsts(v, b, 0, m)
"""),
    "store then store": hazard("WAW", "VST_VST", """
pto.vsts(two, a, 0, m)  # 1
+pto.mem_bar("VST_VST")
pto.vsts(two, a, 8, few)  # 2
""", bytes=(32, 64)),
    "all vector accesses": hazard("RAW", "VST_VLD", """
pto.vsts(two, a, 0, m)  # 1
-pto.mem_bar("VLD_VST")
-pto.mem_bar("VST_VST")
+pto.mem_bar("VV_ALL")
v = pto.vlds(a, 0)  # 2
pto.vsts(v, b, 0, m)
"""),
    "vector store then scalar load": hazard("RAW", "VST_LD", """
pto.vsts(two, a, 0, m)  # 1
-pto.mem_bar("VST_VLD")
+pto.mem_bar("VST_LD")
s = pto.load(a, 3)  # 2
pto.vsts(pto.vdup(s, m), b, 0, m)
""", bytes=(12, 16)),
    "scalar store then vector load": hazard("RAW", "ST_VLD", """
pto.store(4.0, a, 3)  # 1
+pto.mem_bar("ST_VLD")
v = pto.vlds(a, 0)  # 2
pto.vsts(v, b, 0, m)
""", bytes=(12, 16)),
    "scalar store then vector store": hazard("WAW", "ST_VST", """
pto.store(4.0, a, 3)  # 1
+pto.mem_bar("SV_ALL")
pto.vsts(two, a, 0, m)  # 2
""", bytes=(12, 16)),
    "vector store then scalar store": hazard("WAW", "VST_ST", """
pto.vsts(two, a, 0, m)  # 1
+pto.mem_bar("VS_ALL")
pto.store(4.0, a, 3)  # 2
""", bytes=(12, 16)),
    "vector load then scalar store": hazard("WAR", "VLD_ST", """
v = pto.vlds(a, 0)  # 1
+pto.mem_bar("VLD_ST")
pto.store(4.0, a, 3)  # 2
pto.vsts(v, b, 0, m)
""", bytes=(12, 16)),
    "only the bytes that are stored": hazard("RAW", "VST_VLD", """
pto.vsts(two, a, 0, few)
pto.vsts(two, a, 64, m)  # 1
+pto.mem_bar("VST_VLD")
v = pto.vlds(a, 8)  # 2
pto.vsts(v, b, 0, m)
""", bytes=(256, 288)),
    "the mask decides what is stored": hazard("WAW", "VST_VST", """
pto.vsts(two, a, 0, pto.pset_b32("VL16"))  # 1
+pto.mem_bar("VST_VST")
pto.vsts(two, a, 8, m)  # 2
""", bytes=(32, 64)),
    "a value that goes elsewhere": hazard("WAR", "VLD_VST", """
v = pto.vlds(a, 0)  # 1
w = pto.vlds(b, 0)
pto.vsts(v, b, 64, m)
+pto.mem_bar("VLD_VST")
pto.vsts(w, a, 0, m)  # 2
"""),
    "the next round of a loop": hazard("WAW", "VST_VST", """
with pto.for_(0, 4, step=1) as i:
    pto.vsts(two, a, i * 32, m)  # 1 # 2
+    pto.mem_bar("VST_VST")
""", bytes=(128, 512), executions=(1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_order_by_barriers(name: str) -> None:
    check_hazard(CASES[name], ("late", "eager"))


CLEAN = {
    "a loaded value is stored where it came from": "v = pto.vlds(a, 0)\npto.vsts(v, a, 0, m)",
    "through arithmetic": "v = pto.vlds(a, 0)\nw = pto.vadd(v, two, m)\nw = pto.vmul(w, w, m)\npto.vsts(w, a, 0, m)",
    "into the next vector function": (
        "pto.vsts(two, a, 0, m)\npass\n"  # the second function follows in `two_functions`
    ),
    "other bytes": "pto.vsts(two, a, 0, m)\nv = pto.vlds(a, 64)\npto.vsts(v, b, 0, m)",
    "two loads": "v = pto.vlds(a, 0)\nw = pto.vlds(a, 8)\npto.vsts(v, b, 0, m)\npto.vsts(w, b, 64, m)",
}


@pytest.mark.parametrize("name", CLEAN)
def test_what_needs_no_barrier(name: str) -> None:
    text = body(CLEAN[name])
    if "next vector function" in name:
        second = 'with pto.vecscope():\n    m = pto.pset_b32("ALL")\n    pto.vsts(pto.vlds(a, 0), a, 64, m)\n'
        text = text.replace(TAIL, second + TAIL)
    findings, _ = findings_of(text_of(text, VECTOR, "vector"), VECTOR)
    assert [f.message for f in findings] == []
