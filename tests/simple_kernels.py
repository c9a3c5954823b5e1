"""Small TileLang kernels for tests that are not about code generation.

No ``from __future__ import annotations`` here: TileLang evaluates the annotations of a kernel, closures included.
"""

import tilelang
from tilelang.ascend import language as T


def vector_add(width: int = 64, dtype: str = "float32", cores: int = 4):
    """``c = a + b`` over rows of ``width`` elements, any number of rows, SIMT."""
    rows = T.dynamic("rows")

    @T.prim_func
    def add(a: T.Tensor((rows, width), dtype), b: T.Tensor((rows, width), dtype), c: T.Tensor((rows, width), dtype)):
        with T.Kernel(cores) as core, T.SimtVF(threads=256):
            for i, j in T.Parallel(T.ceildiv(rows - core, cores), width):
                c[core + i * cores, j] = a[core + i * cores, j] + b[core + i * cores, j]

    return add


def strided_scale():
    """``c = b * factor`` with a row stride of ``b`` known at run time only, and a scalar argument."""
    rows, stride = T.dynamic("rows"), T.dynamic("stride")

    @T.prim_func
    def scale(b: T.StridedTensor((rows, 64), (stride, 1), "float32"), factor: T.float32, c: T.Tensor((rows, 64), "float32")):
        with T.Kernel(4) as core, T.SimtVF(threads=256):
            for i, j in T.Parallel(T.ceildiv(rows - core, 4), 64):
                c[core + i * 4, j] = b[core + i * 4, j] * factor

    return scale


def related_extents():
    """Extents that follow from another one, and scalars of two more kinds."""
    n = T.dynamic("n")

    @T.prim_func
    def related(
        a: T.Tensor((n,), "float32"), b: T.Tensor((n * 2 + 1, n), "float32"), c: T.Tensor((n, n), "float32"), step: T.int32, add: T.bool
    ):
        with T.Kernel(4), T.SimtVF(threads=64):
            for i in T.Parallel(n):
                if add:
                    c[i, 0] = a[i] + b[i, 0] + T.float32(step)

    return related


def add_numbers():
    """The sum of scalars of four widths in every element."""

    @T.prim_func
    def add_numbers(x: T.Tensor((64,), "int64"), a: T.int32, b: T.uint32, c: T.int8, d: T.int64):
        with T.Kernel(1), T.SimtVF(threads=64):
            for i in T.Parallel(64):
                x[i] = T.cast(a, "int64") + T.cast(b, "int64") + T.cast(c, "int64") + d

    return add_numbers


def fill():
    """Ones in 64 elements for each block; the caller says how many blocks."""
    n = T.dynamic("n")

    @T.prim_func
    def fill(x: T.Tensor((n,), "float32"), blocks: T.int32):
        with T.Kernel(blocks) as core, T.SimtVF(threads=64):
            for i in T.Parallel(64):
                if core * 64 + i < n:
                    x[core * 64 + i] = 1.0

    return fill


def unused_tensors():
    """``c = a``, with three more tensors that nothing reads."""
    n, m = T.dynamic("n, m")

    @T.prim_func
    def unused_tensors(
        first: T.Tensor((n,), "int32"),
        a: T.Tensor((n,), "float32"),
        between: T.Tensor((m,), "float32"),
        c: T.Tensor((n,), "float32"),
        last: T.Tensor((7,), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(n, 64)) as core, T.SimtVF(threads=64):
            for i in T.Parallel(64):
                if core * 64 + i < n:
                    c[core * 64 + i] = a[core * 64 + i]

    return unused_tensors


def copy_twice():
    """Two device functions with a buffer in global memory between them."""

    @T.prim_func
    def two(a: T.Tensor((4, 64), "float32"), c: T.Tensor((4, 64), "float32")):
        w = T.alloc_global((4, 64), "float32")
        with T.Kernel(4) as core:
            u = T.alloc_shared((1, 64), "float32")
            T.copy(a[core, 0], u)
            T.copy(u, w[core, 0])
        with T.Kernel(4) as core:
            v = T.alloc_shared((1, 64), "float32")
            T.copy(w[core, 0], v)
            T.copy(v, c[core, 0])

    return two


@tilelang.jit(target="pto", out_idx=[2])
def make_add(width: int = 64, dtype: str = "float32", cores: int = 4):
    """The vector add as a jit function that allocates its result."""
    return vector_add(width, dtype, cores)


# For the command line.
add_64 = vector_add()
