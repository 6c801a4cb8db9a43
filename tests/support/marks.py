"""What many tests need: slow parameters, libraries that are large, and refusals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


def library(name: str) -> Any:
    """A library that only `make test-all` installs; without it the test is skipped."""
    if find_spec(name) is None:
        assert not os.environ.get("KERNELBANK_NO_SKIP"), f"{name} is not installed"
        pytest.skip(f"{name} is not installed")
    return import_module(name)


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


def refuses(words: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Check that a call raises a ValueError, as all that is refused by name, with these words."""
    with pytest.raises(ValueError, match=words):
        call(*arguments, **options)
