"""The build backend: setuptools, and the compiled library inside wheels.

A wheel needs Numba to be built, and a linker: that of the package ziglang where there is no C
compiler. An editable install needs neither: there the library is built at its first use.

A wheel holds the library for every level of processors. For this machine alone, in half the time:
pip install --config-settings=level=own kernelbank-0.1.0.tar.gz
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (  # noqa: F401
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

SOURCE = Path(__file__).parents[1] / "src"


def get_requires_for_build_wheel(config_settings=None):
    needed = ["numba>=0.60", "numpy>=1.26"]
    return needed if shutil.which("cc") else [*needed, "ziglang"]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); "
    code += "from kernelbank.native.build import main; main()"
    environment = {**os.environ, "KERNELBANK_NATIVE": "jit"}
    config_settings = dict(config_settings or {})
    level = config_settings.pop("level", "all")
    words = [] if level == "own" else ["--level", level]
    subprocess.run([sys.executable, "-c", code, *words], env=environment, check=True)
    # Any Python 3 on Linux with the C library of 2014 or later: the code needs memmove and memset.
    options = ["--python-tag", "py3", "--plat-name", "manylinux_2_17_x86_64"]
    settings = {**config_settings, "--build-option": options}
    return build_meta.build_wheel(wheel_directory, settings, metadata_directory)
