"""What functions of TileLang's C++ library for AscendC consist of: their bodies are templates that are not in the emitted text.

The figures are those of TileLang 0.1.15 (``tl_templates/ascend``).
"""

from __future__ import annotations

import re

from tilelang_pto.compare.counts.kinds import Counts, UncountableError

__all__ = ["VECTOR_COSTS", "LibraryCall", "all_reduce_cost", "gemm_cost", "library_cost", "scatter_cost"]

_WARP = 32
_REGISTER_BYTES = 256
_ALL_REDUCE = re.compile(r"tl::AscendAllReduce<tl::(\w+)Op, (\d+), (\d+), -?\d+>::run$")
_SCATTER = re.compile(r"ascend_nd2nz_scatter(?:_callee)?<(\d+), (\d+), (\w+), (\w+)>$")
_GEMM = re.compile(r"ascend_(?:blockscaled_)?gemm_l1<\d+, (\d+), \d+, (\d+), ")

#: Vector instructions of SIMD functions that are more than one, register moves not counted.
VECTOR_COSTS = {
    "simd_inst::vdiv_0ulp_ftz_true": 21,
    "simd_inst::vexp_1ulp_ftz_false": 6,
    "simd_inst::vln_1ulp_ftz_false": 8,
    "simd_inst::vsqrt_0ulp_ftz_false": 22,
}


class LibraryCall(UncountableError):
    """The text calls a library function whose operations are not in it."""


def library_cost(function: str) -> Counts:
    """Operations of a call; ``code`` counts what stands in the body of a loop once.

    Args:
        function: the function with its template arguments.

    Raises:
        LibraryCall: nothing is known of the function.
    """
    match = _ALL_REDUCE.match(function)
    if match is not None:
        return all_reduce_cost(match.group(1), int(match.group(2)), int(match.group(3)))
    match = _GEMM.match(function)
    if match is not None:
        return gemm_cost(int(match.group(1)), int(match.group(2)), scaled="blockscaled" in function)
    match = _SCATTER.match(function)
    if match is not None:
        return scatter_cost(int(match.group(1)), int(match.group(2)), match.group(3), match.group(4))
    raise LibraryCall(f"what {function} computes is not in the text")


def gemm_cost(k: int, slice_k: int, *, scaled: bool) -> Counts:
    """Cost of ``ascend_gemm_l1``: copies to L0, products and buffer tokens of every slice of K.

    Its scalar work is not counted: the loop over the slices has a constant number of rounds, and the compiler may unroll it.
    """
    slices, loads = k // slice_k, 4 if scaled else 2
    return Counts(matrix=slices, matrix_loads=loads * slices, syncs=4 * slices, code=1 + loads + 4)


def scatter_cost(rows: int, columns: int, source: str, target: str) -> Counts:
    """Cost of ``ascend_nd2nz_scatter``: a loop over the registers of a row (passes), in it one over the rows.

    Args:
        rows: of the tile.
        columns: of the tile.
        source: type of the elements, in AscendC's spelling.
        target: the same behind the change of layout.

    Raises:
        LibraryCall: the function is not there for these types.
    """
    sizes = {"float": 4, "int32_t": 4, "uint32_t": 4, "half": 2, "bfloat16_t": 2, "int16_t": 2, "uint16_t": 2}
    if source == target and source in sizes:
        passes = -(-columns * sizes[source] // _REGISTER_BYTES)
        # `count > 0` and `++pass`, `dst + pass * (ROWS + 1) * VL`, `src + pass * VL`, the mask of the columns left;
        # the loop over the rows, `src + r * COLS`, a load and a store.
        return _nested(passes, rows, Counts(), _straight(scalar=2 + 3 + 2, predicates=1), _straight(scalar=2 + 2, vector_memory=2))
    if (source, target) == ("float", "bfloat16_t") and columns % 64 == 0:
        # Two masks; as above, the loop over the passes is one of constant bounds; a conversion and a pack.
        each = _straight(scalar=2 + 2, vector=2, vector_memory=2)
        return _nested(columns // 64, rows, _straight(predicates=2), _straight(scalar=2 + 3 + 2), each)
    if (source, target) == ("bfloat16_t", "float") and columns % 128 == 0:
        # The same with two places to write to, `src + r * COLS + pass * 128`, two conversions and an interleaving.
        each = _straight(scalar=2 + 4, vector=3, vector_memory=3)
        return _nested(columns // 128, rows, _straight(predicates=2), _straight(scalar=2 + 3 + 1), each)
    raise LibraryCall(f"what a change of layout of {columns} columns from {source} to {target} costs is not known")


def _straight(**operations: int) -> Counts:
    """Operations that stand in the text one after the other."""
    return Counts(**operations, code=sum(operations.values()))


def _nested(passes: int, rows: int, once: Counts, each_pass: Counts, each_row: Counts) -> Counts:
    """Operations in front of two nested loops, in the outer and in the inner one."""
    total = Counts()
    for weight, part in ((1, once), (passes, each_pass), (passes * rows, each_row)):
        total.add_all(part, weight, 1)
    return total


def all_reduce_cost(kind: str, threads: int, scale: int) -> Counts:
    """Cost per thread of ``AscendAllReduce`` over ``threads`` threads, combining those ``scale`` apart.

    Both are powers of two and the values are of a type the warp shuffles.
    """
    if threads & (threads - 1) or scale & (scale - 1) or scale > _WARP:
        raise LibraryCall(f"what an all-reduce of {threads} threads with scale {scale} costs is not known")
    combine = 1 if kind == "Sum" else 2  # a comparison and a choice
    if threads <= scale:
        return Counts()
    if threads <= _WARP:
        cost = _warp_reduce(threads, scale, combine)
        return _straight(scalar=cost)
    warps = threads // _WARP
    cost = _warp_reduce(_WARP, scale, combine)  # within the warp
    cost += 2 + 1 + 2  # numbers of the warp and of the lane, `lid < scale`, `wid * scale + lid`
    cost += 1  # `tx < 32`
    if scale == 1:
        cost += 2 + 1  # `lid < num_warps ? ... : ...` and one hardware reduction
    elif scale * warps <= _WARP:
        cost += 2 + _warp_reduce(scale * warps, scale, combine)
    else:
        cost += 1 + warps * (2 + 2 + combine + 2)  # `lid % scale`; per round the loop, the index, the operation, the choice
    cost += 1 + (scale > 1)  # `tx < scale`, `tx % scale`
    return _straight(scalar=cost, accesses=4, syncs=4)  # a store and a load around each of two barriers


def _warp_reduce(threads: int, scale: int, combine: int) -> int:
    extent = threads // scale
    if extent <= 1:
        return 0
    if extent >= 16 and scale == 1:  # hardware reductions, one for each group of the warp
        groups = _WARP // threads
        return 1 if groups == 1 else 2 + groups * (2 + 1 + 1)
    return (extent.bit_length() - 1) * (1 + combine)
