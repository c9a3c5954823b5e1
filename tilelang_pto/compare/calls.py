"""The program that runs under the profiler: calls of one kernel, nothing else on the device."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["main"]


def main(path: str) -> None:
    """Do the job in a file and note in another what was called, when everything is done."""
    import tilelang
    import torch

    import tilelang_pto  # noqa: F401  (registers target="pto")
    from tilelang_pto.compare.suite import find_case, load_suite
    from tilelang_pto.compare.texts import device_functions

    job = json.loads(Path(path).read_text())
    case = find_case(load_suite(job["suite"]).cases, job["case"])
    kernel = tilelang.compile(case.program(), target=job["backend"], pass_configs=dict(case.pass_configs))
    arguments = [value.to(job["device"]) if isinstance(value, torch.Tensor) else value for value in case.inputs(job["seed"])]
    for _ in range(job["warm_up"] + job["calls"]):
        kernel(*arguments)
    if job["device"] == "npu":
        torch.npu.synchronize()  # type: ignore[attr-defined]
    functions = device_functions(kernel.get_kernel_source(kernel_only=True), job["backend"])
    Path(job["note"]).write_text(json.dumps({"functions": functions, "warm_up": job["warm_up"], "calls": job["calls"]}))
