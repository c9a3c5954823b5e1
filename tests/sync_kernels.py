"""A small kernel that copies, doubles and stores, with and without a flag it needs."""

from __future__ import annotations

import numpy as np

from tilelang_pto import sim

ROWS = 1024
_TEXT = """from ptodsl import pto


@pto.jit(name="double", kernel_kind="vector", target="a5", mode="explicit", ast_rewrite=False)
def double(a: pto.ptr(pto.f32, "gm"), c: pto.ptr(pto.f32, "gm")):
    row = pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub"))
    first = pto.cast(pto.get_block_idx(), pto.i64) * 2048
    for step in range(2):
        at = first + step * 1024
        out = pto.castptr(pto.const(4096 * (step + 1), dtype=pto.i64), pto.ptr(pto.f32, "ub"))
        # before the second load
        pto.pipe_barrier("MTE2")
        pto.mte_gm_ub(pto.addptr(a, at), row, 0, 4096, nburst=(1, 4096, 4096))
        pto.set_flag("MTE2", "V", event_id=step)
        pto.wait_flag("MTE2", "V", event_id=step)
        with pto.vecscope():
            mask = pto.pset_b32("PAT_ALL")
            for k in range(16):
                pto.vsts(pto.vmuls(pto.vlds(row, k * 64), 2.0, mask), out, k * 64, mask)
        pto.set_flag("V", "MTE3", event_id=step)
        # after the first doubling
        pto.wait_flag("V", "MTE3", event_id=step)
        pto.mte_ub_gm(out, pto.addptr(c, at), 4096, nburst=(1, 4096, 4096))
"""
#: The second load may overwrite what the first doubling still reads.
RACY = "\n".join(line for line in _TEXT.split("\n") if "# " not in line)
CLEAN = _TEXT.replace("# before the second load", 'if step == 1:\n            pto.wait_flag("V", "MTE2", event_id=0)').replace(
    "# after the first doubling", 'if step == 0:\n            pto.set_flag("V", "MTE2", event_id=0)'
)
#: Line of the load, and of the load from UB that it may overtake.
LOAD, READ = (1 + next(n for n, line in enumerate(RACY.split("\n")) if name in line) for name in ("mte_gm_ub", "vlds"))


def run(text: str, blocks: int = 2) -> np.ndarray:
    """Launch the kernel on ``blocks`` blocks; what it has stored."""
    a = np.arange(blocks * 2 * ROWS, dtype=np.float32)
    c = np.zeros_like(a)
    sim.run(text, "double", a, c, grid=blocks)
    return c
