"""What the faces for other libraries have in common: names become columns, settings a bank.

No mathematics here, and no second way of doing what the bank does.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import FeaturesIgnored, InvalidArgument
from ..utils import validation as check
from ..utils.validation import Floats
from . import AutoBank

_NOTHING = "(nothing)"
"""The name of the only column where rows have no features."""


def bank_of(face: Any, task: str, seed: int, classes: Iterable[Any] | None = None) -> AutoBank:
    """The bank that a face's parameters ask for."""
    return AutoBank(
        task,
        face.lags,
        face.size,
        classes,
        slots=face.slots,
        combiner=face.combiner,
        loss=face.loss,
        window=face.window,
        regularization=face.regularization,
        scalings=face.scaling,
        engine=face.engine,
        seed=seed,
    )


class Columns:
    """Features by name, as columns in the order in which they were first learned from.

    Those of one row are taken in the order of their names, so the order of a dictionary is of no
    account. A feature that is absent is missing (NaN), or has the value that was agreed on; one
    that was never learned from is not looked at.
    """

    def __init__(self, absent: float | None, most: int) -> None:
        remedy = "Give None if absent features are unknown, or their value, such as 0."
        self._absent = (
            np.nan if absent is None else check.number("absent", absent, "KernelBank", remedy)
        )
        remedy = "Give how many features may become columns."
        self._most = check.count("most_features", most, "KernelBank", remedy)
        self._places: dict[Any, int] = {}
        self._warned = False

    def __len__(self) -> int:
        return len(self._places)

    @property
    def names(self) -> tuple[Any, ...]:
        """The features, in the order of their columns."""
        return tuple(self._places)

    def new(self, names: Iterable[Any]) -> list[Any]:
        """Those of the names that are to become columns, in their order; changes nothing."""
        new = sorted((name for name in names if name not in self._places), key=_by_kind)
        if not new and not self._places:
            new = [_NOTHING]
        room = self._most - len(self._places)
        if len(new) > room and not self._warned:
            self._warned = True
            warnings.warn(
                f"there are more than most_features ({self._most}) features: {new[room]!r} and "
                "others to come are ignored. Raise most_features, or select features.",
                FeaturesIgnored,
                stacklevel=4,
            )
        return new[:room]

    def add(self, new: Iterable[Any]) -> None:
        """Make columns of them."""
        for name in new:
            self._places[name] = len(self._places)

    def row(self, x: Mapping[Any, Any], new: Sequence[Any] = ()) -> Floats:
        """(columns,): the values of one dictionary; `new` are columns to come."""
        if not isinstance(x, Mapping):
            remedy = "Give a dictionary from names to numbers."
            raise check.refuse("x", "be a dictionary", x, remedy)
        places = self._with(new)
        row = np.full(max(len(places), 1), self._absent)
        for name, value in x.items():
            if name in places:
                row[places[name]] = np.nan if value is None else _number(name, value)
        return row

    def rows(self, X: Any, new: Sequence[Any] = ()) -> Floats:
        """(n, columns): the values of a data frame."""
        places = self._with(new)
        rows = np.full((len(X), max(len(places), 1)), self._absent)
        for position, name in enumerate(X.columns):
            if name in places:
                rows[:, places[name]] = _numbers(name, X.iloc[:, position])
        return rows

    def _with(self, new: Sequence[Any]) -> dict[Any, int]:
        if not new:
            return self._places
        return self._places | {name: len(self._places) + i for i, name in enumerate(new)}


def _by_kind(name: Any) -> tuple[str, str]:
    return type(name).__name__, str(name)


def _number(name: Any, value: Any) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(
        f"feature {name!r} must be a number, a boolean or None; got {value!r}. Encode text and "
        "categories first, for instance with a one-hot encoder."
    )


def _numbers(name: Any, column: Any) -> Floats:
    if column.dtype.kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.array([np.nan if value is None else _number(name, value) for value in column])
