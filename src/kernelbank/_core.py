"""Loads the compiled core where there are several builds of it: in wheels for x86-64.

Such a wheel has one build per level of processors, `_core_v2` and `_core_v3`, with the same bits.
This module becomes the one that this processor runs fastest, under its own name,
`kernelbank._core`; the variable KERNELBANK_LEVEL=v2 asks for the other. Everywhere else there is
one build, `_core` with the suffix of compiled modules, which Python takes before this file.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location

LEVELS = ("v2", "v3")


def find_build(level: str) -> str:
    """The file of the build for a level."""
    folder = os.path.dirname(__file__)
    for suffix in EXTENSION_SUFFIXES:
        path = os.path.join(folder, f"_core_{level}{suffix}")
        if os.path.exists(path):
            return path
    raise ImportError(f"kernelbank has no file _core_{level}. Install it again.")


def choose_level() -> str:
    """The highest level that this processor has, or the one that is asked for."""
    try:
        from ._processor import level
    except ImportError as error:
        version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        raise ImportError(
            f"kernelbank has no compiled core for {version} on this machine. In a clone `make run` "
            "and `make test` compile it; else install kernelbank again for this Python. Your data "
            "and saved files are not affected."
        ) from error
    if level < 2:
        raise ImportError(
            "kernelbank needs a processor of level x86-64-v2 (SSE4.2, from about 2009 on)."
        )
    usable = LEVELS[: level - 1]
    asked = os.environ.get("KERNELBANK_LEVEL") or usable[-1]
    if asked not in usable:
        raise ImportError(
            f"KERNELBANK_LEVEL must be one of {', '.join(usable)} on this processor; got "
            f"{asked!r}. Leave it unset to use the highest."
        )
    return asked


_spec = spec_from_file_location(__name__, find_build(choose_level()))
assert _spec is not None
assert _spec.loader is not None
_module = module_from_spec(_spec)
_spec.loader.exec_module(_module)
sys.modules[__name__] = _module
