"""Tables of pandas, polars and arrow, and dictionaries, as columns of numbers, times or categories.

None of these libraries is imported: a table is known by what it offers.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from ...errors import InvalidArgument
from ...io.times import parse_time
from ...utils.validation import Floats
from .category_statistics import category_code
from .column_encoder import CATEGORY, NUMBER, TIME

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND = np.timedelta64(1, "s")

Columns = dict[str, np.ndarray]
"""Values by the name of their column: arrays of numbers, times or Python objects."""


def is_table(X: Any) -> bool:
    """Whether this is a table of pandas, polars or arrow."""
    if hasattr(X, "iloc"):  # pandas; a series is no table
        return hasattr(X, "columns")
    return hasattr(X, "column_names") or (hasattr(X, "columns") and hasattr(X, "get_column"))


def is_named_row(x: Any) -> bool:
    """Whether this is one row with names: a dictionary, or a pandas series by names."""
    if isinstance(x, Mapping):
        return True
    index = getattr(x, "index", None) if hasattr(x, "iloc") else None
    return index is not None and len(index) > 0 and all(isinstance(name, str) for name in index)


def read_table(X: Any, name: str) -> Columns:
    """The columns of a table by name, in their order."""
    if hasattr(X, "iloc"):
        names: Iterable[Any] = X.columns
        arrays = [_pandas_array(X.iloc[:, i]) for i in range(X.shape[1])]
    elif hasattr(X, "column_names"):
        names = X.column_names
        arrays = [_arrow_array(X.column(i)) for i in range(len(X.column_names))]
    else:
        names = X.columns
        arrays = [X.get_column(one).to_numpy() for one in X.columns]
    texts = [str(one) for one in names]
    twice = next((one for one in texts if texts.count(one) > 1), None)
    if twice is not None:
        raise InvalidArgument(f"'{name}' has two columns {twice!r}. Give each column its own name.")
    return dict(zip(texts, arrays, strict=True))


def read_row(x: Any, name: str) -> Columns:
    """The values of one named row, as columns of length one."""
    columns: Columns = {}
    for key, value in x.items():
        if str(key) in columns:
            raise InvalidArgument(f"'{name}' has two values of {str(key)!r}. Give one.")
        array = np.empty(1, dtype=object)
        array[0] = value.item() if isinstance(value, (np.number, np.bool_)) else value
        columns[str(key)] = array
    return columns


def text_columns(X: Any) -> list[str]:
    """The columns of a table that hold no numbers; none of anything else."""
    if not is_table(X):
        return []
    columns = read_table(X, "X")
    return [name for name, values in columns.items() if kind_of(name, values) != NUMBER]


def _pandas_array(column: Any) -> np.ndarray:
    if hasattr(column.dtype, "categories"):
        return _category_array(column.tolist())
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "M":
        return np.asarray(column.to_numpy(dtype="datetime64[ns]"))  # UTC
    return np.asarray(column, dtype=None if kind == "m" else object)


def _category_array(values: Iterable[Any]) -> np.ndarray:
    """Categories as text, None where they are missing; they may be numbers."""
    texts = [None if is_missing(value) else as_category(value) for value in values]
    return np.array([*texts, None], dtype=object)[:-1]


def _arrow_array(column: Any) -> np.ndarray:
    if hasattr(column.type, "index_type"):  # a dictionary of categories
        return _category_array(column.to_pylist())
    chunked = hasattr(column, "chunks")
    return np.asarray(column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False))


# --- kinds ----------------------------------------------------------------------------------------


def kind_of(name: str, values: np.ndarray) -> str:
    """The kind of a column, by its type or, for Python objects, by its values."""
    if values.dtype.kind in "biufm":
        return NUMBER
    if values.dtype.kind == "M":
        return TIME
    found: dict[str, Any] = {}
    for value in values.tolist():
        if not is_missing(value):
            found.setdefault(_kind_of_value(name, value), value)
    if len(found) > 1:
        (one, first), (two, second) = list(found.items())[:2]
        raise InvalidArgument(
            f"column {name!r} must hold values of one kind; got {first!r} ({one}) and {second!r} "
            f"({two}). Make all of them text for categories, such as X[{name!r}].astype(str), or "
            "all of them numbers, with NaN where one is missing."
        )
    return next(iter(found), NUMBER)


def _kind_of_value(name: str, value: Any) -> str:
    if isinstance(value, str):
        return CATEGORY
    if isinstance(value, (datetime.date, np.datetime64)):
        return TIME
    if isinstance(value, (Real, Decimal, np.bool_, datetime.timedelta, datetime.time)):
        return NUMBER
    raise InvalidArgument(
        f"column {name!r} must hold numbers, text or times; got {_shown(value)}. Give a column for "
        "each number in it, or leave it out."
    )


def is_missing(value: Any) -> bool:
    """None, NaN, pandas.NA or pandas.NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, Decimal)) and math.isnan(value)


# --- codes ----------------------------------------------------------------------------------------


def codes_of(name: str, kind: str, values: np.ndarray, texts: dict[float, str]) -> Floats:
    """(n,): a column as codes; categories are added to `texts`."""
    if kind == NUMBER:
        return _numbers(name, values)
    if kind == TIME:
        if values.dtype.kind == "M":
            return _seconds(values)
        return np.array([_time(name, value) for value in values.tolist()])
    codes = np.full(len(values), np.nan)
    for i, value in enumerate(values.tolist()):
        text = "" if is_missing(value) else as_category(value)
        if text:
            codes[i] = code = category_code(text)
            texts[code] = text
    return codes


def as_category(value: Any) -> str:
    """A value as the text of a category, as a source of `kernelbank run` has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _numbers(name: str, values: np.ndarray) -> Floats:
    if values.dtype.kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    if values.dtype.kind == "m":
        return np.where(np.isnat(values), np.nan, values / _SECOND)
    if values.dtype.kind != "O":
        raise _not_a_number(name, values.tolist()[0] if len(values) else None)
    return np.array([_number(name, value) for value in values.tolist()])


def _number(name: str, value: Any) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    if isinstance(value, (Real, Decimal, np.bool_)):
        try:
            return float(value)
        except OverflowError:
            return math.inf  # refused with all that is too large
    raise _not_a_number(name, value)


def _not_a_number(name: str, value: Any) -> InvalidArgument:
    return InvalidArgument(
        f"column {name!r} must hold numbers, as in the rows learned so far; got {_shown(value)}. "
        "Give a number, or float('nan') if it is missing; to use it as categories, start a new "
        "bank in whose first row it is text."
    )


def _time(name: str, value: Any) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, np.datetime64):
        return float(_seconds(np.array([value]))[0])
    if isinstance(value, datetime.date):
        if not isinstance(value, datetime.datetime):
            value = datetime.datetime(value.year, value.month, value.day)
        moment = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return (moment - _EPOCH).total_seconds()
    try:
        if isinstance(value, (str, Real)) and not isinstance(value, bool):
            return parse_time(str(value))
    except ValueError as error:
        raise InvalidArgument(f"column {name!r}: {_shown(value)} {error}.") from None
    raise InvalidArgument(
        f"column {name!r} must hold times, as in the rows learned so far; got {_shown(value)}. "
        "Give a datetime, or None if it is missing."
    )


def _seconds(values: np.ndarray) -> Floats:
    """datetime64 as seconds since 1970; NaN for NaT."""
    if values.dtype.itemsize and np.datetime_data(values.dtype)[0] in ("D", "M", "Y", "W", "h"):
        values = values.astype("datetime64[s]")
    seconds = (values - np.datetime64(0, "s")) / _SECOND
    return np.where(np.isnat(values), np.nan, seconds)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
