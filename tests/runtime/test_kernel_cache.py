"""The cache of built libraries: many processes, killed ones, damaged entries, full and forbidden disks."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from tilelang_pto import ConfigurationError
from tilelang_pto.runtime.kernel_cache import MANIFEST, KernelCache, digest

KEY = digest({"text": "a kernel"})
fork = multiprocessing.get_context("fork")


def content(directory: Path) -> str:
    return (directory / "kernels.so").read_text()


def building(text: str = "library"):
    def build(directory: Path) -> None:
        (directory / "kernels.so").write_text(text)
        (directory / "logs").mkdir()
        (directory / "logs" / "link.log").write_text("")

    return build


def never(directory: Path) -> None:
    pytest.fail("built a second time")


def leftovers(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "building").iterdir())


def test_an_entry_is_built_once(tmp_path):
    cache = KernelCache(tmp_path / "cache")
    first = cache.get(KEY, building(), describe={"kernel": "k"})
    assert content(first) == "library"
    assert content(cache.get(KEY, never)) == "library"
    assert content(KernelCache(tmp_path / "cache").get(KEY, never)) == "library"
    assert leftovers(tmp_path / "cache") == []


def test_the_key_knows_every_part_and_not_their_order():
    parts = {"text": "x", "versions": {"ptoas": "0.60"}, "flags": ["-O2"]}
    assert digest(parts) == digest(dict(reversed(parts.items())))
    keys = {digest(parts), digest({**parts, "text": "y"}), digest({**parts, "flags": []}), digest({**parts, "versions": {"ptoas": "0.61"}})}
    assert len(keys) == 4


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: (entry / "kernels.so").write_text("librarx"),
        lambda entry: (entry / "kernels.so").write_text("lib"),
        lambda entry: (entry / "kernels.so").unlink(),
        lambda entry: (entry / "logs" / "link.log").unlink(),
        lambda entry: (entry / MANIFEST).unlink(),
        lambda entry: (entry / MANIFEST).write_text('{"files": {'),
        lambda entry: (entry / MANIFEST).write_text('{"files": {}}'),
        lambda entry: (entry / MANIFEST).write_text("[]"),
    ],
    ids=["other", "cut", "no library", "no log", "no manifest", "half a manifest", "nothing listed", "another manifest"],
)
def test_a_damaged_entry_is_built_again(tmp_path, damage):
    cache = KernelCache(tmp_path)
    damage(cache.get(KEY, building()))
    assert content(cache.get(KEY, building("new"))) == "new"
    assert content(cache.get(KEY, never)) == "new"
    assert leftovers(tmp_path) == []


def test_a_file_in_the_place_of_an_entry(tmp_path):
    (tmp_path / KEY).write_text("not a directory")
    assert content(KernelCache(tmp_path).get(KEY, building())) == "library"
    assert leftovers(tmp_path) == []


def test_a_failed_build_leaves_nothing(tmp_path):
    def fail(directory: Path) -> None:
        building()(directory)
        raise RuntimeError("tool broke")

    cache = KernelCache(tmp_path)
    with pytest.raises(RuntimeError, match="tool broke"):
        cache.get(KEY, fail)
    assert leftovers(tmp_path) == []
    assert not (tmp_path / KEY).exists()
    assert content(cache.get(KEY, building())) == "library"


def _slow_build(root: Path, counter: Path):
    def build(directory: Path) -> None:
        (directory / "kernels.so").write_text("half")
        with counter.open("a") as file:
            file.write("x")
        time.sleep(0.3)
        (directory / "kernels.so").write_text("library")

    return KernelCache(root).get(KEY, build)


def _worker(root: Path, counter: Path, gate, results) -> None:
    gate.wait()
    results.put(content(_slow_build(root, counter)))


def test_sixteen_processes_build_once(tmp_path):
    gate, results, counter = fork.Event(), fork.Queue(), tmp_path / "counter"
    workers = [fork.Process(target=_worker, args=(tmp_path / "cache", counter, gate, results)) for _ in range(16)]
    for worker in workers:
        worker.start()
    gate.set()
    assert [results.get(timeout=120) for _ in workers] == ["library"] * 16
    for worker in workers:
        worker.join(30)
    assert counter.read_text() == "x"
    assert leftovers(tmp_path / "cache") == []


def test_killed_processes_do_no_harm(tmp_path):
    """Four processes are killed while they build, one after the other; those that wait take over, and all others get the right library."""
    root, counter = tmp_path / "cache", tmp_path / "counter"
    gate, results = fork.Event(), fork.Queue()
    workers = [fork.Process(target=_worker, args=(root, counter, gate, results)) for _ in range(16)]
    for worker in workers:
        worker.start()
    gate.set()
    killed, deadline = set(), time.monotonic() + 60
    while len(killed) < 4 and time.monotonic() < deadline:
        holder = _builder(root, workers)
        if holder is not None and holder not in killed:
            os.kill(holder, signal.SIGKILL)
            killed.add(holder)
    assert len(killed) == 4
    assert [results.get(timeout=120) for _ in range(12)] == ["library"] * 12
    for worker in workers:
        worker.join(30)
    assert sum(worker.exitcode == -signal.SIGKILL for worker in workers) == 4
    assert 1 <= len(counter.read_text()) <= 5  # one may be killed before it has started to build
    assert leftovers(root) == []


def _builder(root: Path, workers) -> int | None:
    """The process that has the unfinished library open or holds the lock, seen from the kernel's list of locks."""
    if not list(root.glob(f"building/{KEY}-*/kernels.so")):
        return None
    alive = {worker.pid for worker in workers}
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if "->" not in fields and "FLOCK" in fields and int(fields[4]) in alive:
            return int(fields[4])
    return None


def test_a_stale_lock_file_does_not_block(tmp_path):
    cache = KernelCache(tmp_path, patience=5)
    cache.get(KEY, building())
    for lock in (tmp_path / "locks").iterdir():
        lock.write_text("99999999")
    assert content(cache.get(digest({"text": "other"}), building())) == "library"


def test_patience_ends(tmp_path):
    def hold(root: Path, started, done) -> None:
        def build(directory: Path) -> None:
            building()(directory)
            started.set()
            done.wait(30)

        KernelCache(root).get(KEY, build)

    started, done = fork.Event(), fork.Event()
    holder = fork.Process(target=hold, args=(tmp_path, started, done))
    holder.start()
    try:
        assert started.wait(30)
        with pytest.raises(ConfigurationError, match=r"another process has held the kernel cache for 0\.2 s"):
            KernelCache(tmp_path, patience=0.2).get(KEY, never)
    finally:
        done.set()
        holder.join(30)


def test_a_full_disk_is_named(tmp_path):
    def full(directory: Path) -> None:
        building()(directory)
        raise OSError(errno.ENOSPC, "No space left on device", str(directory / "kernels.so"))

    with pytest.raises(ConfigurationError, match="the disk of the kernel cache is full"):
        KernelCache(tmp_path).get(KEY, full)
    assert leftovers(tmp_path) == []


def test_a_cache_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="the kernel cache cannot be used"):
        KernelCache(tmp_path / "file" / "cache").get(KEY, building())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_entry(tmp_path):
    cache = KernelCache(tmp_path)
    entry = cache.get(KEY, building())
    (entry / "kernels.so").chmod(0)
    with pytest.raises(ConfigurationError, match="the kernel cache cannot be used: Permission denied"):
        cache.get(KEY, never)


def test_a_read_error_is_no_reason_to_build_again(tmp_path, monkeypatch):
    cache = KernelCache(tmp_path)
    cache.get(KEY, building())

    def broken(*_, **__):
        raise OSError(errno.EIO, "Input/output error", "kernels.so")

    monkeypatch.setattr(Path, "open", broken)
    with pytest.raises(ConfigurationError, match="Input/output error"):
        cache.get(KEY, never)
