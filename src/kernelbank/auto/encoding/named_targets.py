"""Targets with names, given to an `AutoBank`: dictionaries and tables as arrays of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from ...errors import InvalidArgument
from ...utils import validation as check
from . import tables
from .column_encoder import NUMBER


def read_targets(
    y: Any, known: Sequence[str] | None, *, one: bool
) -> tuple[Any, tuple[str, ...] | None]:
    """Targets in the order of the bank's, and their names; without names y as it is, and None.

    Parameters
    ----------
    y : for `one` row a dictionary or a series by names, for several rows a table.
    known : the names of the bank's targets; None if these are the first.
    """
    if one and tables.is_named_row(y):
        columns = tables.read_row(y, "y")
    elif not one and tables.is_table(y):
        columns = tables.read_table(y, "y")
    else:
        return y, None
    if known is not None:
        columns = _in_order(columns, known, one=one)
    numbers = [_numbers(name, values) for name, values in columns.items()]
    array = np.column_stack(numbers) if numbers else np.zeros((1, 0))
    return array[0] if one else array, tuple(columns)


def _in_order(columns: tables.Columns, known: Sequence[str], *, one: bool) -> tables.Columns:
    """The columns of known targets. One that a dictionary does not have is missing in this row."""
    unknown = [name for name in columns if name not in known]
    absent = [] if one else [name for name in known if name not in columns]
    if unknown or absent:
        rule = f"have the targets {', '.join(map(repr, known))}, as in the rows learned so far"
        remedy = "Give these names, in any order, NaN where a target is missing."
        raise check.refuse("y", rule, list(columns), remedy)
    return {name: columns.get(name, np.array([math.nan])) for name in known}


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
    """(n,): the targets of one name; NaN for those that are missing, which may be None too."""
    try:
        return tables.codes_of(name, NUMBER, values, {})
    except InvalidArgument:
        wrong = next((one for one in values.tolist() if not _is_number(one)), values[0])
        remedy = (
            "Give a number, or float('nan') where the target is missing; "
            'kb.AutoBank("classification") learns labels.'
        )
        raise check.refuse("y", f"hold numbers for {name!r}", wrong, remedy) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) or tables.is_missing(value)


def with_missing_as_nan(values: Any) -> Any:
    """Targets without names, with NaN for None and pandas.NA; anything else as it is."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):  # ragged
        return values
    if array.dtype.kind != "O":
        return values
    members = array.ravel().tolist()
    if not members or not all(_is_number(one) for one in members):
        return values
    return _numbers("y", np.array([*members, None], dtype=object)[:-1]).reshape(array.shape)
