"""Missing orders between the pipes of a vector core: each is found, and its repair is clean."""

from __future__ import annotations

import pytest
from hazard_harness import Hazard, check_hazard

SLOTS = 'a, b, c = at("ub", pto.f32), at("ub", pto.f32, 256), at("ub", pto.f32, 512)\n'


def load(target: str = "a", source: str = "x") -> str:
    return f"pto.mte_gm_ub({source}, {target}, 0, 256, nburst=(1, 256, 256))"


def store(source: str = "a", target: str = "y") -> str:
    return f"pto.mte_ub_gm({source}, {target}, 256, nburst=(1, 256, 256))"


def vector(source: str = "a", target: str = "b", read: str = "", write: str = "") -> str:
    """A vector function that reads ``source`` and writes ``target``, with marks at the two."""
    return f"""\
with pto.vecscope():
    m = pto.pset_b32("ALL")
    v = pto.vlds({source}, 0){read}
    pto.vsts(pto.vadds(v, 1.0, m), {target}, 0, m){write}
"""


def fill(target: str, mark: str = "") -> str:
    return f"""\
with pto.vecscope():
    m = pto.pset_b32("ALL")
    pto.vsts(pto.vdup(pto.const(2.0, dtype=pto.f32), m), {target}, 0, m){mark}
"""


def flag(source: str, target: str, event: str = "0", prefix: str = "+") -> str:
    return (
        f'{prefix}pto.set_flag("{source}", "{target}", event_id={event})\n{prefix}pto.wait_flag("{source}", "{target}", event_id={event})\n'
    )


def missing(first: str, second: str) -> str:
    return f"no {first}->{second} flag, token or barrier between them"


AGAIN = load("a", "pto.addptr(x, 64)")
FILLED = fill("a") + flag("V", "S", prefix="")
READY = flag("MTE2", "V", prefix="") + flag("MTE2", "S", prefix="") + flag("MTE2", "MTE3", prefix="")


def straight(first: str, second: str, pipes: tuple[str, str], hazard: str, **options) -> Hazard:
    return Hazard(SLOTS + first + flag(*pipes) + second, hazard, pipes, missing(*pipes), **options)


PAIRS = {
    "load then vector": straight(f"{load()}  # 1\n", vector(read="  # 2"), ("MTE2", "V"), "RAW"),
    "load then copy out": straight(f"{load()}  # 1\n", f"{store()}  # 2\n", ("MTE2", "MTE3"), "RAW"),
    "load then scalar load": straight(f"{load()}  # 1\n", "pto.store(pto.load(a, 3), y, 0)  # 2\n", ("MTE2", "S"), "RAW", bytes=(12, 16)),
    "load then vector store": straight(f"{load()}  # 1\n", fill("a", "  # 2"), ("MTE2", "V"), "WAW"),
    "load then scalar store": straight(f"{load()}  # 1\n", "pto.store(1.0, a, 5)  # 2\n", ("MTE2", "S"), "WAW", bytes=(20, 24)),
    "vector then copy out": straight(fill("b", "  # 1"), f"{store('b')}  # 2\n", ("V", "MTE3"), "RAW", bytes=(256, 512)),
    "vector then scalar load": straight(fill("b", "  # 1"), "pto.store(pto.load(b, 0), y, 0)  # 2\n", ("V", "S"), "RAW", bytes=(256, 260)),
    "vector then load": straight(fill("a", "  # 1"), f"{load()}  # 2\n", ("V", "MTE2"), "WAW"),
    "vector then scalar store": straight(fill("a", "  # 1"), "pto.store(1.0, a, 63)  # 2\n", ("V", "S"), "WAW", bytes=(252, 256)),
    "scalar store then vector": straight(FILLED + "pto.store(3.0, a, 1)  # 1\n", vector(read="  # 2"),
                                         ("S", "V"), "RAW", bytes=(4, 8)),
    "scalar store then copy out": straight(FILLED + flag("V", "MTE3", prefix="") + "pto.store(3.0, a, 1)  # 1\n",
                                           f"{store()}  # 2\n", ("S", "MTE3"), "RAW", bytes=(4, 8)),
    "scalar store then load": straight("pto.store(3.0, a, 1)  # 1\n", f"{load()}  # 2\n", ("S", "MTE2"), "WAW", bytes=(4, 8)),
    "scalar load then load": straight(FILLED + "pto.store(pto.load(a, 2), y, 0)  # 1\n", f"{load()}  # 2\n",
                                      ("S", "MTE2"), "WAR", bytes=(8, 12)),
    "scalar load then vector store": straight(FILLED + "pto.store(pto.load(a, 2), y, 0)  # 1\n",
                                              fill("a", "  # 2"), ("S", "V"), "WAR", bytes=(8, 12)),
    "copy out then load": straight(load() + "\n" + READY + f"{store()}  # 1\n", f"{AGAIN}  # 2\n", ("MTE3", "MTE2"), "WAR"),
    "copy out then vector store": straight(load() + "\n" + READY + f"{store()}  # 1\n", fill("a", "  # 2"), ("MTE3", "V"), "WAR"),
    "copy out then scalar store": straight(load() + "\n" + READY + f"{store()}  # 1\n", "pto.store(1.0, a, 0)  # 2\n", ("MTE3", "S"), "WAR",
                                           bytes=(0, 4)),
    "vector load then load": straight(load() + "\n" + READY + vector(read="  # 1"), f"{AGAIN}  # 2\n", ("V", "MTE2"), "WAR"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_pipes(name: str) -> None:
    check_hazard(PAIRS[name])


# -- in loops ----------------------------------------------------------------------------------------------------------


def double_buffered(without: str) -> str:
    """Three tiles through two buffers; the flags back from ``without`` are in the repaired kernel only."""
    lines = """\
load_free, store_free = ("V", "MTE2"), ("MTE3", "V")
with pto.for_(0, 3, step=1) as i:
    j = pto.cast(i, pto.i64)
    u, w = pto.addptr(at("ub", pto.f32), (j & 1) * 64), pto.addptr(at("ub", pto.f32, 1024), (j & 1) * 64)
    with pto.if_(pto.cmp(j, 1, "gt")) as br:
        with br.then_:
            pto.wait_flag(*load_free, event_id=j - 2)
    pto.mte_gm_ub(pto.addptr(x, j * 64), u, 0, 256, nburst=(1, 256, 256)){load}
    pto.set_flag("MTE2", "V", event_id=j)
    pto.wait_flag("MTE2", "V", event_id=j)
    with pto.if_(pto.cmp(j, 1, "gt")) as br:
        with br.then_:
            pto.wait_flag(*store_free, event_id=j - 2)
    with pto.vecscope():
        m = pto.pset_b32("ALL")
        v = pto.vlds(u, 0){read}
        pto.vsts(pto.vadds(v, 1.0, m), w, 0, m){write}
    pto.set_flag(*load_free, event_id=j)
    pto.set_flag("V", "MTE3", event_id=j)
    pto.wait_flag("V", "MTE3", event_id=j)
    pto.mte_ub_gm(w, pto.addptr(y, j * 64), 256, nburst=(1, 256, 256)){store}
    pto.set_flag(*store_free, event_id=j)
[pto.wait_flag(*load_free, event_id=j) for j in range(1, 3)]
[pto.wait_flag(*store_free, event_id=j) for j in range(1, 3)]
""".splitlines()
    out = []
    for at, line in enumerate(lines):
        branch = "br" in line and any(f"wait_flag(*{without}" in later for later in lines[at : at + 3])
        out.append("+" * (f"_flag(*{without}" in line or branch) + line)
    return "\n".join(out) + "\n"


LOOPS = {
    "V->MTE2 under double buffering": Hazard(
        double_buffered("load_free").format(read="  # 1", load="  # 2", write="", store=""),
        "WAR", ("V", "MTE2"), missing("V", "MTE2"), executions=(1, 3), also=("WAW",),
    ),
    "MTE3->V under double buffering": Hazard(
        double_buffered("store_free").format(store="  # 1", write="  # 2", read="", load=""),
        "WAR", ("MTE3", "V"), missing("MTE3", "V"), bytes=(1024, 1280), executions=(1, 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_orders_back_from_the_user_of_a_buffer(name: str) -> None:
    check_hazard(LOOPS[name])


# -- one pipe ----------------------------------------------------------------------------------------------------------

OWN = {
    "two loads": Hazard(
        f"{SLOTS}{load()}  # 1\n+pto.pipe_barrier('MTE2')\n{load('pto.addptr(a, 8)')}  # 2\n", "WAW", ("MTE2", "MTE2"),
        'no pipe_barrier("MTE2") between them, and commands of this pipe may overlap', bytes=(32, 256),
    ),
    "two copies out": Hazard(
        SLOTS + fill("a") + flag("V", "MTE3", prefix="") + f"{store()}  # 1\n+pto.pipe_barrier('MTE3')\n"
        f"{store('a', 'pto.addptr(y, 2)')}  # 2\n",
        "WAW", ("MTE3", "MTE3"), "no MTE3->MTE3 order between them", memory="GM", tensor="y", bytes=(8, 256),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_commands_of_one_pipe_that_overlap(name: str) -> None:
    check_hazard(OWN[name])


# -- what else orders pipes --------------------------------------------------------------------------------------------


def buffered(first: str, second: str) -> str:
    """Tokens around a load and a vector function, with the ids of each."""
    return f"""\
{SLOTS}pto.get_buf("MTE2", {first})
{load()}  # 1
pto.rls_buf("MTE2", {first})
pto.get_buf("V", {second})
{vector(read="  # 2")}pto.rls_buf("V", {second})
"""


TOKENS = buffered("0", "TOKEN").replace('pto.get_buf("V", TOKEN)', '-pto.get_buf("V", 1)\n+pto.get_buf("V", 0)')
TOKENS = TOKENS.replace('pto.rls_buf("V", TOKEN)', '-pto.rls_buf("V", 1)\n+pto.rls_buf("V", 0)')

OTHERS = {
    "tokens": Hazard(TOKENS, "RAW", ("MTE2", "V"), missing("MTE2", "V")),
    "tokens back": Hazard(
        f"""\
{SLOTS}{fill("a")}-pto.get_buf("V", 3)
+pto.get_buf("V", 2)
{vector(read="  # 1")}-pto.rls_buf("V", 3)
+pto.rls_buf("V", 2)
pto.get_buf("MTE2", 2)
{load()}  # 2
pto.rls_buf("MTE2", 2)
""".replace(fill("a"), load() + "\n" + flag("MTE2", "V", prefix="")),
        "WAR", ("V", "MTE2"), missing("V", "MTE2"), also=("WAW",),
    ),
    "tokens of one pipe do not order it with itself": Hazard(
        f"""\
{SLOTS}pto.get_buf("MTE2", 0)
{load()}  # 1
pto.rls_buf("MTE2", 0)
pto.get_buf("MTE2", 0)
+pto.pipe_barrier("MTE2")
{load()}  # 2
pto.rls_buf("MTE2", 0)
""",
        "WAW", ("MTE2", "MTE2"), 'no pipe_barrier("MTE2") between them, and commands of this pipe may overlap',
    ),
    "a get that does not block": Hazard(
        f"""\
{SLOTS}pto.get_buf("MTE2", 0)
{load()}  # 1
pto.rls_buf("MTE2", 0)
-pto.get_buf("V", 0, 1)
+pto.get_buf("V", 0)
{vector(read="  # 2")}-pto.rls_buf("V", 0, 1)
+pto.rls_buf("V", 0)
""",
        "RAW", ("MTE2", "V"), missing("MTE2", "V"),
    ),
    "the barrier of another pipe": Hazard(
        f"{SLOTS}{load()}  # 1\n-pto.pipe_barrier('MTE2')\n-pto.pipe_barrier('V')\n+pto.pipe_barrier('ALL')\n{vector(read='  # 2')}",
        "RAW", ("MTE2", "V"), missing("MTE2", "V"),
    ),
    "the scalar unit waits for all": Hazard(
        f"{SLOTS}pto.store(1.0, a, 0)  # 1\n+pto.pipe_barrier('ALL')\n{load()}  # 2\n",
        "WAW", ("S", "MTE2"), missing("S", "MTE2"), bytes=(0, 4),
    ),
    "a flag the other way": Hazard(
        f"{SLOTS}{load()}  # 1\n{flag('V', 'MTE2', prefix='-')}{flag('MTE2', 'V')}{vector(read='  # 2')}",
        "RAW", ("MTE2", "V"), missing("MTE2", "V"),
    ),
    "a flag that is set too early": Hazard(
        f"{SLOTS}-pto.set_flag('MTE2', 'V')\n{load()}  # 1\n+pto.set_flag('MTE2', 'V')\npto.wait_flag('MTE2', 'V')\n{vector(read='  # 2')}",
        "RAW", ("MTE2", "V"), missing("MTE2", "V"),
    ),
    "a wait that comes too late": Hazard(
        f"{SLOTS}{load()}  # 1\npto.set_flag('MTE2', 'V')\n+pto.wait_flag('MTE2', 'V')\n"
        f"{vector(read='  # 2')}-pto.wait_flag('MTE2', 'V')\n",
        "RAW", ("MTE2", "V"), missing("MTE2", "V"),
    ),
    "over a third pipe": Hazard(
        f"{SLOTS}{load()}  # 1\n{flag('MTE2', 'MTE3')}{flag('MTE3', 'V', prefix='')}{vector(read='  # 2')}",
        "RAW", ("MTE2", "V"), missing("MTE2", "V"),
    ),
    "over the scalar unit": Hazard(
        f"{SLOTS}{load()}  # 1\n{flag('MTE2', 'S')}{vector(read='  # 2')}", "RAW", ("MTE2", "V"), missing("MTE2", "V")
    ),
    "bytes of a burst": Hazard(
        f"""\
{SLOTS}pto.mte_gm_ub(x, a, 0, 32, nburst=(2, 32, 64))  # 1
{flag("MTE2", "V")}with pto.vecscope():
    m = pto.pset_b32("VL8")
    pto.vsts(pto.vdup(pto.const(2.0, dtype=pto.f32), m), a, 8, m)
    pto.vsts(pto.vdup(pto.const(2.0, dtype=pto.f32), m), a, 16, m)  # 2
""",
        "WAW", ("MTE2", "V"), missing("MTE2", "V"), bytes=(64, 96),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_tokens_barriers_and_flags_in_the_wrong_place(name: str) -> None:
    check_hazard(OTHERS[name])
