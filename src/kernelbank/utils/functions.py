"""Functions of arrays: those of the core element by element, and those that users write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from . import validation as check
from .validation import Floats


def elementwise(function: Callable[..., Floats], spec: tuple[Any, ...], *numbers: Any) -> Any:
    """function(spec, *vectors) of the core for numbers or arrays, which are broadcast."""
    arrays = np.broadcast_arrays(*(np.asarray(x, float) for x in numbers))
    values = function(spec, *(np.ravel(array) for array in arrays))
    return values.reshape(arrays[0].shape)[()]


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without NumPy's warnings of overflow: a bank reports a slot that diverges."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            return function(*arguments)

    return call


def real_numbers(value: Any, shape: tuple[int, ...], name: str) -> Floats:
    """What a user's function returned, as floats; refused unless it is numbers of that shape."""
    array = np.asarray(value)
    if array.shape != shape or array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name!r} must return real numbers of shape {shape}; got "
            f"{array.dtype} of shape {array.shape}. Let it work on whole arrays."
        )
    return array.astype(float)


class UsersFunctions:
    """A component of functions that a user writes: in Python, or in C, given by their addresses.

    An address has a meaning in one process only, so such a component cannot be pickled.
    """

    function_fields: ClassVar[tuple[str, ...]]
    """The fields that hold the functions."""

    @property
    def in_c(self) -> bool:
        """Whether the functions are in C."""
        return isinstance(getattr(self, self.function_fields[0]), int)

    def check_functions(self, remedy: str) -> None:
        """Refuse what is neither callable nor an address, and a mixture of both."""
        owner = type(self).__name__
        for name in self.function_fields:
            function = getattr(self, name)
            whole = isinstance(function, Integral) and not isinstance(function, bool)
            if whole and int(function) > 0:
                object.__setattr__(self, name, int(function))
            elif not callable(function):
                rule = "be callable, or the address of a C function, an int above 0"
                raise check.refuse(name, rule, function, remedy, owner)
        in_c = [name for name in self.function_fields if not callable(getattr(self, name))]
        if in_c and len(in_c) < len(self.function_fields):
            remedy = "Give only functions in Python, or only addresses of C functions."
            rule = "be in Python, as the other function is"
            raise check.refuse(in_c[0], rule, getattr(self, in_c[0]), remedy, owner)

    def __getstate__(self) -> dict[str, Any]:
        if self.in_c:
            raise check.refuse(
                self.function_fields[0],
                "be in Python for a bank that is pickled or on Ray: a C function's address has a "
                "meaning in this process only",
                getattr(self, self.function_fields[0]),
                "Give a Python function, or use kb.engines.Threads; bank.save works, with "
                "components= in kb.load.",
                type(self).__name__,
            )
        return super().__getstate__()  # type: ignore[return-value]

    def __copy__(self) -> Any:
        settings = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return type(self)(**settings)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()
