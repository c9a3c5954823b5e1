"""Kernels for the cube core and for cube and vector cores together, which the tests lower, emit and run.

No ``from __future__ import annotations`` here: TileLang evaluates the annotations of a kernel.
"""

from tilelang.ascend import language as T


def gemm(
    m,
    n,
    k,
    *,
    tile=(64, 64, 64),
    dtype="bfloat16",
    out_dtype="float32",
    accumulator="float32",
    transpose_a=False,
    transpose_b=True,
    cores=2,
    unit_flag=False,
    hf32=None,
):
    """``C = A @ B`` from L1 tiles on the cube core; a transposed operand is turned on its way into L1."""
    tile_m, tile_n, tile_k = tile
    m_tiles, n_tiles, k_tiles = -(-m // tile_m), -(-n // tile_n), -(-k // tile_k)
    a_shape = (k, m) if transpose_a else (m, k)
    b_shape = (n, k) if transpose_b else (k, n)
    middle, last = (2, 3) if unit_flag else (0, 0)

    @T.prim_func
    def gemm(a: T.Tensor(a_shape, dtype), b: T.Tensor(b_shape, dtype), c: T.Tensor((m, n), out_dtype)):
        with T.Kernel(cores) as core:
            if dtype == "float32":
                T.set_hf32_mode(hf32)
            a_l1 = T.alloc_l1((tile_m, tile_k), dtype)
            b_l1 = T.alloc_l1((tile_n, tile_k), dtype)
            total = T.alloc_l0c((tile_m, tile_n), accumulator)
            for tile_index in T.Persistent([m_tiles * n_tiles], cores, core):
                row = tile_index // n_tiles * tile_m
                column = tile_index % n_tiles * tile_n
                for step in T.Pipelined(k_tiles, num_stages=2):
                    if transpose_a:
                        T.copy(a[step * tile_k : (step + 1) * tile_k, row : row + tile_m], a_l1, transpose=True)
                    else:
                        T.copy(a[row : row + tile_m, step * tile_k : (step + 1) * tile_k], a_l1)
                    if transpose_b:
                        T.copy(b[column : column + tile_n, step * tile_k : (step + 1) * tile_k], b_l1)
                    else:
                        T.copy(b[step * tile_k : (step + 1) * tile_k, column : column + tile_n], b_l1, transpose=True)
                    flag = T.Select(step == k_tiles - 1, last, middle)
                    T.gemm(a_l1, b_l1, total, transpose_B=True, clear_accum=(step == 0), unit_flag_ctrl=flag)
                T.copy(total, c[row, column], unit_flag_ctrl=last)

    return gemm


def gemm_l0(
    m, n, k, *, tile=(64, 64, 64), slice_k=32, dtype="bfloat16", accumulator="float32", transpose_a=False, transpose_b=True, cores=2
):
    """``C = A @ B`` with tiles moved to L0A and L0B by hand; a transposed operand is turned by that move."""
    tile_m, tile_n, tile_k = tile
    n_tiles, k_tiles = n // tile_n, k // tile_k
    a_shape = (k, m) if transpose_a else (m, k)
    b_shape = (n, k) if transpose_b else (k, n)
    a_tile = (tile_k, tile_m) if transpose_a else (tile_m, tile_k)
    b_tile = (tile_n, tile_k) if transpose_b else (tile_k, tile_n)
    a_slice = (slice_k, tile_m) if transpose_a else (tile_m, slice_k)
    b_slice = (tile_n, slice_k) if transpose_b else (slice_k, tile_n)

    @T.prim_func
    def gemm_l0(a: T.Tensor(a_shape, dtype), b: T.Tensor(b_shape, dtype), c: T.Tensor((m, n), accumulator)):
        with T.Kernel(cores) as core:
            a_l1 = T.alloc_l1(a_tile, dtype)
            b_l1 = T.alloc_l1(b_tile, dtype)
            a_l0 = T.alloc_l0a(a_slice, dtype)
            b_l0 = T.alloc_l0b(b_slice, dtype)
            total = T.alloc_l0c((tile_m, tile_n), accumulator)
            for tile_index in T.Persistent([(m // tile_m) * n_tiles], cores, core):
                row = tile_index // n_tiles * tile_m
                column = tile_index % n_tiles * tile_n
                for step in T.Pipelined(k_tiles, num_stages=2):
                    if transpose_a:
                        T.copy(a[step * tile_k : (step + 1) * tile_k, row : row + tile_m], a_l1)
                    else:
                        T.copy(a[row : row + tile_m, step * tile_k : (step + 1) * tile_k], a_l1)
                    if transpose_b:
                        T.copy(b[column : column + tile_n, step * tile_k : (step + 1) * tile_k], b_l1)
                    else:
                        T.copy(b[step * tile_k : (step + 1) * tile_k, column : column + tile_n], b_l1)
                    for part in T.Pipelined(tile_k // slice_k, num_stages=2):
                        if transpose_a:
                            T.copy(a_l1[part * slice_k : (part + 1) * slice_k, :], a_l0)
                        else:
                            T.copy(a_l1[:, part * slice_k : (part + 1) * slice_k], a_l0)
                        if transpose_b:
                            T.copy(b_l1[:, part * slice_k : (part + 1) * slice_k], b_l0)
                        else:
                            T.copy(b_l1[part * slice_k : (part + 1) * slice_k, :], b_l0)
                        start = step == 0 and part == 0
                        T.gemm(a_l0, b_l0, total, transpose_A=transpose_a, transpose_B=transpose_b, clear_accum=start)
                T.copy(total, c[row, column])

    return gemm_l0


def gemm_relu(m, n, k, *, tile=(64, 64, 64), dtype="bfloat16", cores=2, split="rows", sids=0, unit_flag=True):
    """``C = relu(A @ B.T)``: the cube core multiplies, the vector cores clamp, each its half of the tile."""
    tile_m, tile_n, tile_k = tile
    n_tiles, k_tiles = n // tile_n, k // tile_k
    half = (tile_m // 2, tile_n) if split == "rows" else (tile_m, tile_n // 2)
    middle, last = (2, 3) if unit_flag else (0, 0)

    @T.prim_func
    def gemm_relu(a: T.Tensor((m, k), dtype), b: T.Tensor((n, k), dtype), c: T.Tensor((m, n), "float32")):
        with T.Kernel(cores) as core:
            a_l1 = T.alloc_l1((tile_m, tile_k), dtype)
            b_l1 = T.alloc_l1((tile_n, tile_k), dtype)
            total = T.alloc_l0c((tile_m, tile_n), "float32")
            part = T.alloc_shared(half, "float32")
            for tile_index in T.Persistent([(m // tile_m) * n_tiles], cores, core):
                row = tile_index // n_tiles * tile_m
                column = tile_index % n_tiles * tile_n
                for step in T.Pipelined(k_tiles, num_stages=2):
                    T.copy(a[row : row + tile_m, step * tile_k : (step + 1) * tile_k], a_l1)
                    T.copy(b[column : column + tile_n, step * tile_k : (step + 1) * tile_k], b_l1)
                    flag = T.Select(step == k_tiles - 1, last, middle)
                    T.gemm(a_l1, b_l1, total, transpose_B=True, clear_accum=(step == 0), unit_flag_ctrl=flag)
                T.dual_copy(total, part, unit_flag_ctrl=last)
                with T.SimdVF():
                    lanes = T.simd.pset(32)
                    for r in T.serial(half[0] * half[1] // 64):
                        values = T.simd.vld(part[r * 64 // half[1], r * 64 % half[1]])
                        T.simd.vsts(part[r * 64 // half[1], r * 64 % half[1]], T.simd.vrelu(values, lanes), lanes)
                T.dual_copy(part, c[row : row + tile_m, column : column + tile_n])

    return gemm_relu


def gemm_mixed_kernel(m, n, k, *, tile=(64, 64, 64), dtype="bfloat16", cores=2, sids=2):
    """A scheduled ``T.MixedKernel`` with one or two vector cores; the vector code knows its number."""
    tile_m, tile_n, tile_k = tile
    n_tiles, k_tiles = n // tile_n, k // tile_k
    rows = tile_m // sids

    @T.prim_func
    def gemm_mixed_kernel(a: T.Tensor((m, k), dtype), b: T.Tensor((n, k), dtype), c: T.Tensor((m, n), "float32")):
        with T.MixedKernel(cores, sids=sids) as (core, sid):
            a_l1 = T.alloc_l1((tile_m, tile_k), dtype)
            b_l1 = T.alloc_l1((tile_n, tile_k), dtype)
            total = T.alloc_l0c((tile_m, tile_n), "float32")
            part = T.alloc_shared((rows, tile_n), "float32")
            for tile_index in T.Persistent([(m // tile_m) * n_tiles], cores, core):
                row = tile_index // n_tiles * tile_m
                column = tile_index % n_tiles * tile_n
                for step in T.Pipelined(k_tiles, num_stages=2):
                    T.copy(a[row : row + tile_m, step * tile_k : (step + 1) * tile_k], a_l1)
                    T.copy(b[column : column + tile_n, step * tile_k : (step + 1) * tile_k], b_l1)
                    T.gemm(a_l1, b_l1, total, transpose_B=True, clear_accum=(step == 0))
                if sids == 2:
                    T.dual_copy(total, part)
                else:
                    T.copy(total, part)
                T.copy(part, c[row + sid * rows : row + (sid + 1) * rows, column : column + tile_n])

    return gemm_mixed_kernel


def gemm_manual(m, n, k, *, tile=(64, 64, 64), dtype="bfloat16", cores=2):
    """Cube and vector code written apart, with every flag by hand; compile it with automatic scheduling switched off."""
    tile_m, tile_n, tile_k = tile
    n_tiles, k_tiles, stages = n // tile_n, k // tile_k, 2
    tiles_each = (m // tile_m) * n_tiles // cores
    free, full = 4, 6

    @T.prim_func
    def gemm_manual(a: T.Tensor((m, k), dtype), b: T.Tensor((n, k), dtype), c: T.Tensor((m, n), "float32")):
        with T.Kernel(cores) as core:
            a_l1 = T.alloc_l1((stages, tile_m, tile_k), dtype)
            b_l1 = T.alloc_l1((stages, tile_n, tile_k), dtype)
            total = T.alloc_l0c((tile_m, tile_n), "float32")
            part = T.alloc_shared((tile_m // 2, tile_n), "float32")
            with T.Cube():
                for stage in T.Serial(stages):
                    T.ascend_set_flag("MTE1_MTE2", stage)
                T.ascend_set_flag("FIX_M", 0)
                for turn in T.Serial(tiles_each):
                    tile_index = turn * cores + core
                    row = tile_index // n_tiles * tile_m
                    column = tile_index % n_tiles * tile_n
                    for step in T.Serial(k_tiles):
                        stage = step % stages
                        T.ascend_wait_flag("MTE1_MTE2", stage)
                        T.copy(a[row : row + tile_m, step * tile_k : (step + 1) * tile_k], a_l1[stage, :, :])
                        T.copy(b[column : column + tile_n, step * tile_k : (step + 1) * tile_k], b_l1[stage, :, :])
                        T.ascend_set_flag("MTE2_MTE1", stage)
                        T.ascend_wait_flag("MTE2_MTE1", stage)
                        if step == 0:
                            T.ascend_wait_flag("FIX_M", 0)
                        T.gemm(a_l1[stage, :, :], b_l1[stage, :, :], total, transpose_B=True, clear_accum=(step == 0))
                        T.ascend_set_flag("MTE1_MTE2", stage)
                    T.ascend_set_flag("M_FIX", 0)
                    T.ascend_wait_flag("M_FIX", 0)
                    for vector in T.Serial(2):
                        T.ascend_cross_core_wait_flag(4, "PIPE_FIX", free + 16 * vector)
                    T.dual_copy(total, part)
                    for vector in T.Serial(2):
                        T.ascend_cross_core_set_flag(4, "PIPE_FIX", full + 16 * vector)
                    T.ascend_set_flag("FIX_M", 0)
                for stage in T.Serial(stages):
                    T.ascend_wait_flag("MTE1_MTE2", stage)
                T.ascend_wait_flag("FIX_M", 0)
                for vector in T.Serial(2):
                    T.ascend_cross_core_wait_flag(4, "PIPE_FIX", free + 16 * vector)
            with T.Vector() as sid:
                T.ascend_cross_core_set_flag(4, "PIPE_MTE3", free)
                for turn in T.Serial(tiles_each):
                    tile_index = turn * cores + core
                    row = tile_index // n_tiles * tile_m
                    column = tile_index % n_tiles * tile_n
                    T.ascend_cross_core_wait_flag(4, "PIPE_MTE3", full)
                    T.copy(part, c[row + sid * (tile_m // 2), column])
                    T.ascend_cross_core_set_flag(4, "PIPE_MTE3", free)

    return gemm_manual


def gemm_split_k(m, n, k, *, parts=2, tile=(64, 64, 64), dtype="bfloat16", deterministic=False):
    """K split over cores: the first part stores, a barrier, the others add; or one after the other, with a barrier after each."""
    tile_m, tile_n, tile_k = tile
    n_tiles = n // tile_n
    steps = k // tile_k // parts
    cores = (m // tile_m) * n_tiles * parts

    @T.prim_func
    def gemm_split_k(a: T.Tensor((m, k), dtype), b: T.Tensor((n, k), dtype), c: T.Tensor((m, n), "float32")):
        with T.Kernel(cores) as core:
            part = core % parts
            row = core // parts // n_tiles * tile_m
            column = core // parts % n_tiles * tile_n
            a_l1 = T.alloc_l1((tile_m, tile_k), dtype)
            b_l1 = T.alloc_l1((tile_n, tile_k), dtype)
            total = T.alloc_l0c((tile_m, tile_n), "float32")
            if part != 0:
                T.set_atomic("add", "float32")
            for step in T.Pipelined(steps, num_stages=2):
                first = (part * steps + step) * tile_k
                T.copy(a[row : row + tile_m, first : first + tile_k], a_l1)
                T.copy(b[column : column + tile_n, first : first + tile_k], b_l1)
                T.gemm(a_l1, b_l1, total, transpose_B=True, clear_accum=(step == 0))
            with T.PerCoreTask():
                if deterministic:
                    for turn in T.Serial(parts):
                        if part == turn:
                            T.copy(total, c[row, column])
                        T.ascend_sync_inter_arrive("PIPE_FIX", 0)
                        T.ascend_sync_inter_wait("PIPE_FIX", 0)
                else:
                    if part == 0:
                        T.copy(total, c[row, column])
                    T.ascend_sync_inter_arrive("PIPE_FIX", 0)
                    T.ascend_sync_inter_wait("PIPE_FIX", 0)
                    if part != 0:
                        T.copy(total, c[row, column])
            if part != 0:
                T.set_atomic_none()

    return gemm_split_k
