"""A user's own kernel, as a NumPy function or a C function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..io.specs import callable_field
from ..utils import validation as check
from ..utils.validation import Floats, UsersFunctions, quiet, real_numbers
from .base import CoreSpec, Kernel


@dataclass(frozen=True)
class Custom(UsersFunctions, Kernel):
    """A kernel from a function k(X, Z) -> (n, m) of NumPy arrays (n, d) and (m, d).

    The function must be symmetric and positive definite, and must give the same values for the
    same inputs. It is called with one row of X at a time, always in the same shapes, so that
    blocks equal the loop over samples bit for bit.

    A function in C is faster: give its address, an int. It is called for two inputs of d numbers
    each as ``double k(const double* x, const double* t, int64_t d)``, from several threads, and
    must stay loaded. ``numba.cfunc(...).address`` is such an address, and ctypes makes one. It
    belongs to this process: a bank with it can be saved, but neither pickled nor run on Ray.

    Parameters
    ----------
    function : the kernel, or the address of a C function.
    name : its name in a saved bank; `kb.load(path, components={name: kernel})` restores it.

    >>> import numpy as np
    >>> def cauchy(X, Z):
    ...     return 1 / (1 + ((X[:, None] - Z[None]) ** 2).sum(axis=2))
    >>> Custom(cauchy)([[0.0]], [[1.0]]).tolist()
    [[0.5]]

    A C function, here one that ctypes makes of a Python function:

    >>> import ctypes as c
    >>> numbers = c.POINTER(c.c_double)
    >>> @c.CFUNCTYPE(c.c_double, numbers, numbers, c.c_int64)
    ... def in_c(x, t, d):
    ...     return 1 / (1 + sum((x[k] - t[k]) ** 2 for k in range(d)))
    >>> Custom(c.cast(in_c, c.c_void_p).value, name="cauchy")([[0.0]], [[1.0]]).tolist()
    [[0.5]]
    """

    function: Callable[[Any, Any], Any] | int = field(repr=False, metadata=callable_field())
    name: str = ""
    function_fields: ClassVar[tuple[str, ...]] = ("function",)

    def __post_init__(self) -> None:
        self.check_functions("Give a function k(X, Z) that returns an (n, m) array.")
        name = self.name or getattr(self.function, "__name__", "custom")
        if not isinstance(name, str):
            raise check.refuse("name", "be text", name, "Give a short name.", "Custom")
        object.__setattr__(self, "name", name)

    def __call__(self, X: Any, Z: Any) -> Floats:
        if not callable(self.function):
            return super().__call__(X, Z)
        left = check.samples(X, None)
        right = check.samples(Z, left.shape[1], "Z")
        values = self.function(left.copy(), right.copy())
        return real_numbers(values, (len(left), len(right)), self.name)

    def core_spec(self, dimension: int) -> CoreSpec:
        function, everything = self.function, tuple(range(dimension))
        statistic: tuple[Any, ...] = ("c_function", 0.0, everything, function)
        if callable(function):
            statistic = ("python", 0.0, everything, quiet(function), self.name, function)
        return ("identity", statistic, (), ())

    @property
    def in_python(self) -> bool:
        return not self.in_c

    @property
    def structure_key(self) -> tuple[Any, ...]:
        return ("Custom", self.function, self.name)
