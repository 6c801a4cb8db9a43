"""Traces as pandas data frames. pandas is imported when the first one is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ..errors import KernelBankError

if TYPE_CHECKING:
    import pandas


def frame(
    samples: int,
    arrays: Mapping[str, np.ndarray],
    names: Mapping[str, Sequence[Sequence[str]]],
) -> pandas.DataFrame:
    """A data frame with one row per sample.

    An (n,) array is a column with the name of its field, an (n, k) array k columns `field: name`,
    an (n, K, k) array K k columns `field: name: name`. So all columns of a field are
    `frame.filter(regex="^weights: ")`; file formats have no nested columns.

    Parameters
    ----------
    samples : n.
    arrays : (n, ...), by field.
    names : by field, the names along each axis after the first; equal ones get a number, from the
        second on.
    """
    try:
        import pandas
    except ImportError:
        raise KernelBankError(
            "to_frame() needs pandas, which is not installed. Install it with: pip install pandas"
        ) from None
    rows = pandas.RangeIndex(samples, name="sample")
    parts = [pandas.DataFrame(index=rows)]
    for field, array in arrays.items():
        along = [unique(own) for own in names.get(field, ())]
        headings = [": ".join([field, *parts_of]) for parts_of in product(*along)]
        values = array.reshape(samples, len(headings))
        parts.append(pandas.DataFrame(values, index=rows, columns=headings))
    return pandas.concat(parts, axis=1)  # copies: to change the frame does not change the trace


def unique(names: Iterable[str]) -> list[str]:
    """The names in their order, with a number behind each that repeats.

    >>> unique(["a", "b", "a", "a (2)", "a"])
    ['a', 'b', 'a (2)', 'a (2) (2)', 'a (3)']
    """
    seen: Counter[str] = Counter()
    taken: dict[str, None] = {}  # in order
    for name in names:
        own = name
        while own in taken:
            seen[name] += 1
            own = f"{name} ({seen[name] + 1})"
        taken[own] = None
    return list(taken)
