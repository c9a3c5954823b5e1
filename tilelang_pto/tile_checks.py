"""Tile operations that TileLang lowers to something else than they say, refused while they can still be told from others."""

from __future__ import annotations

from typing import Any

from tvm import arith, tirx

from tilelang_pto.errors import UnsupportedError

__all__ = ["refuse_parts_of_l1_tiles"]

_GEMMS = ("tl.tileop.gemm", "tl.tileop.gemm_blockscaled")


def refuse_parts_of_l1_tiles(name: str, func: tirx.PrimFunc) -> None:
    """A GEMM reads an operand in L1 from its first column on, and takes the rows of the GEMM for those of the tile.

    Raises:
        UnsupportedError: an operand is some rows of a tile in L1, or columns that do not begin with its first.
    """
    analyzer = arith.Analyzer()

    def check(operand: Any, which: str, node: Any) -> None:
        load, _, *extents = operand.args
        tile = load.buffer
        if tile.scope() != "shared.l1":
            return
        (first_row, first_column), rows = load.indices[-2:], extents[-2]
        whole = (first_row, 0), (first_column, 0), (rows, tile.shape[-2])
        if all(analyzer.can_prove_equal(value, wanted) for value, wanted in whole):
            return
        raise UnsupportedError(
            f"{which} of a GEMM is a part of the L1 tile {tile.name} ({rows} rows from row {first_row}, columns from {first_column})",
            where=(f"kernel {name}", f"TIR: {str(node)[:160]}"),
            advice="copy the part from GM to an L1 tile of its own, or from the L1 tile to L0A and L0B and multiply there",
        )

    def visit(node: Any) -> None:
        if isinstance(node, tirx.Call) and getattr(node.op, "name", "") in _GEMMS:
            check(node.args[0], "A", node)
            check(node.args[1], "B", node)

    tirx.stmt_functor.post_order_visit(func.body, visit)
