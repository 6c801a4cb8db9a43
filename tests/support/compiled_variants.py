"""Compiled functions with a part replaced, for the tests of planted faults; they need Numba."""

from types import FunctionType


def variant(function, name, **instead):
    """The same function with other globals. `name` keeps it apart on disk."""
    result = FunctionType(function.__code__, {**function.__globals__, **instead}, name)
    result.__qualname__ = name
    result.__module__ = function.__module__
    return result
