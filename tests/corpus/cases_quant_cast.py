"""Cases of the quant family: conversions to low precision and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType

import torch
from corpus.case import TOKENS, Case, empty
from tile_kernels_support import CORES, tile_kernels

tile_kernels()
from tile_kernels import quant  # noqa: E402
from tile_kernels.quant import common  # noqa: E402
from tile_kernels.quant.batched_transpose_weight_sf_asc import get_batched_transpose_weight_sf_kernel_asc  # noqa: E402
from tile_kernels.quant.cast_back_asc import get_cast_back_kernel_asc  # noqa: E402
from tile_kernels.quant.per_block_cast_lossless_asc import get_per_block_cast_lossless_kernel_asc  # noqa: E402
from tile_kernels.quant.per_token_cast_and_cast_back_asc import get_per_token_cast_and_cast_back_kernel_asc  # noqa: E402
from tilelang import language as T  # noqa: E402

bf16, f32, i16, i32, i64 = map(empty, (torch.bfloat16, torch.float32, torch.int16, torch.int32, torch.int64))
e4m3, e2m1_pairs = empty(torch.float8_e4m3fn), empty(torch.int8)
HIDDEN = 7168
FLOATS = MappingProxyType({"bf16": torch.bfloat16, "f32": torch.float32})

_PACKED = {"round_sf": True, "use_packed_ue8m0": True}
#: How scale factors are stored, by label, as options of the public functions.
LAYOUTS = MappingProxyType(
    {
        "f32sf": {},
        "round": {"round_sf": True},
        "packed": _PACKED,
        "packed_col": {**_PACKED, "use_tma_aligned_col_major_sf": True},
    }
)


def scale_factors(rows: int, columns: int, layout: str) -> torch.Tensor:
    """Scale factors of ``rows`` x ``columns`` blocks as the package hands them out; packed ones hold two exponents in 16 bits."""
    match layout:
        case "packed":
            return i16(rows, columns // 2)
        case "packed_col":
            return i16(columns // 2, rows).T
        case "f32sf_col":
            return f32(columns, rows).T
        case _:
            return f32(rows, columns)


def cases() -> Iterator[Case]:
    for layout in LAYOUTS:
        yield from _casts_to(layout)
    for layout in ("f32sf", "packed", "packed_col"):
        yield from _casts_from_e4m3(layout)
    yield from _single_casts()
    for layout in ("f32sf", "f32sf_col", "packed", "packed_col"):
        yield from _cast_back(layout)
    yield _cast_back_case("e4m3.32x1.f32sf.f32", (32, 1), "f32", lambda: (e4m3(TOKENS, HIDDEN), f32(TOKENS // 32, HIDDEN)))
    yield _cast_back_case("e4m3.32x1.packed.f32", (32, 1), "f32", lambda: (e4m3(TOKENS, HIDDEN), i16(TOKENS // 64, HIDDEN)))
    for before, after in (("f32sf", "round"), ("packed", "packed"), ("packed_col", "packed_col"), ("f32sf", "packed_col")):
        yield _lossless(before, after)
    for label, dtype, columns in (("bf16", "bf16", HIDDEN), ("f32", "f32", HIDDEN), ("bf16.strided", "bf16", 2 * HIDDEN)):
        for fmt in ("e4m3", "e2m1"):
            yield _round_trip(f"{label}.{fmt}.32", dtype, columns, fmt, 32)
            yield _round_trip(f"{label}.{fmt}.32.round", dtype, columns, fmt, 32, round_sf=True)
            yield _round_trip(f"{label}.{fmt}.16.e4m3sf", dtype, columns, fmt, 16, use_e4m3_sf=True)


def _casts_to(layout: str) -> Iterator[Case]:
    options = LAYOUTS[layout]
    for label, fmt in (("bf16", "e4m3"), ("f32", "e4m3"), ("bf16", "e2m1")):
        yield _per_token(f"{label}.{fmt}.{layout}", label, fmt, options)
    if layout != "packed_col":  # scale factors of channels have one order only
        yield Case(f"quant.per_channel_cast.bf16.{layout}", lambda: quant.per_channel_cast(bf16(TOKENS, HIDDEN), "e4m3", 32, **options))
    yield Case(f"quant.per_block_cast.bf16.e4m3.{layout}", lambda: quant.per_block_cast(bf16(TOKENS, HIDDEN), "e4m3", (32, 32), **options))


def _per_token(label: str, dtype: str, fmt: str, options: dict[str, bool]) -> Case:
    return Case(f"quant.per_token_cast.{label}", lambda: quant.per_token_cast(empty(FLOATS[dtype])(TOKENS, HIDDEN), fmt, 32, **options))


def _casts_from_e4m3(layout: str) -> Iterator[Case]:
    def given() -> tuple[torch.Tensor, torch.Tensor]:
        return e4m3(TOKENS, HIDDEN), scale_factors(TOKENS, HIDDEN // 32, layout)

    yield Case(
        f"quant.per_token_cast.e4m3_{layout}.e4m3.packed",
        lambda: quant.per_token_cast(given(), "e4m3", 32, x_block_size=(1, 32), **LAYOUTS["packed"]),
    )
    for after in ("round", "packed"):
        yield _per_channel_from_e4m3(layout, after)


def _per_channel_from_e4m3(before: str, after: str) -> Case:
    def call() -> None:
        given = e4m3(TOKENS, HIDDEN), scale_factors(TOKENS, HIDDEN // 32, before)
        quant.per_channel_cast(given, "e4m3", 32, num_per_channels=32, **LAYOUTS[after])

    return Case(f"quant.per_channel_cast.e4m3_{before}.{after}", call)


def _single_casts() -> Iterator[Case]:
    def x(hidden: int = HIDDEN) -> torch.Tensor:
        return bf16(TOKENS, hidden)

    packed, columns, block = LAYOUTS["packed"], LAYOUTS["packed_col"], (32, 32)
    yield Case("quant.per_token_cast.h384.bf16.e4m3.packed_col", lambda: quant.per_token_cast(x(384), "e4m3", 32, **columns))
    yield Case("quant.per_token_cast.sf_only", lambda: quant.per_token_cast_with_sf_only(x(), "e4m3", 32))
    yield Case(
        "quant.per_token_cast.cast_only", lambda: quant.per_token_cast_with_precomputed_sf(x(), "e4m3", 32, f32(TOKENS, HIDDEN // 32))
    )
    yield Case("quant.per_block_cast.f32.e4m3.round", lambda: quant.per_block_cast(f32(TOKENS, HIDDEN), "e4m3", block, **LAYOUTS["round"]))
    yield Case("quant.per_block_cast.bf16.e2m1.packed", lambda: quant.per_block_cast(x(), "e2m1", block, **packed))
    yield Case("quant.per_block_cast.f32.e2m1.f32sf", lambda: quant.per_block_cast(f32(TOKENS, HIDDEN), "e2m1", block))
    yield Case("quant.per_block_cast.sf_only", lambda: quant.per_block_cast_with_sf_only(x(), "e4m3", block))
    yield Case(
        "quant.per_block_cast.cast_only",
        lambda: quant.per_block_cast_with_precomputed_sf(x(), "e4m3", block, f32(TOKENS // 32, HIDDEN // 32)),
    )
    yield Case("quant.cast.stochastic", lambda: quant.cast(f32(TOKENS, HIDDEN), torch.bfloat16, True))
    yield Case("quant.cast.stochastic.n4", lambda: quant.cast(f32(4 * TOKENS + 4), torch.bfloat16, True))
    # From here on the public functions look for tensors of a real device.
    yield Case("quant.batched_transpose_weight_sf", lambda: get_batched_transpose_weight_sf_kernel_asc(32, CORES))


def _cast_back(layout: str) -> Iterator[Case]:
    def by_token() -> torch.Tensor:
        return scale_factors(TOKENS, HIDDEN // 32, layout)

    def by_block() -> torch.Tensor:
        return scale_factors(TOKENS // 32, HIDDEN // 32, layout)

    for label in FLOATS:
        yield _cast_back_case(f"e4m3.1x32.{layout}.{label}", (1, 32), label, lambda: (e4m3(TOKENS, HIDDEN), by_token()))
    yield _cast_back_case(f"e2m1.1x32.{layout}.bf16", (1, 32), "bf16", lambda: (e2m1_pairs(TOKENS, HIDDEN // 2), by_token()))
    yield _cast_back_case(f"e4m3.32x32.{layout}.bf16", (32, 32), "bf16", lambda: (e4m3(TOKENS, HIDDEN), by_block()))


def _cast_back_case(label: str, block: tuple[int, int], out: str, given: Callable[[], tuple[torch.Tensor, torch.Tensor]]) -> Case:
    def call() -> None:
        _, _, config = common.get_cast_input_and_config(given(), block)
        get_cast_back_kernel_asc(hidden=HIDDEN, in_config=config, out_dtype=T.dtype(FLOATS[out]), num_vec_cores=CORES)

    return Case(f"quant.cast_back.{label}", call)


def _lossless(before: str, after: str) -> Case:
    def call() -> None:
        given = e2m1_pairs(TOKENS, HIDDEN // 2), scale_factors(TOKENS, HIDDEN // 32, before)
        _, _, read = common.get_cast_input_and_config(given, (1, 32))
        written = common.get_cast_output_config("e4m3", (32, 32), **LAYOUTS[after])
        get_per_block_cast_lossless_kernel_asc(hidden=HIDDEN, in_config=read, out_config=written, num_vec_cores=CORES)

    return Case(f"quant.per_block_cast_lossless.{before}.{after}", call)


def _round_trip(label: str, dtype: str, row: int, fmt: str, block: int, **options: bool) -> Case:
    """``row`` is the distance of two rows of :data:`HIDDEN` elements."""

    def call() -> None:
        config = common.get_cast_output_config(fmt, (1, block), **options)
        get_per_token_cast_and_cast_back_kernel_asc(
            hidden=HIDDEN, token_stride=row, dtype=T.dtype(FLOATS[dtype]), out_config=config, num_vec_cores=CORES
        )

    return Case(f"quant.per_token_cast_and_cast_back.{label}", call)
