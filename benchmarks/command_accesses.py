"""The bytes that a command of a recorded program reads and writes, from the values of its operands.

Written from the descriptions of the instructions, apart from the simulator's engine, so that what is concluded from it checks the engine.
Where the exact bytes would need more than operand values, all bytes that may be touched count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from tilelang_pto.sim.program import Operation, Type
from tilelang_pto.sim.run import element_bytes

__all__ = ["PIPES", "Access", "TraceError", "Units", "command_accesses", "units_of", "vector_range"]

BLOCK, FRACTAL, UNIT = 32, 512, 512
WHOLE = 1 << 62
"""End of a range of unknown extent."""


class TraceError(Exception):
    """Something a trace would need is not known without running the kernel."""


class Access(NamedTuple):
    """Bytes ``begin`` to ``end - 1`` of a memory, or of the address space where it is ``GM``."""

    memory: str
    begin: int
    end: int
    write: bool


class Units(NamedTuple):
    """What a command does with the unit flags of L0C ``first`` to ``last - 1``: the value it waits for, and the one it leaves."""

    wait: int
    leave: int | None
    ranges: tuple[tuple[int, int], ...]


#: The pipe of every command of the scalar unit; vector functions run on V.
PIPES = {
    "mte_gm_ub": "MTE2", "mte_ub_gm": "MTE3", "mte_ub_ub": "V", "mte_gm_l1": "MTE2", "mte_gm_l1_frac": "MTE2", "raw_fill_l1": "MTE2",
    "mte_l1_ub": "MTE1", "mte_ub_l1": "MTE3", "mte_l1_bt": "MTE1", "mte_l1_fb": "FIX", "mte_l1_l0a": "MTE1", "mte_l1_l0b": "MTE1",
    "mte_l1_l0a_mx": "MTE1", "mte_l1_l0b_mx": "MTE1", "mad": "M", "mad_acc": "M", "mad_bias": "M", "mad_mx": "M", "mad_mx_acc": "M",
    "mad_mx_bias": "M", "mte_l0c_gm": "FIX", "mte_l0c_ub": "FIX", "mte_l0c_l1": "FIX", "vecscope": "V", "simt": "V",
    "vbitsort": "V", "vmrgsort4": "V",
}  # fmt: skip

_Values = Sequence[int]


def command_accesses(operation: Operation, values: _Values, types: Sequence[Type], ub: str) -> list[Access]:
    """What a command touches.

    Args:
        operation: a command of the scalar unit that is no vector function.
        values: of its operands; pointers as byte addresses.
        types: of its operands.
        ub: name of the core's own UB.

    Raises:
        TraceError: an operand is not known, or the command is none this module describes.
    """
    if operation.opcode not in _RULES:
        raise TraceError(f"{operation.opcode} is not described")
    if any(value is None for value in values):
        raise TraceError(f"an operand of {operation.opcode} (line {operation.line}) is not known")
    return list(_RULES[operation.opcode](operation, [int(value) for value in values], types, ub))


def units_of(operation: Operation, values: _Values) -> Units | None:
    """What a command does with unit flags; None if it has none."""
    word = operation.attributes.get("unit_flag", "")
    if operation.opcode.startswith("mad"):
        shape = 4 if operation.opcode.endswith("bias") else 3
        if operation.attributes.get("runtime_unit_flag"):
            mode = int(values[shape + 3])
            word = {0: "", 2: "check_only", 3: "check_and_set"}[mode]
        if not word or not all(values[shape : shape + 3]):
            return None
        first = int(values[2])
        return Units(0, 1 if word == "check_and_set" else None, (_units(first, _result_bytes(values[shape], values[shape + 1])),))
    if not word or not operation.opcode.startswith("mte_l0c") or not (values[2] and values[3]):
        return None
    rows = _up(values[2], 16)
    ranges = tuple(_units(int(values[0]) + column * values[4] * 64, rows * 64) for column in range(-(-values[3] // 16)))
    return Units(1, 0 if word == "check_and_clear" else None, ranges)


def _units(first: int, size: int) -> tuple[int, int]:
    return first // UNIT, -(-(first + size) // UNIT)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _result_bytes(m: int, n: int) -> int:
    return _up(m, 16) * _up(n, 16) * 4


# -- transfers of rows ---------------------------------------------------------------------------------------------------


def _rows(operation: Operation, v: _Values, *, outer_only: bool = False) -> Iterator[tuple[int, int]]:
    """Offsets of source and destination of each row."""
    loops = [v[6 + 3 * i : 9 + 3 * i] for i in range(int(operation.attributes.get("loops", 0)))]
    if not outer_only:
        loops.insert(0, v[3:6])
    for index in product(*(range(count) for count, _, _ in loops)):
        yield (
            sum(i * source for i, (_, source, _) in zip(index, loops, strict=True)),
            sum(i * target for i, (_, _, target) in zip(index, loops, strict=True)),
        )


def _gm_ub(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    if not v[2] or not v[3]:
        return
    pads = int(operation.attributes.get("pad", 0))
    element = element_bytes(types[0].dtype)
    padding = (v[-2] + v[-1]) * element if pads == 3 else 0
    for source, target in _rows(operation, v):
        yield Access("GM", v[0] + source, v[0] + source + v[2], False)
        # What is left of the last block is written as well, except that rows may lie back to back.
        whole = v[2] + padding if v[5] == v[2] and v[3] > 1 and not padding else _up(v[2] + padding, BLOCK)
        yield Access(ub, v[1] + target, v[1] + target + whole, True)
    if v[5] == v[2] and v[3] > 1 and not padding:
        end = v[1] + max(target for _, target in _rows(operation, v)) + v[2]
        yield Access(ub, end, _up(end, BLOCK), True)


def _ub_gm(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    if not v[2]:
        return
    for source, target in _rows(operation, v):
        yield Access(ub, v[0] + source, v[0] + source + v[2], False)
        yield Access("GM", v[1] + target, v[1] + target + v[2], True)


def _bursts(v: _Values, source: tuple[str, int, int], target: tuple[str, int, int]) -> Iterator[Access]:
    """Bursts with gaps. ``source`` and ``target``: memory, bytes of a unit of length, bytes of a unit of gap."""
    for (memory, unit, gap_unit), base, gap, write in ((source, v[0], v[4], False), (target, v[1], v[5], True)):
        size = v[2] * unit
        for row in range(v[3] if size else 0):
            begin = base + row * (size + gap * gap_unit)
            yield Access(memory, begin, begin + size, write)


def _ub_ub(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    return _bursts(v, (ub, BLOCK, BLOCK), (ub, BLOCK, BLOCK))


def _ub_l1(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    return _bursts(v, (ub, BLOCK, BLOCK), ("L1", BLOCK, BLOCK))


def _l1_bt(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    widening = 2 if element_bytes(types[0].dtype) == 2 else 1
    return _bursts(v, ("L1", BLOCK, BLOCK), ("BT", BLOCK * widening, BLOCK * widening))


def _l1_fb(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    return _bursts(v, ("L1", 2 * BLOCK, BLOCK), ("FB", 2 * BLOCK, 2 * BLOCK))


def _l1_ub(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    for source, target in _rows(operation, v, outer_only=True):
        yield from _bursts([v[0] + source, v[1] + target, *v[2:6]], ("L1", BLOCK, BLOCK), ("UB0", BLOCK, BLOCK))


def _gm_l1(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    return _gm_ub(operation, v, types, "L1")


# -- the cube core -------------------------------------------------------------------------------------------------------


def _gm_l1_frac(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    rows, columns, inner, outer, groups, loop2, loop3, loop4, small = v[2:11]
    if not (rows and columns and groups):
        return
    size = element_bytes(types[0].dtype)
    lines, length = (rows, columns) if operation.attributes.get("mode") == "nd2nz" else (columns, rows)
    for group in range(groups):
        for line in range(lines):
            begin = v[0] + group * outer + line * inner
            yield Access("GM", begin, begin + length * size, False)
        base = v[1] + group * loop4 * BLOCK
        if small:
            yield Access("L1", base, base + _up(rows * 4 * size, BLOCK), True)
            continue
        for block in range(-(-columns * size // BLOCK)):
            begin = base + block * loop3 * BLOCK
            if loop2 == 1:
                yield Access("L1", begin, begin + rows * BLOCK, True)
                continue
            for row in range(rows):
                yield Access("L1", begin + row * loop2 * BLOCK, begin + (row * loop2 + 1) * BLOCK, True)


def _fill(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    for repeat in range(v[3]):
        begin = v[0] + v[1] + repeat * (v[4] + v[5]) * BLOCK
        yield Access("L1", begin, begin + v[4] * BLOCK, True)


def _load_l0(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    right = operation.opcode == "mte_l1_l0b"
    transpose = bool(operation.attributes.get("transpose", 0))
    size, packed = element_bytes(types[0].dtype), types[0].dtype.startswith("f4")
    if operation.attributes.get("form", "controls") == "shape":
        rows, k = (v[3], v[2]) if right else (v[2], v[3])
        row_bytes = 64 if packed else BLOCK
        m_start, k_start = v[4], v[5] // 2 if packed else v[5]
        if transpose:
            square = 64 if packed else max(16, BLOCK // size)
            m_step = source_stride = _up(k, square) // 16
            k_step, target_stride = -(-_up(rows, square) * size // row_bytes), _up(rows, square) // 16
        else:
            m_step = source_stride = target_stride = -(-rows // 16)
            k_step = -(-k * size // row_bytes)
    else:
        m_start, k_start, m_step, k_step, source_stride, target_stride = v[2:8]
    memory = "L0B" if right else "L0A"
    for j in range(k_step):
        begin = v[0] + ((k_start + j) * source_stride + m_start) * FRACTAL
        yield Access("L1", begin, begin + m_step * FRACTAL, False)
        if not transpose:
            begin = v[1] + j * target_stride * FRACTAL
            yield Access(memory, begin, begin + m_step * FRACTAL, True)
    if transpose:
        c0 = 64 if packed else BLOCK // size
        last = (-(-m_step * 16 // c0) - 1) * target_stride + -(-k_step * c0 // 16)
        yield Access(memory, v[1], v[1] + last * FRACTAL, True)


def _load_scales(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    right = operation.opcode == "mte_l1_l0b_mx"
    yield Access("L1", 0, WHOLE, False)
    yield Access("L0B_MX" if right else "L0A_MX", 0, WHOLE, True)


def _mad(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    bias = operation.opcode.endswith("bias")
    shape = 4 if bias else 3
    m, n, k = v[shape : shape + 3]
    if not (m and n and k):
        return
    scaled = "mx" in operation.opcode
    for memory, address, rows, kind in (("L0A", v[0], m, types[0]), ("L0B", v[1], n, types[1])):
        size = element_bytes(kind.dtype)
        k_bytes = -(-k // 2) if kind.dtype.startswith("f4") else k * size
        yield Access(memory, address, address + _up(k_bytes, BLOCK) * _up(rows, 16), False)
        if scaled:
            yield Access(memory + "_MX", 0, WHOLE, False)
    end = v[2] + _result_bytes(m, n)
    yield Access("L0C", v[2], end, False)  # whether it adds or not
    yield Access("L0C", v[2], end, True)
    if bias:
        yield Access("BT", v[3], v[3] + 4 * n, False)


def _store_l0c(operation: Operation, v: _Values, types: Sequence[Type], ub: str) -> Iterator[Access]:
    m, n, source_stride, target_stride = v[2:6]
    if not (m and n):
        return
    size = element_bytes(types[1].dtype)
    attributes = operation.attributes
    for pointer, kind in zip(v[6:], types[6:], strict=True):
        if kind.kind == "pointer":
            yield Access("FB", pointer, pointer + 8 * n, False)
    plain = not attributes.get("loop3") and attributes.get("layout", "") in ("", "nz2nd")
    if not plain:
        yield Access("L0C", v[0], WHOLE, False)
    else:
        for column in range(-(-n // 16)):
            begin = v[0] + column * source_stride * 64
            yield Access("L0C", begin, begin + m * 64, False)
    if operation.opcode == "mte_l0c_ub":
        split = attributes.get("split", "")
        memories = ["UB0", "UB1"] if split else [f"UB{v[6]}"]
    else:
        split, memories = "", ["L1" if operation.opcode == "mte_l0c_l1" else "GM"]
    rows, columns = (m // 2 if split == "M" else m), n
    for memory in memories:
        if not plain:
            yield Access(memory, v[1], WHOLE, True)
            continue
        for row in range(rows):
            begin = v[1] + row * target_stride * size
            yield Access(memory, begin, begin + columns * size, True)


_RULES: dict[str, Callable[[Operation, _Values, Sequence[Type], str], Iterator[Access]]] = {
    "mte_gm_ub": _gm_ub,
    "mte_ub_gm": _ub_gm,
    "mte_ub_ub": _ub_ub,
    "mte_ub_l1": _ub_l1,
    "mte_l1_bt": _l1_bt,
    "mte_l1_fb": _l1_fb,
    "mte_l1_ub": _l1_ub,
    "mte_gm_l1": _gm_l1,
    "mte_gm_l1_frac": _gm_l1_frac,
    "raw_fill_l1": _fill,
    "mte_l1_l0a": _load_l0,
    "mte_l1_l0b": _load_l0,
    "mte_l1_l0a_mx": _load_scales,
    "mte_l1_l0b_mx": _load_scales,
    "mte_l0c_gm": _store_l0c,
    "mte_l0c_ub": _store_l0c,
    "mte_l0c_l1": _store_l0c,
    **dict.fromkeys(("mad", "mad_acc", "mad_bias", "mad_mx", "mad_mx_acc", "mad_mx_bias"), _mad),
}


# -- vector functions ----------------------------------------------------------------------------------------------------

#: Bytes of a load or store by its distribution, for elements of so many bytes; None: by the mask.
_DISTRIBUTIONS = {
    "NORM": 256, "DS_B8": 512, "DS_B16": 512, "US_B8": 128, "US_B16": 128, "UNPK_B8": 128, "UNPK_B16": 128, "UNPK_B32": 128, "UNPK4": 64,
    "UNPK4_B8": 64, "BRC_BLK": 32, "E2B_B16": 16, "E2B_B32": 32, "BRC_B8": 1, "BRC_B16": 2, "BRC_B32": 4, "1PT_B8": 1, "1PT_B16": 2,
    "1PT_B32": 4, "PK_B16": 128, "PK_B32": 128, "PK4_B32": 64, "PK_B64": 128, "NORM_B8": 256, "NORM_B16": 256, "NORM_B32": 256,
}  # fmt: skip
_MASKED = {"NORM_B8": 1, "NORM_B16": 2, "NORM_B32": 4, "PK_B16": 1, "PK_B32": 2, "PK4_B32": 1}


def vector_range(operation: Operation, address: int, offset: int | None, unit: int, lanes: int | None) -> tuple[int, int]:
    """First byte and end of what a vector load or store with a pointer touches at most.

    Args:
        operation: the instruction.
        address: its pointer.
        offset: its offset operand in elements; None if it has none.
        unit: bytes of an element of the pointer.
        lanes: active lanes of its mask if they are the first ones; None: not known.
    """
    opcode, dist = operation.opcode, str(operation.attributes.get("dist", ""))
    begin = address + (offset or 0) * unit
    if opcode in ("vldsx2", "vstsx2"):
        return begin, begin + 512
    if opcode in ("vlds", "vsts"):
        dist = dist or ("NORM" if opcode == "vlds" else "NORM_B32")
        if dist in _MASKED and lanes is not None:
            return begin, begin + lanes * _MASKED[dist]
        return begin, begin + _DISTRIBUTIONS[dist]
    if opcode in ("vldas", "vldus", "vstus", "vstur", "vstas", "vstar", "pstu"):
        return address // BLOCK * BLOCK, _up(address + 256 + BLOCK, BLOCK)
    if opcode in ("plds", "psts"):
        return address + (offset or 0), address + (offset or 0) + 64
    raise TraceError(f"{opcode} is not described")
