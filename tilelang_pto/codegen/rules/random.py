"""Random numbers of SIMT threads: Philox 4x32-10 as TileLang's AscendC template has it, so streams agree word for word.

Every thread of a vector function has one generator in private memory: the key (the seed), the counter (offset / 4 in its low half, the
sequence number in its high half), the words not drawn yet, and the second of a pair of normal numbers. Seed, sequence and offset are
64-bit numbers. The generator itself is printed once, as plain Python functions that PTODSL traces where they are called.
"""

from __future__ import annotations

import ast
from typing import Any

from tvm import tirx

from ..emit import call, constant, name
from ..registry import op
from ..surface import Surface
from ..types import DTYPES, I32, I64, Type
from ..values import Value
from ..visitor import Visitor, operation_name
from .memory import private_array

F32, U32 = Type("scalar", DTYPES["float32"]), Type("scalar", DTYPES["uint32"])
_WORDS = 12
"""Words of a state: key, counter, block, words left in the block, whether a normal number is left."""
_STATE, _SPARE = "philox state", "philox spare"

_HELPERS = {
    "philox_block": '''
def philox_block(state):
    """The next four words of Philox 4x32-10 into state[6:10], from the key state[0:2] and the counter state[2:6], which counts on."""
    key_0, key_1 = LOAD(state, 0), LOAD(state, 1)
    word_0, word_1, word_2, word_3 = LOAD(state, 2), LOAD(state, 3), LOAD(state, 4), LOAD(state, 5)
    for _ in range(10):
        high_0 = pto.mulhi(word_0, pto.const(-0x2DAEE0AD, dtype=pto.i32), signedness="unsigned")
        high_2 = pto.mulhi(word_2, pto.const(-0x326172A9, dtype=pto.i32), signedness="unsigned")
        low_0, low_2 = word_0 * -0x2DAEE0AD, word_2 * -0x326172A9
        word_0, word_1, word_2, word_3 = high_2 ^ word_1 ^ key_0, low_2, high_0 ^ word_3 ^ key_1, low_0
        key_0, key_1 = key_0 + -0x61C88647, key_1 + -0x4498517B
    STORE(word_0, state, 6)
    STORE(word_1, state, 7)
    STORE(word_2, state, 8)
    STORE(word_3, state, 9)
    carry = pto.const(1, dtype=pto.i32)
    for digit in range(2, 6):
        count = LOAD(state, digit) + carry
        STORE(count, state, digit)
        carry = CAST(count == 0, pto.i32) & carry
''',
    "philox_word": '''
def philox_word(state):
    """The next 32 random bits; state[10] counts those left of the block, which move up to state[6]."""
    with pto.if_(LOAD(state, 10) == 0) as br:
        with br.then_:
            philox_block(state)
            STORE(pto.const(4, dtype=pto.i32), state, 10)
    word = LOAD(state, 6)
    for place in range(6, 9):
        STORE(LOAD(state, place + 1), state, place)
    STORE(LOAD(state, 10) - 1, state, 10)
    return word
''',
    "philox_uniform": '''
def philox_uniform(state):
    """A uniform number: the word as a fraction of 2**32, plus half of the smallest step."""
    return UNSIGNED_TO_F32 * 2.3283064365386963e-10 + 1.1641532182693481e-10
''',
    "philox_normal_pair": '''
def philox_normal_pair(state):
    """Two standard normal numbers (Box-Muller)."""
    first, second = philox_uniform(state), philox_uniform(state)
    radius = pto.sqrt(pto.log(FMAX(first, pto.const(1e-07, dtype=pto.f32))) * -2.0)
    angle = second * 6.2831854820251465
    return (pto.sin(angle) * radius, pto.cos(angle) * radius)
''',
    "philox_normal": '''
def philox_normal(state, spare):
    """A standard normal number; state[11] says whether the second one of a pair is left."""
    with pto.if_(LOAD(state, 11) == 0) as br:
        with br.then_:
            pair = philox_normal_pair(state)
            STORE(pair[1], spare, 0)
            br.assign(value=pair[0])
        with br.else_:
            br.assign(value=LOAD(spare, 0))
    STORE(LOAD(state, 11) ^ 1, state, 11)
    return br.value
''',
}
_NEEDS = {
    "philox_word": ("philox_block",),
    "philox_uniform": ("philox_word",),
    "philox_normal_pair": ("philox_uniform",),
    "philox_normal": ("philox_normal_pair",),
}


def _spelled(text: str, surface: Surface) -> str:
    """A helper in the words of a surface."""
    unsigned = "pto.cast(pto.cast(philox_word(state), pto.ui32), pto.f32)"
    if not surface.has_cast_attributes:
        unsigned = 'pto.convert(philox_word(state), pto.f32, rounding="r", saturation="nosat", signedness="unsigned")'
    words = {"LOAD": "load", "STORE": "store", "CAST": "cast", "FMAX": "fmax"}
    text = text.replace("UNSIGNED_TO_F32", unsigned)
    for word, generic in words.items():
        text = text.replace(f"{word}(", f"{surface.spelling(generic, 'simt')}(")
    return text


def _require(v: Visitor, helper: str) -> None:
    """Print a helper and those it calls."""
    if helper in v.helpers:
        return
    for needed in _NEEDS.get(helper, ()):
        _require(v, needed)
    if v.b.names.claim(helper) != helper:
        v.unsupported(f"a variable named {helper}", "that is the name of a helper function: rename it")
    v.helpers[helper] = _spelled(_HELPERS[helper], v.surface)


@op("tl.rng_init", arity=4, regions="simt", emits=("alloc_buffer", "store"))
def rng_init(v: Visitor, node: Any, seed: Any, sequence: Any, offset: Any, generator: Any) -> None:
    """Seed the generator of a thread; the generator's name is CUDA's and says nothing here."""
    frame = v.vector_function
    if (frame, _STATE) not in v.private:
        for what, dtype, count in ((_STATE, "int32", _WORDS), (_SPARE, "float32", 1)):
            pointer = private_array(v, what.replace(" ", "_"), DTYPES[dtype], count).pointer
            assert pointer is not None
            v.private[(frame, what)] = pointer
    number = v.arith.number
    key, high = (v.arith.cast(v.expr(argument), I64) for argument in (seed, sequence))
    skipped = v.arith.truncating_divide(v.arith.add(v.arith.cast(v.expr(offset), I64), number(3, I64)), number(4, I64))
    words = [word for value in (key, skipped, high) for word in _halves(v, value)]
    zero = number(0, I32)
    for place, word in (*enumerate(words), (10, zero), (11, zero)):
        _put(v, word, place)


def _halves(v: Visitor, value: Value) -> tuple[Value, Value]:
    """Low and high word of a 64-bit value."""
    high = v.arith.floor_divide(value, v.arith.number(1 << 32, I64))
    return v.arith.cast(value, I32), v.arith.cast(high, I32)


def _put(v: Visitor, word: Value, place: int) -> None:
    spelled = v.surface.spelling("store", "simt")
    state = _private(v, _STATE)
    v.b.effect(lambda e: call(spelled, *e), (v.arith.typed(word), state, v.index(place)), writes=state)


def _private(v: Visitor, what: str) -> Value:
    found = v.private.get((v.vector_function, what))
    if found is None:
        v.unsupported("a random number is drawn without a generator", "call T.rng_init first, in the same T.SimtVF block")
    return found


def _drawn(v: Visitor, helper: str, hint: str) -> str:
    """Name of the result of a helper, called here."""
    _require(v, helper)
    result = v.b.names.claim(hint)
    operands = [_private(v, _STATE)] + ([_private(v, _SPARE)] if helper == "philox_normal" else [])
    v.b.statement(lambda e: ast.Assign([ast.Name(result, ast.Store())], call(name(helper), *e)), operands, writes=operands[0])
    return result


@op("tl.rng_rand", arity=0, regions="simt", emits=("mulhi", "if_"))
def rng_rand(v: Visitor, node: Any) -> Value:
    """32 random bits."""
    return v.arith.cast(v.b.named(_drawn(v, "philox_word", "word"), I32), U32)


@op("tl.rng_rand_float", arity=1, regions="simt", literals={"distribution": ("uniform", "normal")}, dtypes=("f32",),
    emits=("mulhi", "if_", "cast", "sqrt", "log", "sin", "cos", "max"))  # fmt: skip
def rng_rand_float(v: Visitor, node: Any, distribution: Any) -> Value:
    """A uniform number of (0, 1], or a standard normal one."""
    which = _distribution(v, node)
    return v.b.named(_drawn(v, f"philox_{which}", which), F32)


def _distribution(v: Visitor, node: Any) -> str:
    which = v.string(node.args[0], "the distribution")
    if str(node.dtype) != "float32":
        v.unsupported(f"random numbers of dtype {node.dtype}", "draw float32 numbers")
    return which


def draw_lanes(v: Visitor, node: Any) -> list[Any]:
    """Scalar variables bound to the lanes of a broadcast of random numbers.

    Normal numbers come in fresh pairs then, past one that may be left from single draws, as in the AscendC template.
    """
    drawn, casts = node.value, []
    while isinstance(drawn, tirx.Cast):
        casts.append(v.scalar_type(drawn.dtype))
        drawn = drawn.value
    lanes = int(node.lanes)
    direct = isinstance(drawn, tirx.Call) and operation_name(drawn) == "tl.rng_rand_float"
    if not (direct and _distribution(v, drawn) == "normal"):
        return [_bound(v, f"draw_{number}", v.expr(node.value), node.value.dtype) for number in range(lanes)]
    if lanes % 2:
        v.unsupported(f"{lanes} normal numbers at once", "draw an even number")
    bound = []
    for _ in range(lanes // 2):
        pair = _drawn(v, "philox_normal_pair", "pair")
        for half in range(2):
            value = _element(v, pair, half)
            for type in reversed(casts):
                value = v.arith.cast(value, type)
            bound.append(_bound(v, f"{pair}_{half}", value, node.value.dtype))
    return bound


def _element(v: Visitor, pair: str, half: int) -> Value:
    value = v.b.named(f"{pair}[{half}]", F32)
    value.build = lambda _: ast.Subscript(name(pair), constant(half), ast.Load())
    return value


def _bound(v: Visitor, hint: str, value: Value, dtype: Any) -> Any:
    variable = tirx.Var(hint, dtype)
    v.variables[variable] = value
    return variable
