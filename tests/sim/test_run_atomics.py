"""Atomics of threads and of stores, the order of the cores, wide integers, queries, print and trap."""

from __future__ import annotations

import numpy as np
import pytest
from engine_harness import NUMPY, in_gm, same

from tilelang_pto.errors import SimulationError

RNG = np.random.default_rng(2)


def simt(body: str, threads: int = 64) -> str:
    lines = [f"with pto.simt({threads}, 1, 1):", "    t = pto.get_tid_x()", *(f"    {line}" for line in body.splitlines())]
    return "\n".join(lines)


FOLDS = {
    "add": lambda old, x: old + x,
    "sub": lambda old, x: old - x,
    "max": max,
    "min": min,
    "and": lambda old, x: old & x,
    "or": lambda old, x: old | x,
    "xor": lambda old, x: old ^ x,
    "exch": lambda old, x: x,
}


def fold(name: str, dtype: str, start, values: np.ndarray, targets: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Threads one after the other; f16 and bf16 are rounded after every step."""
    kind = NUMPY[dtype]
    memory, old = np.full(bins, start).astype(kind), np.zeros(len(values), kind)
    for i, (x, at) in enumerate(zip(values, targets, strict=True)):
        old[i] = memory[at]
        if np.dtype(kind).kind in "iu":
            result = FOLDS[name](int(memory[at]), int(x)) % 2 ** (8 * memory.itemsize)
            memory[at] = np.array([result], np.uint64).astype(f"u{memory.itemsize}").view(kind)[0]
        else:
            memory[at] = kind(FOLDS[name](np.float64(memory[at]), np.float64(x)))
    return memory, old


CASES = [(name, dtype) for name in FOLDS for dtype in ("i32", "ui32", "i64", "f32", "f16", "bf16")
         if name not in ("and", "or", "xor") or (dtype[0] != "f" and dtype != "bf16")]  # fmt: skip


SPACES = [(*case, space) for case in CASES for space in ("gm", "ub") if case[1] != "i64" or space == "gm"]


@pytest.mark.parametrize(("name", "dtype", "space"), SPACES)
def test_threads_go_in_order(name: str, dtype: str, space: str) -> None:
    kind, integer = NUMPY[dtype], np.dtype(NUMPY[dtype]).kind in "iu"
    values = (
        RNG.integers(0, 256, 64 * np.dtype(kind).itemsize, dtype=np.uint8).view(kind) if integer else RNG.standard_normal(64).astype(kind)
    )
    targets = RNG.integers(0, 4, 64)
    sign = f', signedness="{"unsigned" if dtype[0] == "u" else "signed"}"' if integer and name in ("max", "min") else ""
    ub = f'pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.{dtype}, "ub"))'
    target = "m" if space == "gm" else "u"
    body = [f"u = {ub}"]
    if space == "ub":
        body.append(simt("pto.store(pto.load(m, t), u, t)", 4))
    body.append(simt(f"old = pto.atomic_{name}(pto.addptr({target}, pto.load(i, t)), pto.load(v, t){sign})\npto.store(old, o, t)"))
    if space == "ub":
        body.append(simt("pto.store(pto.load(u, t), m, t)", 4))
    inputs = {"m": (dtype, np.full(4, 1)), "v": (dtype, values), "i": ("i32", targets), "o": (dtype, np.zeros(64))}
    found = in_gm("\n".join(body), inputs, {})
    memory, old = fold(name, dtype, 1, values, targets, 4)
    same(found["m"], memory)
    same(found["o"], old)


@pytest.mark.parametrize("dtype", ["i32", "ui32", "i64", "f32", "f16"])
def test_compare_and_swap(dtype: str) -> None:
    compared = np.arange(64) // 2
    body = simt("pto.store(pto.atomic_cas(m, pto.load(c, t), pto.load(v, t)), o, t)")
    inputs = {"m": (dtype, np.zeros(1)), "c": (dtype, compared), "v": (dtype, np.arange(64) // 2 + 1), "o": (dtype, np.zeros(64))}
    found = in_gm(body, inputs, {})
    memory, old = 0, []
    for k in compared:
        old.append(memory)
        memory = k + 1 if memory == k else memory
    same(found["o"], np.array(old).astype(NUMPY[dtype]))
    assert found["m"][0] == memory


def test_only_active_threads_take_part() -> None:
    body = simt('with pto.if_(pto.cmp(t & 1, 0, "eq")) as br:\n    with br.then_:\n        pto.atomic_add(m, t)')
    assert in_gm(body, {"m": ("i32", np.zeros(1))}, {})["m"][0] == sum(range(0, 64, 2))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_cores_add_to_one_word(threads: int) -> None:
    body = simt("pto.atomic_add(m, 1)\npto.atomic_max(x, t, signedness='signed')", 128)
    found = in_gm(body, {"m": ("i32", np.zeros(1)), "x": ("i32", np.zeros(1))}, {}, grid=200, host_threads=threads)
    assert found["m"][0] == 200 * 128 and found["x"][0] == 127


def test_sums_of_floats_do_not_depend_on_host_threads() -> None:
    values = (RNG.standard_normal(40) * 10.0 ** RNG.integers(-6, 6, 40)).astype(np.float32)
    body = "b = pto.cast(pto.get_block_idx(), pto.i32)\n" + simt("pto.atomic_add(m, pto.load(v, b))", 1)
    expected = np.float32(0)
    for x in values:
        expected = np.float32(expected + x)
    for threads in (1, 2, 8):
        for _ in range(5):
            found = in_gm(body, {"m": ("f32", np.zeros(1)), "v": ("f32", values)}, {}, grid=40, host_threads=threads)
            assert found["m"][0] == expected


def test_tickets_are_drawn_in_block_order() -> None:
    body = "b = pto.cast(pto.get_block_idx(), pto.i32)\n" + simt("pto.store(pto.atomic_add(m, 1), o, b)", 1)
    for threads in (1, 2, 8):
        found = in_gm(body, {"m": ("i32", np.zeros(1)), "o": ("i32", np.zeros(50))}, {}, grid=50, host_threads=threads)
        same(found["o"], np.arange(50))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pto.atomic_add(pto.addptr(m, t), 1)", "byte offset 16 of tensor m, which has 16 bytes (thread 4)"),
        ('pto.atomic_add(pto.castptr(pto.castptr(m, pto.i64) + 2, pto.ptr(pto.i32, "gm")), 1)', "not a multiple of 4"),
    ],
)
def test_accesses_are_checked(call: str, message: str) -> None:
    with pytest.raises(SimulationError) as info:
        in_gm(simt(call), {"m": ("i32", np.zeros(4))}, {})
    assert message in info.value.what
    assert any("atomic_add" in place for place in info.value.where)


def test_a_failing_block_ends_those_that_wait_for_it() -> None:
    body = 'b = pto.cast(pto.get_block_idx(), pto.i32)\nwith pto.if_(pto.cmp(b, 3, "eq")) as br:\n    with br.then_:\n        pto.trap()\n'
    for threads in (1, 2, 8):
        with pytest.raises(SimulationError, match="stopped itself") as info:
            in_gm(body + simt("pto.atomic_add(m, 1.0)", 1), {"m": ("f32", np.zeros(1))}, {}, grid=40, host_threads=threads)
        assert any("block 3" in place for place in info.value.where)


# -- atomic stores -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["add", "max", "min"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i32", "i16", "i8"])
def test_atomic_stores(dtype: str, operation: str) -> None:
    kind, n, blocks = NUMPY[dtype], 96, 9
    rows = RNG.integers(-100, 100, (blocks, n)).astype(kind)
    if dtype in ("f32", "f16", "bf16"):
        rows = (RNG.standard_normal((blocks, n)) * 50).astype(kind)
    size = n * rows.itemsize
    word = {"i32": "s32", "i16": "s16", "i8": "s8"}.get(dtype, dtype)
    body = f"""\
    u = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.{dtype}, "ub"))
    pto.mte_gm_ub(pto.addptr(v, pto.get_block_idx() * {n}), u, 0, {size}, nburst=(1, {size}, {size}))
    pto.set_flag("MTE2", "MTE3")
    pto.wait_flag("MTE2", "MTE3")
    pto.set_atomic_{word}()
    pto.set_atomic_{operation}()
    pto.mte_ub_gm(u, m, {size}, nburst=(1, {size}, {size}))
    pto.set_atomic_none()
    pto.mte_ub_gm(u, pto.addptr(o, pto.get_block_idx() * {n}), {size}, nburst=(1, {size}, {size}))
    """
    for threads in (1, 2):
        found = in_gm(body, {"v": (dtype, rows.ravel()), "m": (dtype, np.ones(n)), "o": (dtype, np.zeros(rows.size))}, {}, grid=blocks,
                      host_threads=threads)  # fmt: skip
        memory = np.ones(n).astype(kind)
        for row in rows:
            if operation == "add":
                total = (
                    memory.astype(np.int64) + row.astype(np.int64)
                    if dtype[0] == "i"
                    else memory.astype(np.float64) + row.astype(np.float64)
                )
                memory = total.astype(kind)
            else:
                memory = (np.maximum if operation == "max" else np.minimum)(memory, row)
        same(found["m"], memory)
        same(found["o"], rows.ravel())


def test_the_mode_is_taken_at_issue() -> None:
    body = """\
    u = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.i32, "ub"))
    pto.set_atomic_s32()
    pto.set_atomic_add()
    pto.wait_flag("MTE2", "MTE3")
    pto.mte_ub_gm(u, m, 32, nburst=(1, 32, 32))
    pto.set_atomic_none()
    pto.mte_gm_ub(v, u, 0, 32, nburst=(1, 32, 32))
    pto.set_flag("MTE2", "MTE3")
    """
    same(in_gm(body, {"v": ("i32", np.arange(8)), "m": ("i32", np.full(8, 10))}, {})["m"], np.arange(8) + 10)


def test_an_atomic_store_of_a_broken_element() -> None:
    body = """\
    u = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.ui8, "ub"))
    pto.set_atomic_f32()
    pto.mte_ub_gm(u, m, 6, nburst=(1, 6, 32))
    """
    with pytest.raises(SimulationError, match="whole number of aligned elements"):
        in_gm(body, {"m": ("ui8", np.zeros(8))}, {})


# -- wide integers -----------------------------------------------------------------------------------------------------

EDGES = np.array([0, 1, -1, 2**31 - 1, -(2**31), 12345, -98765, 2**30], np.int64)


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    kind = NUMPY[dtype]
    edges = np.concatenate((EDGES, [2**63 - 1, -(2**63)])) if np.dtype(kind).itemsize == 8 else EDGES
    a, b = (x.ravel()[:64] for x in np.meshgrid(edges, edges))
    return np.resize(a, 64).astype(kind), np.resize(b, 64).astype(kind)


@pytest.mark.parametrize("dtype", ["i32", "i64"])
@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
def test_high_halves(dtype: str, signedness: str) -> None:
    a, b = pairs(dtype)
    width = 8 * a.itemsize
    whole = f'pto.store(pto.mul_i32toi64(x, y, signedness="{signedness}"), w, t)' if dtype == "i32" else "pass"
    body = simt(
        f'x, y = pto.load(a, t), pto.load(b, t)\npto.store(pto.mulhi(x, y, signedness="{signedness}"), h, t)\n{whole}\n'
        f'low, high = pto.mul_extended(x, y, signedness="{signedness}")\npto.store(low, l, t)\npto.store(high, e, t)'
    )
    zero = (dtype, np.zeros(64))
    found = in_gm(body, {"a": (dtype, a), "b": (dtype, b), "h": zero, "l": zero, "e": zero, "w": ("i64", np.zeros(64))}, {})
    view = a.dtype if signedness == "signed" else np.dtype(f"u{a.itemsize}")
    product = a.view(view).astype(object) * b.view(view).astype(object)
    high, low = product // 2**width % 2**width, product % 2**width
    same(found["h"].view(f"u{a.itemsize}"), high.astype(f"u{a.itemsize}"))
    same(found["e"].view(f"u{a.itemsize}"), high.astype(f"u{a.itemsize}"))
    same(found["l"].view(f"u{a.itemsize}"), low.astype(f"u{a.itemsize}"))
    if dtype == "i32":
        same(found["w"].view(np.uint64), (product % 2**64).astype(np.uint64))


@pytest.mark.parametrize("dtype", ["i8", "ui16", "i32", "ui64"])
@pytest.mark.parametrize("place", ["simt", "scalar"])
def test_sums_with_carry(dtype: str, place: str) -> None:
    kind = np.dtype(NUMPY[dtype])
    a, b = (RNG.integers(0, 256, 16 * kind.itemsize, dtype=np.uint8).view(kind) for _ in range(2))
    a[:2], b[:2] = np.array([2 ** (8 * kind.itemsize) - 1] * 2, np.uint64).astype(f"u{kind.itemsize}").view(kind), [0, 1]
    inner = "s, c = pto.addui_extended(pto.load(a, t), pto.load(b, t))\npto.store(s, o, t)\npto.store(pto.cast(c, pto.i32), q, t)"
    if place == "simt":
        body = simt(inner, 16)
    else:
        body = "with pto.for_(0, 16, step=1) as t:\n" + "\n".join(f"    {line}" for line in inner.splitlines())
    found = in_gm(body, {"a": (dtype, a), "b": (dtype, b), "o": (dtype, np.zeros(16)), "q": ("i32", np.zeros(16))}, {})
    unsigned = f"u{kind.itemsize}"
    total = a.view(unsigned).astype(object) + b.view(unsigned).astype(object)
    same(found["o"].view(unsigned), (total % 2 ** (8 * kind.itemsize)).astype(unsigned))
    same(found["q"], (total >= 2 ** (8 * kind.itemsize)).astype(np.int32))


def test_byte_permutation() -> None:
    a, b = RNG.integers(-(2**31), 2**31, (2, 64)).astype(np.int32)
    nibbles = RNG.integers(0, 8, (64, 4))
    selector = (nibbles << (4 * np.arange(4))).sum(1)
    body = simt("pto.store(pto.prmt(pto.load(a, t), pto.load(b, t), pto.load(s, t)), o, t)")
    found = in_gm(body, {"a": ("i32", a), "b": ("i32", b), "s": ("i32", selector), "o": ("i32", np.zeros(64))}, {})["o"]
    source = np.concatenate((a.view(np.uint8).reshape(64, 4), b.view(np.uint8).reshape(64, 4)), 1)
    same(found.view(np.uint8), np.take_along_axis(source, nibbles, 1).ravel())
    with pytest.raises(SimulationError, match="selector nibble is larger than 7 in thread 0"):
        in_gm(body, {"a": ("i32", a), "b": ("i32", b), "s": ("i32", selector + 8), "o": ("i32", np.zeros(64))}, {})


# -- queries -----------------------------------------------------------------------------------------------------------


def test_lane_masks() -> None:
    body = simt("\n".join(f"pto.store(pto.get_lanemask_{k}(), o, t + {64 * n})" for n, k in enumerate(("eq", "lt", "le", "gt", "ge"))))
    found = in_gm(body, {"o": ("i32", np.zeros(320))}, {})["o"].view(np.uint32).reshape(5, 64)
    lane, other = np.arange(64)[:, None] % 32, np.arange(32)
    for row, test in zip(found, (other == lane, other < lane, other <= lane, other > lane, other >= lane), strict=True):
        same(row, (test.astype(np.uint64) << other.astype(np.uint64)).sum(1).astype(np.uint32))


def test_blocks_of_threads_and_clocks() -> None:
    body = "b = pto.cast(pto.get_block_idx(), pto.i32)\n" + simt(
        "first = pto.get_clock64()\npto.threadfence()\npto.threadfence_block()\nsecond = pto.get_clock64()\n"
        "pto.store(pto.get_veccoreid() * 100 + pto.get_block_idx_x() * 10 + pto.get_grid_dim_x(), o, b * 2)\n"
        "pto.store(pto.cast(pto.cmp(first, second, 'lt'), pto.i32), o, b * 2 + 1)", 1)  # fmt: skip
    same(in_gm(body, {"o": ("i32", np.zeros(6))}, {}, grid=3)["o"], [1, 1, 101, 1, 201, 1])


# -- print and trap ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_print_in_block_order(capfd, threads: int) -> None:
    body = 'b = pto.get_block_idx()\npto.print("block %d\\n", b)\n' + simt('pto.print("  100%% of %.2f;", pto.cast(t, pto.f32))', 3)
    in_gm(body, {"m": ("i32", np.zeros(1))}, {}, grid=20, host_threads=threads)
    text = "".join(f"block {b}\n" + "".join(f"  100% of {t:.2f};" for t in range(3)) for b in range(20))
    assert capfd.readouterr().out == text


def test_print_of_types(capfd) -> None:
    body = """\
    pto.print("%d ", pto.const(-5, dtype=pto.i8))
    pto.print("%u ", pto.const(255, dtype=pto.ui8))
    pto.print("%08x ", pto.const(-1, dtype=pto.i32))
    pto.print("%lld ", pto.const(-(1 << 40), dtype=pto.i64))
    pto.print("%g ", pto.const(0.5, dtype=pto.bf16))
    pto.print("[%6.3f] ", pto.const(-1.5, dtype=pto.f16))
    pto.print("plain", pto.const(1, dtype=pto.i32))
    """
    in_gm(body, {"m": ("i32", np.zeros(1))}, {})
    assert capfd.readouterr().out == "-5 255 ffffffff -1099511627776 0.5 [-1.500] plain"


def test_text_printed_before_a_failure(capfd) -> None:
    body = (
        'b = pto.get_block_idx()\npto.print("%d,", b)\nwith pto.if_(pto.cmp(b, 2, "eq")) as br:\n    with br.then_:\n        pto.trap()\n'
    )
    with pytest.raises(SimulationError):
        in_gm(body, {"m": ("i32", np.zeros(1))}, {}, grid=9, host_threads=3)
    assert capfd.readouterr().out == "0,1,2,"


@pytest.mark.parametrize(
    ("text", "dtype", "message"),
    [("%d %d", "i32", "more than one"), ("%f", "i32", "does not fit"), ("%d", "f32", "does not fit"), ("%", "i32", "inside")],
)
def test_formats_are_checked(text: str, dtype: str, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        in_gm(f'pto.print("{text}", pto.const(1, dtype=pto.{dtype}))', {"m": ("i32", np.zeros(1))}, {})


def test_trap_names_thread_core_and_line() -> None:
    body = simt('with pto.if_(pto.cmp(t, 61, "ge")) as br:\n    with br.then_:\n        pto.trap()')
    with pytest.raises(SimulationError, match="stopped itself in thread 61 and 2 more") as info:
        in_gm(body, {"m": ("i32", np.zeros(1))}, {}, grid=4)
    assert "k.py:8" in info.value.where and any("block 0" in place for place in info.value.where)
