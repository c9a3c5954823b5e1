"""Loads and stores of every distribution, gathers, scatters, permutes, packing, predicates and histograms against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from engine_harness import NUMPY, bits, in_ub, lanes
from hypothesis import given
from hypothesis import strategies as st
from property_inputs import agree, arrays, examples, made, masks

from tilelang_pto.errors import SimulationError

UNSIGNED = {8: "ui8", 16: "ui16", 32: "ui32"}
MASK = "m = pto.vcmps(pto.vlds(k, 0), 0, pto.pset_b{b}('ALL'), 'ne')\n"


def selector(mask: np.ndarray, width: int) -> tuple[str, np.ndarray]:
    return UNSIGNED[width], mask.astype(NUMPY[UNSIGNED[width]])


def spread(values: np.ndarray, step: int) -> np.ndarray:
    """Each value at the start of ``step`` lanes, zeros between."""
    out = np.zeros(values.size * step, values.dtype)
    out[::step] = values
    return out


# Distribution: element width, alignment in bytes, and the register made from memory that starts at the address.
LOADS = {
    "NORM": (32, 32, lambda m: m[:64]),
    **{f"BRC_B{w}": (w, w // 8, lambda m, w=w: np.repeat(m[:1], 2048 // w)) for w in (8, 16, 32)},
    **{f"US_B{w}": (w, 32, lambda m, w=w: np.repeat(m[: 1024 // w], 2)) for w in (8, 16)},
    **{f"DS_B{w}": (w, 32, lambda m, w=w: m[: 4096 // w : 2]) for w in (8, 16)},
    **{f"UNPK_B{w}": (w, 32, lambda m, w=w: spread(m[: 1024 // w], 2)) for w in (8, 16, 32)},
    "UNPK4": (8, 32, lambda m: spread(m[:64], 4)),
    **{f"BRC_BLK {w}": (w, 32, lambda m, w=w: np.tile(m[: 256 // w], 8)) for w in (8, 16, 32)},
    **{f"E2B_B{w}": (w, w, lambda m, w=w: np.repeat(m[:8], 256 // w)) for w in (16, 32)},
}  # fmt: skip


@pytest.mark.parametrize("name", LOADS)
def test_loads_of_every_distribution(name):
    """At any address their alignment allows; at others the access is refused."""
    width, alignment, model = LOADS[name]
    kind = UNSIGNED[width]
    dist = name.partition(" ")[0]
    registers = {"UNPK_B8": "ui8", "UNPK_B16": "ui16", "UNPK_B32": "ui32"}.get(name, kind)
    body = f"o = pto.load(at, 0)\npto.vsts(pto.vlds(a, o, dist='{dist}'), c, 0, pto.pset_b{bits(registers)}('ALL'))\n"
    count = 2048 // width * 3

    @examples(15)
    @given(arrays(kind, count), st.integers(0, 256 // alignment))
    def check(memory, step):
        offset = step * alignment * 8 // width
        inputs = {"a": (kind, memory), "at": ("i32", [offset])}
        agree(in_ub(body, inputs, {"c": (kind, 2048 // width)})["c"], model(memory[offset:]), f"{name} at {offset}")

    check()
    for offset in range(1, alignment * 8 // width):
        with pytest.raises(SimulationError, match="misaligned"):
            in_ub(body, {"a": (kind, np.zeros(count)), "at": ("i32", [offset])}, {"c": (kind, 2048 // width)})


# Distribution: lane width, elements of memory per lane register, and what is stored of the register (as bytes or wider), with its mask.
STORES = {
    **{f"NORM_B{w}": (w, 32, lambda r: r, lambda m: m) for w in (8, 16, 32)},
    **{f"1PT_B{w}": (w, w // 8, lambda r: r[:1], lambda m: np.ones(1, bool)) for w in (8, 16, 32)},
    "PK_B16": (16, 32, lambda r: r.astype(np.uint8), lambda m: m),
    "PK_B32": (32, 32, lambda r: r.astype(np.uint16), lambda m: m),
    "PK4_B32": (32, 32, lambda r: r.astype(np.uint8), lambda m: m),
}


@pytest.mark.parametrize("name", STORES)
def test_stores_of_every_distribution(name):
    """Only active lanes are written, byte by byte; the rest of memory stays."""
    width, alignment, packed, masked = STORES[name]
    kind, n = UNSIGNED[width], 2048 // width
    body = MASK.format(b=width) + f"o = pto.load(at, 0)\npto.vsts(pto.vlds(a, 0), c, o, m, dist='{name}')\n"

    @examples(15)
    @given(arrays(kind, n), masks(n), st.integers(0, 256 // alignment))
    def check(a, mask, step):
        offset = step * alignment * 8 // width
        inputs = {"a": (kind, a), "k": selector(mask, width), "at": ("i32", [offset])}
        found = in_ub(PREPARE.format(b=width, n=n) + body, inputs, {"c": (kind, 2 * n + 256)})["c"].view(np.uint8)
        stored, active = packed(a), masked(mask)
        expected = np.full(found.size, 0xA5, np.uint8)
        place = expected[step * alignment :][: stored.nbytes].view(stored.dtype)
        place[active] = stored[active]
        agree(found[:512], expected[:512], f"{name} at {offset}")

    check()
    for offset in range(1, alignment * 8 // width):
        with pytest.raises(SimulationError, match="misaligned"):
            inputs = {"a": (kind, np.zeros(n)), "k": selector(np.ones(n, bool), width), "at": ("i32", [offset])}
            in_ub(body, inputs, {"c": (kind, 2 * n + 256)})


PREPARE = """\
filled = pto.vbitcast(pto.vbr(pto.const(0xA5A5A5A5, dtype=pto.ui32)), pto.ui{b})
pto.vsts(filled, c, 0, pto.pset_b{b}('ALL'))
pto.vsts(filled, c, {n}, pto.pset_b{b}('ALL'))
pto.mem_bar("VST_VST")
"""


@pytest.mark.parametrize("width", [8, 16, 32])
def test_pairs_of_registers(width):
    kind, n = UNSIGNED[width], 2048 // width
    block = 256 // width
    body = f"""\
w = pto.pset_b{width}('ALL')
x, y = pto.vldsx2(a, 0, dist='DINTLV_B{width}')
pto.vsts(x, c, 0, w)
pto.vsts(y, c, {n}, w)
x, y = pto.vldsx2(a, 0, dist='BDINTLV')
pto.vsts(x, c, {2 * n}, w)
pto.vsts(y, c, {3 * n}, w)
x, y = pto.vlds(a, 0), pto.vlds(a, {n})
pto.vstsx2(x, y, c, {4 * n}, 'INTLV_B{width}', w)
for i, (p, q) in enumerate((pto.vintlv(x, y), pto.vdintlv(x, y))):
    pto.vsts(p, c, {6 * n} + i * {2 * n}, w)
    pto.vsts(q, c, {7 * n} + i * {2 * n}, w)
"""

    @examples(12)
    @given(arrays(kind, 2 * n))
    def check(memory):
        found = in_ub(body, {"a": (kind, memory)}, {"c": (kind, 10 * n)})["c"]
        zipped = memory.reshape(2, n).T.ravel()
        blocks = memory.reshape(-1, block)
        apart = np.r_[memory[0::2], memory[1::2]]
        wanted = np.r_[apart, blocks[0::2].ravel(), blocks[1::2].ravel(), zipped, zipped, apart]
        agree(found, wanted, "pairs")

    check()


@pytest.mark.parametrize("kind", ["ui8", "i8", "ui16", "i16", "f16", "ui32", "i32", "f32"])
def test_gathers_and_scatters(kind):
    """Masked lanes give zero and check no address; a scatter writes active lanes only."""
    width = 32 if bits(kind) == 32 else 16
    n, index = 2048 // width, UNSIGNED[width]
    body = MASK.format(b=width) + f"""\
got = pto.vgather2(a, pto.vlds(i, 0), m)
pto.vsts(pto.vbitcast(got, pto.{UNSIGNED[width]}), c, 0, pto.pset_b{width}('ALL'))
"""  # fmt: skip
    if bits(kind) != 8:
        body += "pto.vscatter(pto.vlds(a, 0), d, pto.vlds(p, 0), m)\n"

    @examples(15)
    @given(arrays(kind, 300), st.integers(0, 2**32 - 1), masks(n))
    def check(memory, seed, mask):
        rng = np.random.default_rng(seed)
        places, targets = rng.integers(0, 300, n), rng.permutation(n)
        stray = np.where(mask, places, (1 << width) - 1)
        inputs = {"a": (kind, memory), "i": (index, stray), "p": (index, targets), "k": selector(mask, width)}
        found = in_ub(body, inputs, {"c": (index, n), "d": (kind, n)})
        unsigned = memory.view(f"u{memory.itemsize}")
        agree(found["c"], np.where(mask, unsigned[places], 0).astype(NUMPY[index]), "vgather2")
        if bits(kind) != 8:
            expected = np.zeros(n, unsigned.dtype)
            expected[targets[mask]] = unsigned[:n][mask]
            agree(found["d"].view(unsigned.dtype), expected, "vscatter")

    check()


@pytest.mark.parametrize("kind", ["ui8", "ui16", "ui32"])
def test_permutes(kind):
    """``vselr`` takes indices modulo the lanes, ``vsqz`` compacts, ``vusqz`` counts."""
    width, n = bits(kind), lanes(kind)
    signed = kind.removeprefix("u")
    body = MASK.format(b=width) + f"""\
w, x = pto.pset_b{width}('ALL'), pto.vlds(a, 0)
pto.vsts(pto.vselr(x, pto.vlds(i, 0)), c, 0, w)
pto.vsts(pto.vsqz(x, m), c, {n}, w)
pto.vsts(pto.vbitcast(pto.vusqz(pto.vbitcast(x, pto.{signed}), m), pto.{kind}), c, {2 * n}, w)
"""  # fmt: skip

    @examples(15)
    @given(arrays(kind, n), arrays(kind, n), masks(n))
    def check(a, index, mask):
        found = in_ub(body, {"a": (kind, a), "i": (kind, index), "k": selector(mask, width)}, {"c": (kind, 3 * n)})["c"]
        agree(found[:n], a[index.astype(int) % n], "vselr")
        agree(found[n : 2 * n], np.r_[a[mask], np.zeros(n - mask.sum(), a.dtype)], "vsqz")
        agree(found[2 * n :], np.r_[0, np.cumsum(mask)[:-1]].astype(a.dtype), "vusqz")

    check()


@pytest.mark.parametrize("kind", ["i16", "ui16", "i32", "ui32"])
def test_packing(kind):
    width, n = bits(kind), lanes(kind)
    small = f"{'ui' if kind[0] == 'u' else 'i'}{width // 2}"
    body = f"""\
w, x = pto.pset_b{width}('ALL'), pto.vlds(a, 0)
for i, part in enumerate(('LOWER', 'HIGHER')):
    pto.vsts(pto.vpack(x, part), c, i * {2 * n}, pto.pset_b{width // 2}('ALL'))
    pto.vsts(pto.{"vzunpack" if kind[0] == "u" else "vsunpack"}(pto.vbitcast(x, pto.{small}), part), d, i * {n}, w)
"""

    @examples(12)
    @given(arrays(kind, n))
    def check(a):
        found = in_ub(body, {"a": (kind, a)}, {"c": (f"ui{width // 2}", 4 * n), "d": (kind, 2 * n)})
        low = a.view(f"u{width // 8}").astype(f"u{width // 16}")
        none = np.zeros_like(low)
        agree(found["c"], np.r_[low, none, none, low], "vpack")
        agree(found["d"], a.view(NUMPY[small]).astype(a.dtype), "vunpack")

    check()


@pytest.mark.parametrize("half", [0, 1])
def test_histograms(half):
    body = MASK.format(b=8) + f"""\
x, w = pto.vlds(a, 0), pto.pset_b16('ALL')
pto.vsts(pto.dhistv2(pto.vlds(t, 0), x, m, {half}), c, 0, w)
pto.vsts(pto.chistv2(pto.vlds(t, 0), x, m, {half}), c, 128, w)
"""  # fmt: skip

    @examples(15)
    @given(arrays("ui8", 256), arrays("ui16", 128), masks(256))
    def check(a, start, mask):
        found = in_ub(body, {"a": ("ui8", a), "t": ("ui16", start), "k": selector(mask, 8)}, {"c": ("ui16", 256)})["c"]
        counts = np.bincount(a[mask], minlength=256)
        part = slice(128 * half, 128 * half + 128)
        agree(found[:128], (start + counts[part]).astype(np.uint16), "dhistv2")
        agree(found[128:], (start + np.cumsum(counts)[part]).astype(np.uint16), "chistv2")

    check()


def image(mask: np.ndarray, width: int) -> np.ndarray:
    """The 256 bits of a predicate."""
    return spread(mask, width // 8)


@pytest.mark.parametrize("width", [8, 16, 32])
def test_predicates(width):
    """Logic under a predicate, selection, counted ones and their remainder."""
    n = 2048 // width
    names = ("pand(p, q, m)", "por(p, q, m)", "pxor(p, q, m)", "pnot(p, m)", "psel(p, q, m)")
    body = MASK.format(b=width) + f"""\
w = pto.pset_b{width}('ALL')
p, q = (pto.vcmps(pto.vlds(x, 0), 0, w, 'ne') for x in (a, b))
one, zero = pto.vbr(pto.const(1, dtype=pto.ui{width})), pto.vbr(pto.const(0, dtype=pto.ui{width}))
r, left = pto.plt_b{width}(pto.load(count, 0))
results = ({", ".join("pto." + name for name in names)}, r)
for i, z in enumerate(results):
    pto.vsts(pto.vsel(one, zero, z), c, i * {n}, w)
pto.store(left, rest, 0)
"""  # fmt: skip

    @examples(15)
    @given(masks(n), masks(n), masks(n), st.integers(0, 600))
    def check(p, q, m, count):
        kind = UNSIGNED[width]
        inputs = {"a": selector(p, width), "b": selector(q, width), "k": selector(m, width), "count": ("i32", [count])}
        found = in_ub(body, inputs, {"c": (kind, 6 * n), "rest": ("i32", 8)})
        counted = np.arange(n) < count
        wanted = np.concatenate([p & q & m, (p | q) & m, (p ^ q) & m, ~p & m, np.where(m, p, q), counted])
        agree(found["c"], wanted.astype(NUMPY[kind]), "predicates")
        assert found["rest"][0] == max(count - n, 0)

    check()


def test_the_inputs_have_corners():
    values = made("f32", 4000, 0, "bits")
    assert np.isnan(values).any() and (np.abs(values) < 2.0**-126).any()
    assert {0, 255} <= set(made("ui8", 500, 1, "edges").tolist())
