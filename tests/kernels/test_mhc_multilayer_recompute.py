"""mHC layers computed again from tables of addresses (``T.make_tensor(table[i], ...)``), on the simulator, against float64."""

from __future__ import annotations

import pytest
import torch
from kernel_runs import run as run_guarded
from kernel_runs import same_bits
from tile_kernels_support import CORES as ALL_CORES
from tile_kernels_support import bf16, compiled, f32, poisoned, pto, tile_kernels

from tilelang_pto.errors import SimulationError

tile_kernels()
from tile_kernels.mhc import mhc_post_fwd, mhc_pre_apply_mix_fwd  # noqa: E402
from tile_kernels.mhc.multilayer_recompute_asc import mhc_multilayer_recompute_asc  # noqa: E402

STREAMS, HIDDEN, TILE, CORES = 4, 256, 128, 3
TABLES = ("pre_mix", "layer_output", "post_mix", "comb_mix", "layer_input", "residual")


def addresses(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.tensor([tensor.data_ptr() for tensor in tensors], dtype=torch.int64)


def kernel(layers: int, posts: int):
    """The kernel for that many layers; all but the last ``layers - posts`` have a post step."""
    tables = [torch.zeros(count, dtype=torch.int64) for count in (layers, posts, posts, posts, layers, posts)]
    return compiled(mhc_multilayer_recompute_asc, bf16(1, STREAMS, HIDDEN), *tables, h_blk=TILE, num_vec_cores=CORES)


def case(tokens: int, layers: int, posts: int, hidden: int = HIDDEN) -> dict[str, list[torch.Tensor]]:
    """Tensors behind the tables: random inputs and poisoned outputs."""
    return {
        "pre_mix": [f32(tokens, STREAMS, seed=10 + layer) for layer in range(layers)],
        "layer_output": [bf16(tokens, hidden, seed=20 + layer) for layer in range(posts)],
        "post_mix": [f32(tokens, STREAMS, seed=30 + layer) for layer in range(posts)],
        "comb_mix": [f32(tokens, STREAMS, STREAMS, seed=40 + layer) for layer in range(posts)],
        "layer_input": [poisoned(tokens, hidden, dtype=torch.bfloat16) for _ in range(layers)],
        "residual": [poisoned(tokens, STREAMS, hidden, dtype=torch.bfloat16) for _ in range(posts)],
    }


def rounded_once(found: torch.Tensor, terms: torch.Tensor) -> None:
    """``found`` is the sum of ``terms`` over the first axis, summed in float32 and rounded to bfloat16."""
    allowed = terms.sum(0).abs() * 2.0**-8 + terms.abs().sum(0) * terms.shape[0] * 2.0**-23
    assert ((found.double() - terms.sum(0)).abs() <= allowed).all()


@pytest.mark.parametrize(("layers", "posts"), [(3, 3), (3, 2)])
def test_multilayer_recompute(layers, posts):
    run = kernel(layers, posts)
    for tokens in (0, 1, 7):
        first, data = bf16(tokens, STREAMS, HIDDEN), case(tokens, layers, posts)
        run(first, *(addresses(data[name]) for name in TABLES))
        for layer in range(layers):
            # Every layer against the residual the kernel itself stored, so that nothing adds up.
            before = (first if layer == 0 else data["residual"][layer - 1]).double()
            rounded_once(data["layer_input"][layer], (before * data["pre_mix"][layer].double()[..., None]).permute(1, 0, 2))
            if layer == posts:
                continue
            through = data["layer_output"][layer].double()[:, None] * data["post_mix"][layer].double()[..., None]
            mixed = before[:, :, None] * data["comb_mix"][layer].double()[..., None]  # token, from, to, column
            rounded_once(data["residual"][layer], torch.cat([through[None], mixed.permute(1, 0, 2, 3)]))


def recompute(first, pre_mix, layer_output, post_mix, comb_mix, layer_input, residual):
    """As the package's function, which makes its tables in pinned memory, chooses the options."""
    tables = map(addresses, (pre_mix, layer_output, post_mix, comb_mix, layer_input, residual))
    mhc_multilayer_recompute_asc(first, *tables, h_blk=first.shape[-1], num_vec_cores=ALL_CORES)


def layer_by_layer(first, pre_mix, layer_output, post_mix, comb_mix, layer_input, residual):
    """The same with the kernels of single steps."""
    for layer, mix in enumerate(pre_mix):
        mhc_pre_apply_mix_fwd(first, mix, layer_input[layer])
        if layer < len(residual):
            mixes = post_mix[layer][None, ..., None], comb_mix[layer][None]
            first = mhc_post_fwd(layer_output[layer][None], first[None], *mixes, residual[layer][None])[0]


@pytest.mark.parametrize("hidden", [pytest.param(2560, marks=pytest.mark.slow), 7168])
@pytest.mark.parametrize(("layers", "posts"), [(3, 3), (3, 2)])
def test_the_bits_of_the_single_steps(layers, posts, hidden):
    for tokens in (1, 131):
        first, data = bf16(tokens, STREAMS, hidden), case(tokens, layers, posts, hidden)
        written = run_guarded(recompute, first, **data, written=("layer_input", "residual")).written
        with pto():
            layer_by_layer(first, **data)
        for name, tensors in written.items():
            assert all(map(same_bits, tensors, data[name]))


def test_a_residual_may_be_the_tensor_that_was_passed():
    """The table names a kernel argument: loads and stores through both names stay in order."""
    run, tokens = kernel(3, 3), 2
    first, data = bf16(tokens, STREAMS, HIDDEN), case(tokens, 3, 3)
    run(first, *(addresses(data[name]) for name in TABLES))
    again, rest = first.clone(), case(tokens, 3, 3)
    rest["residual"] = [again, *rest["residual"][1:]]
    run(again, *(addresses(rest[name]) for name in TABLES))
    assert torch.equal(again, data["residual"][0])
    assert torch.equal(rest["layer_input"][1], data["layer_input"][1])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (0, "through a null pointer"),
        (0x7F0, "through a null pointer"),
        (0xDEAD0000, "cannot read 16 bytes at address 0xdead0000"),
        (-1, "integer that is no address"),
        (1 << 50, "integer that is no address"),
    ],
)
def test_a_wrong_address_in_a_table_is_reported(entry, message):
    data = case(1, 3, 3)
    tables = [addresses(data[name]) for name in TABLES]
    tables[TABLES.index("post_mix")][1] = entry
    with pytest.raises(SimulationError, match=message) as caught:
        kernel(3, 3)(bf16(1, STREAMS, HIDDEN), *tables)
    assert any("mte_gm_ub" in place for place in caught.value.where)


def test_a_misaligned_address_in_a_table_is_reported():
    data = case(1, 3, 3)
    tables = [addresses(data[name]) for name in TABLES]
    tables[TABLES.index("post_mix")][1] += 2
    with pytest.raises(SimulationError, match="is not a multiple of 4 bytes"):
        kernel(3, 3)(bf16(1, STREAMS, HIDDEN), *tables)
