"""GM pointers made from integers: their bounds, what is checked of them, and pointers back to integers."""

from __future__ import annotations

import ctypes
import mmap
import textwrap

import numpy as np
import pytest
from engine_harness import in_gm, launch, same

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module

PAGE = mmap.PAGESIZE
POINTER = 'p = pto.castptr(pto.load(table, 0), pto.ptr(pto.f32, "gm"))\n'
UB = 'u = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))\n'
LOAD = f"{POINTER}pto.store(pto.load(p, 0), out, 0)\n"
STORE = f"{POINTER}pto.store(1.5, p, 0)\n"
COPY_IN = f"{POINTER}{UB}pto.mte_gm_ub(p, u, 0, 64, nburst=(1, 64, 64))\n"
FILL = "pto.store(1.5, u, {0})\n"
COPY_OUT = f"{POINTER}{UB}{''.join(FILL.format(i) for i in range(16))}"
COPY_OUT += 'pto.set_flag("S", "MTE3")\npto.wait_flag("S", "MTE3")\npto.mte_ub_gm(u, p, 64, nburst=(1, 64, 64))\n'
SIMT = f"{POINTER}with pto.simt(16, 1, 1):\n    t = pto.get_tid_x()\n"
SIMT_LOAD = SIMT + "    pto.store(pto.load(p, t), out, t)\n"
SIMT_STORE = SIMT + "    pto.store(1.5, p, t)\n"
OWN = 'with pto.simt(2, 1, 1):\n    t = pto.get_tid_x()\n    q = pto.castptr(pto.load(table, t), pto.ptr(pto.f32, "gm"))\n'
LANE_LOAD = OWN + "    pto.store(pto.load(q, 0), out, t)\n"
LANE_STORE = OWN + "    pto.store(1.5, q, 0)\n"
ATOMIC = OWN + "    pto.atomic_add(q, 1.5)\n"

READS = {"load": LOAD, "copy": COPY_IN, "threads": SIMT_LOAD, "pointer of each thread": LANE_LOAD}
WRITES = {"store": STORE, "copy": COPY_OUT, "threads": SIMT_STORE, "pointer of each thread": LANE_STORE, "atomic": ATOMIC}
ALL = [*READS.values(), *WRITES.values()]


def run(body: str, *entries: int, **tensors: np.ndarray) -> dict[str, np.ndarray]:
    given = {name: ("f32", array) for name, array in tensors.items()}
    return in_gm(body, {"table": ("i64", np.array(entries or (0,), np.int64)), **given}, {"out": ("f32", 64)})


def stopped(body: str, *entries: int) -> str:
    with pytest.raises(SimulationError) as caught:
        run(body, *entries)
    assert any(place.startswith("k.py:") for place in caught.value.where)
    return caught.value.what


LIBC = ctypes.CDLL(None)
LIBC.mmap.restype, LIBC.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
LIBC.mprotect.argtypes = LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def protect(address: int, rights: int) -> None:
    assert LIBC.mprotect(address, PAGE, rights) == 0


@pytest.fixture
def pages():
    """Addresses of a page that can only be read and, behind it, of one that can be written, and both as floats; nothing else near them."""
    start = LIBC.mmap(None, 4 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 2**64 - 1, 0)
    floats = np.ctypeslib.as_array((ctypes.c_float * (2 * PAGE // 4)).from_address(start + PAGE))
    floats[:] = np.arange(floats.size)
    for page, rights in ((0, 0), (1, mmap.PROT_READ), (3, 0)):
        protect(start + page * PAGE, rights)
    yield start + PAGE, start + 2 * PAGE, floats
    LIBC.munmap(start, 4 * PAGE, 0)


def test_loads_and_copies_through_addresses():
    data = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    address = data.ctypes.data
    assert run(LOAD, address + 8)["out"][0] == data[2]
    same(run(SIMT_LOAD, address + 64)["out"][:16], data[16:32])
    same(run(LANE_LOAD, address + 20, address)["out"][:2], data[[5, 0]])
    flags = 'pto.set_flag("MTE2", "MTE3")\npto.wait_flag("MTE2", "MTE3")\n'
    body = f"{COPY_IN}{flags}pto.mte_ub_gm(u, out, 64, nburst=(1, 64, 64))\n"
    same(run(body, address + 32)["out"][:16], data[8:24])


def test_stores_and_atomics_through_addresses():
    data = np.zeros(64, np.float32)
    run(STORE, data.ctypes.data + 4)
    run(SIMT_STORE, data.ctypes.data + 64)
    run(LANE_STORE, data.ctypes.data + 160, data.ctypes.data + 168)
    run(ATOMIC, data.ctypes.data + 4, data.ctypes.data + 164)
    expected = np.zeros(64, np.float32)
    expected[[1, 40, 41, 42]], expected[16:32] = (3, 1.5, 1.5, 1.5), 1.5
    same(data, expected)
    body = f"{UB}pto.mte_gm_ub(x, u, 0, 64, nburst=(1, 64, 64))\npto.set_flag('MTE2', 'MTE3')\npto.wait_flag('MTE2', 'MTE3')\n{POINTER}"
    run(f"{body}pto.mte_ub_gm(u, p, 64, nburst=(1, 64, 64))\n", data.ctypes.data + 192, x=np.arange(16))
    same(data[48:], np.arange(16))


@pytest.mark.parametrize("body", ALL)
@pytest.mark.parametrize("address", [0, 4, 65532])
def test_null(body, address):
    assert f"through a null pointer: address 0x{address:x} comes from memory" in stopped(body, address, address)


@pytest.mark.parametrize("body", ALL)
def test_misaligned(body):
    data = np.zeros(64, np.float32)
    assert "comes from memory, is not a multiple of 4 bytes" in stopped(body, data.ctypes.data + 2, data.ctypes.data + 2)


@pytest.mark.parametrize("body", ALL)
@pytest.mark.parametrize("address", [-4, 1 << 48, 0x7FF8_0000_0000_0000, 0x0001_0000_0000_0000])
def test_integers_that_are_no_address(body, address):
    """Among them one that looks like the engine's own form of a pointer into the first tensor."""
    assert "integer that is no address" in stopped(body, address, address)


@pytest.mark.parametrize("body", READS.values(), ids=READS)
def test_reading_what_cannot_be_read(body, pages):
    readable, writable, _ = pages
    for address in (readable, writable):
        run(body, address, address)
    assert f"cannot read {16 * 4 if 'mte' in body else 4} bytes at address 0x{readable - PAGE:x}" in stopped(
        body, readable - PAGE, readable - PAGE
    )
    if "mte" in body:
        run(body, writable - 32)  # over two kinds of pages
        assert "cannot read 64 bytes" in stopped(body, readable - 32)
        assert "cannot read 64 bytes" in stopped(body, writable + PAGE - 32)


@pytest.mark.parametrize("body", WRITES.values(), ids=WRITES)
def test_writing_what_cannot_be_written(body, pages):
    readable, writable, floats = pages
    run(body, writable, writable)
    assert "cannot write" in stopped(body, readable, readable)
    assert "cannot write" in stopped(body, writable + PAGE, writable + PAGE)
    if "mte" in body:
        assert "cannot write 64 bytes" in stopped(body, writable - 32)
    same(floats[: PAGE // 4], np.arange(PAGE // 4))


def test_the_thread_that_fails_is_named(pages):
    _, writable, _ = pages
    assert "(thread 8)" in stopped(SIMT_LOAD, writable + PAGE - 32)
    assert "(thread 1)" in stopped(LANE_LOAD, writable, writable + PAGE)
    assert "(thread 1)" in stopped(ATOMIC, writable, 0)


def test_every_launch_asks_for_the_pages(pages):
    readable, _, floats = pages
    assert "cannot write" in stopped(STORE, readable)
    protect(readable, mmap.PROT_READ | mmap.PROT_WRITE)
    run(STORE, readable)
    assert floats[0] == 1.5
    protect(readable, 0)
    assert "cannot read" in stopped(LOAD, readable)


ADDRESS_OF_X = "a = pto.castptr(x, pto.i64)\n"


def test_the_address_of_a_tensor_is_that_of_the_host():
    x, threads = np.arange(64), "with pto.simt(2, 1, 1):\n    t = pto.get_tid_x()\n"
    body = f"{ADDRESS_OF_X}pto.store(a, table, 0)\npto.store(pto.castptr(pto.addptr(x, 3), pto.i64), table, 1)\n"
    found = run(f"{body}{threads}    pto.store(pto.castptr(pto.addptr(x, t), pto.i64), table, 2 + t)\n", 0, 0, 0, 0, x=x)
    assert list(found["table"] - found["x"].ctypes.data) == [0, 12, 0, 4]


@pytest.mark.parametrize(
    ("address", "offset", "message"),
    [
        ("a + 256 - 4", 1, "4 bytes at byte offset 256 of tensor x, which has 256 bytes"),
        ("a", -1, "4 bytes at byte offset -4 of tensor x"),
        ("a + 128", 1000, "4 bytes at byte offset 4128 of tensor x"),
    ],
)
def test_an_address_inside_a_tensor_has_the_bounds_of_the_tensor(address, offset, message):
    body = f'{ADDRESS_OF_X}p = pto.castptr({address}, pto.ptr(pto.f32, "gm"))\npto.store(pto.load(p, OFFSET), out, 0)\n'
    x = np.arange(64, dtype=np.float32)
    run(body.replace("OFFSET", "0"), x=x)
    with pytest.raises(SimulationError, match=message):
        run(body.replace("OFFSET", str(offset)), x=x)


def test_an_address_in_overlapping_tensors_may_go_as_far_as_any_of_them():
    memory, out = np.arange(64, dtype=np.float32), np.zeros(1, np.float32)
    parameters = ", ".join(
        f'{name}: pto.ptr(pto.{dtype}, "gm")' for name, dtype in (("table", "i64"), ("x", "f32"), ("y", "f32"), ("out", "f32"))
    )
    text = f'from ptodsl import pto\n@pto.jit(kernel_kind="vector", mode="explicit", ast_rewrite=False)\ndef k({parameters}):\n'
    text += textwrap.indent(f"{POINTER}pto.store(pto.load(p, 15), out, 0)\n", "    ")
    for first, second in ((memory[:32], memory[8:]), (memory[8:], memory[:32])):
        out[0] = 0
        launch(record_module(text, "k.py", "2026-09"), [np.array([memory[24:].ctypes.data]), first, second, out])
        assert out[0] == 39


def test_a_pointer_nobody_uses_may_be_wrong():
    """Tables hold nulls for what is guarded by a condition."""
    for entry in (0, 2, -1, 0xDEAD0000):
        run(f"{POINTER}{OWN}", entry, entry)
