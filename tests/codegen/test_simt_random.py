"""Random numbers: words equal those of the published algorithm, floats those of TileLang's AscendC template."""

from __future__ import annotations

import ml_dtypes  # noqa: F401  (registers the dtypes with NumPy)
import numpy as np
import pytest
from simt_kernels import SURFACES, emitted, ulps
from tir_builder import op, pointer, sequence, simt_block, vector_kernel, view
from tvm import tirx

from tilelang_pto.codegen import emit_module
from tilelang_pto.codegen.surface import surface_of
from tilelang_pto.errors import UnsupportedError
from tilelang_pto.sim import run

THREADS = 64
SEED = tirx.IntImm("int64", 7)


# -- the published algorithm ---------------------------------------------------------------------------------------------


def philox(counter: tuple[int, ...], key: tuple[int, int]) -> list[int]:
    """Ten rounds of Philox 4x32 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011)."""
    word, mask = list(counter), 0xFFFFFFFF
    for turn in range(10):
        bump = [(key[0] + turn * 0x9E3779B9) & mask, (key[1] + turn * 0xBB67AE85) & mask]
        first, second = 0xD2511F53 * word[0], 0xCD9E8D57 * word[2]
        word = [(second >> 32) ^ word[1] ^ bump[0], second & mask, (first >> 32) ^ word[3] ^ bump[1], first & mask]
    return word


VECTORS = [  # counter, key, words: the test vectors published with Random123
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), VECTORS)
def test_the_model_has_the_published_vectors(counter, key, words):
    assert tuple(philox(counter, key)) == words


def stream(seed: int, sequence: int, offset: int, count: int) -> np.ndarray:
    """Words of one thread: key = seed, low half of the counter = offset / 4 rounded up, high half = sequence."""
    low64 = 0xFFFFFFFFFFFFFFFF
    seed, sequence, skipped = seed & low64, sequence & low64, ((offset + 3) // 4) & low64
    start = skipped | sequence << 64
    words = []
    for block in range(-(-count // 4)):
        at = (start + block) & ((1 << 128) - 1)
        words += philox(tuple(at >> 32 * k & 0xFFFFFFFF for k in range(4)), (seed & 0xFFFFFFFF, seed >> 32))
    return np.array(words[:count], np.uint32)


def uniforms(words: np.ndarray) -> np.ndarray:
    return words.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)


def normals(words: np.ndarray) -> np.ndarray:
    """Box-Muller on pairs of uniform numbers, in float64: sine first, as in the template."""
    first, second = uniforms(words)[0::2].astype(np.float64), uniforms(words)[1::2]
    radius = np.sqrt(-2 * np.log(np.maximum(first, np.float64(np.float32(1e-7)))))
    angle = (second * np.float32(6.2831855)).astype(np.float64)
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], 1).reshape(-1)


# -- kernels -------------------------------------------------------------------------------------------------------------


def i32(value):
    return tirx.IntImm("int32", value)


def i64(value):
    return tirx.IntImm("int64", value)


def word():
    return op("tl.rng_rand", "uint32")


def real(which="uniform"):
    return op("tl.rng_rand_float", "float32", which)


def init(seed, sequence, offset):
    return tirx.Evaluate(op("tl.rng_init", "void", seed, sequence, offset, "curandStatePhilox4_32_10_t"))


def draws(surface: str, dtype: str, count: int, body, seed=SEED, offset=0, sequence=lambda tx: tx) -> np.ndarray:
    """``count`` numbers of each thread; ``body(tx, put)`` draws them, ``put(k, value)`` stores number ``k``."""
    out = pointer("out", dtype)

    def threads(tx):
        def put(k, value):
            return tirx.BufferStore(view(out, dtype, THREADS * count), value, [tx * count + k])

        return sequence_of(init(seed, sequence(tx), offset), body(tx, put))

    text = emitted(vector_kernel("map", [out], lambda _: simt_block(THREADS, threads)), surface)
    result = np.zeros(THREADS * count, np.dtype(dtype))
    run(text, "map", result)
    return result.reshape(THREADS, count)


def sequence_of(*statements):
    return sequence(*statements)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    ("seed", "offset"),
    [(0, 0), (1, 0), (-1, 0), (0x299F31D0A4093822, 5), (2**63 - 1, 4), (-(2**63), 2**40 + 3), (42, 2**34 - 8), (42, 2**61)],
)
def test_words(surface, seed, offset):
    """Counters that carry into their second word included (offset 2**34 - 8 starts two blocks before one)."""
    got = draws(surface, "uint32", 11, lambda tx, put: sequence(*(put(k, word()) for k in range(11))), i64(seed), i64(offset))
    expected = np.stack([stream(seed, thread, offset, 11) for thread in range(THREADS)])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("surface", SURFACES)
def test_published_vector_on_the_simulator(surface):
    got = draws(surface, "uint32", 4, lambda tx, put: sequence(*(put(k, word()) for k in range(4))), i32(0), i32(0), lambda tx: i32(0))
    assert [hex(value) for value in got[0]] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    assert (got == got[0]).all()


@pytest.mark.parametrize("surface", SURFACES)
def test_narrow_and_negative_arguments_are_extended(surface):
    got = draws(surface, "uint32", 4, lambda tx, put: sequence(*(put(k, word()) for k in range(4))), i32(-5), i32(9), lambda tx: tx - 40)
    np.testing.assert_array_equal(got, np.stack([stream(-5, thread - 40, 9, 4) for thread in range(THREADS)]))


@pytest.mark.parametrize("surface", SURFACES)
def test_uniform_numbers_are_bit_exact(surface):
    got = draws(surface, "float32", 32, lambda tx, put: sequence(*(put(k, real()) for k in range(32))))
    expected = np.stack([uniforms(stream(7, thread, 0, 32)) for thread in range(THREADS)])
    np.testing.assert_array_equal(got.view(np.uint32), expected.view(np.uint32))
    assert got.min() > 0 and got.max() <= 1 and abs(got.mean() - 0.5) < 0.02


@pytest.mark.parametrize("surface", SURFACES)
def test_draws_in_loops_and_branches(surface):
    """A loop of threads-dependent length and a branch: each thread goes on where it stopped."""

    def body(tx, put):
        i = tirx.Var("i", "int32")
        odd = tirx.FloorMod(tx, i32(2)).equal(i32(1))
        skip = tirx.For(i, i32(0), tirx.FloorMod(tx, i32(7)), tirx.ForKind.SERIAL, put(i32(0), word()))
        return sequence(skip, tirx.IfThenElse(odd, put(i32(1), word()), None), put(i32(2), word()), put(i32(3), word()))

    got = draws(surface, "uint32", 4, body)
    for thread in range(THREADS):
        words = stream(7, thread, 0, 16)
        position = thread % 7 + thread % 2
        assert got[thread, 2:].tolist() == words[position : position + 2].tolist()
        if thread % 2:
            assert got[thread, 1] == words[position - 1]


@pytest.mark.parametrize("surface", SURFACES)
def test_normal_numbers(surface):
    """An odd number of draws leaves one behind for the next; words drawn between do not touch it."""

    def body(tx, put):
        return sequence(*(put(k, real("normal")) for k in range(7)), put(7, real()), put(8, real("normal")), put(9, real("normal")))

    got = draws(surface, "float32", 10, body)
    for thread in range(THREADS):
        words = stream(7, thread, 0, 11)
        expected = np.concatenate([normals(words[:8])[:7], uniforms(words[8:9]), normals(words[:8])[7:], normals(words[9:11])[:1]])
        assert ulps(got[thread], expected).max() <= 4


@pytest.mark.parametrize("surface", SURFACES)
def test_normal_numbers_have_the_right_moments(surface):
    got = draws(surface, "float32", 64, lambda tx, put: sequence(*(put(k, real("normal")) for k in range(64)))).astype(np.float64)
    assert abs(got.mean()) < 0.05 and abs(got.std() - 1) < 0.05 and abs((got**3).mean()) < 0.2


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_broadcast_draws_for_every_lane(surface, lanes, dtype):
    """TileLang's vectorizer leaves a draw under a broadcast; each lane has its own number, one broadcast after the other."""
    out = pointer("out", dtype)

    def threads(tx):
        def number(which):
            value = real(which)
            return tirx.Broadcast(value if dtype == "float32" else tirx.Cast(dtype, value), lanes)

        def store(place, value):
            return tirx.BufferStore(
                view(out, dtype, THREADS * lanes * 3), value, [tirx.Ramp(tx * lanes * 3 + place * lanes, i32(1), lanes)]
            )

        first = tirx.Evaluate(real("normal"))
        return sequence(
            init(i32(7), tx, i32(0)),
            first,
            store(0, number("uniform") + number("uniform")),
            store(1, number("normal")),
            store(2, number("uniform")),
        )

    text = emitted(vector_kernel("map", [out], lambda _: simt_block(THREADS, threads)), surface)
    got = np.zeros(THREADS * lanes * 3, np.dtype(dtype))
    run(text, "map", got)
    kind = np.dtype(dtype)
    for thread, row in enumerate(got.reshape(THREADS, 3, lanes)):
        words = stream(7, thread, 0, 2 + 4 * lanes)[2:]
        a, b, c, d = (words[k * lanes : (k + 1) * lanes] for k in range(4))
        np.testing.assert_array_equal(row[0], (uniforms(a).astype(kind) + uniforms(b).astype(kind)).astype(kind))
        assert ulps(row[1], normals(c)).max() <= (4 if dtype == "float32" else 0.52)
        np.testing.assert_array_equal(row[2], uniforms(d).astype(kind))


@pytest.mark.parametrize("surface", SURFACES)
def test_generator_is_printed_once(surface):
    out = pointer("out", "uint32")

    def threads(tx):
        return sequence(init(i32(1), tx, i32(0)), *(tirx.BufferStore(view(out, "uint32", 8), word(), [i32(k)]) for k in range(8)))

    text = emitted(vector_kernel("map", [out], lambda _: sequence(simt_block(32, threads), simt_block(32, threads))), surface)
    assert text.count("def philox_block(") == text.count("def philox_word(") == 1 and text.count("pto.mulhi(") == 2
    assert "philox_normal" not in text and text.count("philox_word(philox_state") == 16


def refused(body, surface="2026-09"):
    out = pointer("out", "float32")
    mod = vector_kernel("map", [out], lambda _: simt_block(32, lambda tx: body(tx, view(out, "float32", 32))))
    with pytest.raises(UnsupportedError) as caught:
        emit_module(mod, surface=surface_of(surface))
    return str(caught.value)


def test_refusals():
    assert "T.rng_init first" in refused(lambda tx, out: tirx.BufferStore(out, real(), [tx]))
    wide = op("tl.rng_rand_float", "float64", "uniform")
    assert "float64" in refused(lambda tx, out: sequence(init(i32(1), tx, i32(0)), tirx.BufferStore(out, tirx.Cast("float32", wide), [tx])))
    assert "poisson" in refused(lambda tx, out: sequence(init(i32(1), tx, i32(0)), tirx.BufferStore(out, real("poisson"), [tx])))
