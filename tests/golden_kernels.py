"""Kernels whose emitted text is kept in ``tests/codegen/golden``. Each shows one thing.

No ``from __future__ import annotations`` here: TileLang evaluates the annotations of a kernel.
"""

from tilelang.ascend import language as T


def guarded_copy():
    """SIMT: a guard over a dynamic extent, an unrolled loop."""
    n = T.dynamic("n")

    @T.prim_func
    def guarded_copy(a: T.Tensor((n,), "int32"), b: T.Tensor((n,), "int32")):
        with T.Kernel(T.ceildiv(n, 512)) as core, T.SimtVF(threads=128):
            for i in T.Parallel(512):
                if core * 512 + i < n:
                    b[core * 512 + i] = a[core * 512 + i]

    return guarded_copy


def scale_rows():
    """SIMD: rows through UB in two versions, a float32 multiply by a runtime scalar."""
    rows = T.dynamic("rows")

    @T.prim_func
    def scale_rows(x: T.Tensor((rows, 256), "float32"), y: T.Tensor((rows, 256), "float32"), factor: T.float32):
        with T.Kernel(8) as core:
            row = T.alloc_shared((256,), "float32")
            T.annotate_buffer_versions({row: 2})
            for r in T.Persistent([rows], 8, core, group_size=1, num_stages=2):
                T.copy(x[r, 0], row)
                with T.SimdVF():
                    lanes = T.simd.pset(32)
                    for c in T.serial(4):
                        T.simd.vsts(row[c * 64], T.simd.vmuls(T.simd.vld(row[c * 64]), factor, lanes), lanes)
                T.copy(row, y[r, 0])

    return scale_rows


def running_maximum():
    """SIMD: a register carried by a loop."""

    @T.prim_func
    def running_maximum(x: T.Tensor((16, 64), "float32"), y: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            rows = T.alloc_shared((16, 64), "float32")
            top = T.alloc_shared((64,), "float32")
            T.copy(x, rows)
            with T.SimdVF():
                lanes = T.simd.pset(32)
                best = T.simd.alloc_var(T.float32)
                best = T.simd.vld(rows[0, 0])
                for r in T.serial(1, 16):
                    best = T.simd.vmax(best, T.simd.vld(rows[r, 0]), lanes)
                T.simd.vsts(top[0], best, lanes)
            T.copy(top, y)

    return running_maximum


def count_even():
    """Scalar unit and SIMT: a mutable scalar, a branch that changes it, shifts of signed and unsigned values."""
    n = T.dynamic("n")

    @T.prim_func
    def count_even(x: T.Tensor((n,), "int32"), half: T.Tensor((n,), "int32"), logical: T.Tensor((n,), "uint32")):
        with T.Kernel(2) as core, T.SimtVF(threads=64):
            for i in T.Parallel(64):
                seen = T.alloc_var("int32")
                seen = 0
                for k in T.serial(T.ceildiv(n, 128)):
                    if k * 128 + core * 64 + i < n:
                        if x[k * 128 + core * 64 + i] % 2 == 0:
                            seen = seen + 1
                        half[k * 128 + core * 64 + i] = x[k * 128 + core * 64 + i] >> 1
                        logical[k * 128 + core * 64 + i] = T.cast(x[k * 128 + core * 64 + i], "uint32") >> T.uint32(1)

    return count_even
