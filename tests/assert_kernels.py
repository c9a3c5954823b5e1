"""A kernel with a device assert.

No ``from __future__ import annotations`` here: TileLang evaluates the annotations of a kernel.
"""

import tilelang
from tilelang.ascend import language as T


@tilelang.jit(target="pto")
def checked_copy(a, b):
    n = T.const("n")
    a: T.Tensor[(n,), T.int32]
    b: T.Tensor[(n,), T.int32]
    with T.Kernel(1), T.SimtVF(threads=64):
        for i in T.Parallel(n):
            T.device_assert(a[i] < 1000, "value too large")
            b[i] = a[i]
