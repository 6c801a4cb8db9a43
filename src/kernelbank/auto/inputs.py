"""What a user gives as inputs, as numbers for a model: arrays, and rows whose columns have names.

A row with names, of a dictionary or a table, is first written as *codes*, one number per column: a
number as it is, a time as seconds since 1970, a category as a hash of its text; NaN where it is
missing. Codes depend on the row alone. The inputs of the model follow from codes and from what was
learned:

- numbers, as they are;
- per time, sine and cosine of the time of day, week and year;
- per column of categories, the mean of the earlier targets with the same category (of labels: the
  shares of the second to fourth class);
- for each of the first 32 categories of a column an input that is 1 for this category, else 0. They
  stand behind the others. To add inputs takes a while, so they are added in groups: when a category
  without one is learned for the third time, all categories so far get theirs.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from ..bank.serialization import under
from ..errors import FileRefused, InvalidArgument, NumbersAsText
from ..io.cells import MissingValues, parse_number, parse_time
from ..utils import validation as check
from ..utils.validation import LARGEST, Floats
from .state import Arrays, Json, check_finite, describe_parts

NUMBER, TIME, CATEGORY = "number", "time", "category"
KINDS = (NUMBER, TIME, CATEGORY)  # of columns with names

Foreign = Any
"""A table or a row with names of another library: none is imported, they are known by what they
offer."""

# --- arrays ---------------------------------------------------------------------------------------


def checked_inputs(
    X: object,
    dimension: int | None,
    name: str,
    *,
    single: bool = False,
    missing: MissingValues | None = None,
) -> Floats:
    """Inputs as (n, d), NaN where a value is missing; `single` for one row.

    Rows without columns, and None for a single row, are a series without inputs: a column of 0.
    """
    shape, remedy = "have the shape (n, d)", "Give one sample per row."
    if single:
        X = np.zeros(1) if X is None else X
        shape, remedy = "be a number or have the shape (d,)", "Give one sample as a (d,) array."
    array = check.floats(name, X, remedy)
    if single and array.ndim < 2 and array.size:
        array = array.reshape(1, -1)
    elif single or array.ndim not in (1, 2):
        raise check.refuse(name, shape, array.shape, remedy)
    elif array.ndim == 1:
        array = array[:, None]
    if array.shape[1] == 0 and len(array):  # a series without inputs
        array = np.zeros((len(array), 1))
    if array.size == 0:
        rule = "have at least one row and one column"
        remedy = "Leave the call out where there are no rows."
        raise check.refuse(name, rule, array.shape, remedy)
    check.check_width(array.shape[1], dimension, name)
    array = with_gaps(array, missing)
    if not check.is_within_range(array):
        check.within_range(name, np.where(np.isnan(array), 0.0, array))
    return array


def with_gaps(values: np.ndarray, missing: MissingValues | None) -> np.ndarray:
    """Values with NaN, or None among objects, where one means that there is none."""
    if missing is None or values.dtype.kind in "mM":
        return values
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        numbers[np.isin(numbers, missing.numbers)] = np.nan
        return numbers
    out = np.empty(values.size, dtype=object)
    out[:] = [None if means_none(value, missing) else value for value in values.ravel().tolist()]
    return out.reshape(values.shape)


def means_none(value: object, missing: MissingValues | None) -> bool:
    """Whether this is one of the values that mean that there is none, as a number or as text."""
    if missing is None:
        return False
    if isinstance(value, (Real, Decimal)) and not isinstance(value, bool):
        return value in missing.numbers
    return isinstance(value, str) and value.strip() in missing.words


# --- rows with names ------------------------------------------------------------------------------

LISTED = 5  # names that a message lists before the rest is only counted


class EncodedRows(NamedTuple):
    """Rows as codes, in the order of an encoder's columns."""

    codes: Floats
    """(n, columns)."""
    texts: Mapping[float, str]
    """The categories in these rows, by their codes."""


class NamedInputs(NamedTuple):
    """Rows as codes, with the encoder that understands them."""

    codes: Floats
    texts: Mapping[float, str]
    encoder: ColumnEncoder

    @property
    def inputs(self) -> Floats:
        """(n, width): the inputs of the model, by what is known now."""
        return self.encoder.expand(self.codes)


def read_named(
    X: Foreign,
    encoder: ColumnEncoder | None,
    dimension: int | None,
    name: str,
    labels: bool,
    missing: MissingValues | None,
    *,
    single: bool,
) -> NamedInputs | None:
    """Rows with names, or for a bank with names; None for arrays that have none.

    Parameters
    ----------
    X : a table, one row with names, or an array.
    encoder : of the bank, if it has learned names.
    dimension : the width of the inputs, once something was learned.
    missing : values that mean that there is none.
    """
    if isinstance(X, EncodedRows):
        assert encoder is not None
        return NamedInputs(*X, encoder)
    if is_table(X):
        columns = read_table(X, name)
        if single and _size(columns)[0] != 1:
            remedy = "Give a dictionary or a table of one row; `predict` and `run` take several."
            shown = f"a table of {_size(columns)[0]} rows"
            raise check.refuse(name, "be one row", shown, remedy)
    elif is_named_row(X) and (single or not hasattr(X, "iloc")):
        columns = read_row(X, name)
        if not single and any(np.ndim(values[0]) for values in columns.values()):
            remedy = "Make a table of it, such as pandas.DataFrame(X), or give one row."
            raise check.refuse(name, "be a table or an array", X, remedy)
    elif encoder is None:
        return None
    else:
        _check_positions(X, encoder, name, single=single)
        inputs = checked_inputs(X, len(encoder.columns), name, single=single, missing=missing)
        return NamedInputs(inputs, {}, encoder)
    columns = {column: with_gaps(values, missing) for column, values in columns.items()}
    if 0 in _size(columns):
        remedy = "Give at least one; a call without rows can be left out."
        raise check.refuse(name, "have at least one row and one column", _size(columns), remedy)
    if encoder is None:
        kinds = [(column, kind_of(column, values)) for column, values in columns.items()]
        if isinstance(X, dict):
            _warn_of_numbers_as_text(columns, kinds)
        encoder = ColumnEncoder(kinds, labels=labels)
        if dimension is not None:
            _check_without_names(encoder, dimension, name, is_table=is_table(X))
    absent = [column for column in encoder.names if column not in columns]
    unknown = [column for column in columns if column not in encoder.names]
    if absent or unknown:
        reasons = [f"has no {listed(absent)}"] if absent else []
        reasons += [f"has {listed(unknown)}, not learned so far"] if unknown else []
        raise InvalidArgument(
            f"'{name}' must have the columns {listed(encoder.names)}, as in the rows learned so "
            f"far; it {' and '.join(reasons)}. Give these names, in any order "
            "(bank.feature_names_in_ lists them; NaN where a value is missing), or start a new "
            "bank."
        )
    texts: dict[float, str] = {}
    codes = np.column_stack(
        [codes_of(column, kind, columns[column], texts) for column, kind in encoder.columns]
    )
    for row, column in np.argwhere(np.abs(codes) > LARGEST)[:1].tolist():  # squares would overflow
        where = f" in row {row}" if len(codes) > 1 else ""
        raise InvalidArgument(
            f"column {encoder.names[column]!r} must be finite and at most {LARGEST:g} in size; got "
            f"{codes[row, column]!s}{where}. Repair it, or give NaN if it is missing."
        )
    return NamedInputs(codes, texts, encoder)


def _size(columns: Columns) -> tuple[int, int]:
    return (len(next(iter(columns.values()))) if columns else 0, len(columns))


def _warn_of_numbers_as_text(columns: Columns, kinds: list[tuple[str, str]]) -> None:
    """Rows of csv.DictReader hold text only: learned as categories, numbers say little."""
    texts = {name: str(columns[name][0]) for name, kind in kinds if kind == CATEGORY}
    name = next((name for name, text in texts.items() if check.reads_as_number(text)), None)
    if name is not None:
        warnings.warn(
            f"{name!r} is the text {texts[name]!r}, and is taken for a category. If it is a "
            "number, start a new bank and give float(...).",
            NumbersAsText,
            stacklevel=5,
        )


def _check_positions(X: object, encoder: ColumnEncoder, name: str, *, single: bool) -> None:
    """Refuse an array for a bank that knows names, unless all columns are numbers."""
    if not encoder.is_numeric:
        column, kind = next((pair for pair in encoder.columns if pair[1] != NUMBER), ("", TIME))
        what = "categories" if kind == CATEGORY else "times"
        remedy = "Give a dictionary by names." if single else "Give a table with these columns."
        rule = f"have names, as column {column!r} holds {what}"
        raise check.refuse(name, rule, type(X).__name__, remedy)


def _check_without_names(
    encoder: ColumnEncoder, dimension: int, name: str, *, is_table: bool
) -> None:
    """Refuse rows with names for a bank that has learned arrays, unless a table has their order."""
    for column, kind in encoder.columns:
        if kind != NUMBER:
            raise InvalidArgument(
                f"'{name}' has the column {column!r} of {kind} values, but this bank has learned "
                "arrays of numbers. Start a new bank with tables from the first row on."
            )
    check.check_width(len(encoder.columns), dimension, name)
    if not is_table:
        raise InvalidArgument(
            f"'{name}' has names, but this bank has learned arrays, whose columns have none. Name "
            "them in their order, by bank.name_columns([...]), or give an array."
        )


def listed(names: Sequence[object], most: int = LISTED) -> str:
    """The first names for a message, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


# --- tables and dictionaries as columns -----------------------------------------------------------

_SECOND = np.timedelta64(1, "s")

Columns = dict[str, np.ndarray]
"""Values by the name of their column: arrays of numbers, times or Python objects."""


def is_table(X: Foreign) -> bool:
    """Whether this is a table of pandas, polars or arrow.

    None of these libraries is imported: a table is known by what it offers.
    """
    if hasattr(X, "iloc"):  # pandas; a series is no table
        return hasattr(X, "columns")
    return hasattr(X, "column_names") or (hasattr(X, "columns") and hasattr(X, "get_column"))


def is_named_row(x: Foreign) -> bool:
    """Whether this is one row with names: a dictionary, or a pandas series by names."""
    if isinstance(x, Mapping):
        return True
    index = getattr(x, "index", None) if hasattr(x, "iloc") else None
    return index is not None and len(index) > 0 and all(isinstance(name, str) for name in index)


def read_table(X: Foreign, name: str) -> Columns:
    """The columns of a table by name, in their order."""
    if hasattr(X, "iloc"):
        names: Iterable[object] = X.columns
        arrays = [_pandas_array(X.iloc[:, i]) for i in range(X.shape[1])]
    elif hasattr(X, "column_names"):
        names = X.column_names
        arrays = [_arrow_array(X.column(i)) for i in range(len(X.column_names))]
    else:
        names = X.columns
        arrays = [X.get_column(column).to_numpy() for column in X.columns]
    return _by_name(names, arrays, name)


def read_row(x: Foreign, name: str) -> Columns:
    """The values of one named row, as columns of length one."""
    arrays = [np.empty(1, dtype=object) for _ in x.items()]
    for array, (_, value) in zip(arrays, x.items(), strict=True):
        array[0] = value.item() if isinstance(value, (np.number, np.bool_)) else value
    return _by_name(x.keys(), arrays, name)


def _by_name(names: Iterable[object], arrays: list[np.ndarray], name: str) -> Columns:
    texts = [str(column) for column in names]
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        raise InvalidArgument(f"'{name}' has two columns {twice!r}. Give each column its own name.")
    return dict(zip(texts, arrays, strict=True))


def columns_without_numbers(X: object) -> dict[str, str]:
    """The columns of a table that hold no numbers, with their kinds; none of anything else."""
    columns = read_table(X, "X") if is_table(X) else {}
    kinds = {name: kind_of(name, values) for name, values in columns.items()}
    return {name: kind for name, kind in kinds.items() if kind != NUMBER}


_TIMES = (datetime.date, datetime.time, datetime.timedelta)


def column_of_times(X: Foreign) -> str | None:
    """The first column of a table that holds times, or durations; "X" for an array of them."""
    for name, values in (read_table(X, "X") if is_table(X) else {"X": X}).items():
        kind = getattr(getattr(values, "dtype", None), "kind", "")
        objects = np.ravel(np.asarray(values)).tolist() if kind == "O" else []
        if kind in ("M", "m") or any(isinstance(value, _TIMES) for value in objects):
            return name
    return None


def _pandas_array(column: Foreign) -> np.ndarray:
    if hasattr(column.dtype, "categories"):
        return _category_array(column.tolist())
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "M":
        return np.asarray(column.to_numpy(dtype="datetime64[ns]"))  # UTC
    return np.asarray(column, dtype=None if kind == "m" else object)


def _arrow_array(column: Foreign) -> np.ndarray:
    if hasattr(column.type, "index_type"):  # a dictionary of categories
        return _category_array(column.to_pylist())
    chunked = hasattr(column, "chunks")
    return np.asarray(column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False))


def _category_array(values: Iterable[object]) -> np.ndarray:
    """Categories as text, None where they are missing; they may be numbers."""
    texts = [None if is_missing(value) else as_category(value) for value in values]
    return np.array([*texts, None], dtype=object)[:-1]


# --- kinds and codes ------------------------------------------------------------------------------


def kind_of(name: str, values: np.ndarray) -> str:
    """The kind of a column, by its type or, for Python objects, by its values."""
    if values.dtype.kind in "biufm":
        return NUMBER
    if values.dtype.kind == "M":
        return TIME
    examples: dict[str, object] = {}
    for value in values.tolist():
        if is_missing(value):
            continue
        if isinstance(value, str):
            kind = CATEGORY
        elif isinstance(value, (datetime.date, np.datetime64)):
            kind = TIME
        elif isinstance(value, (Real, Decimal, np.bool_, datetime.timedelta, datetime.time)):
            kind = NUMBER
        else:
            raise InvalidArgument(
                f"column {name!r} must hold numbers, text or times; got {_shown(value)}. Give a "
                "column for each number in it, or leave it out."
            )
        examples.setdefault(kind, value)
    if len(examples) > 1:
        (kind, first), (other, second) = list(examples.items())[:2]
        raise InvalidArgument(
            f"column {name!r} must hold values of one kind; got {first!r} ({kind}) and {second!r} "
            f"({other}). Make all of them text for categories, such as X[{name!r}].astype(str), or "
            "all of them numbers, with NaN where one is missing."
        )
    return next(iter(examples), NUMBER)


def is_missing(value: object) -> bool:
    """None, NaN, pandas.NA or pandas.NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, Decimal)) and math.isnan(value)


def codes_of(name: str, kind: str, values: np.ndarray, texts: dict[float, str]) -> Floats:
    """(n,): a column as codes; categories are added to `texts`."""
    dtype = values.dtype.kind
    if kind == CATEGORY:
        codes = np.full(len(values), np.nan)
        for i, value in enumerate(values.tolist()):
            text = "" if is_missing(value) else as_category(value)
            if text:
                codes[i] = code = category_code(text)
                texts[code] = text
        return codes
    if kind == NUMBER and dtype in "biuf":
        return np.asarray(values, dtype=np.float64)
    if kind == NUMBER and dtype == "m":
        return np.where(np.isnat(values), np.nan, values / _SECOND)
    if kind == TIME and dtype == "M":
        return _seconds(values)
    if kind == NUMBER and dtype != "O":  # text, whatever it reads as
        raise _wrong_kind(name, kind, values.tolist()[0] if len(values) else None)
    return np.array([_code(name, kind, value) for value in values.tolist()])


def _code(name: str, kind: str, value: object) -> float:
    """A number or a time of a column as a code."""
    if is_missing(value):
        return math.nan
    if kind == NUMBER:
        if isinstance(value, (datetime.timedelta, datetime.time)):
            return float(parse_number(value))
        if isinstance(value, (Real, Decimal, np.bool_)):
            return check.as_float(value)  # type: ignore[arg-type]
    elif isinstance(value, np.datetime64):
        return float(_seconds(np.array([value]))[0])
    elif isinstance(value, datetime.date):
        return float(parse_number(value))
    elif isinstance(value, (str, Real)) and not isinstance(value, bool):
        try:
            return parse_time(str(value))
        except ValueError as error:
            raise InvalidArgument(f"column {name!r}: {_shown(value)} {error}.") from None
    raise _wrong_kind(name, kind, value)


def _wrong_kind(name: str, kind: str, value: object) -> InvalidArgument:
    remedy = "Give a datetime, or None if it is missing."
    if kind == NUMBER:
        remedy = (
            "Give a number, or float('nan') if it is missing; to use it as categories, start a new "
            "bank in whose first row it is text."
        )
    return InvalidArgument(
        f"column {name!r} must hold {kind}s, as in the rows learned so far; got {_shown(value)}. "
        + remedy
    )


def as_category(value: object) -> str:
    """A value as the text of a category, as a source of `kernelbank run` has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _seconds(values: np.ndarray) -> Floats:
    """datetime64 as seconds since 1970; NaN for NaT."""
    if values.dtype.itemsize and np.datetime_data(values.dtype)[0] in ("D", "M", "Y", "W", "h"):
        values = values.astype("datetime64[s]")
    seconds = (values - np.datetime64(0, "s")) / _SECOND
    return np.where(np.isnat(values), np.nan, seconds)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# --- columns as inputs ----------------------------------------------------------------------------

OWN_INPUTS = 32
"""The most categories of a column that have an input of their own. A stream of 400 sites is learned
as well with 8, 16 or 32; hashing the others into 16 inputs made it slower and no better."""

DUE_ROWS = 3  # when a category is learned this often, it gets an input of its own
CLASS_SHARES = 3  # how many classes have their share as an input, from the second class on
PERIODS = {"day": 86_400.0, "week": 604_800.0, "year": 31_556_952.0}  # seconds
WAVES = 2 * len(PERIODS)  # inputs of a time


def encode_time(seconds: float) -> list[float]:
    """Sine and cosine of the time of day, week and year; NaN for a missing time."""
    if math.isnan(seconds):
        return [math.nan] * WAVES
    angles = [2 * math.pi * math.fmod(seconds, period) / period for period in PERIODS.values()]
    return [wave(angle) for angle in angles for wave in (math.sin, math.cos)]


class ColumnEncoder:
    """The columns that a bank has learned, and their encoding.

    Parameters
    ----------
    columns : names and kinds ("number", "time" or "category") in their order.
    labels : whether the targets are labels.
    """

    def __init__(self, columns: Sequence[tuple[str, str]], *, labels: bool) -> None:
        self.columns = tuple(columns)
        self.names = [name for name, _ in self.columns]
        self.tentative = False
        """Whether rows were only predicted so far: the first learned row decides."""
        self._labels = labels
        numbers, times, categories = (
            [i for i, (_, kind) in enumerate(self.columns) if kind == wanted] for wanted in KINDS
        )
        self._numbers, self._times = numbers, times
        self.is_numeric = bool(self.columns) and len(numbers) == len(self.columns)
        """Whether all columns are numbers: then codes are inputs."""
        each, first = CLASS_SHARES if labels else 1, len(numbers) + WAVES * len(times)
        self.statistics = {
            column: CategoryStatistics(each, clipped=not labels, first_input=first + each * place)
            for place, column in enumerate(categories)
        }
        """By the index of a column of categories."""
        self._fixed = max(first + each * len(categories), 1)
        """How many inputs there are beside those of single categories."""
        self._singles: list[tuple[int, float]] = []
        """Column and code of the inputs of single categories, in their order."""

    # --- columns and inputs ---------------------------------------------------------------------

    def inputs_of(self, column: str | int) -> list[int]:
        """The inputs of a column of numbers or times, by its name or index; else none."""
        index = column if isinstance(column, int) else -1
        if isinstance(column, str) and column in self.names:
            index = self.names.index(column)
        if index in self._numbers:
            return [self._numbers.index(index)]
        if index in self._times:
            start = len(self._numbers) + WAVES * self._times.index(index)
            return [*range(start, start + WAVES)]
        return []

    @property
    def width(self) -> int:
        """The number of inputs; at least one, which is 0 where there are no columns."""
        return self._fixed + len(self._singles)

    @property
    def categories(self) -> list[tuple[str, str]]:
        """(column, category) of the inputs of single categories, in their order."""
        return [(self.names[i], self.statistics[i].name(code)) for i, code in self._singles]

    def statistics_of(self, column: str) -> CategoryStatistics:
        """What is known of a column of categories, by its name."""
        return self.statistics[self.names.index(column)]

    @property
    def beyond(self) -> dict[str, dict[str, int]]:
        """By column: how many categories will have no input of their own, and in how many rows
        they came."""
        return {
            self.names[i]: {"categories": len(part) - OWN_INPUTS, "rows": part.rows_beyond}
            for i, part in self.statistics.items()
            if part.rows_beyond
        }

    @property
    def input_names(self) -> list[str]:
        """A name for every input of the model."""
        names = self.names
        inputs = [names[i] for i in self._numbers]
        for i in self._times:
            for period in PERIODS:
                inputs += [f"{names[i]} ({wave} of {period})" for wave in ("sine", "cosine")]
        for i in self.statistics:
            shares = [f"{names[i]} (share of class {k + 2})" for k in range(CLASS_SHARES)]
            inputs += shares if self._labels else [f"{names[i]} (mean target)"]
        inputs = inputs or ["(nothing)"]
        return inputs + [f"{column} = {category}" for column, category in self.categories]

    # --- encoding -------------------------------------------------------------------------------

    def expand(self, codes: Floats) -> Floats:
        """(n, width): the inputs of rows, by what is known now; changes nothing."""
        if self.is_numeric:
            return codes
        out = self._fixed_inputs(codes)
        for row, inputs in zip(codes.tolist() if self.statistics else (), out, strict=False):
            self._write_categories(row, inputs)
        return out

    def expand_columns(
        self, X: Foreign, columns: Sequence[str | int], remedy: str, missing: MissingValues | None
    ) -> Floats:
        """(n, width): the inputs of a table of which only these columns are read."""
        table, names = read_table(X, "X_future"), self.names
        wanted = [name if isinstance(name, str) else names[name] for name in columns]
        for name in wanted:
            if name not in table:
                rule = f"have the column {name!r}"
                raise check.refuse("X_future", rule, list(table), remedy, "forecast")
        codes = np.full((len(table[wanted[0]]), len(names)), np.nan)
        for index, (name, kind) in enumerate(self.columns):
            if name in wanted:
                codes[:, index] = codes_of(name, kind, with_gaps(table[name], missing), {})
        return self.expand(codes)

    def _fixed_inputs(self, codes: Floats) -> Floats:
        """(n, width): numbers and times; 0 elsewhere."""
        out = np.zeros((len(codes), self.width))
        out[:, : len(self._numbers)] = codes[:, self._numbers]
        for place, column in enumerate(self._times):
            start = len(self._numbers) + WAVES * place
            waves = [encode_time(seconds) for seconds in codes[:, column].tolist()]
            out[:, start : start + WAVES] = waves
        return out

    def _write_categories(self, row: list[float], out: Floats) -> None:
        """Write the inputs of a row's categories, where 0 stands so far."""
        for column, statistics in self.statistics.items():
            code, inputs = row[column], statistics.inputs
            out[statistics.mean_inputs] = statistics.mean(code)
            if math.isnan(code):
                for index in inputs.values():
                    out[index] = math.nan
            elif code in inputs:
                out[inputs[code]] = 1.0

    # --- learning -------------------------------------------------------------------------------

    def adds_inputs(self, codes: Floats) -> bool:
        """Whether learning a row (1, columns) adds inputs."""
        row = codes[0].tolist()
        return any(part.due_inputs(row[column]) for column, part in self.statistics.items())

    def take(
        self, codes: Floats, targets: Floats, texts: Mapping[float, str]
    ) -> tuple[Floats, int]:
        """Encode the first of some rows, and learn from their targets.

        Parameters
        ----------
        codes : (n, columns).
        targets : (n, shares), each what `as_statistic` returns.
        texts : the categories by their codes.

        Returns
        -------
        (m, width): inputs, each by what was known before its row. A row that adds inputs is taken
        alone, so m may be less than n.
        How many inputs it has added.
        """
        if not self.statistics:
            return self.expand(codes), 0
        width = self.width
        for column, statistics in self.statistics.items():
            for code in statistics.due_inputs(codes[0, column]):
                statistics.add_input(code, self.width)
                self._singles.append((column, code))
        added = self.width - width
        out = self._fixed_inputs(codes)
        for t, (row, target) in enumerate(zip(codes.tolist(), targets.tolist(), strict=True)):
            if t and (added or self.adds_inputs(codes[t : t + 1])):
                return out[:t], added
            self._write_categories(row, out[t])
            for column, statistics in self.statistics.items():
                if not math.isnan(row[column]):
                    statistics.update(row[column], texts.get(row[column], "?"), target)
        return out, added

    def as_statistic(self, targets: Floats) -> Floats:
        """(n, shares): what is averaged by category, of targets or class numbers (n,).

        Of several targets, (n, K), it is the first.
        """
        if not self._labels:
            return targets[:, :1] if targets.ndim == 2 else targets[:, None]
        return np.equal(targets[:, None], np.arange(1, CLASS_SHARES + 1)).astype(np.float64)

    # --- saving ---------------------------------------------------------------------------------

    def describe(self) -> tuple[Json, Arrays]:
        """Columns and names of categories as plain data, and their codes and statistics."""
        header, arrays = describe_parts({str(i): part for i, part in self.statistics.items()})
        header["columns"] = [list(column) for column in self.columns]
        header["inputs"] = [list(pair) for pair in self._singles]
        return header | {"tentative": self.tentative}, arrays

    @classmethod
    def restored(cls, header: Json, arrays: Arrays, *, labels: bool) -> ColumnEncoder:
        """The encoder from what `describe` returned, after checking it."""
        encoder = cls([(str(name), str(kind)) for name, kind in header["columns"]], labels=labels)
        kinds = {kind for _, kind in encoder.columns}
        if len(set(encoder.names)) < len(encoder.names) or not kinds <= {*KINDS}:
            raise FileRefused("it has impossible columns.")
        if not isinstance(header["tentative"], bool):
            raise FileRefused("it does not say whether its columns are tentative.")
        encoder.tentative = header["tentative"]
        for i, part in encoder.statistics.items():
            part.restore(header[str(i)], under(f"{i}/", arrays))
        for column, code in header["inputs"]:
            statistics = encoder.statistics.get(column)
            if statistics is None or code in statistics.inputs or code not in statistics:
                raise FileRefused("it has inputs of categories that were never learned.")
            statistics.inputs[code] = encoder.width
            encoder._singles.append((int(column), code))
            if len(statistics.inputs) > OWN_INPUTS:
                raise FileRefused("it has too many inputs of categories.")
        return encoder


# --- categories -----------------------------------------------------------------------------------

MOST_CATEGORIES = 10_000
"""The most categories of a column that have a mean of their own; later ones share one."""

PRIOR_ROWS = 1.0
"""The mean of a category is drawn towards the mean of all rows, as by so many rows with it."""

CATEGORY_ROWS = 200  # about so many rows back a category's mean reaches, once there are as many
OVERALL_ROWS = 500  # the same for the mean of all rows

FAR = 10.0
"""Targets count as at most so many mean deviations from the mean: an outlier must not stay."""


@lru_cache(maxsize=100_000)
def category_code(text: str) -> float:
    """A category as a number: 48 bits of a hash, which a float holds exactly."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6)
    return float(int.from_bytes(digest.digest()))


@dataclass
class _Category:
    """Its name, its mean targets, and how often it was learned, at most CATEGORY_ROWS."""

    name: str
    means: list[float]
    count: float = 0.0


class CategoryStatistics:
    """Counts and mean targets of the categories of a column, by their codes.

    The mean target is one input, whatever the number of categories. It uses earlier targets only: a
    row is encoded before its own target is added. A mean of few rows is drawn towards the mean of
    all.

    Parameters
    ----------
    width : how many numbers a target has: 1, or the shares of some classes.
    clipped : whether far targets are clipped: numbers, not shares.
    first_input : the index of the first input of the mean targets.
    """

    def __init__(self, width: int, *, clipped: bool, first_input: int = 0) -> None:
        self._clipped = clipped
        self.mean_inputs = slice(first_input, first_input + width)
        """The inputs of the mean targets."""
        self.inputs: dict[float, int] = {}
        """By code, the input of a single category."""
        self._categories: dict[float, _Category] = {}
        """In the order in which they were first learned."""
        self.rows = 0
        """Learned rows with a category."""
        self.rows_beyond = 0
        """Learned rows whose category will have no input of its own, as all are taken."""
        self._overall = [0.0] * width
        self._deviation = 0.0

    def __len__(self) -> int:
        return len(self._categories)

    def __contains__(self, code: float) -> bool:
        return code in self._categories

    def name(self, code: float) -> str:
        """The name of a category that was learned."""
        return self._categories[code].name

    @property
    def codes(self) -> Sequence[float]:
        """The categories in the order in which they were first learned."""
        return list(self._categories)

    def count(self, code: float) -> float:
        """How often a category was learned, at most CATEGORY_ROWS."""
        return self._categories[code].count if code in self._categories else 0.0

    def due_inputs(self, code: float) -> list[float]:
        """The categories that get an input of their own when a row with this one is learned."""
        free = OWN_INPUTS - len(self.inputs)
        if not free or code in self.inputs or self.count(code) + 1 < DUE_ROWS:
            return []
        return [other for other in self._categories if other not in self.inputs][:free]

    def add_input(self, code: float, place: int) -> None:
        """Give a category an input; with the last one, count the rows of categories without."""
        self.inputs[code] = place
        if len(self.inputs) == OWN_INPUTS:
            counts = (c.count for other, c in self._categories.items() if other not in self.inputs)
            self.rows_beyond = int(sum(counts))

    def _category(self, code: float) -> _Category | None:
        """That of a code; beyond the limit, categories share the last one."""
        category = self._categories.get(code)
        if category is None and len(self) > MOST_CATEGORIES:
            return next(reversed(self._categories.values()))
        return category

    def mean(self, code: float) -> list[float]:
        """The mean target of a category; NaN if the category is missing or nothing is known."""
        if math.isnan(code) or not self.rows:
            return [math.nan] * len(self._overall)
        category = self._category(code)
        if category is None:
            return self._overall
        count = category.count
        return [
            (count * mean + PRIOR_ROWS * overall) / (count + PRIOR_ROWS)
            for mean, overall in zip(category.means, self._overall, strict=True)
        ]

    def update(self, code: float, name: str, target: Sequence[float]) -> None:
        """Add the target of a row with a category; the name is for a new category.

        Where the target is missing, its expected value stands for it: the row only counts.
        """
        if math.isnan(target[0]):
            target = self.mean(code)
            if math.isnan(target[0]):
                return
        category = self._category(code)
        if category is None:
            category = self._categories[code] = _Category(name, [0.0] * len(self._overall))
        self.rows += 1
        self.rows_beyond += len(self.inputs) == OWN_INPUTS and code not in self.inputs
        values = self._clip(target) if self._clipped else target
        category.count = min(category.count + 1.0, CATEGORY_ROWS)
        for k, value in enumerate(values):
            category.means[k] += (value - category.means[k]) / category.count
            self._overall[k] += (value - self._overall[k]) / min(self.rows, OVERALL_ROWS)

    def _clip(self, target: Sequence[float]) -> list[float]:
        (value,) = target
        if self.rows == 1:
            return [value]
        step = value - self._overall[0]
        if self._deviation:
            farthest = FAR * self._deviation
            step = min(max(step, -farthest), farthest)
        self._deviation += (abs(step) - self._deviation) / min(self.rows, OVERALL_ROWS)
        return [self._overall[0] + step]

    def describe(self) -> tuple[Json, Arrays]:
        """The names and counts as plain data; and (categories + 1, 2 + width): code, count and
        means of each, in the last row the deviation, 0 and the means of all rows."""
        names = [category.name for category in self._categories.values()]
        facts = {"names": names, "rows": self.rows, "rows_beyond": self.rows_beyond}
        rows = [[code, part.count, *part.means] for code, part in self._categories.items()]
        return facts, {"table": np.array([*rows, [self._deviation, 0.0, *self._overall]])}

    def restore(self, header: Json, arrays: Arrays) -> None:
        """Continue from what `describe` returned, after checking it."""
        names, table = [str(name) for name in header["names"]], arrays["table"]
        if table.shape != (len(names) + 1, 2 + len(self._overall)):
            raise FileRefused("its categories do not fit their statistics.")
        check_finite(arrays, ())
        if not ((table[:-1, 1] >= 1) & (table[:-1, 1] <= CATEGORY_ROWS)).all():
            raise FileRefused("its categories have impossible counts.")
        for name, (code, count, *means) in zip(names, table[:-1].tolist(), strict=True):
            self._categories[code] = _Category(name, means, count)
        if len(self) < len(names) or len(self) > MOST_CATEGORIES + 1:
            raise FileRefused("it has impossible categories.")
        self._deviation, _, *self._overall = table[-1].tolist()
        self.rows, self.rows_beyond = int(header["rows"]), int(header["rows_beyond"])
