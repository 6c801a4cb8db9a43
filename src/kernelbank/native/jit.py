"""How functions are compiled, and when machine code on disk is out of date.

Numba's file cache looks only at the file that defines a function. Our functions call formulas and
SIMD functions of other files: an edit there would go unnoticed, and old machine code would run.
Each cached function therefore carries a fingerprint of all the code that it is compiled from: its
own, and that of every function and constant that it reaches. An edit that changes no code, such as
one of a docstring, leaves the fingerprint as it is.
"""

import hashlib
import inspect
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.registry import CPUDispatcher

_NATIVE = Path(__file__).parent


class _Fingerprint:
    """The hash of a function and of everything that it reaches by name or by closure."""

    def __init__(self, function: Any) -> None:
        self._hash = hashlib.sha256(_native_digest())
        self._seen: set[int] = set()
        self._add_function(function)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def _add_value(self, value: Any) -> None:
        if isinstance(value, CPUDispatcher):
            self._add_function(value.py_func)
        elif isinstance(value, FunctionType):
            # Code may reach a plain function through an overload, which stands in the same file.
            file = inspect.getsourcefile(value)
            if file is not None and Path(file).exists():
                self._hash.update(_file_digest(file))
            self._add_function(value)
        elif isinstance(value, np.ndarray):
            self._hash.update(value.tobytes())
        elif not isinstance(value, ModuleType):
            self._hash.update(repr(value).encode() if _is_plain(value) else b"object")

    def _add_function(self, function: Any) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        self._add_code(function.__code__, function.__globals__)
        for cell in function.__closure__ or ():
            self._add_value(cell.cell_contents)

    def _add_code(self, code: CodeType, names: dict[str, Any]) -> None:
        self._hash.update(code.co_code)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._add_code(constant, names)
            elif not isinstance(constant, str):  # docstrings
                self._hash.update(repr(constant).encode())
        for name in code.co_names:
            self._hash.update(name.encode())
            if name in names:
                self._add_value(names[name])


@cache
def _file_digest(file: str) -> bytes:
    """The hash of a file's code, without docstrings and comments."""
    digest = hashlib.sha256()
    waiting = [compile(Path(file).read_bytes(), file, "exec", dont_inherit=True, optimize=2)]
    while waiting:
        code = waiting.pop()
        digest.update(code.co_code)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                waiting.append(constant)
            else:
                unordered = isinstance(constant, frozenset)
                digest.update(repr(sorted(map(repr, constant)) if unordered else constant).encode())
        digest.update(repr(code.co_names).encode())
    return digest.digest()


@cache
def _native_digest() -> bytes:
    """The hash of this package: intrinsics and types are not among the globals of a function."""
    return b"".join(_file_digest(str(file)) for file in sorted(_NATIVE.glob("*.py")))


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, str, np.generic, type(None)))


def cached(compiled: Any, function: Any) -> Any:
    """Let `compiled`, made of a Python function, keep its machine code on disk, if it can."""
    try:
        compiled.enable_caching()
    except RuntimeError:  # no writable folder: compile in every process instead
        return compiled
    compiled._cache._cache_file._source_stamp = _Fingerprint(function).hexdigest()
    return compiled


def entry(function: Any) -> Any:
    """Compile `function` at its first call from Python; it runs without the interpreter's lock.

    The NumPy error model lets 0/0 be NaN instead of raising. No fast-math: every sum is taken in
    the order in which it is written, so that blocks equal the loop over samples bit for bit.
    """
    return cached(numba.njit(nogil=True, error_model="numpy")(function), function)


def inline(function: Any) -> Any:
    """Compile `function` for calls from compiled functions only, which takes half the time.

    It is not cached by itself: it becomes part of the functions that call it. Looking up each of
    more than a hundred on disk would double the time of the import.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(nogil=True, error_model="numpy", **options)(function)
