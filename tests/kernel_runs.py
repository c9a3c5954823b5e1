"""Running a public function of a kernel package on the simulator, with the checks that hold whatever it computes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from tile_kernels_support import pto
from torch.overrides import TorchFunctionMode

_GUARD_BYTES, _GUARD = 512, 0xA5
_WITHOUT_CONTENTS = (torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty)


@dataclass
class Outcome:
    """What a function returned, and the arguments it may write, by name, as it left them."""

    result: Any
    written: dict[str, torch.Tensor]


def run(
    function: Callable[..., Any],
    *arguments: Any,
    written: tuple[str, ...] = (),
    defined: Callable[[Any], Any] = lambda result: result,
    **options: Any,
) -> Outcome:
    """Call ``function`` twice on copies of its arguments.

    The calls differ in the number of host threads and in what memory holds that was not written. What is ``defined`` of the result
    (all of it if not said otherwise) must agree in every bit. No arguments may change but those named in ``written``, and nothing
    may be written beside the tensors.
    """
    first = _run_once(function, arguments, options, written, poison=0xFF, threads="0")
    second = _run_once(function, arguments, options, written, poison=0x3C, threads="1")
    outcomes = [_tensors((defined(each.result), each.written)) for each in (first, second)]
    for one, other in zip(*outcomes, strict=True):
        assert same_bits(one, other), f"{function.__name__} depends on the number of threads, or leaves a part of a result unwritten"
    return first


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Shapes, types and every bit are the same; NaNs and the signs of zeros count."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if not one.numel():
        return True  # without elements a tensor has no view as bytes
    return torch.equal(one.contiguous().flatten().view(torch.uint8), other.contiguous().flatten().view(torch.uint8))


def slow(*values: Any, **options: Any) -> Any:
    """Parameters of a test that is not in the default selection."""
    return pytest.param(*values, marks=pytest.mark.slow, **options)


def _run_once(function, arguments, options, written, poison: int, threads: str) -> Outcome:
    memory = _Memory(poison)
    call = inspect.signature(function).bind(*_map(memory.copy, arguments), **_map(memory.copy, options))
    given = inspect.signature(function).bind(*arguments, **options).arguments
    with pytest.MonkeyPatch.context() as settings, pto(), memory:
        settings.setenv("TILELANG_PTO_THREADS", threads)
        result = function(*call.args, **call.kwargs)
    memory.check()
    for name, value in given.items():
        if name not in written:
            for before, after in zip(_tensors(value), _tensors(call.arguments[name]), strict=True):
                assert same_bits(before, after), f"{function.__name__} changed its argument {name}"
    return Outcome(result, {name: call.arguments[name] for name in written})


class _Memory(TorchFunctionMode):
    """Gives tensors that are made without contents a content, and all tensors a guard on both sides."""

    def __init__(self, poison: int) -> None:
        super().__init__()
        self._poison = poison
        self._guards: list[torch.Tensor] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        return self._guarded(made) if func in _WITHOUT_CONTENTS and made.device.type == "cpu" else made

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same values and strides in guarded memory."""
        guarded = self._guarded(tensor)
        raw = torch.uint8 if tensor.element_size() == 1 else tensor.dtype
        guarded.view(raw).copy_(tensor.view(raw))
        return guarded

    def check(self) -> None:
        """Nothing was written into a guard."""
        for guard in self._guards:
            assert (guard == _GUARD).all(), "a kernel wrote outside of its tensors"

    def _guarded(self, like: torch.Tensor) -> torch.Tensor:
        elements = 1 + sum((extent - 1) * stride for extent, stride in zip(like.shape, like.stride(), strict=True)) if like.numel() else 0
        size = elements * like.element_size()
        memory = torch.full((size + 2 * _GUARD_BYTES,), _GUARD, dtype=torch.uint8)
        self._guards += [memory[:_GUARD_BYTES], memory[_GUARD_BYTES + size :]]
        inner = memory[_GUARD_BYTES : _GUARD_BYTES + size]
        inner.fill_(1 if like.dtype is torch.bool else self._poison)
        return inner.view(like.dtype).as_strided(like.shape, like.stride())


def _map(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """``value`` with every tensor in it replaced."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_map(function, item) for item in value)
    if isinstance(value, dict):
        return {key: _map(function, item) for key, item in value.items()}
    return value


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    _map(lambda tensor: found.append(tensor) or tensor, value)
    return found
