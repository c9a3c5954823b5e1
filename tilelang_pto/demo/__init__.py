"""The main job of ``make demo``: mHC expand, forward and backward, on the simulator, compared with torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["main"]

HEADINGS: tuple[str, ...] = (
    "kernel",
    "shape (tokens x streams x hidden)",
    "emitted lines",
    "cores",
    "simulated time",
    "max error",
    "result",
)
SHAPES = ((1024, 2, 1280), (1000, 4, 2560))


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel on one shape: how to call it and what torch says."""

    name: str
    shape: tuple[int, int, int]
    kernel: Any
    arguments: tuple[Any, ...]
    result: Any
    expected: Any


def main(show: Callable[[str], None] = print) -> int:
    """Run the demo and print its table; 0 if every kernel agrees with torch, else 1."""
    rows, failures = [HEADINGS], 0
    for job in _jobs():
        row, passed = _run(job)
        rows.append(row)
        failures += not passed
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for number, row in enumerate(rows):
        show("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            show("  ".join("-" * width for width in widths))
    show("simulated time: n/a, there is no timing model yet")
    return 1 if failures else 0


def _jobs() -> list[Job]:
    import torch

    from .kernels import expand_backward, expand_forward

    generator = torch.Generator().manual_seed(0)
    jobs = []
    for shape in SHAPES:
        tokens, streams, hidden = shape
        x = torch.randn(tokens, hidden, generator=generator).to(torch.bfloat16)
        out = torch.empty(shape, dtype=torch.bfloat16)
        jobs.append(Job("expand forward", shape, expand_forward, (x, out), out, x[:, None, :].expand(shape)))
        grad = torch.randn(shape, generator=generator).to(torch.bfloat16)
        x_grad = torch.empty(tokens, hidden, dtype=torch.bfloat16)
        # The kernel adds in float32, stream by stream, and rounds once; so does this.
        total = grad[:, 0].float()
        for stream in range(1, streams):
            total = total + grad[:, stream].float()
        jobs.append(Job("expand backward", shape, expand_backward, (grad, x_grad), x_grad, total.to(torch.bfloat16)))
    return jobs


def _run(job: Job) -> tuple[tuple[str, ...], bool]:
    from .kernels import CORES

    job.result.fill_(float("nan"))
    compiled = job.kernel.compile(*job.arguments)
    compiled(*job.arguments)
    error = float((job.result.float() - job.expected.float()).abs().max())
    passed = error == 0.0
    lines = compiled.get_kernel_source(kernel_only=True).count("\n")
    shape = " x ".join(str(extent) for extent in job.shape)
    return (job.name, shape, str(lines), str(CORES), "n/a", f"{error:.1e}", "PASS" if passed else "FAIL"), passed
