"""Marks of parameters: a few are for `make test`, the others for the slow tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def slow(*values: object) -> Any:
    """Values with which a test is slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


def slow_unless(quick: Callable[[Any], bool], values: Iterable[Any]) -> list[Any]:
    """All values (tuples: of several parameters); those that are not quick are slow."""
    found = []
    for value in values:
        several = value if type(value) is tuple else (value,)
        found.append(pytest.param(*several) if quick(value) else slow(*several))
    return found


def first_of_each(kind: Callable[[Any], object], values: Iterable[Any]) -> list[Any]:
    """All values; those of a kind that was there before are slow."""
    seen: set[object] = set()

    def quick(value: Any) -> bool:
        new = kind(value) not in seen
        seen.add(kind(value))
        return new

    return slow_unless(quick, values)
