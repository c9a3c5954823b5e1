"""mHC expand forward on the simulator: wall time of a call and memory beyond the tensors."""

from __future__ import annotations

import argparse
import resource
import statistics
import time

import torch
from tile_kernels.mhc.expand_asc import expand_to_mhc_fwd_asc
from tilelang.backend.target import determine_target

import tilelang_pto  # noqa: F401  (registers the target)


def peak_mb() -> float:
    """Largest resident set of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=1280)
    parser.add_argument("--streams", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args()
    shape = (options.tokens, options.streams, options.hidden)
    x = torch.randn(options.tokens, options.hidden).to(torch.bfloat16)
    out = torch.zeros(shape, dtype=torch.bfloat16)
    with determine_target("pto", return_object=True):
        kernel = expand_to_mhc_fwd_asc.compile(x, out, h_blk=min(options.hidden, 2560), num_stages=7, num_vec_cores=64)
    before = peak_mb()
    seconds = []
    for _ in range(options.repeat):
        started = time.perf_counter()
        kernel(x, out)
        seconds.append(time.perf_counter() - started)
    assert torch.equal(out, x[:, None, :].expand(shape))
    moved = (x.numel() + out.numel()) * 2
    print(f"expand forward {options.tokens} x {options.streams} x {options.hidden}, median of {options.repeat} calls")
    print(f"  time of a call        {statistics.median(seconds) * 1e3:8.1f} ms")
    print(f"  GM traffic            {moved / statistics.median(seconds) / 1e9:8.2f} GB/s of host time")
    print(f"  memory of the tensors {moved / 2**20:8.1f} MB")
    print(f"  more memory in calls  {peak_mb() - before:8.1f} MB")


if __name__ == "__main__":
    main()
