"""When machine code on disk is out of date.

Functions call formulas and SIMD functions of other files: an edit there must not go unnoticed, or
old machine code would run. Each function therefore carries a fingerprint of all the code that it is
compiled from: its own, and that of every function and constant that it reaches. An edit that
changes no code, such as one of a docstring, leaves the fingerprint as it is.
"""

import hashlib
import inspect
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher

_NATIVE = Path(__file__).parents[1]


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
    return b"".join(
        _file_digest(str(file))
        for file in [_NATIVE / "arguments.py", *sorted((_NATIVE / "llvm").glob("*.py"))]
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, str, np.generic, type(None)))


def fingerprint(function: Any) -> str:
    """The hash of all the code that a function is compiled from."""
    return _Fingerprint(function).hexdigest()
