"""Inputs without names, given to an `AutoBank`: checked, as arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...utils import validation as check
from ...utils.validation import Floats


def checked_inputs(X: Any, dimension: int | None, name: str, *, one: bool = False) -> Floats:
    """Inputs as (n, d), NaN where a value is missing; `one` for a single row.

    Rows without columns, and None for a single row, are a series without inputs: a column of 0.
    """
    if X is None and one:
        X = np.zeros(1)
    shape = "a number or have the shape (d,)" if one else "have the shape (n, d)"
    remedy = "Give one sample as a (d,) array." if one else "Give one sample per row."
    array = check.floats(name, X, remedy)
    if one:
        if array.ndim > 1 or array.size == 0:
            raise check.refuse(name, f"be {shape}", array.shape, remedy)
        array = array.reshape(1, -1)
    elif array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise check.refuse(name, shape, array.shape, remedy)
    if array.shape[1] == 0 and len(array):  # a series without inputs
        array = np.zeros((len(array), 1))
    if array.size == 0:
        rule = "have at least one row and one column"
        remedy = "Leave the call out where there are no rows."
        raise check.refuse(name, rule, array.shape, remedy)
    check.check_width(array.shape[1], dimension, name)
    if not check.is_within_range(array):
        check.within_range(name, np.where(np.isnan(array), 0.0, array))
    return array
