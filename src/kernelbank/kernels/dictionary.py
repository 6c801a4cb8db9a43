"""Dictionaries: ordered kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import overload

import numpy as np

from ..utils import validation as check
from .base import Kernel
from .elementary import Gaussian


class Dictionary:
    """An ordered, immutable set of kernels. `+` joins two dictionaries.

    >>> import kernelbank as kb
    >>> both = kb.gaussian_grid(0.1, 10, 3) + kb.Dictionary([kb.kernels.Linear(1.0)])
    >>> len(both), both[-1]
    (4, Linear(offset=1.0))
    """

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        remedy = "Give a list of kernels, such as [kb.kernels.Gaussian(1.0)]."
        if isinstance(kernels, (str, bytes)) or not isinstance(kernels, Iterable):
            raise check.refuse("kernels", "be a list of kernels", kernels, remedy, "Dictionary")
        self._kernels = tuple(kernels)
        if not self._kernels:
            raise check.refuse("kernels", "hold at least one kernel", [], remedy, "Dictionary")
        for kernel in self._kernels:
            if not isinstance(kernel, Kernel):
                if hasattr(kernel, "learner"):  # a slot
                    remedy = "Give slots as slots=[...], without a dictionary."
                raise check.refuse("kernels", "hold only kernels", kernel, remedy, "Dictionary")

    def __len__(self) -> int:
        return len(self._kernels)

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self._kernels)

    @overload
    def __getitem__(self, index: int) -> Kernel: ...

    @overload
    def __getitem__(self, index: slice) -> Dictionary: ...

    def __getitem__(self, index: int | slice) -> Kernel | Dictionary:
        if isinstance(index, slice):
            return Dictionary(self._kernels[index])
        return self._kernels[index]

    def __add__(self, other: object) -> Dictionary:
        if not isinstance(other, Dictionary):
            return NotImplemented
        return Dictionary([*self, *other])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dictionary) and self._kernels == other._kernels

    def __hash__(self) -> int:
        return hash(self._kernels)

    def __repr__(self) -> str:
        if len(self) <= 4:
            return f"Dictionary([{', '.join(map(repr, self))}])"
        return f"Dictionary({len(self)} kernels, {self[0]!r} ... {self[-1]!r})"


def gaussian_grid(low: float, high: float, count: int, spacing: str = "geometric") -> Dictionary:
    """`count` Gaussian kernels with widths from `low` to `high`.

    Parameters
    ----------
    low, high : positive numbers, in the units of the inputs.
    count : how many kernels.
    spacing : "geometric" (equal ratios, for unknown scales) or "linear" (equal steps, as in the
        paper's experiment).

    >>> [k.width for k in gaussian_grid(1, 4, 3)]
    [1.0, 2.0, 4.0]
    >>> [k.width for k in gaussian_grid(1, 4, 3, spacing="linear")]
    [1.0, 2.5, 4.0]
    """
    owner = "gaussian_grid"
    smallest = check.number("low", low, owner, "Give the smallest width, above 0.", above=0)
    largest = check.number("high", high, owner, "Give the largest width, at least low.", above=0)
    if largest < smallest:
        raise check.refuse("high", f"be >= low ({smallest:g})", high, "Exchange the two.", owner)
    number = check.count("count", count, owner, "Give how many kernels you want.")
    check.choice("spacing", spacing, owner, ("geometric", "linear"))
    if spacing == "linear":
        widths = np.linspace(smallest, largest, number)
    else:
        widths = np.geomspace(smallest, largest, number)
    return Dictionary([Gaussian(float(width)) for width in widths])
