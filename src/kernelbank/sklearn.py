"""`AutoBank` as scikit-learn estimators.

    from kernelbank.sklearn import KernelBankRegressor, KernelBankClassifier

`fit` runs over the rows once, in their order, as a stream: each is predicted, then learned.
`partial_fit` continues from there. So rows should be in the order of time if there is any, and
cross-validation should be by `TimeSeriesSplit`. If there is none, `shuffle=True` learns them in
random order: a bank follows the last rows, and sorted rows would mislead it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .auto.auto_bank import COVERAGE, AutoBank
from .auto.inputs import column_of_times, columns_without_numbers, is_missing, with_gaps
from .bank.engines import Engine
from .bank.slot import Slot
from .combiners import Combiner
from .losses import Loss
from .utils import validation as check
from .utils.validation import Floats

with check.optional("kernelbank.sklearn needs", "scikit-learn (1.6 or newer)", "sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets, unique_labels
    from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["KernelBankClassifier", "KernelBankRegressor"]

Foreign = Any  # what scikit-learn returns


class _SklearnEstimator(BaseEstimator):  # type: ignore[misc]
    """The parameters, and checked arrays."""

    def __init__(
        self,
        *,
        lags: int = 0,
        seasons: str | int | Iterable[int] | None = None,
        size: str = "default",
        slots: Iterable[Slot] | None = None,
        combiner: Combiner | None = None,
        loss: Loss | str = "squared",
        window: int = 1,
        regularization: float = 0.0,
        scaling: str | Iterable[str] | None = None,
        missing: float | Iterable[float] | None = None,
        engine: Engine | str = "serial",
        shuffle: bool = False,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        for name, value in list(locals().items()):  # scikit-learn wants attributes
            if name != "self":
                setattr(self, name, value)

    def __sklearn_tags__(self) -> Foreign:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _learned(
        self, X: Floats, y: np.ndarray, task: str, classes: Iterable[int] | None = None
    ) -> AutoBank:
        """A new bank that has learned these rows."""
        settings = self.get_params(deep=False)
        draw = check_random_state(settings.pop("random_state"))
        shuffle, scalings = settings.pop("shuffle"), settings.pop("scaling")
        seed = int(draw.randint(2**31 - 1))
        bank = AutoBank(task, classes=classes, scalings=scalings, seed=seed, **settings)
        if hasattr(self, "feature_names_in_"):
            bank.name_columns(self.feature_names_in_)
        order = draw.permutation(len(X)) if shuffle else slice(None)
        bank.run(X[order], y[order])
        return bank

    def _checked(
        self, X: object, y: object = "no_validation", *, reset: bool, **more: bool
    ) -> Foreign:
        """Inputs (n, d) with targets or labels; keeps or compares names and number of features."""
        for name, values in (("X", X), ("y", y)):
            check.without_masked(name, values)
        settings = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "reset": reset}
        column, how = column_of_times(X), "the sine and cosine of the hour"
        try:
            if column is not None:  # scikit-learn would make numbers of some
                raise TypeError("its values are times")
            return validate_data(self, X, y, **settings, **more)
        except (TypeError, ValueError) as error:
            if column is None:
                column = next(iter(columns_without_numbers(X)), None)
                how = "OneHotEncoder in a pipeline"
            if column is None:
                raise
            raise ValueError(
                f"column {column!r} must hold numbers: {error}. Encode it, for instance with "
                f"{how}; kb.AutoBank takes text and times as they are."
            ) from None

    def _query(self, X: object) -> Floats:
        """Rows to predict. A missing input is the median of its column.

        A stream would fill it in from its last row, which rows to predict need not follow; with
        lags and seasons they do.
        """
        check_is_fitted(self)
        rows: Floats = with_gaps(self._checked(X, reset=False), self.bank_.missing_values)
        if self.lags or self.seasons is not None:
            return rows
        return np.where(np.isnan(rows), self.bank_.input_ranges()[:, 0], rows)


class KernelBankRegressor(RegressorMixin, _SklearnEstimator):  # type: ignore[misc]
    """A bank of kernels for regression, with nothing to tune.

    One online learner per slot, with new weights after every row; inputs and target are scaled
    online. See `kb.AutoBank`.

    Parameters
    ----------
    lags, seasons : as of `kb.AutoBank`. With them `predict` takes its rows as the next of the
        stream, in their order.
    size, slots, combiner, loss, window, regularization, missing, engine : likewise.
    scaling : `scalings` of `kb.AutoBank`.
    shuffle : whether `fit` learns the rows in random order, for rows that have no order in time.
    random_state : from which random features, random cuts and random order follow. 0 by default, so
        that results repeat; None draws anew.

    Attributes
    ----------
    bank_ : the `AutoBank`: its slots, weights and ledger.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Missing inputs (NaN) are allowed.

    y may have several columns, (n, K): all are outputs of one bank, as in `kb.AutoBank`, which also
    takes targets that are missing in some rows.

    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from kernelbank.sklearn import KernelBankRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bool(cross_val_score(KernelBankRegressor(size="small"), X, y, cv=3).mean() > 0.4)
    True
    """

    def __sklearn_tags__(self) -> Foreign:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: object, y: object) -> KernelBankRegressor:
        """Forget everything, then learn the rows once, in their order. y : (n,) or (n, K)."""
        self.bank_ = self._learned(*self._rows_and_numbers(X, y, reset=True), "regression")
        return self

    def partial_fit(self, X: object, y: object) -> KernelBankRegressor:
        """Learn further rows, with as many targets as before."""
        if not hasattr(self, "bank_"):
            return self.fit(X, y)
        self.bank_.run(*self._rows_and_numbers(X, y, reset=False))
        return self

    def _rows_and_numbers(self, X: object, y: object, *, reset: bool) -> tuple[Floats, Floats]:
        """Inputs (n, d) and targets (n,) or (n, K); a single column is (n,), with a warning."""
        rows, targets = self._checked(X, y, reset=reset, y_numeric=True, multi_output=True)
        if targets.ndim == 2 and targets.shape[1] == 1:
            targets = column_or_1d(targets, warn=True)
        return rows, targets

    def predict(self, X: object) -> Floats:
        """(n,): the predictions; (n, K) for several targets."""
        rows = self._query(X)
        return self.bank_.predict(rows)

    def predict_interval(self, X: object, coverage: float = COVERAGE) -> Floats:
        """(n, 2): the ends of intervals that hold the target with this probability; (n, K, 2) for
        several targets.

        With lags or seasons for one row only; see `AutoBank.predict_interval`.
        """
        rows = self._query(X)
        return self.bank_.predict_interval(rows, coverage)


class KernelBankClassifier(ClassifierMixin, _SklearnEstimator):  # type: ignore[misc]
    """A bank of kernels for classification, with nothing to tune.

    More than two classes are learned one against the rest. Probabilities are calibrated online. See
    `kb.AutoBank`.

    Parameters
    ----------
    lags, seasons, size, slots, combiner, loss, window : as of `KernelBankRegressor`.
    regularization, scaling, missing, engine, shuffle, random_state : likewise.

    Attributes
    ----------
    classes_ : the labels, sorted: the columns of `predict_proba`.
    bank_ : the `AutoBank`, in which a label is its number in `classes_`.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Missing inputs (NaN) are allowed.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from kernelbank.sklearn import KernelBankClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelBankClassifier(size="small", shuffle=True)
    >>> bool(cross_val_score(model, X, y, cv=3).mean() > 0.93)
    True
    """

    def fit(self, X: object, y: object) -> KernelBankClassifier:
        """Forget everything, then learn the rows once, in their order."""
        rows, labels = self._rows_and_labels(X, y, reset=True)
        return self._learn_first(rows, labels, unique_labels(labels))

    def partial_fit(self, X: object, y: object, classes: object = None) -> KernelBankClassifier:
        """Learn further rows; the first call has to name all `classes`."""
        first = not hasattr(self, "bank_")
        if first and classes is None:
            raise ValueError(
                "'classes' must be given in the first call of partial_fit: a list of all labels "
                "that may come. kb.AutoBank finds them in the stream."
            )
        if classes is not None:
            _refuse_missing("classes", classes)
        rows, labels = self._rows_and_labels(X, y, reset=first)
        if first:
            return self._learn_first(rows, labels, unique_labels(classes))
        if classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ValueError(
                f"'classes' must be those of the first call, {self.classes_!r}; got {classes!r}. "
                "Leave it out, or fit a new estimator."
            )
        self.bank_.run(rows, self._numbers(labels, self.classes_))
        return self

    def _rows_and_labels(self, X: object, y: object, *, reset: bool) -> tuple[Floats, np.ndarray]:
        _refuse_missing("y", y)
        rows, labels = self._checked(X, y, reset=reset)
        check_classification_targets(labels)
        return rows, labels

    def _learn_first(self, X: Floats, y: np.ndarray, classes: np.ndarray) -> KernelBankClassifier:
        named = range(len(classes)) if len(classes) > 1 else None
        self.bank_ = self._learned(X, self._numbers(y, classes), "classification", named)
        self.classes_ = classes
        return self

    def _numbers(self, y: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """The indices of labels in the classes."""
        unknown = np.setdiff1d(y, classes)
        if len(unknown):
            raise ValueError(
                f"'y' must hold the labels in classes {classes!r} only; got {unknown[0]!r}. "
                "Name all labels in the first call of partial_fit."
            )
        return np.searchsorted(classes, y)

    def predict(self, X: object) -> np.ndarray:
        """(n,): the most probable labels."""
        rows = self._query(X)
        return np.asarray(self.classes_[self.bank_.predict(rows)])

    def predict_proba(self, X: object) -> Floats:
        """(n, classes): probabilities, columns in the order of `classes_`."""
        rows = self._query(X)
        return self.bank_.predict_proba(rows)


def _refuse_missing(name: str, labels: object) -> None:
    """Refuse labels of which one is missing or under a mask."""
    check.without_masked(name, labels)
    objects = np.ravel(np.asarray(labels)) if labels is not None else np.zeros(0)
    if objects.dtype.kind == "O" and any(map(is_missing, objects.tolist())):
        raise ValueError(f"{name!r} has a missing label. Leave such rows out of learning.")
