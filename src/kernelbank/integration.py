"""Shared by `kernelbank.river` and `kernelbank.sklearn`: parameters to a bank, names to columns."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .auto import AutoBank
from .errors import FeaturesIgnored, InvalidArgument
from .utils import validation as check
from .utils.validation import LARGEST, Floats

Foreign = Any
"""A data frame, a series or an estimator of another library."""

_NO_FEATURES = "(nothing)"
"""The name of the only column where rows have no features."""


def make_bank(
    estimator: Foreign, task: str, seed: int, classes: Iterable[object] | None = None
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
        self._index: dict[Hashable, int] = {}
        self._warned = False

    def __len__(self) -> int:
        return len(self._index)

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The features, in the order of their columns."""
        return tuple(self._index)

    def new(self, names: Iterable[Hashable]) -> list[Hashable]:
        """The names that are to become columns, in their order; changes nothing."""
        unknown = (name for name in names if name not in self._index)
        new: list[Hashable] = sorted(unknown, key=_by_kind)
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

    def add(self, new: Iterable[Hashable]) -> None:
        """Make columns of new features."""
        for name in new:
            self._index[name] = len(self._index)

    def row(self, x: Mapping[Hashable, object], new: Sequence[Hashable] = ()) -> Floats:
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

    def rows(self, X: Foreign, new: Sequence[Hashable] = ()) -> Floats:
        """(n, columns): the values of a data frame."""
        index = self._with(new)
        rows = np.full((len(X), max(len(index), 1)), self._absent)
        for position, name in enumerate(X.columns):
            if name in index:
                rows[:, index[name]] = _numbers(name, X.iloc[:, position])
        return rows

    def _with(self, new: Sequence[Hashable]) -> dict[Hashable, int]:
        if not new:
            return self._index
        return self._index | {name: len(self._index) + i for i, name in enumerate(new)}


class TargetColumns:
    """Maps targets by name to places; the first learned row names them, sorted, if nobody has.

    Parameters
    ----------
    names : the targets in their order; None if the first row is to say it.
    """

    def __init__(self, names: Iterable[Hashable] | None) -> None:
        self.names: tuple[Hashable, ...] = ()
        if names is None:
            return
        remedy = 'Give a list of different names, such as ["load", "price"], or None.'
        if isinstance(names, Iterable) and not isinstance(names, str):
            self.names = tuple(names)
        if not self.names or len(set(self.names)) < len(self.names):
            raise check.refuse("targets", "be a list of different names", names, remedy)

    def of(self, y: object, present: Iterable[Hashable]) -> tuple[Hashable, ...]:
        """The names of all targets, of which some are present in y; changes nothing."""
        targets = list(present)
        names = self.names or tuple(sorted(targets, key=_by_kind))
        unknown = [name for name in targets if name not in names]
        if unknown or not names:
            rule = f"have targets from {list(names)}" if names else "have a target"
            remedy = "Name all targets that may come: targets=[...]; some may be missing in a row."
            raise check.refuse("y", rule, y, remedy)
        return names

    def row(self, y: object) -> tuple[tuple[Hashable, ...], Floats]:
        """All names, and the targets (K,) of one dictionary; NaN for those that are missing."""
        if not isinstance(y, Mapping):
            remedy = "Give a dictionary from names of targets to numbers."
            raise check.refuse("y", "be a dictionary", y, remedy)
        names = self.of(y, y)
        values = [y.get(name) for name in names]
        row = [
            np.nan if value is None else _number(name, value, "target")
            for name, value in zip(names, values, strict=True)
        ]
        return names, np.array(row)

    def rows(self, Y: Foreign) -> tuple[tuple[Hashable, ...], Floats]:
        """All names, and the targets (n, K) of a data frame."""
        names = self.of(list(Y.columns), Y.columns)
        rows = np.full((len(Y), len(names)), np.nan)
        for position, name in enumerate(Y.columns):
            rows[:, names.index(name)] = _numbers(name, Y.iloc[:, position], "target")
        return names, rows


def _by_kind(name: Hashable) -> tuple[str, str]:
    return type(name).__name__, str(name)


def _number(name: Hashable, value: Foreign, what: str = "feature") -> float:
    try:
        if value is np.ma.masked:
            return np.nan
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError):
        pass
    except OverflowError:
        shown = f"{what} {name!r} must be finite and at most {LARGEST:g} in size"
        raise InvalidArgument(
            f"{shown}; got a number beyond all floats. Repair it, or leave it out if it is missing."
        ) from None
    remedy = (
        "Encode text and categories first, for instance with a one-hot encoder; kb.AutoBank takes "
        "them as they are."
        if what == "feature"
        else "Give a number, or leave the target out where it is missing."
    )
    raise InvalidArgument(
        f"{what} {name!r} must be a number, a boolean or None; got {value!r}. {remedy}"
    )


def _numbers(name: Hashable, column: Foreign, what: str = "feature") -> Floats:
    if column.dtype.kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.array([np.nan if value is None else _number(name, value, what) for value in column])
