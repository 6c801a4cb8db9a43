"""The compiled library: whether there is one that fits, and the addresses of its functions.

Compiled functions are written in Python and translated ahead of time into a shared library, one per
level of processors: x86-64-v3 (AVX2 and FMA) and x86-64-v2 for older ones. Wheels contain it. In a
checkout it is built, or rebuilt when a source has changed, when it is first needed, which takes
Numba and a linker. Where there is no library (another kind of processor, no linker) the functions
are compiled just in time, if Numba is installed. All ways give the same bits.

Length and hash of a library are compared before it is opened: a process that runs a truncated one
is killed by the system. What is damaged, stale or not a library is built again.

The environment variable KERNELBANK_NATIVE chooses: "library", "jit", or nothing for this order.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import stat
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import NativeCodeMissing
from .progress import tell

PACKAGE = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "lib"
LEVELS = {
    "x86-64-v3": "+avx2,+fma,+avx,+sse4.2,+bmi,+bmi2,+lzcnt,+movbe,+f16c,+popcnt",
    "x86-64-v2": "+sse4.2,+popcnt",
}
"""The levels of processors, the newest first, and their features as LLVM names them."""

_SOURCES = ("native", "kernels", "losses", "learners", "combiners", "bank", "auto")
"""The folders of the package with compiled functions."""


def processor_level() -> str | None:
    """The level of this processor; None if there is no library for it."""
    if platform.machine().lower() not in ("x86_64", "amd64") or sys.platform != "linux":
        return None
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as features
    except ImportError:
        from numpy.core._multiarray_umath import __cpu_features__ as features
    if features.get("AVX2") and features.get("FMA3"):
        return "x86-64-v3"
    return "x86-64-v2" if features.get("SSE42") and features.get("POPCNT") else None


def source_files() -> list[Path]:
    """The files that may hold compiled functions, and those that compile them."""
    return [file for folder in _SOURCES for file in sorted((PACKAGE / folder).rglob("*.py"))]


def source_digest() -> str:
    """The hash of all files that may hold compiled functions."""
    digest = hashlib.sha256()
    for file in source_files():
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def library_path(level: str) -> Path:
    """Where the library of a level is; its description is beside it."""
    return FOLDER / f"kernelbank-{level}.so"


def describe(data: bytes, sources: str) -> dict[str, Any]:
    """What stands beside a library: what it was built from, its length and its hash."""
    return {
        "sources": sources,
        "bytes": len(data),
        "library": hashlib.sha256(data).hexdigest(),
    }


class Library:
    """An open library."""

    def __init__(self, level: str) -> None:
        self.level = level
        self._library = ctypes.CDLL(str(library_path(level)))

    def address(self, symbol: str) -> int:
        """The address of a function."""
        function = getattr(self._library, symbol)
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def __contains__(self, symbol: str) -> bool:
        return hasattr(self._library, symbol)


def problem(level: str) -> str | None:
    """Why the library of a level cannot be used; None if it can."""
    path = library_path(level)
    try:
        description = json.loads(_read(path.with_suffix(".json"), _LONGEST_DESCRIPTION))
        data = _read(path, description["bytes"])
        intact = describe(data, description["sources"]) == description
        fits = description["sources"] == source_digest()
    except (FileNotFoundError, NotADirectoryError) as error:
        return f"there is no {error.filename}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        return f"{path} cannot be read ({error})"
    if not intact:
        return f"{path} is damaged"
    if data[:6] != _ELF_64 or int.from_bytes(data[18:20], "little") != _X86_64:
        return f"{path} is not a library for {platform.machine()}"
    return None if fits else f"{path} was built from other sources"


_LONGEST_DESCRIPTION = 10_000
_ELF_64 = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_X86_64 = 62


def _read(path: Path, most: int) -> bytes:
    """The bytes of a regular file, if there are not too many: a pipe would never end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path.name} is not a file")
    if found.st_size > most:
        raise ValueError(f"{path.name} has {found.st_size} bytes instead of {most}")
    return path.read_bytes()


def build_command(*arguments: str) -> list[str]:
    """The command that runs the builder of this very package, wherever it was imported from."""
    code = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); "
    code += "from kernelbank.native.build import main; main()"
    return [sys.executable, "-c", code, *arguments]


def _build(level: str, why: str) -> str | None:
    """Build the library in another process; why there is none after that, or None.

    Processes that need it at the same time wait for the first of them (see `build`).
    """
    import subprocess  # slow to import, and rarely needed

    tell(f"kernelbank: building compiled code for {level} ({why}); this happens once ...")
    start = time.perf_counter()
    done = subprocess.run(
        build_command("--level", level, "--if-needed"),
        env={**os.environ, "KERNELBANK_NATIVE": "jit", "KERNELBANK_DEBUG": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return f"{why}, and it cannot be built here ({lines[-1] if lines else 'it failed'})"
    tell(f"kernelbank: built in {time.perf_counter() - start:.0f} s.")
    return problem(level)


def _open() -> Library | None:
    """The library, built first if it has to be; None to compile just in time."""
    wanted = os.environ.get("KERNELBANK_NATIVE", "")
    if wanted == "jit":
        return None
    level = os.environ.get("KERNELBANK_LEVEL") or processor_level()
    has_numba = find_spec("numba") is not None
    why: str | None = f"there is no library for {platform.machine()} on {sys.platform}"
    if level is not None:
        why = problem(level)
        if why is not None and has_numba:
            why = _build(level, why)
        if why is None:
            try:
                return Library(level)
            except OSError as error:  # such as a folder whose files may not be executed
                why = f"{library_path(level)} cannot be loaded ({error})"
    if wanted == "library" or not has_numba:
        raise NativeCodeMissing(
            f"kernelbank has no compiled code to run: {why}. Install kernelbank again from a wheel "
            "for this platform, or install Numba (pip install numba) to compile it here. "
            "Your data and saved files are not affected."
        )
    tell(f"kernelbank: compiling just in time with Numba, because {why}.")
    return None


LIBRARY: Library | None = _open()
COMPILING: bool = LIBRARY is None
"""Whether functions are compiled in this process."""


def compiled_only(*_: Any) -> Any:
    """Stands for the functions that exist inside compiled code only."""
    raise TypeError("this function can be called from compiled code only")
