"""Copies of cube kernels: GM to L1, L1 fill, L1 to L0A and L0B, to the bias table, to the fixpipe buffer, L1 and UB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_pto.sim.standin import scalar
from tilelang_pto.sim.standin.control import require_explicit
from tilelang_pto.sim.standin.memory import pointer
from tilelang_pto.sim.standin.mte import burst_loops, check_static_range, check_widths, triple
from tilelang_pto.sim.standin.registry import KERNEL, entry
from tilelang_pto.sim.standin.values import Pointer, SurfaceScalar, Value, describe

if TYPE_CHECKING:
    from tilelang_pto.sim.standin.recorder import Recorder

FRACTAL_MODES = ("nd2nz", "dn2nz")
FILL_LIMIT = 32767
_CONTROL_RANGES = {
    "m_start": (0, 65535), "k_start": (0, 65535), "m_step": (1, 255), "k_step": (1, 255),
    "src_stride": (1, 65535), "dst_stride": (1, 65535),
}  # fmt: skip


def _ends(rec: Recorder, name: str, source: Any, destination: Any, from_: str, to: str) -> tuple[Pointer, Pointer]:
    require_explicit(rec, f"pto.{name}")
    return pointer(rec, f"the source of {name}", source, from_), pointer(rec, f"the destination of {name}", destination, to)


# -- plain copies ------------------------------------------------------------------------------------------


@entry("mte_gm_l1", places=KERNEL)
def mte_gm_l1(rec: Recorder, source: Any, destination: Any, len_burst: Any, *, nburst: Any, loops: Any = None) -> None:
    """``pto.mte_gm_l1(src, dst, len, nburst=(count, src stride, dst stride))``, all in bytes, start to start."""
    src, dst = _ends(rec, "mte_gm_l1", source, destination, "gm", "mat")
    check_widths(rec, "mte_gm_l1", src, dst)
    levels, extra = burst_loops(rec, loops)
    operands: list[Value] = [src, dst, scalar.integral(rec, "len_burst", len_burst), *triple(rec, "nburst", nburst), *extra]
    rec.emit("mte_gm_l1", operands, (), {"loops": levels})


@entry("mte_l1_ub", places=KERNEL)
def mte_l1_ub(rec: Recorder, source: Any, destination: Any, len_burst: Any, *, nburst: Any, loops: Any = None) -> None:
    """``pto.mte_l1_ub(src, dst, len, nburst=(count, src gap, dst gap))`` in 32-byte units; ``loops`` step in bytes."""
    src, dst = _ends(rec, "mte_l1_ub", source, destination, "mat", "ub")
    check_widths(rec, "mte_l1_ub", src, dst)
    levels, extra = burst_loops(rec, loops)
    operands: list[Value] = [src, dst, scalar.integral(rec, "len_burst", len_burst), *triple(rec, "nburst", nburst), *extra]
    rec.emit("mte_l1_ub", operands, (), {"loops": levels})


def _gapped(rec: Recorder, name: str, src: Pointer, dst: Pointer, len_burst: Any, nburst: Any) -> None:
    length = scalar.integral(rec, "len_burst", len_burst)
    check_static_range(rec, "len_burst", length, 65535)
    rec.emit(name, [src, dst, length, *triple(rec, "nburst", nburst)])


@entry("mte_ub_l1", places=KERNEL)
def mte_ub_l1(rec: Recorder, source: Any, destination: Any, len_burst: Any, *, nburst: Any) -> None:
    """``pto.mte_ub_l1(src, dst, len, nburst=(count, src gap, dst gap))``, all in 32-byte units."""
    src, dst = _ends(rec, "mte_ub_l1", source, destination, "ub", "mat")
    check_widths(rec, "mte_ub_l1", src, dst)
    _gapped(rec, "mte_ub_l1", src, dst, len_burst, nburst)


@entry("mte_l1_bt", places=KERNEL)
def mte_l1_bt(rec: Recorder, source: Any, destination: Any, len_burst: Any, *, nburst: Any) -> None:
    """``pto.mte_l1_bt(src, dst, len, nburst=(count, src gap, dst gap))`` in 32-byte units of the source."""
    src, dst = _ends(rec, "mte_l1_bt", source, destination, "mat", "bias")
    pair = (src.type.element.record.dtype, dst.type.element.record.dtype)
    if pair not in (("f32", "f32"), ("i32", "i32"), ("f16", "f32"), ("bf16", "f32")):
        rec.refuse(f"mte_l1_bt from {pair[0]} to {pair[1]}", "f32 to f32, i32 to i32, f16 to f32 or bf16 to f32")
    _gapped(rec, "mte_l1_bt", src, dst, len_burst, nburst)


@entry("mte_l1_fb", places=KERNEL)
def mte_l1_fb(rec: Recorder, source: Any, destination: Any, len_burst: Any, *, nburst: Any) -> None:
    """``pto.mte_l1_fb(src, dst, len, nburst=(count, src gap, dst gap))``: 64-byte units, the source gap in 32 bytes."""
    src, dst = _ends(rec, "mte_l1_fb", source, destination, "mat", "scaling")
    _gapped(rec, "mte_l1_fb", src, dst, len_burst, nburst)


# -- GM to L1 with a change of layout, fill ----------------------------------------------------------------


def _numbers(rec: Recorder, name: str, value: Any, *sizes: int) -> list[SurfaceScalar]:
    if not isinstance(value, tuple) or len(value) not in sizes:
        rec.refuse(f"{name} is {describe(value)}", f"a tuple of {' or '.join(map(str, sizes))} numbers")
    return [scalar.integral(rec, f"{name}[{i}]", item) for i, item in enumerate(value)]


@entry("mte_gm_l1_frac", places=KERNEL)
def mte_gm_l1_frac(
    rec: Recorder, source: Any, destination: Any, mode: Any, *, shape: Any, src_layout: Any, dst_group: Any, ctrl: Any
) -> None:
    """``pto.mte_gm_l1_frac(src, dst, "nd2nz", shape=(n, d), src_layout=(inner[, outer]), dst_group=(groups, loop2, loop3, loop4), ...)``.

    Source strides in bytes, destination strides in units of 32 bytes.
    """
    src, dst = _ends(rec, "mte_gm_l1_frac", source, destination, "gm", "mat")
    check_widths(rec, "mte_gm_l1_frac", src, dst)
    if src.type.element.bytes > 4:
        rec.refuse(f"mte_gm_l1_frac of {src.type.element.name}", "elements of 1, 2 or 4 bytes")
    word = scalar.token(rec, "mode", mode, FRACTAL_MODES)
    extents = _numbers(rec, "shape", shape, 2)
    layout = _numbers(rec, "src_layout", src_layout, 1, 2)
    if len(layout) == 1:
        layout.append(scalar.integral(rec, "src_layout[1]", 0))
    group = _numbers(rec, "dst_group", dst_group, 4)
    if not isinstance(ctrl, tuple) or len(ctrl) != 2:
        rec.refuse(f"ctrl is {describe(ctrl)}", "(L2 cache control, small C0): ctrl=(0, False)")
    control = scalar.integral(rec, "ctrl[0]", ctrl[0])
    check_static_range(rec, "ctrl[0]", control, 15)
    small = ctrl[1] if isinstance(ctrl[1], SurfaceScalar) else scalar.integral(rec, "ctrl[1]", scalar.static_flag(rec, "ctrl[1]", ctrl[1]))
    rec.emit("mte_gm_l1_frac", [src, dst, *extents, *layout, *group, small], (), {"mode": word})


@entry("raw_fill_l1", places=KERNEL)
def raw_fill_l1(
    rec: Recorder,
    dst: Any,
    byte_offset: Any,
    raw_value: Any,
    *,
    repeat_times: Any,
    block_num_32b: Any,
    dst_gap_32b: Any,
    fill_word_bits: Any,
) -> None:
    """``pto.raw_fill_l1(dst, byte offset, bit pattern, ...)``: repeats of so many 32-byte blocks with a gap between them."""
    require_explicit(rec, "pto.raw_fill_l1")
    target = pointer(rec, "the destination of raw_fill_l1", dst, "mat")
    bits = scalar.static_int(rec, "fill_word_bits", fill_word_bits, 16, 32)
    if bits not in (16, 32):
        rec.refuse(f"fill_word_bits={bits}", "16 or 32")
    offset = scalar.integral(rec, "byte_offset", byte_offset)
    if isinstance(offset.known, int) and (offset.known < 0 or offset.known % 32):
        rec.refuse(f"byte_offset={offset.known}", "a multiple of 32")
    value = scalar.integral(rec, "raw_value", raw_value)
    counts = []
    for name, number in (("repeat_times", repeat_times), ("block_num_32b", block_num_32b), ("dst_gap_32b", dst_gap_32b)):
        count = scalar.integral(rec, name, number)
        check_static_range(rec, name, count, FILL_LIMIT)
        counts.append(count)
    rec.emit("raw_fill_l1", [target, offset, value, *counts], (), {"fill_word_bits": bits})


# -- L1 to L0A and L0B -------------------------------------------------------------------------------------


def _load(
    rec: Recorder,
    name: str,
    ends: tuple[Pointer, Pointer],
    extents: dict[str, Any],
    starts: tuple[Any, Any],
    controls: dict[str, Any],
    attributes: dict[str, int | str | float],
) -> None:
    """Either the extents of the tile with a start row and column, or all controls of the instruction."""
    operands: list[Value] = list(ends)
    if any(value is not None for value in controls.values()):
        if any(value is not None for value in extents.values()) or any(start not in (None, 0) for start in starts):
            rec.refuse(f"{name} with extents and controls", f"{', '.join(extents)} or {', '.join(controls)}")
        missing = [key for key, value in controls.items() if value is None]
        if missing:
            rec.refuse(f"{name} without {', '.join(missing)}", f"all of {', '.join(controls)}")
        for key, value in controls.items():
            number = scalar.integral(rec, key, value)
            low, high = _CONTROL_RANGES.get(key, (0, 65535))
            if isinstance(number.known, int) and not low <= number.known <= high:
                rec.refuse(f"{key}={number.known} is out of range", f"{low} to {high}")
            operands.append(number)
        form = "controls"
    else:
        missing = [key for key, value in extents.items() if value is None]
        if missing:
            rec.refuse(f"{name} without {', '.join(missing)}", f"{', '.join(extents)}, or all of {', '.join(controls)}")
        operands += [scalar.integral(rec, key, value) for key, value in extents.items()]
        operands += [scalar.integral(rec, key, value or 0) for key, value in zip(("start_row", "start_col"), starts, strict=True)]
        form = "shape"
    rec.emit(name, operands, (), {"form": form, **attributes})


def _register_loads() -> None:
    def data(rec: Recorder, name: str, space: str, source: Any, destination: Any, extents: dict[str, Any], rest: dict[str, Any]) -> None:
        ends = _ends(rec, name, source, destination, "mat", space)
        check_widths(rec, name, *ends)
        packed = [end.type.element.name for end in ends if end.type.element.name.startswith("f4")]
        if packed and ends[0].type.element != ends[1].type.element:
            rec.refuse(f"{name} from {ends[0].type.element.name} to {ends[1].type.element.name}", "one type for both ends")
        transpose = scalar.static_flag(rec, "transpose", rest.pop("transpose"))
        starts = (rest.pop("start_row"), rest.pop("start_col"))
        _load(rec, name, ends, extents, starts, rest, {"transpose": transpose})

    @entry("mte_l1_l0a", places=KERNEL)
    def mte_l1_l0a(
        rec: Recorder, source: Any, destination: Any, m: Any = None, k: Any = None, *, start_row: Any = 0, start_col: Any = 0,
        m_start: Any = None, k_start: Any = None, m_step: Any = None, k_step: Any = None, src_stride: Any = None, dst_stride: Any = None,
        transpose: Any = False,
    ) -> None:  # fmt: skip
        """``pto.mte_l1_l0a(src, dst, m, k)``, or with all controls of the instruction."""
        rest = {
            "start_row": start_row, "start_col": start_col, "m_start": m_start, "k_start": k_start, "m_step": m_step, "k_step": k_step,
            "src_stride": src_stride, "dst_stride": dst_stride, "transpose": transpose,
        }  # fmt: skip
        data(rec, "mte_l1_l0a", "left", source, destination, {"m": m, "k": k}, rest)

    @entry("mte_l1_l0b", places=KERNEL)
    def mte_l1_l0b(
        rec: Recorder, source: Any, destination: Any, k: Any = None, n: Any = None, *, start_row: Any = 0, start_col: Any = 0,
        m_start: Any = None, k_start: Any = None, m_step: Any = None, k_step: Any = None, src_stride: Any = None, dst_stride: Any = None,
        transpose: Any = False,
    ) -> None:  # fmt: skip
        """``pto.mte_l1_l0b(src, dst, k, n)``, or with all controls of the instruction."""
        rest = {
            "start_row": start_row, "start_col": start_col, "m_start": m_start, "k_start": k_start, "m_step": m_step, "k_step": k_step,
            "src_stride": src_stride, "dst_stride": dst_stride, "transpose": transpose,
        }  # fmt: skip
        data(rec, "mte_l1_l0b", "right", source, destination, {"k": k, "n": n}, rest)

    @entry("mte_l1_l0a_mx", places=KERNEL)
    def mte_l1_l0a_mx(
        rec: Recorder, source: Any, destination: Any, m: Any = None, k: Any = None, *, start_row: Any = None, start_col: Any = None,
        x_start: Any = None, y_start: Any = None, x_step: Any = None, y_step: Any = None, src_stride: Any = None, dst_stride: Any = None,
    ) -> None:  # fmt: skip
        """``pto.mte_l1_l0a_mx(src, dst, m, k)``: the scales of the data at ``dst``."""
        controls = {
            "x_start": x_start, "y_start": y_start, "x_step": x_step, "y_step": y_step, "src_stride": src_stride, "dst_stride": dst_stride,
        }  # fmt: skip
        ends = _ends(rec, "mte_l1_l0a_mx", source, destination, "mat", "left")
        _load(rec, "mte_l1_l0a_mx", ends, {"m": m, "k": k}, (start_row, start_col), controls, {})

    @entry("mte_l1_l0b_mx", places=KERNEL)
    def mte_l1_l0b_mx(
        rec: Recorder, source: Any, destination: Any, k: Any = None, n: Any = None, *, start_row: Any = None, start_col: Any = None,
        x_start: Any = None, y_start: Any = None, x_step: Any = None, y_step: Any = None, src_stride: Any = None, dst_stride: Any = None,
    ) -> None:  # fmt: skip
        """``pto.mte_l1_l0b_mx(src, dst, k, n)``: the scales of the data at ``dst``."""
        controls = {
            "x_start": x_start, "y_start": y_start, "x_step": x_step, "y_step": y_step, "src_stride": src_stride, "dst_stride": dst_stride,
        }  # fmt: skip
        ends = _ends(rec, "mte_l1_l0b_mx", source, destination, "mat", "right")
        _load(rec, "mte_l1_l0b_mx", ends, {"k": k, "n": n}, (start_row, start_col), controls, {})


_register_loads()
