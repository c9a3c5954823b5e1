"""Builds the native library with CMake and ninja and puts it beside the Python files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
LIBRARY = "libtilelang_pto.so"


class CMakeBuild(build_ext):
    """``build_ext`` whose only extension is the CMake project."""

    def get_ext_filename(self, fullname: str) -> str:
        return os.path.join(*fullname.split(".")[:-1], LIBRARY)

    def get_outputs(self) -> list[str]:
        return [os.path.join(self.build_lib, "tilelang_pto", LIBRARY)]

    def build_extension(self, ext: Extension) -> None:
        cmake, ninja = shutil.which("cmake"), shutil.which("ninja")
        if cmake is None or ninja is None:
            missing = "cmake" if cmake is None else "ninja"
            raise SystemExit(f"tilelang-pto: {missing} not found; install it with: pip install {missing}")
        build = ROOT / "build" / "native"
        configure = [cmake, "-S", str(ROOT), "-B", str(build), "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}"]
        configure += [f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DCMAKE_BUILD_TYPE={os.environ.get('TILELANG_PTO_BUILD_TYPE', 'Release')}"]
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(min(os.cpu_count() or 1, 8)))
        for command in (configure, [cmake, "--build", str(build), "--target", "tilelang_pto", "-j", jobs]):
            if subprocess.call(command) != 0:
                raise SystemExit("tilelang-pto: building the native library failed, see the messages above")
        destination = Path(self.get_ext_fullpath(ext.name))
        destination.parent.mkdir(parents=True, exist_ok=True)
        # A running process may have the old file mapped: replace it, never write into it.
        staged = destination.with_suffix(".so.new")
        shutil.copyfile(build / LIBRARY, staged)
        os.replace(staged, destination)


class PlatformWheel(bdist_wheel):
    """The library has no Python ABI, so one wheel serves every Python 3 of a platform."""

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return "py3", "none", platform


setup(
    ext_modules=[Extension("tilelang_pto.libtilelang_pto", sources=[])],
    cmdclass={"build_ext": CMakeBuild, "bdist_wheel": PlatformWheel},
)
