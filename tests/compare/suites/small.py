"""A suite of two kernels, for tests of comparisons; some of the cases are wrong on purpose."""

import dataclasses
import os
import signal
import time

import torch
from tilelang.ascend import language as T

from tilelang_pto.compare import Case, Tolerance


def scaled(width: int):
    """``out = 2 * x`` over rows of ``width`` elements."""
    rows = T.dynamic("rows")

    @T.prim_func
    def scaled(x: T.Tensor((rows, width), "float32"), out: T.Tensor((rows, width), "float32")):
        with T.Kernel(4) as core, T.SimtVF(threads=128):
            for i, j in T.Parallel(T.ceildiv(rows - core, 4), width):
                out[core + i * 4, j] = x[core + i * 4, j] * 2

    return scaled


def refused():
    """The shape of a layout nobody has."""

    @T.prim_func
    def refused(x: T.Tensor((64,), "float32"), out: T.Tensor((64,), "float32")):
        with T.Kernel(1), T.SimtVF(threads=64):
            for i in T.Parallel(64):
                out[i] = T.call_pure_extern("float32", "no_such_function", x[i])

    return refused


def _case(kernel: str = "scaled_forward", rows: int = 8, width: int = 64, **changes) -> Case:
    right = Case(
        kernel=kernel,
        parameters={"rows": rows, "width": width},
        tokens=rows,
        program=lambda: scaled(width),
        specialisation=(width,),
        inputs=lambda seed: [torch.arange(rows * width).float().reshape(rows, width) + seed, torch.full((rows, width), float("nan"))],
        outputs=(1,),
        reference=lambda given: [given[0].double() * 2],
        tolerances=(Tolerance(relative=1e-6),),
    )
    return dataclasses.replace(right, **changes)


def _raise():
    raise RuntimeError("no such program")


_noted = set()


def _alone(rows: int):
    """Makes arguments, in a process that has made none of other sizes."""

    def inputs(seed):
        _noted.add(rows)
        return os.abort() if len(_noted) > 1 else _case(rows=rows).inputs(seed)

    return inputs


RIGHT = [_case(), _case(rows=16), _case("scaled_backward")]
WRONG = [
    _case("wrong", reference=lambda given: [given[0].double() * 3]),
    _case("raises", program=_raise, specialisation=("raises",)),
    _case("crashes", inputs=lambda seed: os.kill(os.getpid(), signal.SIGSEGV)),
    _case("hangs", program=lambda: time.sleep(600)),
    Case(
        "refused",
        {"n": 64},
        64,
        refused,
        (),
        lambda seed: [torch.zeros(64), torch.zeros(64)],
        (1,),
        lambda given: [given[0]],
        (Tolerance(),),
    ),
]
SHARED = [  # of one compiled kernel
    _case("shared", rows=8, inputs=_alone(8)),
    _case("shared", rows=9, inputs=_alone(9)),
    _case("shared", rows=10, inputs=lambda seed: os.kill(os.getpid(), signal.SIGSEGV)),
    _case("shared", rows=11, reference=lambda given: [given[0].double() * 3]),
    _case("shared", rows=12),
]
CASES = RIGHT + WRONG + SHARED
