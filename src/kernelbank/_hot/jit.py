"""How the hot functions are compiled, and when a compiled one on disk is too old to use.

Numba's file cache looks only at the file that defines a function. Ours call formulas and lanes
from other files, so an edit there would go unnoticed and old machine code would run. Each cached
function therefore carries a stamp of every source file from which code is compiled.
"""

import hashlib
from pathlib import Path
from typing import Any

import numba

ROOMS = ("_hot", "combiners", "kernels", "learners", "losses")
"""The folders of the package whose functions may become machine code."""


def _package_stamp() -> str:
    package = Path(__file__).parents[1]
    files = sorted(file for room in ROOMS for file in (package / room).rglob("*.py"))
    facts = [(f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


_STAMP = _package_stamp()


def cached(compiled: Any) -> Any:
    """Let `compiled` (a dispatcher or C callback) keep its machine code on disk, if it can."""
    try:
        compiled.enable_caching()
    except RuntimeError:  # no folder to write to: compile in every process instead
        return compiled
    index = compiled._cache._cache_file
    index._source_stamp = (index._source_stamp, _STAMP)
    return compiled


def hot(function: Any) -> Any:
    """Compile `function` at its first call; it runs without the interpreter's lock.

    The NumPy error model lets 0/0 be NaN instead of raising. No fast-math: every sum is taken in
    the order in which it is written, which is what makes blocks equal the loop bit for bit.
    """
    return cached(numba.njit(nogil=True, error_model="numpy")(function))


def part(function: Any) -> Any:
    """Compile `function` for use by hot functions only: no way in from Python, half the time.

    Not kept on disk by itself: it is inside those that use it, and asking the disk for each of more
    than a hundred would double the time of the import.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(nogil=True, error_model="numpy", **options)(function)
