"""Vector add: one SIMT vector function per block of elements."""

import tilelang
import torch
from tilelang.ascend import language as T

import tilelang_pto  # noqa: F401  (registers target="pto")


@tilelang.jit(target="pto")
def vector_add(a, b, c, block: int = 1024):
    n = T.dynamic("n")
    a: T.Tensor[(n,), T.float32]
    b: T.Tensor[(n,), T.float32]
    c: T.Tensor[(n,), T.float32]

    with T.Kernel(T.ceildiv(n, block)) as core, T.SimtVF(threads=256):
        for i in T.Parallel(block):
            if core * block + i < n:
                c[core * block + i] = a[core * block + i] + b[core * block + i]


if __name__ == "__main__":
    x, y = torch.randn(10_000), torch.randn(10_000)
    out = torch.empty_like(x)
    kernel = vector_add.compile(x, y, out)
    kernel(x, y, out)
    torch.testing.assert_close(out, x + y)
    print(kernel.get_kernel_source())
