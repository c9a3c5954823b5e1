"""GEMM on the cube core: ``c = a @ b.T``, bf16 operands, float32 sums.

Each core takes tiles of the result in turn. For every tile, slices of K go from GM to L1, while the cube core multiplies those before.
"""

import tilelang
import torch
from tilelang.ascend import language as T

import tilelang_pto  # noqa: F401  (registers target="pto")


@tilelang.jit(target="pto")
def gemm(a, b, c, tile_m: int = 128, tile_n: int = 128, tile_k: int = 128, cores: int = 32):
    """``a``: m x k, ``b``: n x k, ``c``: m x n; extents need not be multiples of the tiles."""
    m, n, k = T.const("m, n, k")
    a: T.Tensor[(m, k), T.bfloat16]
    b: T.Tensor[(n, k), T.bfloat16]
    c: T.Tensor[(m, n), T.float32]

    with T.Kernel(cores) as core:
        a_l1 = T.alloc_l1((tile_m, tile_k), T.bfloat16)
        b_l1 = T.alloc_l1((tile_n, tile_k), T.bfloat16)
        total = T.alloc_l0c((tile_m, tile_n), T.float32)
        for row, column in T.Persistent([T.ceildiv(m, tile_m), T.ceildiv(n, tile_n)], cores, core):
            for step in T.Pipelined(T.ceildiv(k, tile_k), num_stages=2):
                T.copy(a[row * tile_m, step * tile_k], a_l1)
                T.copy(b[column * tile_n, step * tile_k], b_l1)
                T.gemm(a_l1, b_l1, total, transpose_B=True, clear_accum=step == 0)
            T.copy(total, c[row * tile_m, column * tile_n])


if __name__ == "__main__":
    x, y = torch.randn(512, 384).bfloat16(), torch.randn(256, 384).bfloat16()
    out = torch.empty(512, 256)
    kernel = gemm.compile(x, y, out)
    kernel(x, y, out)
    torch.testing.assert_close(out, x.float() @ y.float().T, rtol=1e-4, atol=1e-3)
    print(kernel.get_kernel_source())
