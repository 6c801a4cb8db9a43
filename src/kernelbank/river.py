"""`AutoBank` as River estimators.

    from kernelbank.river import KernelBankRegressor, KernelBankClassifier
    from kernelbank.river import KernelBankMultiTargetRegressor

Features are dictionaries, and may appear and vanish:

- a feature becomes a column when a row with it is first learned; before that it is ignored in
  predictions, unless nothing has been learned yet;
- a feature that appears later is used from then on, and nothing that was learned is lost: all is as
  if it had been missing so far. Linear slots and trees use it at once; random features keep to the
  first features until the next restart (after 5, 16, 32 and 128 rows);
- a feature that is absent, None or NaN is missing: it is filled in from its own past. With
  `absent=0`, absent features have that value instead, as in counts of words;
- at most `most_features` become columns; others are ignored, with a warning.

The result does not depend on the order of a dictionary, nor, in any bit, on whether rows are
learned one by one or many at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .auto import AutoBank
from .auto.auto_bank import COVERAGE
from .auto.inputs import means_none, with_gaps
from .bank.engines import Engine
from .bank.slot import Slot
from .combiners import Combiner
from .errors import FeaturesIgnored, InvalidArgument
from .io.cells import MissingValues
from .losses import Loss
from .utils import validation as check
from .utils.validation import LARGEST, Floats
from .utils.whole_steps import defer_signals

with check.optional("kernelbank.river needs", "River", "river"):
    from river import base

Features = dict[Hashable, object]  # a row: the values of features by their names

Foreign = Any  # a data frame, a series or a model of another library

__all__ = [
    "KernelBankClassifier",
    "KernelBankMultiTargetRegressor",
    "KernelBankRegressor",
]


_ENCODE = (
    "Encode text and categories first, for instance with a one-hot encoder; kb.AutoBank takes them "
    "as they are."
)


class _RiverEstimator(base.Estimator):  # type: ignore[misc]
    """The parameters, and dictionaries as rows."""

    _task: str

    def __init__(
        self,
        lags: int = 0,
        size: str = "default",
        slots: Iterable[Slot] | None = None,
        combiner: Combiner | None = None,
        loss: Loss | str = "squared",
        window: int = 1,
        regularization: float = 0.0,
        scaling: str | Iterable[str] | None = None,
        engine: Engine | str = "serial",
        absent: float | None = None,
        most_features: int = 1000,
        seed: int = 0,
        seasons: str | int | Iterable[int] | None = None,
        missing: float | str | Iterable[float | str] | None = None,
    ) -> None:
        settings = dict(locals())
        del settings["self"]
        vars(self).update(settings)  # River asks for an attribute of each
        fill, most = settings.pop("absent"), settings.pop("most_features")
        self._bank = AutoBank(self._task, scalings=settings.pop("scaling"), **settings)
        if fill is not None:
            remedy = "Give None if absent features are unknown, or their value, such as 0."
            fill = check.number("absent", fill, "KernelBank", remedy)
        remedy = "Give how many features may become columns."
        self._most = check.count("most_features", most, "KernelBank", remedy)
        self._has_warned = False
        gaps = self._bank.missing_values
        fill = np.nan if fill is None else fill
        self._columns = NamedColumns(gaps, fill)

    @property
    def bank(self) -> AutoBank:
        """The `AutoBank` that does the work: its slots, weights and ledger."""
        return self._bank

    @property
    def features(self) -> tuple[Hashable, ...]:
        """The names of the features, in the order of the bank's columns."""
        return self._columns.names

    def learn_one(self, x: Features, y: object) -> None:
        """Learn a row. If `predict_one` was called for it before, that prediction is scored."""
        new = self._new_features(x)
        row = self._columns.row(x, new)
        with defer_signals():  # the bank and its columns change together
            self._bank.learn_one(row, y, added=self._added(new))
            self._columns.add(new)

    def learn_many(self, X: Foreign, y: Foreign) -> None:
        """Learn the rows of a data frame, in their order, as `learn_one` would."""
        if len(X):
            new = self._new_features(X)
            rows = self._columns.rows(X, new)
            try:
                self._bank.run(rows, y, added=self._added(new))
            finally:  # rows that were learned before an interrupt have the new columns
                with defer_signals():
                    if self._bank.samples and len(self._bank.input_names) == rows.shape[1]:
                        self._columns.add(new)

    def _new_features(self, values: Foreign) -> list[Hashable]:
        """The names in a row or frame that are to become columns; changes nothing."""
        new = self._columns.new(values)
        if not new and not len(self._columns):
            new = ["(nothing)"]  # the only column where rows have no features
        space = self._most - len(self._columns)
        if len(new) > space and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"there are more than most_features ({self._most}) features: {new[space]!r} and "
                "others to come are ignored. Raise most_features, or select features.",
                FeaturesIgnored,
                stacklevel=4,
            )
        return new[:space]

    def _added(self, new: list[Hashable]) -> int:
        return len(new) if self._bank.samples else 0

    def _query(self, x: Features) -> Floats:
        """An input to predict, as a row. Before the first learned row it also adds features."""
        if not self._bank.samples:
            new = self._new_features(x)
            self._columns.row(x, new)  # refuses what is not a row
            self._columns.add(new)
        return self._columns.row(x)


class KernelBankRegressor(_RiverEstimator, base.MiniBatchRegressor):  # type: ignore[misc]
    """A bank of kernels for regression on streams, with nothing to tune.

    One online learner per slot, with new weights after every row; inputs and target are scaled
    online. See `kb.AutoBank`, and this module's text for features that come and go.

    Parameters
    ----------
    lags, size, combiner, loss, window, regularization, engine, seasons, missing : as of
        `kb.AutoBank`.
    slots : likewise. A River model as a slot: `kb.learners.Adapter`.
    scaling : `scalings` of `kb.AutoBank`.
    absent : the value of a feature that is absent; None means that it is missing.
    most_features : how many features may become columns.
    seed : whole number from which random features and random cuts follow.

    >>> from river import datasets, evaluate, metrics
    >>> from kernelbank.river import KernelBankRegressor
    >>> model = KernelBankRegressor(size="small")
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE()).get() < 0.3
    True
    """

    _task = "regression"

    def predict_one(self, x: Features) -> float:
        """The prediction for one row; 0 before the first target is known, as in River."""
        prediction = float(self._bank.predict_one(self._query(x)))
        return prediction if self._bank.samples else 0.0

    def predict_interval_one(self, x: Features, coverage: float = COVERAGE) -> tuple[float, float]:
        """The ends of an interval that holds the target with this probability."""
        lower, upper = self._bank.predict_interval_one(self._query(x), coverage)
        return lower, upper

    def predict_many(self, X: Foreign) -> Foreign:
        """A series of predictions, with the frame's index."""
        import pandas as pd

        has_learned = len(X) and self._bank.samples
        predictions = self._bank.predict(self._columns.rows(X)) if has_learned else 0.0
        return pd.Series(predictions, index=X.index, dtype="float64")


class KernelBankMultiTargetRegressor(_RiverEstimator, base.MultiTargetRegressor):  # type: ignore[misc]
    """A bank of kernels for several targets per row, with nothing to tune.

    All targets are outputs of one bank, whose slots share what they compute from the features; see
    `kb.AutoBank`. A target that is absent from a row's dictionary, None or NaN is missing: the row
    is learned for the others.

    Parameters
    ----------
    lags, size, slots, combiner, loss, window, regularization : as of `KernelBankRegressor`.
    scaling, engine, absent, most_features, seed, seasons, missing : likewise.
    targets : the names of all targets; by default the first learned row has all of them.

    >>> from kernelbank.river import KernelBankMultiTargetRegressor
    >>> model = KernelBankMultiTargetRegressor(size="small")
    >>> for n in range(200):
    ...     model.learn_one({"n": n % 7}, {"twice": 2.0 * (n % 7), "back": 7.0 - n % 7})
    >>> {name: round(value) for name, value in model.predict_one({"n": 3}).items()}
    {'back': 4, 'twice': 6}
    """

    _task = "regression"

    def __init__(self, *, targets: Iterable[Hashable] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.targets, self.settings = targets, settings  # River asks for these names
        self._names: tuple[Hashable, ...] = ()
        if targets is not None:
            is_list = isinstance(targets, Iterable) and not isinstance(targets, str)
            self._names = tuple(targets) if is_list else ()
            if not self._names or len({*map(str, self._names)}) < len(self._names):
                remedy = 'Give a list of different names, such as ["load", "price"], or None.'
                raise check.refuse("targets", "be a list of different names", targets, remedy)
            self._bank.name_targets([str(name) for name in self._names])

    @property
    def target_names(self) -> tuple[Hashable, ...]:
        """The names of the targets, in the order of the bank's; empty before the first row."""
        return self._names

    def learn_one(self, x: Features, y: Any, **kwargs: object) -> None:
        """Learn a row. If `predict_one` was called for it before, that prediction is scored."""
        names = self._names_of(y)
        super().learn_one(x, y if self._names else {name: y[name] for name in names})
        self._names = names

    def learn_many(self, X: Foreign, y: Foreign) -> None:
        """Learn the rows of a data frame, with a frame of targets, as `learn_one` would."""
        if len(X):
            names = self._names_of(y)
            super().learn_many(X, y if self._names else y[[*names]])
            self._names = names

    def _names_of(self, y: Any) -> tuple[Hashable, ...]:
        """The names of the targets; those of a first row or frame are sorted."""
        if not hasattr(y, "keys") or not len(y.keys()):
            remedy = "Give a dictionary, or a data frame, from names of targets to numbers."
            if not (self._names and isinstance(y, Mapping)):
                raise check.refuse("y", "be a dictionary", y, remedy)
        return self._names or tuple(sorted(y.keys(), key=_by_kind))

    def predict_one(self, x: Features) -> dict[Hashable, float]:
        """The prediction for each target; 0 before its first value is known, as in River."""
        query, names = self._query(x), self._names
        predictions = np.atleast_1d(self._bank.predict_one(query))
        if not self._bank.samples:
            return dict.fromkeys(names, 0.0)
        return dict(zip(names, np.nan_to_num(predictions).tolist(), strict=True))

    def predict_interval_one(
        self, x: Features, coverage: float = COVERAGE
    ) -> dict[Hashable, tuple[float, float]]:
        """For each target the ends of an interval that holds it with this probability."""
        intervals = self._bank.predict_interval_one(self._query(x), coverage)
        names = self._names
        if not self._bank.samples:
            return dict.fromkeys(names, (np.nan, np.nan))
        return dict(zip(names, map(tuple, np.reshape(intervals, (-1, 2)).tolist()), strict=True))

    def predict_many(self, X: Foreign) -> Foreign:
        """A frame of predictions, one column per target, with the frame's index."""
        import pandas as pd

        names = list(self._names)
        predictions: Floats | float = 0.0
        if len(X) and self._bank.samples:
            predictions = np.nan_to_num(self._bank.predict(self._columns.rows(X)))
            predictions = np.reshape(predictions, (len(X), len(names)))
        return pd.DataFrame(predictions, index=X.index, columns=names, dtype="float64")


class KernelBankClassifier(_RiverEstimator, base.MiniBatchClassifier):  # type: ignore[misc]
    """A bank of kernels for classification on streams, with nothing to tune.

    Labels may be booleans, numbers or text; new ones may appear at any time. More than two are
    learned one against the rest. Probabilities are calibrated online.

    Parameters
    ----------
    lags, size, slots, combiner, loss, window, regularization : as of `KernelBankRegressor`.
    scaling, engine, absent, most_features, seed, seasons, missing : likewise.

    >>> from river import datasets, evaluate, metrics
    >>> from kernelbank.river import KernelBankClassifier
    >>> model = KernelBankClassifier(size="small")
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.9
    True
    """

    _task = "classification"

    @property
    def _multiclass(self) -> bool:
        return True

    def predict_proba_one(self, x: Features, **kwargs: object) -> dict[Any, float]:
        """The probability of each label so far; river wants their sum to be 1, also of one."""
        shares = self._bank.predict_proba_one(self._query(x))
        return dict.fromkeys(shares, 1.0) if len(shares) == 1 else shares

    def predict_proba_many(self, X: Foreign) -> Foreign:
        """A frame of probabilities, one column per label so far, with the frame's index."""
        import pandas as pd

        classes = self._bank.classes
        has_rows = len(classes) and len(X)
        shares = self._bank.predict_proba(self._columns.rows(X)) if has_rows else None
        return pd.DataFrame(shares, index=X.index, columns=list(classes), dtype="float64")


# --- names to columns -----------------------------------------------------------------------------


class NamedColumns:
    """Maps features by name to columns, in the order in which they were added.

    New names of one row are sorted, so the order of a dictionary does not matter.

    missing : values that mean that there is none, beside None and NaN.
    fill : the value of an absent feature.
    """

    def __init__(self, missing: MissingValues | None, fill: float) -> None:
        self._missing, self._fill = missing, fill
        self._index: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._index)

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The names, in the order of their columns."""
        return tuple(self._index)

    def new(self, values: Foreign) -> list[Hashable]:
        """The names in a dictionary or a frame that are not columns yet, sorted."""
        names = values.columns if hasattr(values, "columns") else self._checked_row(values)
        return sorted((name for name in names if name not in self._index), key=_by_kind)

    def add(self, new: Iterable[Hashable]) -> None:
        """Make columns of new names."""
        self._index = self._with(new)

    def row(self, values: Foreign, new: Sequence[Hashable] = ()) -> Floats:
        """(columns,): the values of one dictionary; `new` are columns to be added."""
        index = self._with(new)
        row = np.full(max(len(index), 1), self._fill)
        for name, value in self._checked_row(values).items():
            if name in index:
                row[index[name]] = self._number(name, value)
        return row

    def rows(self, frame: Foreign, new: Sequence[Hashable] = ()) -> Floats:
        """(n, columns): the values of a data frame."""
        index = self._with(new)
        rows = np.full((len(frame), max(len(index), 1)), self._fill)
        for position, name in enumerate(frame.columns):
            column = frame.iloc[:, position]
            if name not in index:
                continue
            if column.dtype.kind in "biuf":
                numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
                rows[:, index[name]] = with_gaps(numbers, self._missing)
            else:
                rows[:, index[name]] = [self._number(name, value) for value in column]
        return rows

    def _number(self, name: Hashable, value: Foreign) -> float:
        if value is None or np.ma.is_masked(value) or means_none(value, self._missing):
            return np.nan
        rule, shown, remedy = "be a number, a boolean or None", repr(value), _ENCODE
        try:
            if not isinstance(value, (str, bytes)):
                return float(value)
        except (TypeError, ValueError):
            pass
        except OverflowError:
            rule, shown = f"be finite and at most {LARGEST:g} in size", "a number beyond all floats"
            remedy = "Repair it, or leave it out if it is missing."
        raise InvalidArgument(f"feature {name!r} must {rule}; got {shown}. {remedy}") from None

    def _checked_row(self, values: Foreign) -> Mapping[Hashable, object]:
        if not isinstance(values, Mapping):
            remedy = "Give a dictionary from names of features to numbers."
            raise check.refuse("x", "be a dictionary", values, remedy)
        return values

    def _with(self, new: Iterable[Hashable]) -> dict[Hashable, int]:
        added = [name for name in new if name not in self._index]
        if not added:
            return self._index
        return self._index | {name: len(self._index) + i for i, name in enumerate(added)}


def _by_kind(name: Hashable) -> tuple[str, str]:
    return type(name).__name__, str(name)
