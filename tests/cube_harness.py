"""Running hand-written cube and mixed kernels on the engine, and the layouts of their memories as NumPy index formulas."""

from __future__ import annotations

import textwrap

import ml_dtypes
import numpy as np
from engine_harness import HEADS, NUMPY

from tilelang_pto import _native
from tilelang_pto.sim import record_module

#: Numbers by element type, also those that NumPy arrays hold as bytes.
C0 = {"f32": 8, "i32": 8, "f16": 16, "bf16": 16, "i8": 32, "f8e4m3": 32, "f8e5m2": 32, "hif8": 32}

AT = """\
def at(space, dtype, address=0):
    return pto.castptr(pto.const(address, dtype=pto.i64), pto.ptr(dtype, space))

"""

Arrays = dict[str, tuple[str, np.ndarray]]


def up(number: int, step: int) -> int:
    """The next multiple of ``step``."""
    return -(-number // step) * step


def module(parameters: dict[str, str], body: str, kind: str | None = "cube", surface: str = "2026-09") -> str:
    """Text of a kernel ``k``; parameters are GM pointers by name and element type, or scalars (``"si32"`` after a colon)."""
    signature = ", ".join(
        f"{name}: pto.{dtype[1:]}" if dtype.startswith(":") else f'{name}: pto.ptr(pto.{dtype}, "gm")' for name, dtype in parameters.items()
    )
    word = f'kernel_kind="{kind}", ' if kind else ""
    head = f'{HEADS[surface]}\n\n{AT}@pto.jit({word}target="a5", mode="explicit", ast_rewrite=False)\ndef k({signature}):\n'
    return head + textwrap.indent(textwrap.dedent(body), "    ") + "\n"


def run(body: str, arrays: Arrays, scalars: dict[str, tuple[str, int]] | None = None, kind: str | None = "cube", **options):
    """Run ``body`` with the arrays in place (their element types as in :data:`engine_harness.NUMPY`) and return them by name."""
    surface = options.pop("surface", "2026-09")
    data = {name: np.array(array, NUMPY[dtype], order="C") for name, (dtype, array) in arrays.items()}
    parameters = {name: dtype for name, (dtype, _) in arrays.items()}
    parameters.update({name: f":{dtype}" for name, (dtype, _) in (scalars or {}).items()})
    program = record_module(module(parameters, body, kind, surface), "k.py", surface)
    plain = [array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}") for array in data.values()]
    _native.sim_launch(program.serialize(), "k", [*plain, *(value for _, value in (scalars or {}).values())], **options)
    return data


def flags(*pairs: str) -> str:
    """Lines that set and wait for flags: ``flags("MTE2-MTE1")``."""
    out = ""
    for pair in pairs:
        source, destination = pair.split("-")
        out += f'pto.set_flag("{source}", "{destination}")\npto.wait_flag("{source}", "{destination}")\n'
    return out


def gemm(
    m: int,
    n: int,
    k: int,
    dtype: str = "bf16",
    *,
    right: str | None = None,
    result: str = "f32",
    mad: str = "pto.mad(la, lb, lc, {m}, {n}, {k}, disable_gemv=True)",
    before: str = "",
    store: str = 'pto.mte_l0c_gm(lc, c, {m}, {n}, {m16}, {n}, 0, 0, layout="nz2nd")',
) -> str:
    """A product of ``a`` (M x K) and ``b`` (N x K) in GM into ``c`` (M x N), through all memories of a cube core.

    ``before`` stands in front of the product, ``mad`` and ``store`` may be other calls; they see la, lb, lc, l1a, l1b.
    """
    right = right or dtype
    size, c0 = np.dtype(NUMPY[dtype]).itemsize, C0[dtype]
    values = {"m": m, "n": n, "k": k, "m16": up(m, 16), "n16": up(n, 16), "k0": up(k, c0)}
    text = """\
l1a, l1b = at("mat", pto.{dtype}), at("mat", pto.{right}, 262144)
la, lb, lc = at("left", pto.{dtype}), at("right", pto.{right}), at("acc", pto.{result})
pto.mte_gm_l1_frac(a, l1a, "nd2nz", shape=({m}, {k}), src_layout=({row},), dst_group=(1, 1, {m16}, 0), ctrl=(0, False))
pto.mte_gm_l1_frac(b, l1b, "nd2nz", shape=({n}, {k}), src_layout=({row},), dst_group=(1, 1, {n16}, 0), ctrl=(0, False))
{to_load}pto.mte_l1_l0a(l1a, la, {m}, {k})
pto.mte_l1_l0b(l1b, lb, {k}, {n})
{before}{to_mad}{mad}
{to_store}{store}
""".format(
        dtype=dtype, right=right, result=result, row=k * size, to_load=flags("MTE2-MTE1"), to_mad=flags("MTE1-M"), to_store=flags("M-FIX"),
        before=before, mad=mad.format(**values), store=store.format(**values), **values,
    )  # fmt: skip
    return text


# -- layouts (row r and column c of a matrix with R rows and C columns, in elements) ------------------------------------


def nz(r, c, rows: int, c0: int):
    """C0 columns together, row after row."""
    return c // c0 * up(rows, 16) * c0 + r * c0 + c % c0


def zn(r, c, columns: int, c0: int):
    """B in L0B: for every C0 rows the columns, C0 numbers each."""
    return (r // c0 * (up(columns, 16) // 16) + c // 16) * 16 * c0 + c % 16 * c0 + r % c0


def scatter(matrix: np.ndarray, index, size: int, fill=0) -> np.ndarray:
    """A flat array with ``matrix[r, c]`` at ``index(r, c)``."""
    out = np.full(size, fill, matrix.dtype)
    r, c = np.indices(matrix.shape)
    out[index(r, c)] = matrix
    return out


# -- numbers -----------------------------------------------------------------------------------------------------------


def numbers(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers of moderate size that the type holds exactly."""
    rng = np.random.default_rng(seed)
    if dtype in ("i8", "ui8", "i32"):
        return rng.integers(-100, 100, shape).astype(NUMPY[dtype])
    return rng.uniform(-2, 2, shape).astype(np.float32).astype(NUMPY[dtype])


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b.T`` in float64."""
    return a.astype(np.float64) @ b.astype(np.float64).T


def close(found: np.ndarray, expected: np.ndarray, terms: int) -> None:
    """Equal up to the rounding of ``terms`` sums in f32, relative to the size of the terms."""
    bound = terms * 2.0**-24 * (np.abs(expected).max() + terms)
    assert np.abs(found.astype(np.float64) - expected).max() <= bound


BF16 = ml_dtypes.bfloat16
