"""Records of a made-up run, for tests of reports."""

from __future__ import annotations

from tilelang_pto.compare.counts import Counts
from tilelang_pto.compare.records import STAGES, Record, Step

COUNTS = {
    "ascend": Counts(scalar=100, syncs=4, copies=2, bytes=4096, code=120),
    "pto": Counts(scalar=25, syncs=4, copies=2, bytes=4096, code=60),
}


def record(kernel: str, tokens: int, backend: str, rounds: tuple[tuple[float, ...], ...] = (), **changes) -> Record:
    """A record of a case that went well."""
    values = {
        "case": f"{kernel}[tokens={tokens}]",
        "kernel": kernel,
        "parameters": {"tokens": tokens},
        "tokens": tokens,
        "backend": backend,
        "digest": "0123",
        "setting": "npu" if rounds else "sim",
        "steps": tuple(Step(stage, "ok") for stage in STAGES),
        "counts": COUNTS[backend].as_dict(),
        "functions": (f"{kernel}_kernel",),
        "samples": rounds,
        "source": "op_summary" if rounds else "",
    }
    return Record(**{**values, **changes})


def measured() -> list[Record]:
    """Times whose ratios are 0.5, 2 (forward, 1024 and 4096 tokens) and 0.8 (backward)."""
    times = {("mix_forward", 1024): (10.0, 5.0), ("mix_forward", 4096): (10.0, 20.0), ("mix_backward", 1024): (50.0, 40.0)}
    return [
        record(kernel, tokens, backend, ((time, time * 1.1, time * 0.9), (time, time, time)))
        for (kernel, tokens), pair in times.items()
        for backend, time in zip(("ascend", "pto"), pair, strict=True)
    ]
