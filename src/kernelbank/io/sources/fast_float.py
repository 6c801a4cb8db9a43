"""A column of texts to numbers at once, by pyarrow if it is there, else by Python's `float`.

Both round correctly, so they give the same bits; pyarrow is quicker. Whatever is not
plainly a number is left to `cells.number`, which knows all words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...utils.validation import Floats


def texts_to_numbers(values: Sequence[str]) -> Floats | None:
    """The numbers, NaN for empty texts; None if there is anything but numbers and empty texts."""
    arrow = _arrow()
    return _by_float(values) if arrow is None else _by_arrow(values, arrow)


def _by_arrow(values: Sequence[str], arrow: Any) -> Floats | None:
    empty = values.count("")
    texts = [value or None for value in values] if empty else values
    try:
        numbers = arrow.array(texts, arrow.string()).cast(arrow.float64())
    except ValueError:  # arrow's errors and those of encoding are ValueErrors
        return None
    array = np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    # A text of NaN may be more than that: nan(0) is none of our words.
    return array if np.count_nonzero(np.isnan(array)) == empty else None


def _by_float(values: Sequence[str]) -> Floats | None:
    try:
        array = np.fromiter(map(float, values), np.float64, len(values))
    except ValueError:
        return None
    # float takes 1_000, which is more likely a name than a number.
    return None if "_" in "".join(values) else array


@cache
def _arrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError:
        return None
    return pyarrow
