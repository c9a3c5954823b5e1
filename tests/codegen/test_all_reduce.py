"""Reductions over SIMT threads against NumPy: one warp, several warps, several groups, numbers of threads that are no power of two."""

from __future__ import annotations

import numpy as np
import pytest
from tir_builder import access, immediate, pointer, sequence, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import require_clean, surface_of
from tilelang_pto.sim import run

SURFACES = ("2026-08", "2026-09")
SHAPES = [  # threads of the vector function, threads of a group, scale
    (32, 32, 1),
    (16, 16, 4),
    (64, 16, 1),
    (128, 4, 1),
    (64, 64, 1),
    (256, 256, 1),
    (256, 256, 4),
    (256, 64, 2),
    (256, 256, 8),
    (512, 256, 4),
    (1024, 1024, 1),
    (1024, 512, 32),
    (128, 128, 64),
    (64, 64, 32),
    (30, 30, 5),
    (96, 96, 1),
    (60, 30, 1),
    (8, 8, 8),
]
MODELS = {"Sum": np.sum, "Max": np.max, "Min": np.min}


def kernel(dtype: str, total: int, threads: int, scale: int, kinds: list[str]):
    """``out[k, t]`` = reduction ``k`` of ``a`` over the class of thread ``t``; all reductions share one workspace."""
    a, out = pointer("a", dtype), pointer("out", dtype)
    workspace = tirx.decl_buffer((total,), dtype, name="workspace", scope="shared.dyn")
    needs_workspace = threads > 32 or threads & (threads - 1) != 0

    def body(tx):
        statements = []
        for number, kind in enumerate(kinds):
            arguments = [tirx.BufferLoad(view(a, dtype, total), [tx])]
            if needs_workspace:
                arguments.append(access(workspace.data, dtype, 0, total))
            name = f"tl::AscendAllReduce<tl::{kind}Op, {threads}, {scale}, 0>::run"
            reduced = tirx.call_extern(dtype, name, *arguments)
            statements.append(tirx.BufferStore(view(out, dtype, total * len(kinds)), reduced, [tx + immediate(number * total)]))
        return sequence(*statements)

    return vector_kernel("reduce", [a, out], lambda _: sequence(tirx.AllocBuffer(workspace), simt_block(total, body)))


def expected(values: np.ndarray, threads: int, scale: int, kind: str) -> np.ndarray:
    groups = values.reshape(-1, threads // scale, scale)
    classes = MODELS[kind](groups, axis=1, keepdims=True)
    return np.broadcast_to(classes, groups.shape).reshape(-1)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32"])
@pytest.mark.parametrize(("total", "threads", "scale"), SHAPES)
def test_every_thread_gets_the_value_of_its_class(surface, dtype, total, threads, scale):
    kinds = list(MODELS)
    text = emit_module(kernel(dtype, total, threads, scale, kinds), surface=surface_of(surface)).text
    require_clean(text, surface_of(surface))
    low = 0 if dtype == "uint32" else -1000
    values = np.random.default_rng(total).integers(low, 1000, total).astype(dtype)  # sums of floats are exact too
    out = np.zeros(total * 3, dtype)
    run(text, "reduce", values, out)
    for number, kind in enumerate(kinds):
        np.testing.assert_array_equal(out[number * total : (number + 1) * total], expected(values, threads, scale, kind).astype(dtype))


def test_a_whole_warp_is_summed_by_one_instruction():
    def text(kind: str, threads: int, scale: int) -> str:
        return emit_module(kernel("float32", threads, threads, scale, [kind]), surface=surface_of("2026-08")).text

    assert text("Sum", 32, 1).count("pto.redux_add") == 1
    assert "shuffle" not in text("Sum", 32, 1)
    assert text("Sum", 1024, 1).count("pto.redux_add") == 2  # in the warps, then between them
    assert text("Sum", 256, 1).count("pto.shuffle_bfly") == 3  # eight warps
    assert "redux" not in text("Max", 32, 1)  # of floats: a number wins over NaN
    assert "redux" not in text("Sum", 32, 2)


def test_several_warps_meet_without_a_loop():
    text = emit_module(kernel("float32", 256, 256, 4, ["Sum"]), surface=surface_of("2026-08")).text
    assert "pto.for_" not in text
    assert text.count("pto.syncthreads()") == 2
    assert "// 256" not in text  # there is one group
