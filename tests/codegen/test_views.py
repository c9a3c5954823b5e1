"""Every pointer into a memory of the core comes from one buffer, and the text says where the buffers lie.

No ``from __future__ import annotations`` here: TileLang evaluates the annotations of a kernel.
"""

import itertools
import json

import numpy as np
import pytest
from tilelang.ascend import language as T
from tvm import tirx
from tvm.ir import PointerType, PrimType

from tilelang_pto import pipeline
from tilelang_pto.codegen.analysis.views import restore_views
from tilelang_pto.codegen.attributes import VIEWS, read_views, write_views
from tilelang_pto.codegen.attributes import View as PlacedView
from tilelang_pto.errors import UnsupportedError
from tilelang_pto.lowering import emit_function, lower_function
from tilelang_pto.pipeline import AscendPassPipelineBody
from tilelang_pto.sim import run, session
from tilelang_pto.sim.views import View, ViewTable
from tilelang_pto.target import pto_target


def several():
    """Buffers of several element types, one in versions, one that is read by its bits, one that only threads use."""

    @T.prim_func
    def several(x: T.Tensor((8, 256), "float32"), y: T.Tensor((8, 256), "float32"), n: T.Tensor((64,), "int32")):
        with T.Kernel(1):
            row = T.alloc_shared((256,), "float32")
            table = T.alloc_shared((64,), "int32")
            out = T.alloc_shared((256,), "float32")
            T.annotate_buffer_versions({row: 2})
            with T.SimtVF(threads=64):
                for i in T.Parallel(64):
                    table[i] = n[i]
            for r in T.serial(8):
                T.copy(x[r, 0], row)
                with T.SimdVF():
                    lanes = T.simd.pset(32)
                    for c in T.serial(4):
                        T.simd.vsts(out[c * 64], T.simd.vadds(T.simd.vld(row[c * 64]), 1.0, lanes), lanes)
                T.copy(out, y[r, 0])
            with T.SimtVF(threads=64):
                for i in T.Parallel(64):
                    n[i] = table[63 - i]

    return several


def same_name():
    """Two buffers with one name, of different sizes."""

    @T.prim_func
    def same_name(x: T.Tensor((256,), "float32"), y: T.Tensor((512,), "float32")):
        with T.Kernel(2) as core:
            if core == 0:
                part = T.alloc_shared((256,), "float32")
                T.copy(x, part)
                T.copy(part, x)
            else:
                part = T.alloc_shared((512,), "float32")
                T.copy(y, part)
                T.copy(part, y)

    return same_name


def short_vectors():
    """Buffers that threads access by short vectors; one of them at computed places, too."""

    @T.prim_func
    def short_vectors(x: T.Tensor((256,), "float32"), n: T.Tensor((256,), "int32"), y: T.Tensor((256,), "float32")):
        with T.Kernel(1):
            first = T.alloc_shared((256,), "float32")
            second = T.alloc_shared((256,), "float32")
            with T.SimtVF(threads=64):
                thread = T.get_thread_binding(0)
                for i in T.vectorized(4):
                    first[thread * 4 + i] = x[thread * 4 + i]
                for i in T.vectorized(4):
                    second[thread * 4 + i] = first[thread * 4 + i] * 2.0
                T.sync_threads()
                for i in T.vectorized(4):
                    y[thread * 4 + i] = second[thread * 4 + i] + second[n[thread * 4 + i]]

    return short_vectors


@pytest.fixture(scope="module")
def target():
    return pto_target(surface="2026-09")


def text_of(kernel, target):
    with target:
        function = kernel()
    return emit_function(function, target=target).text


def test_buffers_have_pointers_of_their_own(target):
    lines = [line.strip() for line in text_of(several, target).splitlines()]
    table = ViewTable("\n".join(lines))
    start = next(number for number, line in enumerate(lines, 1) if line.startswith("def "))
    views = {view.name: view for view in table.of_kernel(start)}
    assert {name: view.end - view.begin for name, view in views.items()} == {"row": 2048, "table": 256, "out": 1024}
    assert all(view.memory == "UB" for view in views.values())
    spans = sorted((view.begin, view.end) for view in views.values())
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
    for name, view in views.items():
        (pointer,) = [number for number, line in enumerate(lines, 1) if line.startswith(f"{name} = pto.castptr(pto.const({view.begin}, ")]
        assert table.of_pointer(pointer, "ub") == view
        assert table.of_pointer(pointer, "mat") is None
    assert [line for line in lines if "castptr" in line and "UB view" not in line] == []


def test_buffers_of_short_vectors_have_pointers_of_their_own(target):
    text = text_of(short_vectors, target)
    views = {view.name: (view.begin, view.end) for view in ViewTable(text).of_name("short_vectors_kernel")}
    assert views == {"first": (0, 1024), "second": (1024, 2048)}
    assert [line.partition(" = ")[0].strip() for line in text.splitlines() if "castptr" in line] == ["first", "second"]


def test_buffers_of_unknown_place_have_no_bytes(target, monkeypatch):
    """Their accesses stay those of the whole allocation, and no comment says that they are all of it."""
    monkeypatch.setattr("tilelang_pto.views._places", lambda func, allocations: [])
    text = text_of(several, target)
    (whole,) = ViewTable(text).of_name("several_kernel")
    assert "# UB view table: 64 int32, in " + whole.name in text
    assert f"# UB view {whole.name}: {whole.end} uint8, bytes 0 to {whole.end - 1}" in text


@pytest.mark.parametrize(
    ("index", "moved"),
    [
        (tirx.Var("i", "int32") * 4 + 40, "i * 4 + 8"),
        (tirx.Ramp(tirx.Var("i", "int32") + 32, 1, 4), "T.Ramp(i, 1, 4)"),
        (tirx.Var("i", "int32x4") + tirx.Broadcast(tirx.IntImm("int32", 32), 4), "i + T.Broadcast(32, 4) - T.Broadcast(32, 4)"),
    ],
)
def test_indices_count_from_the_beginning_of_a_buffer(index, moved):
    data = tirx.Var("arena", PointerType(PrimType("uint8"), "shared.dyn"))
    other = tirx.decl_buffer((64,), "float32", "part", data=data, scope="shared.dyn")
    arena = tirx.decl_buffer((256,), "uint8", "arena", data=data, scope="shared.dyn")
    body = tirx.SeqStmt([tirx.AllocBuffer(arena), tirx.DeclBuffer(other), tirx.Evaluate(tirx.BufferLoad(other, [index]))])
    view = PlacedView(1, "part", "arena", 128, 128, "float32", "32", ("part",))
    function = tirx.PrimFunc([], body).with_attr(VIEWS, write_views([view]))
    found, _ = restore_views(function)
    load = found.seq[-1].value
    assert str(load.buffer.data.name) == "part"
    assert load.indices[0].script() == moved


def test_positions_count_from_the_buffer(target):
    """A constant of the index that lies beyond the buffer stays with it: the place in the allocation decides nothing."""

    def beyond():
        @T.prim_func
        def beyond(x: T.Tensor((64,), "float32"), y: T.Tensor((64,), "float32")):
            with T.Kernel(1):
                first = T.alloc_shared((64,), "float32")
                second = T.alloc_shared((64,), "float32")
                T.copy(x, first)
                T.copy(y, second)
                with T.SimdVF():
                    lanes = T.simd.pset(32)
                    value = T.simd.vld(first[64])
                    T.simd.vsts(second[0], value, lanes)
                T.copy(second, y)

        return beyond

    text = text_of(beyond, target)
    assert "vlds(first_64, 0" in text
    assert "second, 0, lanes" in text


@pytest.mark.parametrize("surface", ["2026-08", "2026-09"])
def test_other_shapes_of_a_buffer_belong_to_it(surface):
    """TileLang declares them in front of the allocation."""

    def reshaped():
        @T.prim_func
        def reshaped(x: T.Tensor((8, 64), "float32"), y: T.Tensor((4, 128), "float32")):
            with T.Kernel(1):
                first = T.alloc_shared((8, 64), "float32")
                second = T.alloc_shared((8, 64), "float32")
                wide = T.reshape(first, (4, 128))
                result = T.reshape(second, (4, 128))
                T.copy(x, first)
                with T.SimtVF(threads=128):
                    for i, j in T.Parallel(4, 128):
                        result[i, j] = wide[i, j] * 2.0
                with T.SimdVF():
                    lanes = T.simd.pset(32)
                    T.simd.vsts(second[0, 0], T.simd.vadds(T.simd.vld(result[0, 0]), 1.0, lanes), lanes)
                T.copy(result, y)

        return reshaped

    text = text_of(reshaped, pto_target(surface=surface))
    pointers = [line.rpartition("# UB view ")[2] for line in text.splitlines() if "pto.castptr(pto.const(" in line]
    assert pointers == ["wide", "result"]  # one for all shapes of each buffer
    x, y = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    with session(check="full", race="report") as s:
        run(text, "reshaped_kernel", x, y)
    assert s.report.findings == ()
    np.testing.assert_array_equal(y, 2 * x + (np.arange(512) < 64))


def test_buffers_of_one_name_are_told_apart(target):
    with target:
        function = same_name()
    lowered = lower_function(function, target=target)
    (device,) = pipeline.stashed_functions(lowered.device).values()
    views = read_views(str(device.attrs[VIEWS]))
    assert sorted((view.name, view.size) for view in views) == [("part", 1024), ("part_1", 2048)]
    text = emit_function(function, target=target).text
    assert "mte_gm_ub(x, part, 0, 1024" in text
    assert "mte_gm_ub(y, part_1, 0, 2048" in text


def test_numbers_of_buffers_change_nothing_in_tilelang(target, monkeypatch):
    """What TileLang makes of a kernel is the same without them, apart from the numbers."""
    with target:
        function = several()

    def device():
        (found,) = pipeline.stashed_functions(lower_function(function, target=target).device).values()
        return found

    watched = device()
    monkeypatch.setattr(pipeline, "lower_with_views", lambda lower: AscendPassPipelineBody)
    plain = device()
    assert VIEWS not in plain.attrs
    numbers = _masks(watched.body)
    assert [mask & 255 for mask in numbers] == _masks(plain.body)
    assert any(mask >> 8 for mask in numbers)
    assert _without_masks(watched.body) == _without_masks(plain.body)


def _masks(body):
    found = []

    def visit(node):
        if isinstance(node, tirx.Call) and str(getattr(node.op, "name", "")) == "tirx.tvm_access_ptr":
            found.append(int(node.args[4]))

    tirx.stmt_functor.post_order_visit(body, visit)
    return found


def _without_masks(body):
    def plain(node):
        if str(getattr(node.op, "name", "")) != "tirx.tvm_access_ptr":
            return None
        return tirx.Call(node.dtype, node.op, [*node.args[:4], 0])

    return str(tirx.stmt_functor.ir_transform(body, lambda node: None, plain, ["tirx.Call"]))


def test_buffers_that_do_not_fit_are_named_with_their_sizes(target):
    def large():
        @T.prim_func
        def large(x: T.Tensor((65536,), "float32"), y: T.Tensor((65536,), "float32")):
            with T.Kernel(1):
                small = T.alloc_shared((64,), "float32")
                half = T.alloc_shared((32768,), "float32")
                most = T.alloc_shared((40000,), "float32")
                T.copy(x[0], small)
                T.copy(x[0], half)
                T.copy(x[0], most)
                with T.SimdVF():
                    lanes = T.simd.pset(32)
                    T.simd.vsts(small[0], T.simd.vadd(T.simd.vld(half[0]), T.simd.vld(most[0]), lanes), lanes)
                T.copy(small, y[0])
                T.copy(half, y[0])
                T.copy(most, y[0])

        return large

    with pytest.raises(UnsupportedError) as caught:
        text_of(large, target)
    error = str(caught.value)
    assert "bytes of UB are required and 253952 are available, 8192 more are kept for calls of vector functions" in error
    assert "most 160000, half 131072, small 256)" in error
    assert "use smaller tiles or fewer buffer versions; most takes most" in error


@pytest.mark.parametrize(
    ("line", "view"),
    [
        ("# UB view row: 512 float32, bytes 4096 to 6143", ("row", "UB", 4096, 6144)),
        ("    # L0C view GEMM stages: bytes 0 to 31", ("GEMM stages", "L0C", 0, 32)),
        ("# L1 view a: bytes 0 to 0", ("a", "L1", 0, 1)),
        ("# UB view row: 512 float32", None),
        ("# UB view row: 512 float32, bytes 8 to 7", None),
        ("# GM view row: bytes 0 to 31", None),
        ("x = 1  # UB view row: bytes 0 to 31", None),
    ],
)
def test_comments_about_places(line, view):
    found = ViewTable(f"@pto.jit()\n{line}\n").of_kernel(1)
    assert found == (() if view is None else (View(*view, 2),))


def test_views_belong_to_their_kernel():
    text = "\n".join(
        [
            "# UB view a: bytes 0 to 31",
            "@pto.jit(name='k')",
            "    # UB view a: bytes 32 to 63",
            "    p = pto.castptr(...)  # UB view a",
            "@pto.jit",
            "    p = pto.castptr(...)  # UB view a",
        ]
    )
    table = ViewTable(text)
    assert table.of_pointer(4, "ub") == View("a", "UB", 32, 64, 3)
    assert table.of_pointer(6, "ub") is None
    assert table.of_kernel(6) == ()


def test_attribute_round_trip():
    views = read_views(
        json.dumps([{"number": 1, "name": "a", "arena": "b", "begin": 0, "size": 4, "element": "int32", "extent": "1", "buffers": ["a"]}])
    )
    assert views[0].buffers == ("a",)
