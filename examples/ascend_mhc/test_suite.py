"""The suite itself: its list of cases, and what it says of a kernel that is wrong."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
import torch
from tilelang.ascend import language as T

from tilelang_pto.compare.case import Case, Tolerance

from .cases import CASES, FAMILIES
from .full_cases import CASES as FULL_CASES
from .sizes import Sizes
from .suite import by_parameters, quick

ROWS = 100


def doubled() -> object:
    n = T.dynamic("n")

    @T.prim_func
    def doubled(x: T.Tensor((n,), T.float32), out: T.Tensor((n,), T.float32)):
        with T.Kernel(T.ceildiv(n, 128)) as core, T.SimtVF(threads=128):
            for i in T.Parallel(128):
                if core * 128 + i < n:
                    out[core * 128 + i] = x[core * 128 + i] * 2

    return doubled


def case(**changes) -> Case:
    right = Case(
        kernel="doubled",
        parameters={"n": ROWS},
        tokens=ROWS,
        program=doubled,
        specialisation=(),
        inputs=lambda seed: [torch.arange(ROWS).float() + seed, torch.full((ROWS,), float("nan"))],
        outputs=(1,),
        reference=lambda given: [given[0] * 2],
        tolerances=(Tolerance(),),
    )
    return dataclasses.replace(right, **changes)


@pytest.mark.quick
def test_a_right_kernel(device):
    assert device.problems(case()) == []
    assert device.problems(case(reference=lambda given: [given[0].double() * 2.0001], tolerances=(Tolerance(1.1e-4),))) == []


def one_wrong(given):
    expected = given[0].double() * 2
    expected[7] += 1
    expected[9] += 2
    return [expected]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"reference": one_wrong, "tolerances": (Tolerance(relative=0.05),)},
            "doubled[n=100]: argument 1: 2 of 100 elements wrong; the worst at [9]: found 18, expected 20, error 2, allowed 1",
        ),
        ({"reference": lambda given: [given[0].double() * 2]}, "equal in value, but not in every bit"),
        ({"reference": lambda given: [given[0][1:] * 2]}, "shape (100,), the reference has (99,)"),
        (
            {"inputs": lambda seed: [torch.full((ROWS,), float("nan"))] * 2, "reference": lambda given: [torch.zeros(ROWS)]},
            "100 of 100 elements wrong, 100 of them NaN; the worst at [0]: found nan, expected 0",
        ),
        ({"outputs": (0,)}, "argument 1: the kernel changed an input"),
    ],
    ids=["values", "dtype", "shape", "nan", "input"],
)
@pytest.mark.quick
def test_what_a_wrong_kernel_is_told(device, changes, message):
    assert any(message in problem for problem in device.problems(case(**changes))), device.problems(case(**changes))


def half_written() -> object:
    n = T.dynamic("n")

    @T.prim_func
    def half_written(x: T.Tensor((n,), T.float32), out: T.Tensor((n,), T.float32)):
        with T.Kernel(1), T.SimtVF(threads=32):
            for i in T.Parallel(32):
                if i < n:
                    out[i] = x[i] * 2

    return half_written


def test_parts_left_unwritten_are_found_even_if_nobody_looks(device):
    untold = case(kernel="half_written", program=half_written, tolerances=(Tolerance(absolute=float("inf")),))
    assert any("a second call gives other bits, or a part is not written" in problem for problem in device.problems(untold))


def test_the_case_lists():
    for cases in (CASES, FULL_CASES):
        assert max(Counter(case.name for case in cases).values()) == 1
    assert [case.name for case in CASES] == [case.name for case in FULL_CASES]
    assert all(case.tokens <= full.tokens for case, full in zip(CASES, FULL_CASES, strict=True))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__.rpartition(".")[2])
def test_every_family_has_its_quick_case(family):
    cases = list(family.cases(Sizes(full=False)))
    chosen = quick(by_parameters(cases))
    assert {case.kernel for group in chosen for case in group} == {case.kernel for case in cases}
