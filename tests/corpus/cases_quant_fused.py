"""Cases of the quant family: normalisation and SwiGLU, with and without a conversion at the end."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from corpus.case import TOKENS, Case, empty
from corpus.cases_quant_cast import FLOATS, LAYOUTS
from tile_kernels_support import tile_kernels

tile_kernels()
from tile_kernels import quant  # noqa: E402

bf16, f32, i32, i64 = map(empty, (torch.bfloat16, torch.float32, torch.int32, torch.int64))
e4m3 = empty(torch.float8_e4m3fn)
WIDTH = 4096
EPS = 1e-6


def cases() -> Iterator[Case]:
    for label in FLOATS:
        yield from _norm_forward(label)
        for layout in LAYOUTS:
            yield _norm_forward_cast(label, layout)
        yield from _norm_backward(label)
    yield Case("quant.norm_forward_cast.bf16.batched.all", _norm_forward_cast_with_everything)
    yield Case("quant.norm_forward.bf16.h7100", lambda: quant.norm_forward(bf16(TOKENS, 7100), bf16(7100), EPS, with_rstd=True))
    for label in FLOATS:
        yield from _swiglu(label)
    for layout in LAYOUTS:
        yield from _swiglu_cast(layout)
    yield from _swiglu_cast_with_everything()


def _norm_forward(label: str) -> Iterator[Case]:
    def x() -> torch.Tensor:
        return empty(FLOATS[label])(TOKENS, WIDTH)

    def with_residual() -> None:
        quant.norm_forward(x(), x()[0], EPS, residual=x(), out_scale=0.5, with_rstd=True)

    name = f"quant.norm_forward.{label}"
    yield Case(name, lambda: quant.norm_forward(x(), x()[0], EPS))
    yield Case(f"{name}.noweight", lambda: quant.norm_forward(x(), None, EPS))
    yield Case(f"{name}.residual.rstd", with_residual)


def _norm_forward_cast(label: str, layout: str) -> Case:
    def call() -> None:
        x = empty(FLOATS[label])(TOKENS, WIDTH)
        quant.norm_forward_and_per_token_cast(x, x[0], EPS, "e4m3", 32, **LAYOUTS[layout])

    return Case(f"quant.norm_forward_cast.{label}.{layout}", call)


def _norm_backward(label: str) -> Iterator[Case]:
    def x() -> torch.Tensor:
        return empty(FLOATS[label])(TOKENS, WIDTH)

    def with_residual() -> None:
        more = {"residual_out_grad": x(), "out_scale": 0.5, "weight_grad": f32(WIDTH)}
        quant.norm_backward(x(), x(), x()[0], f32(TOKENS), **more)

    name = f"quant.norm_backward.{label}"
    yield Case(name, lambda: quant.norm_backward(x(), x(), x()[0], f32(TOKENS)))
    yield Case(f"{name}.noweight", lambda: quant.norm_backward(x(), x(), None, f32(TOKENS)))
    yield Case(f"{name}.residual", with_residual)


def _norm_forward_cast_with_everything() -> None:
    x = bf16(2, TOKENS, WIDTH)
    options = {"residual": x, "with_out_bf16": True, "with_rstd": True, "out_scale": 0.5, **LAYOUTS["packed_col"]}
    quant.norm_forward_and_per_token_cast(x, bf16(WIDTH), EPS, "e4m3", 32, **options)


INNER = 2048


def _gates(label: str) -> torch.Tensor:
    return empty(FLOATS[label])(TOKENS, 2 * INNER)


def _routing() -> dict[str, object]:
    return {"psum_num_tokens_per_expert": i32(32), "topk_weights": f32(TOKENS), "routed_scaling_factor": 2.5, "clamp_value": 10.0}


def _swiglu(label: str) -> Iterator[Case]:
    dtype = "bf16" if label == "bf16" else "fp32"

    def gradient() -> torch.Tensor:
        return empty(FLOATS[label])(TOKENS, INNER)

    def routed_backward() -> None:
        quant.swiglu_backward(_gates(label), gradient(), dtype, **_routing(), do_recompute=True)

    yield Case(f"quant.swiglu_forward.{label}", lambda: quant.swiglu_forward(_gates(label), dtype))
    yield Case(
        f"quant.swiglu_forward.{label}.routed.clamp",
        lambda: quant.swiglu_forward(_gates(label), dtype, **_routing(), clamped_count=i64(4)),
    )
    yield Case(f"quant.swiglu_backward.{label}", lambda: quant.swiglu_backward(_gates(label), gradient(), dtype))
    yield Case(f"quant.swiglu_backward.{label}.routed.clamp", routed_backward)


def _quantized_gates() -> tuple[torch.Tensor, torch.Tensor]:
    return e4m3(TOKENS, 2 * INNER), f32(TOKENS, 2 * INNER // 32)


def _swiglu_cast(layout: str) -> Iterator[Case]:
    options = LAYOUTS[layout]
    yield Case(
        f"quant.swiglu_forward_cast.{layout}",
        lambda: quant.swiglu_forward_and_per_token_cast(_gates("bf16"), "e4m3", 32, **options),
    )
    yield Case(
        f"quant.swiglu_backward_cast.{layout}",
        lambda: quant.swiglu_backward_and_per_token_cast(_quantized_gates(), bf16(TOKENS, INNER), "e4m3", 32, **options),
    )


def _swiglu_cast_with_everything() -> Iterator[Case]:
    columns = LAYOUTS["packed_col"]

    def forward() -> None:
        quant.swiglu_forward_and_per_token_cast(_gates("bf16"), "e4m3", 32, **_routing(), **columns, clamped_count=i64(4))

    def backward() -> None:
        given = _quantized_gates(), bf16(TOKENS, INNER)
        quant.swiglu_backward_and_per_token_cast(*given, "e4m3", 32, **_routing(), **columns, do_recompute=True)

    yield Case("quant.swiglu_forward_cast.all", forward)
    yield Case("quant.swiglu_backward_cast.all", backward)
