"""Options of the suite, its device, and its cases as parameters.

A test module names its kernels with ``FAMILY``; a test that takes ``cases`` runs once for every set of parameters. A quick run has of these
one for every kernel, and of the other tests those that run no kernel or are marked ``quick``.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch

from tilelang_pto.errors import ConfigurationError
from tilelang_pto.runtime.device import choose_device, probe_npu

from .launching import TARGETS, default_target
from .sizes import Sizes
from .suite import Device, by_parameters, quick

_DEVICE = pytest.StashKey[Device]()
_QUICK = "ascend_mhc_quick"


def pytest_addoption(parser):
    group = parser.getgroup("ascend_mhc", "examples/ascend_mhc")
    group.addoption(
        "--target", choices=TARGETS, default=None, help="what the kernels are compiled for; default TILELANG_DEFAULT_TARGET, else pto"
    )
    group.addoption("--full", action="store_true", help="the sizes for a board on the simulator too, where they take hours")
    group.addoption("--quick", action="store_true", help="one case of every kernel, as in a run of all tests of the project")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "quick: of examples/ascend_mhc: also in a quick run, because it compiles nothing that its cases do not"
    )
    target = config.getoption("target") or default_target()
    if target not in TARGETS:
        raise pytest.UsageError(f"TILELANG_DEFAULT_TARGET={target}: this suite runs for {' and '.join(TARGETS)}")
    try:
        torch_device = _torch_device(target)
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[_DEVICE] = Device(target, torch_device, Sizes(full=config.getoption("full") or torch_device == "npu"))


def _torch_device(target: str) -> str:
    if target == "pto":
        return "npu" if choose_device() == "npu" else "cpu"
    npu = getattr(torch, "npu", None)
    if npu is None or not npu.is_available():
        raise pytest.UsageError("--target ascend: AscendC runs on an NPU only, and torch sees none; --target pto runs on the simulator")
    return "npu"


def _only_quick(config) -> bool:
    """Whether the suite is a part of a run of all tests, which takes one case of every kernel."""
    if hasattr(config, "workerinput"):  # a worker of xdist is given the directories as if they had been named
        return config.workerinput[_QUICK]
    return config.getoption("quick") or config.args_source is pytest.Config.ArgsSource.TESTPATHS


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput[_QUICK] = _only_quick(node.config)


def pytest_report_header(config):
    device = config.stash[_DEVICE]
    where = "the NPU" if device.torch_device == "npu" else "the simulator, on CPU tensors"
    lines = [f"ascend_mhc: target {device.target} on {where}; {device.sizes}{'' if device.sizes.full else ' (--full: those of a board)'}"]
    if device.torch_device == "cpu":
        lines.append(f"ascend_mhc: no NPU is used: {_why_simulated()}")
    if _only_quick(config):
        lines.append("ascend_mhc: a quick run, one case of every kernel; `pytest examples/ascend_mhc` runs all")
    return lines


def _why_simulated() -> str:
    missing = probe_npu().missing
    return f"{missing[0]} is missing (`tilelang-pto doctor` shows everything)" if missing else "TILELANG_PTO_DEVICE=sim"


def pytest_generate_tests(metafunc):
    if "cases" in metafunc.fixturenames:
        config = metafunc.config
        groups = by_parameters(metafunc.module.FAMILY.cases(config.stash[_DEVICE].sizes))
        chosen = quick(groups) if _only_quick(config) else groups
        names = [",".join(f"{key}={value}" for key, value in group[0].parameters.items()) for group in chosen]
        metafunc.parametrize("cases", chosen, ids=names)


def pytest_collection_modifyitems(config, items):
    """Leave out what a quick run does not have; pytest says how many."""
    if _only_quick(config):
        left_out = [item for item in items if Path(__file__).parent in item.path.parents and not _is_quick(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_quick(item) -> bool:
    arguments = inspect.signature(item.function).parameters
    return "cases" in arguments or "device" not in arguments or item.get_closest_marker("quick") is not None


@pytest.fixture(scope="session")
def device(pytestconfig) -> Device:
    """The one device of the run."""
    return pytestconfig.stash[_DEVICE]


@pytest.fixture(autouse=True)
def _target(device, monkeypatch):
    """The functions with gradients compile for the target of the run too."""
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", device.target)
