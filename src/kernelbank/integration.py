"""Shared by `kernelbank.river` and `kernelbank.sklearn`: parameters to a bank, names to columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .auto import AutoBank
from .errors import FeaturesIgnored, InvalidArgument
from .utils import validation as check
from .utils.validation import Floats

_NO_FEATURES = "(nothing)"
"""The name of the only column where rows have no features."""


def make_bank(
    estimator: Any, task: str, seed: int, classes: Iterable[Any] | None = None
) -> AutoBank:
    """The bank with the parameters of an estimator."""
    return AutoBank(
        task,
        estimator.lags,
        estimator.size,
        classes,
        seasons=estimator.seasons,
        slots=estimator.slots,
        combiner=estimator.combiner,
        loss=estimator.loss,
        window=estimator.window,
        regularization=estimator.regularization,
        scalings=estimator.scaling,
        engine=estimator.engine,
        seed=seed,
    )


class FeatureColumns:
    """Maps features by name to columns, in the order in which they were first learned.

    New features of one row are sorted by name, so the order of a dictionary does not matter.

    Parameters
    ----------
    absent : the value of absent features; None if they are missing (NaN).
    most : how many features may become columns; the others are ignored.
    """

    def __init__(self, absent: float | None, most: int) -> None:
        remedy = "Give None if absent features are unknown, or their value, such as 0."
        self._absent = (
            np.nan if absent is None else check.number("absent", absent, "KernelBank", remedy)
        )
        remedy = "Give how many features may become columns."
        self._most = check.count("most_features", most, "KernelBank", remedy)
        self._index: dict[Any, int] = {}
        self._warned = False

    def __len__(self) -> int:
        return len(self._index)

    @property
    def names(self) -> tuple[Any, ...]:
        """The features, in the order of their columns."""
        return tuple(self._index)

    def new(self, names: Iterable[Any]) -> list[Any]:
        """The names that are to become columns, in their order; changes nothing."""
        new = sorted((name for name in names if name not in self._index), key=_by_kind)
        if not new and not self._index:
            new = [_NO_FEATURES]
        space = self._most - len(self._index)
        if len(new) > space and not self._warned:
            self._warned = True
            warnings.warn(
                f"there are more than most_features ({self._most}) features: {new[space]!r} and "
                "others to come are ignored. Raise most_features, or select features.",
                FeaturesIgnored,
                stacklevel=4,
            )
        return new[:space]

    def add(self, new: Iterable[Any]) -> None:
        """Make columns of new features."""
        for name in new:
            self._index[name] = len(self._index)

    def row(self, x: Mapping[Any, Any], new: Sequence[Any] = ()) -> Floats:
        """(columns,): the values of one dictionary; `new` are columns to be added."""
        if not isinstance(x, Mapping):
            remedy = "Give a dictionary from names to numbers."
            raise check.refuse("x", "be a dictionary", x, remedy)
        index = self._with(new)
        row = np.full(max(len(index), 1), self._absent)
        for name, value in x.items():
            if name in index:
                row[index[name]] = np.nan if value is None else _number(name, value)
        return row

    def rows(self, X: Any, new: Sequence[Any] = ()) -> Floats:
        """(n, columns): the values of a data frame."""
        index = self._with(new)
        rows = np.full((len(X), max(len(index), 1)), self._absent)
        for position, name in enumerate(X.columns):
            if name in index:
                rows[:, index[name]] = _numbers(name, X.iloc[:, position])
        return rows

    def _with(self, new: Sequence[Any]) -> dict[Any, int]:
        if not new:
            return self._index
        return self._index | {name: len(self._index) + i for i, name in enumerate(new)}


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
        "categories first, for instance with a one-hot encoder; kb.AutoBank takes them as they are."
    )


def _numbers(name: Any, column: Any) -> Floats:
    if column.dtype.kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.array([np.nan if value is None else _number(name, value) for value in column])
