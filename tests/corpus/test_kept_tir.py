"""The directory of lowered TIR: entries are found again, broken ones made again, and nothing is left half written."""

from __future__ import annotations

import gzip

import pytest
import tvm
from corpus import kept_tir as kept
from corpus.cases import all_cases

CASE = all_cases()["mhc.expand_fwd.h2560"]


@pytest.fixture
def lowerings(tmp_path, monkeypatch):
    """An empty directory and the list of kernels lowered for it."""
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path))
    done = []
    text = kept_text(CASE)

    def lower(call):
        done.append(call.name)
        return kept.KeptTir(call.name, 1.5, True, text)

    monkeypatch.setattr(kept, "_lower", lower)
    return done


def kept_text(case):
    from tvm import tirx

    function = tirx.PrimFunc([], tirx.Evaluate(tirx.const(0, "int32")))
    return tvm.ir.save_json(tvm.IRModule({case.function.replace(".", "_"): function}))


def entries():
    return sorted(path for path in kept.directory().iterdir())


def test_an_entry_is_used_again(lowerings):
    assert not kept.is_kept(CASE)
    first, second = kept.kept_tir(CASE), kept.kept_tir(CASE)
    assert kept.is_kept(CASE)
    assert first == second
    assert lowerings == ["expand_to_mhc_fwd_asc"]
    assert len(entries()) == 1
    assert tvm.ir.structural_equal(first.module(), second.module())


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"no gzip" + data,
        lambda data: data[:-4] + b"\0\0\0\0",
        lambda data: gzip.compress(b"{}\n{}"),
        lambda data: gzip.compress(b"\xff\xfe"),
        lambda data: gzip.compress(gzip.decompress(data)[:-100]),
    ],
    ids=["empty", "cut", "no gzip", "wrong checksum", "no fields", "no text", "cut TIR"],
)
def test_a_damaged_entry_is_made_again(lowerings, damage):
    whole = kept.kept_tir(CASE)
    (path,) = entries()
    path.write_bytes(damage(path.read_bytes()))
    assert kept.kept_tir(CASE) == whole
    assert len(lowerings) == 2
    assert kept.kept_tir(CASE) == whole
    assert len(lowerings) == 2
    assert entries() == [path]


def test_what_an_entry_depends_on(lowerings, monkeypatch):
    kept.kept_tir(CASE)
    kept.kept_tir(all_cases()["mhc.expand_fwd.h7168"])
    assert len(lowerings) == 2, "other arguments"
    monkeypatch.setattr(kept, "pipeline_digest", lambda: "another pipeline")
    kept.kept_tir(CASE)
    assert len(lowerings) == 3, "another pipeline"
    monkeypatch.setattr(kept.importlib.metadata, "version", lambda package: f"{package} of tomorrow")
    kept.kept_tir(CASE)
    assert len(lowerings) == 4, "other packages"


def test_the_pipeline_is_all_that_lowering_imports():
    names = {path.stem for path in kept.pipeline_files()}
    assert {"pipeline", "lowering", "device_assert", "shape_parameters", "target", "attributes"} <= names
    assert not names & {"visitor", "module", "printer", "registry"}, "the code generator works on what is kept"


def test_an_entry_that_cannot_be_written_leaves_nothing(lowerings, monkeypatch):
    monkeypatch.setattr(kept.Path, "replace", lambda self, target: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        kept.kept_tir(CASE)
    assert entries() == []
