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


def gemm_scaled(m, n, k, *, tile=(64, 64, 128), dtype="float8_e4m3fn", scale_dtype="uint16", packed=True, cores=2, unit_flag=True):
    """``C = (A * scales) @ (B * scales).T``: one power of two for every 32 values of K, in pairs or as bytes.

    ``packed`` scale factors are pairs in GM, [K / 64, rows]; otherwise they lie as [rows, K / 32] bytes or [rows, K / 64] pairs.
    """
    tile_m, tile_n, tile_k = tile
    per_scale = 64 if scale_dtype == "uint16" else 32
    n_tiles, k_tiles, tile_scales = n // tile_n, k // tile_k, tile_k // per_scale
    middle, last = (2, 3) if unit_flag else (0, 0)

    def shape(rows):
        return (k // per_scale, rows) if packed else (rows, k // per_scale)

    @T.prim_func
    def gemm_scaled(
        a: T.Tensor((m, k), dtype),
        b: T.Tensor((n, k), dtype),
        a_scales: T.Tensor(shape(m), scale_dtype),
        b_scales: T.Tensor(shape(n), scale_dtype),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(cores) as core:
            a_l1 = T.alloc_l1((tile_m, tile_k), dtype)
            b_l1 = T.alloc_l1((tile_n, tile_k), dtype)
            a_sf = T.alloc_l1((tile_m, tile_scales), scale_dtype)
            b_sf = T.alloc_l1((tile_n, tile_scales), scale_dtype)
            total = T.alloc_l0c((tile_m, tile_n), "float32")
            for tile_index in T.Persistent([(m // tile_m) * n_tiles], cores, core):
                row = tile_index // n_tiles * tile_m
                column = tile_index % n_tiles * tile_n
                for step in T.Pipelined(k_tiles, num_stages=2):
                    T.copy(a[row : row + tile_m, step * tile_k : (step + 1) * tile_k], a_l1)
                    T.copy(b[column : column + tile_n, step * tile_k : (step + 1) * tile_k], b_l1)
                    first = step * tile_scales
                    if packed:
                        T.copy(a_scales[first : first + tile_scales, row : row + tile_m], a_sf, transpose=True)
                        T.copy(b_scales[first : first + tile_scales, column : column + tile_n], b_sf, transpose=True)
                    else:
                        T.copy(a_scales[row : row + tile_m, first : first + tile_scales], a_sf)
                        T.copy(b_scales[column : column + tile_n, first : first + tile_scales], b_sf)
                    flag = T.Select(step == k_tiles - 1, last, middle)
                    T.gemm_blockscaled(a_l1, b_l1, total, a_sf, b_sf, transpose_B=True, clear_accum=(step == 0), unit_flag_ctrl=flag)
                T.copy(total, c[row, column], unit_flag_ctrl=last)

    return gemm_scaled


def gemm_scaled_l0(m, n, k, *, tile=(64, 64, 256), slice_k=128, dtype="float8_e4m3fn", cores=2):
    """The same with tiles and scale factors moved to L0 by hand."""
    tile_m, tile_n, tile_k = tile
    n_tiles, k_tiles, tile_scales, slice_scales = n // tile_n, k // tile_k, tile_k // 64, slice_k // 64

    @T.prim_func
    def gemm_scaled_l0(
        a: T.Tensor((m, k), dtype),
        b: T.Tensor((n, k), dtype),
        a_scales: T.Tensor((k // 64, m), "uint16"),
        b_scales: T.Tensor((k // 64, n), "uint16"),
        c: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(cores) as core:
            a_l1 = T.alloc_l1((tile_m, tile_k), dtype)
            b_l1 = T.alloc_l1((tile_n, tile_k), dtype)
            a_sf = T.alloc_l1((tile_m, tile_scales), "uint16")
            b_sf = T.alloc_l1((tile_n, tile_scales), "uint16")
            a_l0 = T.alloc_l0a((tile_m, slice_k), dtype)
            b_l0 = T.alloc_l0b((tile_n, slice_k), dtype)
            a_l0_sf = T.alloc_l0a_sf(a_l0)
            b_l0_sf = T.alloc_l0b_sf(b_l0)
            total = T.alloc_l0c((tile_m, tile_n), "float32")
            for tile_index in T.Persistent([(m // tile_m) * n_tiles], cores, core):
                row = tile_index // n_tiles * tile_m
                column = tile_index % n_tiles * tile_n
                for step in T.Pipelined(k_tiles, num_stages=2):
                    T.copy(a[row : row + tile_m, step * tile_k : (step + 1) * tile_k], a_l1)
                    T.copy(b[column : column + tile_n, step * tile_k : (step + 1) * tile_k], b_l1)
                    first = step * tile_scales
                    T.copy(a_scales[first : first + tile_scales, row : row + tile_m], a_sf, transpose=True)
                    T.copy(b_scales[first : first + tile_scales, column : column + tile_n], b_sf, transpose=True)
                    for part in T.serial(tile_k // slice_k):
                        T.copy(a_l1[:, part * slice_k : (part + 1) * slice_k], a_l0)
                        T.copy(b_l1[:, part * slice_k : (part + 1) * slice_k], b_l0)
                        T.copy(a_sf[:, part * slice_scales : (part + 1) * slice_scales], a_l0_sf)
                        T.copy(b_sf[:, part * slice_scales : (part + 1) * slice_scales], b_l0_sf)
                        start = step == 0 and part == 0
                        T.gemm_blockscaled(a_l0, b_l0, total, a_l0_sf, b_l0_sf, transpose_B=True, clear_accum=start)
                T.copy(total, c[row, column])

    return gemm_scaled_l0


def attention_backward(queries, keys, d, *, scale, tile=64, lanes=64):
    """Gradients of attention; query heads that share keys and values lie one after the other as queries.

    Every core takes one tile of keys and goes through all queries. Sums for keys and values stay in L0C, those for the queries, to which
    all cores contribute, are added up in GM. ``log_sum`` is the logarithm of the denominators, ``delta`` the sum of ``out * out_grad``
    of each row.
    """
    rows = tile // 2

    @T.prim_func
    def attention_backward(
        q: T.Tensor((queries, d), "bfloat16"),
        k: T.Tensor((keys, d), "bfloat16"),
        v: T.Tensor((keys, d), "bfloat16"),
        out_grad: T.Tensor((queries, d), "bfloat16"),
        log_sum: T.Tensor((queries,), "float32"),
        delta: T.Tensor((queries,), "float32"),
        q_grad: T.Tensor((queries, d), "float32"),
        k_grad: T.Tensor((keys, d), "float32"),
        v_grad: T.Tensor((keys, d), "float32"),
    ):
        with T.Kernel(keys // tile) as core:
            k_l1 = T.alloc_l1((tile, d), "bfloat16")
            v_l1 = T.alloc_l1((tile, d), "bfloat16")
            q_l1 = T.alloc_l1((tile, d), "bfloat16")
            g_l1 = T.alloc_l1((tile, d), "bfloat16")
            p_l1 = T.alloc_l1((tile, tile), "bfloat16")
            s_l1 = T.alloc_l1((tile, tile), "bfloat16")
            q_a = T.alloc_l0a((tile, d), "bfloat16")
            g_a = T.alloc_l0a((tile, d), "bfloat16")
            p_a = T.alloc_l0a((tile, tile), "bfloat16")
            s_a = T.alloc_l0a((tile, tile), "bfloat16")
            s_rows = T.alloc_l0a((tile, tile), "bfloat16")
            k_b = T.alloc_l0b((tile, d), "bfloat16")
            v_b = T.alloc_l0b((tile, d), "bfloat16")
            g_b = T.alloc_l0b((tile, d), "bfloat16")
            q_b = T.alloc_l0b((tile, d), "bfloat16")
            k_columns = T.alloc_l0b((tile, d), "bfloat16")
            scores = T.alloc_l0c((tile, tile), "float32")
            p_grad = T.alloc_l0c((tile, tile), "float32")
            q_part = T.alloc_l0c((tile, d), "float32")
            k_total = T.alloc_l0c((tile, d), "float32")
            v_total = T.alloc_l0c((tile, d), "float32")
            scores_ub = T.alloc_shared((rows, tile), "float32")
            p_grad_ub = T.alloc_shared((rows, tile), "float32")
            p_ub = T.alloc_shared((rows, tile), "bfloat16")
            s_grad_ub = T.alloc_shared((rows, tile), "bfloat16")
            log_sum_ub = T.alloc_shared((rows,), "float32")
            delta_ub = T.alloc_shared((rows,), "float32")
            T.copy(k[core * tile, 0], k_l1)
            T.copy(v[core * tile, 0], v_l1)
            for step in T.serial(queries // tile):
                T.copy(q[step * tile, 0], q_l1)
                T.copy(out_grad[step * tile, 0], g_l1)
                T.copy(q_l1, q_a)
                T.copy(k_l1, k_b)
                T.gemm(q_a, k_b, scores, transpose_B=True, clear_accum=True)
                T.dual_copy(scores, scores_ub)
                T.copy(g_l1, g_a)
                T.copy(v_l1, v_b)
                T.gemm(g_a, v_b, p_grad, transpose_B=True, clear_accum=True)
                T.dual_copy(p_grad, p_grad_ub)
                T.dual_copy(log_sum[step * tile : (step + 1) * tile], log_sum_ub)
                T.dual_copy(delta[step * tile : (step + 1) * tile], delta_ub)
                with T.SimdVF():
                    full = T.simd.pset(32)
                    for r in T.serial(rows):
                        for c in T.serial(tile // lanes):
                            scaled = T.simd.vmuls(T.simd.vld(scores_ub[r, c * lanes]), T.float32(scale), full)
                            p = T.simd.vexpdif(scaled, T.simd.vld(log_sum_ub[r], "BRC_B32"), full)
                            change = T.simd.vsub(T.simd.vld(p_grad_ub[r, c * lanes]), T.simd.vld(delta_ub[r], "BRC_B32"), full)
                            s_grad = T.simd.vmuls(T.simd.vmul(p, change, full), T.float32(scale), full)
                            T.simd.vsts(p_ub[r, c * lanes], T.simd.vcvt(p, "bfloat16", full), full, "PK_B32")
                            T.simd.vsts(s_grad_ub[r, c * lanes], T.simd.vcvt(s_grad, "bfloat16", full), full, "PK_B32")
                T.dual_copy(p_ub, p_l1)
                T.dual_copy(s_grad_ub, s_l1)
                T.copy(p_l1, p_a)
                T.copy(g_l1, g_b)
                T.gemm(p_a, g_b, v_total, transpose_A=True, clear_accum=(step == 0))
                T.copy(s_l1, s_a)
                T.copy(q_l1, q_b)
                T.gemm(s_a, q_b, k_total, transpose_A=True, clear_accum=(step == 0))
                T.copy(s_l1, s_rows)
                T.copy(k_l1, k_columns)
                T.gemm(s_rows, k_columns, q_part, clear_accum=True)
                T.set_atomic("add", "float32")
                T.copy(q_part, q_grad[step * tile, 0])
                T.set_atomic_none()
            T.copy(k_total, k_grad[core * tile, 0])
            T.copy(v_total, v_grad[core * tile, 0])

    return attention_backward


def gemm_of_parts(size, a_rows, b_rows, columns, dtype="bfloat16"):
    """A GEMM of parts, each a start and an extent, of two square tiles in L1."""
    (a_first, m), (b_first, n), (first, k) = a_rows, b_rows, columns
    a_last, b_last, last = a_first + m, b_first + n, first + k

    @T.prim_func
    def gemm_of_parts(a: T.Tensor((size, size), dtype), b: T.Tensor((size, size), dtype), c: T.Tensor((m, n), "float32")):
        with T.Kernel(1):
            a_l1 = T.alloc_l1((size, size), dtype)
            b_l1 = T.alloc_l1((size, size), dtype)
            total = T.alloc_l0c((m, n), "float32")
            T.copy(a, a_l1)
            T.copy(b, b_l1)
            T.gemm(a_l1[a_first:a_last, first:last], b_l1[b_first:b_last, first:last], total, transpose_B=True, clear_accum=True)
            T.copy(total, c)

    return gemm_of_parts
