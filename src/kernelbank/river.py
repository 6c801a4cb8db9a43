"""`AutoBank` as River estimators.

    from kernelbank.river import KernelBankRegressor, KernelBankClassifier
    from kernelbank.river import KernelBankMultiTargetRegressor

Features are dictionaries, and may appear and vanish:

- a feature becomes a column when a row with it is first learned; before that it is ignored in
  predictions, unless nothing has been learned yet;
- a feature that appears later is used from then on, and nothing that was learned is lost: all is as
  if it had been missing so far. Linear slots and trees use it at once; random features keep to the
  first features until the next restart (after 5, 32 and 128 rows);
- a feature that is absent, None or NaN is missing: it is filled in from its own past. With
  `absent=0`, absent features have that value instead, as in counts of words;
- at most `most_features` become columns; others are ignored, with a warning.

The result does not depend on the order of a dictionary, nor, in any bit, on whether rows are
learned one by one or many at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from .integration import FeatureColumns, Foreign, TargetColumns, make_bank

try:
    from river import base
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "kernelbank.river needs River, which is not installed. Install both: "
        "pip install 'kernelbank[river]'"
    ) from error

from .auto import AutoBank
from .auto.auto_bank import COVERAGE
from .bank.engines import Engine
from .bank.slot import Slot
from .combiners import Combiner
from .kernels import NoKernel
from .learners import Adapter
from .losses import Loss
from .utils.validation import Floats
from .utils.whole_steps import defer_signals

Features = dict[Hashable, object]
"""A row: the values of features by their names."""

__all__ = [
    "KernelBankClassifier",
    "KernelBankMultiTargetRegressor",
    "KernelBankRegressor",
    "as_slot",
]


def as_slot(model: Foreign, curvature: float = 0.0) -> Slot:
    """A River model as one slot of a bank, which weighs it like the other slots.

    The model gets a dictionary {"x0": ..., "x1": ...} of the scaled inputs. See
    `kb.learners.Adapter` for what a bank needs of it, and for `curvature`.

    >>> import kernelbank as kb
    >>> from river import tree
    >>> from kernelbank.river import KernelBankRegressor, as_slot
    >>> line = kb.Slot(kb.kernels.Linear(1.0), kb.learners.LinearRLS())
    >>> model = KernelBankRegressor(slots=[line, as_slot(tree.HoeffdingTreeRegressor())])
    >>> for n in range(100):
    ...     model.learn_one({"n": n}, 3.0 * n)
    >>> round(model.predict_one({"n": 100}))
    300
    """
    return Slot(NoKernel(), Adapter(model, curvature))


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
    ) -> None:
        self.lags = lags
        self.size = size
        self.slots = slots
        self.combiner = combiner
        self.loss = loss
        self.window = window
        self.regularization = regularization
        self.scaling = scaling
        self.engine = engine
        self.absent = absent
        self.most_features = most_features
        self.seed = seed
        self.seasons = seasons
        self._bank = make_bank(self, self._task, seed)
        self._columns = FeatureColumns(absent, most_features)

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
        new = self._columns.new(x)
        row = self._columns.row(x, new)
        with defer_signals():  # the bank and its columns change together
            self._bank.learn_one(row, y, added=self._added(new))
            self._columns.add(new)

    def learn_many(self, X: Foreign, y: Foreign) -> None:
        """Learn the rows of a data frame, in their order, as `learn_one` would."""
        if len(X):
            new = self._columns.new(X.columns)
            rows = self._columns.rows(X, new)
            try:
                self._bank.run(rows, y, added=self._added(new))
            finally:  # rows that were learned before an interrupt have the new columns
                with defer_signals():
                    if self._bank.samples and len(self._bank.input_names) == rows.shape[1]:
                        self._columns.add(new)

    def _added(self, new: list[Hashable]) -> int:
        return len(new) if self._bank.samples else 0

    def _query(self, x: Features) -> Floats:
        """An input to predict, as a row. Before the first learned row it also adds features."""
        if not self._bank.samples:
            new = self._columns.new(x)
            self._columns.row(x, new)  # refuses what is not a row
            self._columns.add(new)
        return self._columns.row(x)

    def __repr__(self) -> str:
        """The parameters, and the bank once it has learned."""
        learned = f"\n{self._bank!r}" if self._bank.samples else ""
        return f"{super().__repr__()}{learned}"

    def _repr_html_(self) -> str:
        return self._bank.status().html()


class KernelBankRegressor(_RiverEstimator, base.MiniBatchRegressor):  # type: ignore[misc]
    """A bank of kernels for regression on streams, with nothing to tune.

    One online learner per slot, with new weights after every row; inputs and target are scaled
    online. See `kb.AutoBank`, and this module's text for features that come and go.

    Parameters
    ----------
    lags : how many of the last targets are inputs too.
    size : "small", "default" or "large": how many slots and features, so how much time.
    slots : a list of `kb.Slot` of your own instead of the default ones; `as_slot` makes one of a
        River model.
    combiner : the rule for the weights.
    loss : the loss to minimise, on the target in its standard deviations.
    window : how many recent rows are in a cost.
    regularization : weight of half the squared norm in the cost.
    scaling : some of "standard", "asinh", "rank", "none": how inputs are scaled for the slots.
    engine : "serial" or "threads"; same bits.
    absent : the value of a feature that is absent; None means that it is missing.
    most_features : how many features may become columns.
    seed : whole number from which random features and random cuts follow.
    seasons : periods in rows, such as 24 or (24, 168), "auto" to find them, or None.

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

        known = len(X) and self._bank.samples
        predictions = self._bank.predict(self._columns.rows(X)) if known else 0.0
        return pd.Series(predictions, index=X.index, dtype="float64")


class KernelBankMultiTargetRegressor(_RiverEstimator, base.MultiTargetRegressor):  # type: ignore[misc]
    """A bank of kernels for several targets per row, with nothing to tune.

    All targets are outputs of one bank, whose slots share what they compute from the features; see
    `kb.AutoBank`. A target that is absent from a row's dictionary, None or NaN is missing: the row
    is learned for the others.

    Parameters
    ----------
    lags : how many of the last targets are inputs too, of all targets.
    size : "small", "default" or "large": how many slots and features, so how much time.
    slots : a list of `kb.Slot` of your own instead of the default ones.
    combiner : the rule for the weights.
    loss : the loss to minimise, on each target in its standard deviations.
    window : how many recent rows are in a cost.
    regularization : weight of half the squared norm in the cost.
    scaling : some of "standard", "asinh", "rank", "none": how inputs are scaled for the slots.
    engine : "serial" or "threads"; same bits.
    absent : the value of a feature that is absent; None means that it is missing.
    most_features : how many features may become columns.
    seed : whole number from which random features and random cuts follow.
    targets : the names of all targets; by default the first learned row has all of them.

    >>> from kernelbank.river import KernelBankMultiTargetRegressor
    >>> model = KernelBankMultiTargetRegressor(size="small")
    >>> for n in range(200):
    ...     model.learn_one({"n": n % 7}, {"twice": 2.0 * (n % 7), "back": 7.0 - n % 7})
    >>> {name: round(value) for name, value in model.predict_one({"n": 3}).items()}
    {'back': 4, 'twice': 6}
    """

    _task = "regression"

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
        targets: Iterable[Hashable] | None = None,
    ) -> None:
        super().__init__(
            lags=lags,
            size=size,
            slots=slots,
            combiner=combiner,
            loss=loss,
            window=window,
            regularization=regularization,
            scaling=scaling,
            engine=engine,
            absent=absent,
            most_features=most_features,
            seed=seed,
        )
        self.targets = targets
        self._targets = TargetColumns(targets)

    @property
    def target_names(self) -> tuple[Hashable, ...]:
        """The names of the targets, in the order of the bank's; empty before the first row."""
        return self._targets.names

    def learn_one(self, x: Features, y: Any, **kwargs: object) -> None:
        """Learn a row. If `predict_one` was called for it before, that prediction is scored."""
        names, values = self._targets.row(y)
        if len(names) == 1 and np.isnan(values[0]):
            return  # there is nothing to learn
        with defer_signals():  # the bank, its columns and its targets change together
            super().learn_one(x, self._named(names, values))
            self._targets.names = names

    def _named(self, names: tuple[Hashable, ...], values: Floats) -> object:
        """The targets of a row; the first one gives the bank their names."""
        if len(names) == 1:
            return float(values[0])
        texts = [str(name) for name in names]
        if self._bank.samples or len(set(texts)) < len(texts):
            return values
        return dict(zip(texts, values.tolist(), strict=True))

    def learn_many(self, X: Foreign, y: Foreign) -> None:
        """Learn the rows of a data frame, with a frame of targets, as `learn_one` would."""
        if not len(X):
            return
        names, rows = self._targets.rows(y)
        if len(names) == 1:
            known = ~np.isnan(rows[:, 0])
            X, rows = X[known], rows[known]
        try:
            super().learn_many(X, rows)
        finally:
            if self._bank.samples:
                self._targets.names = names

    def predict_one(self, x: Features) -> dict[Hashable, float]:
        """The prediction for each target; 0 before its first value is known, as in River."""
        query, names = self._query(x), self._targets.names
        predictions = np.atleast_1d(self._bank.predict_one(query))
        if not self._bank.samples:
            return dict.fromkeys(names, 0.0)
        return dict(zip(names, np.nan_to_num(predictions).tolist(), strict=True))

    def predict_interval_one(
        self, x: Features, coverage: float = COVERAGE
    ) -> dict[Hashable, tuple[float, float]]:
        """For each target the ends of an interval that holds it with this probability."""
        intervals = self._bank.predict_interval_one(self._query(x), coverage)
        if not self._bank.samples:
            return dict.fromkeys(self._targets.names, (float("nan"), float("nan")))
        ends = np.reshape(intervals, (-1, 2)).tolist()
        return {
            name: (low, high) for name, (low, high) in zip(self._targets.names, ends, strict=True)
        }

    def predict_many(self, X: Foreign) -> Foreign:
        """A frame of predictions, one column per target, with the frame's index."""
        import pandas as pd

        names = self._targets.names
        known = len(X) and self._bank.samples
        predictions: Floats | float = 0.0
        if known:
            predictions = np.nan_to_num(self._bank.predict(self._columns.rows(X)))
            predictions = np.reshape(predictions, (len(X), len(names)))
        return pd.DataFrame(predictions, index=X.index, columns=list(names), dtype="float64")


class KernelBankClassifier(_RiverEstimator, base.MiniBatchClassifier):  # type: ignore[misc]
    """A bank of kernels for classification on streams, with nothing to tune.

    Labels may be booleans, numbers or text; new ones may appear at any time. More than two are
    learned one against the rest. Probabilities are calibrated online.

    Parameters
    ----------
    lags : how many of the last labels are inputs too.
    size : "small", "default" or "large": how many slots and features, so how much time.
    slots : a list of `kb.Slot` of your own instead of the default ones.
    combiner : the rule for the weights.
    loss : the loss to minimise, on labels of -1 and 1.
    window : how many recent rows are in a cost.
    regularization : weight of half the squared norm in the cost.
    scaling : some of "standard", "asinh", "rank", "none": how inputs are scaled for the slots.
    engine : "serial" or "threads"; same bits.
    absent : the value of a feature that is absent; None means that it is missing.
    most_features : how many features may become columns.
    seed : whole number from which random features and random cuts follow.
    seasons : periods in rows, such as 24 or (24, 168), "auto" to find them, or None.

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
        """The probability of each label so far."""
        return self._bank.predict_proba_one(self._query(x))

    def predict_proba_many(self, X: Foreign) -> Foreign:
        """A frame of probabilities, one column per label so far, with the frame's index."""
        import pandas as pd

        classes = self._bank.classes
        known = len(classes) and len(X)
        shares = self._bank.predict_proba(self._columns.rows(X)) if known else None
        return pd.DataFrame(shares, index=X.index, columns=list(classes), dtype="float64")
