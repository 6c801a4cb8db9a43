"""Rows with names, given to an `AutoBank`: which columns they are, and their way into the model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InvalidArgument, NumbersAsText
from ...utils import validation as check
from ...utils.validation import LARGEST, Floats
from . import tables
from .column_encoder import CATEGORY, NUMBER, ColumnEncoder, EncodedRows
from .plain_inputs import checked_inputs

LISTED = 5
"""Names that a message lists before the rest is only counted."""


class NamedInputs:
    """Rows as codes, with the encoder that understands them."""

    def __init__(self, encoder: ColumnEncoder, rows: EncodedRows) -> None:
        self.encoder = encoder
        self.codes, self.texts = rows

    @property
    def inputs(self) -> Floats:
        """(n, width): the inputs of the model, by what is known now."""
        return self.encoder.expand(self.codes)


def read_named(
    X: Any,
    encoder: ColumnEncoder | None,
    dimension: int | None,
    name: str,
    *,
    labels: bool,
    one: bool,
) -> NamedInputs | None:
    """Rows with names, or for a bank with names; None for arrays that have none.

    Parameters
    ----------
    X : a table, one row with names, or an array.
    encoder : of the bank, if it has learned names.
    dimension : the width of the inputs, once something was learned.
    """
    if isinstance(X, EncodedRows):
        assert encoder is not None
        return NamedInputs(encoder, X)
    columns: tables.Columns | None = None
    if tables.is_table(X):
        columns = tables.read_table(X, name)
        if one:
            columns = _only_row(columns, name)
    elif tables.is_named_row(X) and (one or not hasattr(X, "iloc")):
        columns = tables.read_row(X, name)
        if not one and isinstance(X, dict) and any(np.ndim(v[0]) for v in columns.values()):
            remedy = "Make a table of it, such as pandas.DataFrame(X), or give one row."
            raise check.refuse(name, "be a table or an array", X, remedy)
    if columns is None:
        if encoder is None:
            return None
        return NamedInputs(encoder, _unnamed(X, encoder, name, one=one))
    if not columns or not len(next(iter(columns.values()))):
        remedy = "Give at least one; a call without rows can be left out."
        raise check.refuse(name, "have at least one row and one column", _size(columns), remedy)
    if encoder is None:
        kinds = [(column, tables.kind_of(column, values)) for column, values in columns.items()]
        if isinstance(X, dict):
            _warn_of_numbers_as_text(columns, kinds)
        fresh = ColumnEncoder(kinds, labels=labels)
        if dimension is None:
            encoder = fresh
        else:  # the bank has learned arrays: by position
            encoder = _without_names(fresh, dimension, name)
            columns = dict(zip(encoder.names, columns.values(), strict=True))
    _check_names(columns, encoder, name)
    texts: dict[float, str] = {}
    codes = np.column_stack(
        [tables.codes_of(one, kind, columns[one], texts) for one, kind in encoder.columns]
    )
    _check_range(codes, encoder)
    return NamedInputs(encoder, EncodedRows(codes, texts))


def _warn_of_numbers_as_text(columns: tables.Columns, kinds: list[tuple[str, str]]) -> None:
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


def _size(columns: tables.Columns) -> tuple[int, int]:
    return (len(next(iter(columns.values()))) if columns else 0, len(columns))


def _only_row(columns: tables.Columns, name: str) -> tables.Columns:
    rows, _ = _size(columns)
    if rows != 1:
        remedy = "Give a dictionary or a table of one row; `predict` and `run` take several."
        raise check.refuse(name, "be one row", f"a table of {rows} rows", remedy)
    return columns


def _unnamed(X: Any, encoder: ColumnEncoder, name: str, *, one: bool) -> EncodedRows:
    """An array for a bank that knows names: by position, if all columns are numbers."""
    if not encoder.is_numeric:
        column, kind = next(pair for pair in encoder.columns if pair[1] != NUMBER)
        what = "categories" if kind == CATEGORY else "times"
        remedy = "Give a dictionary by names." if one else "Give a table with these columns."
        rule = f"have names, as column {column!r} holds {what}"
        raise check.refuse(name, rule, type(X).__name__, remedy)
    return EncodedRows(checked_inputs(X, len(encoder.columns), name, one=one), {})


def _without_names(encoder: ColumnEncoder, dimension: int, name: str) -> ColumnEncoder:
    """A table for a bank that has learned arrays."""
    other = next((pair for pair in encoder.columns if pair[1] != NUMBER), None)
    if other is not None:
        raise InvalidArgument(
            f"'{name}' has the column {other[0]!r} of {other[1]} values, but this bank has learned "
            "arrays of numbers. Start a new bank with tables from the first row on."
        )
    check.check_width(len(encoder.columns), dimension, name)
    return encoder


def _check_names(columns: tables.Columns, encoder: ColumnEncoder, name: str) -> None:
    """Refuse other columns than those learned; their order does not matter."""
    known = encoder.names
    missing = [one for one in known if one not in columns]
    unknown = [one for one in columns if one not in known]
    if missing or unknown:
        found = [f"has no {_listed(missing)}"] if missing else []
        found += [f"has {_listed(unknown)}, not learned so far"] if unknown else []
        raise InvalidArgument(
            f"'{name}' must have the columns {_listed(known)}, as in the rows learned so far; it "
            f"{' and '.join(found)}. Give these names, in any order (bank.feature_names_in_ lists "
            "them; NaN where a value is missing), or start a new bank."
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(repr, names[:LISTED])) + more


def _check_range(codes: Floats, encoder: ColumnEncoder) -> None:
    """Refuse infinity and numbers whose squares overflow, by name and row."""
    with np.errstate(invalid="ignore"):
        bad = np.abs(codes) > LARGEST
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        where = f" in row {row}" if len(codes) > 1 else ""
        raise InvalidArgument(
            f"column {encoder.names[column]!r} must be finite and at most {LARGEST:g} in size; got "
            f"{codes[row, column]!s}{where}. Repair it, or give NaN if it is missing."
        )
