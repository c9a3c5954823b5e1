"""A finding as text for people: both accesses with their source lines, and what to do."""

from __future__ import annotations

from tilelang_pto.errors import FindingError, RaceError
from tilelang_pto.sim.report.model import Access, Finding, KernelReport

__all__ = ["access_text", "advice", "finding_error", "finding_text", "statement"]

_ADVICE = {
    "uninitialised": "write these bytes before they are read: a copy, a fill, or padding of the transfer that leaves them out",
    "bounds": "an index within the buffer, or a larger buffer",
    "overlap": "read what the first buffer holds before the second one is written, or give the two bytes of their own",
    "flag": "one wait for every set of a flag, with the same pipes and the same id, on every path through the kernel",
    "deadlock": "set what the waits named here wait for, on every path that leads to them",
}


def advice(finding: Finding) -> str:
    """What to do about it; empty when nothing general is known."""
    if finding.kind != "race":
        return _ADVICE.get(finding.kind, "")
    first, second = finding.first, finding.second
    if first is None or second is None:
        return "order the two accesses"
    if first.block != second.block:
        return "let each block write bytes of its own, use two launches, or T.ascend_sync_inter_arrive and T.ascend_sync_inter_wait"
    if first.core != second.core:
        return f"a flag between the cores, set on {first.core} after the first access and awaited on {second.core} before the second"
    if first.thread is not None and second.thread is not None:
        return "a barrier of the threads (T.sync_threads) between the two, or an atomic operation"
    if first.pipe == second.pipe == "V":
        return "T.simd.mem_bar inside a vector function, T.ascend_pipe_barrier between two"
    if first.pipe == second.pipe:
        return f'T.ascend_pipe_barrier("PIPE_{first.pipe}") between the two'
    event = f"{first.pipe}_{second.pipe}"
    return f'T.ascend_set_flag("{event}", id) after the first access, T.ascend_wait_flag("{event}", id) before the second'


def access_text(kernel: KernelReport, access: Access, indent: int = 6) -> str:
    """``k.pto.py:12: vsts on pipe V of block 0 writes, execution 3`` and the source line under it, ``indent`` columns to the right."""
    verb = {"read": "reads", "write": "writes"}.get(access.access, access.access)
    thread = f", thread {access.thread}" if access.thread is not None else ""
    place = f"{kernel.file}:{access.line}: {access.op} on pipe {access.pipe} of {access.core_label}{thread}"
    text = f"{place} {verb}, execution {access.execution}"
    source = kernel.source_line(access.line)
    return f"{text}\n{' ' * indent}{source}" if source else text


def _places(kernel: KernelReport, finding: Finding) -> tuple[str, ...]:
    both = finding.first is not None and finding.second is not None
    places = [f"kernel {kernel.kernel}"]
    for name, access in (("first", finding.first), ("second", finding.second)):
        if access is not None:
            places.append((f"{name}: " if both else "") + access_text(kernel, access))
    if finding.range_label:
        places.append(finding.range_label)
    return tuple(places)


def statement(finding: Finding) -> str:
    """What is wrong, without the kind of finding, its places and its count."""
    if finding.kind == "race" and finding.missing and finding.first is not None and finding.second is not None:
        return finding.missing  # the message says over again what the places say
    return f"{finding.message}; {finding.missing}" if finding.missing not in finding.message else finding.message


def _headline(finding: Finding) -> str:
    return f"{finding.title}: {statement(finding)}" + (f" (found {finding.count:,} times)" if finding.count > 1 else "")


def finding_text(kernel: KernelReport, finding: Finding) -> str:
    """Several lines for a summary that has named the kernel already."""
    rows = [("first" if finding.second else "place", finding.first), ("second" if finding.first else "place", finding.second)]
    lines = [_headline(finding)]
    lines += [f"  {label:<8}{access_text(kernel, access, 10)}" for label, access in rows if access is not None]
    if finding.range_label:
        lines.append(f"  bytes   {finding.range_label}")
    if advice(finding):
        lines.append(f"  instead {advice(finding)}")
    return "\n".join(lines)


def finding_error(kernel: KernelReport, more: int = 0) -> FindingError:
    """The error for the first finding of a launch.

    Args:
        kernel: the launch; it has a finding.
        more: findings of other launches.
    """
    finding = kernel.findings[0]
    kind = RaceError if finding.kind == "race" else FindingError
    others = len(kernel.findings) - 1 + more
    places = _places(kernel, finding)
    if others:
        places = (*places, f"the first of {others + 1} findings")
    return kind(_headline(finding), where=places, advice=advice(finding))
