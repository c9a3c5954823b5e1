"""The frame around recording: imports, builtins, places of errors, threads, API states, speed."""

from __future__ import annotations

import builtins
import sys
import threading
import time

import pytest

from tilelang_pto.errors import SimulationError
from tilelang_pto.sim import record_module, standin
from tilelang_pto.sim.standin import registry

KERNEL = '\n@pto.jit(kernel_kind="vector", mode="explicit")\ndef k(n: pto.i32):\n    '
AUG = "from ptodsl import pto, scalar"
SEP = "from ptodsl import pto"


def message(text: str, **options: str) -> str:
    with pytest.raises(SimulationError) as info:
        record_module(text, "m.py", **options)
    return str(info.value)


@pytest.mark.parametrize("name", ["os", "numpy", "__future__", "ptodsl.scalar", "tilelang_pto"])
def test_only_ptodsl_can_be_imported(name: str):
    assert f"import of {name!r}" in message(f"import {name}\n{SEP}{KERNEL}pass\n")


def test_future_annotations_are_refused():
    assert "import of '__future__'" in message(f"from __future__ import annotations\n{SEP}{KERNEL}pass\n")


@pytest.mark.parametrize("name", ["open", "eval", "exec", "compile", "__import__('os')", "globals", "input", "breakpoint"])
def test_no_way_out(name: str):
    text = message(f"{SEP}{KERNEL}{name}\n")
    assert "is not defined" in text or "import of 'os'" in text


def test_nothing_global_changes():
    modules, own_import = dict(sys.modules), builtins.__import__
    record_module(f"{SEP}{KERNEL}n + 1\n")
    message(f"{SEP}{KERNEL}n + 1.5\n")
    assert sys.modules == modules and builtins.__import__ is own_import and "ptodsl" not in sys.modules
    assert record_module(f"{SEP}{KERNEL}n + 1\n").opcodes() == {"const", "add"}


def test_surface_follows_the_import():
    assert "no unary minus" in message(f"{AUG}{KERNEL}-n\n")
    assert record_module(f"{SEP}{KERNEL}-n\n").opcodes() == {"neg"}
    assert "has no scalar" in message(f"{AUG}{KERNEL}n\n", surface="2026-09")
    assert "no unary minus" in message(f"{SEP}{KERNEL}-n\n", surface="2026-08")
    assert "one of 2026-08, 2026-09" in message(f"{SEP}{KERNEL}n\n", surface="2026-07")


def test_probing_with_hasattr():
    probe = "{}\nassert hasattr(pto, 'load') is {}\nassert not hasattr(pto, 'no_such_thing'){}pass\n"
    record_module(probe.format(SEP, True, KERNEL))
    record_module(probe.format(AUG, False, KERNEL))
    record_module(f"import ptodsl\n{SEP}\nassert getattr(ptodsl, 'MAD_RUNTIME_FLAGS', False){KERNEL}pass\n")
    record_module(f"import ptodsl\n{AUG}\nassert not getattr(ptodsl, 'MAD_RUNTIME_FLAGS', False){KERNEL}pass\n")


def test_unknown_names_say_where_they_are():
    with pytest.raises(SimulationError) as info:
        record_module(f"{SEP}{KERNEL}pto.load_scalar(n, 0)\n", "m.py")
    assert info.value.what == "the 2026-09 API has no pto.load_scalar"
    assert info.value.where == ("kernel k", "m.py:4", "pto.load_scalar(n, 0)")
    assert info.value.advice == "pto.load_scalar in the 2026-08 API"
    assert isinstance(info.value, AttributeError)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (f"{SEP}{KERNEL}1 // 0\n", ("ZeroDivisionError", "m.py:4", "1 // 0")),
        (f"{SEP}{KERNEL}later\n", ("name 'later' is not defined", "kernel k")),
        (f"{SEP}\nraise ValueError('planted')\n", ("ValueError: planted", "m.py:2")),
        (f"{SEP}\ndef f(:\n", ("syntax error", "m.py:2")),
        (f"{SEP}{KERNEL}n.dtype.name + 1\n", ("TypeError", "m.py:4")),
        (f"{SEP}{KERNEL}pto.Pipe.MTE7\n", ("MTE7", "m.py:4")),
        (f"{SEP}{KERNEL}k2 = lambda: n + 1.5\n    k2()\n", ("the float 1.5", "m.py:4")),
        (f"{SEP}\ndef f(n):\n    return f(n){KERNEL}f(n)\n", ("RecursionError", "m.py:3")),
    ],
)
def test_every_error_is_one_of_ours(text: str, parts: tuple[str, ...]):
    found = message(text)
    assert all(part in found for part in parts), found


def test_threads_do_not_meet():
    texts = [f"{SEP if i % 2 else AUG}{KERNEL}{' + '.join(['n'] * (i + 2))}\n" for i in range(8)]
    expected = [record_module(text).serialize() for text in texts]
    found: list[bytes | None] = [None] * len(texts)

    def work(number: int) -> None:
        for _ in range(20):
            found[number] = record_module(texts[number]).serialize()
            with pytest.raises(SimulationError):
                record_module(texts[number] + "    n + 0.5\n")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_runaway_unrolling_is_stopped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tilelang_pto.sim.standin.recorder.OPERATION_LIMIT", 100)
    assert "use pto.for_" in message(f"{SEP}{KERNEL}for i in range(1000): n + n\n")


def test_table_of_names():
    for entry in standin.entries():
        assert entry.surface in standin.SURFACES and entry.places
        assert set(entry.opcodes) <= standin.recorded_opcodes()
    assert "load" in standin.names("2026-09") and "load" not in standin.names("2026-08")
    assert "load" in registry.names("2026-08", "scalar") and not registry.names("2026-09", "scalar")
    needed = {
        "const",
        "for",
        "if",
        "yield",
        "vecscope",
        "simt",
        "vlds",
        "vsts",
        "vcvt",
        "pset",
        "plt",
        "mte_gm_ub",
        "set_flag",
        "cmp",
        "load",
    }
    assert needed <= standin.recorded_opcodes()


def test_recording_is_quick():
    body = "".join(f"pto.set_flag('MTE2', 'V', event_id={i % 8})\n    a{i} = (n + {i}) * 3 // 7\n    " for i in range(30))
    text = f"{AUG}{KERNEL}{body}\n"
    record_module(text)
    best = min(_timed(text) for _ in range(5))
    assert best < 0.05


def _timed(text: str) -> float:
    begin = time.perf_counter()
    record_module(text)
    return time.perf_counter() - begin
