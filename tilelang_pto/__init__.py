"""A ``pto`` target for TileLang. Importing this package registers it:

>>> import tilelang_pto
>>> @tilelang.jit(target="pto")
... def kernel(...): ...
"""

from __future__ import annotations

from tilelang_pto import backend, device_assert, target
from tilelang_pto.errors import (
    AbiError,
    ConfigurationError,
    FindingError,
    PtoError,
    RaceError,
    ReportError,
    RuntimeModuleError,
    SimulationError,
    SurfaceError,
    ToolchainError,
    UnsupportedError,
)
from tilelang_pto.runtime import native, native_errors, npu_stream
from tilelang_pto.target import StaleTargetWarning, pto_target
from tilelang_pto.version import __version__

__all__ = [
    "AbiError",
    "ConfigurationError",
    "FindingError",
    "PtoError",
    "RaceError",
    "ReportError",
    "RuntimeModuleError",
    "SimulationError",
    "StaleTargetWarning",
    "SurfaceError",
    "ToolchainError",
    "UnsupportedError",
    "__version__",
    "pto_target",
]

native_errors.register()
npu_stream.register()
# Cached and exported kernels hold modules of kind "pto"; TileLang loads them without asking us, so the loader must be there.
native.load_if_built()
target.register()
backend.register()
device_assert.register()
